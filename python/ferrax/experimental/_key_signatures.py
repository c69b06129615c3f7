"""What programs do to random keys: which arguments they use up, and which results are fresh.

A `Signature` says that of an operation or of a program. That of a program comes from those of its equations, one after
another: a key that is used up and comes to an equation that uses it is the error. Masks are booleans, or arrays of them
for some of an array of keys. Source: the rules follow those of JAX's `jax.experimental.key_reuse`.
Read next: `_key_marks.py` for keys of calls that run at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax import _ferrax, dtypes
from ferrax._ferrax import JaxprEqn
from ferrax._parameters import own
from ferrax.errors import KeyReuseError

__all__ = [
    "ASSERTION",
    "Mask",
    "Signature",
    "all_used",
    "depending",
    "fixed",
    "is_key",
    "register",
    "signature_of",
    "signature_of_equation",
]

#: The primitive that asks whether a key is used up.
ASSERTION = "assert_consumed_value"

#: Which of an array of keys.
Mask = bool | np.ndarray


class Signature:
    """What becomes of keys, by position.

    Args:
      sinks: which of the keys of an argument are used up.
      sources: the results that are fresh keys.
      forwards: the results that are an argument, each with the argument.
      captured: the arrays that a program holds and uses up, by what tells them apart, each with which of its keys.
      lenient: whether an argument may be used up before.

    >>> Signature(sinks={0: True}, sources=[0])
    Signature(sinks={0: True}, sources=[0], forwards={})
    """

    def __init__(
        self,
        sinks: dict[int, Mask] | None = None,
        sources: Any = (),
        forwards: dict[int, int] | None = None,
        captured: dict[int, tuple[Any, Mask]] | None = None,
        lenient: bool = False,
    ) -> None:
        self.sinks = sinks or {}
        self.sources = list(sources)
        self.forwards = forwards or {}
        self.captured = captured or {}
        self.lenient = lenient

    def __repr__(self) -> str:
        return f"Signature(sinks={self.sinks}, sources={self.sources}, forwards={self.forwards})"


def is_key(x: Any) -> bool:
    """Whether an array, a variable or a type is one of keys.

    Args:
      x: the object.

    Returns:
      A bool.

    >>> import ferrax
    >>> is_key(ferrax.random.key(0)), is_key(1.0)
    (True, False)
    """
    dtype = getattr(getattr(x, "aval", x), "dtype", None)
    return dtype is not None and bool(dtypes.issubdtype(dtype, dtypes.prng_key))


def signature_of(program: Any) -> Signature:
    """The signature of a program.

    Args:
      program: a jaxpr; constants of one that is not closed count as arguments behind the others.

    Returns:
      The signature.

    Raises:
      KeyReuseError: the program uses a key twice.

    >>> import ferrax as jax
    >>> signature = signature_of(jax.make_jaxpr(jax.random.split)(jax.random.key(0)))
    >>> [*signature.sinks], signature.sources
    ([0], [0])
    """
    walk = _Walk()
    given = list(program.invars)
    if not hasattr(program, "consts"):
        given += program.constvars
    for variable, array in zip(program.constvars, getattr(program, "consts", ()), strict=False):
        if is_key(variable):
            walk.same[variable] = walk.constant(array)
    for equation in program.eqns:
        walk.step(equation)
    sinks = {i: walk.used[v] for i, v in enumerate(given) if is_key(v) and np.any(walk.used.get(v, False))}
    captured = {i: (x, walk.used[_Constant(i)]) for i, x in walk.constants.items() if _Constant(i) in walk.used}
    places = {v: i for i, v in enumerate(given)}
    keys = [(i, walk.root(v)) for i, v in enumerate(program.outvars) if is_key(v)]
    forwards = {i: places[root] for i, root in keys if root in places}
    fresh = [(i, root) for i, root in keys if root not in places and not isinstance(root, _Constant)]
    sources = [i for i, root in fresh if not np.any(walk.used.get(root, False))]
    return Signature(sinks, sources, forwards, captured)


class _Constant(int):
    """Stands for an array that programs hold, in the place of a variable."""


class _Walk:
    """A walk through a program's equations."""

    def __init__(self) -> None:
        #: Which keys of a variable are used up.
        self.used: dict[Any, Mask] = {}
        #: Variables that are others.
        self.same: dict[Any, Any] = {}
        #: The arrays that programs hold, by what tells them apart.
        self.constants: dict[int, Any] = {}

    def constant(self, array: Any) -> _Constant:
        """What stands for an array that a program holds."""
        identity = _ferrax.array_identity(array)[0]
        self.constants[identity] = array
        return _Constant(identity)

    def root(self, variable: Any) -> Any:
        """The variable that one stands for."""
        while variable in self.same:
            variable = self.same[variable]
        return variable

    def use(self, root: Any, mask: Mask, what: str, equation: JaxprEqn, lenient: bool = False) -> None:
        """Takes note that keys are used up."""
        before = self.used.get(root, False)
        if not lenient and np.any(np.logical_and(before, mask)):
            raise KeyReuseError(f"In {equation.primitive.name}, {what} is already consumed: {equation}")
        self.used[root] = np.logical_or(before, mask)

    def step(self, equation: JaxprEqn) -> None:
        """Takes note of an equation."""
        name = equation.primitive.name
        operands, results = equation.invars, equation.outvars
        if not any(is_key(v) for v in (*operands, *results)) and name not in _WITH_PROGRAMS:
            return
        signature = signature_of_equation(equation)
        if name == ASSERTION:
            _assert(equation, self.used.get(self.root(operands[0]), False))
        for result, operand in signature.forwards.items():
            if not isinstance(operands[operand], _ferrax.Literal):
                self.same[results[result]] = operands[operand]
        for i, mask in signature.sinks.items():
            if is_key(operands[i]):
                self.use(self.root(operands[i]), mask, f"argument {i}", equation, signature.lenient)
        for array, mask in signature.captured.values():
            self.use(self.constant(array), mask, "a key that it captured", equation)
        fresh = {results[i] for i in signature.sources}
        for result in results:
            if is_key(result) and result not in self.same:
                self.used[result] = result not in fresh


# --- equations


def signature_of_equation(equation: JaxprEqn) -> Signature:
    """What an equation does with keys.

    Args:
      equation: the equation.

    Returns:
      The signature.

    >>> import ferrax as jax
    >>> signature_of_equation(jax.make_jaxpr(jax.random.bits)(jax.random.key(0)).eqns[0]).sinks
    {0: True}
    """
    name = equation.primitive.name
    if name in _FIXED:
        return _FIXED[name]
    if name in _DEPENDING:
        return _DEPENDING[name](equation)
    # whatever is not known here uses its keys, and gives none
    return all_used(equation)


def all_used(equation: JaxprEqn) -> Signature:
    """What is taken of an equation that nothing is known of.

    Args:
      equation: the equation.

    Returns:
      A signature whose sinks are all keys.

    >>> import ferrax as jax
    >>> all_used(jax.make_jaxpr(lambda x: 2 * x)(1.0).eqns[0]).sinks
    {}
    """
    return Signature({i: True for i, v in enumerate(equation.invars) if is_key(v)})


def _moved(equation: JaxprEqn) -> Signature:
    return Signature(forwards={i: i for i in range(len(equation.outvars))})


def _part(equation: JaxprEqn) -> Signature:
    """The keys of the part are used up, and the part is fresh."""
    params = equation.params
    steps = params["strides"] or (1,) * len(params["start_indices"])
    mask = np.zeros(equation.invars[0].aval.shape, bool)
    bounds = zip(params["start_indices"], params["limit_indices"], steps, strict=True)
    mask[tuple(slice(*of_axis) for of_axis in bounds)] = True
    return Signature({0: whole(mask)}, [0])


def whole(mask: np.ndarray) -> Mask:
    """A mask, as a boolean where it is the same everywhere.

    Args:
      mask: the mask.

    Returns:
      The boolean, or the mask.

    >>> import numpy as np
    >>> whole(np.ones(2, bool)), whole(np.zeros(0, bool))
    (True, False)
    """
    if not mask.any():
        return False
    return True if mask.all() else mask


def _joined(equation: JaxprEqn) -> Signature:
    if len(equation.invars) == 1:
        return Signature(forwards={0: 0})
    return Signature(dict.fromkeys(range(len(equation.invars)), True), [0])


def _chosen(equation: JaxprEqn) -> Signature:
    """A choice uses what it chooses from; a batched loop keeps keys in this way that its body has used."""
    return Signature(dict.fromkeys(range(1, len(equation.invars)), True), [0], lenient=True)


def _inside(equation: JaxprEqn) -> Signature:
    return signature_of(own(equation.params)["jaxpr"])


def _remat(equation: JaxprEqn) -> Signature:
    # what differentiation computes again was counted when it was computed first
    return Signature() if equation.params["differentiated"] else _inside(equation)


def _cond(equation: JaxprEqn) -> Signature:
    branches = [signature_of(branch) for branch in equation.params["branches"]]
    sinks: dict[int, Mask] = {}
    captured: dict[int, tuple[Any, Mask]] = {}
    for branch in branches:
        for identity, (array, mask) in branch.captured.items():
            captured[identity] = array, np.logical_or(captured.get(identity, (None, False))[1], mask)
        for i, mask in branch.sinks.items():
            sinks[i + 1] = np.logical_or(sinks.get(i + 1, False), mask)
    sources = set(branches[0].sources).intersection(*(branch.sources for branch in branches))
    pairs = set(branches[0].forwards.items()).intersection(*(branch.forwards.items() for branch in branches))
    return Signature(sinks, sorted(sources), {result: operand + 1 for result, operand in pairs}, captured)


def _again(what: str, why: str, equation: JaxprEqn) -> KeyReuseError:
    return KeyReuseError(f"{what} leads to key reuse when repeatedly executed, because {why}:\n  {equation}")


def _scan(equation: JaxprEqn) -> Signature:
    params = equation.params
    constants, carried = params["num_consts"], params["num_carry"]
    body = signature_of(params["jaxpr"])
    what = "scan body function"
    if body.captured or any(i < constants for i in body.sinks):
        raise _again(what, "key constants are repeatedly consumed", equation)
    if any(i - constants not in body.sources for i in body.sinks if i < constants + carried):
        raise _again(what, "consumed inputs don't match sourced outputs", equation)
    return body


def _while(equation: JaxprEqn) -> Signature:
    params = equation.params
    first, second = params["cond_nconsts"], params["body_nconsts"]
    test, body = signature_of(params["cond_jaxpr"]), signature_of(params["body_jaxpr"])
    carried: list[set[int]] = []
    for what, signature, constants in (("cond", test, first), ("body", body, second)):
        what = f"while_loop {what} function"
        if signature.captured or any(i < constants for i in signature.sinks):
            raise _again(what, "key constants are repeatedly consumed", equation)
        carried.append({i - constants for i in signature.sinks})
        if not carried[-1] <= set(body.sources):
            raise _again(what, "consumed inputs don't match sourced outputs", equation)
    if carried[0] & carried[1]:
        raise KeyReuseError(f"while_loop cond and body functions both use the same key:\n  {equation}")
    start = first + second
    sinks = {start + i - n: mask for s, n in ((test, first), (body, second)) for i, mask in s.sinks.items()}
    return Signature(sinks, body.sources, {o: first + i for o, i in body.forwards.items()})


_FORWARD = Signature(forwards={0: 0})
_FIXED = {
    **dict.fromkeys(("eq", "ne", "random_unwrap", "debug_callback", "debug_print"), Signature()),
    **dict.fromkeys(("random_seed", "random_clone", "random_fold_in", "random_wrap"), Signature(sources=[0])),
    **dict.fromkeys(("random_bits", "random_gamma"), Signature({0: True})),
    "random_split": Signature({0: True}, [0]),
    **dict.fromkeys(("broadcast_in_dim", "reshape", "squeeze", "transpose", "dynamic_slice", "gather"), _FORWARD),
    **dict.fromkeys(("copy", "convert_element_type", "sharding_constraint"), _FORWARD),
    "dynamic_update_slice": Signature({1: True}, forwards={0: 0}),
    "scatter": Signature({2: True}, forwards={0: 0}),
}
#: Operations with programs inside.
_WITH_PROGRAMS: dict[str, Callable[[JaxprEqn], Signature]] = {
    "jit": _inside,
    "shard_map": _inside,
    "remat2": _remat,
    "cond": _cond,
    "scan": _scan,
    "while": _while,
}
_DEPENDING = {
    **_WITH_PROGRAMS,
    "slice": _part,
    "concatenate": _joined,
    "select_n": _chosen,
    "device_put": _moved,
    "optimization_barrier": _moved,
}


def _assert(equation: JaxprEqn, used: Mask) -> None:
    """Compares which keys are used up with what the equation says."""
    expected = np.asarray(equation.params["value"])
    if np.all(used == expected):
        return
    if expected.all():
        raise AssertionError(f"Expected key to be consumed in {equation}")
    if not expected.any():
        raise AssertionError(f"Expected key to not be consumed in {equation}")
    raise AssertionError(f"Expected {expected}, got {used} in {equation}")


def register(name: str, signature: Signature | Callable[[JaxprEqn], Signature]) -> None:
    """Says what a primitive does with keys.

    Args:
      name: the primitive's.
      signature: what it does, or a function from its equation to that.

    >>> register("a_primitive_of_mine", Signature({0: True}))
    >>> fixed()["a_primitive_of_mine"].sinks
    {0: True}
    """
    _FIXED.pop(name, None)
    _DEPENDING.pop(name, None)
    if isinstance(signature, Signature):
        _FIXED[name] = signature
    else:
        _DEPENDING[name] = signature


def fixed() -> dict[str, Signature]:
    """What primitives do by name, whatever their parameters.

    >>> fixed()["random_bits"].sinks
    {0: True}
    """
    return dict(_FIXED)


def depending() -> dict[str, Callable[[JaxprEqn], Signature]]:
    """What primitives do by name, as functions of their equations.

    >>> "cond" in depending()
    True
    """
    return dict(_DEPENDING)
