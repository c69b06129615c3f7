"""Small names of the top level and of `lax` that JAX has: versions, structures, members of classes."""

import pathlib
import tomllib

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax


def test_version_is_that_of_the_crates():
    cargo = tomllib.loads((pathlib.Path(__file__).parents[2] / "Cargo.toml").read_text())
    assert ferrax.__version__ == ferrax.version.__version__ == cargo["workspace"]["package"]["version"]
    assert ".".join(map(str, ferrax.__version_info__)) == ferrax.__version__


def test_devices_have_the_class_of_the_top_level():
    assert isinstance(ferrax.devices()[0], ferrax.Device)


def test_environment(capsys, monkeypatch):
    monkeypatch.setenv("FERRAX_SOMETHING", "1")
    text = ferrax.print_environment_info(return_string=True)
    assert "FERRAX_SOMETHING=1" in text and f"numpy:  {np.__version__}" in text
    assert ferrax.print_environment_info() is None
    assert capsys.readouterr().out == text + "\n"


def test_float0_is_the_dtype_of_tangents_of_integers():
    gradient = ferrax.grad(lambda x: x * 1.0, allow_int=True)(3)
    assert gradient.dtype == ferrax.float0 == ferrax.dtypes.float0
    with pytest.raises(TypeError, match="float0"):
        jnp.sin(np.zeros(3, ferrax.float0))


def test_struct_like():
    like = ferrax.ShapeDtypeStruct.like
    assert like(jnp.ones((2, 3))) == ferrax.ShapeDtypeStruct((2, 3), "float32")
    assert like(1.0) == ferrax.ShapeDtypeStruct((), "float32", weak_type=True)
    assert like(ferrax.ShapeDtypeStruct((2,), "int8")) == ferrax.ShapeDtypeStruct((2,), "int8")
    placed = ferrax.device_put(jnp.ones(2), ferrax.devices()[0])
    assert like(placed).sharding == placed.sharding
    assert like(jnp.ones(2)).sharding is None
    seen = []
    ferrax.jit(lambda x: seen.append(like(x)))(jnp.ones(3))
    assert seen == [ferrax.ShapeDtypeStruct((3,), "float32")]


def test_members_of_custom_jvp():
    f = ferrax.custom_jvp(jnp.sin)
    assert f.jvp is None and f.symbolic_zeros is False
    assert {"jvp", "symbolic_zeros"} <= set(dir(ferrax.custom_jvp))
    with pytest.raises(AttributeError, match="No JVP defined"):
        f(1.0)
    f.defjvp(lambda p, t: (f(*p), 2 * t[0]), symbolic_zeros=False)
    assert ferrax.grad(f)(1.0) == 2 and f.jvp is not None
    assert ferrax.custom_jvp(f).jvp is None


def test_ufunc_members():
    f = jnp.frompyfunc(lambda x, y: x + y, 2, 1, identity=0)
    for g in (f, jnp.add):
        assert (g.nin, g.nout, g.nargs, g.identity) == (2, 1, 2, 0)
    assert {"nin", "nout", "nargs", "identity"} <= set(dir(jnp.ufunc))


def test_issubdtype_by_name():
    assert jnp.issubdtype(arg1=jnp.bfloat16, arg2=jnp.floating) is True
    assert jnp.issubdtype(jnp.int4, np.signedinteger) and not jnp.issubdtype(jnp.int4, np.unsignedinteger)


def test_to_device():
    device = ferrax.devices()[0]
    x = jnp.arange(3)
    moved = x.to_device(device)
    assert moved.committed and not x.committed and moved.tolist() == [0, 1, 2]
    assert ferrax.jit(lambda x: x.to_device(device) + 1)(x).tolist() == [1, 2, 3]
    with pytest.raises(NotImplementedError, match="stream"):
        x.to_device(device, stream=1)


@pytest.mark.parametrize(
    ("module", "name", "instead"),
    [
        (ferrax, "device_put_replicated", "device_put"),
        (ferrax, "device_put_sharded", "device_put"),
        (jnp, "fix", "trunc"),
        (lax, "pvary", "pcast"),
        (ferrax.scipy.special, "sph_harm", "sph_harm_y"),
    ],
)
def test_names_that_are_gone_say_what_stands_for_them(module, name, instead):
    assert not hasattr(module, name)
    with pytest.raises(AttributeError, match=rf"{name} was removed in JAX v0.10.0. Use ferrax.*\.{instead}\b"):
        getattr(module, name)


def test_annotations_are_unions():
    for union in (ferrax.typing.ArrayLike, ferrax.typing.DTypeLike, lax.PrecisionLike):
        assert callable(union)
    assert isinstance(1.0, ferrax.typing.ArrayLike) and not isinstance([1], ferrax.typing.ArrayLike)


def test_random_algorithms():
    assert [str(a) for a in lax.RandomAlgorithm] == ["RNG_DEFAULT", "RNG_THREE_FRY", "RNG_PHILOX"]
    assert lax.RandomAlgorithm.RNG_PHILOX == 2
