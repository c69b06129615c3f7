"""References: arrays that are read and written in place, `ferrax.new_ref`.

Programs stay pure. A `Ref` is a Python object that holds a value. A function that uses one which is older than the
trace it runs in is traced again as a function that takes the reference's value and gives its new one; whoever calls
it writes that back, which is itself a use of the reference in the trace around, and so on outwards. What a first
trace reads and writes meanwhile lies in cells of its own and is dropped with it.

`jit` and `vmap` find references in Rust (`crates/ferrax-python/src/api/references.rs`) and hand the call to `ImpureJit`
and `mapped` here; loops and branches ask `found_since` after tracing a body (`lax/control_flow.py`).
Read next: `ref.py`, the public functions; `_refs_calls.py`, the functions that are traced again.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ferrax import _ferrax
from ferrax._avals import AbstractValue, aval_method, aval_property
from ferrax._core import ShapedArray, asarray, is_arraylike, typeof, with_weak_type
from ferrax._high_values import HighRef, State, lent as _lent_value
from ferrax._refs_replays import Cells, Found, Replay

__all__ = [
    "AbstractRef",
    "Ref",
    "bound",
    "cell_of",
    "check_index",
    "differentiated",
    "ended",
    "ending",
    "fitting",
    "found_since",
    "hidden",
    "is_all",
    "lent",
    "mode_of_index",
    "named_axes_only",
    "note_rule",
    "read",
    "recorded",
    "recording",
    "rules_noted",
    "settled",
    "update",
    "write",
]


class AbstractRef(AbstractValue):
    """The type of a reference: that of the array it holds.

    Args:
      inner_aval: shape, dtype and weak type of the array.
      memory_space: accepted as None.
      kind: accepted as None or `"no_grad_no_remat"`.

    >>> import ferrax as jax
    >>> jax.ref.AbstractRef(jax.typeof(jax.numpy.ones(2)))
    Ref{float32[2]}
    """

    __slots__ = ("_inner", "_kind", "_space")

    def __init__(self, inner_aval: Any, memory_space: Any = None, kind: Any = None):
        self._inner, self._space, self._kind = inner_aval, memory_space, kind

    inner_aval = property(lambda self: self._inner, doc="Shape, dtype and weak type of the array.")
    memory_space = property(lambda self: self._space, doc="None: where arrays are by default.")
    kind = property(lambda self: self._kind, doc='None or `"no_grad_no_remat"`.')
    shape = property(lambda self: self.inner_aval.shape, doc="Shape of the array.")
    dtype = property(lambda self: self.inner_aval.dtype, doc="Dtype of the array.")
    ndim = property(lambda self: len(self.inner_aval.shape), doc="Number of axes of the array.")
    size = property(lambda self: self.inner_aval.size, doc="Number of elements of the array.")
    weak_type = property(lambda self: self.inner_aval.weak_type, doc="Whether the array is weakly typed.")

    sharding = property(lambda self: self.inner_aval.sharding, doc="Axes of the array that are bound to a mesh's.")
    manual_axis_type = property(lambda self: self.inner_aval.manual_axis_type, doc="Manual axes that it varies over.")
    mat = manual_axis_type

    # what references of the type have
    at = aval_property(lambda ref: ref.at)
    get = aval_method(lambda ref, idx=...: ref[idx])
    set = aval_method(lambda ref, value, idx=...: ref.__setitem__(idx, value))
    swap = aval_method(lambda ref, value, idx=...: swap(ref, idx, value))
    addupdate = aval_method(lambda ref, value, idx=...: ref.addupdate(value, idx))

    bitcast = aval_method(lambda ref, dtype: ref.bitcast(dtype))
    reshape = aval_method(lambda ref, *shape: ref.reshape(*shape))
    transpose = aval_method(lambda ref, *axes: ref.transpose(*axes))
    T = aval_property(lambda ref: ref.T)

    def update(self, inner_aval: Any = None, memory_space: Any = None, kind: Any = None, **parts: Any) -> AbstractRef:
        """The type with another array, or an array with other parts (shape, dtype, weak type)."""
        inner = self.inner_aval if inner_aval is None else inner_aval
        return AbstractRef(
            inner.update(**parts) if parts else inner,
            self.memory_space if memory_space is None else memory_space,
            self.kind if kind is None else kind,
        )

    def update_weak_type(self, weak_type: bool) -> AbstractRef:
        """The type of an array with this weak type."""
        return self.update(self.inner_aval.update_weak_type(weak_type))

    def to_tangent_aval(self) -> AbstractRef:
        """The type of a reference to tangents."""
        return self.update(self.inner_aval.to_tangent_aval())

    def to_ct_aval(self) -> AbstractRef:
        """The type of a reference to cotangents."""
        return self.update(self.inner_aval.to_ct_aval())

    def dec_rank(self, size: int, spec: Any) -> AbstractRef:
        """The type inside of a `vmap` over the axis `spec`."""
        return self.update(self.inner_aval.dec_rank(size, spec))

    def inc_rank(self, size: int, spec: Any) -> AbstractRef:
        """The type outside of a `vmap` over the axis `spec`."""
        return self.update(self.inner_aval.inc_rank(size, spec))

    def lower_val(self, ref: Any) -> list[Any]:
        """What programs hold for a reference: itself."""
        return [ref]

    def raise_val(self, ref: Any) -> Any:
        """The reference that programs hold this for: itself."""
        return ref

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """The type as text."""
        return f"Ref{{{self.inner_aval.strip_weak_type().str_short(short_dtypes)}}}"

    def __repr__(self) -> str:
        return self.str_short()

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, AbstractRef) and self.inner_aval == other.inner_aval

    def __hash__(self) -> int:
        return hash((AbstractRef, self.inner_aval))


class _Cell:
    """A value of a reference, and where it counts.

    Attributes:
      value: an array or tracer; None when the reference has been frozen.
      scope: the staging trace in which it was made; 0 where operations run at once.
      written: whether it has another value than at first.
      born: number of the newest trace at that time. Values of later transformations are not to be kept.
    """

    __slots__ = ("born", "scope", "value", "written")

    def __init__(self, value: Any):
        self.value, self.written = value, False
        self.scope, self.born = _ferrax.staging_trace(), _ferrax.trace_clock()


class _Local(threading.local):
    """What the traces of a thread know of references."""

    def __init__(self) -> None:
        #: of references whose function is traced for their values: the cells that count now
        self.bound: dict[Any, _Cell] = {}
        #: by trace: of older references, cells that are dropped with the trace
        self.found: dict[int, Cells] = {}
        #: those of the trace that ends
        self.ending: Cells | None = None
        #: references in whose places a function has others, and what to say when it uses them all the same
        self.hidden: dict[Ref, str] = {}
        #: references whose reads and writes are equations of a program (`_ref_programs.py`): their cells
        self.recorded: dict[Ref, Any] = {}
        #: how many calls of functions with backward rules that take references there have been
        self.rules = 0
        #: the newest staging trace with such a call
        self.ruled = 0
        #: whether the mapped axes in force only have names, as those of a grid do: nothing is mapped over them
        self.named_only = False


_local = _Local()


class Ref:
    """An array that is read and written in place, by indexing. `new_ref` makes one.

    Reading takes the indices of arrays; writing wants a value of the shape and dtype that reading gives. It is no
    array: functions of arrays take `ref[...]`.

    Args:
      aval: the reference's type.
      refs: the array that it holds.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> ref = jax.new_ref(jnp.zeros(3))
    >>> @jax.jit
    ... def step():
    ...     ref[1] += 1.0
    >>> step(); step()
    >>> ref
    Ref([0., 2., 0.], dtype=float32)
    """

    __slots__ = ("__weakref__", "_aval", "_home", "_made")
    __array_priority__ = 1000

    def __init__(self, aval: AbstractRef, refs: Any):
        self._aval, self._home, self._made = aval, _Cell(refs), ""

    aval = property(lambda self: self._aval, doc="The type: an `AbstractRef`.")
    shape = property(lambda self: self._aval.shape, doc="Shape of the array.")
    dtype = property(lambda self: self._aval.dtype, doc="Dtype of the array.")
    ndim = property(lambda self: len(self._aval.shape), doc="Number of axes of the array.")
    size = property(lambda self: self._aval.size, doc="Number of elements of the array.")
    weak_type = property(lambda self: self._aval.weak_type, doc="Whether the array is weakly typed.")
    sharding = property(lambda self: read(self).sharding, doc="Where the array is.")
    format = property(lambda self: read(self).format, doc="Where the array is, and the order of its axes in memory.")
    committed = property(lambda self: read(self).committed, doc="Whether the array stays where it is.")

    def kept(self, value: Any) -> Any:
        """What a cell of it holds."""
        return value

    def __getitem__(self, idx: Any) -> Any:
        if _local.recorded and not is_all(idx):
            done, value = recording(self, "get", [idx])
            if done:
                return value
        value = read(self)
        if idx is Ellipsis:
            return value
        check_index(self.shape, idx, self._aval)
        return value[idx]

    def __setitem__(self, idx: Any, value: Any) -> None:
        swap(self, idx, value)

    @property
    def at(self) -> Any:
        """Views of parts of the array: `ref.at[idx]`."""
        from ferrax._ref_views import RefIndexer

        return RefIndexer(self)

    @property
    def T(self) -> Any:
        """A view of the array with its axes reversed."""
        return self._whole().T

    def reshape(self, *shape: Any) -> Any:
        """A view of the array in another shape, of which one size may be -1."""
        return self._whole().reshape(*shape)

    def transpose(self, *permutation: Any) -> Any:
        """A view of the array with its axes in another order."""
        return self._whole().transpose(*permutation)

    def bitcast(self, dtype: Any) -> Any:
        """A view of the array's bits as numbers of another dtype."""
        return self._whole().bitcast(dtype)

    def _whole(self) -> Any:
        from ferrax._ref_views import TransformedRef

        return TransformedRef(self, ())

    def get(self, idx: Any = ...) -> Any:
        """Reads: `ref[idx]`."""
        return self[idx]

    def set(self, value: Any, idx: Any = ...) -> None:
        """Writes: `ref[idx] = value`."""
        swap(self, idx, value)

    def swap(self, value: Any, idx: Any = ...) -> Any:
        """Writes, and gives what was there."""
        return swap(self, idx, value)

    def addupdate(self, x: Any, idx: Any = ...) -> None:
        """Adds to the elements at an index.

        Args:
          x: array of the shape and dtype of `self[idx]`.
          idx: index; all of the array by default.
        """
        update(self, idx, x, "addupdate", lambda at, v, mode: at.add(v, mode=mode))

    def unsafe_buffer_pointer(self) -> int:
        """Address of the array's memory."""
        return read(self).unsafe_buffer_pointer()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(read(self))

    def __repr__(self) -> str:
        cell = cell_of(self)
        if cell.value is None:
            return f"Ref<frozen, {self._aval}>"
        # what has been written shows its own type, as in JAX, though it is read as a number where the first one was
        return f"Ref{_text(with_weak_type(cell.value, False) if cell.written else cell.value)}"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise TypeError(f"a reference of type {self._aval} is no array: read it by ref[...] first")

    def __reduce__(self) -> Any:
        return _restore, (np.asarray(read(self)), self.weak_type)


def _text(value: Any) -> str:
    text = repr(value)
    return text.removeprefix("Array") if text.startswith("Array(") else f"({text})"


def _restore(value: Any, weak: bool) -> Ref:
    array = asarray(value)
    return make(with_weak_type(array, True) if weak else array)


def _forget() -> None:
    """Drops what traces that have failed leave: none is at work."""
    _local.found.clear()
    _ferrax.references_settled(0)


def make(value: Any, kind: Any = None) -> Ref:
    """A reference that holds an array; in a trace it knows its line, for the error of a function that returns it."""
    scope = _ferrax.staging_trace()
    if _local.found and not scope:
        _forget()
    ref = Ref(AbstractRef(typeof(value), None, kind), value)
    if scope:
        from ferrax.extend import source_info_util

        ref._made = source_info_util.summarize(source_info_util.current())
    return ref


def cell_of(ref: Any) -> Any:
    """The cell that counts in the trace in force; notes the use of a reference that is older than the trace."""
    if _local.hidden and ref in _local.hidden:
        raise ValueError(_local.hidden[ref])
    cell = _local.bound.get(ref, ref._home)
    scope = _ferrax.staging_trace()
    if cell.scope == scope:
        if not scope and _local.found:
            _forget()
        return cell
    _ferrax.note_reference()
    cells = _local.found.get(scope)
    if cells is None:
        cells = _local.found[scope] = Cells()
    if ref not in cells:
        found = cells[ref] = _Cell(cells.first(ref, cell.value))
        if ref in cells.places:
            found.born = scope  # what it holds at the end is written outside
    return cells[ref]


def read(ref: Any) -> Any:
    """The array that a reference holds; the state of a value that is no array."""
    if isinstance(ref, HighRef):
        return ref.read(cell_of(ref))
    value = cell_of(ref).value
    if value is None:
        raise ValueError(f"a reference of type {ref._aval} was used after it had been frozen")
    # what was written last need not be of the reference's weak type
    return value if value.weak_type == ref.weak_type else with_weak_type(value, ref.weak_type)


def write(ref: Any, value: Any) -> None:
    """Lets a reference hold another array of its type; gives a value that is no array another state."""
    if isinstance(ref, HighRef):
        ref.write(cell_of(ref), value)
        return
    cell = cell_of(ref)
    new = settled(ref, cell, value)
    if not cell.scope and new.weak_type != ref.weak_type:
        new = with_weak_type(new, ref.weak_type)  # once, instead of at each read
    cell.value, cell.written = new, True


def settled(ref: Any, cell: Any, value: Any) -> Any:
    """A value for a cell of a reference, which no transformation that began later may see."""
    if ref._aval.kind is not None:
        from ferrax.lax import stop_gradient

        value = stop_gradient(value)  # what it holds has no slopes
    try:
        return _ferrax.value_for_reference(value, cell.born, written=not _local.named_only)
    except ValueError as error:
        what, of = {
            "vmapped": ("vmapped value on an unbatched", "to the vmapped"),
            "differentiated": ("a differentiated value on a non-differentiated", "of the differentiated"),
        }[str(error)]
        raise Exception(
            f"performing a set/swap operation with {what} array reference of type {ref._aval}. Move the array "
            f"reference to be an argument {of} function?"
        ) from None


@contextmanager
def named_axes_only() -> Iterator[None]:
    """Mapped axes that are entered in here only have names: references may be written whatever their age."""
    before, _local.named_only = _local.named_only, True
    try:
        yield
    finally:
        _local.named_only = before


def fitting(ref: Any, name: str, value: Any, shape: Any) -> Any:
    """A value to be written, of the reference's dtype."""
    if _ferrax.is_reference(value) or not is_arraylike(value):
        raise TypeError(f"`{name}` writes arrays and numbers, got {type(value).__name__}")
    value = asarray(value)
    if value.shape != shape:
        raise ValueError(
            f"Invalid shape for `{name}`. Ref shape: {ref.shape}. Expected shape: {shape}. Value shape: {value.shape}. "
            "Transforms: ()."
        )
    if value.dtype != ref.dtype:
        strong = ShapedArray((), ref.dtype)
        if not (value.weak_type and _ferrax.result_type(value, strong) == ref.dtype):
            raise ValueError(f"Invalid dtype for `{name}`. Ref dtype: {ref.dtype}. Value dtype: {value.dtype}. ")
        value = _ferrax.lax.convert(value, ref.dtype)
    return value


def is_all(idx: Any) -> bool:
    """Whether an index stands for all of an array."""
    return idx is Ellipsis or (isinstance(idx, tuple) and not idx)


def check_index(shape: tuple[int, ...], idx: Any, aval: Any = None) -> None:
    """Raises where a window or a number of known place is not in an array of a shape, that of a reference of a type."""
    if _ferrax.has_windows(idx):
        from ferrax._slices import check_bounds

        check_bounds(idx, shape)
        return
    entries = idx if isinstance(idx, tuple) else (idx,)
    axes = [_axes_of(e) for e in entries]
    axis = 0
    for entry, taken in zip(entries, axes, strict=True):
        if entry is Ellipsis:
            axis += max(len(shape) - sum(axes), 0)
        elif taken == 1 and axis < len(shape) and (_known_number(entry) or 0) >= max(shape[axis], 1):
            raise ValueError(
                f"Out of bound indexer: idx={_known_number(entry)}, dim={shape[axis]}."
                + (f" The reference has type {aval}." if aval is not None else "")
            )
        axis += taken


def _axes_of(entry: Any) -> int:
    """How many axes an entry of an index takes."""
    if entry is None or entry is Ellipsis or isinstance(entry, (bool, np.bool_)):
        return 0
    mask = isinstance(entry, (np.ndarray, _ferrax.Array)) and entry.dtype == np.dtype(bool)
    return entry.ndim if mask else 1


def _known_number(entry: Any) -> int | None:
    """An index that is a number, and not a traced one."""
    if _ferrax.is_tracer(entry) or np.ndim(entry) != 0 or isinstance(entry, slice):
        return None
    try:
        return operator.index(entry)
    except TypeError:
        return None


def mode_of_index(shape: tuple[int, ...], idx: Any) -> str | None:
    """What happens to indices out of bounds: windows move into the array, as they do where it is read."""
    if not _ferrax.has_windows(idx):
        return None
    from ferrax._slices import clipped

    return "clip" if clipped(idx, shape) else None


def swap(ref: Ref, idx: Any, value: Any, name: str = "swap") -> Any:
    """Writes to an index; gives what was there."""
    if _local.recorded:
        done, old = recording(ref, name, [] if is_all(idx) else [idx], value)
        if done:
            return old
    whole = read(ref)
    if is_all(idx):
        old, new = whole, fitting(ref, name, value, ref.shape)
    else:
        check_index(ref.shape, idx, ref._aval)
        old = whole[idx]
        new = whole.at[idx].set(fitting(ref, name, value, old.shape), mode=mode_of_index(ref.shape, idx))
    write(ref, new)
    return old


def update(ref: Ref, idx: Any, value: Any, name: str, change: Any) -> None:
    """Changes the elements at an index by a value of their shape."""
    if _local.recorded and name == "addupdate" and recording(ref, name, [] if is_all(idx) else [idx], value)[0]:
        return
    whole = read(ref)
    if idx is not Ellipsis:
        check_index(ref.shape, idx, ref._aval)
    shape = ref.shape if idx is Ellipsis else whole[idx].shape
    write(ref, change(whole.at[idx], fitting(ref, name, value, shape), mode_of_index(ref.shape, idx)))


def note_rule(refs: Sequence[Ref]) -> None:
    """Notes a call of a function whose backward rule takes references, which is a use of them."""
    _local.rules += 1
    _local.ruled = max(_local.ruled, _ferrax.staging_trace())
    for ref in refs:
        read(ref)


def rules_noted() -> int:
    """How many calls of functions with backward rules that take references there have been in this thread."""
    return _local.rules


def differentiated(values: Any) -> bool:
    """Whether some of these values are seen by a transformation of derivatives or of batches."""
    for value in filter(_ferrax.is_tracer, values):
        try:
            _ferrax.value_for_reference(value, 0)
        except ValueError:
            return True
    return False


def freeze(ref: Ref) -> Any:
    """The last value of a reference, which nobody can use then; in the trace that made it alone."""
    value = read(ref)
    if ref in _local.bound or ref._home.scope != _ferrax.staging_trace():
        raise ValueError(f"a reference of type {ref._aval} can only be frozen where it was made")
    ref._home.value = None
    return value


def lent(values: Sequence[Any], avals: Sequence[Any] = ()) -> list[Any]:
    """References for a function that gets some as arguments; they hold values where they are `bound`.

    `avals` are the types of those in whose places they stand, if these are known.
    """
    kinds = [getattr(aval, "kind", None) for aval in avals] or [None] * len(values)
    pairs = zip(values, kinds, strict=True)
    return [_lent_value(v) if isinstance(v, State) else Ref(AbstractRef(typeof(v), None, k), None) for v, k in pairs]


@contextmanager
def bound(refs: Sequence[Any], values: Sequence[Any]) -> Iterator[None]:
    """Lets references hold these values in the trace in force, until the end of the block."""
    before = dict(_local.bound)
    try:
        _local.bound.update((ref, _Cell(ref.kept(value))) for ref, value in zip(refs, values, strict=True))
        yield
    finally:
        _local.bound = before


@contextmanager
def recorded(cells: dict[Any, Any]) -> Iterator[None]:
    """Lets reads and writes of references be equations, made by their cells, until the end of the block."""
    before, known = dict(_local.bound), _local.recorded
    try:
        _local.bound.update(cells)
        _local.recorded = {**known, **cells}
        yield
    finally:
        _local.bound, _local.recorded = before, known


def recording(ref: Any, name: str, views: Sequence[Any], value: Any = None) -> tuple[bool, Any]:
    """Reads or writes what views of a reference show by an equation: whether there was one, and what it gives.

    Entries of `views` are indices, or transforms of `_ref_views`.
    """
    cell = _local.recorded.get(ref)
    if cell is None or cell.scope != _ferrax.staging_trace():
        return False, None
    from ferrax._ref_programs import Unshown
    from ferrax._ref_views import IndexTransform

    if len(views) == 1 and not hasattr(views[0], "apply"):
        check_index(ref.shape, views[0], ref._aval)
    chain = [v if hasattr(v, "apply") else IndexTransform(v) for v in views]
    try:
        return True, cell.bound(ref, "swap" if name == "set" else name, chain, value)
    except Unshown:
        return False, None


@contextmanager
def hidden(refs: Sequence[Ref], names: Sequence[str], fun: Any, transform: str) -> Iterator[None]:
    """Within the block the function `fun` must not use these references, which are its arguments `names`."""
    from ferrax._refs_calls import described

    before = _local.hidden
    texts = {
        ref: f"when tracing {described(fun)} for {transform}, a mutable array reference of type {ref.aval} was both "
        f"closed over and passed as the argument {name}"
        for ref, name in zip(refs, names, strict=True)
    }
    _local.hidden = {**before, **texts}
    try:
        yield
    finally:
        _local.hidden = before


def ending() -> list[Any]:
    """What the references hold that the trace in force found, at its end, where its program tells all: no backward rule
    takes a reference, and no trace inside found one that is still to be looked after."""
    scope = _ferrax.staging_trace()
    cells = _local.found.get(scope)
    if cells is None or len(cells.places) < len(cells) or _local.ruled >= scope or max(_local.found) > scope:
        return []
    _local.ending = cells
    return [read(ref) for ref in cells]


def ended(fun: Any, program: Any) -> None:
    """Notes the program of a function whose trace has ended, with the results of `ending` as its last ones."""
    cells, _local.ending = _local.ending, None
    if cells is not None:
        cells.replay = Replay(fun, program, cells.places)


def found_since(clock: int) -> Found:
    """The references that traces after `clock` used and that are older than these, in the order of their first use."""
    if not _ferrax.references_since(clock):
        return Found([])
    found = Found([_local.found.pop(scope) for scope in sorted(_local.found) if scope > clock])
    _ferrax.references_settled(max(_local.found, default=0))
    return found
