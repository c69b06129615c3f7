"""Primitives that are defined from Python: every rule, under every transformation, and what is said of missing ones."""

import functools

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax._src.lib.mlir.dialects import hlo
from ferrax.extend.core import Primitive
from ferrax.interpreters import ad, batching, mlir, xla

ShapedArray = jax.core.ShapedArray


def make_scaled():
    """k sin(x) y, with every rule."""
    p = Primitive("scaled")

    def compute(x, y, *, k):
        return k * jnp.sin(x) * y

    p.def_impl(compute)
    p.def_abstract_eval(lambda x, y, *, k: ShapedArray(x.shape, x.dtype))
    mlir.register_lowering(p, mlir.lower_fun(compute, multiple_results=False))
    ad.defjvp(
        p,
        lambda t, x, y, *, k: k * jnp.cos(x) * y * t,
        lambda t, x, y, *, k: p.bind(x, t, k=k),
    )
    ad.primitive_transposes[p] = lambda ct, x, y, *, k: (None, p.bind(x, ct, k=k))
    batching.defbroadcasting(p)
    return p


SCALED = make_scaled()


def scaled(x, y):
    return SCALED.bind(x, y, k=2.0)


def plain(x, y):
    return 2.0 * jnp.sin(x) * y


X, Y = jnp.linspace(0.1, 1.0, 4), jnp.linspace(-1.0, 2.0, 4)

TRANSFORMED = {
    "eager": lambda f: f(X, Y),
    "jit": lambda f: jax.jit(f)(X, Y),
    "jvp": lambda f: jax.jvp(f, (X, Y), (Y, X)),
    "grad": lambda f: jax.grad(lambda x, y: f(x, y).sum(), (0, 1))(X, Y),
    "jit of grad": lambda f: jax.jit(jax.grad(lambda x, y: f(x, y).sum(), (0, 1)))(X, Y),
    "grad of jit": lambda f: jax.grad(lambda x, y: jax.jit(f)(x, y).sum(), (0, 1))(X, Y),
    "vmap": lambda f: jax.vmap(f)(X, Y),
    "vmap of one": lambda f: jax.vmap(f, in_axes=(0, None))(X, 3.0),
    "vmap of grad": lambda f: jax.vmap(jax.grad(f, (0, 1)))(X, Y),
    "grad of vmap": lambda f: jax.grad(lambda x: jax.vmap(f)(x, Y).sum())(X),
    "hessian": lambda f: jax.hessian(lambda x: f(x, Y).sum())(X),
    "scan": lambda f: lax.scan(lambda c, x: (f(c, x), c), 0.5, X),
    "grad of scan": lambda f: jax.grad(lambda c: lax.scan(lambda c, x: (f(c, x), c), c, X)[0])(0.5),
    "cond": lambda f: lax.cond(X[0] > 0, f, lambda x, y: x, X, Y),
    "while": lambda f: lax.while_loop(lambda c: c < 0.2, lambda c: c + f(c, 1.0), 0.05),
    "checkpoint": lambda f: jax.grad(lambda x: jax.checkpoint(f)(x, Y).sum())(X),
    "linearize": lambda f: jax.linearize(lambda x: f(x, Y), X)[1](Y),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformed_as_the_function_it_computes(name):
    run = TRANSFORMED[name]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-6), run(scaled), run(plain))


def test_several_results():
    p = Primitive("both")
    p.multiple_results = True
    p.def_impl(lambda x: [x + 1, 2 * x])
    p.def_abstract_eval(lambda x: [x, x])
    mlir.register_lowering(p, mlir.lower_fun(lambda x: [x + 1, 2 * x], multiple_results=True))
    ad.primitive_jvps[p] = lambda primals, tangents: (
        p.bind(*primals),
        [ad.instantiate_zeros(tangents[0]), ad.Zero.from_primal_value(primals[0])],
    )
    batching.primitive_batchers[p] = lambda args, dims: (p.bind(*args), [dims[0], dims[0]])
    assert isinstance(p.bind(1.0), list)
    first, second = jax.jit(p.bind)(X)
    np.testing.assert_array_equal(first, X + 1)
    np.testing.assert_array_equal(second, 2 * X)
    np.testing.assert_array_equal(jax.vmap(p.bind)(X)[1], 2 * X)
    assert jax.grad(lambda x: sum(p.bind(x)))(1.0) == 1.0


def test_linear_primitives():
    p = Primitive("linear")
    p.def_impl(lambda x: 3.0 * x)
    p.def_abstract_eval(lambda x: x)
    ad.deflinear2(p, lambda ct, x: [p.bind(ct)])
    assert jax.grad(p.bind)(1.0) == 3.0
    assert jax.jvp(p.bind, (1.0,), (2.0,))[1] == 6.0
    np.testing.assert_array_equal(jax.linear_transpose(p.bind, X)(Y)[0], 3.0 * Y)


def test_rules_that_give_the_class_of_zeros():
    p = Primitive("dropped")
    p.def_impl(lambda x: x)
    p.def_abstract_eval(lambda x: x)
    seen = []
    ad.primitive_transposes[p] = lambda ct, x: seen.append(type(ct)) or ad.Zero
    ad.primitive_jvps[p] = lambda primals, tangents: (p.bind(*primals), p.bind(tangents[0]))
    np.testing.assert_array_equal(jax.grad(lambda x: (p.bind(x) + 2 * x).sum())(X), jnp.full(4, 2.0))
    assert seen


def test_bilinear_primitives():
    p = Primitive("product")
    p.def_impl(lambda x, y: x * y)
    p.def_abstract_eval(lambda x, y: x)
    seen = []

    def lhs(ct, x, y):
        seen.append(ad.is_undefined_primal(x))
        return ct * y

    ad.defbilinear(p, lhs, lambda ct, x, y: ct * x)
    assert jax.grad(p.bind, (0, 1))(2.0, 5.0) == (5.0, 2.0)
    assert seen == [True]


def test_rules_see_zeros():
    p = Primitive("sees")
    p.def_impl(lambda x, y: x + y)
    p.def_abstract_eval(lambda x, y: x)
    kinds = []

    def rule(primals, tangents):
        kinds.append([type(t) is ad.Zero for t in tangents])
        return p.bind(*primals), tangents[0]

    ad.primitive_jvps[p] = rule
    jax.jvp(lambda x: p.bind(x, 1.0), (1.0,), (1.0,))
    assert kinds == [[False, True]]


def test_axis_batchers_get_the_axis():
    p = Primitive("axis")
    p.def_impl(lambda x: x)
    got = []

    def rule(size, name, kind, args, dims):
        got.append((size, name, dims))
        return args[0], dims[0]

    batching.axis_primitive_batchers[p] = rule
    jax.vmap(p.bind, in_axes=1, axis_name="rows")(jnp.ones((2, 3)))
    assert got == [(3, "rows", (1,))]


def test_equations_show_the_primitive_and_its_parameters():
    marker = object()
    p = Primitive("marked")
    p.def_abstract_eval(lambda x, *, what, k: x)
    (eqn,) = jax.make_jaxpr(lambda x: p.bind(x, what=marker, k=(1, 2)))(1.0).eqns
    assert eqn.primitive is p
    assert eqn.params == {"what": marker, "k": (1, 2)}


def test_equal_parameters_give_equal_programs():
    a = jax.make_jaxpr(lambda x: SCALED.bind(x, x, k=2.0))(1.0)
    b = jax.make_jaxpr(lambda x: SCALED.bind(x, x, k=2.0))(1.0)
    c = jax.make_jaxpr(lambda x: SCALED.bind(x, x, k=3.0))(1.0)
    d = jax.make_jaxpr(lambda x: SCALED.bind(x, x, k=2))(1.0)
    assert a == b and hash(a) == hash(b)
    assert a != c and a != d


@pytest.mark.parametrize("value", [[4], np.arange(2), ([1],)], ids=str)
def test_parameters_that_cannot_be_hashed(value):
    p = Primitive("listed")
    p.def_impl(lambda x, *, by: x)
    p.def_abstract_eval(lambda x, *, by: x)
    assert p.bind(2.0, by=value) == 2.0
    with pytest.raises(TypeError, match="to primitive listed, the value of parameter by was not hashable"):
        jax.make_jaxpr(lambda x: p.bind(x, by=value))(2.0)


class _Odd:
    __repr__ = lambda self: "a representation"
    __str__ = lambda self: "a text"


def test_parameters_are_shown_as_text():
    p = Primitive("shown")
    p.def_abstract_eval(lambda x, **params: x)
    for value in ["abc", np.float32(2), np.dtype("int8"), ("a",), _Odd(), tuple(range(60)), len]:
        text = str(jax.make_jaxpr(lambda x, value=value: p.bind(x, by=value))(2.0))
        assert f"by={value}" in text


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda p: p.bind(1.0), "Evaluation rule for 'new' not implemented"),
        (lambda p: jax.jit(p.bind)(1.0), "Abstract evaluation for 'new' not implemented"),
        (lambda p: jax.jvp(p.bind, (1.0,), (1.0,)), "Differentiation rule for 'new' not implemented"),
        (lambda p: jax.vmap(p.bind)(X), "Batching rule for 'new' not implemented"),
    ],
)
def test_missing_rules(call, text):
    with pytest.raises(NotImplementedError, match=text):
        call(Primitive("new"))


def test_missing_lowering_and_transpose():
    p = Primitive("new")
    p.def_abstract_eval(lambda x: x)
    with pytest.raises(NotImplementedError, match="translation rule for primitive 'new' not found for platform cpu"):
        jax.jit(p.bind)(1.0)
    p.def_impl(lambda x: x)
    ad.primitive_jvps[p] = lambda primals, tangents: (p.bind(*primals), p.bind(*tangents))
    with pytest.raises(NotImplementedError, match=r"Transpose rule .* for 'new' not implemented"):
        jax.grad(p.bind)(1.0)


def test_checkpoint_outside_of_jit_needs_no_lowering():
    p = Primitive("new")
    p.def_abstract_eval(lambda x: x)
    p.def_impl(lambda x: 2 * x)
    ad.primitive_jvps[p] = lambda primals, tangents: (p.bind(*primals), 2 * tangents[0])
    f = jax.checkpoint(lambda x: jnp.sin(p.bind(x)))
    np.testing.assert_allclose(f(X), np.sin(2 * X), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: f(x).sum())(X), 2 * np.cos(2 * X), rtol=1e-5)
    with pytest.raises(NotImplementedError, match="'new' not found for platform cpu"):
        jax.jit(f)(X)


def test_types_are_asked_for_once():
    p, asked = Primitive("new"), []

    @p.def_abstract_eval
    def _(x, *, times):
        asked.append((x, times))
        return x

    p.def_impl(lambda x, *, times: times * x)
    p_bind = jax.jit(lambda x: p.bind(x, times=2) + p.bind(x, times=2) + p.bind(x, times=2.0))
    jax.make_jaxpr(p_bind)(X)
    jax.make_jaxpr(p_bind)(X[:1])
    assert [(x.shape, type(n)) for x, n in asked] == [(s, t) for s in (X.shape, (1,)) for t in (int, float)]


def test_implementation_stands_in_for_a_lowering_to_mlir():
    p = Primitive("numpy_sin")
    p.def_impl(lambda x: np.sin(np.asarray(x)))
    p.def_abstract_eval(lambda x: ShapedArray(x.shape, x.dtype))
    mlir.register_lowering(p, lambda ctx, x: hlo.CustomCallOp([x.type], [x], "sin").results)
    np.testing.assert_allclose(jax.jit(p.bind)(X), jnp.sin(X), rtol=1e-6)


def test_lowering_of_another_type():
    p = Primitive("wrong")
    p.def_abstract_eval(lambda x: ShapedArray((2,), x.dtype))
    mlir.register_lowering(p, mlir.lower_fun(lambda x: x, multiple_results=False))
    with pytest.raises(TypeError, match="the lowering of the primitive wrong gives"):
        jax.jit(p.bind)(jnp.ones(3))


def test_effects_keep_an_equation():
    class Told(jax.extend.core.Effect):
        pass

    p = Primitive("tell")
    heard = []

    def impl(x):
        heard.append(float(x))
        return x

    p.def_impl(impl)
    p.def_effectful_abstract_eval(lambda x: (x, {Told()}))
    mlir.register_lowering(p, lambda ctx, x: None)

    @jax.jit
    def f(x):
        p.bind(x)
        return x + 1

    assert "tell" in str(jax.make_jaxpr(f)(1.0))


def test_apply_primitive_compiles():
    p = Primitive("compiled")
    p.def_impl(functools.partial(xla.apply_primitive, p))
    p.def_abstract_eval(lambda x, *, k: x)
    mlir.register_lowering(p, mlir.lower_fun(lambda x, *, k: x * k, multiple_results=False))
    assert p.bind(2.0, k=3) == 6.0


def test_error_of_a_rule_reaches_the_user():
    p = Primitive("fails")

    def impl(x):
        raise ArithmeticError("from the rule")

    p.def_impl(impl)
    with pytest.raises(ArithmeticError, match="from the rule"):
        p.bind(1.0)


def test_a_lowering_for_mlir_whose_implementation_compiles_it():
    from ferrax._src import dispatch

    odd_p = Primitive("odd")
    odd_p.def_impl(functools.partial(dispatch.apply_primitive, odd_p))
    odd_p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(odd_p, lambda ctx, x: [x.result])
    for call in (odd_p.bind, jax.jit(odd_p.bind)):
        with pytest.raises(NotImplementedError, match="the lowering of the primitive 'odd' is written for MLIR"):
            call(1.0)


def test_types_are_asked_for_where_programs_are_traced_alone():
    asked = []
    p = Primitive("counted")
    p.def_abstract_eval(lambda x: asked.append(x.shape) or x)
    p.def_impl(lambda x: 2 * x)
    assert p.bind(jnp.arange(3)).tolist() == [0, 2, 4] and p.bind(2.0) == 4 and not asked
    jax.make_jaxpr(p.bind)(jnp.arange(4))
    assert asked == [(4,)]


def test_methods_of_own_classes_are_not_rules():
    """A library's class of primitives has methods of any names, also of those that rules have in other places."""

    class Tag(Primitive):
        multiple_results = True

        def __init__(self):
            super().__init__("tag_of_own_class")
            self.def_impl(lambda *args: list(args))
            self.def_abstract_eval(lambda *avals: list(avals))
            ad.primitive_jvps[self] = self._jvp
            batching.primitive_batchers[self] = self._batch
            mlir.register_lowering(self, mlir.lower_fun(lambda *args: list(args), multiple_results=True))

        def _jvp(self, primals, tangents):
            return self.bind(*primals), [2 * t for t in tangents]

        def _batch(self, args, dims):
            return self.bind(*args), dims

        def _key(self):
            raise AssertionError("nobody asks for this")

        _abstract = _run = _lower = _transpose = _listed = _bound = _key

    tag = Tag()
    f = lambda x: tag.bind(x * 3)[0]
    x = jnp.arange(3.0)
    for call in (f, jax.jit(f), jax.vmap(f)):
        np.testing.assert_array_equal(call(x), 3 * x)
    for call in (jax.vmap(jax.grad(f)), jax.jit(jax.vmap(jax.grad(f)))):
        np.testing.assert_array_equal(call(x), [6, 6, 6])
