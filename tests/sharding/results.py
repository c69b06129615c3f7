"""Programs over automatic axes of a mesh, for `test_results.py`: how their results are divided.

`python results.py ferrax` prints a JSON object: for each program the specs of its results' shardings. A program is a
function and its arguments, in `PROGRAMS`; what they are made of is in `SETUP`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import warnings

SETUP = """
import numpy as np
P, NamedSharding = jax.sharding.PartitionSpec, jax.sharding.NamedSharding
lax = jax.lax
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

def A(*shape):
    return np.linspace(0.1, 1.1, int(np.prod(shape)), dtype=np.float32).reshape(shape)

def N(*shape):
    return np.arange(int(np.prod(shape))).reshape(shape)

def put(spec, array=A(64, 64)):
    return jax.device_put(array, NamedSharding(mesh, spec))

def layer(x, w):
    h = lax.with_sharding_constraint(jax.nn.relu(x @ w), NamedSharding(mesh, P("x", "y")))
    return lax.with_sharding_constraint(h @ w.T, NamedSharding(mesh, P("x", None))) / 64, None

def conv(x, kernel, stride=1):
    return lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

def specs(f, *args):
    return [str(v.sharding.spec) for v in jax.tree.leaves(jax.jit(f)(*args))]

w, x, xy, ws = put(P(None, "y")), put(P("x", None)), put(P("x", "y")), put(P(None, None, "y"), A(3, 64, 64))
xn, xs = put(P("x", None, None, None), A(8, 16, 16, 3)), put(P("x", "y"), A(8, 16, 16, 3))
"""

PROGRAMS = {
    "scan": "jax.grad(lambda w,x: jnp.mean(lax.scan(layer,x,w)[0]**2)),ws,x",
    "scan remat": "jax.grad(lambda w,x: jnp.mean(lax.scan(jax.checkpoint(layer),x,w)[0]**2)),ws,x",
    "stack": "lambda w: jnp.stack([w,w,w]),w",
    "stack grad": "jax.grad(lambda w: jnp.sum(jnp.stack([w,w,w])**2)),w",
    "scan fwd": "lambda w,x: lax.scan(layer,x,w)[0],ws,x",
    "scan ys": "lambda w: lax.scan(lambda c,w:(c,w*2),0.,w)[1],ws",
    "scan plain": "jax.grad(lambda w,x: jnp.mean(lax.scan(lambda x,w:(jnp.tanh(x@w)@w.T,None),x,w)[0]**2)),ws,x",
    "const in scan": "jax.grad(lambda w,x: jnp.mean(lax.scan(lambda c,_:(jnp.tanh(c@w)@w.T,0),x,None,3)[0]**2)),w,x",
    "fori": "lambda w,x: lax.fori_loop(0,3,lambda i,c:jnp.tanh(c@w)@w.T,x),w,x",
    "idx": "lambda w: w[1],ws",
    "slice": "lambda w: w[:,:32],ws",
    "reshape": "lambda w: w.reshape(64*3,64),ws",
    "conv": 'lambda x,k: lax.conv_general_dilated(x,k,(1,1),"SAME"),put(P("x"),A(8,3,16,16)),A(4,3,3,3)',
    "take": 'lambda w,i: w[i],put(P("x","y")),np.arange(5)',
    "onehot": 'lambda i: jax.nn.one_hot(i,16),put(P("x"),np.arange(8))',
    "take rows of sharded idx": 'lambda w,i: w[i],w,put(P("x"),np.arange(8))',
    "softmax": "lambda x: jax.nn.softmax(x@x.T),x",
    "attn": 'lambda q,k,v: jax.nn.dot_product_attention(q,k,v),*[put(P("x",None,"y"),A(8,16,4,8))]*3',
    "einsum": 'lambda x,w: jnp.einsum("bi,ij->bj",x,w),x,w',
    "cumsum": 'lambda x: jnp.cumsum(x,1),put(P("x","y"))',
    "sort": 'lambda x: jnp.sort(x,1),put(P("x","y"))',
    "concat": 'lambda x: jnp.concatenate([x,x],1),put(P("x","y"))',
    "pad": 'lambda x: jnp.pad(x,((0,0),(1,1))),put(P("x","y"))',
    "cond": 'lambda x: lax.cond(x.sum()>0,lambda x:x*2,lambda x:x,x),put(P("x","y"))',
    "argmax": 'lambda x: jnp.argmax(x,1),put(P("x","y"))',
    "upd": 'lambda x: x.at[:, 3].set(1.),put(P("x","y"))',
    "dyn": 'lambda x,i: lax.dynamic_slice_in_dim(x,i,16,0),put(P("x","y")),3',
    "vmap": 'jax.vmap(lambda x: x@x),put(P("x"),A(8,4,4))',
    "T": 'lambda x: x.T.reshape(8,8,64),put(P("x","y"))',
    "outer": 'lambda a,b: a[:,None]*b,put(P("x"),A(64)),put(P("y"),A(64))',
    "lnorm": "jax.grad(lambda x: jnp.sum((x-x.mean(-1,keepdims=True))/x.std(-1,keepdims=True))),x",
    "qr": 'lambda x: jnp.linalg.qr(x)[0],put(P("x"),A(8,4,4))',
    "chol": 'lambda x: jnp.linalg.cholesky(x@x.mT+jnp.eye(4)),put(P("x"),A(8,4,4))',
    "fft": "lambda x: jnp.fft.fft(x).real,x",
    "gather grad": 'jax.grad(lambda w,i: jnp.sum(w[i]**2)),w,put(P("x"),np.arange(8))',
    "maxpool": 'lambda x: lax.reduce_window(x,-jnp.inf,lax.max,(1,2,2,1),(1,2,2,1),"SAME"),xn',
    "avgpool": 'lambda x: lax.reduce_window(x,0.,lax.add,(1,2,2,1),(1,2,2,1),"SAME"),xn',
    "maxpool grad": 'jax.grad(lambda x: lax.reduce_window(x,-jnp.inf,lax.max,(1,2,2,1),(1,2,2,1),"SAME").sum()),xn',
    "conv nhwc": "lambda x,k: conv(x,k),xn,A(3,3,3,8)",
    "conv nhwc spatial": "lambda x,k: conv(x,k,2),xs,A(3,3,3,8)",
    "conv feat": 'lambda x,k: conv(x,k),xn,put(P(None,None,None,"y"),A(3,3,3,8))',
    "conv grad k": 'jax.grad(lambda k,x: conv(x,k).sum()),put(P(None,None,None,"y"),A(3,3,3,8)),xn',
    "topk": "lambda x: lax.top_k(x,4),xy",
    "argsort": "lambda x: jnp.argsort(x,0),xy",
    "svd": 'lambda x: jnp.linalg.svd(x),put(P("x"),A(8,4,4))',
    "eigh": 'lambda x: jnp.linalg.eigh(x+x.mT),put(P("x"),A(8,4,4))',
    "solve": 'lambda x: jnp.linalg.solve(x+4*jnp.eye(4),x),put(P("x"),A(8,4,4))',
    "inv": 'lambda x: jnp.linalg.inv(x+4*jnp.eye(4)),put(P("x"),A(8,4,4))',
    "det": 'lambda x: jnp.linalg.det(x),put(P("x"),A(8,4,4))',
    "lu": 'lambda x: jax.scipy.linalg.lu_factor(x),put(P("x"),A(8,4,4))',
    "split": "lambda x: jnp.split(x,2,1),xy",
    "split other": "lambda x: jnp.split(x,2,1),x",
    "roll": "lambda x: jnp.roll(x,1,0),xy",
    "flip": "lambda x: jnp.flip(x,0),xy",
    "tile": "lambda x: jnp.tile(x,(1,2)),xy",
    "repeat": "lambda x: jnp.repeat(x,2,0),xy",
    "where": "lambda x: jnp.where(x>0.5,x,0),xy",
    "take_along": "lambda x: jnp.take_along_axis(x,jnp.argsort(x,1),1),xy",
    "one2": 'lambda i: jax.nn.one_hot(i,16)@jnp.ones((16,8)),put(P("x"),np.arange(8))',
    "embed": 'lambda e,i: e[i],put(P(None,"y"),A(100,64)),put(P("x"),N(8,4))',
    "embed rows": 'lambda e,i: e[i],put(P("y",None),A(100,64)),put(P("x"),N(8,4))',
    "embed grad": 'jax.grad(lambda e,i: (e[i]**2).sum()),put(P(None,"y"),A(100,64)),put(P("x"),N(8,4))',
    "segsum": "lambda x: jax.ops.segment_sum(x,jnp.arange(64)%4,4),xy",
    "scatter": "lambda x,u: x.at[jnp.arange(8)].add(u),xy,A(8,64)",
    "scatter2": 'lambda u: jnp.zeros((64,64)).at[jnp.arange(8)].add(u),put(P(None,"y"),A(8,64))',
    "dus": "lambda x,u: lax.dynamic_update_slice(x,u,(0,0)),xy,A(8,64)",
    "meshgrid": 'lambda a,b: jnp.meshgrid(a,b),put(P("x"),A(8)),put(P("y"),A(8))',
    "einsum attn": 'lambda q,k: jnp.einsum("bqhd,bkhd->bhqk",q,k),*[put(P("x",None,"y"),A(8,16,4,8))]*2',
    "einsum moe": 'lambda x,w: jnp.einsum("bd,edf->ebf",x,w),put(P("x"),A(8,16)),put(P("y"),A(2,16,32))',
    "dot contracted": 'lambda x,w: x@w,xy,put(P("y",None),A(64,64))',
    "logsumexp": "lambda x: jax.nn.logsumexp(x,1),xy",
    "var": "lambda x: x.var(0),xy",
    "mean all": "lambda x: x.mean(),xy",
    "squeeze": "lambda x: x[:, :1].squeeze(1),xy",
    "expand": "lambda x: x[None,:,None],xy",
    "reshape split": "lambda x: x.reshape(8,8,64),xy",
    "reshape merge": "lambda x: x.reshape(-1),xy",
    "reshape heads": "lambda x: x.reshape(64,8,8),xy",
    "reshape heads2": "lambda x: x.reshape(64,2,32),xy",
    "reshape odd": "lambda x: x.reshape(32,2,64),xy",
    "swap": "lambda x: jnp.swapaxes(x,0,1),xy",
    "cumsum0": "lambda x: jnp.cumsum(x,0),xy",
    "assoc": "lambda x: lax.associative_scan(jnp.add,x),xy",
    "vmap scan": "jax.vmap(lambda r: lax.scan(lambda c,a:(c+a,c),0.,r)[1]),put(P('x'))",
    "scan rows": 'lambda r: lax.scan(lambda c,a:(c+a,c*a),jnp.zeros(64),r)[1],put(P(None,"y"),A(64,64))',
    "while": "lambda x: lax.while_loop(lambda c:c.sum()<1e6,lambda c:c*2,x),xy",
    "map": 'lambda x: lax.map(lambda r:r*2,x),put(P(None,"y"),A(64,64))',
    "grad mlp": 'jax.grad(lambda w,x: jnp.tanh(x@w).sum()),put(P(None,"y"),A(64,64)),x',
    "hess": 'jax.hessian(lambda v: jnp.sum(v**3)),put(P("x"),A(8))',
    "jac": 'jax.jacrev(lambda v: v**2),put(P("x"),A(8))',
    "fft2": 'lambda x: jnp.fft.fft2(x).real,put(P("x"),A(8,4,4))',
    "rng": "lambda x: x*jax.random.bernoulli(jax.random.key(0),0.5,x.shape),xy",
    "complex": "lambda x: lax.complex(x,x).imag,xy",
    "bitcast": "lambda x: lax.bitcast_convert_type(x,jnp.int32),xy",
    "bitcast8": "lambda x: lax.bitcast_convert_type(x,jnp.int8),xy",
    "clip": "lambda x: jnp.clip(x,0.2,0.5),xy",
    "median": "lambda x: jnp.median(x,0),xy",
    "quantile": "lambda x: jnp.quantile(x,0.3,axis=1),xy",
    "unique": "lambda x: jnp.unique(x,size=4),xy",
    "tril": "lambda x: jnp.tril(x),xy",
    "outer again": 'jnp.outer,put(P("x"),A(8)),put(P("x"),A(8))',
    "kron": 'jnp.kron,put(P("x"),A(8,2)),A(2,2)',
    "convolve": 'lambda x: jnp.convolve(x,jnp.ones(3),"same"),put(P("x"),A(64))',
    "searchsorted": 'lambda x,q: jnp.searchsorted(x,q),A(64),put(P("x"),A(64))',
    "interp": 'lambda q: jnp.interp(q,jnp.arange(4.),jnp.arange(4.)),put(P("x"),A(64))',
    "image": 'lambda x: jax.image.resize(x,(8,32,32,3),"linear"),xn',
    "bn": "lambda x: (x-x.mean((0,1,2)))/x.std((0,1,2)),xn",
    "gelu ffn": 'lambda x,a,b: jax.nn.gelu(x@a)@b,x,put(P(None,"y"),A(64,128)),put(P("y",None),A(128,64))',
    "remat": "jax.grad(lambda x: jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x).sum()),xy",
    "custom": "jax.nn.relu,xy",
    "softmax ce": 'lambda x,y: -jnp.take_along_axis(jax.nn.log_softmax(x),y[:,None],1).mean(),x,put(P("x"),N(64))',
    "slice0": "lambda x: x[:32],xy",
    "slice odd": "lambda x: x[:30],xy",
    "slice stride": "lambda x: x[::2],xy",
    "slice shift": "lambda x: x[1:],xy",
    "roll again": "lambda x: jnp.concatenate([x[-1:],x[:-1]]),xy",
    "diff": "lambda x: x[1:]-x[:-1],xy",
    "diff1": "lambda x: x[:,1:]-x[:,:-1],xy",
    "dynslice": "lambda x: lax.dynamic_slice(x,(3,0),(32,64)),xy",
    "split3": "lambda x: jnp.split(x,[16,32],0),xy",
    "pad odd": "lambda x: jnp.pad(x,((0,0),(0,1))),xy",
    "concat odd": "lambda x: jnp.concatenate([x,x[:,:3]],1),xy",
    "even/odd": "lambda x: x.reshape(32,2,64)[:,0],xy",
    "topk4": "lambda x: lax.top_k(x.T,4)[0],xy",
}


def main(library: str) -> None:
    """Runs all programs and prints the specs of their results."""
    warnings.simplefilter("ignore")
    space = {"jax": importlib.import_module(library), "jnp": importlib.import_module(library + ".numpy")}
    exec(SETUP, space)
    print(json.dumps({name: eval(f"specs({program})", space) for name, program in PROGRAMS.items()}))


if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    main(sys.argv[1])
