"""Writes what Python has of Rust, from what the built module itself says: type stubs and the elementwise functions.

`python/ferrax/_ferrax.pyi` has the extension module; `numpy/_ufuncs.py` and `lax/elementwise.py` export the elementwise
functions, and the `.pyi` beside each has their types and docstrings; `lax/_primitive_names.py` lists the primitives
that `lax` has as objects. Names, bases, signatures and docstrings are the built module's; types that a signature cannot
tell come from the tables below, and are `Any` where these are silent.
`make stubs` runs it, and `tests/docs/test_stubs.py` checks that its output is current.
"""

import importlib
import inspect
import pathlib
import re
import textwrap
import types
from collections.abc import Iterable
from typing import Any

PATH = pathlib.Path(__file__).parents[1] / "python" / "ferrax" / "_ferrax.pyi"
UFUNCS = PATH.parent / "numpy" / "_ufuncs.pyi"
ELEMENTWISE = PATH.parent / "lax" / "elementwise.pyi"
PRIMITIVES = PATH.parent / "lax" / "_primitives.pyi"

NAMES = PRIMITIVES.with_name("_primitive_names.py")

NAMES_HEADER = '''"""The names of `_primitives.py`, which loads when one is asked for; written by `tools/stubs.py`."""
'''

#: Primitives that JAX's `lax` does not have: of random keys, of functions with rules or programs of their own, of the
#: host; those of `lax.linalg` it has there.
OUTSIDE_LAX = re.compile(r"random_.*|custom_.*|remat.*|.*_callback|debug_print|.*-.*|.*call|(lu|tridiagonal)_solve")
OUTSIDE_LAX_BY_NAME = {
    "add_any", "add_jaxvals", "empty2", "get", "jit", "name", "pbroadcast", "preduced", "psum_invariant", "pvary",
    "reduce_scatter", "swap", "threefry2x32", "vary_unreduced_cast_p", "while_linear",
}  # fmt: skip

PRIMITIVES_HEADER = '''"""Type stubs of the primitives' objects; written by `tools/stubs.py`, not by hand."""

from ferrax._primitives import Primitive
'''

HEADER = '''"""Type stubs of the extension module; written by `tools/stubs.py`, not by hand."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np
'''

#: Types of attributes, by name.
ATTRIBUTES = {
    "T": "Array", "mT": "Array", "real": "Array", "imag": "Array", "at": "_IndexUpdateHelper",
    "shape": "tuple[int, ...]", "dtype": "np.dtype[Any]", "ndim": "int", "size": "int", "nbytes": "int",
    "itemsize": "int", "weak_type": "bool", "committed": "bool", "_committed": "bool", "id": "int", "platform": "str",
    "name": "str", "is_fully_addressable": "bool", "is_fully_replicated": "bool", "num_leaves": "int",
    "num_nodes": "int",
}  # fmt: skip

#: What methods and functions return, by name.
RETURNS = {
    "__bool__": "bool", "__int__": "int", "__float__": "float", "__complex__": "complex", "__index__": "int",
    "__len__": "int", "__hash__": "int", "__repr__": "str", "__str__": "str", "__format__": "str",
    "__contains__": "bool", "__iter__": "Iterator[Any]", "__array__": "np.ndarray[Any, Any]", "tolist": "Any",
    "__setitem__": "NoReturn", "__delitem__": "NoReturn", "delete": "None", "is_deleted": "bool", "is_ready": "bool",
    "tobytes": "bytes", "is_tracer": "bool", "is_arraylike": "bool", "is_eager": "bool", "shape": "tuple[int, ...]",
    "tree_differences": "list[str]", "devices": "set[Device]", "item": "Any", "__init__": "None", "__enter__": "Any",
    "__exit__": "Any", "__reduce__": "tuple[Any, ...]", "__divmod__": "tuple[Array, Array]",
    "__rdivmod__": "tuple[Array, Array]", "_panic_for_tests": "NoReturn",
    "__reversed__": "Iterator[Array]", "__round__": "Array",
}  # fmt: skip

#: Methods of arrays that give an array, and those that give something else.
ARRAYS = {
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "astype", "byteswap", "choose", "clip", "compress",
    "conj", "conjugate", "copy", "cumprod", "cumsum", "diagonal", "dot", "flatten", "max", "mean", "min", "prod",
    "ptp", "ravel", "repeat", "reshape", "round", "searchsorted", "sort", "squeeze", "std", "sum", "swapaxes",
    "take", "trace", "transpose", "var", "view", "to_device", "block_until_ready", "addressable_data",
}  # fmt: skip
OTHERS = {"nonzero": "tuple[Array, ...]", "on_device_size_in_bytes": "int", "copy_to_host_async": "None"}
#: Types of parameters of arrays' methods, by name.
PARAMETERS = {"keepdims": "bool", "promote_integers": "bool", "out": "None", "ndigits": "int | None", "decimals": "int"}

#: Special methods whose slots take a parameter.
OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "matmul", "and", "or", "xor", "lshift", "rshift"]
BINARY = {f"__{r}{n}__" for n in [*OPERATORS, "divmod"] for r in ("", "r")}
COMPARISONS = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}
UNARY = {"__neg__", "__pos__", "__abs__", "__invert__"}
SKIPPED = {"__doc__", "__module__", "__new__", "__getattribute__", "__dict__", "__weakref__", "__slots__"}


def parameters(signature: inspect.Signature, method: bool) -> str:
    """The parameters of a stub, every type `Any`."""
    out, starred, positional_only = [], False, False
    for i, (name, p) in enumerate(signature.parameters.items()):
        if positional_only and p.kind is not p.POSITIONAL_ONLY:
            out.append("/")
            positional_only = False
        positional_only |= p.kind is p.POSITIONAL_ONLY
        if p.kind is p.KEYWORD_ONLY and not starred:
            out.append("*")
            starred = True
        if p.kind is p.VAR_POSITIONAL:
            starred = True
        mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        text = name if method and i == 0 else f"{mark}{name}: {PARAMETERS.get(name, 'Any') if method else 'Any'}"
        out.append(text if p.default is p.empty else f"{text} = ...")
    return ", ".join([*out, "/"] if positional_only else out)


def function(name: str, value: Any, method: bool = False, array: bool = False) -> str:
    """The stub of a function or method."""
    returns = RETURNS.get(name, "Any")
    if array:
        returns = "Array" if name in ARRAYS else OTHERS.get(name, returns)
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return f"def {name}({'self, ' if method else ''}*args: Any, **kwargs: Any) -> {returns}: ..."
    return f"def {name}({parameters(signature, method)}) -> {returns}: ..."


def special(name: str, array: bool) -> str | None:
    """The stub of a special method, whose slot says nothing of its types."""
    result = "Array" if array else "Any"
    if name in BINARY:
        return f"def {name}(self, other: Any, /) -> {RETURNS.get(name, result)}: ..."
    if name in COMPARISONS:
        ignore = "  # type: ignore[override]" if array and name in ("__eq__", "__ne__") else ""
        return f"def {name}(self, other: Any, /) -> {result if array else 'bool'}: ...{ignore}"
    if name in UNARY:
        return f"def {name}(self) -> {result}: ..."
    if name in ("__pow__", "__rpow__"):
        return f"def {name}(self, other: Any, modulo: Any = ..., /) -> {result}: ..."
    if name == "__getitem__":
        return f"def __getitem__(self, index: Any, /) -> {result}: ..."
    return None


def member(name: str, value: Any, array: bool) -> list[str]:
    """The lines of a class's member; none for what needs no stub."""
    if name in SKIPPED:
        return []
    if array and name in ("__setitem__", "__delitem__"):
        # they are there for their advice
        return []
    text = special(name, array)
    if text is not None:
        return [text]
    if isinstance(value, (types.GetSetDescriptorType, types.MemberDescriptorType, property)):
        return ["@property", f"def {name}(self) -> {ATTRIBUTES.get(name, 'Any')}: ..."]
    if isinstance(value, (staticmethod, classmethod)):
        kind = "static" if isinstance(value, staticmethod) else "class"
        first = "" if kind == "static" else "cls, "
        return [f"@{kind}method", f"def {name}({first}*args: Any, **kwargs: Any) -> Any: ..."]
    if callable(value):
        return [function(name, value, method=True, array=array)]
    return [] if name.startswith("__") else [f"{name}: ClassVar[Any]"]


def constructor(cls: type) -> str:
    """The stub of `__init__` for a class that is made by `__new__`."""
    try:
        text = parameters(inspect.signature(cls), method=False)
    except (TypeError, ValueError):
        text = "*args: Any, **kwargs: Any"
    return f"def __init__(self{', ' if text else ''}{text}) -> None: ..."


def class_(cls: type, known: dict[type, str]) -> list[str]:
    """The lines of a class."""
    bases = [b for b in cls.__mro__[1:] if b in known or b.__module__ == "builtins"]
    base = known.get(bases[0], bases[0].__name__) if bases and bases[0] is not object else ""
    array = base in ("Array", "Tracer") or known[cls] == "Array"
    lines = [line for name, value in sorted(vars(cls).items()) for line in member(name, value, array)]
    if "__new__" in vars(cls) and "__init__" not in vars(cls):
        lines.insert(0, constructor(cls))
    head = f"class {known[cls]}{f'({base})' if base else ''}:"
    return [head, *(f"    {line}" for line in lines)] if lines else [f"{head} ..."]


def submodule(name: str, module: types.ModuleType) -> list[str]:
    """A submodule, as a class whose attributes are its functions."""
    lines = []
    for key in sorted(vars(module)):
        value = getattr(module, key)
        if key.startswith("__"):
            continue
        if isinstance(value, types.BuiltinFunctionType):
            lines += ["@staticmethod", function(key, value)]
        else:
            lines.append(f"{key}: ClassVar[{'type[Any]' if isinstance(value, type) else 'Callable[..., Any]'}]")
    return [f"class {name}:", *(f"    {line}" for line in lines)]


def stubs() -> str:
    """The text of the stub file."""
    from ferrax import _ferrax, _members

    for _, file, _ in _members.MEMBERS:
        importlib.import_module(f"ferrax.{file}")

    names = [n for n in dir(_ferrax) if not n.startswith("__")]
    known: dict[type, str] = {}
    for name in names:
        value = getattr(_ferrax, name)
        if isinstance(value, type):
            known.setdefault(value, name)
    out = [HEADER]
    depth = sorted(known, key=lambda cls: (len(cls.__mro__), known[cls]))
    for cls in depth:
        out += [*class_(cls, known), ""]
    for name in names:
        value = getattr(_ferrax, name)
        if isinstance(value, types.ModuleType):
            out += [*submodule(name, value), ""]
        elif not isinstance(value, type):
            out.append(function(name, value))
        elif known[value] != name:
            out.append(f"{name} = {known[value]}")
    return "\n".join(out) + "\n"


UFUNCS_HEADER = '''"""Type stubs of the elementwise functions that are Rust; written by `tools/stubs.py`."""

from typing import Any, overload

from ferrax._ferrax import Array
from ferrax.numpy._ufunc import ufunc
from ferrax.typing import ArrayLike

class _Unary(ufunc):
    def __call__(self, x: ArrayLike, /, *, out: None = ..., where: None = ...) -> Array: ...  # type: ignore[override]

class _Binary(ufunc):
    def __call__(  # type: ignore[override]
        self, x: ArrayLike, y: ArrayLike, /, *, out: None = ..., where: None = ...
    ) -> Array: ...
'''

ELEMENTWISE_HEADER = '''"""Type stubs of the elementwise functions that are Rust; written by `tools/stubs.py`."""

from typing import Any

from ferrax._ferrax import Array
from ferrax.typing import ArrayLike
'''

#: Functions of the tables whose stubs are not like the others.
WHERE = [
    "@overload",
    "def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Array: ...",
    "@overload",
    "def where(condition: ArrayLike, /, *, size: int | None = ..., fill_value: Any = ...) -> tuple[Array, ...]: ...",
]
OPTIONS = {"accuracy": "Any", "out_dtype": "Any", "arr": "ArrayLike | None", "min": "ArrayLike | None",
           "max": "ArrayLike | None"}  # fmt: skip


def elementwise(name: str, value: Any) -> list[str]:
    """The stub of a function of a table, with its docstring."""
    if name == "where":
        return WHERE
    if type(value).__name__ == "ufunc":
        return [f"{name}: {'_Unary' if value.nin == 1 else '_Binary'}"]
    out, starred = [], False
    every = list(inspect.signature(value).parameters.values())
    for i, p in enumerate(every):
        if p.kind is p.KEYWORD_ONLY and not starred:
            out.append("*")
            starred = True
        optional = p.default is not p.empty
        out.append(f"{p.name}: {OPTIONS.get(p.name, 'Any') if optional else 'ArrayLike'}{' = ...' if optional else ''}")
        if p.kind is p.POSITIONAL_ONLY and (i + 1 == len(every) or every[i + 1].kind is not p.POSITIONAL_ONLY):
            out.append("/")
    text = value.__doc__.rstrip().replace("\\", "\\\\")
    return [f"def {name}({', '.join(out)}) -> Array:", f'    """{text}', '    """', ""]


def functions(module: types.ModuleType, named: str) -> dict[str, Any]:
    """The elementwise functions of a submodule of Rust: those that say they are of `named`, and what they do."""
    return {
        name: value
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == named and not isinstance(value, type) and value.__doc__
    }


def listed(names: Iterable[str]) -> str:
    """`__all__`, in lines that are not too long."""
    text = ", ".join(f'"{name}"' for name in names)
    lines = textwrap.wrap(text, 112, break_long_words=False, break_on_hyphens=False)
    return "\n".join(["__all__ = [", *(f"    {line}" for line in lines), "]  # fmt: skip", ""])


def table(header: str, of: dict[str, Any]) -> str:
    """The text of the stub file of a module of such functions."""
    lines = [header]
    for name, value in of.items():
        lines += elementwise(name, value)
    return "\n".join([*lines, listed(of)])


def exports(header: str, of: dict[str, Any]) -> str:
    """The text of a module of such functions."""
    return "\n".join([header, *(f"{name} = _rust.{name}" for name in of), "", listed(of)])


LAX_MODULE = '''"""Elementwise functions of one and two operands, which are Rust callables; written by `tools/stubs.py`.

Operands are not promoted: those of one call have one dtype, and equal shapes, axes of size one, or rank 0. What they
are stands beside their blocks in `crates/ferrax-ops/src/elementwise`. Read next: `conversion.py` for `select`, `clamp`
and changes of dtype, `ferrax.numpy` for the functions that promote.
"""

from ferrax._ferrax import lax as _rust
'''

UFUNCS_MODULE = '''"""The elementwise functions that are Rust: one primitive, or a few, with NumPy's promotion.

Written by `tools/stubs.py`; what they are stands in `crates/ferrax/src/numpy`. Read `_elementwise.py` for the functions
that are Python.
"""

from ferrax._ferrax import numpy as _rust
'''


def files() -> dict[pathlib.Path, str]:
    """The files and what they should hold."""
    # with what modules add to the extension's classes
    import ferrax.extend.core
    import ferrax.sharding  # noqa: F401
    from ferrax import _ferrax

    lax, ufuncs = functions(_ferrax.lax, "ferrax.lax"), functions(_ferrax.numpy, "ferrax.numpy")
    return {
        PATH: stubs(),
        UFUNCS: table(UFUNCS_HEADER, ufuncs),
        ELEMENTWISE: table(ELEMENTWISE_HEADER, lax),
        UFUNCS.with_suffix(".py"): exports(UFUNCS_MODULE, ufuncs),
        ELEMENTWISE.with_suffix(".py"): exports(LAX_MODULE, lax),
        NAMES: names_of_primitives(),
        PRIMITIVES: primitives(),
    }


def primitive_names() -> list[str]:
    """The names under which `lax` has primitives, of all that the registry has."""
    from ferrax.extend.core import primitives
    from ferrax.lax import linalg

    stems = (name.removesuffix("_p") for name in primitives.__all__)
    outside = OUTSIDE_LAX_BY_NAME | set(linalg.__all__)
    return [f"{stem}_p" for stem in stems if stem not in outside and not OUTSIDE_LAX.fullmatch(stem)]


def names_of_primitives() -> str:
    """The text of the module that lists the primitives of `lax`."""
    lines = textwrap.wrap(" ".join(primitive_names()), 112)
    return "\n".join([NAMES_HEADER, "NAMES = (", *(f'    "{line} "' for line in lines), ").strip()", ""])


def primitives() -> str:
    """The stub of the primitives' objects, whose module makes them by name."""
    names = primitive_names()
    rows = [PRIMITIVES_HEADER, "__all__ = [", *(f'    "{name}",' for name in names), "]", ""]
    return "\n".join([*rows, *(f"{name}: Primitive" for name in names), ""])


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
