"""Reductions, cumulative operations, sorts and what neural networks do to rows."""

from tests.fuzz.program import Tolerance
from tests.fuzz.values import words

T = Tolerance

REAL = words("""sum sum prod max max min mean var std any all nansum nanmax nanmean ptp count_nonzero argmax argmin
    median quantile logsumexp linalg.norm average nanmin nanprod nanvar""")
COMPLEX = ["sum", "prod", "mean", "any", "all", "var", "max"]
#: Reductions that have no value over nothing.
NONEMPTY = {"max", "min", "nanmax", "nanmin", "ptp", "argmax", "argmin", "median", "quantile"}
EXACT = {"max", "min", "any", "all", "nanmax", "nanmin", "ptp", "count_nonzero"}

ROWS = [
    "jax.nn.softmax({v}, axis={axis})", "{v} - jnp.mean({v}, axis={axis}, keepdims=True)",
    "{v} / (1 + jnp.max(jnp.abs({v}), axis={axis}, keepdims=True))", "jnp.sum(jnp.where({v} > 0, {v}, 0), axis={axis})",
    "jnp.max({v} * 2 + 1, axis={axis})", "jnp.sum(jnp.flip({v}, {axis}) * {v}, axis={axis})",
    "jnp.sum({v} * {v}, axis={axis}, keepdims=True) + {v}", "jnp.mean(jnp.exp(-jnp.abs({v})), axis={axis})",
]  # fmt: skip
ROWS_OF_SQUARES = ["jax.nn.log_softmax({v}, axis={axis})", "jax.nn.standardize({v}, axis={axis})"]
#: The place of the largest is another one where two are nearly equal.
ROWS_OF_PLACES = ["jnp.argmax(jnp.sin({v}), axis={axis})", "jax.nn.one_hot(jnp.argmax({v}, axis={axis}), 5)"]


def draw_axes(rng, v):
    """The text of an axis argument, and the axes that it names."""
    if not v.ndim:
        return "None", ()
    some = tuple(i for i in range(v.ndim) if rng.random() < 0.5)
    if rng.random() < 0.35:
        some = (rng.randrange(v.ndim),)
        return str(some[0]), some
    return rng.choice([("None", tuple(range(v.ndim))), (str(some), some)])


def options(g, v, name):
    """`initial` and `where`, sometimes."""
    if name in ("sum", "max", "min") and g.rng.random() < 0.1:
        return ", initial=1"
    if name in ("sum", "max") and v.kind in "fiu" and g.rng.random() < 0.1:
        return f", where={v} > 0, initial=0"
    return ""


def reduce(g, pool):
    rng, v = g.rng, g.pick(pool)
    axis, axes = draw_axes(rng, v)
    keep = rng.choice(["", ", keepdims=True"])
    name = rng.choice(COMPLEX if v.kind == "c" else REAL)
    if name in NONEMPTY and (v.size == 0 or any(v.shape[i] == 0 for i in axes)):
        return None
    if name in ("argmax", "argmin"):
        one = rng.choice(["None", *map(str, range(v.ndim))])
        return g.expression(f"jnp.{name}({v}, axis={one}{keep})", T.EXACT)
    if (name == "ptp" and v.kind == "b") or (name in ("logsumexp", "linalg.norm", "quantile") and v.kind != "f"):
        return None
    if name == "quantile":
        if v.dtype in ("float16", "bfloat16"):
            return None
        how = f"{rng.choice([0.0, 0.25, 0.5, 0.9, 1.0])}, axis={axis}{keep}"
        method = rng.choice(["linear", "lower", "nearest", "midpoint"])
        return g.expression(f"jnp.quantile({v}, {how}, method={method!r})", T.LOOSE)
    if name == "linalg.norm":
        one = rng.choice(["None", *map(str, range(v.ndim))])
        return g.expression(f"jnp.linalg.norm({v}, axis={one}{keep})", T.SUM)
    module = "jax.nn" if name == "logsumexp" else "jnp"
    text = f"{module}.{name}({v}, axis={axis}{keep}{options(g, v, name)})"
    return g.expression(text, reduction_tolerance(name, v))


def reduction_tolerance(name, v):
    if name in EXACT or (v.kind in "iub" and name == "sum"):
        return T.EXACT
    if name in ("prod", "nanprod"):
        return T.PRODUCT
    if name == "median":
        return T.LOOSE
    return T.SQUARES if name in ("var", "std", "nanvar") else T.SUM


def lax_reduce(g, pool):
    rng, v = g.rng, g.pick(pool, lambda v: v.ndim > 0 and v.kind in "iuf")
    if v is None:
        return None
    axes = tuple(sorted(rng.sample(range(v.ndim), rng.randrange(1, v.ndim + 1))))
    if v.kind == "f":
        name, init = rng.choice([("lax.add", "0"), ("lax.max", "-np.inf"), ("lax.min", "np.inf")])
    else:
        every = "-1" if v.kind == "i" else f"np.iinfo('{v.dtype}').max"
        name, init = rng.choice(
            [
                ("lax.bitwise_and", every),
                ("lax.bitwise_or", "0"),
                ("lax.bitwise_xor", "0"),
                ("lax.add", "0"),
                ("lax.max", f"np.iinfo('{v.dtype}').min"),
            ]
        )
    text = f"lax.reduce({v}, np.array({init}, {v}.dtype), {name}, {axes})"
    return g.expression(text, T.SUM if v.kind == "f" else T.EXACT)


def cumulative(g, pool):
    rng, v = g.rng, g.pick(pool, lambda v: v.ndim > 0 and v.kind != "b")
    if v is None:
        return None
    name = rng.choice(["cumsum", "cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
    if (name == "cumlogsumexp" and v.kind != "f") or (name in ("cummax", "cummin") and v.kind == "c"):
        return None
    text = f"lax.{name}({v}, axis={rng.randrange(v.ndim)}, reverse={rng.random() < 0.4})"
    if v.kind in "iu" or name in ("cummax", "cummin"):
        return g.expression(text, T.EXACT)
    return g.expression(text, T.PRODUCT if name == "cumprod" else T.SUM)


def sort(g, pool):
    rng, v = g.rng, g.pick(pool, lambda v: v.ndim > 0)
    if v is None:
        return None
    axis = rng.randrange(v.ndim)
    order = rng.choice(["", ", descending=True"])
    texts = [f"jnp.sort({v}, axis={axis}{order})"] * 2 + [f"jnp.argsort({v}, axis={axis}{order})"] * 2
    if v.kind in "fiu":
        side = rng.choice(["left", "right"])
        texts.append(f"jnp.searchsorted(jnp.sort({v}.reshape(-1)), {v}, side={side!r})")
        if v.shape[axis] > 1 and v.kind == "f":  # JAX negates integers, the least one too
            texts.append(f"jnp.sort(jnp.partition({v}, {rng.randrange(v.shape[axis])}, axis={axis}), axis={axis})")
    if v.size and v.kind != "c":
        texts.append(f"jnp.unique({v}, size={rng.randrange(1, 6)}, fill_value=0)")
    if v.kind in "iu":
        texts.append(f"jnp.bincount(jnp.clip({v}.reshape(-1), 0, 9).astype(jnp.int32), length=10)")
    if v.kind == "f":
        texts.append(f"jnp.histogram(jnp.nan_to_num({v}.astype(jnp.float32)), bins=5, range=(-2, 2))[0]")
    return g.expression(rng.choice(texts), T.EXACT)


def rows(g, pool):
    v = g.pick(pool, lambda v: v.kind == "f" and v.ndim >= 1 and v.size > 0)
    if v is None:
        return None
    groups = [(ROWS, T.SUM), (ROWS_OF_SQUARES, T.SQUARES), (ROWS_OF_PLACES, T.UNCOMPARED)]
    texts, tolerance = g.rng.choices(groups, [len(texts) for texts, _ in groups])[0]
    return g.expression(g.rng.choice(texts).format(v=v, axis=g.rng.randrange(-v.ndim, v.ndim)), tolerance)
