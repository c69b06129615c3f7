"""Calls of functions that use references: the function is traced as one of their values, which gives the new ones.

Arguments that are references give way to `Slot`s, which have no leaves, so that the structure of a call stays; the
traced function gets references of its own in their place. What a function closes over is known once it has been traced.
Read next: `_refs.py` for references themselves.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ferrax import _ferrax, tree_util
from ferrax._high_tangents import closed as closed_values, has_values, opened as opened_values
from ferrax._high_values import HighRef, classes as high_classes
from ferrax._ref_views import TransformedRef, taken_apart
from ferrax._refs import (
    AbstractRef,
    Ref,
    bound,
    cell_of,
    differentiated,
    ended,
    ending,
    found_since,
    lent,
    note_rule,
    read,
    rules_noted,
    write,
)
from ferrax._refs_replays import Found
from ferrax.ad import DidntWant, DontWant, GradRef, GradValue

__all__ = [
    "Slot",
    "argument_names",
    "branches",
    "check_once",
    "check_result",
    "checkpointed",
    "closed_over",
    "described",
    "fill",
    "of_places",
    "scan",
    "take",
    "vjp_of_references",
    "while_loop",
    "with_refs",
    "with_rule",
    "with_values",
]


class Slot:
    """The place of a reference among the arguments of a call."""

    __slots__ = ("aval", "index")

    def __init__(self, index: int, aval: AbstractRef):
        self.index, self.aval = index, aval

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Slot) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> Any:
        return self.index, self.aval, getattr(self.aval, "kind", None)


tree_util.register_pytree_node(Slot, lambda s: ((), (s.index, s.aval)), lambda data, _: Slot(*data))


_TRIES = 20  # traces after which no function has more references that are new


class MoreFound(Exception):
    """A function that is traced for the values of some references uses others, too."""

    def __init__(self, refs: list[Ref]):
        super().__init__("a function uses more references than were known")
        self.refs = refs

    def new_to(self, call: ImpureJit) -> list[Ref]:
        """Those that a call does not know, which it is traced again with; not without end."""
        call.tries += 1
        if call.tries > _TRIES:
            raise NotImplementedError(
                f"{described(call.fun)} makes a new value of type {self.refs[-1].aval} at every trace, "
                "which holds no traced array: make it by a primitive, or outside"
            ) from None
        return [ref for ref in self.refs if ref not in call.closed]


class _ConditionWrites(Exception):
    """The condition of a loop writes to references, which is only known once it has run."""


class _RuleFound(Exception):
    """A function that is traced within a derivative calls one whose backward rule takes references."""


def _reference(leaf: Any) -> Any:
    """A leaf as a reference, if it is one, or a value that is treated as one; None otherwise."""
    if type(leaf) in high_classes:
        return HighRef(leaf)
    return leaf if _ferrax.is_reference(leaf) else None


def take(tree: Any, apart: bool = True) -> tuple[Any, list[Any]]:
    """A tree with slots for its references, and these; views stay whole unless they are to be taken apart."""
    leaves, structure = tree_util.tree_flatten(taken_apart(tree) if apart else tree)
    found = [_reference(leaf) for leaf in leaves]
    refs = [ref for ref in found if ref is not None]
    if not refs:
        return tree, refs
    index = iter(range(len(refs)))
    slot = lambda ref: Slot(next(index), ref.type if isinstance(ref, TransformedRef) else ref.aval)
    pairs = zip(leaves, found, strict=True)
    return structure.unflatten([x if ref is None else slot(ref) for x, ref in pairs]), refs


def fill(tree: Any, refs: Sequence[Any]) -> Any:
    """A tree with references in its slots."""
    objects = [ref.value if isinstance(ref, HighRef) else ref for ref in refs]
    leaves, structure = tree_util.tree_flatten(tree, is_leaf=lambda x: isinstance(x, Slot))
    return structure.unflatten([objects[x.index] if isinstance(x, Slot) else x for x in leaves])


def described(fun: Any) -> str:
    """A function by its name and line."""
    code = getattr(inspect.unwrap(fun), "__code__", None) if callable(fun) else None
    name = getattr(fun, "__name__", None) or repr(fun)
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code else name


def argument_names(fun: Any, args: Any, kwargs: Any) -> list[str]:
    """The names of the references among the arguments, as the function's author calls them."""
    try:
        arguments = dict(inspect.signature(fun).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        arguments = {**{str(i): a for i, a in enumerate(args)}, **kwargs}
    names = []
    for argument, value in arguments.items():
        for path, leaf in tree_util.tree_flatten_with_path(value)[0]:
            if _reference(leaf) is not None:
                names.append(argument + tree_util.keystr(path))
    return names


def check_once(fun: Any, transform: str, args: Any, kwargs: Any, given: list[Ref], closed: Sequence[Ref]) -> None:
    """Raises where two names of a function stand for one reference; values that never change may have several."""
    if len({*given, *closed}) == len(given) + len(closed):
        return
    names = argument_names(fun, args, kwargs)
    for i, ref in enumerate(given):
        if isinstance(ref, HighRef) and not ref.aval.has_qdd:
            continue
        if ref in given[:i]:
            raise ValueError(
                "only one reference to a mutable array may be passed as an argument to a function, but when tracing "
                f"{described(fun)} for {transform} the mutable array reference of type {ref.aval} appeared at both "
                f"{names[given.index(ref)]} and {names[i]}."
            )
        if ref in closed:
            raise ValueError(
                f"when tracing {described(fun)} for {transform}, a mutable array reference of type {ref.aval} was "
                f"both closed over and passed as the argument {names[i]}"
            )


def check_result(fun: Any, transform: str, out: Any, given: Sequence[Ref] = (), names: Sequence[str] = ()) -> None:
    """Raises where a result is a reference; `names` are the arguments that the given ones are."""
    for path, leaf in tree_util.tree_flatten_with_path(out)[0]:
        if _ferrax.is_reference(leaf):
            where = f" at output tree path result{tree_util.keystr(path)}" if path else ""
            raise ValueError(
                f"function {described(fun)} traced for {transform} returned a mutable array reference of type "
                f"{leaf.aval}{where}, but mutable array references cannot be returned."
                + "".join(
                    f"\n\nThe returned mutable array was passed in as the argument {name}."
                    for ref, name in zip(given, names, strict=True)
                    if ref is leaf
                )
                + (f"\n\nThe returned mutable array was created on line {leaf._made}." if leaf._made else "")
            )


class ImpureJit:
    """Calls of a jitted function that uses references; what `jit` makes of it takes and gives their values.

    Args:
      fun: the function.
      numbers: static positions and names, donated positions and names.
      inline: as `jit`'s.
      clock: when the trace began that found the references it closes over.
    """

    def __init__(self, fun: Callable[..., Any], numbers: Sequence[Any], inline: bool, clock: int):
        static, static_names, donated, donated_names = numbers
        found = found_since(clock)
        self.fun, self.closed, self.lock = fun, list(found), threading.RLock()
        #: stands for the function in the first trace
        self.replay = found.replays.get(id(fun))
        self.static, self.static_names = static, static_names
        self.known: tuple[Ref, ...] = ()
        #: whether the function calls one whose backward rule takes references; such a rule must not run in a program
        self.ruled = False
        self.inside, self.tries = False, 0
        later = lambda places: [n + 1 if n >= 0 else n for n in places]
        self.jitted = _ferrax.jit(
            self.pure, later(static), static_names, later(donated), donated_names, False, inline, []
        )

    def pure(self, values: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        """The function, of the values of the references it closes over and of those it is given; gives the new ones."""
        n = len(self.known)
        slots = tree_util.tree_leaves((args, kwargs), is_leaf=lambda x: isinstance(x, Slot))
        own = lent(values[n:], [x.aval for x in slots if isinstance(x, Slot)])
        with bound([*self.known, *own], values):
            args, kwargs = fill((args, kwargs), own)
            rules = rules_noted()
            out = self.first(args, kwargs)
            self.ruled |= rules_noted() > rules
            if self.ruled and self.inside:
                raise _RuleFound
            check_result(self.fun, "jit", out, own, argument_names(self.fun, *self.traced(args, kwargs)))
            more = [ref for ref in found_since(_ferrax.staging_trace() - 1) if ref not in own]
            if more:
                raise MoreFound(more)
            return closed_values(out), [read(ref) for ref in (*self.known, *own)]

    def first(self, args: Any, kwargs: Any) -> Any:
        """The function's result, by what its first trace has found where that was for such arguments."""
        replay, self.replay = self.replay, None
        static = self.static_places(len(args))
        places = [x for i, x in enumerate(args) if i not in static]
        names = {name: x for name, x in kwargs.items() if name not in self.static_names}
        if replay is not None and replay.takes(*places, **names):
            return replay(*places, **names)
        return self.fun(*args, **kwargs)

    def static_places(self, count: int) -> set[int]:
        """The static ones of so many arguments."""
        return {i % count for i in self.static if -count <= i < count}

    def traced(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments, None for static ones: references in these are as if the function closed over them."""
        static = self.static_places(len(args))
        places = [None if i in static else x for i, x in enumerate(args)]
        return places, {name: None if name in self.static_names else x for name, x in kwargs.items()}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        traced = self.traced(args, kwargs)
        (places, names), given = take(traced)
        for i in self.static_places(len(args)):
            places[i] = args[i]
        names.update({name: x for name, x in kwargs.items() if name in self.static_names})
        with self.lock:
            self.tries = 0
            while True:
                self.known = tuple(self.closed)
                check_once(self.fun, "jit", *traced, given, self.known)
                refs = [*self.known, *given]
                values = [read(ref) for ref in refs]
                self.inside = differentiated([*values, *tree_util.tree_leaves((places, names))])
                if self.ruled and self.inside:
                    return self.fun(*args, **kwargs)
                try:
                    out, values = self.jitted(values, *places, **names)
                except _RuleFound:
                    continue
                except MoreFound as found:
                    self.closed += found.new_to(self)
                    continue
                write_all(refs, values)
                return opened_values(out)


def mapped(fun: Callable[..., Any], axes: Sequence[Any]) -> Callable[..., Any]:
    """A vectorized function whose arguments are references: each is mapped over its axis, and its rows are written."""
    in_axes, out_axes, name, size = axes

    def call(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, TransformedRef) for x in tree_util.tree_leaves((args, kwargs))):
            raise TypeError(
                f"When tracing {described(fun)} for vmap, TransformedRefs are not allowed, but got a TransformedRef "
                f"with name {argument_names(fun, args, kwargs)[0]}.ref."
            )
        (places, names), given = take((args, kwargs))
        check_once(fun, "vmap", args, kwargs, given, ())
        prefix = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
        axes_of_leaves = zip(_leaf_axes(prefix, args), tree_util.tree_leaves(args), strict=True)
        at = [a for (a,), x in axes_of_leaves if _ferrax.is_reference(x)]
        at += [0] * (len(given) - len(at))
        # one that is not mapped is the same for all rows, as if the function closed over it
        over = [ref for ref, a in zip(given, at, strict=True) if a is not None]
        at_over = [a for a in at if a is not None]

        def pure(values: Sequence[Any], args: Any, kwargs: Any) -> Any:
            own = lent(values, [ref.aval for ref in over])
            with bound(own, values):
                rows = iter(own)
                inside = [ref if a is None else next(rows) for ref, a in zip(given, at, strict=True)]
                args, kwargs = fill((args, kwargs), inside)
                out = fun(*args, **kwargs)
                check_result(fun, "vmap", out)
                if has_values(out):
                    raise NotImplementedError(
                        f"vmap of a function that gives values that are no arrays: {described(fun)} does"
                    )
                return out, [read(ref) for ref in own]

        vectorized = _ferrax.vmap(pure, (at_over, prefix, 0), (out_axes, at_over), name, size)
        out, values = vectorized([read(ref) for ref in over], places, names)
        write_all(over, values)
        return out

    return call


def _leaf_axes(prefix: Any, tree: Any) -> list[Any]:
    """An axis for each leaf of a tree, of a prefix of it."""
    return tree_util.tree_leaves(
        tree_util.tree_map(
            lambda axis, part: tree_util.tree_map(lambda _: (axis,), part),
            prefix,
            tree,
            is_leaf=lambda x: x is None,
        ),
        is_leaf=lambda x: isinstance(x, tuple) and len(x) == 1 and (x[0] is None or isinstance(x[0], int)),
    )


def _pure(fun: Callable[..., Any], refs: Found, transform: str) -> Callable[..., Any]:
    """`(values, *args) -> (result, new values)` of a function that uses references."""
    traced = refs.replays.get(id(fun), fun)

    def pure(values: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        with bound(refs, values):
            out = traced(*args, **kwargs)
            check_result(fun, transform, out)
            return out, [read(ref) for ref in refs]

    pure.__name__ = getattr(fun, "__name__", transform)
    pure.user_body = getattr(fun, "user_body", fun)  # type: ignore[attr-defined]
    return pure


def write_all(refs: Sequence[Ref], values: Iterable[Any]) -> None:
    for ref, value in zip(refs, values, strict=True):
        write(ref, value)


def scan(refs: Found, loop: Callable[..., Any], f: Callable[..., Any], init: Any, inside: bool, plain: Any) -> Any:
    """A scan whose body uses references.

    Args:
      refs: the references.
      loop: the scan of a body from a first carry.
      f: the body.
      init: the first carry.
      inside: whether the scan is differentiated or mapped where it is called.
      plain: takes the steps one by one, for bodies with backward rules that take references.
    """
    pure = _pure(f, refs, "scan")

    def step(carry: Any, x: Any) -> Any:
        values, own = carry
        rules = rules_noted()
        (own, y), values = pure(values, own, x)
        if inside and rules_noted() > rules:
            raise _RuleFound
        return (values, own), y

    step.user_body, step.__name__ = pure.user_body, pure.__name__  # type: ignore[attr-defined]
    try:
        (values, carry), ys = loop(step, ([read(ref) for ref in refs], init))
    except _RuleFound:
        return plain()
    write_all(refs, values)
    return carry, ys


def _written(refs: Sequence[Ref]) -> frozenset[int]:
    """The places of the references that were written to since they were bound."""
    return frozenset(place for place, ref in enumerate(refs) if cell_of(ref).written)


def while_loop(refs: Found, loop: Callable[..., Any], cond: Any, body: Any, init: Any) -> Any:
    """A loop whose condition or body uses references; `loop` is the loop of both from a first value.

    What the condition writes counts where it holds: the body's step begins with it.
    """
    tested, traced = (refs.replays.get(id(fun), fun) for fun in (cond, body))

    def asked(carry: Any) -> tuple[Any, list[Any], frozenset[int]]:
        with bound(refs, carry[0]):
            holds = tested(carry[1])
            return holds, [read(ref) for ref in refs], _written(refs)

    def run(in_test: frozenset[int]) -> tuple[Any, Any]:
        """The loop whose condition writes to the references at these places."""

        def test(carry: Any) -> Any:
            holds, _, written = asked(carry)
            if written != in_test:
                raise _ConditionWrites(written)
            return holds

        def step(carry: Any) -> Any:
            values = asked(carry)[1] if in_test else carry[0]
            with bound(refs, values):
                out = traced(carry[1])
                check_result(body, "while_loop", out)
                after = [read(ref) for ref in refs]
                both = in_test & _written(refs)
            if both:
                raise NotImplementedError(
                    "Cannot write to the same ref in both cond and body of while loop: what the condition writes "
                    "last, when it does not hold, is not kept. Write to it in the body alone."
                )
            return after, out

        step.user_body = getattr(body, "user_body", body)  # type: ignore[attr-defined]
        step.__name__ = getattr(body, "__name__", "while_loop")
        test.__name__ = getattr(cond, "__name__", "cond_fun")
        found: tuple[Any, Any] = loop(test, step, ([read(ref) for ref in refs], init))
        return found

    in_test: frozenset[int] | None = frozenset()
    while in_test is not None:
        try:
            (values, out), in_test = run(in_test), None
        except _ConditionWrites as found:
            in_test = found.args[0]
    write_all(refs, values)
    return out


def branches(refs: Found, run: Callable[..., Any], each: Sequence[Callable[..., Any]], operands: Any) -> Any:
    """A choice among functions that use references; `run` is the choice among functions of operands."""
    out, values = run([_pure(b, refs, "cond") for b in each], ([read(ref) for ref in refs], *operands))
    write_all(refs, values)
    return out


def checkpointed(fun: Callable[..., Any], checkpoint: Callable[..., Any], clock: int, args: Any, kwargs: Any) -> Any:
    """A function that uses references, of whose values `checkpoint` makes it one: run again it reads what it has read.

    One that calls functions with backward rules that take references runs as it is.
    """
    refs = found_since(clock)
    if id(fun) not in refs.replays:
        return fun(*args, **kwargs)
    out, values = checkpoint(_pure(fun, refs, "checkpoint"))([read(ref) for ref in refs], *args, **kwargs)
    write_all(refs, values)
    return out


def closed_over(
    name: str, each: Sequence[Callable[..., Any]], index: Any, operands: Any
) -> tuple[list[Callable[..., Any]], Any, Any]:
    """Branches that write to the references among their operands; `index` and the other operands."""
    from ferrax._refs_loops import with_own

    places, refs = take(operands)
    return [with_own(name, fun, operands, places, refs) for fun in each], index, places


def with_rule(make: Callable[..., Any], fun: Any, fwd: Any, bwd: Any, args: Any) -> Any:
    """A call of a function with its own backward rule that takes references: they are not differentiated.

    Args:
      make: gives the function with a rule, of a function, its forward and its backward part.
      fun: the function.
      fwd: its forward part; references that it returns among the residuals come from its arguments.
      bwd: its backward part; its cotangents for references are None.
      args: the arguments.
    """
    from ferrax.lax import stop_gradient

    places, given = take(args)
    _check_rule_arguments(fun, args, given)
    note_rule(given)

    before = [None if isinstance(ref, HighRef) else read(ref) for ref in given]
    # values of references that are differentiated are what the function closes over, and so is what is no array
    passed = [] if None in before or differentiated(before) else given

    def forward(*args: Any) -> Any:
        *args, values = args  # type: ignore[assignment]
        with bound(passed, values):
            out, residuals = fwd(*fill(args, given))
            _check_rule_result("fwd", fwd, (out, None), (), "but mutable array references cannot be returned there.")
            _check_rule_result("fwd", fwd, (None, residuals), given, "that was not an argument.")
            kept, refs = take(residuals)
            held = [read(ref) for ref in passed]
        return (out, held), _renumbered(kept, [given.index(ref) for ref in refs])

    def backward(*args: Any) -> Any:
        *static, residuals, cotangents = args
        out = bwd(*static, fill(residuals, given), cotangents[0])
        if _ferrax.staging_transform() == "transpose" and _ferrax.references_since(_ferrax.staging_trace() - 1):
            raise NotImplementedError(
                f"the backward rule {described(bwd)} uses references, which is not implemented for rules inside of "
                "while_loop, of branches and of functions that close over what is differentiated"
            )
        return *out, None

    def called(*args: Any) -> Any:
        *args, values = args  # type: ignore[assignment]
        with bound(passed, values):
            out = fun(*fill(args, given))
            _check_rule_result("primal", fun, out, (), "that was not an argument.")
            return out, [read(ref) for ref in passed]

    called.__name__, forward.__name__ = getattr(fun, "__name__", "fun"), getattr(fwd, "__name__", "rule")
    backward.__name__ = getattr(bwd, "__name__", "rule")
    out, held = make(called, forward, backward)(*places, [read(ref) for ref in passed])
    write_all(passed, map(stop_gradient, held))
    return out


def _check_rule_arguments(fun: Any, args: Any, given: list[Ref]) -> None:
    """Raises where one reference stands for two arguments of a function with a rule."""
    if len(set(given)) == len(given):
        return
    again = next(i for i, ref in enumerate(given) if ref in given[:i])
    names = argument_names(fun, args, {})
    raise ValueError(
        "only one reference to a mutable array may be passed as an argument to a function, but custom_vjp function "
        f"{described(fun)} got the same mutable array reference of type {given[again].aval} at "
        f"{names[given.index(given[again])]} and {names[again]}."
    )


def _check_rule_result(kind: str, fun: Any, out: Any, allowed: Sequence[Ref], why: str) -> None:
    """Raises where a part of a function with a rule returns a reference that is not allowed there."""
    for path, leaf in tree_util.tree_flatten_with_path(out)[0]:
        if _ferrax.is_reference(leaf) and leaf not in allowed:
            where = f" at output tree path {tree_util.keystr(path)}" if path else ""
            comma = "," if why.startswith("but") else ""
            raise ValueError(
                f"custom_vjp {kind} function {described(fun)} returned a mutable array reference of type "
                f"{leaf.aval}{where}{comma} {why}"
            )


def _renumbered(tree: Any, numbers: Sequence[int]) -> Any:
    leaves, structure = tree_util.tree_flatten(tree, is_leaf=lambda x: isinstance(x, Slot))
    return structure.unflatten([Slot(numbers[x.index], x.aval) if isinstance(x, Slot) else x for x in leaves])


def of_places(fun: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Callable[..., Any], Any, Any]:
    """A function that closes over the references among its arguments, and its other arguments."""
    (args, kwargs), refs = take((args, kwargs))

    def closed(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = fill((args, kwargs), refs)
        return fun(*args, **kwargs)

    return closed, args, kwargs


def with_values(fun: Callable[..., Any], transform: str, has_aux: bool) -> Callable[[Sequence[Any], Any], Any]:
    """A function of the values of references and of what else `fun` takes, which gives its result with the values that
    are then in them, and what it says beside."""

    def of_values(values: Sequence[Any], args: Any) -> Any:
        own = lent(values)
        with bound(own, values):
            out = fun(*fill(args, own))
            out, aux = out if has_aux else (out, None)
            check_result(fun, transform, out)
            return (out, [read(ref) for ref in own]), aux

    return of_values


def vjp_of_references(fun: Callable[..., Any], primals: Any, has_aux: bool) -> tuple[Any, ...]:
    """`vjp` of a function that takes references, with respect to the values that they have when it is called."""
    places, given = take(primals)
    check_once(fun, "vjp", primals, {}, given, ())

    (out, values), pullback, aux = _ferrax.vjp(
        with_values(fun, "vjp", has_aux), ([read(ref) for ref in given], places), True
    )
    write_all(given, values)
    pull = _Pullback(pullback, values, given)
    return (out, pull, aux) if has_aux else (out, pull)


class _Pullback:
    """The pullback of a function that takes references: the cotangents of these are added to others."""

    def __init__(self, pullback: Callable[..., Any], values: Sequence[Any], given: Sequence[Ref]):
        self.pullback, self.values, self.given = pullback, values, given

    def __call__(self, cotangent: Any) -> Any:
        raise ValueError(
            f"the gradient of an argument of type {self.given[0].aval} must be accumulated into a ref: bind one with "
            "the `with_refs` method of the function that `vjp` gives"
        )

    def cotangents(self, cotangent: Any) -> Any:
        """One cotangent an argument, those of references as values."""
        zeros = [_ferrax.lax.full_like(v, 0) for v in self.values]
        of_values, of_places = self.pullback((cotangent, zeros))
        return fill(of_places, of_values)

    def with_refs(self, *wanted: Any) -> Callable[..., Any]:
        """A pullback that adds cotangents to references; one entry an argument, see `ferrax.vjp`."""
        return with_refs(self.cotangents, wanted)


def with_refs(pullback: Callable[..., Any], wanted: Sequence[Any]) -> Callable[..., Any]:
    """A pullback that adds cotangents to references, as `wanted` says of each argument."""
    # whatever else stands for an argument asks for its cotangent, as in JAX
    stop = lambda x: _ferrax.is_reference(x) or isinstance(x, (GradValue, DontWant))

    def one(entry: Any, cotangent: Any) -> Any:
        if isinstance(entry, DontWant):
            return DidntWant()
        if not _ferrax.is_reference(entry):
            return cotangent
        entry.addupdate(cotangent)
        return GradRef()

    def pull(cotangent: Any) -> Any:
        if isinstance(pullback, _ferrax.VJP) and any(isinstance(x, DontWant) for x in wanted):
            tree = pullback.in_tree
            places = tree.unflatten(range(tree.num_leaves))
            skipped = [p for x, p in zip(wanted, places, strict=False) if isinstance(x, DontWant)]
            leaves = set(tree_util.tree_leaves(skipped))
            cotangents = pullback._pull(cotangent, [i not in leaves for i in range(tree.num_leaves)])
        else:
            cotangents = pullback(cotangent)
        if len(cotangents) != len(wanted):
            raise ValueError(f"with_refs takes one entry an argument, {len(cotangents)} in all, got {len(wanted)}")
        return tuple(
            tree_util.tree_map(one, entry, ct, is_leaf=stop) for entry, ct in zip(wanted, cotangents, strict=True)
        )

    return pull


_ferrax.set_reference_hooks(Ref, ImpureJit, mapped, ending, ended)
