"""Primitives given by a function of arrays and rules for derivatives and batches, each a class: `VJPHiPrimitive`.

All of them are one operation, `call_hi_primitive`, with the object as its parameter, so that programs show it. Its
derivative is another, linear operation, which holds what `vjp_fwd` keeps: transposed it asks `vjp_bwd`, evaluated it
asks `jvp`. So one rule serves forward and reverse mode, and loops, which do not know yet which of them it will be.

Read next: `hijax.py`, which has the public names; `ferrax/_primitives.py`, whose tables have the rules.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax, tree_util
from ferrax._derivatives import jvp as _jvp
from ferrax._prefixes import prefix_leaves
from ferrax._primitives import (
    AxisData,
    Primitive,
    UndefinedPrimal,
    Zero,
    fancy_primitive_batchers,
    primitive_jvps,
    primitive_transposes,
    zeros_of,
)
from ferrax.dtypes import issubdtype
from ferrax.extend.core._traces import trace_at_work
from ferrax.interpreters.mlir import lower_fun, register_lowering
from ferrax.interpreters.partial_eval import dce_rules
from ferrax.sharding._typed import settled

__all__ = ["GradAccum", "Mapped", "NullAccum", "VJPHiPrimitive"]


class GradAccum:
    """Collects the cotangents of an operand; `vjp_bwd` and `transpose` get one for each array.

    Attributes:
      aval: the type of the cotangents.

    >>> import ferrax as jax
    >>> accum = GradAccum(jax.typeof(1.0))
    >>> accum.accum(1.0); accum.accum(2.0)
    >>> print(accum.value)
    3.0
    """

    def __init__(self, aval: Any):
        self.aval, self.value = aval, None

    def accum(self, x: Any) -> None:
        """Adds a cotangent; `None` and zeros add nothing."""
        if x is not None and type(x) is not Zero:
            self.value = x if self.value is None else self.value + x


class NullAccum(GradAccum):
    """Stands for an operand whose cotangent nobody wants: it collects nothing.

    >>> import ferrax as jax
    >>> from ferrax.experimental._hi_primitives import NullAccum
    >>> accum = NullAccum(jax.typeof(1.0))
    >>> accum.accum(1.0)
    >>> print(accum.value)
    None
    """

    def accum(self, x: Any) -> None:
        """Adds nothing."""


def _recorded(leaf: Any) -> bool:
    """Whether a leaf is what programs record: a value of theirs, or one that is known."""
    return not _ferrax.is_tracer(leaf) or isinstance(leaf, _ferrax.DynamicJaxprTracer)


def _same_rule(name: str, cls: type) -> bool:
    """Whether a class leaves a rule as the base has it."""
    return getattr(cls, name) is getattr(VJPHiPrimitive, name)


class VJPHiPrimitive:
    """A unit of computation with rules of its own: a function of arrays that transformations take as a whole.

    A class derived from it sets, in `__init__`, `in_avals` (a tuple with the type of each argument, or a pytree of
    types), `out_aval` (that of the result) and `params` (a dictionary of hashable values, which become attributes), and
    then calls `super().__init__()`. It defines `expand`, and those of the other methods whose transformations it is to
    support. Its instances are called with the arguments.

    Attributes:
      effects: what a call does besides giving its result, the effects of its equation; none unless a class sets some.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> class Steep(jax.experimental.hijax.VJPHiPrimitive):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (x,), x, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return jnp.sin(x)
    ...     def vjp_fwd(self, nzs_in, x):
    ...         return self(x), None
    ...     def vjp_bwd_retval(self, res, g):
    ...         return (10.0 * g,)
    >>> print(jax.grad(lambda x: Steep(jax.typeof(x))(x))(0.0))
    10.0
    """

    in_avals: tuple[Any, ...]
    out_aval: Any
    params: dict[str, Any]
    effects: frozenset[Any] = frozenset()

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"{type(self).__name__} must set {name} before it calls super().__init__()")
        if not (_same_rule("vjp_bwd", type(self)) or _same_rule("vjp_bwd_retval", type(self))):
            raise AttributeError(f"subclass {type(self)} should not override both `vjp_bwd` and `vjp_bwd_retval`")
        self.in_avals_flat, self.in_tree = tree_util.tree_flatten(self.in_avals)
        self.out_avals_flat, self.out_tree = tree_util.tree_flatten(self.out_aval)
        vars(self).update(self.params)
        self.check(*self.in_avals)

    def check(self, *arg_tys: Any) -> None:
        """Raises where the types of the arguments do not suit; a class of primitives says when."""

    def expand(self, *args: Any) -> Any:
        """The result, computed by functions of arrays."""
        raise NotImplementedError(f"subclass {type(self)} must implement `expand`")

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> Any:
        """`(result, what is kept)` for reverse mode; `nzs_in` says which arguments are differentiated."""
        raise self._missing("grad", "vjp_fwd")

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        """The cotangents of the arguments, a tuple; `None` for zero."""
        raise self._missing("grad", "vjp_bwd` or `vjp_bwd_retval")

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> None:
        """Adds the cotangents of the arguments to a `GradAccum` for each array."""
        pulled = self.vjp_bwd_retval(res, outgrad)
        for accums, given in zip(arg_accums, pulled, strict=True):
            if given is not None:
                tree_util.tree_map(lambda a, ct: a.accum(ct), accums, given)

    def jvp(self, primals: Any, tangents: Any) -> Any:
        """`(result, its tangent)` for forward mode."""
        raise self._missing("jvp", "jvp")

    def lin(self, nzs_in: Any, /, *args: Any) -> Any:
        """`(result, what is kept)` for `linearize`."""
        raise self._missing("linearize", "lin")

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        """The tangent of the result, from what `lin` has kept."""
        raise self._missing("linearize", "linearized")

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        """`(result, its batch axis)` for arguments with batch axes."""
        if _same_rule("batch_dim_rule", type(self)):
            raise self._missing("vmap", "batch` or `batch_dim_rule")
        out_dim = self.batch_dim_rule(axis_data, dims)
        return Mapped(self, axis_data, dims, out_dim, args)(*args), out_dim

    def batch_dim_rule(self, axis_data: Any, dims: Any) -> Any:
        """The batch axis of the result, for those of the arguments."""
        raise self._missing("vmap", "batch` or `batch_dim_rule")

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        """Adds cotangents to the `GradAccum`s among the arguments, in which the operation is linear."""
        raise self._missing("transpose", "transpose")

    def dce(self, used_outs: Any) -> tuple[Any, Any, Any]:
        """What is left where some results are not needed, for `dce_jaxpr`: all of it, or nothing where none is.

        Args:
          used_outs: whether each array of the result is needed, a tree like it.

        Returns:
          `(which arguments stay, which results are made, the primitive)`, prefixes of their trees; None for no
          primitive.
        """
        used = any(tree_util.tree_leaves(used_outs))
        return used, used, self if used else None

    def remat(self, policy: Any, *args: Any) -> tuple[Any, Any]:
        """`(result, what computes it again)`; nobody asks for it, as `checkpoint` computes the operation again."""
        return self(*args), self

    def staging(self, trace: Any, source_info: Any, *args: Any) -> Any:
        """The result where the operation is recorded in a program: an equation; a class may record others.

        Args:
          trace: the transformation that records.
          source_info: None.
          *args: the arguments.
        """
        return self._bound(self._leaves(args))

    def _bound(self, leaves: Sequence[Any]) -> Any:
        return self.out_tree.unflatten(call_hi_primitive_p.bind(*leaves, _prim=self))

    def _leaves(self, args: tuple[Any, ...]) -> list[Any]:
        leaves, tree = tree_util.tree_flatten(args)
        if tree != self.in_tree:
            raise TypeError(f"{self!r} takes arguments of the structure {self.in_tree}, got {tree}")
        return leaves

    def __call__(self, *args: Any) -> Any:
        leaves = self._leaves(args)
        if any(getattr(a, "is_high", False) for a in (*self.in_avals_flat, *self.out_avals_flat)):
            from ferrax.experimental._high_primitives import apply

            return apply(self, args, leaves)
        if not (_same_rule("staging", type(self)) or _ferrax.is_eager()) and all(map(_recorded, leaves)):
            return self.staging(trace_at_work(), None, *args)
        return self._bound(leaves)

    def defines(self, name: str) -> bool:
        """Whether the class defines a rule."""
        return not _same_rule(name, type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.params}]"

    def _key(self) -> Any:
        types = (*self.in_avals_flat, self.in_tree, *self.out_avals_flat, self.out_tree)
        return type(self), types, self.effects, tuple(sorted(self.params.items(), key=lambda item: item[0]))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, VJPHiPrimitive) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    # what the operation asks for, of flat arrays

    def _missing(self, what: str, methods: str) -> NotImplementedError:
        return NotImplementedError(f"for {what} support, subclass {type(self)} must implement `{methods}`")

    def _args(self, leaves: Sequence[Any]) -> Any:
        return self.in_tree.unflatten(leaves)

    def _results(self, out: Any, what: str) -> list[Any]:
        leaves, tree = tree_util.tree_flatten(out)
        if tree != self.out_tree:
            raise TypeError(f"{what} of {self!r} gave a result of the structure {tree}, out_aval has {self.out_tree}")
        return leaves

    def _expanded(self, *leaves: Any) -> list[Any]:
        return self._results(self.expand(*self._args(leaves)), "`expand`")


class Mapped(VJPHiPrimitive):
    """A primitive over a batch, every rule of it mapped."""

    def __init__(self, of: VJPHiPrimitive, axis_data: AxisData, dims: Any, out_dim: Any, args: Any):
        self.in_avals = tree_util.tree_map(_ferrax.typeof, tuple(args))
        self.out_aval = tree_util.tree_map(
            lambda a, d: a.update(shape=(*a.shape[:d], axis_data.size, *a.shape[d:])), of.out_aval, out_dim
        )
        self.params = {"of": of, "size": axis_data.size, "dims": _hashable(dims), "out_dim": _hashable(out_dim)}
        self._axes, self._out_axes = dims, out_dim
        super().__init__()

    def defines(self, name: str) -> bool:
        """Whether the primitive has a rule."""
        return bool(self.params["of"].defines(name))

    def _over(self, f: Callable[..., Any], in_axes: Any, out_axes: Any) -> Callable[..., Any]:
        from ferrax._api import vmap

        return vmap(f, in_axes=in_axes, out_axes=out_axes, axis_size=self.params["size"])

    def expand(self, *args: Any) -> Any:
        return self._over(self.params["of"].expand, tuple(self._axes), self._out_axes)(*args)

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> Any:
        fwd = functools.partial(self.params["of"].vjp_fwd, nzs_in)
        return self._over(fwd, tuple(self._axes), (self._out_axes, 0))(*args)

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        of = self.params["of"]

        def bwd(res: Any, outgrad: Any) -> Any:
            return tuple(_pulled(of, res, outgrad))

        pulled = self._over(bwd, (0, self._out_axes), 0)(res, outgrad)
        axes = self.in_tree.flatten_up_to(self._axes)
        sums = [_back(ct, axis) for ct, axis in zip(pulled, axes, strict=True)]
        return self.in_tree.unflatten(sums)

    def jvp(self, primals: Any, tangents: Any) -> Any:
        axes = tuple(self._axes)
        out_axes = (self._out_axes, self._out_axes)
        return self._over(self.params["of"].jvp, (axes, axes), out_axes)(tuple(primals), tuple(tangents))


def _hashable(dims: Any) -> Any:
    leaves, tree = tree_util.tree_flatten(dims, is_leaf=lambda d: d is None)
    return tuple(leaves), tree


def _back(ct: Any, axis: int | None) -> Any:
    """The cotangent of a batched operand, whose batch axis comes first; of an operand for all rows their sum."""
    from ferrax import numpy as jnp

    return jnp.sum(ct, axis=0) if axis is None else jnp.moveaxis(ct, 0, axis)


def _pulled(prim: VJPHiPrimitive, res: Any, outgrad: Any, wanted: Sequence[bool] | None = None) -> list[Any]:
    """Flat cotangents of all arguments, zeros as arrays, and of those that are not wanted."""
    on = [True] * len(prim.in_avals_flat) if wanted is None else wanted
    kinds = [GradAccum if w else NullAccum for w in on]
    accums = [kind(a.to_ct_aval()) for kind, a in zip(kinds, prim.in_avals_flat, strict=True)]
    prim.vjp_bwd(res, outgrad, *prim._args(accums))
    return [zeros_of(a.aval) if a.value is None else a.value for a in accums]


# ---- the operation ---------------------------------------------------------------------------------------------------

call_hi_primitive_p = Primitive("call_hi_primitive")
call_hi_primitive_p.multiple_results = True
call_hi_primitive_p.def_impl(lambda *leaves, _prim: _prim._expanded(*leaves))
call_hi_primitive_p.def_effectful_abstract_eval(lambda *_, _prim: (list(_prim.out_avals_flat), _prim.effects))


def _lowered(*leaves: Any, _prim: VJPHiPrimitive) -> list[Any]:
    """The operation in a compiled program, where types have lost what explicit axes divide, as `expand` sees it."""
    spreads = (getattr(a, "_spread", 0) for a in _prim.in_avals_flat)
    return _prim._expanded(*(settled(x, s) if s else x for x, s in zip(leaves, spreads, strict=True)))


register_lowering(call_hi_primitive_p, lower_fun(_lowered))


def _batched(axis_data: Any, leaves: Any, dims: Any, *, _prim: VJPHiPrimitive) -> Any:
    args, places = _prim._args(leaves), _prim._args(dims)
    out, out_dim = _prim.batch(axis_data, args, places)
    return _prim._results(out, "`batch`"), _prim.out_tree.flatten_up_to(out_dim)


def _transposed(cts: Any, *leaves: Any, _prim: VJPHiPrimitive) -> list[Any]:
    given = [GradAccum(x.aval.to_ct_aval()) if type(x) is UndefinedPrimal else x for x in leaves]
    out_ct = [zeros_of(ct.aval) if type(ct) is Zero else ct for ct in cts]
    _prim.transpose(_prim.out_tree.unflatten(out_ct), *_prim._args(given))
    return [x.value if isinstance(x, GradAccum) else None for x in given]


def _differentiated(leaves: Any, tangents: Any, *, _prim: VJPHiPrimitive) -> tuple[Any, Any]:
    nonzero = [type(t) is not Zero for t in tangents]
    arrays = _ferrax.ArrayImpl
    dots = lambda: _prim._args([zeros_of(t.aval) if type(t) is Zero else t for t in tangents])
    forward, backward = _prim.defines("jvp"), _prim.defines("vjp_fwd")
    if forward and not (backward and any(not isinstance(t, arrays) for t in tangents if type(t) is not Zero)):
        out, out_dot = _prim.jvp(_prim._args(leaves), dots())
        return _prim._results(out, "`jvp`"), _prim._results(out_dot, "`jvp`")
    if not backward and _prim.defines("lin"):
        out, kept = _prim.lin(_prim._args(nonzero), *_prim._args(leaves))
        return _prim._results(out, "`lin`"), _prim._results(_prim.linearized(kept, *dots()), "`linearized`")
    if not backward:
        eager = all(isinstance(t, arrays) for t in tangents if type(t) is not Zero)
        raise _prim._missing("jvp", "jvp") if eager else _prim._missing("grad", "vjp_fwd")
    out, res = _prim.vjp_fwd(_prim._args(nonzero), *_prim._args(leaves))
    kept, tree = tree_util.tree_flatten(res)
    primals = list(leaves) if forward else []
    linear = [t for t, on in zip(tangents, nonzero, strict=True) if on]
    meta = _Meta(_prim, tree, tuple(nonzero), len(primals))
    outs = _prim._results(out, "`vjp_fwd`")
    return outs, linearized_p.bind(*kept, *primals, *linear, _of=meta)


def _needed(used_outputs: list[bool], eqn: Any) -> tuple[list[bool], Any]:
    """What `dce_jaxpr` leaves of an equation: the primitive's own word."""
    prim = eqn.params["_prim"]
    used, made, left = prim.dce(prim.out_tree.unflatten(used_outputs))
    if left is None:
        return [False] * len(eqn.invars), None
    operands = prefix_leaves(used, prim.in_avals)
    results = prefix_leaves(made, prim.out_aval)
    invars = [v for v, on in zip(eqn.invars, operands, strict=True) if on]
    outvars = [v for v, on in zip(eqn.outvars, results, strict=True) if on]
    return operands, eqn.replace(invars=invars, outvars=outvars, params={"_prim": left})


dce_rules[call_hi_primitive_p] = _needed
fancy_primitive_batchers[call_hi_primitive_p] = _batched
primitive_jvps[call_hi_primitive_p] = _differentiated
primitive_transposes[call_hi_primitive_p] = _transposed


# ---- its derivative, a linear operation ------------------------------------------------------------------------------


class _Meta:
    """What a linear operation is of: the primitive, and how its operands are arranged."""

    def __init__(self, prim: Any, tree: Any, nonzero: tuple[bool, ...], primals: int):
        self.prim, self.tree, self.nonzero, self.primals = prim, tree, nonzero, primals
        self.held = tree.num_leaves

    def _key(self) -> Any:
        return self.prim, self.tree, self.nonzero, self.primals

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Meta) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return repr(self.prim)

    def residuals(self, operands: Sequence[Any]) -> Any:
        """What `vjp_fwd` has kept."""
        return self.tree.unflatten(operands[: self.held])

    def types(self) -> list[Any]:
        """Types of the results."""
        return [a.to_tangent_aval() for a in self.prim.out_avals_flat]

    def evaluated(self, *operands: Any) -> list[Any]:
        """The tangent of the result, by `jvp`."""
        prim, start = self.prim, self.held + self.primals
        if not self.primals and prim.in_avals_flat:
            raise prim._missing("jvp", "jvp")
        given = iter(operands[start:])
        avals = prim.in_avals_flat
        dots = [next(given) if on else zeros_of(a.to_tangent_aval()) for a, on in zip(avals, self.nonzero, strict=True)]
        primals = prim._args(list(operands[self.held : start]))
        return prim._results(prim.jvp(primals, prim._args(dots))[1], "`jvp`")


linearized_p = Primitive("call_hi_primitive_linearized")
linearized_p.multiple_results = True
linearized_p.def_impl(lambda *operands, _of: _of.evaluated(*operands))
linearized_p.def_abstract_eval(lambda *_, _of: _of.types())
register_lowering(linearized_p, lower_fun(lambda *operands, _of: _of.evaluated(*operands)))


def _linear_jvp(operands: Any, tangents: Any, *, _of: _Meta) -> Any:
    dots = [zeros_of(t.aval) if type(t) is Zero else t for t in tangents]
    return _jvp(_of.evaluated, tuple(operands), tuple(dots))


def _linear_batched(axis_data: Any, operands: Any, dims: Any, *, _of: _Meta) -> Any:
    from ferrax._api import vmap

    outs = vmap(_of.evaluated, in_axes=tuple(dims), axis_size=axis_data.size)(*operands)
    return outs, [0] * len(outs)


def _linear_transposed(cts: Any, *operands: Any, _of: _Meta) -> list[Any]:
    outgrad = [zeros_of(ct.aval) if type(ct) is Zero else ct for ct in cts]
    pulled = _pulled(_of.prim, _of.residuals(operands), _of.prim.out_tree.unflatten(outgrad), _of.nonzero)
    wanted = [ct for ct, on in zip(pulled, _of.nonzero, strict=True) if on]
    floats = [ct if issubdtype(ct.dtype, np.inexact) else None for ct in map(_ferrax.asarray, wanted)]
    return [None] * (_of.held + _of.primals) + floats


fancy_primitive_batchers[linearized_p] = _linear_batched
primitive_jvps[linearized_p] = _linear_jvp
primitive_transposes[linearized_p] = _linear_transposed
