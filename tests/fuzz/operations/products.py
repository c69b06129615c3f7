"""Products, layers, convolutions, windows, Fourier transforms and linear algebra."""

import math

from tests.fuzz.program import Step, Tolerance

T = Tolerance
#: The most multiplications of one step.
WORK = 2e7
ACTIVATIONS = [
    "jnp.tanh",
    "jax.nn.relu",
    "jax.nn.gelu",
    "jax.nn.silu",
    "jnp.abs",
    "jnp.sin",
    "jax.nn.softmax",
    "lambda z: z",
]
WIDTHS = [1, 3, 8, 16, 17, 33, 64, 65, 67, 70, 72, 81, 129, 130, 260, 513]


def matmul(g, pool, v):
    inner = v.shape[-1]
    rows = v.size // max(inner, 1)

    def fits(w):
        if w.dtype != v.dtype or not 1 <= w.ndim <= 2 or w.shape[0] != inner:
            return False
        return v.size * (w.size // max(inner, 1)) < WORK and rows * (w.size // max(inner, 1)) <= g.limit

    w = g.pick(pool, fits)
    if w is not None:
        return f"jnp.matmul({v}, {w})"
    if v.ndim >= 2 and v.size * v.shape[-2] < WORK and rows * v.shape[-2] <= g.limit:
        return f"jnp.matmul({v}, jnp.swapaxes({v}, -1, -2))"
    return None


def outer(g, pool, v):
    fits = lambda w: w.kind in "fiu" and w.ndim >= 1 and w.size * v.size <= g.limit and w.ndim + v.ndim < 6
    w = g.pick(pool, fits) if v.kind != "c" else None
    if w is None:
        return None
    texts = [f"jnp.outer({v}, {w})", f"jnp.tensordot({v}, {w}, 0)"]
    return g.rng.choice(texts + ([f"jnp.kron({v}, {w})"] if v.ndim == w.ndim else []))


def dot_general(g, pool, v):
    """Batch and contracting axes wherever extents agree."""
    rng = g.rng
    w = g.pick(pool, lambda w: w.dtype == v.dtype and w.ndim >= 1 and w.size * v.size < 1e7)
    if w is None:
        return None
    batch, contracted = ([], []), ([], [])
    for i in rng.sample(range(v.ndim), v.ndim):
        for j in rng.sample(range(w.ndim), w.ndim):
            if j not in batch[1] + contracted[1] and v.shape[i] == w.shape[j] and rng.random() < 0.8:
                pair = batch if rng.random() < 0.35 else contracted
                pair[0].append(i)
                pair[1].append(j)
                break
    size = math.prod(v.shape[i] for i in range(v.ndim) if i not in contracted[0])
    size *= math.prod(w.shape[j] for j in range(w.ndim) if j not in contracted[1] + batch[1])
    if size > g.limit or size * math.prod(v.shape[i] for i in contracted[0]) > WORK:
        return None
    wide = {"float16": "float32", "bfloat16": "float32", "int8": "int32", "int16": "int32"}.get(v.dtype)
    into = f", preferred_element_type=jnp.{wide}" if wide and rng.random() < 0.4 else ""
    return f"lax.dot_general({v}, {w}, ({contracted}, {batch}){into})"


def of_itself(g, pool, v):
    if v.ndim == 1:
        texts = [f"jnp.{name}({v}, {v})" for name in ("dot", "vdot", "inner")] + [f"jnp.einsum('i,i->i', {v}, {v})"]
        if 0 < v.size < 3000:
            mode = g.rng.choice(["full", "same", "valid"])
            texts.append(f"jnp.convolve({v}, {v}[:5], mode={mode!r})")
        return g.rng.choice(texts)
    if v.ndim == 2 and v.size < 3000:
        equation = g.rng.choice(["ij,kj->ik", "ij,ij->j", "ij->ji", "ij,ij->", "ij->i", "ij->"])
        return f"jnp.einsum({equation!r}, {', '.join([str(v)] * (1 + equation.count(',')))})"
    return None


def dot(g, pool):
    v = g.pick(pool, lambda v: v.ndim >= 1 and v.kind in "fciu")
    if v is None:
        return None
    way = g.rng.choices([matmul, outer, dot_general, of_itself], [3, 1, 2, 2])[0]
    text = way(g, pool, v)
    return text and g.expression(text, T.SUM)


def layer(g, pool):
    """A product and what follows it: bias, activation, row reductions, residual."""
    rng = g.rng
    v = g.pick(pool, lambda v: v.ndim == 2 and v.kind == "f" and v.size > 0)
    if v is None:
        return None
    inner, width = v.shape[1], rng.choice(WIDTHS)
    if v.size * width > WORK or v.shape[0] * width > g.limit or inner > 5000:
        return None
    a, axis = g.fresh(), rng.choice([0, 1])
    after = rng.choice([
        "", "", f"{a} - jnp.max({a}, axis={axis}, keepdims=True)", f"jnp.sum({a}, axis={axis})", f"{a} + {a}[::-1]",
        f"{a} * jnp.mean({a}, axis=-1, keepdims=True)", f"{a}.T + 1", f"{a} + {v}[:, :1]",
        f"{a}.astype(jnp.float16)", f"{a} > 0.1", f"jnp.sum({a})", f"{a} - jnp.max({a})",
    ])  # fmt: skip
    product = rng.choice([
        f"{v} @ w{a}", f"{v} @ w{a}", f"(w{a}.T @ {v}.T).T", f"lax.dot_general({v}, w{a}, (([1], [0]), ([], [])))",
    ])  # fmt: skip
    weights = f"jnp.array(np.sin(np.arange({inner * width}.0)).reshape({inner}, {width}))"
    code = (
        f"w{a} = {weights}.astype({v}.dtype) * 0.1\n"
        f"b{a} = jnp.array(np.cos(np.arange({width}.0))).astype({v}.dtype)\n"
        f"{a} = ({rng.choice(ACTIVATIONS)})({product} + b{a})"
    )
    tolerance = T.UNCOMPARED if ">" in after else T.LAYER  # rounding decides on which side of a number a result is
    return Step(code + (f"\n{a} = {after}" if after else ""), [a], tolerance)


def convolution(g, pool):
    rng = g.rng
    dtypes = ("float32", "bfloat16", "float16", "int32", "float64", "complex64", "int8")
    v = g.pick(pool, lambda v: v.ndim in (3, 4) and v.dtype in dtypes and 0 < v.size < 4000)
    if v is None:
        return None
    spatial, features = v.ndim - 2, v.shape[1]
    groups, batch_groups = rng.choice([1, 1, features]), 1
    out = groups * rng.choice([1, 2, 3])
    if groups == 1 and v.shape[0] > 1 and rng.random() < 0.2:
        batch_groups = v.shape[0]
        out = batch_groups * rng.choice([1, 2])
    window = [rng.choice([1, 2, 3]) for _ in range(spatial)]
    padding = [(rng.randrange(-1, 4), rng.randrange(-1, 4)) for _ in range(spatial)]
    padding = rng.choice(["'SAME'", "'VALID'", str(padding)])
    strides = tuple(rng.choice([1, 1, 2, 3]) for _ in range(spatial))
    dilation = tuple(1 if padding.startswith("'") else rng.choice([1, 1, 2]) for _ in range(spatial))
    kernel_dilation = tuple(rng.choice([1, 1, 2]) for _ in range(spatial))
    letters, into = "HWD"[:spatial], features // groups
    lhs, numbers, kernel = rng.choice([
        (v.name, None, (out, into, *window)),
        (v.name, (f"NC{letters}", f"OI{letters}", f"N{letters}C"), (out, into, *window)),
        (f"jnp.moveaxis({v}, 1, -1)", (f"N{letters}C", f"{letters}IO", f"N{letters}C"), (*window, into, out)),
    ])  # fmt: skip
    weights = f"(jnp.arange({math.prod(kernel)}).reshape({kernel}) % 5 - 2).astype({v}.dtype)"
    text = (
        f"lax.conv_general_dilated({lhs}, {weights}, {strides}, {padding}, {dilation}, {kernel_dilation}, "
        f"dimension_numbers={numbers}, feature_group_count={groups}, batch_group_count={batch_groups})"
    )
    return g.expression(text, T.SUM)


def window(g, pool):
    rng = g.rng
    v = g.pick(pool, lambda v: 1 <= v.ndim <= 4 and v.kind in "fiu" and 0 < v.size <= 20000)
    if v is None:
        return None
    extents = tuple(rng.choice([1, 1, 2, 3, min(5, d)]) for d in v.shape)
    strides = tuple(rng.choice([1, 1, 2, 3]) for _ in v.shape)
    padding = rng.choice(["'SAME'", "'VALID'", str([(rng.randrange(3), rng.randrange(3)) for _ in v.shape])])
    plain = padding.startswith("'")
    dilations = [tuple(1 if plain else rng.choice([1, 1, 1, 2]) for _ in v.shape) for _ in range(2)]
    low, high = ("-np.inf", "np.inf") if v.kind == "f" else (f"np.iinfo('{v.dtype}').{end}" for end in ("min", "max"))
    name, init = rng.choice([("lax.add", "0"), ("lax.max", low), ("lax.min", high), ("lax.mul", "1")])
    text = (
        f"lax.reduce_window({v}, jnp.array({init}, {v}.dtype), {name}, {extents}, {strides}, {padding}, *{dilations})"
    )
    if v.kind != "f":
        return g.expression(text, T.EXACT)
    return g.expression(text, T.PRODUCT if name == "lax.mul" else T.SUM)


def fourier(g, pool):
    rng = g.rng
    dtypes = ("float32", "complex64", "float64", "complex128", "int32")
    v = g.pick(pool, lambda v: v.ndim >= 1 and v.dtype in dtypes and v.size > 0)
    if v is None:
        return None
    axis = rng.randrange(-v.ndim, v.ndim)
    norm = rng.choice(["None", "'ortho'", "'forward'"])
    if rng.random() < 0.2 and v.ndim >= 2:
        return g.expression(f"jnp.fft.{rng.choice(['fft2', 'ifft2', 'fftn'])}({v}, norm={norm})", T.FOURIER)
    if rng.random() < 0.1:
        return g.expression(f"jnp.fft.{rng.choice(['fftshift', 'ifftshift'])}({v}, axes={axis})", T.EXACT)
    name = rng.choice(["fft", "ifft", "rfft", "irfft", "fft", "hfft", "ihfft"])
    if v.kind == "c" and name in ("rfft", "ihfft"):
        name = "fft"
    if name in ("irfft", "hfft") and v.shape[axis] < 2:
        return None
    length = rng.choice(["None", "None", str(max(1, v.shape[axis] + rng.randrange(-3, 4)))])
    return g.expression(f"jnp.fft.{name}({v}, n={length}, axis={axis}, norm={norm})", T.FOURIER)


#: Operations on a well-conditioned square matrix {d}, or on a positive definite one {p}, of extents {q} and {m}.
LINALG = [
    "jnp.linalg.cholesky({p})", "jnp.linalg.inv({d})", "jnp.linalg.det({d})", "jnp.linalg.slogdet({d})[1]",
    "jnp.linalg.solve({d}, jnp.ones(({q}, 2), {v}.dtype))", "jnp.linalg.eigvalsh({p})",
    "jnp.linalg.svd({d}, compute_uv=False)", "jnp.abs(jnp.diagonal(jnp.linalg.qr({d})[1], 0, -2, -1))",
    "lax.linalg.triangular_solve({d}, jnp.ones({b}, {v}.dtype), left_side=True, lower={l}, transpose_a={t}, "
    "unit_diagonal={u})",
    "jnp.linalg.matrix_power({d} / {s}, {k})", "jnp.linalg.pinv({d})",
    "(lambda w, U: (U * w[..., None, :].astype(U.dtype)) @ jnp.conj(jnp.swapaxes(U, -1, -2)))(*jnp.linalg.eigh({p}))",
    "(lambda s: (s[0] * s[1][..., None, :].astype(s[0].dtype)) @ s[2])(jnp.linalg.svd({d}, full_matrices=False))",
]  # fmt: skip


def linalg(g, pool):
    rng = g.rng
    dtypes = ("float32", "complex64", "float64", "complex128")
    v = g.pick(pool, lambda v: v.ndim >= 2 and v.dtype in dtypes and max(v.shape[-2:]) <= 40 and v.size < 4000)
    if v is None:
        return None
    m, n = v.shape[-2:]
    q = min(m, n)
    if rng.random() < 0.1:
        return g.expression(f"jnp.trace({v}, 0, -2, -1)", T.SUM)
    bounded = f"jnp.where(jnp.isfinite({v}), jnp.clip({v}.real, -{{0}}, {{0}}), 0).astype({v}.dtype)"
    gram = f"lambda z: z @ jnp.conj(jnp.swapaxes(z, -1, -2)) + {m + 1} * jnp.eye({m}, dtype=z.dtype)"
    text = rng.choice(LINALG).format(
        p=f"({gram})({bounded.format(3)})",
        d=f"({bounded.format(1)}[..., :{q}, :{q}] + {q + 1} * jnp.eye({q}, dtype={v}.dtype))",
        v=v, q=q, s=2 * q + 2, k=rng.randrange(-2, 5), b=(*v.shape[:-2], q, 3),
        l=rng.random() < 0.5, t=rng.random() < 0.5, u=rng.random() < 0.3,
    )  # fmt: skip
    return g.expression(text, T.LINALG)
