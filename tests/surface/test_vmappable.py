"""`vmap` over values of types that libraries register, and over types in place of arrays, against JAX."""

import dataclasses
import os
import traceback

import numpy as np
import pytest

import ferrax
from ferrax.interpreters import batching
from tests.recorded import expected

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@dataclasses.dataclass
class Table:
    """Columns that are mapped, and a number that is not."""

    columns: object
    inner: object = None
    number: int = 7


@dataclasses.dataclass
class Rows:
    """An entry of `in_axes` of its own."""

    axis: int


def _to_elt(cont, index, table, spec):
    axis = spec.axis if isinstance(spec, Rows) else spec
    return Table(cont(table.columns, axis), None if table.inner is None else cont(table.inner, spec), table.number)


def _from_elt(cont, size, table, spec):
    axis = spec.axis if isinstance(spec, Rows) else spec
    inner = None if table.inner is None else cont(size, table.inner, spec)
    return Table(cont(size, table.columns, axis), inner, table.number)


def _registered(jax):
    jax.interpreters.batching.register_vmappable(Table, Rows, int, _to_elt, _from_elt, None)
    return jax


PROGRAMS = {
    "argument": lambda jax: jax.vmap(lambda t: t.columns.sum() + t.number, axis_size=3)(Table(X)),
    "axis": lambda jax: jax.vmap(lambda t: t.columns.sum(), in_axes=1, axis_size=4)(Table(X)),
    "axis from the end": lambda jax: jax.vmap(lambda t: t.columns.sum(), in_axes=-1, axis_size=4)(Table(X)),
    "entry of its own": lambda jax: jax.vmap(lambda t: t.columns.sum(), in_axes=(Rows(1),), axis_size=4)(Table(X)),
    "entry for all": lambda jax: jax.vmap(lambda t: t.columns.sum(), in_axes=Rows(1), axis_size=4)(Table(X)),
    "beside arrays": lambda jax: jax.vmap(lambda t, x, y: t.columns * x + y, (0, 0, None))(Table(X), X, X[0]),
    "by name": lambda jax: jax.vmap(lambda x, t: x + t.columns, in_axes=1)(X.T, t=Table(X)),
    "result": lambda jax: jax.vmap(lambda x: Table(x * 2), out_axes=1)(X).columns,
    "result's entry": lambda jax: jax.vmap(lambda x: {"t": Table(x * 2)}, out_axes={"t": Rows(-1)})(X)["t"].columns,
    "unmapped result": lambda jax: jax.vmap(lambda x: (x, Table(jax.numpy.ones(2))))(X)[1].columns,
    "both": lambda jax: jax.vmap(lambda t: Table(t.columns + 1, Table(t.columns)), axis_size=3)(Table(X)).inner.columns,
    "nested values": lambda jax: jax.vmap(lambda t: t.inner.columns + t.columns, axis_size=3)(
        Table(X, Table(X[::-1].copy()))
    ),
    "twice": lambda jax: jax.vmap(jax.vmap(lambda t: t.columns + 1, axis_size=4), axis_size=3)(Table(X)),
    "names": lambda jax: jax.vmap(lambda t: jax.lax.psum(t.columns, "i"), axis_name="i", axis_size=3)(Table(X)),
    "gradient": lambda jax: jax.grad(lambda x: (jax.vmap(lambda t: t.columns**2, axis_size=3)(Table(x))).sum())(X),
    "compiled": lambda jax: jax.jit(lambda x: jax.vmap(lambda t: Table(t.columns**2), axis_size=3)(Table(x)).columns)(
        X
    ),
    "a type": lambda jax: jax.vmap(lambda x, y: x * y.ndim + len(y.shape), in_axes=(0, 1))(
        X, jax.ShapeDtypeStruct((4, 3, 2), np.float32)
    ),
    "a type, twice": lambda jax: jax.vmap(jax.vmap(lambda x, y: x * y.shape[0]))(
        X, jax.ShapeDtypeStruct((3, 4, 2), np.float32)
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_the_results_of_jax(name):
    wanted = expected(lambda jax: PROGRAMS[name](_registered(jax)))
    got = PROGRAMS[name](_registered(ferrax))
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_functions_that_were_mapped_before_see_types_that_are_registered_later():
    class Late:
        def __init__(self, x):
            self.x = x

    total = ferrax.vmap(lambda late: late.x.sum())
    batching.register_vmappable(
        Late,
        int,
        int,
        lambda cont, index, late, axis: Late(cont(late.x, axis) + index()),
        lambda cont, size, late, axis: Late(cont(size, late.x, axis)),
        None,
    )
    np.testing.assert_array_equal(total(Late(X)), (X + np.arange(3)[:, None]).sum(1))


def test_errors_of_mapped_arrays_are_as_they_are():
    _registered(ferrax)
    with pytest.raises(ValueError, match="argument y of type"):
        ferrax.vmap(lambda x, y: x)(X, X.T)
    with pytest.raises(TypeError, match=r"an int or None, but got Rows"):
        ferrax.vmap(lambda x: x, in_axes=(Rows(0),))(X)
    with pytest.raises(ValueError, match="inconsistent sizes"):
        ferrax.vmap(lambda t, x: x)(Table(X), X.T)
    with pytest.raises(TypeError, match="ShapeDtypeStruct"):
        ferrax.vmap(lambda x: x + 1)(ferrax.ShapeDtypeStruct((3, 2), np.float32))


@pytest.mark.parametrize(
    "call",
    [
        lambda: ferrax.vmap(lambda x, y: x)(X, X.T),
        lambda: ferrax.vmap(lambda x: 1 / 0)(X),
        lambda: ferrax.vmap(lambda t, x: x)(Table(X), X.T),
        lambda: ferrax.vmap(lambda t: 1 / 0, axis_size=3)(Table(X)),
        lambda: ferrax.vmap(lambda x: 1 / 0)(ferrax.ShapeDtypeStruct((3, 2), np.float32)),
    ],
)
def test_errors_show_users_frames_alone(call):
    _registered(ferrax)
    with pytest.raises((ValueError, ZeroDivisionError)) as error:
        call()
    files = {entry.filename for entry in traceback.extract_tb(error.value.__traceback__)}
    assert [name for name in files if name.startswith(os.path.dirname(ferrax.__file__))] == []


def test_calls_that_no_registered_value_is_in_are_as_they_are():
    """What guards refuse and how often a function runs do not depend on what a library registered."""
    _registered(ferrax)
    calls = []
    with ferrax.transfer_guard_host_to_device("disallow"), pytest.raises(RuntimeError, match="Disallowed host-to-dev"):
        ferrax.vmap(ferrax.numpy.sin)(X)
    ferrax.vmap(lambda x: calls.append(x) or x)(X)
    assert len(calls) == 1


def test_helpers():
    assert batching.unregister_vmappable(float) is None
    inside = ferrax._src.interpreters.batching
    assert inside.make_iota(3).tolist() == [0, 1, 2]
    _registered(ferrax)
    assert inside.is_vmappable(Table(X)) and Rows in inside.spec_types and Table in inside.vmappables
