"""What an exported function says of itself besides its types, and what `export` refuses."""

import collections
import json

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import export
from ferrax.experimental import pjit as _pjit

with pytest.warns(DeprecationWarning):
    pjit = _pjit.pjit
X = np.arange(4, dtype=np.float32)


def again(exported):
    return export.deserialize(exported.serialize())


def test_dependence_on_sizes_and_platforms_is_told_on():
    sized = export.export(ferrax.jit(jnp.sin))(ferrax.ShapeDtypeStruct(export.symbolic_shape("a"), np.float32))
    plain = export.export(ferrax.jit(jnp.sin))(X)
    several = export.export(ferrax.jit(jnp.sin), platforms=("cpu", "tpu"))(X)
    for e, dependent in ((sized, True), (plain, False), (several, True)):
        assert e.uses_global_constants is again(e).uses_global_constants is dependent
        outer = ferrax.jit(lambda x, e=e: 2 * e.call(x))
        for _ in range(2):  # the second time, the trace is there
            assert export.export(outer)(X).uses_global_constants is dependent
        np.testing.assert_allclose(again(export.export(outer)(X)).call(X), 2 * np.sin(X), rtol=1e-6)
    assert "jax.uses_shape_polymorphism = false" in plain.mlir_module()
    assert "jax.uses_shape_polymorphism = true" in several.mlir_module()


def test_calling_convention():
    for version in range(7, 13):
        with ferrax._src.config.export_calling_convention_version(version):
            if export.minimum_supported_calling_convention_version <= version <= 10:
                assert again(export.export(ferrax.jit(jnp.cos))(X)).calling_convention_version == version
            else:
                with pytest.raises(ValueError, match=f"version {version} is outside the range of supported versions"):
                    export.export(ferrax.jit(jnp.cos))(X)


def test_donation_on_all_platforms_or_none():
    f = ferrax.jit(jnp.sin, donate_argnums=0)
    assert export.export(f, platforms=("cpu", "cuda"))(X).platforms == ("cpu", "cuda")
    assert export.export(f, platforms=("other",))(X).platforms == ("other",)
    with pytest.raises(NotImplementedError, match="all or no lowering platforms should support donation"):
        export.export(f, platforms=("cpu", "other"))(X)


def test_ordered_dictionaries():
    given = collections.OrderedDict([("b", X), ("a", 2.0)])
    exported = again(export.export(ferrax.jit(lambda d: {"out": d}))(given))
    result = exported.call(given)
    assert list(result["out"]) == ["b", "a"] and type(result["out"]) is collections.OrderedDict
    assert exported.out_tree == ferrax.tree.structure({"out": given})
    with pytest.raises(NotImplementedError, match="no strings"):
        export.export(ferrax.jit(lambda d: d))(collections.OrderedDict([(1, X)])).serialize()


def test_nodes_are_registered_first():
    class Unknown:
        pass

    Pair = collections.namedtuple("Pair", "a b")
    for kind in (Unknown, Pair):
        with pytest.raises(ValueError, match=r"`from_children` is not present.*must call.*register_pytree_node"):
            export.register_pytree_node_serialization(
                kind, serialized_name="kind", serialize_auxdata=json.dumps, deserialize_auxdata=json.loads
            )
    with pytest.raises(ValueError, match=r"Cannot serialize .* unregistered type .*Pair"):
        export.export(ferrax.jit(lambda x: x))(Pair(1, 2)).serialize()


def test_a_mesh_of_other_axes_is_refused():
    there = ferrax.NamedSharding(ferrax.make_mesh((1,), ("a",)), ferrax.P("a"))
    exported = again(export.export(ferrax.jit(jnp.sin, in_shardings=there, out_shardings=there))(X))
    assert exported.in_shardings_jax(there.mesh) == exported.out_shardings_jax(there.mesh) == (there,)
    for shardings in (exported.in_shardings_jax, exported.out_shardings_jax):
        with pytest.raises(ValueError, match="does not match the mesh used for export"):
            shardings(ferrax.make_mesh((1,), ("b",)))


def test_pullbacks_are_where_the_function_is():
    mesh = ferrax.make_mesh((1,), ("a",), axis_types=(ferrax.sharding.AxisType.Auto,))
    place = ferrax.NamedSharding(mesh, ferrax.P("a"))
    exported = export.export(pjit(jnp.sin, in_shardings=place, out_shardings=None))(X)
    assert again(exported.vjp()).in_shardings_jax(mesh) == (place, None)
    assert exported.vjp().out_shardings_jax(mesh) == (place,)
    plain = export.export(pjit(lambda x: x * x))(X)  # `pjit` without shardings is jitted, too
    np.testing.assert_allclose(plain.vjp().call(X, X)[0], 2 * X * X)
