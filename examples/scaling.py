"""Training steps of a transformer, for `python -m ferrax.plan`: how they scale over meshes, without devices.

    python -m ferrax.plan examples/scaling.py --mesh 8x8 --machine h100
    python -m ferrax.plan examples/scaling.py --function sharded --axes data --mesh 8 --mesh 64 --mesh 512

Each function below gives a step and its arguments for a mesh: `plan` divides the batch over `data` and the matrices
over `model`; `sharded` keeps parameters and Adam's moments in parts over `data`; `experts` sends tokens to experts over
`expert`; `pipeline` gives groups of layers to the devices of `pipe`. The batch grows with the devices that share it.
"""

import math

import ferrax as jax
import ferrax.numpy as jnp
from ferrax.sharding import NamedSharding, PartitionSpec as P

LAYERS, WIDTH, HEADS, HIDDEN, WORDS, LENGTH = 32, 4096, 32, 16384, 51200, 2048
#: Sequences for each device that has a part of the batch; microbatches of a pipeline, of a sequence each; experts, and
#: the units of each; tokens among which places at experts are given out.
BATCH, MICROBATCHES, EXPERTS, EXPERT_HIDDEN, GROUP = 4, 32, 64, 2048, 256
RATE = 1e-4


def array(mesh, shape, spec, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))


def norm(x):
    x = x.astype(jnp.float32)
    return (x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)).astype(jnp.bfloat16)


def attention(h, w):
    x, size = norm(h), WIDTH // HEADS
    q, k, v = jnp.einsum("bsd,ndhe->nbshe", x, w["qkv"].astype(x.dtype))
    scores = jnp.einsum("bqhe,bkhe->bhqk", q, k).astype(jnp.float32) / math.sqrt(size)
    later = jnp.arange(LENGTH)[:, None] < jnp.arange(LENGTH)
    weights = jax.nn.softmax(jnp.where(later, -1e30, scores)).astype(x.dtype)
    mixed = jnp.einsum("bhqk,bkhe->bqhe", weights, v)
    return h + jnp.einsum("bqhe,hed->bqd", mixed, w["out"].astype(x.dtype))


def feed_forward(h, w):
    x = norm(h)
    return h + jax.nn.gelu(x @ w["up"].astype(x.dtype)) @ w["down"].astype(x.dtype)


def moments_step(w, m, v, g):
    m, v = 0.9 * m + 0.1 * g, 0.95 * v + 0.05 * g * g
    return w - RATE * m / (jnp.sqrt(v) + 1e-8), m, v


def trained(loss):
    """A step of Adam: gradients of the loss by the parameters, then the parameters' and the moments' new values."""

    def step(state, tokens):
        grads = jax.grad(loss)(state[0], tokens)
        new = jax.tree.map(moments_step, *state, grads)
        return jax.tree.transpose(jax.tree.structure(state[0]), jax.tree.structure((0, 0, 0)), new)

    return jax.jit(step)


def loss_of(block, rows):
    """The loss of a transformer of such blocks; `rows` says what divides the batch."""

    def loss(params, tokens):
        h = params["words"].astype(jnp.bfloat16)[tokens]
        h = jax.lax.with_sharding_constraint(h, P(rows))
        h, _ = jax.lax.scan(lambda h, w: (jax.checkpoint(block)(h, w), None), h, params["layers"])
        logits = jnp.einsum("bsd,wd->bsw", norm(h), params["words"].astype(jnp.bfloat16)).astype(jnp.float32)
        right = jnp.where(jnp.arange(WORDS) == tokens[..., None], logits, 0.0).sum(-1)
        return (jax.nn.logsumexp(logits, axis=-1) - right).mean()

    return loss


def dense(h, w):
    return feed_forward(attention(h, w), w)


def parameters(mesh, width, model):
    """The parameters: what divides axes of the model's width, and what divides heads, hidden units and words."""
    layers = {
        "qkv": array(mesh, (LAYERS, 3, WIDTH, HEADS, WIDTH // HEADS), P(None, None, width, model, None)),
        "out": array(mesh, (LAYERS, HEADS, WIDTH // HEADS, WIDTH), P(None, model, None, width)),
        "up": array(mesh, (LAYERS, WIDTH, HIDDEN), P(None, width, model)),
        "down": array(mesh, (LAYERS, HIDDEN, WIDTH), P(None, model, width)),
    }
    return {"layers": layers, "words": array(mesh, (WORDS, WIDTH), P(model, width))}


def gathered(w, layers, axis):
    """A layer's matrices, those of the model's width whole over an axis of the mesh, in 16 bits."""

    def whole(name, x):
        spec = layers[name].sharding.spec[1:]
        if name in ("up", "down") and len(spec) == 3:
            return x
        return jax.lax.with_sharding_constraint(
            x.astype(jnp.bfloat16), P(*(None if entry == axis else entry for entry in spec))
        )

    return {name: whole(name, x) for name, x in w.items()}


def plan(mesh):
    """Data and tensor parallel: `data` divides the batch, `model` heads, hidden units and words."""
    model = "model" if "model" in mesh.axis_names else None
    params = parameters(mesh, None, model)
    tokens = array(mesh, (BATCH * mesh.shape["data"], LENGTH), P("data"), jnp.int32)
    return trained(loss_of(dense, "data")), (params, params, params), tokens


def sharded(mesh):
    """As `plan`, with parameters and moments in parts over `data`, which are gathered layer by layer."""
    model = "model" if "model" in mesh.axis_names else None
    params = parameters(mesh, "data", model)
    tokens = array(mesh, (BATCH * mesh.shape["data"], LENGTH), P("data"), jnp.int32)

    block = lambda h, w: dense(h, gathered(w, params["layers"], "data"))
    return trained(loss_of(block, "data")), (params, params, params), tokens


def experts(mesh):
    """A mixture of experts: each token goes to one of them, which `expert` divides, and comes back."""
    both = ("data", "expert")
    batch = BATCH * mesh.shape["data"] * mesh.shape["expert"]
    params = parameters(mesh, "expert", None)
    for name, shape in (("up", (WIDTH, EXPERT_HIDDEN)), ("down", (EXPERT_HIDDEN, WIDTH))):
        params["layers"][name] = array(mesh, (LAYERS, EXPERTS, *shape), P(None, "expert", None, None))
    params["layers"]["router"] = array(mesh, (LAYERS, WIDTH, EXPERTS), P())
    tokens = array(mesh, (batch, LENGTH), P(both), jnp.int32)
    room = 2 * GROUP // EXPERTS

    def mixture(h, w):
        x = norm(h).reshape(-1, GROUP, WIDTH)
        scores = jax.nn.softmax((x @ w["router"].astype(x.dtype)).astype(jnp.float32))
        chosen = jax.nn.one_hot(scores.argmax(-1), EXPERTS, dtype=jnp.float32)
        place = jnp.cumsum(chosen, axis=1) * chosen - 1.0
        sent = jax.nn.one_hot(place, room, dtype=x.dtype) * (place >= 0)[..., None].astype(x.dtype)
        boxes = jnp.einsum("bsec,bsd->becd", sent, x)
        boxes = jax.lax.with_sharding_constraint(boxes, P("data", "expert"))
        done = jnp.einsum("becd,edf->becf", boxes, w["up"].astype(x.dtype))
        done = jnp.einsum("becf,efd->becd", jax.nn.gelu(done), w["down"].astype(x.dtype))
        done = jax.lax.with_sharding_constraint(done, P(both))
        back = jnp.einsum("bsec,becd->bsd", sent, done)
        return h + (back * (scores * chosen).sum(-1, keepdims=True).astype(x.dtype)).reshape(h.shape)

    def block(h, w):
        w = gathered(w, params["layers"], "expert")
        return mixture(attention(h, w), w)

    return trained(loss_of(block, both)), (params, params, params), tokens


def pipeline(mesh):
    """Layers in groups over `pipe`: microbatches move from group to group, one a turn, and back for the gradients."""
    stages, rows = mesh.shape["pipe"], mesh.shape["data"]
    layers = parameters(mesh, None, None)["layers"]
    layers = {n: array(mesh, x.shape, P("pipe")) for n, x in layers.items()}
    activations = array(mesh, (MICROBATCHES, rows, LENGTH, WIDTH), P(None, "data"), jnp.bfloat16)
    onward = [(i, (i + 1) % stages) for i in range(stages)]

    def stage(w, x):
        """Runs on one device: its layers, on what the device before it has made."""
        at = jax.lax.axis_index("pipe")

        def turn(carry, t):
            entering = jax.lax.dynamic_index_in_dim(x, jnp.clip(t, 0, MICROBATCHES - 1), keepdims=False)
            h = jnp.where(at == 0, entering, carry)
            h, _ = jax.lax.scan(lambda h, w: (jax.checkpoint(dense)(h, w), None), h, w)
            return jax.lax.ppermute(h, "pipe", onward), h

        _, made = jax.lax.scan(turn, jnp.zeros_like(x[0]), jnp.arange(MICROBATCHES + stages - 1))
        last = jnp.where(at == stages - 1, made[stages - 1 :], 0.0)
        return jax.lax.psum((last.astype(jnp.float32) ** 2).mean(), ("pipe", "data"))

    run = jax.shard_map(stage, mesh=mesh, in_specs=(P("pipe"), P(None, "data")), out_specs=P(), check_vma=False)
    return trained(run), (layers, layers, layers), activations
