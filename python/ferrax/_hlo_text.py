"""A program as a text in XLA's form HLO, before any optimization: `jit(f).lower(...).as_text("hlo")`.

A computation is written for each program: an instruction per line, its operands by name. An equation becomes one
instruction or a few; nested programs become computations of their own, which stand before those that use them. The
text says what the program asks for (precisions, windows), which is not what engines are given: `Lowered.as_text()`
has that. On request instructions say which operation they are of, and in which scopes the user asked for it: called
functions have the names inside them, loops and branches also those around them. Read next: `_stages.py`.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ferrax._parameters import own
from ferrax._scopes import user_frame
from ferrax._stablehlo_notes import attribute, dictionary, notes_in

__all__ = ["HloModule"]

_DTYPES = {
    "bool": "pred",
    "bfloat16": "bf16",
    "complex64": "c64",
    "complex128": "c128",
}
# decimal digits that are tried first, and those that tell all numbers of a dtype from each other
_DIGITS = {"float64": (15, 17), "float16": (3, 5), "bfloat16": (2, 4)}
_ELIDED = 10  # constants of more elements are not written out

# primitives that are one instruction of their operands
_ELEMENTWISE = {
    "abs": "abs",
    "add": "add",
    "add_any": "add",
    "and": "and",
    "atan2": "atan2",
    "cbrt": "cbrt",
    "ceil": "ceil",
    "clz": "count-leading-zeros",
    "complex": "complex",
    "cos": "cosine",
    "div": "divide",
    "erf": "erf",
    "exp": "exponential",
    "expm1": "exponential-minus-one",
    "floor": "floor",
    "imag": "imag",
    "is_finite": "is-finite",
    "log": "log",
    "log1p": "log-plus-one",
    "logistic": "logistic",
    "max": "maximum",
    "min": "minimum",
    "mul": "multiply",
    "neg": "negate",
    "not": "not",
    "or": "or",
    "population_count": "popcnt",
    "pow": "power",
    "real": "real",
    "rem": "remainder",
    "rsqrt": "rsqrt",
    "shift_left": "shift-left",
    "shift_right_arithmetic": "shift-right-arithmetic",
    "shift_right_logical": "shift-right-logical",
    "sign": "sign",
    "sin": "sine",
    "sqrt": "sqrt",
    "sub": "subtract",
    "tan": "tan",
    "tanh": "tanh",
    "xor": "xor",
}
_COMPARISONS = {name: name.upper() for name in ("eq", "ne", "lt", "le", "gt", "ge")}
# instruction, and what it starts from: a number, or an end of the dtype's range
_REDUCTIONS: dict[str, tuple[str, Any]] = {
    "reduce_sum": ("add", 0),
    "reduce_prod": ("multiply", 1),
    "reduce_max": ("maximum", "least"),
    "reduce_min": ("minimum", "greatest"),
    "reduce_and": ("and", True),
    "reduce_or": ("or", False),
}


def _numbers(values: Sequence[int]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def _element(dtype: Any) -> str:
    name = str(dtype)
    known = _DTYPES.get(name)
    return known or re.sub(r"^(u?)(int|float)", lambda m: (m[1] or "s") if m[2] == "int" else "f", name).replace(
        "_", ""
    )


def _type(aval: Any) -> str:
    """A type with its layout: rows in order."""
    layout = _numbers(range(len(aval.shape) - 1, -1, -1)) if aval.shape else ""
    return f"{_element(aval.dtype)}[{','.join(map(str, aval.shape))}]{layout}"


def _scalar(x: Any, dtype: str) -> str:
    if dtype == "bool":
        return "true" if x else "false"
    if dtype.startswith("complex"):
        part = "float32" if dtype == "complex64" else "float64"
        return f"({_scalar(x.real, part)}, {_scalar(x.imag, part)})"
    if "int" in dtype:
        return str(int(x))
    few, enough = _DIGITS.get(dtype, (6, 9))
    short = f"{float(x):.{few}g}"
    return short if type(x)(short) == x or x != x else f"{float(x):.{enough}g}"


def _literal(value: Any) -> str:
    """A value as text in braces; large ones are left out."""
    array = np.asarray(value)
    if array.size > _ELIDED:
        return "{...}"

    def written(part: Any, outer: bool) -> str:
        if part.ndim == 0:
            return _scalar(part[()], str(array.dtype))
        inside = ", ".join(written(p, False) for p in part)
        spaced = part.ndim > 1 or (len(part) > 1 and not outer)
        return f"{{ {inside} }}" if spaced else f"{{{inside}}}"

    return written(array, True)


def _frontend_attributes(notes: dict[str, str] | None) -> str:
    """Notes as they stand behind an instruction."""
    said = ",".join(f'{name}="{value}"' for name, value in sorted((notes or {}).items()))
    return f", frontend_attributes={{{said}}}" if said else ""


def _path(*parts: str) -> str:
    return "/".join(part for part in parts if part)


@dataclass(frozen=True)
class _Type:
    """Shape and dtype of an instruction that is no variable of the program."""

    shape: tuple[int, ...]
    dtype: Any


class HloModule:
    """A program in HLO.

    Args:
      name: the function's name.
      program: its program, closed.
      named: whether instructions say which operation, in which scopes, they are of.

    >>> import ferrax as jax
    >>> text = jax.jit(lambda x: x * x).lower(2.0).compiler_ir("hlo").as_hlo_text()
    >>> print(text.splitlines()[-2])
      ROOT mul.1 = f32[] multiply(x.1, x.1)
    """

    def __init__(self, name: str, program: Any, named: bool = False) -> None:
        self.named = named
        self._frames: dict[Any, int] = {}  # numbers of places in the user's code
        self._counts: collections.Counter[str] = collections.Counter()
        self._computations: list[str] = []
        main = _Computation(self, "main", f"jit({name})")
        main.constants(program.captured_vars, program.captured)
        main.constants(program.jaxpr.constvars, program.consts)
        names = [re.sub(r"\W+", "_", n).strip("_") or "arg" for n in program.argument_names()]
        main.parameters(program.jaxpr.invars, names)
        main.equations(program.jaxpr)
        takes = ", ".join(_type(a) for a in program.in_avals)
        gives = [_type(a) for a in program.out_avals]
        results = gives[0] if len(gives) == 1 else f"({', '.join(gives)})"
        main.finish(program.jaxpr.outvars, entry=True)
        title = re.sub(r"\W", "_", name).rstrip("_")
        head = f"HloModule jit_{title}, entry_computation_layout={{({takes})->{results}}}"
        self._text = "\n\n".join([head, *self._tables(), *self._computations]) + "\n"

    def as_hlo_text(self, print_large_constants: bool = False) -> str:
        """The text, in which large constants are left out: to print them is not supported."""
        if print_large_constants:
            raise NotImplementedError("as_hlo_text with print_large_constants")
        return self._text

    def __str__(self) -> str:
        return self._text

    def fresh(self, name: str) -> str:
        """A name that no other instruction or computation has."""
        self._counts[name] += 1
        return f"{name}.{self._counts[name]}"

    def frame(self, eqn: Any) -> str:
        """What an equation's instructions say of its place in the user's code."""
        place = user_frame(eqn.source_info.traceback)
        return "" if place is None else f" stack_frame_id={self._frames.setdefault(place, len(self._frames) + 1)}"

    def _tables(self) -> list[str]:
        """The places that instructions refer to."""
        if not self._frames:
            return []
        files, functions = ({getattr(f, n): 0 for f in self._frames} for n in ("file_name", "function_name"))
        for names in (files, functions):
            names.update((name, number) for number, name in enumerate(names, 1))
        rows = [
            f"{n} {{file_name_id={files[f.file_name]} function_name_id={functions[f.function_name]} "
            f"line={f.start_line} end_line={f.end_line} column={f.start_column} end_column={f.end_column}}}"
            for f, n in self._frames.items()
        ]
        frames = [f"{n} {{file_location_id={n} parent_frame_id={n}}}" for n in self._frames.values()]
        quoted = lambda names: [f'{number} "{name}"' for name, number in names.items()]
        parts = {
            "FileNames": quoted(files),
            "FunctionNames": quoted(functions),
            "FileLocations": rows,
            "StackFrames": frames,
        }
        return ["\n".join([title, *lines]) for title, lines in parts.items()]

    def add(self, text: str) -> None:
        """Adds a computation that is complete."""
        self._computations.append(text)

    def nested(self, name: str, program: Any, tupled: bool = False, around: str = "") -> str:
        """The computation of a nested program, with one parameter that is a tuple where `tupled` is true; its name.

        `around` are the names of the scopes around it.
        """
        part = _Computation(self, name, around)
        part.constants(program.jaxpr.constvars, program.consts)
        part.parameters(program.jaxpr.invars, None, tupled)
        part.equations(program.jaxpr)
        return part.finish(program.jaxpr.outvars, tupled=tupled)

    def scalar(self, name: str, opcode: str, dtype: Any) -> str:
        """The computation of two scalars that reductions apply; its name."""
        part, kind = _Computation(self, "region", ""), _Type((), dtype)
        operands = [part.write(name, kind, "parameter", [str(i)]) for i in range(2)]
        part.write(name, kind, opcode, operands)
        return part.closed()


class _Computation:
    """The lines of one computation, which are added to the module when it is complete."""

    def __init__(self, module: HloModule, name: str, around: str) -> None:
        self.module, self.name = module, name
        self.around = around  # names of the scopes around the computation
        self.op_name = self.frame = ""  # of the instructions that are written now
        self.notes: dict[str, str] = {}  # on them
        self.noted: dict[str, dict[str, str]] = {}  # notes by instructions' names
        self.lines: list[str] = []
        self.names: dict[Any, str] = {}  # of variables

    def write(self, name: str, kind: Any, opcode: str, operands: Sequence[str], *rest: str) -> str:
        """Adds an instruction, of one type or a list of them; its name."""
        called = self.module.fresh(name)
        result = f"({', '.join(map(_type, kind))})" if isinstance(kind, list) else _type(kind)
        arguments = f"{opcode}({', '.join(operands)})"
        if self.notes:
            self.noted[called] = self.notes
        if self.module.named and self.op_name:
            rest = (*rest, f'metadata={{op_name="{self.op_name}"{self.frame}}}')
        self.lines.append(f"{called} = {result} {', '.join([arguments, *rest])}")
        return called

    def constant(self, value: Any) -> str:
        array = np.asarray(value)
        (of, self.op_name), (notes, self.notes) = (self.op_name, ""), (self.notes, {})
        name = self.write("constant", _Type(array.shape, array.dtype), "constant", [_literal(array)])
        self.op_name, self.notes = of, notes
        return name

    def constants(self, variables: Sequence[Any], values: Sequence[Any]) -> None:
        for var, value in zip(variables, values, strict=True):
            self.names[var] = self.constant(value)

    def read(self, atom: Any) -> str:
        """The name of an operand; literals are written where they are used."""
        return self.constant(np.asarray(atom.val, atom.aval.dtype)) if hasattr(atom, "val") else self.names[atom]

    def parameters(self, variables: Sequence[Any], names: Sequence[str] | None, tupled: bool = False) -> None:
        if tupled:
            whole = self.write("arg_tuple", [v.aval for v in variables], "parameter", ["0"])
            for i, var in enumerate(variables):
                self.names[var] = self.write("get-tuple-element", var.aval, "get-tuple-element", [whole], f"index={i}")
            return
        for i, var in enumerate(variables):
            name = names[i] if names else f"Arg_{i}"
            self.op_name = names[i] if names else ""
            self.names[var] = self.write(name, var.aval, "parameter", [str(i)])
        self.op_name = ""

    def equations(self, jaxpr: Any) -> None:
        for eqn in _needed(jaxpr):
            rule = _RULES.get(eqn.primitive.name)
            if rule is None:
                raise NotImplementedError(
                    f"text in the dialect 'hlo' of {eqn.primitive.name} is not implemented: as_text() and "
                    "as_text('jaxpr') show every program"
                )
            self.op_name = self.title(eqn) if self.module.named else ""
            self.frame = self.module.frame(eqn) if self.module.named else ""
            self.notes = notes_in(eqn._notes)
            rule(self, eqn, [self.read(x) for x in eqn.invars])
        self.op_name, self.notes, self.frame = "", {}, ""

    def title(self, eqn: Any, name: str = "") -> str:
        """An equation's primitive in all its scopes; a called function is one, with transformations around it."""
        scopes, name = eqn.source_info.name_stack, name or str(eqn.primitive.name)
        if name == "jit":
            return _path(self.around, str(scopes.extend(f"jit({eqn.params['name']})")))
        return _path(self.around, str(scopes), "checkpoint" if name == "remat2" else name)

    def one(self, eqn: Any, opcode: str, operands: Sequence[str], *rest: str) -> None:
        """An instruction that is the equation's one result."""
        (out,) = eqn.outvars
        self.names[out] = self.write(eqn.primitive.name, out.aval, opcode, operands, *rest)

    def parts(self, name: str, eqn: Any, opcode: str, operands: Sequence[str], *rest: str, tupled: bool) -> None:
        """An instruction with the equation's results; those of a tuple are taken out of it."""
        avals = [v.aval for v in eqn.outvars]
        if not tupled and len(avals) == 1:
            self.names[eqn.outvars[0]] = self.write(name, avals[0], opcode, operands, *rest)
            return
        whole = self.write(name, avals, opcode, operands, *rest)
        for i, var in enumerate(eqn.outvars):
            self.names[var] = self.write(name, var.aval, "get-tuple-element", [whole], f"index={i}")

    def spread(self, operand: str, of: Any, to: Any) -> str:
        """An operand in a result's shape: scalars, and axes of size 1, everywhere along it."""
        if tuple(of.shape) == tuple(to.shape):
            return operand
        kept = [i for i, n in enumerate(of.shape) if n == to.shape[i]] if of.shape else []
        if len(kept) < len(of.shape):
            operand = self.write("reshape", _Type(tuple(of.shape[i] for i in kept), of.dtype), "reshape", [operand])
        kind = _Type(tuple(to.shape), of.dtype)
        return self.write("broadcast", kind, "broadcast", [operand], f"dimensions={_numbers(kept)}")

    def finish(self, results: Sequence[Any], entry: bool = False, tupled: bool = False) -> str:
        """Closes the computation with its results, which several are a tuple; its name."""
        names = [self.read(x) for x in results]
        if tupled or len(names) != 1:
            self.write("tuple", [x.aval for x in results], "tuple", names)
        else:
            self.last(names[0])
        return self.closed(entry)

    def last(self, name: str) -> None:
        """Puts the instruction of a name last."""
        self.lines.append(self.lines.pop(self.line(name)))

    def line(self, name: str) -> int:
        """The number of the line with the instruction of a name."""
        return next(i for i, x in enumerate(self.lines) if x.startswith(f"{name} = "))

    def loop(self, types: Sequence[Any], inside: Sequence[tuple[str, Callable[..., Sequence[str]]]]) -> list[str]:
        """Computations of a loop's state, a tuple of these types: its condition and its body.

        Each is made of the scope that it is in and a function, which writes it given the names of the state's parts and
        gives the names of its results.
        """
        made = []
        for around, write in inside:
            part = _Computation(self.module, "region", _path(self.op_name, around))
            whole = part.write("arg_tuple", list(types), "parameter", ["0"])
            names = [
                part.write("get-tuple-element", t, "get-tuple-element", [whole], f"index={i}")
                for i, t in enumerate(types)
            ]
            results = write(part, names)
            if around == "cond":
                part.last(results[0])
            else:
                part.write("tuple", list(types), "tuple", results)
            made.append(part.closed())
        return made

    def applied(self, program: Any, operands: Sequence[str]) -> list[str]:
        """Writes a program's equations, for its results' names."""
        self.constants(program.jaxpr.constvars, program.consts)
        self.names.update(zip(program.jaxpr.invars, operands, strict=True))
        self.equations(program.jaxpr)
        return [self.read(x) for x in program.jaxpr.outvars]

    def closed(self, entry: bool = False) -> str:
        """Adds the computation to the module, whose last instruction is its result; its name."""
        name = self.module.fresh(self.name)
        lines = [line + _frontend_attributes(self.noted.get(line.partition(" = ")[0])) for line in self.lines]
        body = "".join(f"  {line}\n" for line in lines[:-1]) + f"  ROOT {lines[-1]}\n"
        self.module.add(f"{'ENTRY ' if entry else ''}{name} {{\n{body}}}")
        return name


# ---- a rule for each primitive: it writes an equation's instructions, given the names of its operands ----------------


def _needed(jaxpr: Any) -> list[Any]:
    """The equations that the results need, and those with effects."""
    needed = {v for v in jaxpr.outvars if not hasattr(v, "val")}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects or not needed.isdisjoint(eqn.outvars):
            kept.append(eqn)
            needed.update(v for v in eqn.invars if not hasattr(v, "val"))
    return kept[::-1]


def _elementwise(to: _Computation, eqn: Any, operands: Sequence[str]) -> None:
    (out,) = eqn.outvars
    spread = [to.spread(x, a.aval, out.aval) for x, a in zip(operands, eqn.invars, strict=True)]
    name = eqn.primitive.name
    if name in _COMPARISONS:
        to.one(eqn, "compare", spread, f"direction={_COMPARISONS[name]}")
    else:
        to.one(eqn, _ELEMENTWISE.get(name, name), spread)


def _select_n(to: _Computation, eqn: Any, operands: Sequence[str]) -> None:
    """A choice between two cases, or one between each case and those behind it, by a number."""
    (out,), (which, *cases), name = eqn.outvars, operands, eqn.primitive.name
    kind = eqn.invars[0].aval
    index = to.spread(which, kind, out.aval)
    if str(kind.dtype) == "bool":
        to.one(eqn, "select", [index, cases[-1], cases[0]])
        return
    chosen = cases[-1]
    for i, case in reversed([*enumerate(cases[:-1])]):
        number = to.spread(to.constant(np.asarray(i, kind.dtype)), _Type((), kind.dtype), out.aval)
        up_to = to.write(name, _Type(tuple(out.aval.shape), np.dtype(bool)), "compare", [index, number], "direction=LE")
        chosen = to.write(name, out.aval, "select", [up_to, case, chosen])
    to.names[out] = chosen


def _integer_pow(to: _Computation, eqn: Any, operands: Sequence[str]) -> None:
    """Products of squares; a negative power divides 1 by them."""
    (x,), (out,) = operands, eqn.outvars
    power = abs(eqn.params["y"])
    name, product = eqn.primitive.name, None
    while power:
        if power & 1:
            product = x if product is None else to.write(name, out.aval, "multiply", [product, x])
        power >>= 1
        if power:
            x = to.write(name, out.aval, "multiply", [x, x])
    if product is None or eqn.params["y"] < 0:
        one = to.spread(to.constant(np.ones((), out.aval.dtype)), _Type((), out.aval.dtype), out.aval)
        product = one if product is None else to.write(name, out.aval, "divide", [one, product])
    to.names[out] = product


def _square(to: _Computation, eqn: Any, operands: Sequence[str]) -> None:
    to.one(eqn, "multiply", [*operands, *operands])


def _conj(to: _Computation, eqn: Any, operands: Sequence[str]) -> None:
    (out,), name = eqn.outvars, eqn.primitive.name
    half = _Type(out.aval.shape, np.empty(0, out.aval.dtype).real.dtype)
    real, imag = (to.write(name, half, opcode, operands) for opcode in ("real", "imag"))
    to.one(eqn, "complex", [real, to.write(name, half, "negate", [imag])])


def _identity(to: _Computation, eqn: Any, operands: Sequence[str]) -> None:
    to.names.update(zip(eqn.outvars, operands, strict=True))


def _broadcast_in_dim(to: _Computation, eqn: Any, operands: Sequence[str]) -> None:
    (x, *_), (out,) = eqn.invars, eqn.outvars
    places = eqn.params["broadcast_dimensions"]
    if x.aval.size == out.aval.size and x.aval.shape:
        to.one(eqn, "reshape", operands[:1])
        return
    kept = [i for i, place in enumerate(places) if x.aval.shape[i] == out.aval.shape[place]]
    operand = operands[0]
    if len(kept) < len(places):
        small = _Type(tuple(x.aval.shape[i] for i in kept), x.aval.dtype)
        operand = to.write("reshape", small, "reshape", [operand])
    to.one(eqn, "broadcast", [operand], f"dimensions={_numbers([places[i] for i in kept])}")


def _simple(opcode: str, *rest: Callable[[Any], str]) -> Callable[..., None]:
    """One instruction; the functions of the equation's parameters give what stands behind its operands."""

    def rule(to: _Computation, eqn: Any, operands: Sequence[str]) -> None:
        to.one(eqn, opcode, operands, *(part(eqn.params) for part in rest))

    return rule


def _slice(to: _Computation, eqn: Any, operands: Sequence[str]) -> None:
    p = eqn.params
    steps = [f":{s}" if s != 1 else "" for s in p["strides"] or [1] * len(p["start_indices"])]
    parts = [f"[{a}:{b}{s}]" for a, b, s in zip(p["start_indices"], p["limit_indices"], steps, strict=True)]
    to.one(eqn, "slice", operands, f"slice={{{', '.join(parts)}}}")


def _padding(p: Any) -> str:
    return "padding=" + "x".join("_".join(map(str, c)) for c in p["padding_config"])


def _reduction(to: _Computation, eqn: Any, operands: Sequence[str]) -> None:
    name = eqn.primitive.name
    opcode, start = _REDUCTIONS[name]
    dtype = eqn.invars[0].aval.dtype
    if isinstance(start, str):
        start = _end(dtype, start == "least")
    initial = to.constant(np.asarray(start, dtype))
    region = to.module.scalar(name, opcode, dtype)
    axes = f"dimensions={_numbers(eqn.params['axes'])}"
    to.one(eqn, "reduce", [operands[0], initial], axes, f"to_apply={region}")


def _end(dtype: Any, least: bool) -> Any:
    """The least or greatest value of a dtype."""
    name = str(dtype)
    if name == "bool":
        return not least
    if "int" in name:
        info = np.iinfo(dtype)
        return info.min if least else info.max
    return -np.inf if least else np.inf


def _precision(p: Any) -> list[str]:
    """What stands behind a product: the precision of each operand, unless it is the default one."""
    asked = re.findall(r"Precision\.(\w+)", str(p["precision"]))
    names = [name.lower() for name in asked]
    return [f"operand_precision={{{','.join(names)}}}"] if any(n != "default" for n in names) else []


def _dot_general(to: _Computation, eqn: Any, operands: Sequence[str]) -> None:
    contracted, batched = eqn.params["dimension_numbers"]
    parts = []
    for kind, numbers in (("batch", batched), ("contracting", contracted)):
        for side, axes in zip(("lhs", "rhs"), numbers, strict=True):
            if kind == "contracting" or axes:
                parts.append(f"{side}_{kind}_dims={_numbers(axes)}")
    to.one(eqn, "dot", operands, *parts, *_precision(eqn.params))


def _dim_label(spec: Sequence[int], first: str, second: str) -> str:
    label = [""] * len(spec)
    label[spec[0]], label[spec[1]] = first, second
    for i, place in enumerate(spec[2:]):
        label[place] = str(i)
    return "".join(label)


def _convolution(to: _Computation, eqn: Any, operands: Sequence[str]) -> None:
    p = eqn.params
    lhs, rhs, out = p["dimension_numbers"]
    kernel = eqn.invars[1].aval.shape
    window = ["size=" + "x".join(str(kernel[i]) for i in rhs[2:])]
    padding = "pad=" + "x".join(f"{a}_{b}" for a, b in p["padding"])
    padded = [padding] if any(n for pair in p["padding"] for n in pair) else []
    for name, key in (("stride", "window_strides"), ("lhs_dilate", "lhs_dilation"), ("rhs_dilate", "rhs_dilation")):
        if any(n != 1 for n in p[key]):
            window.append(f"{name}=" + "x".join(map(str, p[key])))
        window += padded if name == "stride" else []
    labels = f"{_dim_label(lhs, 'b', 'f')}_{_dim_label(rhs, 'o', 'i')}->{_dim_label(out, 'b', 'f')}"
    counts = [f"{k}={p[k]}" for k in ("feature_group_count", "batch_group_count") if p[k] != 1]
    rest = [f"window={{{' '.join(window)}}}", f"dim_labels={labels}", *counts, *_precision(p)]
    to.one(eqn, "convolution", operands, *rest)


def _kept_apart(to: _Computation, name: str, types: list[Any], operands: Sequence[str]) -> list[str]:
    """Operands behind a barrier: what is computed of them is not what is computed of the same values elsewhere."""
    if not types:
        return []
    whole = to.write(name, types, "opt-barrier", [to.write(name, types, "tuple", operands)])
    return [to.write(name, t, "get-tuple-element", [whole], f"index={i}") for i, t in enumerate(types)]


def _optimization_barrier(to: _Computation, eqn: Any, operands: Sequence[str]) -> None:
    apart = _kept_apart(to, "optimization_barrier", [v.aval for v in eqn.invars], operands)
    to.names.update(zip(eqn.outvars, apart, strict=True))


def _call(to: _Computation, eqn: Any, operands: Sequence[str]) -> None:
    params = own(eqn.params)
    program = params.get("jaxpr") or params["call_jaxpr"]
    name = re.sub(r"\W", "_", str(params.get("name", eqn.primitive.name)))
    around = ""
    if eqn.primitive.name == "remat2":
        name = "checkpoint"
        around = _path(to.title(eqn), "rematted_computation" if eqn.params["differentiated"] else "")
        if eqn.params["differentiated"] and eqn.params["prevent_cse"]:
            operands = _kept_apart(to, eqn.primitive.name, [v.aval for v in eqn.invars], operands)
    called = to.module.nested(name, program, around=around)
    to.parts(name, eqn, "call", operands, f"to_apply={called}", tupled=False)


def _while(to: _Computation, eqn: Any, operands: Sequence[str]) -> None:
    p, types = eqn.params, [v.aval for v in eqn.invars]
    tested, used = p["cond_nconsts"], p["body_nconsts"]
    carried = tested + used

    def condition(part: _Computation, state: Sequence[str]) -> Sequence[str]:
        return part.applied(p["cond_jaxpr"], [*state[:tested], *state[carried:]])

    def body(part: _Computation, state: Sequence[str]) -> Sequence[str]:
        return [*state[:carried], *part.applied(p["body_jaxpr"], state[tested:])]

    _loop(to, eqn, types, operands, range(carried, len(types)), condition, body)


def _scan(to: _Computation, eqn: Any, operands: Sequence[str]) -> None:
    """A loop over a counter, what the body uses, what it carries, the rows that it takes, and those that it gives."""
    p, index = eqn.params, _Type((), np.dtype("int32"))
    used, carried, length = p["num_consts"], p["num_carry"], p["length"]
    kept, given = used + carried, [v.aval for v in eqn.invars]
    made = [v.aval for v in eqn.outvars[carried:]]
    types = [index, *given, *made]
    first_made = 1 + len(given)

    def at(part: _Computation, counter: str, rank: int) -> list[str]:
        zeros = [part.constant(np.int32(0)) for _ in range(rank - 1)]
        if not p["reverse"]:
            return [counter, *zeros]
        return [part.write("sub", index, "subtract", [part.constant(np.int32(length - 1)), counter]), *zeros]

    def condition(part: _Computation, state: Sequence[str]) -> Sequence[str]:
        test = [state[0], part.constant(np.int32(length))]
        return [part.write("lt", _Type((), np.dtype(bool)), "compare", test, "direction=LT")]

    def body(part: _Computation, state: Sequence[str]) -> Sequence[str]:
        rows = []
        for whole, aval in zip(state[1 + kept : first_made], given[kept:], strict=True):
            sizes, where = (1, *aval.shape[1:]), at(part, state[0], len(aval.shape))
            cut = f"dynamic_slice_sizes={_numbers(sizes)}"
            row = part.write("dynamic_slice", _Type(sizes, aval.dtype), "dynamic-slice", [whole, *where], cut)
            rows.append(part.write("squeeze", _Type(sizes[1:], aval.dtype), "reshape", [row]))
        results = part.applied(p["jaxpr"], [*state[1 : 1 + kept], *rows])
        written = []
        for whole, aval, row in zip(state[first_made:], made, results[carried:], strict=True):
            sizes, where = (1, *aval.shape[1:]), at(part, state[0], len(aval.shape))
            one = part.write("broadcast_in_dim", _Type(sizes, aval.dtype), "reshape", [row])
            written.append(part.write("dynamic_update_slice", aval, "dynamic-update-slice", [whole, one, *where]))
        count = part.write("add", index, "add", [state[0], part.constant(np.int32(1))])
        return [count, *state[1 : 1 + used], *results[:carried], *state[1 + kept : first_made], *written]

    empty = [to.spread(to.constant(np.zeros((), a.dtype)), _Type((), a.dtype), a) for a in made]
    state = [to.constant(np.int32(0)), *operands, *empty]
    _loop(to, eqn, types, state, [*range(1 + used, 1 + kept), *range(first_made, len(types))], condition, body)


def _loop(
    to: _Computation,
    eqn: Any,
    types: Sequence[Any],
    state: Sequence[str],
    results: Sequence[int],
    condition: Callable[..., Sequence[str]],
    body: Callable[..., Sequence[str]],
) -> None:
    """A loop whose state begins with these values; parts of the last state are the equation's results."""
    to.op_name = to.op_name and to.title(eqn, "while")
    begin = to.write("while", list(types), "tuple", state)
    around, to.op_name = to.op_name, to.title(eqn, "while")
    body_name, tested = to.loop(types, [("body", body), ("cond", condition)])
    to.op_name = around
    whole = to.write("while", list(types), "while", [begin], f"condition={tested}", f"body={body_name}")
    for i, var in zip(results, eqn.outvars, strict=True):
        to.names[var] = to.write("while", types[i], "get-tuple-element", [whole], f"index={i}")


def _metadata_value(to: _Computation, eqn: Any, operands: Sequence[str]) -> None:
    """Notes on the operation that gives the operand."""
    from ferrax.experimental.xla_metadata import text_of

    (x,) = operands
    if " parameter(" not in to.lines[to.line(x)]:
        to.noted[x] = {**to.noted.get(x, {}), **notes_in(text_of(dict(eqn.params["xla_metadata_kvs"])))}
    _identity(to, eqn, operands)


def _cond(to: _Computation, eqn: Any, operands: Sequence[str]) -> None:
    which, *given = operands
    state = to.write("tuple", [v.aval for v in eqn.invars[1:]], "tuple", given)
    branches = [
        to.module.nested("region", branch, tupled=True, around=_path(to.title(eqn), f"branch_{i}_fun"))
        for i, branch in enumerate(eqn.params["branches"])
    ]
    rest = f"branch_computations={{{', '.join(branches)}}}"
    to.parts("cond", eqn, "conditional", [which, *[state] * len(branches)], rest, tupled=True)


def _gather(to: _Computation, eqn: Any, operands: Sequence[str]) -> None:
    p, numbers = eqn.params, eqn.params["dimension_numbers"]
    if numbers.operand_batching_dims or str(p["mode"]).rsplit(".", 1)[-1] not in ("CLIP", "PROMISE_IN_BOUNDS"):
        raise NotImplementedError("text in the dialect 'hlo' of gather that fills, or has batches, is not implemented")
    parts = [f"{k}={_numbers(getattr(numbers, k))}" for k in ("offset_dims", "collapsed_slice_dims", "start_index_map")]
    parts.append(f"index_vector_dim={len(eqn.invars[1].aval.shape) - 1}")
    parts.append(f"slice_sizes={_numbers(p['slice_sizes'])}")
    to.one(eqn, "gather", operands, *parts, *(["indices_are_sorted=true"] if p["indices_are_sorted"] else []))


def _sharding_constraint(to: _Computation, eqn: Any, operands: Sequence[str]) -> None:
    tiles = getattr(eqn.params["sharding"], "_to_xla_hlo_sharding", None)
    if tiles is None:  # a memory: there is one
        return _identity(to, eqn, operands)
    where = f"sharding={tiles(len(eqn.outvars[0].aval.shape))}"
    return to.one(eqn, "custom-call", operands, 'custom_call_target="Sharding"', where)


def _ffi_call(to: _Computation, eqn: Any, operands: Sequence[str]) -> None:
    p = eqn.params
    if not isinstance(p["attributes"], tuple) or not all(isinstance(v, (bool, str)) for _, v in p["attributes"]):
        raise NotImplementedError("text in the dialect 'hlo' of ffi_call with attributes that are numbers")
    rest = [f'custom_call_target="{p["target_name"]}"']
    if eqn.outvars:
        rest.append(f"operand_layout_constraints={{{', '.join(_type(v.aval) for v in eqn.invars)}}}")
    if p["has_side_effect"]:
        rest.append("custom_call_has_side_effect=true")
    said = dictionary((name, attribute(value)) for name, value in p["attributes"])
    rest.append(f"api_version=API_VERSION_TYPED_FFI, backend_config={said}")
    to.parts("ffi_call", eqn, "custom-call", operands, *rest, tupled=not eqn.outvars)


_RULES: dict[str, Callable[..., None]] = {
    **dict.fromkeys([*_ELEMENTWISE, *_COMPARISONS, "clamp"], _elementwise),
    **dict.fromkeys(_REDUCTIONS, _reduction),
    **dict.fromkeys(["jit", "closed_call", "custom_jvp_call", "custom_vjp_call", "remat2"], _call),
    "bitcast_convert_type": _simple("bitcast-convert"),
    "broadcast_in_dim": _broadcast_in_dim,
    "concatenate": _simple("concatenate", lambda p: f"dimensions={_numbers([p['dimension']])}"),
    "cond": _cond,
    "conv_general_dilated": _convolution,
    "conj": _conj,
    "convert_element_type": _simple("convert"),
    "copy": _simple("copy"),
    "optimization_barrier": _optimization_barrier,
    "dot_general": _dot_general,
    "dynamic_slice": _simple("dynamic-slice", lambda p: f"dynamic_slice_sizes={_numbers(p['slice_sizes'])}"),
    "dynamic_update_slice": _simple("dynamic-update-slice"),
    "expand_dims": _simple("reshape"),
    "ffi_call": _ffi_call,
    "gather": _gather,
    "integer_pow": _integer_pow,
    "iota": _simple("iota", lambda p: f"iota_dimension={p['dimension']}"),
    "pad": _simple("pad", _padding),
    "reshape": _simple("reshape"),
    "rev": _simple("reverse", lambda p: f"dimensions={_numbers(p['dimensions'])}"),
    "select_n": _select_n,
    "sharding_constraint": _sharding_constraint,
    "slice": _slice,
    "square": _square,
    "squeeze": _simple("reshape"),
    "stop_gradient": _identity,
    "transpose": _simple("transpose", lambda p: f"dimensions={_numbers(p['permutation'])}"),
    "scan": _scan,
    "while": _while,
    "xla_metadata_value": _metadata_value,
}
