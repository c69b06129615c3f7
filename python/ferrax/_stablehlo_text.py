"""StableHLO as its own printer writes it, from the general form that programs are handed to plugins in.

`"stablehlo.add"(%0, %1) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)` is read as `stablehlo.add %0, %1 : tensor<f32>`;
values are numbered in the order of the text, constants have names, floats are decimal where that is exact. Operations
with regions, and those that are not in the tables below, keep the general form, which parsers take as well.
Read next: `_stages.py`, which asks for texts; `crates/ferrax-pjrt/src/stablehlo`, which writes the general form.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax._stablehlo_notes import Composites, noted, taken_out

_OPERATION = re.compile(
    r'(?P<indent> *)(?:(?P<results>%\d+(?::\d+)?) = )?"(?P<name>[\w.]+)"\((?P<operands>[^()]*)\)'
    r"(?: \{(?P<attributes>.*)\})? : \((?P<takes>[^()]*)\) -> \((?P<gives>[^()]*)\)(?P<place> loc\(.*\))?"
)
_REDUCE = re.compile(
    r'( *)(%\d+) = "stablehlo.reduce"\((%\w+), (%\w+)\) \(\{\n *\^bb0\((%\d+): [^,]*, (%\d+): [^)]*\):\n'
    r' *%\d+ = "(stablehlo\.\w+)"\(\5, \6\)[^\n]*\n *"stablehlo.return"[^\n]*\n'
    r" *\}\) \{dimensions = array<i64(?:: ([^>]*))?>\} : \(([^()]*)\) -> \(([^()]*)\)"
)
_FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
#: NumPy's names of the types of elements of small arrays.
_ELEMENTS: dict[str, Any] = {
    **_FLOATS,
    **{f"i{n}": np.dtype(f"int{n}") for n in (8, 16, 32, 64)},
    **{f"ui{n}": np.dtype(f"uint{n}") for n in (8, 16, 32, 64)},
}
_MOST_ELEMENTS = 100  # of a constant that is written as numbers
_MOST_ZEROS = 3  # beside the point of a float without an exponent

#: Operations of operands alone, whose types are written once where they are all the same.
_PLAIN = frozenset(
    [
        *("abs", "add", "and", "atan2", "bitcast_convert", "cbrt", "ceil", "convert", "cosine"),
        *("count_leading_zeros", "divide", "dynamic_update_slice", "exponential", "exponential_minus_one"),
        *("floor", "imag", "is_finite", "log", "log_plus_one", "logistic", "maximum", "minimum", "multiply"),
        *("negate", "not", "or", "popcnt", "power", "real", "remainder", "reshape", "round_nearest_afz"),
        *("round_nearest_even", "rsqrt", "shift_left", "shift_right_arithmetic", "shift_right_logical"),
        *("sign", "sine", "sqrt", "subtract", "tan", "tanh", "xor"),
    ]
)


def readable(text: str, name: str, results: Sequence[str], more: Sequence[str] = ()) -> str:
    """A module in the form that StableHLO prints.

    Args:
      text: the module in the general form.
      name: of the function that the program is from.
      results: what the results of the program are called.
      more: for each of them what else is said of it; empty where that is nothing.

    >>> from ferrax._stablehlo_text import readable
    >>> print(readable('  func.func public @main() -> (tensor<i32>) {\\n    "func.return"() : () -> ()', "f", ["x"]))
      func.func public @main() -> (tensor<i32> {jax.result_info = "x"}) {
        return
    """
    title = re.sub(r"\W", "_", name).rstrip("_")
    text = re.sub(r"^module @jit\b", f"module @jit_{title}", text)
    text = _REDUCE.sub(_reduction, text)
    lines = []
    depth = 0
    given, notes, called = taken_out(text.split("\n"))
    composites = Composites()
    for at, line in enumerate(given):
        if line.startswith("  func.func "):
            names = _Names()
            lines.append(_head(line, results, more))
            continue
        depth -= (line.lstrip().startswith("}") and "}) " in line) or line.lstrip().startswith("}, {")
        found = _OPERATION.fullmatch(line)
        if at in called:
            line = names.renamed(composites.call(line, called[at]), None)
        elif found is not None:
            line = names.renamed(_operation(found, depth), _constant_name(found))
        elif depth or line.startswith("    "):
            line = names.renamed(line, None)
        depth += line.endswith("({") or line.lstrip().startswith("}, {")
        lines.append(noted(line, notes[at]) if at in notes else line)
    return composites.renamed("\n".join(lines))


class _Names:
    """The values of a function by what they are called in the text."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}
        self.count = self.clashes = 0
        self.taken: set[str] = set()

    def renamed(self, line: str, constant: str | None) -> str:
        """A line with the names of its values; `constant` names a value that the line defines."""
        return re.sub(r"%(\d+)", lambda m: "%" + self.name(m[1], constant), line)

    def name(self, number: str, constant: str | None) -> str:
        if number not in self.known:
            if constant is None:
                self.known[number] = str(self.count)
                self.count += 1
            elif constant not in self.taken:
                self.known[number] = constant
                self.taken.add(constant)
            else:
                self.known[number] = f"{constant}_{self.clashes}"
                self.clashes += 1
        return self.known[number]


def _head(line: str, results: Sequence[str], more: Sequence[str] = ()) -> str:
    """The first line of a function; results of the program say what they are."""
    start, arrow, rest = line.rpartition(") -> (")
    types, _, end = rest.rpartition(") {")
    if not arrow:
        return line
    listed = types.split(", ") if types else []
    if not listed:
        return f"{start}) {{{end}"
    if " @main(" in line and len(listed) == len(results):
        told = [f", {m}" if m else "" for m in more or [""] * len(results)]
        said = [f'{t} {{jax.result_info = "{r}"{m}}}' for t, r, m in zip(listed, results, told, strict=True)]
        return f"{start}) -> ({', '.join(said)}) {{{end}"
    return f"{start}) -> {_types(listed)} {{{end}"


def _types(listed: Sequence[str]) -> str:
    return listed[0] if len(listed) == 1 else f"({', '.join(listed)})"


def _constant_name(found: re.Match[str]) -> str | None:
    if found["name"] != "stablehlo.constant":
        return None
    element = _element(found["gives"])
    return "c" if element.lstrip("u").startswith("i") else "cst"


def _element(tensor: str) -> str:
    """The type of elements, of complex ones that of their parts: `f32` of `tensor<2x3xf32>`."""
    found = re.search(r"(\w+)>+$", tensor)
    return found[1].rpartition("x")[2] if found else ""


def _operation(found: re.Match[str], depth: int) -> str:
    name, operands, attributes = found["name"], found["operands"], found["attributes"] or ""
    takes = found["takes"].split(", ") if found["takes"] else []
    gives = found["gives"].split(", ") if found["gives"] else []
    start = found["indent"] + (f"{found['results']} = " if found["results"] else "")
    signature = f"({', '.join(takes)}) -> {_types(gives)}"
    written = _written(name, operands, attributes, takes, gives, signature, depth)
    if written is None:
        settings = f" {{{attributes}}}" if attributes else ""
        written = f'"{name}"({operands}){settings} : {signature}'
    return start + written + (found["place"] or "")


def _written(
    name: str, operands: str, attributes: str, takes: list[str], gives: list[str], signature: str, depth: int
) -> str | None:
    """An operation as its printer writes it; None where the general form stays."""
    stem = name.removeprefix("stablehlo.")
    if name in ("func.return", "stablehlo.return"):
        verb = "return" if name == "func.return" else name
        return f"{verb} {operands} : {', '.join(takes)}" if takes else verb
    if name == "func.call":
        (callee,) = re.findall(r"callee = (@\w+)", attributes)
        return f"{'func.call' if depth else 'call'} {callee}({operands}) : {signature}"
    if stem in _PLAIN and not attributes:
        same = len({*takes, *gives}) == 1
        return f"{name} {operands} : {gives[0] if same else signature}"
    if stem in _SPECIAL:
        return _SPECIAL[stem](name, operands, attributes, takes, gives, signature)
    return None


def _array(attributes: str, key: str) -> list[str]:
    found = re.search(rf"{key} = (?:array<i64(?:: ([^>]*))?>|\[([^\]]*)\])", attributes)
    return [x for x in ((found[1] or found[2] or "") if found else "").split(", ") if x]


def _with(*settings: tuple[str, str], both: bool = True) -> Callable[..., str | None]:
    """An operation whose settings stand behind its operands; `both` types or that of the result alone."""

    def write(name: str, operands: str, attributes: str, takes: Any, gives: list[str], signature: str) -> str | None:
        said = [f"{short} = [{', '.join(_array(attributes, key))}]" for short, key in settings]
        return f"{name} {', '.join([operands, *said])} : {signature if both else gives[0]}"

    return write


def _constant(name: str, operands: str, attributes: str, takes: Any, gives: list[str], signature: str) -> str:
    value = attributes.removeprefix("value = ").rpartition(" : ")[0]
    return f"{name} {_dense(value, gives[0])} : {gives[0]}"


def _compare(name: str, operands: str, attributes: str, takes: Any, gives: Any, signature: str) -> str:
    direction, kind = (re.search(rf"comparison_{k} (\w+)", attributes) for k in ("direction", "type"))
    assert direction is not None
    return f"{name} {direction[1]}, {operands}{f', {kind[1]}' if kind else ''} : {signature}"


def _slice(name: str, operands: str, attributes: str, takes: Any, gives: Any, signature: str) -> str:
    bounds = zip(*(_array(attributes, f"{k}") for k in ("start_indices", "limit_indices", "strides")), strict=True)
    ranges = [f"{a}:{b}" if s == "1" else f"{a}:{b}:{s}" for a, b, s in bounds]
    return f"{name} {operands} [{', '.join(ranges)}] : {signature}"


def _concatenate(name: str, operands: str, attributes: str, takes: Any, gives: Any, signature: str) -> str:
    (axis,) = re.findall(r"dimension = (\d+)", attributes)
    return f"{name} {operands}, dim = {axis} : {signature}"


def _iota(name: str, operands: str, attributes: str, takes: Any, gives: list[str], signature: str) -> str:
    (axis,) = re.findall(r"iota_dimension = (\d+)", attributes)
    return f"{name} dim = {axis} : {gives[0]}"


def _dot(name: str, operands: str, attributes: str, takes: Any, gives: Any, signature: str) -> str | None:
    pairs = []
    for short in ("batching", "contracting"):
        left, right = (", ".join(_array(attributes, f"{side}_{short}_dimensions")) for side in ("lhs", "rhs"))
        if left or short == "contracting":
            pairs.append(f"{short}_dims = [{left}] x [{right}]")
    if "algorithm" in attributes:
        return None
    levels = re.findall(r"#stablehlo<precision (\w+)>", attributes)
    precision = [f"precision = [{', '.join(levels)}]"] if levels else []
    return f"{name} {', '.join([operands, *pairs, *precision])} : {signature}"


_SPECIAL: dict[str, Callable[..., str | None]] = {
    "broadcast_in_dim": _with(("dims", "broadcast_dimensions")),
    "compare": _compare,
    "complex": lambda name, operands, _, __, gives, ___: f"{name} {operands} : {gives[0]}",
    "concatenate": _concatenate,
    "constant": _constant,
    "dot_general": _dot,
    "dynamic_slice": _with(("sizes", "slice_sizes")),
    "iota": _iota,
    "pad": _with(("low", "edge_padding_low"), ("high", "edge_padding_high"), ("interior", "interior_padding")),
    "reverse": _with(("dims", "dimensions"), both=False),
    "select": lambda name, operands, _, takes, gives, __: f"{name} {operands} : {takes[0]}, {gives[0]}",
    "slice": _slice,
    "transpose": _with(("dims", "permutation")),
}


def _reduction(found: re.Match[str]) -> str:
    indent, result, operand, first, _, _, body, axes, takes, gives = found.groups()
    return (
        f"{indent}{result} = stablehlo.reduce({operand} init: {first}) applies {body} across dimensions = "
        f"[{axes or ''}] : ({takes}) -> {gives}"
    )


def _dense(value: str, tensor: str) -> str:
    """An array of numbers, decimal where that is exact and not long."""
    element = _element(tensor)
    shape = [int(n) for n in re.findall(r"(\d+)x", tensor)]
    blob = re.fullmatch(r'dense<"0x([0-9A-F]*)">', value)
    if blob is not None:
        if element not in _ELEMENTS or math.prod(shape) > _MOST_ELEMENTS:
            return value
        return f"dense<{nested(np.frombuffer(bytes.fromhex(blob[1]), _ELEMENTS[element]).reshape(shape))}>"
    if element in ("bf16", *_FLOATS):
        value = re.sub(r"0x([0-9A-F]+)", lambda m: _float(_of_bits(m[1], element)), value)
    return value.replace(", ", ",") if value.startswith("dense<(") else value


def _of_bits(digits: str, element: str) -> Any:
    if element == "bf16":
        from ferrax._ml_dtypes import bfloat16

        return np.frombuffer(bytes.fromhex(digits)[::-1], bfloat16)[0]
    return np.frombuffer(bytes.fromhex(digits)[::-1], _FLOATS[element])[0]


def nested(numbers: Any) -> str:
    """An array of NumPy's as MLIR writes its numbers."""
    if numbers.ndim:
        return f"[{', '.join(map(nested, numbers))}]"
    return _float(numbers[()]) if numbers.dtype.kind == "f" else str(numbers).lower()


def _float(number: Any) -> str:
    """Six digits if they are the number, else as many as tell it from others; bits of what has no such form."""
    bits = f"0x{number.tobytes()[::-1].hex().upper()}"
    if not math.isfinite(number):
        return bits
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    digits, exponent = _digits(abs(float(number)), 6)
    short = f"{sign}{digits[0]}.{digits[1:]:<06}e{exponent + len(digits) - 1:+03d}"
    if number.dtype.type(float(short)) == number:
        return short
    precision = {2: 5, 4: 9, 8: 17}[number.dtype.itemsize]
    digits, exponent = _digits(abs(float(number)), precision)
    first = exponent + len(digits) - 1  # the power of ten of the first digit
    if exponent > _MOST_ZEROS or (exponent > 0 and first >= precision) or first < -_MOST_ZEROS:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{first:+d}"
    if exponent >= 0:
        return bits  # without a point it would be an integer
    if first >= 0:
        return f"{sign}{digits[: first + 1]}.{digits[first + 1 :]}"
    return f"{sign}0.{'0' * (-first - 1)}{digits}"


def _digits(number: float, precision: int) -> tuple[str, int]:
    """So many decimal digits and the power of ten of the last one, rounded as LLVM's floats are.

    What lies far below the digits is cut off before they are rounded, so that some are rounded down that would go up.
    """
    top, bottom = number.as_integer_ratio()
    scale = bottom.bit_length() - 1
    value, exponent = top * 5**scale, -scale
    surplus = (value.bit_length() - (precision * 196 + 58) // 59) * 59 // 196
    if surplus > 0:
        value, exponent = value // 10**surplus, exponent + surplus
    text = str(value)
    more = len(text) - precision
    if more > 0:
        value, exponent = value // 10**more + (text[precision] >= "5"), exponent + more
        text = str(value)
    digits = text.rstrip("0") or "0"
    return digits, exponent + len(text) - len(digits) if value else 0
