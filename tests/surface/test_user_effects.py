"""Effects of primitives that users define: programs show them, loops, branches and lowering refuse some."""

import importlib

import jax
import numpy as np
import pytest

import ferrax


class Defined:
    """A primitive with an effect that is its parameter, one whose effect is on an operand, and classes of effects."""

    def __init__(self, of):
        self.jax, self.lax = of, of.lax
        core, effects = (importlib.import_module(f"{of.__name__}._src.{name}") for name in ("core", "effects"))
        mlir = importlib.import_module(f"{of.__name__}.interpreters.mlir")
        ad = importlib.import_module(f"{of.__name__}.interpreters.ad")
        effect_p, input_p = core.Primitive("effect"), core.Primitive("input_effect")
        effect_p.multiple_results = input_p.multiple_results = True

        class Named(effects.Effect):
            def __init__(self, name):
                self.name = name

            def __repr__(self):
                return self.name

        class Looped(Named):
            pass

        class OnInput(effects.JaxprInputEffect):
            pass

        effects.lowerable_effects.add_type(Looped)
        effects.control_flow_allowed_effects.add_type(Looped)
        effect_p.def_effectful_abstract_eval(lambda *avals, effect: (avals, {effect}))
        input_p.def_effectful_abstract_eval(lambda *avals, index: ([], {OnInput(index)}))
        ad.primitive_jvps[effect_p] = lambda primals, tangents, effect: (
            effect_p.bind(*primals, effect=effect),
            tangents,
        )

        def handed_on(ctx, *operands, effect):
            ctx.set_tokens_out(ctx.tokens_in)
            return list(operands)

        mlir.register_lowering(effect_p, handed_on)
        self.foo, self.bar, self.loop, self.on_input = Named("foo"), Named("bar"), Looped("loop"), OnInput
        self.do = lambda *operands, effect: effect_p.bind(*operands, effect=effect)
        self.touch = lambda *operands, index: input_p.bind(*operands, index=index)


def branch(d, effect):
    return lambda x: d.do(x, effect=effect)[0]


PROGRAMS = {
    "equations": lambda d: lambda x: (d.do(effect=d.foo), d.do(effect=d.bar), x + 1)[2],
    "jit": lambda d: d.jax.jit(branch(d, d.foo)),
    "nested": lambda d: lambda x: d.jax.jit(d.jax.jit(branch(d, d.foo)))(branch(d, d.bar)(x)),
    "checkpoint": lambda d: d.jax.checkpoint(branch(d, d.foo)),
    "cond": lambda d: lambda x: d.lax.cond(x > 0, branch(d, d.loop), lambda x: x, x),
    "while": lambda d: lambda x: d.lax.while_loop(lambda x: x < 3, lambda x: branch(d, d.loop)(x) + 1, x),
    "scan": lambda d: lambda x: d.lax.scan(lambda c, _: (branch(d, d.loop)(c), None), x, None, length=2)[0],
    "linearized": lambda d: lambda x: d.jax.linearize(branch(d, d.loop), x)[0],
    "refused_cond": lambda d: lambda x: d.lax.cond(x > 0, branch(d, d.foo), lambda x: x, x),
    "refused_while": lambda d: lambda x: d.lax.while_loop(lambda x: False, branch(d, d.foo), x),
    "refused_while_cond": lambda d: lambda x: d.lax.while_loop(lambda x: branch(d, d.foo)(x) < 0, lambda x: x, x),
    "refused_scan": lambda d: lambda x: d.lax.scan(lambda c, _: (branch(d, d.foo)(c), None), x, None, length=2)[0],
    "nothing": lambda d: lambda x: x * 2,
}
OURS, THEIRS = Defined(ferrax), Defined(jax)


def told(d, name):
    try:
        program = d.jax.make_jaxpr(PROGRAMS[name](d))(2.0)
    except NotImplementedError as error:
        return str(error)
    return [sorted(map(str, eqn.effects)) for eqn in program.eqns if eqn.effects], sorted(map(str, program.effects))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_show_effects(name):
    want = told(THEIRS, name)
    assert told(OURS, name) == want
    assert isinstance(want, str) == name.startswith("refused")


@pytest.mark.parametrize("index", [0, 1])
def test_effects_on_operands(index):
    def places(d, f, *args):
        program = d.jax.make_jaxpr(f)(*args)
        return [[i for i, v in enumerate(program.jaxpr.invars) if d.on_input(v) == e] for e in program.effects]

    for make in (
        lambda d: lambda x, y: d.touch(y, x, index=index) and None,
        lambda d: d.jax.jit(lambda x, y: d.jax.jit(lambda a, b: d.touch(b, a, index=index) and None)(x, y)),
    ):
        assert places(OURS, make(OURS), 0.0, 1.0) == places(THEIRS, make(THEIRS), 0.0, 1.0)
    while_loop = OURS.lax.while_loop

    def looped(x, y):
        return while_loop(lambda c: c[0] < 1, lambda c: (OURS.touch(y, c[0], index=0), (c[0] + 1,))[1], (x,))

    ferrax._src.effects.control_flow_allowed_effects.add_type(OURS.on_input)
    assert places(OURS, looped, 0.0, 1.0) == [[1]]


def test_lowering():
    with pytest.raises(ValueError, match=r"Cannot lower jaxpr with effects: \[foo\]"):
        ferrax.jit(branch(OURS, OURS.foo)).lower(1.0)
    for d in (OURS, THEIRS):
        for f in (branch(d, d.foo), PROGRAMS["nested"](d)):
            with pytest.raises(ValueError, match="Cannot lower jaxpr with effects"):
                d.jax.jit(f)(1.0)
    assert "func" in ferrax.jit(branch(OURS, OURS.loop)).lower(1.0).as_text()


def test_lowerings_that_hand_on_operands_run():
    for d in (OURS, THEIRS):
        np.testing.assert_array_equal(d.jax.jit(branch(d, d.loop))(np.arange(3.0)), np.arange(3.0))
        assert d.jax.jit(PROGRAMS["scan"](d))(2.0) == 2.0


def test_lowerings_that_build_programs_do_not_run():
    from ferrax.interpreters import mlir

    for rule in (lambda ctx, x: [x.type], lambda ctx, x: x + x, lambda ctx, x: [x, x]):
        built_p = ferrax.extend.core.Primitive("built")
        built_p.def_abstract_eval(lambda x: x.update(shape=(4,)) if x.shape else x)
        mlir.register_lowering(built_p, rule)
        with pytest.raises(NotImplementedError, match="'built' is written for MLIR"):
            ferrax.jit(built_p.bind)(1.0)
