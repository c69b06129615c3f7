"""Calls of a compiled function with arguments of other types: each of them is named."""

import jax as reference
import pytest

import ferrax


@pytest.mark.parametrize("wrong", [(0,), (1,), (0, 1), (0, 2), (0, 1, 2)])
def test_every_mismatch(wrong):
    for jax in (reference, ferrax):
        one = jax.ShapeDtypeStruct((2,), "float32")
        f = jax.jit(lambda x, y, tree: x + y + tree["k"]).lower(one, one, {"k": one}).compile()
        args = [jax.numpy.ones((3,)) if i in wrong else jax.numpy.ones((2,)) for i in range(3)]
        with pytest.raises(TypeError) as info:
            f(args[0], args[1], {"k": args[2]})
        text = str(info.value)
        lines = [line for line in text.split("\n") if "compiled with" in line]
        names = ["x", "y", "tree['k']"]
        assert len(lines) == len(wrong)
        for i, line in zip(wrong, lines, strict=True):
            assert line.startswith(f"Argument '{names[i]}' compiled with float32[2] and called with float32[3]")
