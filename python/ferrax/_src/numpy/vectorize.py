"""Functions of `ferrax.numpy`, under the name of JAX's file `vectorize`, with its helpers: quaxed builds on them."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from ferrax._src._public import names_of
from ferrax.numpy import _functional
from ferrax.numpy._args import common_shape

__getattr__ = names_of(__name__, "ferrax.numpy")

_parse_gufunc_signature = _functional._parse_signature


def _apply_excluded(
    func: Callable[..., Any], excluded: Collection[int | str], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], Sequence[Any], dict[str, Any]]:
    given = [i for i in range(len(args)) if i not in excluded]
    named = {k: v for k, v in kwargs.items() if k in excluded}

    def function(*values: Any, **others: Any) -> Any:
        merged = list(args)
        for i, value in zip(given, values):
            merged[i] = value
        return func(*merged, **others, **named)

    return function, [args[i] for i in given], {k: v for k, v in kwargs.items() if k not in named}


def _update_dim_sizes(
    dim_sizes: dict[str, int], shape: tuple[int, ...], core_dims: Any, error_context: str = "", *, is_input: bool
) -> None:
    if not is_input and len(shape) != len(core_dims):
        raise ValueError(f"output shape {shape} does not match core dimensions {core_dims} {error_context}")
    _functional._check_core(shape, core_dims, dim_sizes, "input" if is_input else "output", error_context)


def _parse_input_dimensions(
    args: Sequence[Any], input_core_dims: Any, error_context: str = ""
) -> tuple[tuple[int, ...], dict[str, int]]:
    if len(args) != len(input_core_dims):
        raise TypeError(
            f"wrong number of positional arguments: expected {len(input_core_dims)}, got {len(args)} {error_context}"
        )
    sizes: dict[str, int] = {}
    for x, names in zip(args, input_core_dims):
        _update_dim_sizes(sizes, x.shape, names, error_context, is_input=True)
    return common_shape(*(x.shape[: x.ndim - len(names)] for x, names in zip(args, input_core_dims))), sizes


def _check_output_dims(
    func: Callable[..., Any], dim_sizes: dict[str, int], expected_output_core_dims: Any, error_context: str = ""
) -> Callable[..., Any]:
    checked: Callable[..., Any] = _functional._with_checked_output(
        func, expected_output_core_dims, dim_sizes, error_context
    )
    return checked
