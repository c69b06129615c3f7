"""The programs of JAX's page "JAX Errors": each situation raises the page's class, each fix gives the page's result.

Sections and their order are the page's. Where the page's text has moved since, `docs/differences.md` has a row.
"""

from functools import partial

import numpy as np
import pytest

from tests.spec.backend import ferrax_only, jax, jnp

errors = jax.errors
jit = jax.jit


class TestConcretizationTypeError:
    def test_traced_value_where_static_value_is_expected(self):
        @jit
        def func(x, axis):
            return x.min(axis)

        with pytest.raises(errors.ConcretizationTypeError, match="where concrete value is expected") as caught:
            func(jnp.arange(4), 0)
        text = str(caught.value)
        assert "axis argument" in text
        assert "tracing the function func at " in text
        assert "depends on the value of the argument axis" in text
        assert isinstance(caught.value, TypeError)

    def test_marked_static(self):
        @partial(jit, static_argnums=1)
        def func(x, axis):
            return x.min(axis)

        assert repr(func(jnp.arange(4), 0)) == "Array(0, dtype=int32)"

    def test_traced_value_used_in_control_flow(self):
        @jit
        def func(x, y):
            return x if x.sum() < y.sum() else y

        with pytest.raises(errors.ConcretizationTypeError) as caught:
            func(jnp.ones(4), jnp.zeros(4))
        assert type(caught.value) is errors.TracerBoolConversionError
        assert "Attempted boolean conversion of traced array with shape bool[]" in str(caught.value)
        assert "depends on the values of the arguments x and y" in str(caught.value)

    def test_expressed_with_where(self):
        @jit
        def func(x, y):
            return jnp.where(x.sum() < y.sum(), x, y)

        assert repr(func(jnp.ones(4), jnp.zeros(4))) == "Array([0., 0., 0., 0.], dtype=float32)"

    def test_shape_depends_on_traced_value(self):
        @jit
        def func(x):
            return jnp.where(x < 0)

        with pytest.raises(errors.ConcretizationTypeError, match=r"jnp\.nonzero"):
            func(jnp.arange(4))

    def test_indices_of_traced_size(self):
        @jit
        def func(x):
            indices = jnp.where(x > 1)
            return x[indices].sum()

        with pytest.raises(errors.ConcretizationTypeError, match=r"jnp\.nonzero"):
            func(jnp.arange(4))

    def test_without_dynamic_size(self):
        @jit
        def func(x):
            return jnp.where(x > 1, x, 0).sum()

        assert repr(func(jnp.arange(4))) == "Array(5, dtype=int32)"


class TestNonConcreteBooleanIndexError:
    def test_constructing_arrays_via_boolean_masking(self):
        @jit
        def positive_values(x):
            return x[x > 0]

        with pytest.raises(
            errors.NonConcreteBooleanIndexError, match="Array boolean indices must be concrete"
        ) as caught:
            positive_values(jnp.arange(-5, 5))
        assert "bool[10]" in str(caught.value)
        assert isinstance(caught.value, IndexError)

    def test_mask_then_sum(self):
        @jit
        def sum_of_positive(x):
            return x[x > 0].sum()

        with pytest.raises(errors.NonConcreteBooleanIndexError, match=r"bool\[10\]"):
            sum_of_positive(jnp.arange(-5, 5))

    def test_reexpressed_with_where(self):
        @jit
        def sum_of_positive(x):
            return jnp.where(x > 0, x, 0).sum()

        assert repr(sum_of_positive(jnp.arange(-5, 5))) == "Array(10, dtype=int32)"

    @ferrax_only
    def test_boolean_indices_in_ops(self):
        # jax.ops.index_update is gone from JAX; ferrax keeps the old page's name for x.at[...].set
        @jit
        def manual_clip(x):
            return jax.ops.index_update(x, x < 0, 0)

        with pytest.raises(errors.NonConcreteBooleanIndexError, match=r"bool\[4\]"):
            manual_clip(jnp.arange(-2, 2))
        assert repr(jax.ops.index_update(jnp.arange(-2, 2), jnp.array([0, 1]), 0)) == "Array([0, 0, 0, 1], dtype=int32)"

    def test_boolean_indices_in_set(self):
        @jit
        def manual_clip(x):
            return x.at[x < 0].set(0)

        with pytest.raises(errors.NonConcreteBooleanIndexError, match=r"bool\[4\]"):
            manual_clip(jnp.arange(-2, 2))

    def test_clip_with_where(self):
        @jit
        def manual_clip(x):
            return jnp.where(x < 0, 0, x)

        assert repr(manual_clip(jnp.arange(-2, 2))) == "Array([0, 0, 0, 1], dtype=int32)"

    def test_indexed_multiplication(self):
        @jit
        def manual_abs(x):
            return x.at[x < 0].mul(-1)

        with pytest.raises(errors.NonConcreteBooleanIndexError, match=r"bool\[4\]"):
            manual_abs(jnp.arange(-2, 2))

    def test_abs_with_where(self):
        @jit
        def manual_abs(x):
            return jnp.where(x < 0, x * -1, x)

        assert repr(manual_abs(jnp.arange(-2, 2))) == "Array([2, 1, 0, 1], dtype=int32)"


class TestTracerArrayConversionError:
    def test_numpy_function(self):
        @jit
        def func(x):
            return np.sin(x)

        with pytest.raises(errors.TracerArrayConversionError) as caught:
            func(jnp.arange(4))
        text = str(caught.value)
        assert "The numpy.ndarray conversion method __array__() was called on traced array with shape int32[4]" in text
        assert "depends on the value of the argument x" in text
        assert isinstance(caught.value, TypeError)

    def test_jnp_function(self):
        @jit
        def func(x):
            return jnp.sin(x)

        assert repr(func(jnp.arange(4))) == ("Array([0.        , 0.84147096, 0.9092974 , 0.14112   ], dtype=float32)")

    def test_indexing_a_numpy_array_with_a_tracer(self):
        x = np.arange(10)

        @jit
        def func(i):
            return x[i]

        with pytest.raises(errors.TracerArrayConversionError, match=r"__array__\(\)"):
            func(0)

    def test_array_made_first(self):
        x = np.arange(10)

        @jit
        def func(i):
            return jnp.asarray(x)[i]

        assert repr(func(0)) == "Array(0, dtype=int32)"

    def test_index_marked_static(self):
        x = np.arange(10)

        @partial(jit, static_argnums=(0,))
        def func(i):
            return x[i]

        assert repr(func(0)) == "Array(0, dtype=int32)"


class TestTracerIntegerConversionError:
    def test_passing_a_tracer_in_place_of_an_integer(self):
        @jit
        def func(x, axis):
            return np.split(x, 2, axis)

        with pytest.raises(errors.TracerIntegerConversionError, match=r"The __index__\(\) method was called") as caught:
            func(np.arange(4), 0)
        assert "depends on the value of the argument axis" in str(caught.value)
        assert isinstance(caught.value, TypeError)

    def test_marked_static(self):
        @partial(jit, static_argnums=1)
        def func(x, axis):
            return np.split(x, 2, axis)

        parts = func(np.arange(10), 0)
        assert repr(parts) == "[Array([0, 1, 2, 3, 4], dtype=int32), Array([5, 6, 7, 8, 9], dtype=int32)]"

    def test_closure(self):
        parts = jit(lambda arr: np.split(arr, 2, 0))(np.arange(4))
        assert repr(parts) == "[Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]"

    def test_indexing_a_list_with_a_tracer(self):
        L = [1, 2, 3]

        @jit
        def func(i):
            return L[i]

        with pytest.raises(errors.TracerIntegerConversionError, match=r"The __index__\(\) method was called"):
            func(0)

    def test_list_made_an_array(self):
        L = [1, 2, 3]

        @jit
        def func(i):
            return jnp.array(L)[i]

        assert repr(func(0)) == "Array(1, dtype=int32)"

    def test_list_index_marked_static(self):
        L = [1, 2, 3]

        @partial(jit, static_argnums=0)
        def func(i):
            return L[i]

        assert repr(func(0)) == "Array(1, dtype=int32, weak_type=True)"


outs = []


class TestUnexpectedTracerError:
    @pytest.fixture(autouse=True)
    def empty(self):
        outs.clear()
        yield
        outs.clear()

    def test_life_cycle_of_a_leaked_value(self):
        @jit  # 1
        def side_effecting(x):
            y = x + 1  # 3
            outs.append(y)  # 4

        x = 1
        side_effecting(x)  # 2: nothing is raised here
        with pytest.raises(errors.UnexpectedTracerError, match="Encountered an unexpected tracer") as caught:
            outs[0] + 1  # 5
        text = str(caught.value)
        assert "side_effecting" in text  # the transformed function
        assert "jit" in text  # the transformation
        assert "int32[]" in text  # what the value looks like
        assert "test_errors_page.py:" in text  # the line that created it
        assert isinstance(caught.value, TypeError)

    @ferrax_only
    def test_the_error_names_the_container(self):
        # the page: "the leak location is not included in the error message because it is difficult to pin down"
        @jit
        def side_effecting(x):
            outs.append(x + 1)

        side_effecting(1)
        with pytest.raises(errors.UnexpectedTracerError, match=r"outs\[0\]"):
            outs[0] + 1

    def test_returned_instead(self):
        @jit
        def not_side_effecting(x):
            y = x + 1
            return y  # noqa: RET504

        x = 1
        y = not_side_effecting(x)
        outs.append(y)
        assert repr(outs[0] + 1) == "Array(3, dtype=int32, weak_type=True)"

    def test_leak_checker(self):
        @jit
        def side_effecting(x):
            y = x + 1
            outs.append(y)

        x = 1
        with pytest.raises(Exception, match=r"(?i)leaked trace") as caught, jax.checking_leaks():
            side_effecting(x)
        assert "side_effecting" in str(caught.value)

    def test_leak_checker_finds_nothing_where_nothing_leaks(self):
        with jax.checking_leaks():
            assert jit(lambda x: x + 1)(1) == 2
            assert jax.grad(lambda x: x * x)(3.0) == 6.0
