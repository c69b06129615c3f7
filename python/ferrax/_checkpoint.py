"""Rematerialization: `checkpoint` and the policies that say what reverse mode may keep.

The function is traced to one program; linearization keeps its inputs and what the policy approves and computes the
rest again. Read next: `crates/ferrax-ops/src/control/remat.rs`.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from ferrax import _ferrax, tree_util
from ferrax._boundary import shielded_for
from ferrax._named_functions import name_function, name_of
from ferrax._primitives import built_in
from ferrax._typed import P, R

_CONSIDER = (
    "\n\nConsider using the `static_argnums` parameter for `jax.remat` or `jax.checkpoint`. See the `jax.checkpoint` "
    "docstring and its example involving `static_argnums`."
)

__all__ = ["Offloadable", "Recompute", "Saveable", "checkpoint", "checkpoint_policies", "remat"]

Policy = Callable[..., Any]


class SaveableType:
    """The class of `Saveable`, which a policy returns for a value that may be kept; True means the same."""

    def __repr__(self) -> str:
        return "Saveable"


class RecomputeType:
    """The class of `Recompute`, which a policy returns for a value that is computed again; False means the same."""

    def __repr__(self) -> str:
        return "Recompute"


Saveable = SaveableType()
Recompute = RecomputeType()


class Offloadable(NamedTuple):
    """What a policy returns for a value that may be kept in another memory.

    Here it is kept where it is: on the CPU all memory is the host's.

    Args:
      src: the kind of memory where it is computed.
      dst: the kind of memory where it is kept.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.ad_checkpoint import Offloadable, Recompute
    >>> policy = lambda p, *_, **__: Offloadable("device", "pinned_host") if p.name == "sin" else Recompute
    >>> print(jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=policy))(0.0))
    1.0
    """

    src: str
    dst: str


def _is_kept(case: Any) -> bool:
    """Whether a policy's answer lets a value be kept."""
    if isinstance(case, (bool, np.bool_)):
        return bool(case)
    if not isinstance(case, (SaveableType, RecomputeType, Offloadable)):
        raise TypeError(
            "Value returned by a remat policy should be a bool or `ad_checkpoint.Recompute`, `ad_checkpoint.Saveable` "
            f"or `ad_checkpoint.Offloadable(...)`. Got {case} of type {type(case)}."
        )
    return not isinstance(case, RecomputeType)


def _everything_saveable(*_: Any, **__: Any) -> bool:
    """Every intermediate value may be kept."""
    return True


def _nothing_saveable(*_: Any, **__: Any) -> bool:
    """Nothing but the inputs may be kept: the default."""
    return False


@dataclasses.dataclass(frozen=True)
class DotsSaveable:
    """A policy: results of dot products may be kept.

    Args:
      only_if_no_batch_dims: only of those without batch axes, matrix products of activations and weights.
    """

    only_if_no_batch_dims: bool = False

    def __call__(self, primitive: Any, *_: Any, **params: Any) -> bool:
        if not self.only_if_no_batch_dims:
            return str(primitive) in ("dot_general", "conv_general_dilated")
        batch = str(params.get("dimension_numbers", "")).replace(" ", "")
        return str(primitive) == "dot_general" and batch.endswith("([],[]))")


@dataclasses.dataclass(frozen=True)
class SaveOnlyTheseNames:
    """A policy: only values named by `checkpoint_name` with one of these names may be kept.

    Args:
      saveable_names: the names.
    """

    saveable_names: frozenset[str]

    def __call__(self, primitive: Any, *_: Any, **params: Any) -> bool:
        return str(primitive) == "name" and str(params.get("name")) in self.saveable_names


@dataclasses.dataclass(frozen=True)
class SaveAnyNamesButThese:
    """A policy: only values named by `checkpoint_name` may be kept, and not those with these names.

    Args:
      names: the names.
    """

    names: frozenset[str]

    def __call__(self, primitive: Any, *_: Any, **params: Any) -> bool:
        return str(primitive) == "name" and str(params.get("name")) not in self.names


def _save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Only values named by `checkpoint_name` with one of these names may be kept."""
    return SaveOnlyTheseNames(frozenset(names_which_can_be_saved))


def _save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Only values named by `checkpoint_name` may be kept, and not those with these names."""
    return SaveAnyNamesButThese(frozenset(names_not_to_save))


def _save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Every intermediate value may be kept but those named by `checkpoint_name` with one of these names."""
    names = frozenset(names_not_to_save)

    def policy(primitive: Any, *_: Any, **params: Any) -> bool:
        return str(primitive) != "name" or str(params.get("name")) not in names

    return policy


def _save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Only values with one of these names may be kept; on the CPU all memory is the host's, so none moves."""
    return SaveOnlyTheseNames(frozenset([*names_which_can_be_saved, *names_which_can_be_offloaded]))


def _offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Results of dot products without batch axes may be kept; on the CPU all memory is the host's, so none moves."""
    return checkpoint_policies.dots_with_no_batch_dims_saveable


def _save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """What either policy approves may be kept."""

    def policy(primitive: Any, *args: Any, **params: Any) -> bool:
        return any(_is_kept(p(primitive, *args, **params)) for p in (policy_1, policy_2))

    return policy


class checkpoint_policies:
    """What reverse mode may keep of a function under `checkpoint`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> f = jax.checkpoint(lambda w, x: jnp.sin(w @ x), policy=jax.checkpoint_policies.dots_saveable)
    >>> print(jax.grad(lambda w: f(w, jnp.ones(2)).sum())(jnp.zeros((1, 2))))
    [[1. 1.]]
    """

    everything_saveable = staticmethod(_everything_saveable)
    nothing_saveable = staticmethod(_nothing_saveable)
    dots_saveable = DotsSaveable()
    checkpoint_dots = dots_saveable
    dots_with_no_batch_dims_saveable = DotsSaveable(only_if_no_batch_dims=True)
    checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable
    save_only_these_names = staticmethod(_save_only_these_names)
    save_any_names_but_these = staticmethod(_save_any_names_but_these)
    save_anything_except_these_names = staticmethod(_save_anything_except_these_names)
    save_and_offload_only_these_names = staticmethod(_save_and_offload_only_these_names)
    offload_dot_with_no_batch_dims = staticmethod(_offload_dot_with_no_batch_dims)
    save_from_both_policies = staticmethod(_save_from_both_policies)


_everything_saveable.__qualname__, _nothing_saveable.__qualname__ = "everything_saveable", "nothing_saveable"


@functools.lru_cache(maxsize=256)
def _policy(fun: Policy) -> Any:
    """The Rust object of a policy: one a function, so that equal calls share their programs."""

    def asked(primitive: Any, *args: Any, **params: Any) -> bool:
        return _is_kept(fun(built_in(primitive) if isinstance(primitive, str) else primitive, *args, **params))

    return _ferrax.CheckpointPolicy(name_function(asked, re.sub(r"0x\w+", "0x" + 12 * "X", repr(fun)), policy=fun))


def _positions_of(fun: Callable[..., Any], names: frozenset[str]) -> tuple[int, ...]:
    """Positions of the parameters with these names."""
    if not names:
        return ()
    try:
        parameters = list(inspect.signature(fun).parameters)
    except (TypeError, ValueError):
        return ()
    return tuple(i for i, name in enumerate(parameters) if name in names)


def _with_fixed(target: Callable[..., Any], count: int, given: dict[int, Any], named: dict[str, Any]) -> Any:
    """A function of the arguments that are traced; others of the `count` positional and of the named ones are given."""

    def call(*values: Any, **others: Any) -> Any:
        rest = iter(values)
        return target(*(given[i] if i in given else next(rest) for i in range(count)), **others, **named)

    call.user_body = target  # type: ignore[attr-defined]
    call.__name__ = getattr(target, "__name__", "call")
    return call


def _of_each(prevent_cse: tuple[Any, ...], args: tuple[Any, ...]) -> list[bool]:
    """What a tuple says of the arguments' leaves; an error unless it is a prefix of the arguments."""
    from ferrax._src.tree_util import broadcast_prefix

    return broadcast_prefix(prevent_cse, args)


@overload
def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool | tuple[bool, ...] = ...,
    policy: Policy | None = ...,
    static_argnums: int | Sequence[int] = ...,
    static_argnames: str | Iterable[str] = ...,
    concrete: bool = ...,
) -> Callable[P, R]: ...
@overload
def checkpoint(
    fun: None = ...,
    *,
    prevent_cse: bool | tuple[bool, ...] = ...,
    policy: Policy | None = ...,
    static_argnums: int | Sequence[int] = ...,
    static_argnames: str | Iterable[str] = ...,
    concrete: bool = ...,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool | tuple[bool, ...] = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: bool = False,
) -> Any:
    """A function whose intermediate values reverse mode computes again instead of keeping.

    Args:
      fun: function to wrap; without it, returns a decorator.
      prevent_cse: whether the compiler must keep the second computation apart from the first. A tuple says so of each
        argument: it is kept apart where one of them asks for it.
      policy: says of each operation whether its results may be kept; see `checkpoint_policies`.
      static_argnums: positions of arguments that are not traced; they must be hashable.
      static_argnames: names of such arguments, given by keyword or by position.
      concrete: accepted for compatibility; must be false.

    Returns:
      A function with the same results and derivatives. Run again, a function that uses references reads what these held
      at first, and writes nothing.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x))))(0.0))
    1.0
    """
    if fun is None:
        return functools.partial(
            checkpoint,
            prevent_cse=prevent_cse,
            policy=policy,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            concrete=concrete,
        )
    if concrete:
        raise NotImplementedError(
            "The `concrete` option to `jax.checkpoint` is not supported; use static_argnums instead"
        )
    if policy is not None and not callable(policy):
        raise TypeError(
            f"checkpoint policy must be a function that says of each operation whether its results are kept, such as "
            f"jax.checkpoint_policies.everything_saveable; got {policy!r}."
        )
    if not isinstance(prevent_cse, bool) and not (
        isinstance(prevent_cse, tuple) and all(isinstance(p, bool) for p in tree_util.tree_leaves(prevent_cse))
    ):
        raise TypeError(f"prevent_cse must be a bool or tuple of bools, got type(prevent_cse)={type(prevent_cse)}")
    names = frozenset([static_argnames] if isinstance(static_argnames, str) else static_argnames)
    positions = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    static = positions + _positions_of(fun, names)
    from ferrax.errors import ConcretizationTypeError

    target = fun

    @functools.lru_cache(maxsize=64)
    def fixed_call(count: int, given: tuple[tuple[int, Any, Any], ...], named: tuple[tuple[str, Any, Any], ...]) -> Any:
        return _with_fixed(target, count, {i: x for i, x, _ in given}, {k: x for k, x, _ in named})

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if any(not -len(args) <= n < len(args) for n in positions):
            raise ValueError(
                "the `static_argnums` argument to `jax.checkpoint` / `jax.remat` can only take integer values greater "
                f"than or equal to `-len(args)` and less than `len(args)`, but got {positions}, while `len(args)` = "
                f"{len(args)}"
            )
        places = {n % len(args) for n in static if -len(args) <= n < len(args)}
        fixed = {name: value for name, value in kwargs.items() if name in names}
        kwargs = {name: value for name, value in kwargs.items() if name not in names}
        dynamic = tuple(a for i, a in enumerate(args) if i not in places)
        traced = target
        if places or fixed:
            given = tuple((i, args[i], type(args[i])) for i in sorted(places))
            named = tuple((k, x, type(x)) for k, x in fixed.items())
            try:
                traced = fixed_call(len(args), given, named)  # one function for equal arguments: it is traced once
            except TypeError:  # they are not hashable
                traced = fixed_call.__wrapped__(len(args), given, named)
        apart = any(_of_each(prevent_cse, dynamic)) if isinstance(prevent_cse, tuple) else prevent_cse
        clock = _ferrax.trace_clock()
        try:
            program = _ferrax.trace_to_jaxpr(traced, dynamic, kwargs, "checkpoint")
        except _ferrax.ReferenceUsed:
            from ferrax._refs_calls import of_places

            closed, dynamic, kwargs = of_places(traced, dynamic, kwargs)
            return checkpoint(closed, prevent_cse=apart, policy=policy)(*dynamic, **kwargs)
        except ConcretizationTypeError as error:
            if "for checkpoint" in str(error) and _CONSIDER not in str(error):
                error.args = (str(error) + _CONSIDER,)
            raise
        if _ferrax.references_since(clock):
            from ferrax._refs_calls import checkpointed

            again = functools.partial(checkpoint, prevent_cse=apart, policy=policy)
            return checkpointed(traced, again, clock, dynamic, kwargs)
        leaves = tree_util.tree_leaves((dynamic, kwargs))
        rule = None if policy is None else _policy(policy)
        return program.out_tree.unflatten(_ferrax.bind_remat(program, leaves, apart, rule))

    made = shielded_for(wrapped, target)
    made.__name__ = name_of(target)
    return made


remat = checkpoint
