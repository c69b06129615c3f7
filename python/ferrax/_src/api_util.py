"""Functions of trees as functions of flat lists."""

import functools
import inspect
from collections.abc import Sequence
from typing import Any

from ferrax._api import _indices, _names, _resolve, completed
from ferrax.api_util import *  # noqa: F403
from ferrax.api_util import fun_sourceinfo as fun_sourceinfo


def fun_signature(fun: Any) -> inspect.Signature | None:
    """A function's signature, None where it has none."""
    try:
        return inspect.signature(fun)
    except (ValueError, TypeError):
        return None


def save_wrapped_fun_debug_info(wrapper: Any, dbg: Any) -> None:
    """Says that a function is known by these names."""
    wrapper.__fun_debug_info__ = dbg


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: int | Sequence[int] | None, argnames: str | Sequence[str] | None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Numbers of arguments from their names, or the other way round, where one of the two is not given."""
    numbers, names = _indices(argnums, "argnums"), _names(argnames, "argnames")
    if argnums is None or argnames is None:
        numbers, names = completed(sig.parameters, numbers, names)
    return tuple(numbers), tuple(names)


def resolve_argnums(
    fun: Any,
    signature: inspect.Signature | None,
    donate_argnums: int | Sequence[int] | None,
    donate_argnames: str | Sequence[str] | None,
    static_argnums: int | Sequence[int] | None,
    static_argnames: str | Sequence[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...], tuple[int, ...], tuple[str, ...]]:
    """Numbers and names of arguments to donate and of static ones, completed by the function's signature."""
    static = _resolve(
        fun, _indices(static_argnums, "static_argnums"), _names(static_argnames, "static_argnames"), "static"
    )
    donated = _resolve(
        fun, _indices(donate_argnums, "donate_argnums"), _names(donate_argnames, "donate_argnames"), "donate"
    )
    return tuple(donated[0]), tuple(donated[1]), tuple(static[0]), tuple(static[1])


def resolve_kwargs(fun: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of a call by position; a TypeError where some have none."""
    signature = inspect.signature((lambda *_, **__: None) if isinstance(fun, functools.partial) else fun)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    if left := [name for name in bound.kwargs if name in kwargs]:
        raise TypeError(f"The following keyword arguments could not be resolved to positions: {', '.join(left)}")
    return bound.args


def flatten_axis_resources(what: str, tree: Any, shardings: Any, tupled_args: bool) -> tuple[Any, ...]:
    """The leaves of a pytree prefix of shardings, one for each leaf of the tree."""
    return tuple(flatten_axes(what, tree, shardings, tupled_args=tupled_args))  # noqa: F405
