"""What functions do with random keys, in JAX's terms: signatures of sinks, sources and forwards, and their checks.

The walk through programs is the core's (`ferrax/experimental/_key_signatures.py`); this module has JAX's classes for
what it finds, signatures by primitive that users may add to, and primitives that use up a key and ask whether one is
used up. Read next: `_key_signatures.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ferrax import _ferrax, tree_util
from ferrax._api import make_jaxpr
from ferrax._primitives import built_in
from ferrax._src._unprovided import unprovided_names
from ferrax.config import config
from ferrax.errors import KeyReuseError as KeyReuseError
from ferrax.experimental import _key_signatures
from ferrax.experimental._key_marks import _mark
from ferrax.experimental._key_signatures import Signature, signature_of, whole
from ferrax.extend.core import Primitive
from ferrax.interpreters import batching, mlir
from ferrax.random._gamma import random_gamma_p

__getattr__ = unprovided_names(
    __name__, "call_impl_with_key_reuse_checks", "keys of calls are looked at under the setting jax_debug_key_reuse"
)


class _OfPosition:
    """What becomes of the keys at a position; equal to another of the same class, position and mask.

    Args:
      idx: the position.
      mask: which of the keys, a boolean or an array of them.
    """

    __slots__ = ("idx", "mask")
    idx: int
    mask: Any

    def __init__(self, idx: int, mask: Any = True):
        object.__setattr__(self, "idx", idx)
        object.__setattr__(self, "mask", whole(np.array(mask)) if np.ndim(mask) else bool(mask))

    def __setattr__(self, name: str, value: Any) -> None:
        raise ValueError(f"{type(self).__name__} is immutable")

    def _key(self) -> tuple[Any, ...]:
        return (type(self).__name__, self.idx, np.shape(self.mask), np.ravel(self.mask).tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _OfPosition) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.idx}{'' if self.mask is True else f', {self.mask}'})"


class Sink(_OfPosition):
    """An argument whose keys are used up."""

    __slots__ = ()


class Source(_OfPosition):
    """A result that is a fresh key."""

    __slots__ = ()


class Forward(NamedTuple):
    """A result that is an argument."""

    in_idx: int
    out_idx: int

    def __repr__(self) -> str:
        return f"Forward({self.in_idx}, {self.out_idx})"


class KeyReuseSignature:
    """What a function does with keys.

    Args:
      args: its sinks, sources and forwards.
    """

    __slots__ = ("_args",)

    def __init__(self, *args: Sink | Source | Forward):
        self._args = frozenset(args)

    def _of(self, kind: type) -> Iterator[Any]:
        found = (part for part in self._args if isinstance(part, kind))
        yield from sorted(found, key=lambda part: part if isinstance(part, Forward) else (part.idx,))

    sinks = property(lambda self: self._of(Sink), doc="The arguments that are used up.")
    sources = property(lambda self: self._of(Source), doc="The results that are fresh.")
    forwards = property(lambda self: self._of(Forward), doc="The results that are arguments.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyReuseSignature) and self._args == other._args

    def __hash__(self) -> int:
        return hash(self._args)

    def __repr__(self) -> str:
        return f"KeyReuseSignature{(*self.sinks, *self.sources, *self.forwards)}"


class DynamicKeyReuseSignature(NamedTuple):
    """The signature of a primitive that depends on its equation."""

    signature: Callable[[Any], KeyReuseSignature]


def _shown(found: Signature) -> KeyReuseSignature:
    sinks = [Sink(i, mask) for i, mask in found.sinks.items()]
    forwards = [Forward(operand, result) for result, operand in found.forwards.items()]
    return KeyReuseSignature(*sinks, *map(Source, found.sources), *forwards)


def _read(given: KeyReuseSignature) -> Signature:
    sinks = {sink.idx: sink.mask for sink in given.sinks}
    return Signature(sinks, [s.idx for s in given.sources], {f.out_idx: f.in_idx for f in given.forwards})


def _dynamic(rule: Callable[[Any], Signature]) -> DynamicKeyReuseSignature:
    return DynamicKeyReuseSignature(lambda equation: _shown(rule(equation)))


class _OfPrimitives(dict[Any, Any]):
    """Signatures by primitive; those that are added count in every check."""

    def __setitem__(self, primitive: Any, signature: Any) -> None:
        if isinstance(signature, KeyReuseSignature):
            _key_signatures.register(primitive.name, _read(signature))
        elif isinstance(signature, DynamicKeyReuseSignature):
            _key_signatures.register(primitive.name, lambda equation: _read(signature.signature(equation)))
        else:
            raise TypeError(f"Unrecognized key reuse signature of type {type(signature)}: {signature}")
        super().__setitem__(primitive, signature)


def _identity(name: str, forwards: Signature) -> Primitive:
    """A primitive that gives back its operand."""
    primitive = Primitive(name)
    primitive.def_impl(lambda x, **params: x)
    primitive.def_abstract_eval(lambda x, **params: x)
    batching.defvectorized(primitive)
    mlir.register_lowering(primitive, mlir.lower_fun(lambda x, **params: x, multiple_results=False))
    _key_signatures.register(name, forwards)
    return primitive


consume_p = _identity("consume", Signature({0: True}, forwards={0: 0}))
assert_consumed_value_p = _identity(_key_signatures.ASSERTION, Signature(forwards={0: 0}))

key_reuse_signatures = _OfPrimitives()
_OBJECTS = {p.name: p for p in (consume_p, assert_consumed_value_p, random_gamma_p)}
for _name, _found in _key_signatures.fixed().items():
    dict.__setitem__(key_reuse_signatures, _OBJECTS.get(_name) or built_in(_name), _shown(_found))
for _name, _rule in _key_signatures.depending().items():
    dict.__setitem__(key_reuse_signatures, built_in(_name), _dynamic(_rule))


def consume(key: Any) -> Any:
    """Uses a key up, for checks of functions, and gives it back."""
    return consume_p.bind(key)


def assert_consumed(key: Any, value: Any = True) -> None:
    """Asks checks of functions to raise an AssertionError unless the keys of a mask, and no others, are used up.

    Outside of traced functions it raises the error itself, under `ferrax.debug_key_reuse`.
    """
    mask = np.asarray(value)
    if _ferrax.is_eager():
        if config.jax_debug_key_reuse and not np.all(_mark(key)[0] == mask):
            raise AssertionError(f"Expected key {'' if mask.any() else 'not '}to be consumed in {key}")
        return
    assert_consumed_value_p.bind(key, value=mask.tolist() if mask.ndim == 0 else _tuples(mask))


def _tuples(mask: np.ndarray) -> Any:
    return tuple(map(_tuples, mask)) if mask.ndim else bool(mask)


def assert_unconsumed(key: Any) -> None:
    """Asks checks of functions to raise an AssertionError if a key is used up."""
    assert_consumed(key, False)


def key_reuse_signature_from_eqn(eqn: Any) -> KeyReuseSignature:
    """What an equation does with keys."""
    return _shown(_key_signatures.signature_of_equation(eqn))


def unknown_signature(eqn: Any) -> KeyReuseSignature:
    """What is taken of an equation that nothing is known of: it uses up all its keys."""
    return _shown(_key_signatures.all_used(eqn))


def key_reuse_signature_from_primitive(prim: Any, *args: Any, **params: Any) -> KeyReuseSignature:
    """What a primitive does with keys in these arguments."""
    if prim not in key_reuse_signatures:
        raise RuntimeError(f"Internal: no key reuse rule for primitive {prim}")
    return function_type_signature(lambda *xs: prim.bind(*xs, **params), *args)


def jaxpr_type_signature(jaxpr: Any) -> KeyReuseSignature:
    """What a program does with keys; arrays that it holds count behind its arguments.

    Raises:
      KeyReuseError: it uses a key twice.
    """
    found = signature_of(jaxpr)
    held = {_ferrax.array_identity(x)[0]: i for i, x in enumerate(getattr(jaxpr, "consts", ()))}
    arguments = len(jaxpr.invars)
    sinks = {arguments + held.get(identity, 0): mask for identity, (_, mask) in found.captured.items()}
    return _shown(Signature({**found.sinks, **sinks}, found.sources, found.forwards))


def function_type_signature(fun: Callable[..., Any], *args: Any) -> KeyReuseSignature:
    """What a function does with keys in these arguments, which are counted by their leaves."""
    leaves, tree = tree_util.tree_flatten(args)
    program = make_jaxpr(lambda *given: fun(*tree_util.tree_unflatten(tree, given)))(*leaves)
    return jaxpr_type_signature(program)


def check_key_reuse_jaxpr(jaxpr: Any) -> None:
    """Raises a KeyReuseError if a program uses a key twice."""
    jaxpr_type_signature(jaxpr)


def check_key_reuse(fun: Callable[..., Any], /, *args: Any) -> None:
    """Raises a KeyReuseError if a function uses a key twice with these arguments."""
    function_type_signature(fun, *args)
