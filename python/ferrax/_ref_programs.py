"""Programs with references: what `make_jaxpr` gives of a function that reads and writes references from outside.

The core's programs have arrays only, and functions that use references are traced as functions of their values
(`_refs.py`). To show a program as JAX does, a reference is a variable of its array's type here, and each read and write
of it is an equation of a primitive (`get`, `swap`, `addupdate`) that the core knows nothing of. `RefJaxpr` shows such a
program with its references, their types and effects; `discharged` makes it one of arrays again. Loops and branches
inside take and give the values of the references that they use, as everywhere. Read next: `_ref_views.py`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax, _high_values, _ref_views, _refs, tree_util
from ferrax._core import typeof
from ferrax._primitives import built_in
from ferrax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Primitive, Var
from ferrax.extend.core._effects import JaxprInputEffect

__all__ = [
    "AccumEffect",
    "ReadEffect",
    "RefClosedJaxpr",
    "RefEffect",
    "RefJaxpr",
    "Unshown",
    "WriteEffect",
    "discharged",
    "program_of",
    "program_of_call",
]

_WIDTH = 80  # as wide as the core prints programs


class RefEffect(JaxprInputEffect):
    """What an operation does to a reference.

    Args:
      input: the variable of the reference.
    """

    name = "Ref"

    def __str__(self) -> str:
        return f"{self.name}<{self.input}>"


class ReadEffect(RefEffect):
    """A read."""

    name = "Read"


class WriteEffect(RefEffect):
    """A write."""

    name = "Write"


class AccumEffect(RefEffect):
    """An addition to what is there."""

    name = "Accum"


# ---- the equations: a chain of views with places for operands --------------------------------------------------------


def _primitive(name: str, results: Callable[[Any, Any], Any]) -> Primitive:
    """A primitive of a reference, a value unless it reads, and the operands of a chain of views."""
    primitive = Primitive(name)
    primitive.multiple_results = name == "addupdate"
    reads = name == "get"

    def abstract_eval(ref: Any, *operands: Any, chain: Any) -> Any:
        from ferrax._api import eval_shape

        given = operands if reads else operands[1:]
        return results(typeof(eval_shape(lambda x, *values: _seen(x, chain, values), ref, *given)), ref)

    primitive.def_abstract_eval(abstract_eval)
    return primitive


get_p = _primitive("get", lambda seen, ref: seen)
swap_p = _primitive("swap", lambda seen, ref: seen)
addupdate_p = _primitive("addupdate", lambda seen, ref: [])
_EFFECTS = {"get": ReadEffect, "swap": WriteEffect, "addupdate": AccumEffect}


def _views(chain: Any, operands: Sequence[Any]) -> list[Any]:
    """The views that a chain is of, with these operands."""
    found: list[Any] = []
    for kind, data in chain:
        if kind == "index":
            found.append(_ref_views.IndexTransform(tuple(_entry(part, operands) for part in data)))
        else:
            found.append(data)
    return found


def _entry(part: Any, operands: Sequence[Any]) -> Any:
    from ferrax._slices import Slice

    kind, *data = part
    if kind == "int":
        return data[0]
    if kind == "operand":
        return operands[data[0]]
    start, size, stride = data
    if kind == "window":
        return Slice(operands[start], size, stride)
    return slice(start, start + (size - 1) * stride + 1 if size else start, stride)


def _seen(x: Any, chain: Any, operands: Sequence[Any]) -> Any:
    for view in _views(chain, operands):
        x = view.apply(x)
    return x


class Unshown(Exception):
    """An index that no equation shows: the whole array is read or written, and the index applied to that."""


def _chain(shape: tuple[int, ...], views: Sequence[Any], born: int) -> tuple[Any, list[Any]]:
    """A chain of views of an array of a shape, and its operands."""
    operands: list[Any] = []
    chain: list[Any] = []
    for view in views:
        if isinstance(view, _ref_views.IndexTransform):
            chain.append(("index", tuple(_part(n, e, operands, born) for n, e in _entries(shape, view.idx))))
        else:
            chain.append(("view", view))
        shape = _shape_of(shape, chain[-1], operands)
    return tuple(chain), operands


def _shape_of(shape: tuple[int, ...], link: Any, operands: Sequence[Any]) -> tuple[int, ...]:
    from ferrax._api import eval_shape
    from ferrax._shape_dtype import ShapeDtypeStruct

    struct = ShapeDtypeStruct(shape, np.float32)
    return tuple(eval_shape(lambda x, *values: _seen(x, (link,), values), struct, *operands).shape)


def _entries(shape: tuple[int, ...], idx: Any) -> list[tuple[int, Any]]:
    """For each axis its size and what an index says of it."""
    given = list(idx) if isinstance(idx, tuple) else [idx]
    places = [i for i, e in enumerate(given) if e is Ellipsis]
    if len(places) > 1 or len(given) - len(places) > len(shape):
        raise Unshown
    fill = [slice(None)] * (len(shape) - len(given) + len(places))
    at = places[0] if places else len(given)
    return list(zip(shape, [*given[:at], *fill, *given[at + len(places) :]], strict=True))


def _part(size: int, entry: Any, operands: list[Any], born: int) -> Any:
    """What a chain holds for an entry of an index."""
    if isinstance(entry, slice):
        start, stop, stride = entry.indices(size) if _static(entry) else (0, 0, -1)
        if stride < 1:
            raise Unshown
        return ("slice", start, len(range(start, stop, stride)), stride)
    if type(entry).__name__ == "Slice":
        if not isinstance(entry.start, int):
            return ("window", _operand(entry.start, operands, born), entry.size, entry.stride)
        return ("slice", entry.start, entry.size, entry.stride)
    dtype = getattr(entry, "dtype", None)
    if dtype is None or (np.ndim(entry) == 0 and isinstance(entry, np.generic)):
        if isinstance(entry, (bool, np.bool_)) or entry is None:
            raise Unshown
        try:
            return ("int", operator.index(entry))
        except TypeError:
            raise Unshown from None
    if not np.issubdtype(dtype, np.integer):
        raise Unshown
    return ("operand", _operand(entry, operands, born))


def _static(entry: slice) -> bool:
    return all(part is None or isinstance(part, (int, np.integer)) for part in (entry.start, entry.stop, entry.step))


def _operand(value: Any, operands: list[Any], born: int) -> int:
    try:
        operands.append(_ferrax.value_for_reference(value, born))
    except ValueError:
        raise Unshown from None
    return len(operands) - 1


class _RecordedCell(_refs._Cell):
    """A reference's cell whose reads and writes are equations.

    Attributes:
      handle: the variable that the reference is.
    """

    __slots__ = ("handle",)

    def __init__(self, handle: Any):
        self.handle = handle
        self.scope, self.born = _ferrax.staging_trace(), _ferrax.trace_clock()

    @property
    def value(self) -> Any:  # type: ignore[override]
        return get_p.bind(self.handle, chain=())

    @value.setter
    def value(self, new: Any) -> None:
        swap_p.bind(self.handle, new, chain=())

    def bound(self, ref: Any, name: str, views: Sequence[Any], value: Any) -> Any:
        """Binds a primitive of part of the reference; raises `Unshown` where no equation shows the part."""
        chain, operands = _chain(ref.shape, views, self.born)
        if name == "get":
            return get_p.bind(self.handle, *operands, chain=chain)
        seen = typeof(_seen_struct(ref, chain, operands))
        new = _refs.settled(ref, self, _refs.fitting(ref, name, value, seen.shape))
        return (swap_p if name == "swap" else addupdate_p).bind(self.handle, new, *operands, chain=chain)


def _seen_struct(ref: Any, chain: Any, operands: Sequence[Any]) -> Any:
    """Shape and dtype of what a chain sees of a reference."""
    from ferrax._api import eval_shape

    return eval_shape(lambda x, *values: _seen(x, chain, values), ref.aval.inner_aval, *operands)


# ---- programs --------------------------------------------------------------------------------------------------------


class _RefVar:
    """The variable of a reference: another's, with the reference's type."""

    __slots__ = ("aval", "var")
    __class__ = property(lambda self: Var)  # type: ignore[assignment]

    def __init__(self, var: Any, aval: Any):
        self.var, self.aval = var, aval

    def __eq__(self, other: object) -> bool:
        return type(other) is _RefVar and self.var == other.var

    def __hash__(self) -> int:
        return hash((_RefVar, self.var))

    def __repr__(self) -> str:
        return f"{str(self.var).partition(':')[0]}:{self.aval}"


class RefEqn:
    """An equation of a program with references."""

    __slots__ = ("_eqn", "_refs")
    __class__ = property(lambda self: JaxprEqn)  # type: ignore[assignment]

    def __init__(self, eqn: Any, refs: dict[Any, _RefVar]):
        self._eqn, self._refs = eqn, refs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._eqn, name)

    @property
    def primitive(self) -> Any:
        """What is done."""
        name = self._eqn.primitive.name
        return built_in(name) if name in _EFFECTS else self._eqn.primitive

    @property
    def invars(self) -> list[Any]:
        """What it takes."""
        return [self._refs.get(v, v) for v in self._eqn.invars]

    @property
    def effects(self) -> Any:
        """What it does to references."""
        if self._eqn.primitive.name not in _EFFECTS:
            return self._eqn.effects
        return {_EFFECTS[self._eqn.primitive.name](self.invars[0])}

    def __repr__(self) -> str:
        name = self._eqn.primitive.name
        return (
            _shown(name, repr(self._eqn), self._eqn.params["chain"], self._shape())
            if name in _EFFECTS
            else repr(self._eqn)
        )

    def _shape(self) -> tuple[int, ...]:
        return tuple(self._eqn.invars[0].aval.shape)


class RefJaxpr:
    """A program with references among its arguments or constants.

    Args:
      program: the core's program, in which they are variables of their arrays' types.
      avals: types of the references, by variable.
      kept: how many of its arguments are constants of the shown one: references that the function closes over.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> def f(ref):
    ...     ref[0] += 1.0
    >>> jax.make_jaxpr(f)(jax.new_ref(jnp.zeros(3)))
    { lambda ; a:Ref{f32[3]}. let
        b:f32[] <- a[0]
        c:f32[] = add b 1.0:f32[]
        a[0] <- c
      in () }
    """

    __slots__ = ("_avals", "_kept", "_program")
    __class__ = property(lambda self: Jaxpr)  # type: ignore[assignment]

    def __init__(self, program: Any, avals: dict[Any, Any], kept: int = 0):
        self._program, self._avals = program, avals
        self._kept = kept  # how many of its arguments are references that the function closes over: constants

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program.jaxpr, name)

    def _refs(self) -> dict[Any, _RefVar]:
        return {var: _RefVar(var, aval) for var, aval in self._avals.items()}

    @property
    def constvars(self) -> list[Any]:
        """Variables of constants."""
        refs, jaxpr = self._refs(), self._program.jaxpr
        return [*jaxpr.constvars, *(refs.get(v, v) for v in jaxpr.invars[: self._kept])]

    @property
    def invars(self) -> list[Any]:
        """Variables of arguments."""
        refs = self._refs()
        return [refs.get(v, v) for v in self._program.jaxpr.invars[self._kept :]]

    @property
    def eqns(self) -> list[RefEqn]:
        """What is done, in order."""
        refs = self._refs()
        return [RefEqn(eqn, refs) for eqn in self._program.jaxpr.eqns]

    @property
    def effects(self) -> set[Any]:
        """What it does to references."""
        return {effect for eqn in self.eqns for effect in eqn.effects}

    def closed(self, consts: Sequence[Any]) -> RefClosedJaxpr:
        """The program with values of its constants."""
        own = len(self._program.jaxpr.constvars)
        program = ClosedJaxpr(self._program.jaxpr, list(consts[:own]))
        pairs = zip(self._program.jaxpr.invars, program.jaxpr.invars, strict=True)
        avals = {new: self._avals[old] for old, new in pairs if old in self._avals}
        return RefClosedJaxpr(RefJaxpr(program, avals, self._kept), consts)

    def eval(self, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """Applies the program to values of its constants and to flat arguments, references among them."""
        return self.closed(consts).eval(*args)

    def __str__(self) -> str:
        return _text(self)

    __repr__ = __str__

    def pretty_print(self, **options: Any) -> str:
        """The program as text; the options are those of programs without references."""
        from ferrax._program_text import pretty_print

        return pretty_print(self, **options)


class RefClosedJaxpr:
    """A program with references, and its constants.

    Args:
      jaxpr: the program.
      consts: its constants, references among them.
    """

    __slots__ = ("consts", "jaxpr")
    __class__ = property(lambda self: ClosedJaxpr)  # type: ignore[assignment]

    def __init__(self, jaxpr: RefJaxpr, consts: Sequence[Any]):
        self.jaxpr, self.consts = jaxpr, list(consts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.jaxpr._program, name)

    eqns = property(lambda self: self.jaxpr.eqns, doc="What is done, in order.")
    effects = property(lambda self: self.jaxpr.effects, doc="What it does to references.")
    literals = property(lambda self: self.consts, doc="The constants.")
    in_avals = property(lambda self: [v.aval for v in self.jaxpr.invars], doc="Types of the arguments.")

    def eval(self, *args: Any) -> list[Any]:
        """Applies the program to flat values, references among them."""
        kept = self.consts[len(self.consts) - self.jaxpr._kept :] if self.jaxpr._kept else []
        return _applied_to(self.jaxpr._program, [*kept, *args])[0]

    def __str__(self) -> str:
        return str(self.jaxpr)

    __repr__ = __str__

    def pretty_print(self, **options: Any) -> str:
        """The program as text."""
        return self.jaxpr.pretty_print(**options)


# ---- text ------------------------------------------------------------------------------------------------------------


def _text(jaxpr: RefJaxpr) -> str:
    """The program as JAX prints it: in one line where that is not too long."""
    raw = str(jaxpr._program.jaxpr)
    head, _, _ = raw.partition(". let")
    results = raw.rpartition("in (")[2]
    groups = [part.split() for part in head.removeprefix("{ lambda").split(";")]
    # those that have been given other values are printed among the arguments
    named, own = [*groups[0], *(groups[1] if len(groups) > 1 else [])], len(jaxpr._program.jaxpr.constvars)
    constants, arguments = named[:own], named[own:]
    typed = [_typed(t, v, jaxpr._avals) for t, v in zip(arguments, jaxpr._program.jaxpr.invars, strict=True)]
    constants, arguments = [*constants, *typed[: jaxpr._kept]], typed[jaxpr._kept :]
    start = f"{{ lambda {' '.join(constants)}; {' '.join(arguments)}. let"
    lines = [str(eqn) for eqn in jaxpr.eqns]
    one = f"{start} {'; '.join(lines)} in ({results}"
    if "\n" not in one and len(one) <= _WIDTH:
        return one
    body = "".join("\n    " + line.replace("\n", "\n    ") for line in lines)
    return f"{start}{body}\n  in ({results}"


def _typed(text: str, var: Any, avals: dict[Any, Any]) -> str:
    if var not in avals:
        return text
    name, _, kind = text.partition(":")
    return f"{name}:Ref{{{kind}}}"


def _shown(name: str, raw: str, chain: Any, shape: tuple[int, ...]) -> str:
    """An equation of a reference, as an assignment."""
    binder, operands = "", re.sub(r"(?s)^.*\] ", "", raw)
    if name != "addupdate":
        binder = raw.partition(f" = {name}[")[0]
    ref, *rest = operands.split()
    value = "" if name == "get" else rest.pop(0)
    place = ref + (_place(chain, shape, rest) or "[...]")
    if name == "get":
        return f"{binder} <- {place}"
    if name == "addupdate":
        return f"{place} += {value}"
    return f"{place} <- {value}" if binder.startswith("_") else f"{binder}, {place} <- {place}, {value}"


def _place(chain: Any, shape: tuple[int, ...], operands: Sequence[str]) -> str:
    text = ""
    for link in chain:
        kind, data = link
        if kind == "index":
            text += f"[{','.join(_axis(n, part, operands) for n, part in zip(shape, data, strict=True))}]"
        else:
            text += f"{{{_named_view(data)}}}"
        # arrays of indices are known by their names only: no view comes behind one that depends on their shapes
        shape = _shape_of(shape, link, [0] * len(operands)) if link is not chain[-1] else shape
    return text


def _named_view(view: Any) -> str:
    if isinstance(view, _ref_views.ReshapeTransform):
        return f"reshape({list(view.shape)})"
    if isinstance(view, _ref_views.TransposeTransform):
        return f"transpose({list(view.permutation)})"
    return f"bitcast({np.dtype(view.dtype).name})"


def _axis(size: int, part: Any, operands: Sequence[str]) -> str:
    kind, *data = part
    if kind == "int":
        return str(data[0])
    if kind == "operand":
        return operands[data[0]]
    start, count, _ = data
    if kind == "window":
        return f"{operands[start]}:{operands[start]}+{count}"
    return f"{start or ''}:{'' if start + count == size else start + count}"


# ---- making and discharging them -------------------------------------------------------------------------------------


def program_of(fun: Callable[..., Any], types: Sequence[Any], kept: Sequence[Any] = ()) -> RefClosedJaxpr:
    """The program of a function of flat values, some of which are references.

    Args:
      fun: the function; it gives a flat sequence of arrays.
      types: types of its arguments: `AbstractRef` for references.
      kept: references that it closes over.

    Returns:
      The program.
    """
    avals = [*(ref.aval for ref in kept), *types]
    is_ref = [isinstance(aval, _refs.AbstractRef) for aval in avals]

    def traced(*values: Any) -> Any:
        cells = {}
        given = []
        for i, (value, aval) in enumerate(zip(values, avals, strict=True)):
            if not is_ref[i]:
                given.append(value)
                continue
            ref = kept[i] if i < len(kept) else _refs.Ref(aval, None)
            cells[ref] = _RecordedCell(value)
            given.append(ref)
        with _refs.recorded(cells):
            return fun(*given[len(kept) :])

    arrays = [aval.inner_aval if ref else aval for aval, ref in zip(avals, is_ref, strict=True)]
    program = _ferrax.trace_to_jaxpr(traced, tuple(arrays), {}, "make_jaxpr", fun)
    variables = program.jaxpr.invars
    found = {v: aval for v, aval, ref in zip(variables, avals, is_ref, strict=True) if ref}
    return RefClosedJaxpr(RefJaxpr(program, found, len(kept)), [*program.consts, *kept])


def program_of_call(fun: Callable[..., Any], args: Any, kwargs: Any, clock: int) -> Any:
    """The program of a function that uses references: those among its arguments, and those that it closes over.

    Args:
      fun: the function.
      args, kwargs: its arguments.
      clock: the newest trace before the function was traced for the first time.

    Returns:
      The program.
    """
    leaves, tree = tree_util.tree_flatten((args, kwargs), is_leaf=lambda x: isinstance(x, _refs.Ref))
    for leaf in leaves:
        if isinstance(leaf, _ref_views.TransformedRef) or type(leaf) in _high_values.classes:
            raise NotImplementedError("make_jaxpr of views of references, and of values that are no arrays")
    types = [
        x if isinstance(x, _refs.AbstractRef) else x.aval if isinstance(x, _refs.Ref) else typeof(x) for x in leaves
    ]

    def flat(*values: Any) -> Any:
        given, named = tree.unflatten(values)
        return fun(*given, **named)

    _refs.found_since(clock)  # of the first trace, which is not kept
    before = _ferrax.trace_clock()
    program = program_of(flat, types)
    kept = _refs.found_since(before) if _ferrax.references_since(before) else []
    if any(not isinstance(ref, _refs.Ref) for ref in kept):
        raise NotImplementedError("make_jaxpr of a function that closes over values that are no arrays")
    return program_of(flat, types, kept) if kept else program


def discharged(closed: Any, should_discharge: Any = True) -> Any:
    """A program of arrays that does what one of references does: it takes and gives, last, the references' values.

    Args:
      closed: the program.
      should_discharge: which arguments, of those that are references; the others stay references.

    Returns:
      A `ClosedJaxpr`; a `RefClosedJaxpr` where references stay.
    """
    if type(closed) is ClosedJaxpr:
        return closed
    program, refs = closed.jaxpr._program, closed.jaxpr._avals
    if closed.jaxpr._kept:
        raise NotImplementedError("discharge_state of a program that closes over references is not implemented")
    variables = program.jaxpr.invars
    wanted = [should_discharge] * len(variables) if isinstance(should_discharge, bool) else should_discharge
    staying = {v: refs[v] for v, want in zip(variables, wanted, strict=True) if v in refs and not want}

    def run(*values: Any) -> Any:
        results, env = _applied_to(program, values)
        return [*results, *(env[v] for v in variables if v in refs and v not in staying)]

    if staying:
        return program_of(run, [staying.get(v, v.aval) for v in variables])
    return _ferrax.trace_to_jaxpr(run, tuple(v.aval for v in variables), {}, "make_jaxpr")


def _applied_to(program: Any, values: Sequence[Any]) -> tuple[list[Any], dict[Any, Any]]:
    """Does a program to values, some of which are references: its results, and what its variables are at the end."""
    env: dict[Any, Any] = dict(zip(program.jaxpr.invars, values, strict=True))
    env.update(zip(program.jaxpr.constvars, program.consts, strict=True))

    def read(atom: Any) -> Any:
        return _ferrax.asarray(atom.val) if isinstance(atom, _ferrax.Literal) else env[atom]

    for eqn in program.jaxpr.eqns:
        operands = [read(x) for x in eqn.invars]
        name = eqn.primitive.name
        if name in _EFFECTS and "chain" in eqn.params:
            outs = _applied(name, eqn, env, operands)
        else:
            outs = eqn.apply(*operands)
        env.update(zip(eqn.outvars, outs, strict=True))
    return list(map(read, program.jaxpr.outvars)), env


def _applied(name: str, eqn: Any, env: dict[Any, Any], operands: Sequence[Any]) -> list[Any]:
    """Does an equation of a reference to the array that it holds; the equation's results."""
    whole, chain = operands[0], eqn.params["chain"]
    if isinstance(whole, _refs.Ref):  # it stays a reference
        views = _views(chain, operands[1:] if name == "get" else operands[2:])
        part = _ref_views.TransformedRef(whole, views)
        given = () if name == "get" else operands[1:2]
        result = getattr(part, name)(*given)
        return [] if name == "addupdate" else [result]
    value, *rest = operands[0 if name == "get" else 1 :]
    window = _window(chain, rest)
    if window is not None:
        old, env[eqn.invars[0]] = _moved(whole, window, None if name == "get" else value, name == "addupdate")
        return [] if name == "addupdate" else [old]
    if name == "get":
        return [_seen(whole, chain, rest)]
    views = _views(chain, rest)
    old = _seen(whole, chain, rest)
    env[eqn.invars[0]] = _ref_views.changed(whole, views, value, name == "addupdate")
    return [] if name == "addupdate" else [old]


def _window(chain: Any, operands: Sequence[Any]) -> Any:
    """Starts, sizes and numbered axes of the window that a chain is, of numbers and slices without steps; else None."""
    if len(chain) != 1 or chain[0][0] != "index":
        return None
    starts: list[Any] = []
    sizes: list[int] = []
    for kind, *data in chain[0][1]:
        if kind in ("slice", "window") and data[2] == 1:
            starts.append(operands[data[0]] if kind == "window" else data[0])
            sizes.append(data[1])
        elif kind == "int" or (kind == "operand" and np.ndim(operands[data[0]]) == 0):
            starts.append(data[0] if kind == "int" else operands[data[0]])
            sizes.append(1)
        else:
            return None
    return starts, sizes, [i for i, (kind, *_) in enumerate(chain[0][1]) if kind in ("int", "operand")]


def _moved(whole: Any, window: Any, value: Any, adds: bool) -> tuple[Any, Any]:
    """What is in a window of an array, and the array with a value there, if there is one, or with it added."""
    from ferrax import lax

    starts, sizes, numbered = window
    if value is None and not numbered and all(type(i) is int for i in starts):
        ends = [i + n for i, n in zip(starts, sizes, strict=True)]
        return lax.slice(whole, starts, ends), whole
    old = lax.dynamic_slice(whole, starts, sizes)
    if value is None:
        return lax.squeeze(old, numbered), whole
    new = lax.expand_dims(value, numbered)
    seen = None if adds else lax.squeeze(old, numbered)
    return seen, lax.dynamic_update_slice(whole, old + new if adds else new, starts)
