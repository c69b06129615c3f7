"""Functions of foreign libraries as operations: XLA's foreign function interface (FFI).

A library in C, C++ or Rust exports handlers, functions with the layout of XLA's FFI. `register_ffi_target` gives one a
name, `ffi_call` calls it from eager code and from programs, on the embedded CPU engine. Read next:
`crates/ferrax-ffi/src/lib.rs`.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NotRequired, TypedDict

import numpy as np

from ferrax import _ferrax
from ferrax._boundary import expose as _expose
from ferrax._primitives import Lowering, TypedLowering
from ferrax.experimental.layout import Layout
from ferrax.extend.core import AbstractToken, Token
from ferrax.sharding._manual import names_in_force

__all__ = [
    "build_ffi_lowering_function",
    "ffi_call",
    "ffi_lowering",
    "include_dir",
    "pycapsule",
    "register_ffi_target",
    "register_ffi_target_as_batch_partitionable",
    "register_ffi_type",
    "register_ffi_type_id",
]

_VMAP_METHODS = (
    "sequential",
    "sequential_unrolled",
    "expand_dims",
    "broadcast_all",
    "legacy_vectorized",
    None,
)


class _TypeRegistration(TypedDict):
    """What `register_ffi_type` takes.

    Attributes:
      type_id: capsule with the address of an `XLA_FFI_TypeId`.
      type_info: capsule with the address of an `XLA_FFI_TypeInfo`.
    """

    type_id: Any
    type_info: NotRequired[Any]


#: Names of targets of the untyped interface.
_untyped: set[str] = set()


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any) -> None:
    """Gives handlers of a foreign library a name, for `ffi_call`.

    Args:
      name: the name.
      fn: a capsule with the address of a handler (`pycapsule`), or capsules by stage: `"instantiate"`, `"prepare"`,
        `"initialize"` and `"execute"`, which is always needed.
      platform: where it runs; programs of the embedded engine call handlers for `"cpu"`.
      api_version: 1, the typed interface. A target of 0, the interface of untyped custom calls, can be registered,
        as libraries do with all that they have; a call to it raises NotImplementedError.
      **kwargs: `traits`, which are accepted for compatibility.

    Raises:
      TypeError: `fn` is no capsule.
      JaxRuntimeError: the handler was compiled for another version of the interface, or the name has another one.

    >>> import ctypes, ferrax as jax
    >>> try:
    ...     jax.ffi.register_ffi_target("plain", ctypes.pythonapi.Py_IsInitialized)
    ... except TypeError as error:
    ...     print(str(error).partition(";")[0])
    an FFI handler must be a PyCapsule, not _FuncPtr
    """
    if unknown := set(kwargs) - {"traits"}:
        raise TypeError(f"register_ffi_target() got an unexpected keyword argument {min(unknown)!r}")
    if api_version == 0:
        _untyped.add(name)
        return
    if api_version != 1:
        raise _ferrax.JaxRuntimeError(
            f"UNIMPLEMENTED: API version {api_version} is not supported. The supported version is 1."
        )
    _ferrax.ffi_register(name, fn if isinstance(fn, dict) else {"execute": fn}, platform)


def register_ffi_type(name: str, type_registration: _TypeRegistration, platform: str = "cpu") -> None:
    """Gives a type of objects that handlers keep between stages its number.

    Args:
      name: name of the type, one in the process.
      type_registration: capsules: `"type_id"` of the type's `XLA_FFI_TypeId`, which gets the number, and
        `"type_info"` of its `XLA_FFI_TypeInfo`, by which objects end.
      platform: where its handlers run.

    Raises:
      JaxRuntimeError: there is no `type_id`, or the name has another number.

    >>> import ferrax as jax
    >>> try:
    ...     jax.ffi.register_ffi_type("state", {})
    ... except jax.errors.JaxRuntimeError as error:
    ...     print(error)
    INVALID_ARGUMENT: register_ffi_type takes a dictionary with a capsule "type_id" and, as a rule, one "type_info"
    """
    if not isinstance(type_registration, dict) or "type_id" not in type_registration:
        raise _ferrax.JaxRuntimeError(
            'INVALID_ARGUMENT: register_ffi_type takes a dictionary with a capsule "type_id" and, as a rule, one '
            '"type_info"'
        )
    _ferrax.ffi_register_type(name, type_registration["type_id"], type_registration.get("type_info"))


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Raises: types have more than a number; `register_ffi_type` takes both.

    Args:
      name: name of the type.
      obj: capsule of its number.
      platform: where its handlers run.

    Raises:
      ValueError: always.

    >>> import ferrax as jax
    >>> try:
    ...     jax.ffi.register_ffi_type_id("state", None)
    ... except ValueError as error:
    ...     print(error)
    register_ffi_type_id is not supported any more: use jax.ffi.register_ffi_type('state', {'type_id': ...})
    """
    raise ValueError(
        f"register_ffi_type_id is not supported any more: use jax.ffi.register_ffi_type({name!r}, {{'type_id': ...}})"
    )


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Says that a target treats the leading axes of its operands as a batch.

    The devices of the embedded engine share one memory, so that a handler gets whole arrays in any case: nothing
    changes there.

    Args:
      name: name of the target.

    >>> import ferrax as jax
    >>> jax.ffi.register_ffi_target_as_batch_partitionable("rms_norm")
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a target is a str, not {type(name).__name__}")


_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)


def pycapsule(funcptr: Any) -> Any:
    """A capsule of a function that `ctypes` loaded.

    Args:
      funcptr: the function, as `ctypes.cdll.LoadLibrary("./library.so").handler`.

    Returns:
      A `PyCapsule` with its address.

    Raises:
      ValueError: the address is null.

    >>> import ctypes, ferrax as jax
    >>> type(jax.ffi.pycapsule(ctypes.pythonapi.Py_IsInitialized)).__name__
    'PyCapsule'
    """
    address = ctypes.cast(funcptr, ctypes.c_void_p)
    if not address.value:
        raise ValueError("pycapsule takes a function; the address of this one is null")
    return _new_capsule(address, None, None)


def include_dir() -> str:
    """The folder of XLA's headers (`xla/ffi/api/ffi.h`), for compiling handlers: that of an installed jaxlib.

    Returns:
      Its path.

    Raises:
      RuntimeError: jaxlib is not installed. ferrax needs no headers itself; those of an XLA checkout do as well.

    >>> import ferrax as jax
    >>> jax.ffi.include_dir().endswith("include")
    True
    """
    found = importlib.util.find_spec("jaxlib")
    for folder in (found.submodule_search_locations or ()) if found else ():
        path = os.path.join(folder, "include")
        if os.path.isdir(path):
            return path
    raise RuntimeError(
        "the headers of XLA's FFI come with jaxlib, which is not installed: install it (pip install jaxlib) to compile "
        "handlers against them, or use those of an XLA checkout; ferrax itself needs none"
    )


def _fastest_first(layout: Any, rank: int) -> list[int]:
    """Axes from the fastest to the slowest, of a layout that names them the other way round."""
    if layout is None:
        return list(reversed(range(rank)))
    if isinstance(layout, Layout):
        if layout.tiling:
            raise ValueError("The FFI does not support layouts with tiling")
        layout = layout.major_to_minor
    return [int(axis) for axis in reversed(tuple(layout))]


def _layouts(layouts: Any, ranks: list[int], what: str) -> list[list[int]]:
    if layouts is None:
        layouts = [None] * len(ranks)
    if len(layouts) != len(ranks):
        raise ValueError(
            f"The number of {what} arguments ({len(ranks)}) must equal the number of {what} layouts ({len(layouts)})."
            if what == "input"
            else f"The number of outputs ({len(ranks)}) must equal the number of output layouts ({len(layouts)})."
        )
    return [_fastest_first(layout, rank) for layout, rank in zip(layouts, ranks, strict=True)]


def _constant(name: str, value: Any) -> Any:
    """An attribute as `bind_ffi_call` takes it: bytes, (dtype, bytes, whether it is an array), or such by name."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    if isinstance(value, Mapping):
        return _constants(value)
    if isinstance(value, (bool, int, float, np.bool_, np.number)) or (
        isinstance(value, np.generic) and value.dtype.kind == "V"
    ):
        scalar = np.int64(value) if type(value) is int else np.asarray(value)
        return str(scalar.dtype), scalar.tobytes(), False
    if isinstance(value, np.ndarray):
        return str(value.dtype), np.ascontiguousarray(value).tobytes(), True
    raise TypeError(
        f"the attribute {name} of an FFI call is a {type(value).__name__}; handlers take numbers, strings, NumPy "
        "arrays (np.array(values, dtype) of a list or tuple), and dictionaries of these"
    )


def _constants(attributes: Mapping[str, Any]) -> dict[str, Any]:
    for name in attributes:
        if not isinstance(name, str):
            raise TypeError(f"names of attributes of an FFI call are str, not {type(name).__name__}: {name!r}")
    return {name: _constant(name, value) for name, value in attributes.items()}


def _result(result: Any, at: int) -> tuple[tuple[int, ...], str]:
    if result is Token or isinstance(result, (Token, AbstractToken)):
        raise NotImplementedError("an FFI call with tokens is not implemented: ferrax's programs have none")
    if not (hasattr(result, "shape") and hasattr(result, "dtype")):
        raise ValueError(
            "All elements of result_shape_dtypes must have 'shape' and 'dtype' attributes. "
            f"Got {result} at position {at}."
        )
    dtype = result.dtype
    return tuple(result.shape), str(dtype) if str(dtype).startswith("key<") else str(np.dtype(dtype))


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Any] | None = None,
    output_layouts: Any = None,
    input_output_aliases: dict[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """A function that calls a registered target.

    The call works in eager code and programs, under `vmap` as `vmap_method` says, and in the rules of
    `ferrax.custom_jvp` and `ferrax.custom_vjp`, which give it derivatives.

    Args:
      target_name: the name given to `register_ffi_target`.
      result_shape_dtypes: what the handler returns, an object with `shape` and `dtype`, or a sequence of such.
      has_side_effect: whether the call runs even where nobody uses its results.
      vmap_method: `"sequential"` (row by row), `"sequential_unrolled"`, `"expand_dims"` or `"broadcast_all"` (one call
        on the whole batch; operands without the axis get one of size 1, or a broadcast one), `"legacy_vectorized"`
        (these stay as they are); `None` does not vectorize.
      input_layouts: for each operand its axes from the slowest to the fastest in memory as the handler wants it, a
        `Layout`, or None for row-major order.
      output_layouts: likewise for results.
      input_output_aliases: operands by number, each with the result that is the same buffer to the handler; the
        caller's array keeps its values.
      custom_call_api_version: 4, the typed interface.
      legacy_backend_config: must be None.

    Returns:
      Function of the operands, arrays; keyword arguments are attributes: numbers (of exactly their NumPy dtype;
      Python's are int64, float64 and bool), strings, NumPy arrays and dictionaries.

    Raises:
      ValueError: layouts or aliases that do not fit.
      JaxRuntimeError: from the call: the handler's own error, with its code in front, or no such target.

    >>> import numpy as np, ferrax as jax
    >>> nothing = jax.ffi.ffi_call("nobody", jax.ShapeDtypeStruct((2,), np.float32))
    >>> jax.eval_shape(nothing, 1.0, eps=np.float32(1e-5))
    ShapeDtypeStruct(shape=(2,), dtype=float32)
    """
    if vmap_method not in _VMAP_METHODS:
        raise ValueError(f"vmap_method must be on of the allowed methods {list(_VMAP_METHODS)}, but got: {vmap_method}")
    if custom_call_api_version < 4:
        raise NotImplementedError(
            f"the FFI call to {target_name!r} asks for the untyped custom-call interface "
            f"(custom_call_api_version={custom_call_api_version}), which ferrax does not call; 4 is the typed one"
        )
    if legacy_backend_config is not None:
        raise ValueError(
            "The use of the legacy_backend_config parameter requires custom_call_api_version < 4; got "
            f"{custom_call_api_version}."
        )
    several = isinstance(result_shape_dtypes, Sequence)
    results = [_result(r, at) for at, r in enumerate(result_shape_dtypes if several else [result_shape_dtypes])]
    laid_out = _layouts(
        output_layouts if several or output_layouts is None else (output_layouts,),
        [len(shape) for shape, _ in results],
        "output",
    )

    def wrapped(*args: Any, **attributes: Any) -> Any:
        if target_name in _untyped:
            raise NotImplementedError(
                f"the target {target_name!r} is of the untyped custom-call interface (api_version=0), which ferrax "
                "does not call: define its handler with XLA_FFI_DEFINE_HANDLER_SYMBOL of xla/ffi/api/ffi.h and "
                "register it with api_version=1"
            )
        avals = [_ferrax.typeof(x) for x in args]
        inputs = _layouts(input_layouts, [len(aval.shape) for aval in avals], "input")
        aliases = _aliases(input_output_aliases or {}, [(a.shape, str(a.dtype)) for a in avals], results)
        for i, o in aliases:
            if inputs[i] != laid_out[o]:
                raise ValueError(
                    f"input_output_aliases contains the mapping '{i}:{o}' referring to an input with layout "
                    f"{inputs[i]} and an output with a different layout {laid_out[o]}."
                )
        method = vmap_method
        if method is None and names_in_force():
            method = "sequential"  # each device calls it, with its parts
        outs = _ferrax.bind_ffi_call(
            target_name, results, args, _constants(attributes), inputs, laid_out, aliases, has_side_effect, method
        )
        if not several:
            return outs[0]
        return tuple(outs) if isinstance(result_shape_dtypes, tuple) else outs

    wrapped.__name__ = wrapped.__qualname__ = target_name
    return wrapped


def _aliases(asked: Mapping[Any, Any], operands: list[Any], results: list[Any]) -> list[list[int]]:
    aliases = []
    for i, o in sorted((int(i), int(o)) for i, o in asked.items()):
        for kind, at, among in (("input", i, operands), ("output", o, results)):
            if not 0 <= at < len(among):
                raise ValueError(
                    f"input_output_aliases contains the mapping '{i}:{o}' with {kind} index {at} outside the range "
                    f"[0, {len(among)})."
                )
        if operands[i] != results[o]:
            given, wanted = (f"{dtype}[{','.join(map(str, shape))}]" for shape, dtype in (operands[i], results[o]))
            raise ValueError(
                f"input_output_aliases contains the mapping '{i}:{o}' referring to an input with abstract value "
                f"{given} and an output with a different abstract value {wanted}."
            )
        aliases.append([i, o])
    return aliases


class _Operation(NamedTuple):
    """What a lowering function gives: the results of its call."""

    results: list[Any]


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """A function of a lowering's context, operands and parameters that calls a target; see `ffi_lowering`.

    Args:
      call_target_name: the name given to `register_ffi_target`.
      operand_layouts: for each operand its axes from the fastest to the slowest, or None for row-major order.
      result_layouts: likewise for results.
      backend_config: attributes besides the parameters.
      skip_ffi_layout_processing: whether layouts are left out.
      **lowering_args: `has_side_effect`, `operand_output_aliases`, and `api_version=4`.

    Returns:
      A function whose result has the attribute `results`.

    Raises:
      NotImplementedError: another argument, which would be for MLIR.

    >>> import ferrax as jax
    >>> callable(jax.ffi.build_ffi_lowering_function("rms_norm"))
    True
    """
    known = {"has_side_effect", "operand_output_aliases", "api_version"}
    if unknown := set(lowering_args) - known:
        raise NotImplementedError(
            f"the argument {min(unknown)} of an FFI lowering is for MLIR, which ferrax does not have"
        )
    if isinstance(backend_config, str):
        raise ValueError("When api_version >= 4, backend_config must be a dictionary.")
    if skip_ffi_layout_processing:
        operand_layouts = result_layouts = None

    def slowest_first(layouts: Sequence[Any] | None) -> Any:
        return layouts and [x if x is None or isinstance(x, Layout) else tuple(x)[::-1] for x in layouts]

    def lower(ctx: Any, *operands: Any, **params: Any) -> _Operation:
        call = ffi_call(
            call_target_name,
            list(ctx.avals_out),
            has_side_effect=bool(lowering_args.get("has_side_effect", False)),
            input_layouts=slowest_first(operand_layouts),
            output_layouts=slowest_first(result_layouts),
            input_output_aliases=lowering_args.get("operand_output_aliases"),
            custom_call_api_version=lowering_args.get("api_version", 4),
        )
        return _Operation(call(*operands, **(backend_config or {}), **params))

    return lower


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Lowering:
    """A rule for `ferrax.interpreters.mlir.register_lowering` that calls a target.

    The target gets the primitive's operands; its parameters are attributes, its abstract evaluation gives the results.

    Args:
      call_target_name: the name given to `register_ffi_target`.
      operand_layouts: for each operand its axes from the fastest to the slowest, or None for row-major order.
      result_layouts: likewise for results.
      backend_config: attributes besides the parameters.
      skip_ffi_layout_processing: whether layouts are left out.
      **lowering_args: as for `build_ffi_lowering_function`.

    Returns:
      The rule.

    Raises:
      NotImplementedError: as for `build_ffi_lowering_function`.

    >>> import ferrax as jax
    >>> norm_p = jax.extend.core.Primitive("rms_norm")
    >>> jax.interpreters.mlir.register_lowering(norm_p, jax.ffi.ffi_lowering("rms_norm"), platform="cpu")
    """
    function = build_ffi_lowering_function(
        call_target_name,
        operand_layouts=operand_layouts,
        result_layouts=result_layouts,
        backend_config=backend_config,
        skip_ffi_layout_processing=skip_ffi_layout_processing,
        **lowering_args,
    )
    return TypedLowering(lambda ctx, *operands, **params: function(ctx, *operands, **params).results)


_expose(globals())
