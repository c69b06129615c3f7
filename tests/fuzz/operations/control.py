"""Loops, branches and nested transformations, whose bodies are random programs too."""

from tests.fuzz.program import Step, Tolerance, indent
from tests.fuzz.values import broadcasts_to

T = Tolerance
COUNTS = [0, 1, 2, 3, 5, 8]


def joined(names):
    return "".join(f"{name}, " for name in names)


def results_like(g, parameters, pool):
    """An expression of each parameter's shape and dtype, from what a body has made."""
    rng, texts = g.rng, []
    for p in parameters:
        found = [v for v in pool if v.shape == p.shape and not (v.kind == "c" and p.kind != "c")]
        chosen = rng.choice(found[-3:]) if found and rng.random() < 0.85 else p
        text = chosen.name if chosen.dtype == p.dtype else f"{chosen}.astype({p}.dtype)"
        terms = [v for v in pool if broadcasts_to(v.shape, p.shape) and v.kind in "fiu"]
        if chosen is p and p.kind == "f" and terms and rng.random() < 0.5:
            text = f"({p} * 0.5 + {rng.choice(terms)}).astype({p}.dtype)"
        texts.append(text)
    return texts


class Carries:
    """What a loop begins with: operands, the parameters of its body, and names of its results."""

    def __init__(self, g, small):
        self.operands = [g.rng.choice(small) for _ in range(g.rng.choice([1, 2, 2, 3, 4]))]
        self.parameters = [g.bind("p", f"jnp.asarray({v})") for v in self.operands]
        self.results = [g.fresh() for _ in self.operands]
        self.extra = g.rng.sample(small, min(len(small), 2))
        self.names = joined(self.parameters)
        self.initial = joined(self.operands)

    def body(self, g, more=()):
        lines, pool = g.body([*self.parameters, *more], g.rng.randrange(1, 6), self.extra)
        return lines, results_like(g, self.parameters, pool), pool


def trip_count(g):
    return g.rng.choice(COUNTS + ([40] if g.depth == 1 else []))


def fori(g, pool, small):
    c, f = Carries(g, small), g.fresh("f")
    i = g.bind("p", "jnp.int32(1)")
    lines, results, _ = c.body(g, [i])
    low, high = g.rng.choice([0, 0, 1, -2]), trip_count(g)
    if g.rng.random() < 0.4:
        low, high = f"jnp.int32({low})", f"jnp.int32({high})"
    code = (
        f"def {f}({i}, c):\n    {c.names} = c\n{indent(lines)}    return ({joined(results)})\n"
        f"{joined(c.results)} = lax.fori_loop({low}, {high}, {f}, ({c.initial}))"
    )
    return Step(code, c.results, T.LOOP)


def while_loop(g, pool, small):
    c, f = Carries(g, small), g.fresh("f")
    i = g.bind("p", "jnp.int32(0)")
    lines, results, _ = c.body(g, [i])
    first, condition = c.parameters[0], f"{i} < {trip_count(g)}"
    if first.kind != "c" and g.rng.random() < 0.3:
        condition = f"({condition}) & (jnp.sum(jnp.abs({first}.astype(jnp.float32))) < 1e3)"
    unpack = f"    {c.names} {i} = c\n"
    code = (
        f"def c{f}(c):\n{unpack}    return {condition}\n"
        f"def {f}(c):\n{unpack}{indent(lines)}    return ({joined(results)} {i} + {g.rng.choice([1, 1, 2])})\n"
        f"{joined(c.results)} _ = lax.while_loop(c{f}, {f}, ({c.initial} jnp.int32(0)))"
    )
    return Step(code, c.results, T.LOOP)


def scan(g, pool, small):
    rng, c, f = g.rng, Carries(g, small), g.fresh("f")
    rows = [v for v in small if v.ndim >= 1 and 0 < v.shape[0] <= 100]
    length, xs = rng.choice([0, 1, 2, 3, 5, 9]), []
    if rows and rng.random() < 0.8:
        first = rng.choice(rows)
        length = first.shape[0]
        xs = [first, *[v for v in rows if v.shape[0] == length][: rng.randrange(3)]]
    row_parameters = [g.bind("p", f"{x}[0]") for x in xs]
    lines, results, made = c.body(g, row_parameters)
    ys = [rng.choice(made) for _ in range(rng.randrange(3))]
    ys = [y for y in ys if y.size * max(length, 1) <= g.limit]
    stacked = [g.fresh() for _ in ys]
    unpack = f"    {joined(row_parameters)} = x\n" if xs else ""
    options = f"length={length}, reverse={rng.random() < 0.3}{rng.choice(['', '', ', unroll=2'])}"
    code = (
        f"def {f}(c, x):\n    {c.names} = c\n{unpack}{indent(lines)}    return ({joined(results)}), ({joined(ys)})\n"
        f"({joined(c.results)}), {f'({joined(stacked)})' if ys else '_'} = "
        f"lax.scan({f}, ({c.initial}), {f'({joined(xs)})' if xs else None}, {options})"
    )
    return Step(code, c.results + stacked, T.LOOP)


def branches(g, pool, small):
    """cond and switch, whose index can be out of range."""
    rng, c, f = g.rng, Carries(g, small), g.fresh("f")
    switch, code, names = rng.random() < 0.5, "", []
    for b in range(rng.randrange(1, 5) if switch else 2):
        lines, made = g.body(c.parameters, rng.randrange(0, 5), c.extra)
        names.append(f"{f}_{b}")
        code += f"def {f}_{b}({c.names}):\n{indent(lines)}    return ({joined(results_like(g, c.parameters, made))})\n"
    index = g.pick(pool, lambda v: v.shape == () and v.kind == ("i" if switch else "b"))
    w = rng.choice(small)
    if index is None and switch:
        index = f"(jnp.sum({w}.real > 0) % 5 - 1).astype(jnp.int32)"
    elif index is None:
        index = f"jnp.sum({w}.real > 0) > {w.size // 2}"
    call = f"lax.switch({index}, [{joined(names)}], " if switch else f"lax.cond({index}, {joined(names)}"
    return Step(f"{code}{joined(c.results)} = {call}{c.initial})", c.results, T.LOOP)


def mapped(g, pool, small):
    rows = [v for v in small if v.ndim >= 1 and v.shape[0] > 0]
    if not rows:
        return None
    v, f = g.rng.choice(rows), g.fresh("f")
    p = g.bind("p", f"{v}[0]")
    lines, made = g.body([p], g.rng.randrange(1, 6), g.rng.sample(small, min(len(small), 2)))
    out = g.fresh()
    call = f"lax.map({f}, {v}{g.rng.choice(['', '', ', batch_size=2'])})"
    return Step(f"def {f}({p}):\n{indent(lines)}    return {made[-1]}\n{out} = {call}", [out], T.LOOP)


def associative(g, pool, small):
    rows = [v for v in small if v.ndim >= 1 and v.kind in "fi"]
    if not rows:
        return None
    v = g.rng.choice(rows)
    last = "lambda x, y: x * 0 + y" if v.kind == "f" else "jnp.bitwise_xor"
    name = g.rng.choice(["jnp.add", "jnp.maximum", last])
    text = f"lax.associative_scan({name}, {v}, axis={g.rng.randrange(v.ndim)}, reverse={g.rng.random() < 0.3})"
    return g.expression(text, T.SUM)


LOOPS = {fori: 2, scan: 2, while_loop: 1, branches: 2, mapped: 1, associative: 1}


def nested(g, draw):
    """What `draw` gives one body deeper, None where two are around already."""
    if g.depth >= 2:
        return None
    g.depth += 1
    try:
        return draw()
    finally:
        g.depth -= 1


def loop(g, pool):
    small = [v for v in pool if v.size <= (2000 if g.depth == 0 else 300)]
    form = g.rng.choices(list(LOOPS), list(LOOPS.values()))[0]
    return nested(g, lambda: form(g, pool, small)) if small else None


def transformed(g, pool):
    """A small function under jit, checkpoint, vmap or jvp."""
    return nested(g, lambda: draw_transformed(g, [v for v in pool if v.size <= 5000]))


def draw_transformed(g, pool):
    rng, form = g.rng, g.rng.choice(["jax.jit", "jax.jit", "jax.checkpoint", "jax.vmap", "jax.jvp"])
    if form == "jax.vmap":
        pool = [v for v in pool if v.ndim >= 1 and 0 < v.shape[0] <= 20]
    if form == "jax.jvp":
        pool = [v for v in pool if v.kind == "f"]
    if not pool:
        return None
    args = [rng.choice(pool) for _ in range(rng.randrange(1, 4))]
    if form == "jax.vmap":
        args = [v for v in args if v.shape[0] == args[0].shape[0]]
    parameters = [g.bind("p", f"{v}[0]" if form == "jax.vmap" else v.name) for v in args]
    lines, made = g.body(parameters, rng.randrange(1, 5))
    f, out = g.fresh("f"), g.fresh()
    code = f"def {f}({joined(parameters)}):\n{indent(lines)}    return {made[-1]}\n"
    if form != "jax.jvp":
        return Step(f"{code}{out} = {form}({f})({joined(args)})", [out], T.LOOP)
    if made[-1].kind not in "fc":
        return None
    tangents = joined(f"jnp.ones_like({v})" for v in args)
    return Step(f"{code}_, {out} = jax.jvp({f}, ({joined(args)}), ({tangents}))", [out], T.LOOP)
