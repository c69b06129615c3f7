"""What a trace finds out about references, kept so that the function need not run again.

A function is traced before it is known which references it uses. Its program, with a parameter for the value that each
of them has at first and a result for the one that it has at the end, is what a trace of the function of these values
would record: `Replay` stands for the function then, so that what the function does besides computing happens once.
Read next: `_refs.py`, and `crates/ferrax-python/src/api/references.rs`, which asks at the end of each trace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferrax import _ferrax, tree_util
from ferrax._core import typeof
from ferrax._high_values import HighRef

__all__ = ["Cells", "Found", "Replay"]


class Cells(dict[Any, Any]):
    """Of references that a trace found: their cells in it.

    Attributes:
      places: of those for whose first value the program has a parameter: its number among what the program captured.
      replay: what stands for the traced function, once the trace has ended.
    """

    __slots__ = ("places", "replay")

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[Any, int] = {}
        self.replay: Replay | None = None

    def first(self, ref: Any, value: Any) -> Any:
        """What the cell of a reference holds at first, whose value outside is this one."""
        plain = not isinstance(ref, HighRef) and value is not None and value.weak_type == ref.weak_type
        if plain and (found := _ferrax.stand_in(value)):
            made, self.places[ref] = found
            return made
        return ref.kept(value)


class Found(list[Any]):
    """References that traces found.

    Attributes:
      replays: what stands for the traced functions, by the identity of the function.
    """

    __slots__ = ("replays",)

    def __init__(self, traces: list[Cells]):
        super().__init__(dict.fromkeys(ref for cells in traces for ref in cells))
        made = [cells.replay for cells in traces if cells.replay]
        self.replays = {id(replay.fun): replay for replay in made}


class Replay:
    """A function that was traced for arguments of some types: for such, its program; for others, itself.

    Args:
      fun: the function.
      program: its program, whose last results are what the references hold at the end.
      places: of each reference, the number of its first value among what the program captured.
    """

    __slots__ = ("fun", "places", "program")

    def __init__(self, fun: Callable[..., Any], program: Any, places: dict[Any, int]):
        self.fun, self.program, self.places = fun, program, places

    def takes(self, *args: Any, **kwargs: Any) -> bool:
        """Whether these arguments, of which none is static, are of the types that the program takes."""
        return [typeof(x) for x in tree_util.tree_leaves((args, kwargs))] == self.program.in_avals

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from ferrax._refs import read, write

        if not self.takes(*args, **kwargs):
            return self.fun(*args, **kwargs)
        captured = self.program.captured
        for ref, place in self.places.items():
            captured[place] = read(ref)
        results = self.program.eval_captured(captured, tree_util.tree_leaves((args, kwargs)))
        own = self.program.out_tree.num_leaves
        unwritten = [self.program.captured_vars[place] for place in self.places.values()]
        ends = zip(unwritten, self.program.outvars[own:], strict=True)
        for ref, value, (first, last) in zip(self.places, results[own:], ends, strict=True):
            if first != last:
                write(ref, value)
        return self.program.out_tree.unflatten(results[:own])
