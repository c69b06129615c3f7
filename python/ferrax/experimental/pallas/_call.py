"""`pallas_call`: a kernel is run for every place of a grid, on blocks of its operands and results.

There is no compiler for kernels: all of them are interpreted, as JAX's are with `interpret=True`. A kernel is traced
once, as a function from the values of its references to those that it has changed; a loop over the grid cuts the
blocks, computes, and puts them back. So it is a program like any other: it can be jitted, mapped and differentiated.
Memory that nobody has written holds NaN, or the smallest integer. Read next: `_mapping.py`, `_grid.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax, tree_util
from ferrax._core import ShapedArray, canonicalize_dtype
from ferrax.experimental.pallas import _grid
from ferrax.experimental.pallas._mapping import BlockMapping, kernel_text, uninitialized, with_bounds
from ferrax.experimental.pallas._specs import (
    BlockSpec,
    CompilerParams,
    CostEstimate,
    GridSpec,
    is_known,
    no_block_spec,
)

__all__ = ["interpreting", "pallas_call"]

#: What `pallas.tpu.set_tpu_interpret_mode` has set: a stack of settings.
interpreting: list[Any] = []


def pallas_call(
    kernel: Callable[..., None],
    out_shape: Any,
    *,
    grid_spec: GridSpec | None = None,
    grid: Any = (),
    in_specs: Any = no_block_spec,
    out_specs: Any = no_block_spec,
    scratch_shapes: Any = (),
    input_output_aliases: Mapping[int, int] = {},
    debug: bool = False,
    interpret: Any = False,
    name: str | None = None,
    compiler_params: CompilerParams | None = None,
    cost_estimate: CostEstimate | None = None,
    metadata: dict[str, str] | None = None,
) -> Callable[..., Any]:
    """A function that runs a kernel over a grid.

    Args:
      kernel: function of references: of the operands' blocks, of the results' blocks, of scratch memory. It reads and
        writes them, and returns None.
      out_shape: shapes and dtypes of the results: a tree of `ShapeDtypeStruct`s, or of anything with both.
      grid_spec: a `GridSpec`, instead of the next four.
      grid: sizes of the grid: integers, or scalars that are traced. Places are taken in order, the last axis first.
      in_specs: a `BlockSpec` for each operand; whole arrays by default.
      out_specs: a `BlockSpec` for each result; whole arrays by default.
      scratch_shapes: types of scratch memory, such as `pallas.tpu.VMEM((8, 128), jnp.float32)`; it keeps what one
        place of the grid has written for the next one.
      input_output_aliases: operands by number whose values results (by number) hold first.
      debug: whether to print the kernel's program.
      interpret: must be true, or a `pallas.tpu.InterpretParams`: there is no compiler for kernels.
      name: the kernel's name, for messages.
      compiler_params, cost_estimate, metadata: hints for compilers.

    Returns:
      A function of the operands (trees of arrays) that gives the results.

    Raises:
      ValueError: descriptions do not fit each other, the kernel returns a value or closes over arrays, or `interpret`
        is false when the function is called.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.experimental import pallas as pl
    >>> def add(x, y, out):
    ...     out[...] = x[...] + y[...]
    >>> x = jnp.arange(6.0)
    >>> rows = pl.BlockSpec((2,), lambda i: i)
    >>> f = pl.pallas_call(add, x, grid=3, in_specs=[rows, rows], out_specs=rows, interpret=True)
    >>> print(f(x, x))
    [ 0.  2.  4.  6.  8. 10.]
    """
    if grid_spec is None:
        grid_spec = GridSpec(grid, in_specs, out_specs, scratch_shapes)
    else:
        for what, given, empty in (
            ("grid", grid, ()),
            ("in_specs", in_specs, no_block_spec),
            ("out_specs", out_specs, no_block_spec),
            ("scratch_shapes", scratch_shapes, ()),
        ):
            if given is not empty and given != empty:
                wanted = "`()`" if empty == () else "`no_block_spec`"
                raise ValueError(f"If `grid_spec` is specified, then `{what}` must be {wanted}. It is {given}")
    out_shape = tuple(out_shape) if isinstance(out_shape, list) else out_shape
    modes = [interpret, *interpreting]
    bounds = tuple(g for g in grid_spec.grid if not is_known(g))
    from ferrax._api import jit

    @functools.partial(jit, inline=True)
    def run(bounds: Any, args: Any) -> Any:
        sizes = with_bounds(grid_spec.grid, bounds)
        call = _Call(kernel, name, grid_spec, sizes, out_shape, args, dict(input_output_aliases))
        return call.run(debug)

    @functools.wraps(kernel)
    def wrapped(*args: Any) -> Any:
        if not any(modes) and not any(interpreting):
            raise ValueError(
                "Only interpret mode is supported on CPU backend: there is no compiler for kernels here, so "
                f"pallas_call of {kernel_text(kernel)} needs interpret=True."
            )
        return run(bounds, args)

    return wrapped


class _Call:
    """One call of a kernel, for operands of known types.

    Args:
      kernel: the function.
      name: its name, for messages, or None.
      spec: the grid's description.
      sizes: the grid.
      out_shape: description of the results.
      args: the operands.
      aliases: operands by number, and the results that hold their values first.
    """

    def __init__(
        self,
        kernel: Any,
        name: str | None,
        spec: GridSpec,
        sizes: tuple[Any, ...],
        out_shape: Any,
        args: tuple[Any, ...],
        aliases: dict[int, int],
    ):
        self.kernel, self.sizes, self.names = kernel, sizes, spec.grid_names
        self.bounds = [n for n in sizes if not is_known(n)]
        self.text = f"{name} for kernel function {kernel_text(kernel)}" if name else kernel_text(kernel)
        prefetched = getattr(spec, "num_scalar_prefetch", 0)
        self.scalars, self.scalar_tree = tree_util.tree_flatten(args[:prefetched])
        self.args = tree_util.tree_leaves(args[prefetched:])
        outs, self.out_tree = _flat_with_origins(out_shape, "outputs")
        self.out_types = [_type_of(leaf) for leaf, _ in outs]
        scratch, self.scratch_tree = tree_util.tree_flatten(spec.scratch_shapes)
        self.scratch = [_array_type(t) for t in scratch]
        self.ins = self._mappings(spec.in_specs, "`in_specs`", "`inputs`", args[prefetched:], "args", prefetched)
        self.outs = self._mappings(spec.out_specs, "`out_specs`", "`out_shape`", out_shape, "outputs", 0)
        self.in_tree = tree_util.tree_structure(args[prefetched:])
        self.aliases = aliases
        self._check_aliases(args)

    def _mappings(self, specs: Any, what: str, other: str, tree: Any, origin: str, skipped: int) -> list[BlockMapping]:
        leaves, structure = _flat_with_origins(tree, origin, skipped)
        if specs is no_block_spec:
            flat = [BlockSpec()] * len(leaves)
        else:
            flat, given = tree_util.tree_flatten(specs)
            if given != structure:
                raise ValueError(_mismatch(what, given, other, structure))
        types = [_type_of(leaf) for leaf, _ in leaves]
        slots = self.scalar_slots()
        return [
            BlockMapping(BlockSpec() if s is no_block_spec else s, where, t.shape, t.dtype, self.sizes, slots)
            for s, t, (_, where) in zip(flat, types, leaves, strict=True)
        ]

    def scalar_slots(self) -> Any:
        """The structure of the operands that index maps see, with places for references."""
        from ferrax._refs import AbstractRef
        from ferrax._refs_calls import Slot

        avals = [AbstractRef(_ferrax.typeof(s)) for s in self.scalars]
        return self.scalar_tree.unflatten([Slot(i, a) for i, a in enumerate(avals)])

    def _check_aliases(self, args: Any) -> None:
        ins = _flat_with_origins(args, "input")[0]
        for i, o in self.aliases.items():
            start = f"input_output_aliases contains the mapping '{i}:{o}' "
            for kind, at, n in (("input", i, len(ins)), ("output", o, len(self.out_types))):
                if at not in range(n):
                    raise ValueError(f"{start}with {kind} index {at} outside the range [0, {n})")
            given, wanted = _type_of(ins[i][0]), self.out_types[o]
            if given.shape != wanted.shape or given.dtype != wanted.dtype:
                raise ValueError(
                    f"{start}referring to {ins[i][1]} with abstract value {given} and to "
                    f"output{self.outs[o].origin.removeprefix('outputs')} with a different abstract value {wanted}."
                )

    def run(self, debug: bool) -> Any:
        """The results."""
        from ferrax.lax import fori_loop

        first = {o: i for i, o in self.aliases.items()}
        operands = [*self.scalars, *self.args]
        outs = [
            operands[first[k]] if k in first else uninitialized(t.shape, t.dtype) for k, t in enumerate(self.out_types)
        ]
        mappings = [*self.ins, *self.outs]
        arrays = [m.padded(x) for m, x in zip(mappings, [*self.args, *outs], strict=True)]
        scratch = [uninitialized(t.shape, t.dtype) for t in self.scratch]
        program, changed = self._traced([x.dtype for x in arrays], [x.dtype for x in scratch], debug)
        kept = [k for k in changed if k < len(arrays)]

        def step(i: Any, carry: Any) -> Any:
            now, memory = carry
            whole = list(arrays)
            for k, x in zip(kept, now, strict=True):
                whole[k] = x
            places = self._places(i)
            with _grid.at(places, self.sizes):
                starts = [m.starts(places, self._scalar_refs()) for m in mappings]
            blocks = [m.read(x, at) for m, x, at in zip(mappings, whole, starts, strict=True)]
            new = program(places, self.bounds, self.scalars, blocks, memory)
            memory = list(memory)
            for k, value in zip(changed, new, strict=True):
                if k < len(arrays):
                    whole[k] = mappings[k].write(whole[k], starts[k], value)
                else:
                    memory[k - len(arrays)] = value
            return [whole[k] for k in kept], memory

        steps = functools.reduce(lambda a, b: a * b, self.sizes, 1)
        carry = ([arrays[k] for k in kept], scratch)
        once = isinstance(steps, int) and steps == 1
        now, _ = step(np.int32(0), carry) if once else fori_loop(0, steps, step, carry)
        results = dict(zip(kept, now, strict=True))
        n = len(self.ins)
        return self.out_tree.unflatten([m.cut(results.get(n + k, arrays[n + k])) for k, m in enumerate(self.outs)])

    def _places(self, i: Any) -> list[Any]:
        """The place in the grid of a step."""
        from ferrax.numpy import asarray

        places: list[Any] = []
        i = asarray(i, np.int32)
        for size in self.sizes[::-1]:
            size = asarray(size, np.int32)
            places.append(_ferrax.lax.rem(i, size))
            i = _ferrax.lax.div(i, size)
        return places[::-1]

    def _scalar_refs(self) -> Any:
        from ferrax._refs import make

        return self.scalar_tree.unflatten([make(s) for s in self.scalars])

    def _called(self, args: Sequence[Any], kwargs: Any) -> Any:
        """The kernel's result; it may ask for the sizes of axes of the grid that have names."""
        from ferrax._api import vmap
        from ferrax._refs import named_axes_only

        if not self.names:
            return self.kernel(*args, **kwargs)
        kept: list[Any] = []
        call: Callable[[], Any] = lambda: kept.append(self.kernel(*args, **kwargs))
        for name, size in zip(self.names, self.sizes, strict=True):
            call = vmap(call, axis_name=name, axis_size=size, out_axes=None)
        with named_axes_only():
            call()
        return kept[0]

    def _traced(self, dtypes: Sequence[Any], scratch_dtypes: Sequence[Any], debug: bool) -> tuple[Any, list[int]]:
        """The kernel as a program of the values of its references; which of them it changes."""
        from ferrax._refs import found_since, make, read

        mappings = [*self.ins, *self.outs]
        changed: list[int] = []

        def pure(places: Any, bounds: Any, scalars: Any, blocks: Any, memory: Any) -> Any:
            values = [*blocks, *memory]
            refs = [make(v) for v in values]
            first = self.scalar_tree.unflatten([make(s) for s in scalars])
            n, m = len(self.ins), len(blocks)
            ins, out = self.in_tree.unflatten(refs[:n]), self.out_tree.unflatten(refs[n:m])
            extra = self.scratch_tree.unflatten(refs[m:])
            outs = out if isinstance(out, (tuple, list)) else (out,)
            with _grid.at(places, with_bounds(self.sizes, bounds)):
                if isinstance(extra, dict):
                    result = self._called([*first, *ins, *outs], extra)
                else:
                    result = self._called([*first, *ins, *outs, *extra], {})
            if result is not None:
                raise ValueError(
                    f"The kernel function in the pallas_call {self.text} should return None. It returns a PyTree: "
                    f"{tree_util.tree_structure(result)}"
                )
            after = [read(ref) for ref in refs]
            changed[:] = [k for k, (a, b) in enumerate(zip(values, after, strict=True)) if a is not b]
            return [after[k] for k in changed]

        blocks = [ShapedArray(m.ref_shape, d) for m, d in zip(mappings, dtypes, strict=True)]
        memory = [ShapedArray(t.shape, d) for t, d in zip(self.scratch, scratch_dtypes, strict=True)]
        scalars = [ShapedArray(a.shape, a.dtype) for a in map(_ferrax.typeof, self.scalars)]
        clock = _ferrax.trace_clock()
        places = [ShapedArray((), np.int32)] * len(self.sizes)
        bounds = [ShapedArray((), b.dtype) for b in self.bounds]
        program = _ferrax.trace_to_jaxpr(pure, (places, bounds, scalars, blocks, memory), None, "pallas_call")
        if _ferrax.references_since(clock) and found_since(clock):
            raise NotImplementedError(f"the kernel function in the pallas_call {self.text} closes over references")
        consts = [a for a in map(_ferrax.typeof, (*program.consts, *program.captured)) if a.size]
        if consts:
            shown = ", ".join(c.str_short(True) for c in consts)
            raise ValueError(
                f"The kernel function in the pallas_call {self.text} captures constants [{shown}]. You should pass "
                "them as inputs."
            )
        if debug:
            print(f"\nThe kernel function in the pallas_call {self.text}:\n{program}")
        return _calling(program), changed


def _calling(program: Any) -> Callable[..., Any]:
    """A program as a function of trees."""
    from ferrax.extend.core import jaxpr_as_fun

    run = jaxpr_as_fun(program)
    return lambda *args: run(*tree_util.tree_leaves(args))


def _flat_with_origins(tree: Any, origin: str, skipped: int = 0) -> tuple[list[tuple[Any, str]], Any]:
    """The leaves of a tree with what they are called in messages, and its structure."""
    paths, structure = tree_util.tree_flatten_with_path(tree)

    def where(path: Any) -> str:
        if skipped:
            path = (tree_util.SequenceKey(path[0].idx + skipped), *path[1:])
        return origin + tree_util.keystr(path)

    return [(leaf, where(path)) for path, leaf in paths], structure


def _mismatch(what: str, given: Any, other: str, wanted: Any) -> str:
    from ferrax._src.tree_util import equality_errors

    errors = list(equality_errors(*(t.unflatten([0] * t.num_leaves) for t in (given, wanted))))
    lines = [f"Pytree for {what} and {other} do not match. There are {len(errors)} mismatches, including:"]
    for path, one, two, why in errors:
        where = f"at {tree_util.keystr(path)}, " if path else ""
        lines.append(f"    * {where}{what} is a {one} but {other} is a {two}, so {why}")
    return "\n".join(lines)


def _type_of(x: Any) -> Any:
    """Shape and dtype of an operand, or of the description of a result."""
    if hasattr(x, "get_array_aval"):
        return x.get_array_aval()
    if _ferrax.is_tracer(x) or isinstance(x, (int, float, complex, bool)):
        return _ferrax.typeof(x)
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        raise ValueError(f"Invalid out_shape type: {type(x)}")
    return ShapedArray(tuple(x.shape), canonicalize_dtype(x.dtype))


def _array_type(t: Any) -> Any:
    if not hasattr(t, "get_array_aval"):
        raise ValueError(f"scratch memory is described by a type of memory, got {type(t).__name__}")
    return t.get_array_aval()
