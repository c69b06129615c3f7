"""What a kernel's caller says of it: how arrays are cut into blocks, over which grid, with which scratch memory.

These classes hold descriptions only; `_mapping.py` makes windows of arrays of them, and `_call.py` runs kernels.
Memory spaces, buffering and compiler parameters steer compilers of GPUs and TPUs: the interpreter has one memory.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from ferrax._avals import AbstractValue
from ferrax._core import Array, ShapedArray
from ferrax._refs import AbstractRef
from ferrax._shapes import is_symbolic_dim

__all__ = [
    "BlockDim",
    "BlockSpec",
    "Blocked",
    "BoundedSlice",
    "Buffered",
    "CompilerParams",
    "CostEstimate",
    "Element",
    "GridSpec",
    "Indirect",
    "MemoryRef",
    "MemorySpace",
    "RevisitMode",
    "Semaphore",
    "Squeezed",
    "is_known",
    "no_block_spec",
    "squeezed",
]


@enum.unique
class RevisitMode(enum.Enum):
    """Whether a block of a result may be written again after another one.

    Args:
      value: the mode's name.

    >>> from ferrax.experimental import pallas as pl
    >>> pl.RevisitMode.ANY.value
    'any'
    """

    IMMEDIATE = "immediate"
    ANY = "any"


@dataclasses.dataclass(frozen=True)
class Buffered:
    """How many buffers a block has in a pipeline; the interpreter has no pipeline.

    Args:
      buffer_count: number of buffers.
      use_lookahead: whether a block is fetched as soon as there is room.
      revisit: whether a result's block may be written again later.

    >>> from ferrax.experimental import pallas as pl
    >>> pl.Buffered(2).buffer_count
    2
    """

    buffer_count: int
    use_lookahead: bool = False
    revisit: RevisitMode | None = None


class Semaphore:
    """The dtype of semaphores, which the interpreter counts in int16."""

    def __init__(self, name: str = "semaphore"):
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Semaphore) and self.name == other.name

    def __hash__(self) -> int:
        return hash((Semaphore, self.name))


class _Unarrayed(AbstractValue):
    """The type of memory of what is no array."""

    def __init__(self, shape: tuple[int, ...], dtype: Any):
        self.shape, self.dtype = shape, dtype


def _aval(shape: Sequence[int], dtype: Any) -> Any:
    kind = _Unarrayed if isinstance(dtype, Semaphore) else ShapedArray
    return kind(tuple(shape), dtype)


@dataclasses.dataclass(frozen=True)
class MemoryRef:
    """The type of a piece of memory: an array's type, and where it is.

    Args:
      inner_aval: shape and dtype.
      memory_space: a `MemorySpace` of this package or of `pallas.tpu`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import pallas as pl
    >>> pl.MemorySpace.ANY((2, 3), jnp.float32).shape
    (2, 3)
    """

    inner_aval: Any
    memory_space: Any

    shape = property(lambda self: self.inner_aval.shape, doc="Shape of the memory.")
    dtype = property(lambda self: self.inner_aval.dtype, doc="Dtype of its elements.")

    def get_array_aval(self) -> Any:
        """The type of the array."""
        return self.inner_aval

    def get_ref_aval(self) -> AbstractRef:
        """The type of references to it."""
        return AbstractRef(self.inner_aval, self.memory_space)


class MemorySpace(enum.Enum):
    """Where memory is. The interpreter has one memory: the spaces are names.

    Args:
      value: the space's name.

    Returns:
      A space; called with a shape and a dtype, it gives the type of such memory.

    >>> from ferrax.experimental import pallas as pl
    >>> str(pl.MemorySpace.HOST)
    'host'
    """

    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"
    HOST = "host"

    def from_type(self, type: Any) -> MemoryRef:
        """Memory of a type in this space."""
        return MemoryRef(type, self)

    def __call__(self, shape: Sequence[int], dtype: Any) -> MemoryRef:
        return self.from_type(_aval(shape, dtype))

    def __str__(self) -> str:
        return self.value


@dataclasses.dataclass(frozen=True)
class Blocked:
    """A size of a block whose index counts blocks: what a plain integer means.

    Args:
      block_size: elements of the block along the axis.

    >>> from ferrax.experimental import pallas as pl
    >>> print(pl.Blocked(4))
    Blocked(4)
    """

    block_size: int

    def __str__(self) -> str:
        return f"Blocked({self.block_size})"


@dataclasses.dataclass(frozen=True)
class Element:
    """A size of a block whose index counts elements.

    Args:
      block_size: elements of the block along the axis.
      padding: elements that are thought before and after those of the array.

    >>> from ferrax.experimental import pallas as pl
    >>> print(pl.Element(4))
    Element(4)
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        tail = "" if self.padding == (0, 0) else f", padding={self.padding}"
        return f"Element({self.block_size}{tail})"


@dataclasses.dataclass(frozen=True)
class Squeezed:
    """An axis of one element that the kernel does not see: what `None` means.

    >>> from ferrax.experimental import pallas as pl
    >>> pl.squeezed
    Squeezed()
    """


squeezed = Squeezed()


@dataclasses.dataclass(frozen=True)
class BoundedSlice:
    """An axis whose index is a window of any size up to this one; the interpreter has no such blocks.

    Args:
      block_size: the largest size of a window.

    >>> from ferrax.experimental import pallas as pl
    >>> pl.BoundedSlice(8)
    BoundedSlice(8)
    """

    block_size: int

    def __repr__(self) -> str:
        return f"BoundedSlice({self.block_size})"


@dataclasses.dataclass(frozen=True)
class Indirect:
    """An axis whose index is an array of indices; the interpreter has no such blocks.

    Args:
      block_size: number of indices.

    >>> from ferrax.experimental import pallas as pl
    >>> pl.Indirect(8)
    Indirect(8)
    """

    block_size: int

    def __repr__(self) -> str:
        return f"Indirect({self.block_size})"


BlockDim = Element | Squeezed | Blocked | BoundedSlice | Indirect


class _IndexMap:
    """A function that gives the index of a block, as a tuple; equal to another of the same function."""

    def __init__(self, index_map: Callable[..., Any]):
        self.index_map = index_map

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        out = self.index_map(*args)
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)

    def __repr__(self) -> str:
        return f"_IndexMapFunc({self.index_map})"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _IndexMap) and self.index_map == other.index_map

    def __hash__(self) -> int:
        return hash(self.index_map)


@dataclasses.dataclass
class BlockSpec:
    """Which block of an array a step of the grid works on.

    Args:
      block_shape: a size for each axis of the array: an integer, None for an axis of one element that the kernel does
        not see, or a `BlockDim`; None for the whole array.
      index_map: function from the place in the grid to the block's index, of one integer an axis; zeros by default.
      memory_space: where the block is; a hint.
      pipeline_mode: a `Buffered`; a hint.

    >>> from ferrax.experimental import pallas as pl
    >>> pl.BlockSpec((8, 128), lambda i, j: (i, j)).block_shape
    (8, 128)
    """

    block_shape: Sequence[BlockDim | int | None] | None = None
    index_map: Callable[..., Any] | None = None
    memory_space: Any | None = dataclasses.field(kw_only=True, default=None)
    pipeline_mode: Buffered | None = None

    def __post_init__(self) -> None:
        if self.index_map is not None and not isinstance(self.index_map, _IndexMap):
            self.index_map = _IndexMap(self.index_map)

    replace = dataclasses.replace


def is_known(size: Any) -> bool:
    """Whether a size of a grid belongs to the program: an integer, or a symbolic size."""
    return isinstance(size, int) or is_symbolic_dim(size)


class _NoBlockSpec:
    """Stands for no description: whole arrays are the blocks."""

    def __repr__(self) -> str:
        return "NoBlockSpec"


no_block_spec = _NoBlockSpec()


@dataclasses.dataclass(init=False, kw_only=True)
class GridSpec:
    """The grid of a kernel, the blocks of its operands and results, and its scratch memory.

    Args:
      grid: sizes of the grid, integers or scalars that are traced; one of them, or pairs `(name, size)`.
      in_specs: a `BlockSpec` for each operand; whole arrays by default.
      out_specs: a `BlockSpec` for each result; whole arrays by default.
      scratch_shapes: types of memory that the kernel gets behind its results.

    >>> from ferrax.experimental import pallas as pl
    >>> pl.GridSpec(grid=4).grid
    (4,)
    """

    grid: tuple[Any, ...]
    grid_names: tuple[Any, ...] | None
    in_specs: Any
    out_specs: Any
    scratch_shapes: Any = ()

    def __init__(
        self,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ):
        if in_specs is not no_block_spec and not isinstance(in_specs, (tuple, list)):
            raise ValueError(f"`in_specs` must be a tuple or a list. Found: {in_specs}")
        self.in_specs = tuple(in_specs) if isinstance(in_specs, list) else in_specs
        self.out_specs = tuple(out_specs) if isinstance(out_specs, list) else out_specs
        self.scratch_shapes = scratch_shapes if isinstance(scratch_shapes, dict) else tuple(scratch_shapes)
        names = None
        if isinstance(grid, int):
            grid = (grid,)
        elif grid and isinstance(grid[0], tuple):
            names, grid = zip(*grid, strict=True)
        if not all(is_known(g) or isinstance(g, Array) for g in grid):
            raise ValueError(f"Grid must be a tuple of integers or jax.Array, got {grid}")
        self.grid, self.grid_names = tuple(grid), names

    def _with(self, **parts: Any) -> GridSpec:
        other = copy.copy(self)
        for name, value in parts.items():
            setattr(other, name, value)
        return other


@dataclasses.dataclass(frozen=True)
class CostEstimate:
    """How much work a kernel is, for a compiler that plans around it.

    Args:
      flops: operations.
      transcendentals: evaluations of exponentials and the like.
      bytes_accessed: bytes that are read and written.
      remote_bytes_transferred: bytes that go to other devices.

    >>> from ferrax.experimental import pallas as pl
    >>> pl.CostEstimate(flops=2, transcendentals=0, bytes_accessed=8).to_json().decode()[:12]
    '{"flops": 2,'
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            if not isinstance(value, int):
                raise ValueError(
                    f"All fields in CostEstimate must be ints. {name} is not an int: {type(value)}({value})"
                )

    def to_json(self) -> bytes:
        """The numbers as a JSON object."""
        parts = ", ".join(f'"{name}": {value}' for name, value in dataclasses.asdict(self).items())
        return f"{{{parts}}}".encode("ascii")


@runtime_checkable
class CompilerParams(Protocol):
    """What parameters of a compiler have in common: they are dataclasses. The interpreter has no compiler.

    >>> from ferrax.experimental import pallas as pl
    >>> isinstance(pl.tpu.CompilerParams(), pl.CompilerParams)
    True
    """

    __dataclass_fields__: dict[str, Any]
