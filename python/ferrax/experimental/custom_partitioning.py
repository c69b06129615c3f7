"""Functions that say themselves how their arrays are divided over devices.

The devices of the embedded engine share one memory, so a function is run once, on whole arrays: what `def_partition`
says decides which shardings the results get, from a rule in the manner of `einsum` or by a callback. The function for
the parts, which `partition` would give, is not called. Read next: `ferrax/sharding/_propagation.py`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

from ferrax import _ferrax, tree_util
from ferrax._boundary import expose as _expose
from ferrax._composites import Composite
from ferrax._shape_dtype import ShapeDtypeStruct
from ferrax.core import eval_jaxpr
from ferrax.sharding import _propagation
from ferrax.sharding._entries import free

__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "custom_partitioning"]

#: The axes that a rule does not name, as many as there are.
BATCHING = "…"


def _is_batching(factor: Any) -> bool:
    return isinstance(factor, str) and factor[:1] == BATCHING and (len(factor) == 1 or factor[1:].isdigit())


class CompoundFactor(tuple[str, ...]):
    """Factors that make up one axis, the slowest first: `(a b)` in a rule.

    Args:
      *factors: their names, two at least.

    >>> from ferrax.experimental.custom_partitioning import CompoundFactor
    >>> CompoundFactor("heads", "channels")
    ('heads', 'channels')
    """

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise ValueError("A compound factor should contain at least two factors")
        for factor in factors:
            if not isinstance(factor, str):
                raise ValueError(f"Each element of CompoundFactor must be a str, but got {type(factor)}")
            if _is_batching(factor):
                raise ValueError("Ellipsis can't be used in a compound factor")
            _check_name(factor)
        return super().__new__(cls, factors)


def _check_name(factor: str) -> None:
    if not factor[:1].isalpha():
        raise ValueError(f"Factor names have to start with a letter, but got '{factor[:1]}'")
    for char in factor:
        if not (char.isalnum() or char == "_"):
            raise ValueError(f"Unknown character '{char}'")


class ArrayMapping(tuple[Any, ...]):
    """The factors of an array's axes.

    Args:
      *dim_mappings: for each axis its factor by name, or a `CompoundFactor`; first of all perhaps `BATCHING`.

    >>> from ferrax.experimental.custom_partitioning import BATCHING, ArrayMapping
    >>> ArrayMapping(BATCHING, "i")
    ('…', 'i')
    """

    def __new__(cls, *dim_mappings: Any) -> ArrayMapping:
        for at, factor in enumerate(dim_mappings):
            if not isinstance(factor, (str, CompoundFactor)):
                raise ValueError(
                    f"Each element of ArrayMapping must be a str or CompoundFactor, but got {type(factor)}"
                )
            if _is_batching(factor) and at:
                raise ValueError("Ellipsis can only be used at the beginning of a dimension")
            if isinstance(factor, str) and not _is_batching(factor):
                _check_name(factor)
        return super().__new__(cls, dim_mappings)


class SdyShardingRule:
    """Which axes of operands and results are divided together: those with the same factor.

    Args:
      operand_mappings: for each operand the factors of its axes.
      result_mappings: likewise for results.
      reduction_factors: factors that are summed over.
      need_replication_factors: factors that are never divided.
      permutation_factors: factors whose parts change places.
      **factor_sizes: sizes of factors that are in compound ones alone.

    >>> from ferrax.experimental.custom_partitioning import SdyShardingRule
    >>> SdyShardingRule((("i", "j"),), (("i",),), reduction_factors=("j",))
    SdyShardingRule((('i', 'j'),), (('i',),), {} reduction_factors=('j',))
    """

    def __init__(
        self,
        operand_mappings: Sequence[Any],
        result_mappings: Sequence[Any],
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ):
        self.operand_mappings = tuple(ArrayMapping(*m) for m in operand_mappings)
        self.result_mappings = tuple(ArrayMapping(*m) for m in result_mappings)
        self.factor_sizes = factor_sizes
        self.special = {
            "reduction_factors": reduction_factors,
            "need_replication_factors": need_replication_factors,
            "permutation_factors": permutation_factors,
        }
        entries = [f for m in (*self.operand_mappings, *self.result_mappings) for f in m]
        whole = {f for f in entries if isinstance(f, str)}
        parts = {f for compound in entries if isinstance(compound, CompoundFactor) for f in compound}
        for name in factor_sizes:
            if name in whole:
                raise ValueError(f"Factor {name} represents a whole dimension; do not specify its size")
            if name not in parts:
                raise ValueError(f"Factor {name} is not used in the rule, but size is provided")
        for name in sorted(parts - whole):
            if name not in factor_sizes:
                raise ValueError(f"Factor {name} is only used in compound factors; must specify its size")
        taken: set[Any] = set()
        for kind, factors in self.special.items():
            if not isinstance(factors, tuple):
                raise ValueError(f"{kind} must be a tuple of factors")
            if len(set(factors)) != len(factors):
                raise ValueError(f"{kind} contains duplicated factors")
            for name in factors:
                if name not in whole | parts:
                    raise ValueError(f"Factor {name} in {kind} is not used in the rule")
                if name in taken:
                    raise ValueError(
                        f"Factor {name} can only be in one of the reduction, need replication, or permutation factor "
                        "sets."
                    )
            taken.update(factors)

    def __repr__(self) -> str:
        special = "".join(f" {kind}={factors}" for kind, factors in self.special.items() if factors)
        return f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, {self.factor_sizes}{special})"

    def _expanded(self, operands: Sequence[Sequence[int]], results: Sequence[Sequence[int]]) -> tuple[Any, Any]:
        """The mappings of operands and results, batch axes by number."""
        batch: dict[str, int] = {}

        def expanded(mappings: Any, shapes: Sequence[Sequence[int]], what: str) -> list[list[Any]]:
            if len(mappings) != len(shapes):
                raise ValueError(
                    f"Sharding rule has {len(mappings)} {what}s, but the operation has {len(shapes)} {what}s"
                )
            return [one(m, len(s), f"{at}th {what}") for at, (m, s) in enumerate(zip(mappings, shapes, strict=True))]

        def one(mapping: Any, rank: int, what: str) -> list[Any]:
            group = mapping[0].ljust(2, "0") if mapping and _is_batching(mapping[0]) else None
            named = list(mapping[group is not None :])
            extra = rank - len(named)
            if extra < 0 or (group is None and extra):
                raise ValueError(
                    f"Sharding rule {what} has rank {len(named)}, but the operation {what} has rank {rank}"
                )
            if group is None:
                return named
            if batch.setdefault(group, extra) != extra:
                raise ValueError(f"Sharding rule {what} has {extra} batch axes where another array has {batch[group]}")
            return [*(f"{group}{i}" for i in range(extra)), *named]

        return expanded(self.operand_mappings, operands, "operand"), expanded(self.result_mappings, results, "result")

    def _divided(
        self,
        known: Sequence[Any],
        operands: Sequence[Sequence[int]],
        results: Sequence[Sequence[int]],
        mesh: Any,
    ) -> list[Any]:
        """The mesh axes of the axes of each result, from those of the operands."""
        of_operands, of_results = self._expanded(operands, results)
        divides: dict[str, tuple[Any, ...]] = {}
        for mapping, spec, shape in zip(of_operands, known, operands, strict=True):
            for factor, names, size in zip(mapping, spec or ((),) * len(shape), shape, strict=True):
                first = factor[0] if isinstance(factor, CompoundFactor) else factor
                if isinstance(factor, CompoundFactor):
                    parts = 1
                    for name in names:
                        parts *= mesh.shape[name]
                    if self._size_of_first(factor, size) % parts:
                        continue
                if len(names) > len(divides.get(first, ())):
                    divides[first] = names
        firsts = [[f[0] if isinstance(f, CompoundFactor) else f for f in mapping] for mapping in of_results]
        return [free([divides.get(f, ()) for f in mapping]) for mapping in firsts]

    def _size_of_first(self, compound: CompoundFactor, size: int) -> int:
        """The size of the slowest factor of an axis; 1 where it is not known."""
        first, *rest = compound
        if first in self.factor_sizes:
            return self.factor_sizes[first]
        for factor in rest:
            if factor not in self.factor_sizes:
                return 1
            size //= self.factor_sizes[factor]
        return size


_TOKEN = re.compile(rf"({BATCHING})(\d*)|(\w+)|([^ ])")


def _arrays(text: str) -> list[ArrayMapping]:
    """The factors of each array of one side of a rule."""
    done: list[ArrayMapping] = []
    axes: list[Any] = []
    inner: list[str] | None = None
    for batch, group, name, other in _TOKEN.findall(text):
        if batch:
            if axes or inner is not None:
                raise ValueError("Ellipsis can only be used at the beginning of a dimension")
            axes.append(BATCHING + str(int(group or 0)))
        elif name:
            if name[0].isdigit():
                raise ValueError(f"Factor names have to start with a letter, but got '{name[0]}'")
            (axes if inner is None else inner).append(name)
        elif other == ",":
            done.append(ArrayMapping(*axes))
            axes = []
        elif other == "(":
            if inner is not None:
                raise ValueError("Compound factors should be one level, nested brackets are not allowed")
            inner = []
        elif other == ")":
            if inner is None:
                raise ValueError("Brackets are not balanced")
            if len(inner) < 2:
                raise ValueError("Brackets should contain at least two factors")
            axes.append(CompoundFactor(*inner))
            inner = None
        else:
            raise ValueError(f"Unknown character '{other}'")
    if inner is not None:
        raise ValueError(f"Brackets are not balanced in rule: '{' '.join(text.split())}'")
    return [*done, ArrayMapping(*axes)]


def str_to_sdy_sharding_rule(
    rule: str,
    *,
    reduction_factors: tuple[str, ...] = (),
    need_replication_factors: tuple[str, ...] = (),
    permutation_factors: tuple[str, ...] = (),
    **factor_sizes: int,
) -> SdyShardingRule:
    """A rule from its text.

    Args:
      rule: factors of the axes of operands and results; `...`, perhaps with a number behind it, stands for the leading
        axes of an array.
      reduction_factors, need_replication_factors, permutation_factors, **factor_sizes: as of `SdyShardingRule`.

    Returns:
      The rule.

    Raises:
      TypeError: the rule is no text, or a size is no integer.
      ValueError: the text is no rule.

    >>> str_to_sdy_sharding_rule("... i j, ... j k -> ... i k", reduction_factors=("j",)).result_mappings
    (('…0', 'i', 'k'),)
    """
    if not isinstance(rule, str):
        raise TypeError(f"rule must be a str, but got {type(rule)}")
    if not all(isinstance(size, int) for size in factor_sizes.values()):
        raise TypeError(f"factor_sizes must be a dict of str to int, but got {factor_sizes}")
    if BATCHING in rule:
        raise ValueError(f"Unknown character '{BATCHING}'")
    text = rule.replace("...", BATCHING)
    if "." in text:
        raise ValueError("Character '.' must be used inside ellipsis '...'")
    sides = text.split("->")
    if len(sides) != 2:
        raise ValueError(f"There is no -> in rule: '{text}'")
    operands, results = map(_arrays, sides)
    return SdyShardingRule(
        operands,
        results,
        reduction_factors=reduction_factors,
        need_replication_factors=need_replication_factors,
        permutation_factors=permutation_factors,
        **factor_sizes,
    )


def _whole(*args: Any, call: Any, **_: Any) -> list[Any]:
    """The function itself on whole arrays; the other parameters say how arrays are divided."""
    return list(eval_jaxpr(call.jaxpr, call.consts, *args))


#: JAX's primitive: a function that says how its arrays are divided. Programs of `custom_partitioning` functions do not
#: have it, as their rules are kept apart.
custom_partitioning_p = Composite("custom_partitioning", _whole, multiple_results=True)


class _Site:
    """Calls of a function with the same static arguments and structure of the others.

    Args:
      of: the function.
      statics: static arguments by position.
      in_tree: structure of the others.
    """

    def __init__(self, of: custom_partitioning, statics: dict[int, Any], in_tree: Any):
        self.of = of
        self.statics = statics
        self.in_tree = in_tree
        self.out_tree: Any = None
        #: Shapes of operands of its programs: others are those of programs that transformations made of these.
        self.shapes: set[Any] = set()

        def call(*leaves: Any) -> list[Any]:
            given = tree_util.tree_unflatten(in_tree, leaves)
            count, rest = len(statics) + len(given), iter(given)
            out = of.fun(*(statics[i] if i in statics else next(rest) for i in range(count)))
            outs, self.out_tree = tree_util.tree_flatten(out)
            shapes = tuple(_ferrax.shape(x) for x in leaves)
            if isinstance(of.sharding_rule, SdyShardingRule):
                of.sharding_rule._expanded(shapes, [_ferrax.shape(x) for x in outs])
            self.shapes.add(shapes)
            return outs

        self.call = _propagation.with_rule(call, self.divided)

    def divided(self, mesh: Any, known: Sequence[Any], operands: Sequence[Any], results: Sequence[Any]) -> Any:
        """The mesh axes of the axes of each result, from those of operands; None where the function does not say."""
        shapes = tuple(tuple(aval.shape) for aval in operands)
        if shapes not in self.shapes:
            return None
        outs = [tuple(aval.shape) for aval in results]
        if self.of.sharding_rule is not None:
            return self.of._rule_for(mesh, operands, results)._divided(known, shapes, outs, mesh)
        infer = self.of.infer_sharding_from_operands
        if infer is None or any(spec is None for spec in known):
            return None
        structs = [
            ShapeDtypeStruct(aval.shape, aval.dtype, sharding=_propagation.named(mesh, spec))
            for aval, spec in zip(operands, known, strict=True)
        ]
        wanted = [ShapeDtypeStruct(aval.shape, aval.dtype) for aval in results]
        found = infer(
            *self.statics.values(),
            mesh,
            tree_util.tree_unflatten(self.in_tree, structs),
            tree_util.tree_unflatten(self.out_tree, wanted),
        )
        return [
            _propagation.spec_of(sharding, len(shape))
            for sharding, shape in zip(tree_util.tree_leaves(found), outs, strict=True)
        ]


class custom_partitioning:
    """A function that says itself how its arrays are divided over devices; a decorator.

    Its value is that of the function, on one device and on several, under every transformation.

    Args:
      fun: function of arrays, or trees of them.
      static_argnums: arguments by position that are static.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.custom_partitioning import custom_partitioning
    >>> @custom_partitioning
    ... def spectrum(x):
    ...     return jnp.fft.fft(x)
    >>> def partition(mesh, arg_shapes, result_shape):
    ...     (divided,) = (shape.sharding for shape in arg_shapes)
    ...     return mesh, jnp.fft.fft, divided, (divided,)
    >>> spectrum.def_partition(partition, sharding_rule="... i -> ... i", need_replication_factors=("i",))
    >>> print(spectrum(jnp.ones(2)))
    [2.+0.j 0.+0.j]
    """

    def __init__(self, fun: Callable[..., Any], static_argnums: int | Sequence[int] = ()):
        self.fun = fun
        self.static_argnums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        self.partition: Callable[..., Any] | None = None
        self.infer_sharding_from_operands: Callable[..., Any] | None = None
        self.propagate_user_sharding: Callable[..., Any] | None = None
        self.sharding_rule: Any = None
        self._sites: dict[Any, _Site] = {}

    def def_partition(
        self,
        partition: Callable[..., Any],
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: Any = None,
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> None:
        """Says how arrays are divided.

        Args:
          partition: function `(*static, mesh, arg_shapes, result_shape)` that gives the function for the parts; is not
            called on the embedded engine, whose devices share one memory.
          infer_sharding_from_operands: function of the same arguments that gives the results' shardings, used where
            there is no rule.
          propagate_user_sharding: is not called: operands are given.
          decode_shardings: accepted for compatibility.
          sharding_rule: which axes are divided together: a text such as `"b i, i j -> b j"`, a `SdyShardingRule`, or a
            function of the mesh and the types of operands and results that gives one.
          reduction_factors: for a rule that is a text, as for `SdyShardingRule`.
          need_replication_factors: likewise.
          permutation_factors: likewise.
          **factor_sizes: likewise.

        Raises:
          ValueError: the rule is none.
        """
        options: dict[str, Any] = {
            "reduction_factors": reduction_factors,
            "need_replication_factors": need_replication_factors,
            "permutation_factors": permutation_factors,
            **factor_sizes,
        }
        if sharding_rule is not None and not (isinstance(sharding_rule, SdyShardingRule) or callable(sharding_rule)):
            sharding_rule = str_to_sdy_sharding_rule(sharding_rule, **options)
        self.partition = partition
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.propagate_user_sharding = propagate_user_sharding
        self.sharding_rule = sharding_rule

    def _rule_for(self, mesh: Any, operands: Sequence[Any], results: Sequence[Any]) -> SdyShardingRule:
        if isinstance(self.sharding_rule, SdyShardingRule):
            return self.sharding_rule
        made = self.sharding_rule(mesh, list(operands), list(results))
        return made if isinstance(made, SdyShardingRule) else str_to_sdy_sharding_rule(made)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's value."""
        if self.partition is None:
            raise AttributeError(
                f"call def_partition of the custom_partitioning function {getattr(self.fun, '__name__', self.fun)} "
                "before the function"
            )
        bound = inspect.signature(self.fun).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                "keyword arguments could not be resolved to positions: a custom_partitioning function has no "
                f"keyword-only arguments, and this one has {', '.join(sorted(bound.kwargs))}"
            )
        statics = {i % len(bound.args): bound.args[i] for i in self.static_argnums}
        leaves, in_tree = tree_util.tree_flatten(tuple(x for i, x in enumerate(bound.args) if i not in statics))
        key = (tuple(sorted(statics.items())), in_tree)
        site = self._sites.get(key)
        if site is None:
            site = self._sites[key] = _Site(self, dict(sorted(statics.items())), in_tree)
        outs = site.call(*leaves)
        return tree_util.tree_unflatten(site.out_tree, outs)


_expose(globals())
