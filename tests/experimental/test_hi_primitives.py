"""Primitives given by a function and rules (`VJPHiPrimitive`): values, derivatives and batches beside JAX."""

import importlib

import numpy as np
import pytest

import ferrax

jax = pytest.importorskip("jax")

X = np.linspace(0.2, 1.4, 6, dtype=np.float32).reshape(2, 3)


def library(j):
    """Classes of primitives over one of the two libraries."""
    hijax, jnp = importlib.import_module(f"{j.__name__}.experimental.hijax"), j.numpy

    class Scaled(hijax.VJPHiPrimitive):
        """A sine times a number; reverse mode says ten times as much, forward mode the truth."""

        def __init__(self, x, y, by=1.0):
            self.in_avals, self.out_aval, self.params = (x, y), x, {"by": by}
            super().__init__()

        def expand(self, x, y):
            return self.by * jnp.sin(x) * y

        def vjp_fwd(self, nzs_in, x, y):
            return self(x, y), {"x": x, "y": (y,)}

        def vjp_bwd_retval(self, res, g):
            x, (y,) = res["x"], res["y"]
            return 10 * self.by * jnp.cos(x) * y * g, self.by * jnp.sin(x) * g

        def jvp(self, primals, tangents):
            (x, y), (a, b) = primals, tangents
            return self(x, y), self.by * (jnp.cos(x) * y * a + jnp.sin(x) * b)

        def batch_dim_rule(self, axis_data, dims):
            return next(d for d in dims if d is not None)

    class Trees(hijax.VJPHiPrimitive):
        """Of trees; one argument has no derivative."""

        def __init__(self, p, n):
            self.in_avals, self.out_aval, self.params = (p, n), {"a": p["w"], "b": (p["b"],)}, {}
            super().__init__()

        def expand(self, p, n):
            return {"a": p["w"] * n, "b": (p["b"] ** 2,)}

        def vjp_fwd(self, nzs_in, p, n):
            return self(p, n), (p["b"], n)

        def vjp_bwd(self, res, g, p_accums, n_accum):
            b, n = res
            p_accums["w"].accum(g["a"] * n)
            p_accums["b"].accum(2 * b * g["b"][0])

    class Linear(hijax.VJPHiPrimitive):
        """What `linearize` asks for, and `transpose`."""

        def __init__(self, x):
            self.in_avals, self.out_aval, self.params = (x,), x, {}
            super().__init__()

        def expand(self, x):
            return 3 * x

        def lin(self, nzs_in, x):
            return self(x), None

        def linearized(self, res, t):
            return self(t)

        def transpose(self, ct, x):
            x.accum(3 * ct)

        def batch(self, axis_data, args, dims):
            return Linear(j.typeof(args[0]))(*args), dims[0]

    class Bare(hijax.VJPHiPrimitive):
        """Nothing but the function."""

        def __init__(self, x):
            self.in_avals, self.out_aval, self.params = (x,), x, {}
            super().__init__()

        def expand(self, x):
            return x * x

    scaled = lambda x, y, by=1.0: Scaled(j.typeof(x), j.typeof(y), by)(x, y)
    trees = lambda p, n: Trees(j.tree.map(j.typeof, p), j.typeof(n))(p, n)
    return scaled, trees, *(lambda x, kind=kind: kind(j.typeof(x))(x) for kind in (Linear, Bare))


def total(j, f):
    return lambda x: j.numpy.sum(f(x, 2.0 * x) ** 2)


PROGRAMS = {
    "value": lambda j, s, *_: s(X, 2 * X),
    "jit": lambda j, s, *_: j.jit(lambda x: s(x, 2 * x, 0.5))(X),
    "grad": lambda j, s, *_: j.grad(total(j, s))(X),
    "one argument": lambda j, s, *_: j.grad(lambda y: s(0.3, y))(2.0),
    "jit of grad": lambda j, s, *_: j.jit(j.grad(total(j, s)))(X),
    "grad of jit": lambda j, s, *_: j.grad(j.jit(total(j, s)))(X),
    "grad of grad": lambda j, s, *_: j.grad(j.grad(lambda x: s(x, 2.0)))(0.3),
    "jvp": lambda j, s, *_: j.jvp(s, (X, X), (X, 2 * X)),
    "jvp of jit": lambda j, s, *_: j.jvp(j.jit(s), (X, X), (X, 2 * X)),
    "vmap": lambda j, s, *_: j.vmap(s, (0, None))(X, X[0]),
    "vmap of grad": lambda j, s, *_: j.vmap(j.grad(lambda x: s(x, 2.0 * x)))(X[0]),
    "grad of vmap": lambda j, s, *_: j.grad(lambda x: j.numpy.sum(j.vmap(s, (1, None))(x, x[:, 0])))(X),
    "jvp of vmap": lambda j, s, *_: j.jvp(lambda x: j.vmap(s)(x, 2 * x), (X,), (X,)),
    "jacrev": lambda j, s, *_: j.jacrev(lambda x: s(x, x * x))(X[0]),
    "trees": lambda j, s, t, *_: t({"w": X, "b": X[0]}, 3),
    "gradients of trees": lambda j, s, t, *_: j.grad(lambda p: sum(map(j.numpy.sum, j.tree.leaves(t(p, 3)))))(
        {"w": X, "b": X[0]}
    ),
    "linearize": lambda j, s, t, lin, *_: j.linearize(lin, X)[1](2 * X),
    "transpose": lambda j, s, t, lin, *_: j.linear_transpose(lin, X)(2 * X),
    "batch": lambda j, s, t, lin, *_: j.vmap(lin, 1, 1)(X),
    "bare": lambda j, s, t, lin, bare: j.jit(bare)(X),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name):
    ours, theirs = (j.tree.leaves(PROGRAMS[name](j, *library(j))) for j in (ferrax, jax))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5)


def test_scans_have_both_modes():
    def loop(s):
        return lambda x: ferrax.lax.scan(lambda c, _: (s(c, 2.0), None), x, None, length=3)[0]

    scaled, *_ = library(ferrax)
    by_jit = lambda x: scaled(scaled(scaled(x, 2.0), 2.0), 2.0)
    np.testing.assert_allclose(ferrax.grad(loop(scaled))(0.3), ferrax.grad(by_jit)(0.3), rtol=1e-5)
    np.testing.assert_allclose(
        ferrax.jvp(loop(scaled), (0.3,), (1.0,))[1], ferrax.jvp(by_jit, (0.3,), (1.0,))[1], rtol=1e-5
    )


@pytest.mark.parametrize(
    "ask",
    [
        lambda j, bare: j.grad(bare)(3.0),
        lambda j, bare: j.jvp(bare, (3.0,), (1.0,)),
        lambda j, bare: j.vmap(bare)(j.numpy.arange(3.0)),
    ],
)
def test_missing_rules_are_named(ask):
    texts = []
    for j in (ferrax, jax):
        with pytest.raises(NotImplementedError) as caught:
            ask(j, library(j)[3])
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_programs_show_the_primitive():
    ours, theirs = (
        str(j.make_jaxpr(lambda x, s=library(j)[0]: s(x, 2 * x, 0.5))(X)).replace(" ", "") for j in (ferrax, jax)
    )
    assert ours == theirs and "call_hi_primitive[_prim=Scaled[{'by':0.5}]]" in ours


def test_programs_are_traced_once_for_equal_primitives():
    scaled, *_ = library(ferrax)
    x, y = ferrax.numpy.asarray(X), ferrax.numpy.asarray(X)
    texts = {str(ferrax.make_jaxpr(lambda x, y: scaled(x, y) + scaled(x, y))(x, y)) for _ in range(2)}
    assert len(texts) == 1


def test_values_that_are_no_arrays_work_at_once():
    from ferrax.experimental import hijax

    class Pair:
        def __init__(self, x):
            self.x = x

    class PairType(hijax.HiType):
        def __eq__(self, other):
            return isinstance(other, PairType)

        def __hash__(self):
            return 1

        def lo_ty(self):
            return [ferrax.typeof(1.0)]

        def lower_val(self, pair):
            return [pair.x]

        def raise_val(self, x):
            return Pair(x)

    hijax.register_hitype(Pair, lambda pair: PairType())

    class Pack(hijax.VJPHiPrimitive):
        def __init__(self, x):
            self.in_avals, self.out_aval, self.params = (x,), PairType(), {}
            super().__init__()

        def expand(self, x):
            return Pair(x)

    pack = lambda x: Pack(ferrax.typeof(x))(x)
    assert ferrax.typeof(pack(2.0)) == PairType() and pack(2.0).x == 2.0
    assert ferrax.jit(lambda x: pack(x).x)(2.0) == 2.0
    with pytest.raises(NotImplementedError, match="vjp_fwd"):
        ferrax.grad(lambda x: pack(x).x)(2.0)
    with pytest.raises(AttributeError, match="must set in_avals"):
        type("Empty", (hijax.VJPHiPrimitive,), {})()


def test_operands_whose_cotangents_nobody_wants():
    from ferrax._src.interpreters import ad
    from ferrax.experimental.hijax import VJPHiPrimitive

    seen = []

    class Product(VJPHiPrimitive):
        def __init__(self, aval):
            self.in_avals, self.out_aval, self.params = (aval, aval), aval, {}
            super().__init__()

        def expand(self, x, y):
            return x * y

        def vjp_fwd(self, nzs_in, x, y):
            return self(x, y), (x, y)

        def vjp_bwd(self, res, g, x_accum, y_accum):
            assert isinstance(x_accum, ad.GradAccum) and isinstance(y_accum, ad.GradAccum)
            seen.append([isinstance(a, ad.NullAccum) for a in (x_accum, y_accum)])
            x, y = res
            x_accum.accum(g * y)
            y_accum.accum(g * x)

    product = lambda x, y: Product(ferrax.typeof(x))(x, y)
    assert ferrax.grad(product)(2.0, 3.0) == 3.0 and ferrax.grad(product, 1)(2.0, 3.0) == 2.0
    assert ferrax.grad(product, (0, 1))(2.0, 3.0) == (3.0, 2.0)
    assert seen == [[False, True], [True, False], [False, False]]

    class Both(Product):
        def vjp_bwd_retval(self, res, g):
            return res

    with pytest.raises(AttributeError, match="should not override both"):
        Both(ferrax.typeof(1.0))


def test_classes_derived_from_names_without_meaning():
    import dataclasses

    from ferrax._src import hijax

    for base in (hijax.MappingSpec, hijax.Box):

        @dataclasses.dataclass(frozen=True)
        class Derived(base):
            val: tuple

        assert not hasattr(Derived, "other") and issubclass(Derived, base)
    assert dataclasses.fields(Derived)[0].name == "val"
    with pytest.raises(NotImplementedError, match="no boxes"):
        hijax.Box.shape
