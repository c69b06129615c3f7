"""Functions that steer how programs are made rather than what they compute: `platform_dependent`, `composite`, ...

Read next: `control_flow.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ferrax import tree_util
from ferrax._ferrax import Array
from ferrax.typing import ArrayLike

__all__ = [
    "after_all",
    "composite",
    "create_token",
    "dce_sink",
    "platform_dependent",
    "rng_uniform",
    "stage",
    "with_sharding_constraint",
]


def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """Applies the function written for the platform that the program runs on.

    Args:
      *args: arguments of the functions, pytrees of arrays.
      default: the function for all platforms without one of their own.
      **per_platform: functions by platform: `cpu=`, `cuda=`, `rocm=`, `tpu=`.

    Returns:
      The result of the function for this platform. All functions must agree on its type.

    Raises:
      NotImplementedError: there is none for this platform, and no `default`.
      TypeError: the functions' results differ in type.

    >>> from ferrax import lax
    >>> print(lax.platform_dependent(3, cpu=lambda x: x + 1, default=lambda x: x))
    4
    """
    from ferrax._api import eval_shape
    from ferrax._devices import default_backend
    from ferrax._plugins import hardware

    functions = {**per_platform, **({} if default is None else {"default": default})}
    platform = hardware(default_backend())
    chosen = per_platform.get(platform, default)
    if chosen is None:
        known = ", ".join(sorted(per_platform)) or "none"
        raise NotImplementedError(
            f"MLIR translation rule for platform_dependent not found for platform {platform}: it has functions for "
            f"{known}, and no default"
        )
    shapes = {}
    for name, f in functions.items():
        with contextlib.nullcontext() if f is chosen else _elsewhere():
            shapes[name] = eval_shape(f, *args)
    first, *others = shapes.items()
    for name, shape in others:
        if _types(shape) != _types(first[1]):
            raise TypeError(
                f"platform_dependent functions must return values of one type: {first[0]} returns {first[1]}, {name} "
                f"returns {shape}"
            )
    return chosen(*args)


@contextlib.contextmanager
def _elsewhere() -> Iterator[None]:
    """While a function of another platform is traced for its types: a kernel needs no compiler here for them."""
    from ferrax.experimental.pallas._call import interpreting

    interpreting.append(True)
    try:
        yield
    finally:
        interpreting.pop()


def _types(tree: Any) -> tuple[Any, list[Any]]:
    leaves, structure = tree_util.tree_flatten(tree)
    return structure, [(leaf.shape, leaf.dtype) for leaf in leaves]


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """A function that is one named operation in programs, made of others.

    Args:
      decomposition: the function; keyword arguments are static.
      name: the operation's name.
      version: the operation's version.

    Returns:
      A function with the same results, recorded as one operation (`stablehlo.composite` in lowered programs).

    Raises:
      UnexpectedTracerError: when it is called: it closes over a traced value, or a keyword argument is one.
      ValueError: when it is differentiated; give it a `custom_jvp`.
      NotImplementedError: when it is mapped by `vmap`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> tangent = lax.composite(lambda x: jnp.sin(x) / jnp.cos(x), name="my.tangent")
    >>> print(tangent(0.0))
    0.0
    """
    from ferrax.lax._composite import called

    return called(decomposition, name, version)


def stage(x: Any, /) -> Any:
    """The value as one of the function being traced; an array where nothing is traced.

    Args:
      x: an array or number.

    Returns:
      The same number, as an array or tracer.

    >>> from ferrax import lax
    >>> print(lax.stage(3))
    3
    """
    import ferrax.numpy as jnp
    from ferrax.lax import optimization_barrier

    return optimization_barrier(jnp.asarray(x))


def after_all(*operands: Any) -> Any:
    """One token that stands for all of several: effects keep their order in programs without tokens.

    Args:
      *operands: tokens.

    Returns:
      A token: an array without elements.

    >>> from ferrax import lax
    >>> lax.after_all().shape
    (0,)
    """
    import ferrax.numpy as jnp

    return jnp.zeros((0,), np.bool_)


def create_token(_: Any = None) -> Any:
    """A token that nothing comes before: effects keep their order in programs without tokens.

    Args:
      _: is not used.

    Returns:
      A token: an array without elements.

    >>> from ferrax import lax
    >>> lax.create_token().shape
    (0,)
    """
    return after_all()


def _forget(*values: Any) -> None:
    """What is done with values that a program must make."""


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Lets a program compute values that nothing else in it needs.

    Args:
      val: pytree of arrays.
      prevent_mlir_dce: has no effect: the values are computed in any case.

    >>> import ferrax
    >>> from ferrax import lax
    >>> def f(x):
    ...     lax.dce_sink(x * 2)
    ...     return x
    >>> "mul" in str(ferrax.make_jaxpr(f)(1.0))
    True
    """
    from ferrax._callbacks import debug_callback
    from ferrax._core import is_tracer

    traced = [x for x in tree_util.tree_leaves(val) if is_tracer(x)]
    if traced:
        debug_callback(_forget, *traced)


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Asks for values to be spread over devices in a way, inside a program or out of it.

    Args:
      x: pytree of arrays.
      shardings: a sharding, a `PartitionSpec` of the mesh in use, a `Format`, or a pytree prefix of such.

    Returns:
      The arrays with the shardings.

    Raises:
      NotImplementedError: a `Format` asks for another layout than row by row.
      RuntimeError: a bare `PartitionSpec` without a mesh in use.
      TypeError: it is no sharding.
      ValueError: an array has too few axes, or cannot be divided so; the sharding is None, or divides by axes that
        are not automatic.
      AssertionError: the axes of the mesh in use are explicit, and the array has another sharding.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> mesh = jax.sharding.Mesh(jax.devices()[:1], "x")
    >>> jax.lax.with_sharding_constraint(jnp.ones(2), jax.NamedSharding(mesh, jax.P("x"))).sharding.spec
    P('x',)
    """
    from ferrax._prefixes import prefix_leaves, specification_error
    from ferrax.sharding._named import Sharding
    from ferrax.sharding._placement import constrain
    from ferrax.sharding._spec import PartitionSpec

    def is_leaf(s: Any) -> bool:
        return s is None or isinstance(s, (Sharding, PartitionSpec)) or type(s).__name__ == "Format"

    def asked(v: Any, s: Any) -> Any:
        if type(s).__name__ == "Format":
            from ferrax.experimental.layout import sharding_of

            s = sharding_of(s, v.shape, "with_sharding_constraint")
        if s is None:
            raise ValueError(
                "One of with_sharding_constraint arguments got sharding None which is not allowed. Please only pass "
                "`jax.sharding.Sharding` instances."
            )
        if not isinstance(s, (Sharding, PartitionSpec)):
            raise TypeError(
                f"shardings leaf specifications are expected to be PartitionSpec instances or None, but got {s}"
            )
        return constrain(v, s, asked=True)

    try:
        full = prefix_leaves(shardings, x, is_leaf)
    except ValueError as error:
        raise specification_error("with_sharding_constraint shardings", shardings, x, is_leaf, str(error)) from None
    leaves, tree = tree_util.tree_flatten(x)
    return tree.unflatten([asked(v, s) for v, s in zip(leaves, full, strict=True)])


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Sequence[int]) -> Array:
    """Uniform random numbers from the process's own generator, which no key steers.

    Args:
      a: lower end, a scalar.
      b: upper end, a scalar of the same dtype.
      shape: shape of the result.

    Returns:
      Numbers in [a, b) of the operands' dtype. Prefer `ferrax.random.uniform`, whose numbers can be had again.

    >>> from ferrax import lax
    >>> lax.rng_uniform(0.0, 1.0, (2, 3)).shape
    (2, 3)
    """
    import ferrax.numpy as jnp
    from ferrax._shape_dtype import ShapeDtypeStruct
    from ferrax.experimental import io_callback

    a, b = jnp.asarray(a), jnp.asarray(b)
    if a.dtype != b.dtype or a.shape != () or b.shape != ():
        raise ValueError(f"rng_uniform takes two scalars of one dtype, got {a.dtype}{a.shape} and {b.dtype}{b.shape}")
    generator = np.random.default_rng()

    def draw(low: Any, high: Any) -> Any:
        low, high = np.asarray(low), np.asarray(high)
        if low.dtype.kind in "iu":
            return generator.integers(low, high, tuple(shape), dtype=low.dtype)
        return np.asarray(generator.uniform(low, high, tuple(shape)), low.dtype)

    return io_callback(draw, ShapeDtypeStruct(tuple(shape), a.dtype), a, b)
