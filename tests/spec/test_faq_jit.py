"""The FAQ's programs about `jit`: side effects, numerics, slow compiles, methods, kinds of values.

Sections and their order are the page's.
"""

from functools import partial

import numpy as np
import pytest

from tests.spec.backend import FERRAX, ferrax_only, jax, jnp, own

jit = jax.jit


class TestJitChangesTheBehaviourOfMyFunction:
    def run(self, transform, capsys):
        y = 0

        @transform
        def impure_func(x):
            print("Inside:", y)
            return x + y

        for y in range(3):  # the function sees the loop's variable
            print("Result:", impure_func(y))
        return capsys.readouterr().out

    def test_without_jit(self, capsys):
        expected = "Inside: 0\nResult: 0\nInside: 1\nResult: 2\nInside: 2\nResult: 4\n"
        assert self.run(lambda f: f, capsys) == expected

    def test_with_jit(self, capsys):
        assert self.run(jit, capsys) == "Inside: 0\nResult: 0\nResult: 1\nResult: 2\n"


class TestJitChangesTheExactNumericsOfOutputs:
    def test_log_of_sqrt(self, capsys):
        def f(x):
            return jnp.log(jnp.sqrt(x))

        x = jnp.pi
        print(f(x))
        print(jit(f)(x))
        assert capsys.readouterr().out == "0.572365\n0.5723649\n"

    def test_log_of_exp(self, capsys):
        def f(x):
            return jnp.log(jnp.exp(x))

        x = 100.0
        print(f(x))
        print(jit(f)(x))
        assert capsys.readouterr().out == "inf\n100.0\n"


class TestJitDecoratedFunctionIsVerySlowToCompile:
    def test_the_length_of_the_jaxpr_shows_why(self):
        def unrolled(x):
            for _ in range(50):
                x = jnp.sin(x)
            return x

        def structured(x):
            return jax.lax.scan(lambda x, _: (jnp.sin(x), None), x, length=50)[0]

        long, short = (str(jax.make_jaxpr(f)(1.0)).count("\n") for f in (unrolled, structured))
        assert long >= 50 > short
        np.testing.assert_allclose(jit(unrolled)(1.0), jit(structured)(1.0), rtol=1e-6)

    def test_padded_arrays_of_fixed_shape(self):
        traced = []

        @jit
        def mean_of_first(x, n):
            traced.append(1)
            return jnp.where(jnp.arange(x.shape[0]) < n, x, 0).sum() / n

        x = jnp.arange(8.0)
        assert [float(mean_of_first(x, n)) for n in (1, 2, 5)] == [0.0, 0.5, 2.0]
        assert len(traced) == 1


class TestHowToUseJitWithMethods:
    def test_jit_on_a_method(self):
        class CustomClass:
            def __init__(self, x, mul):
                self.x = x
                self.mul = mul

            @jit
            def calc(self, y):
                if self.mul:
                    return self.x * y
                return y

        c = CustomClass(2, True)
        with pytest.raises(TypeError, match="CustomClass") as caught:
            c.calc(3)
        assert "self" in str(caught.value)
        assert own("is not a valid JAX type", "as an abstract array") in str(caught.value)

    def test_strategy_1_helper_function(self, capsys):
        class CustomClass:
            def __init__(self, x, mul):
                self.x = x
                self.mul = mul

            def calc(self, y):
                return _calc(self.mul, self.x, y)

        @partial(jit, static_argnums=0)
        def _calc(mul, x, y):
            if mul:
                return x * y
            return y

        c = CustomClass(2, True)
        print(c.calc(3))
        assert capsys.readouterr().out == "6\n"

    def test_strategy_2_static_self(self, capsys):
        class CustomClass:
            def __init__(self, x, mul):
                self.x = x
                self.mul = mul

            # the page: "this example is broken, as we'll see below"
            @partial(jit, static_argnums=0)
            def calc(self, y):
                if self.mul:
                    return self.x * y
                return y

        c = CustomClass(2, True)
        print(c.calc(3))
        assert capsys.readouterr().out == "6\n"

        c.mul = False
        if FERRAX:
            # the page: "the subsequent method call may return an incorrect result"; here it raises
            with pytest.raises(ValueError, match=r"self.mul changed from True to False"):
                c.calc(3)
            c.mul = True
            assert c.calc(3) == 6
        else:
            assert c.calc(3) == 6  # the page: "Should print 3"

    def hashed_class(self):
        class CustomClass:
            def __init__(self, x, mul):
                self.x = x
                self.mul = mul

            @partial(jit, static_argnums=0)
            def calc(self, y):
                if self.mul:
                    return self.x * y
                return y

            def __hash__(self):
                return hash((self.x, self.mul))

            def __eq__(self, other):
                return isinstance(other, CustomClass) and (self.x, self.mul) == (other.x, other.mul)

        return CustomClass

    def test_strategy_2_with_hash_and_eq(self):
        CustomClass = self.hashed_class()
        assert CustomClass(2, True).calc(3) == 6
        assert CustomClass(2, False).calc(3) == 3
        assert CustomClass(5, True).calc(3) == 15

    @ferrax_only
    def test_strategy_2_mutated_with_hash_and_eq(self):
        CustomClass = self.hashed_class()
        c = CustomClass(2, True)
        assert c.calc(3) == 6
        # never a stale result: the right one, or an error
        c.mul = False
        try:
            assert c.calc(3) == 3
        except ValueError as e:
            assert "mutated" in str(e) or "changed" in str(e)

    def test_strategy_3_pytree(self, capsys):
        class CustomClass:
            def __init__(self, x, mul):
                self.x = x
                self.mul = mul

            @jit
            def calc(self, y):
                if self.mul:
                    return self.x * y
                return y

            def _tree_flatten(self):
                children = (self.x,)  # arrays / dynamic values
                aux_data = {"mul": self.mul}  # static values
                return (children, aux_data)

            @classmethod
            def _tree_unflatten(cls, aux_data, children):
                return cls(*children, **aux_data)

        jax.tree_util.register_pytree_node(CustomClass, CustomClass._tree_flatten, CustomClass._tree_unflatten)

        c = CustomClass(2, True)
        print(c.calc(3))
        c.mul = False  # mutation is detected
        print(c.calc(3))
        c = CustomClass(jnp.array(2), True)  # non-hashable x is supported
        print(c.calc(3))
        assert capsys.readouterr().out == "6\n3\n6\n"


def divide(x, y):
    return x / y if y >= 1.0 else 0.0


class TestDifferentKindsOfJaxValues:
    def test_printing_a_tracer(self, capsys):
        def func(x):
            print(x)
            return jnp.cos(x)

        res = jit(func)(0.0)
        assert res == 1.0
        # the page prints Traced<ShapedArray(float32[])>; JAX has changed it to this
        assert capsys.readouterr().out == "JitTracer(~float32[])\n"

    def test_tracers_of_the_transformations(self):
        seen = []

        def func(x):
            seen.append(str(x))
            return x * 2

        jax.grad(func)(3.0)
        jax.vmap(func)(jnp.arange(3.0))
        jax.make_jaxpr(func)(3.0)
        assert seen[0].startswith("GradTracer(primal=3.0")
        assert seen[1] == "VmapTracer(aval=float32[], batched=float32[3])"
        assert seen[2].startswith("JitTracer(")

    def test_a_regular_value_from_a_tracer(self):
        shapes = []
        jit(lambda x: shapes.append(x.shape) or x)(jnp.ones((2, 3)))
        assert shapes == [(2, 3)]

    def test_jit_needs_a_static_argument(self):
        with pytest.raises(jax.errors.ConcretizationTypeError):
            jit(divide)(3.0, 2.0)
        assert jit(divide, static_argnums=1)(3.0, 2.0) == 1.5
        assert jit(divide, static_argnums=1)(3.0, 0.5) == 0.0

    @pytest.mark.parametrize("kind", [bool, int, float])
    def test_explicit_conversions_need_it_too(self, kind):
        with pytest.raises(jax.errors.ConcretizationTypeError):
            jit(lambda x, y: x / y if kind(y) else 0.0)(3.0, 2.0)

    def test_grad_carries_concrete_values(self):
        assert jax.grad(divide)(3.0, 2.0) == 0.5
        assert jax.grad(divide)(3.0, 0.5) == 0.0
        assert jax.jvp(lambda y: divide(3.0, y), (2.0,), (1.0,)) == (1.5, -0.75)

    def test_grad_under_jit_does_not(self):
        with pytest.raises(jax.errors.TracerBoolConversionError):
            jit(jax.grad(divide))(3.0, 2.0)

    def test_control_flow_traces_abstractly(self):
        def body(i, x):
            return x if i < 2 else x + 1

        with pytest.raises(jax.errors.TracerBoolConversionError):
            jax.lax.fori_loop(0, 3, body, 0)


class TestHowCanIConvertATracerToANumpyArray:
    def test_type_of_a_tracer(self, capsys):
        @jit
        def f(x):
            print(type(x))
            return x

        f(jnp.arange(5))
        # the page prints jax.interpreters.partial_eval.DynamicJaxprTracer, a private name
        assert "Tracer" in capsys.readouterr().out

    def test_impossible(self):
        with pytest.raises(jax.errors.TracerArrayConversionError):
            jit(lambda x: np.asarray(x))(jnp.arange(5))

    def test_debug_print(self, capsys):
        @jit
        def f(x):
            jax.debug.print("x = {x}", x=x)
            return x

        f(jnp.arange(5)).block_until_ready()
        jax.effects_barrier()
        assert capsys.readouterr().out == "x = [0 1 2 3 4]\n"

    def test_pure_callback(self):
        def host(x):
            return np.sin(np.asarray(x)).astype(np.float32)

        @jit
        def f(x):
            return jax.pure_callback(host, jax.ShapeDtypeStruct(x.shape, x.dtype), x) * 2

        x = jnp.arange(5.0)
        np.testing.assert_allclose(f(x), 2 * np.sin(np.arange(5.0)), rtol=1e-6)

    def test_io_callback(self):
        log = []

        def host(x):
            log.append(np.asarray(x).tolist())
            return np.int32(len(log))

        @jit
        def f(x):
            return jax.experimental.io_callback(host, jax.ShapeDtypeStruct((), jnp.int32), x, ordered=True)

        assert [int(f(jnp.arange(n))) for n in (2, 3)] == [1, 2]
        assert log == [[0, 1], [0, 1, 2]]
