"""Small answers of the public API that programs and tests look at: errors by type and word, classes, types."""

import collections.abc
import inspect

import jax as peer
import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from tests.recorded import expected

ones = jnp.ones


def test_arrays_are_not_hashable():
    assert not isinstance(ones(3), collections.abc.Hashable)
    with pytest.raises(TypeError, match="unhashable type"):
        hash(ones(3))

    @jax.jit
    def traced(x):
        assert not isinstance(x, collections.abc.Hashable)
        with pytest.raises(TypeError, match="unhashable type"):
            hash(x)
        return x

    traced(1.0)


@pytest.mark.parametrize(
    ("donated", "words"),
    [
        ((0,), r"use a buffer.*f\(donate\(a\), a\)"),
        ((1,), r"donate a buffer.*f\(a, donate"),
        ((0, 1), "donate the same buffer twice"),
    ],
)
def test_an_array_is_donated_once(donated, words):
    x = jnp.arange(5.0)
    f = jax.jit(lambda x, y: (x + y, x * y), donate_argnums=donated)
    with pytest.raises(jax.errors.JaxRuntimeError, match=f"INVALID_ARGUMENT: Attempt to {words}"):
        f(x, x)
    np.testing.assert_array_equal(x, np.arange(5.0))
    np.testing.assert_array_equal(f(x, x + 0)[0], 2 * np.arange(5.0))
    total = jax.jit(lambda x, y: x.sum() + y.sum(), donate_argnums=donated)
    with pytest.warns(UserWarning, match="not usable"):
        assert total(ones(5), ones(5)) == 10  # no result takes the memory


def test_types_say_where_results_are_asked_for():
    here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    f = jax.jit(lambda x: {"a": x * 2, "b": x}, out_shardings={"a": here, "b": None})
    info = f.eval_shape(np.arange(8))
    assert info["a"].sharding == here
    assert info["b"].sharding is None
    assert info["a"].shape == (8,)
    assert jax.jit(lambda x: x).eval_shape(np.arange(8)).sharding is None


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: jax.lax.linalg.tridiagonal_solve(ones(3), ones(4), ones(3), ones((3, 1))),
            TypeError,
            "the same shape",
        ),
        (
            lambda: jax.lax.linalg.tridiagonal_solve(ones(3), ones(3), ones(3), ones((4, 1))),
            TypeError,
            "leading ndim-1",
        ),
        (lambda: jax.lax.linalg.householder_product(ones((3, 2)), ones(3)), ValueError, "must not have more rows than"),
        (
            lambda: jax.lax.linalg.cholesky_update(ones((3, 3)), ones(4)),
            ValueError,
            "a square matrix and a vector of the",
        ),
    ],
)
def test_shapes_of_linear_algebra(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_keys_take_keys():
    """Numbers are no keys, and keys no numbers; keys are set, not calculated with."""
    keys = jax.random.split(jax.random.key(0), 3)
    assert jax.random.key_data(keys.at[0].set(keys[1]))[0].tolist() == jax.random.key_data(keys)[1].tolist()
    for value in (1, 1.5, jnp.uint32(1), np.zeros(2, np.uint32)):
        with pytest.raises(TypeError, match="only be set, to keys"):
            keys.at[0].set(value)
    for update in (keys.at[0].add, keys.at[0].min):
        with pytest.raises(TypeError, match="only be set, to keys"):
            update(keys[1])
    with pytest.raises(ValueError, match="dtype int32 cannot take values of dtype key<fry>"):
        jnp.arange(3).at[0].set(keys[0])


def test_names_of_functions_that_have_none():
    """Those of partial functions are of what these hold."""
    import functools

    import jax as real

    def f(x):
        return x

    class Called:
        def __call__(self, x):
            return x

    partial = functools.partial(functools.partial(f))
    for name in ("jit", "vmap", "grad", "value_and_grad", "checkpoint", "jacfwd", "jacrev", "hessian"):
        for fun in (f, partial):
            ours, theirs = (getattr(of, name)(fun) for of in (jax, real))
            assert ours.__name__ == theirs.__name__ == "f", name
    assert jax.jit(Called()).__name__ == real.jit(Called()).__name__ == "<unnamed function>"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "int4", "S1", "U1", "object", "M8[s]"])
def test_dtypes_that_dlpack_carries(dtype):
    assert jax.dlpack.is_supported_dtype(dtype) == expected(lambda jax: jax.dlpack.is_supported_dtype(dtype))


def test_what_names_no_dtype_is_not_asked_of_dlpack():
    for name in (None, "abc"):
        with pytest.raises(TypeError):
            jax.dlpack.is_supported_dtype(name)


WEAK = {
    "diagonal": lambda jnp, x: jnp.diagonal(x),
    "diagonal above": lambda jnp, x: jnp.diagonal(x, 1),
    "no diagonal": lambda jnp, x: jnp.diagonal(x, 3),
    "diag": lambda jnp, x: jnp.diag(x),
    "diag of a vector": lambda jnp, x: jnp.diag(x[0]),
    "diag of a vector above": lambda jnp, x: jnp.diag(x[0], 1),
    "diagflat": lambda jnp, x: jnp.diagflat(x[0]),
    "det": lambda jnp, x: jnp.linalg.det(x[:1, :1]),
    "det of two": lambda jnp, x: jnp.linalg.det(x),
    "norm": lambda jnp, x: jnp.linalg.norm(x[:1, :1]),
    "trace": lambda jnp, x: jnp.trace(x),
}


@pytest.mark.parametrize("name", WEAK)
def test_weak_types_of_diagonals(name):
    x = jnp.broadcast_to(jnp.asarray(1.0), (2, 2))
    want = expected(lambda jax: WEAK[name](jax.numpy, jax.numpy.broadcast_to(jax.numpy.asarray(1.0), (2, 2))).weak_type)
    assert WEAK[name](jnp, x).weak_type == want


def test_blocks_make_strong_matrices():
    assert not jax.scipy.linalg.block_diag(1.0, 2.0).weak_type


@pytest.mark.parametrize(
    "name", ["floor", "ceil", "trunc", "logical_not", "isreal", "iscomplex", "sqrt", "sin", "exp2"]
)
def test_functions_of_numbers_refuse_keys(name):
    with pytest.raises(TypeError, match="does not accept dtype key<fry>"):
        getattr(jnp, name)(jax.random.split(jax.random.key(0), 3))


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_logical_functions_refuse_keys(name):
    key = jax.random.key(0)
    for operands in ((key, key), (key, 1), (True, key)):
        with pytest.raises(TypeError, match=f"{name} does not accept dtype key<fry>"):
            getattr(jnp, name)(*operands)


def test_methods_of_vmap_that_are_none():
    shape = jax.ShapeDtypeStruct((), np.float32)
    for call in (jax.pure_callback, lambda f, *rest, **method: jax.ffi.ffi_call("nobody", shape, **method)):
        with pytest.raises(ValueError, match=r"^vmap_method must be on of the allowed methods \['sequential'"):
            call(lambda y: y, shape, 1.0, vmap_method="rows")


def test_parts_of_devices():
    from ferrax._src.sharding import common_devices_indices_map

    (device,) = jax.devices()[:1]
    sharding = jax.NamedSharding(jax.make_mesh((1,), ("a",), devices=[device]), jax.P("a"))
    parts = common_devices_indices_map(sharding, (4, 2))
    assert list(parts) == [device] and np.zeros((4, 2))[parts[device]].shape == (4, 2)


@pytest.mark.parametrize("value", ["rocket", 3])
def test_default_devices_that_are_none(value):
    for use in (lambda: jax.default_device(value).__enter__(), lambda: jax.config.update("jax_default_device", value)):
        with pytest.raises(ValueError, match=r"jax.default_device must be passed either a Device object .*, got: "):
            use()
    assert jax.config.jax_default_device is None


@pytest.mark.parametrize("index", [(), (1,), (5,), ((0,),)])
@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, jax.grad])
def test_items_of_traced_values(transform, index):
    x = ones((1, 1)) if transform is jax.vmap else ones(1)
    with pytest.raises(jax.errors.ConcretizationTypeError, match="where concrete value is expected"):
        transform(lambda x: x.item(*index))(x)


def test_compiled_functions_tell_which_types_differ():
    def told(package):
        compiled = package.jit(lambda x, y: x * y).lower(1.0, package.numpy.ones(2)).compile()
        with pytest.raises(TypeError) as caught:
            compiled(package.numpy.ones(3), package.numpy.ones(2, int))
        return str(caught.value).splitlines()[:3]

    assert told(jax) == told(peer)


@pytest.mark.parametrize("package", [jax, peer], ids=["ferrax", "jax"])
def test_the_former_name_of_a_process(package):
    with pytest.warns(UserWarning, match="has been renamed from `host_id` to `process_index`"):
        assert package.local_devices(host_id=0) == package.local_devices(process_index=0)


WRAPPERS = {
    "checkpoint": lambda jax, f: jax.checkpoint(f),
    "checkpoint of static arguments": lambda jax, f: jax.checkpoint(f, static_argnums=1),
    "jit": lambda jax, f: jax.jit(f),
    "jit with shardings of results": lambda jax, f: jax.jit(f, out_shardings=on_one(jax)),
    "jit with shardings of arguments": lambda jax, f: jax.jit(f, in_shardings=on_one(jax)),
    "vmap": lambda jax, f: jax.vmap(f),
    "pmap": lambda jax, f: jax.pmap(f),
    "grad": lambda jax, f: jax.grad(f),
    "jacfwd": lambda jax, f: jax.jacfwd(f),
    "jacrev": lambda jax, f: jax.jacrev(f),
    "named_call": lambda jax, f: jax.named_call(f),
    "make_jaxpr": lambda jax, f: jax.make_jaxpr(f),
    "custom_jvp": lambda jax, f: jax.custom_jvp(f),
    "vectorize": lambda jax, f: jax.numpy.vectorize(f),
}


def on_one(jax):
    return jax.sharding.SingleDeviceSharding(jax.devices()[0])


def wrapper_answers(jax, name):
    def user(x, y):
        return x

    user.mark = 3
    made = WRAPPERS[name](jax, user)
    home = made.__module__.replace("ferrax", "jax")
    words = [made.__name__, home, str(inspect.signature(made))]
    return [made.__wrapped__ is user, made.mark, *words]


@pytest.mark.parametrize("name", WRAPPERS)
def test_transformed_functions_name_what_they_transform(name):
    assert wrapper_answers(jax, name) == expected(wrapper_answers, name)
