"""Elementwise operations, choices, casts and the creation of arrays."""

from tests.fuzz.program import Tolerance
from tests.fuzz.values import broadcast_size, kind, words

T = Tolerance

UNARY = {
    "f": """jnp.sin jnp.cos jnp.tan jnp.tanh jnp.sinh jnp.cosh jnp.arcsin jnp.arccos jnp.arctan jnp.arcsinh jnp.arccosh
        jnp.arctanh jnp.exp jnp.exp2 jnp.expm1 jnp.log jnp.log1p jnp.log2 jnp.log10 jnp.sqrt jnp.cbrt lax.rsqrt jnp.abs
        jnp.negative jnp.sign jnp.floor jnp.ceil jnp.round jnp.trunc jnp.rint jnp.square jnp.reciprocal jax.nn.relu
        jax.nn.gelu jax.nn.silu jax.nn.softplus jax.nn.elu jax.nn.selu jax.nn.celu jax.nn.sigmoid jax.nn.log_sigmoid
        jax.nn.hard_tanh jax.nn.leaky_relu jax.nn.mish jax.nn.relu6 jax.nn.soft_sign jax.nn.hard_sigmoid
        jax.nn.hard_silu jax.nn.squareplus jnp.isnan jnp.isinf jnp.isfinite jnp.signbit lax.erf lax.erfc lax.erf_inv
        lax.lgamma lax.digamma lax.bessel_i0e lax.bessel_i1e jnp.i0 jnp.sinc jnp.nan_to_num jnp.deg2rad lax.is_finite
        jnp.logical_not jnp.real jnp.imag jnp.conj jnp.positive jnp.isposinf jnp.isneginf jnp.fabs lax.logistic""",
    "i": """jnp.abs jnp.negative jnp.sign jnp.invert lax.population_count lax.clz jnp.bitwise_count jnp.square jnp.sin
        jnp.sqrt jnp.exp jnp.logical_not jnp.floor jnp.isnan jnp.round jax.nn.relu jnp.positive jnp.log1p jnp.tanh
        jnp.reciprocal jnp.conj jnp.real jnp.imag""",
    "c": """jnp.sin jnp.cos jnp.tan jnp.tanh jnp.sinh jnp.cosh jnp.exp jnp.log jnp.sqrt jnp.abs jnp.negative jnp.sign
        jnp.square jnp.reciprocal jnp.real jnp.imag jnp.conj jnp.angle jnp.isnan jnp.isfinite jnp.log1p jnp.expm1
        jnp.arctan jnp.arcsinh jnp.isinf lax.rsqrt jnp.arcsin jnp.arccos jnp.arctanh jnp.arccosh jnp.logical_not
        jnp.exp2 jnp.isreal jnp.iscomplex""",
    "b": "jnp.logical_not jnp.invert jnp.abs jnp.sin jnp.sqrt",
}
BINARY = {
    "f": """jnp.add jnp.add jnp.subtract jnp.subtract jnp.multiply jnp.multiply jnp.divide jnp.floor_divide jnp.mod
        jnp.fmod jnp.power jnp.arctan2 jnp.hypot jnp.maximum jnp.maximum jnp.minimum jnp.fmax jnp.fmin jnp.logaddexp
        jnp.logaddexp2 jnp.copysign jnp.nextafter jnp.heaviside jnp.less jnp.greater_equal jnp.equal jnp.not_equal
        jnp.logical_and jnp.logical_or jnp.logical_xor jnp.float_power jnp.remainder""",
    "i": """jnp.add jnp.subtract jnp.multiply jnp.floor_divide jnp.mod jnp.maximum jnp.minimum jnp.bitwise_and
        jnp.bitwise_or jnp.bitwise_xor jnp.left_shift jnp.right_shift jnp.less jnp.greater_equal jnp.equal jnp.gcd
        jnp.lcm jnp.divide jnp.fmod jnp.logical_and jnp.true_divide jnp.less_equal jnp.not_equal""",
    "b": """jnp.logical_and jnp.logical_or jnp.logical_xor jnp.bitwise_and jnp.add jnp.multiply jnp.equal jnp.maximum
        jnp.less jnp.bitwise_xor""",
    "c": """jnp.add jnp.subtract jnp.multiply jnp.divide jnp.power jnp.equal jnp.not_equal jnp.logical_and jnp.maximum
        jnp.minimum jnp.less""",
}
LAX_BINARY = {
    "f": """lax.add lax.sub lax.mul lax.div lax.rem lax.max lax.min lax.pow lax.atan2 lax.nextafter lax.eq lax.ne lax.lt
        lax.le lax.gt lax.ge""",
    "i": """lax.add lax.sub lax.mul lax.div lax.rem lax.max lax.min lax.bitwise_and lax.bitwise_or lax.bitwise_xor
        lax.shift_left lax.shift_right_logical lax.shift_right_arithmetic lax.eq lax.lt lax.ge lax.mulhi""",
}
for table in (UNARY, BINARY, LAX_BINARY):
    for letter, names in table.items():
        table[letter] = words(names)
    table["u"] = table["i"]

EXACT_UNARY = set(
    words("""jnp.abs jnp.negative jnp.floor jnp.ceil jnp.round jnp.trunc jnp.rint jax.nn.relu jnp.isnan jnp.isinf
    jnp.isfinite jnp.signbit lax.is_finite jnp.logical_not jnp.real jnp.imag jnp.conj jnp.positive
    jnp.nan_to_num jax.nn.relu6 jnp.square""")
)
EXACT_BINARY = set(
    words("""jnp.add jnp.subtract jnp.multiply jnp.maximum jnp.minimum jnp.fmax jnp.fmin jnp.copysign
    jnp.nextafter jnp.heaviside jnp.less jnp.greater_equal jnp.equal jnp.not_equal jnp.logical_and
    jnp.logical_or jnp.logical_xor jnp.floor_divide lax.add lax.sub lax.mul lax.rem lax.max lax.min
    lax.nextafter lax.eq lax.ne lax.lt lax.le lax.gt lax.ge jnp.fmod""")
)
CANCELLING = {"jax.nn.gelu", "lax.lgamma", "lax.digamma", "jax.nn.squareplus"}
#: XLA multiplies by reciprocals.
ROUNDED = {"jnp.divide", "jnp.true_divide", "lax.div"}
#: JAX does not end for the least integer.
ENDLESS_IN_JAX = {"jnp.gcd", "jnp.lcm"}

#: Functions of two numbers that are slow or ill-conditioned: for small arrays, compared loosely.
SPECIAL = [
    "lax.igamma(jnp.abs({a}) + 0.5, jnp.abs({b}))", "lax.igammac(jnp.abs({a}) + 0.5, jnp.abs({b}))",
    "lax.zeta(jnp.abs({a}) + 1.5, jnp.abs({b}) + 0.5)", "lax.polygamma(jnp.ones_like({a}), jnp.abs({b}) + 0.3)",
    "jnp.spacing({a})",
]  # fmt: skip
SPECIAL_EXACT = ["jnp.ldexp({a}, 3)", "jnp.frexp({a})[0]", "jnp.modf({a})[0]", "lax.complex({a}, {b})"]


def numbers(v):
    """An operand whose bits a step reads: those of a NaN, its sign too, carry no meaning, so 1 stands for NaNs."""
    return f"jnp.where({v} == {v}, {v}, 1)" if v.kind == "f" else v


def unary(g, pool):
    v = g.pick(pool)
    name = g.rng.choice(UNARY[v.kind])
    moves = name in ("jnp.negative", "jnp.real", "jnp.imag", "jnp.conj")
    whole = v.kind in "iub" and name in ("jnp.sign", "jnp.invert")
    exact = moves or whole or (name in EXACT_UNARY and v.kind != "c")
    inexact = T.CANCELLING if name in CANCELLING or v.kind == "c" else T.ELEMENTWISE
    operand = numbers(v) if name == "jnp.signbit" else v
    return g.expression(f"{name}({operand})", T.EXACT if exact else inexact)


def binary_tolerance(name, kinds):
    if name in ENDLESS_IN_JAX:
        return T.UNCOMPARED
    if name in ROUNDED and "c" not in kinds:
        return T.ROUNDED
    return T.EXACT if name in EXACT_BINARY and "c" not in kinds else T.ELEMENTWISE


def binary_with_number(g, v):
    name = g.rng.choice(BINARY[v.kind])
    if name in ENDLESS_IN_JAX:
        return g.expression(f"{name}({v}, {v})", T.UNCOMPARED)
    shift = v.kind in "iu" and name in ("jnp.left_shift", "jnp.right_shift")
    number = str(g.rng.randrange(12)) if shift else g.literal(v)
    args = f"{v}, {number}" if g.rng.random() < 0.7 else f"{number}, {numbers(v) if name == 'jnp.copysign' else v}"
    return g.expression(f"{name}({args})", binary_tolerance(name, v.kind))


def binary(g, pool):
    rng, v = g.rng, g.pick(pool)
    if rng.random() < 0.25:
        return binary_with_number(g, v)

    def fits(w):
        size = broadcast_size(v.shape, w.shape)
        return size is not None and size <= g.limit

    mixed = rng.random() < 0.15
    w = g.pick(pool, lambda w: fits(w) and (mixed or w.kind == v.kind)) or v
    if v.dtype == w.dtype and v.shape == w.shape and v.kind in LAX_BINARY and rng.random() < 0.3:
        name = rng.choice(LAX_BINARY[v.kind])
        return g.expression(f"{name}({v}, {w})", binary_tolerance(name, v.kind))
    kinds = v.kind + w.kind
    common = next((k for k in "cf" if k in kinds), "b" if kinds == "bb" else "i")
    name = rng.choice(BINARY[common])
    if name in ENDLESS_IN_JAX and "b" in kinds:
        return None
    if name == "jnp.power" and w.shape == () and w.kind in "iub":
        return None  # a whole exponent that eager calls know: those multiply, as JAX's do, and jit does not know it
    sign = numbers(w) if name == "jnp.copysign" else w
    return g.expression(f"{name}({v}, {sign})", binary_tolerance(name, common))


def special(g, pool):
    v = g.pick(pool, lambda v: v.dtype in ("float32", "float64"))
    if v is None:
        return None
    w = g.alike(pool, v)
    if g.rng.random() < 0.5:
        return g.expression(g.rng.choice(SPECIAL_EXACT).format(a=v, b=w), T.EXACT)
    return g.expression(g.rng.choice(SPECIAL).format(a=v, b=w), T.LOOSE) if v.size <= 5000 else None


def choice(g, pool):
    """where, select, clamp and their like."""
    rng, v = g.rng, g.pick(pool)
    w = g.alike(pool, v)
    mask = g.pick(pool, lambda p: p.kind == "b" and p.shape in (v.shape, ()))
    mask = mask.name if mask else f"({v} {'!=' if v.kind == 'c' else '>'} {w})"
    texts = [
        f"jnp.where({mask}, {v}, {w})", f"jnp.where({mask}, {v}, {g.literal(v)})",
        f"lax.select(jnp.broadcast_to({mask}, {v.shape}), {v}, {w})",
        f"jnp.select([{mask}, {v} == {w}], [{v}, {w}], 0)",
    ]  # fmt: skip
    if v.kind in "fiu":
        texts.append(f"jnp.clip({v}, {rng.choice(['-1', 'None', '0'])}, {rng.choice(['2', '1', '50'])})")
        texts.append(f"lax.clamp({w}, {v}, {g.alike(pool, v)})")
    which = g.pick(pool, lambda p: p.dtype == "int32" and p.shape in (v.shape, ()))
    if which:
        texts.append(f"lax.select_n({which}, {v}, {w}, {g.alike(pool, v)})")
    return g.expression(rng.choice(texts), T.EXACT)


def cast(g, pool):
    """Conversions, reinterpreted bits and reduced precision."""
    rng, v, dtype = g.rng, g.pick(pool), g.dtype()
    if rng.random() < 0.25 and v.kind not in "bc" and kind(dtype) not in "bc":
        return g.expression(f"lax.bitcast_convert_type({numbers(v)}, jnp.{dtype})", T.EXACT)
    if v.kind == "c" and kind(dtype) != "c":
        return g.expression(f"jnp.real({v}).astype(jnp.{dtype})", T.EXACT)
    if v.kind == "f" and rng.random() < 0.1:
        return g.expression(f"lax.reduce_precision({v}, {rng.randrange(2, 9)}, {rng.randrange(1, 23)})", T.EXACT)
    return g.expression(f"{v}.astype(jnp.{dtype})", T.EXACT)


def create(g, pool):
    """Arrays from nothing: fills most of all, which programs share and planners keep apart."""
    rng, v, dtype = g.rng, g.pick(pool), g.dtype()
    shape, which = v.shape, rng.choice([0, 0, 0, 1, 2, 3, 4, 5])
    if which == 0:
        if rng.random() < 0.6:
            dtype = v.dtype
        if rng.random() < 0.4 and shape:
            shape = shape[rng.randrange(1, len(shape) + 1) :]
        return g.expression(f"jnp.full({shape}, {rng.choice([0, 0, 1, 2])}, jnp.{dtype})", T.EXACT)
    if which == 1:
        if not shape or kind(dtype) == "b":
            return g.expression(f"jnp.ones((), jnp.{dtype})", T.EXACT)
        return g.expression(f"lax.broadcasted_iota(jnp.{dtype}, {shape}, {rng.randrange(len(shape))})", T.EXACT)
    if which == 2:
        number = dtype if kind(dtype) in "fi" else "int32"
        return g.expression(f"jnp.arange({rng.randrange(40)}, dtype=jnp.{number})", T.EXACT)
    if which == 3:
        return g.expression(f"jnp.linspace(-1, 1, {rng.randrange(1, 40)})", T.LOOSE)
    if which == 4:
        extents = f"{rng.randrange(8)}, {rng.randrange(1, 8)}, {rng.randrange(-2, 3)}"
        return g.expression(f"jnp.eye({extents}, dtype=jnp.{dtype})", T.EXACT)
    sampler, key = rng.choice(["uniform", "normal"]), rng.randrange(9)
    return g.expression(f"jax.random.{sampler}(jax.random.key({key}), {shape}, jnp.float32)", T.ELEMENTWISE)
