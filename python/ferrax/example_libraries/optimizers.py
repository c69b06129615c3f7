"""Optimizers of examples: each is three functions, which make a state, take a step, and read the parameters.

The functions of one array are written down; `optimizer` makes them functions of trees. Step sizes may be schedules.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ferrax import numpy as jnp, tree_util
from ferrax._boundary import expose as _expose
from ferrax._lazy import lend as _lend

__all__ = [
    "JoinPoint",
    "Optimizer",
    "OptimizerState",
    "adagrad",
    "adam",
    "adamax",
    "clip_grads",
    "constant",
    "exponential_decay",
    "inverse_time_decay",
    "l2_norm",
    "make_schedule",
    "momentum",
    "nesterov",
    "optimizer",
    "pack_optimizer_state",
    "piecewise_constant",
    "polynomial_decay",
    "rmsprop",
    "rmsprop_momentum",
    "sgd",
    "sm3",
    "unpack_optimizer_state",
]

# what JAX's module has from elsewhere
__getattr__ = _lend(
    __name__,
    {
        "typing": "Array=Any",
        "ferrax._src.util": "map=safe_map safe_map safe_zip unzip2 zip=safe_zip",
    },
)

Params = Any
State = Any
Updates = Any
Step = int
InitFn = Callable[[Params], "OptimizerState"]
UpdateFn = Callable[[Step, Updates, "OptimizerState"], "OptimizerState"]
ParamsFn = Callable[["OptimizerState"], Params]
Schedule = Callable[[Step], Any]
_Triple = tuple[Callable[[Any], Any], Callable[[Any, Any, Any], Any], Callable[[Any], Any]]


class OptimizerState(NamedTuple):
    """The state of an optimizer of trees: the states of leaves as flat tuples, and the structures.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.example_libraries import optimizers
    >>> state = optimizers.sgd(0.1).init_fn({"w": jnp.ones(2)})
    >>> state.tree_def
    PyTreeDef({'w': *})
    """

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


tree_util.register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda facts, states: OptimizerState(*states, *facts),
)


class Optimizer(NamedTuple):
    """The three functions of an optimizer.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.example_libraries import optimizers
    >>> init, update, params = optimizers.sgd(0.5)
    >>> print(params(update(0, jnp.array(2.0), init(jnp.array(1.0)))))
    0.0
    """

    init_fn: Callable[[Any], OptimizerState]
    update_fn: Callable[[Any, Any, OptimizerState], OptimizerState]
    params_fn: Callable[[OptimizerState], Any]


def optimizer(opt_maker: Callable[..., _Triple]) -> Callable[..., Optimizer]:
    """Makes an optimizer of one array one of trees.

    Args:
      opt_maker: function that gives three functions: from an array to a state (an array or a tree of arrays), from a
        step's number, a gradient and a state to the next state, and from a state to the array.

    Returns:
      A function of the same arguments that gives an `Optimizer`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.example_libraries import optimizers
    >>> @optimizers.optimizer
    ... def halving(rate):
    ...     return lambda x: x, lambda i, g, x: x - g * rate / 2**i, lambda x: x
    >>> init, update, params = halving(1.0)
    >>> params(update(1, {"a": jnp.array(2.0)}, init({"a": jnp.array(1.0)})))
    {'a': Array(0., dtype=float32, weak_type=True)}
    """

    @functools.wraps(opt_maker)
    def make(*args: Any, **kwargs: Any) -> Optimizer:
        init_one, update_one, params_one = opt_maker(*args, **kwargs)

        def init(x0_tree: Any) -> OptimizerState:
            leaves, tree = tree_util.tree_flatten(x0_tree)
            return _packed([init_one(leaf) for leaf in leaves], tree)

        def update(i: Any, grad_tree: Any, opt_state: OptimizerState) -> OptimizerState:
            gradients, given = tree_util.tree_flatten(grad_tree)
            if given != opt_state.tree_def:
                raise TypeError(
                    "optimizer update function was passed a gradient tree that did not match the parameter tree "
                    f"structure with which it was initialized: parameter tree {opt_state.tree_def} and grad tree "
                    f"{given}."
                )
            steps = zip(gradients, _states(opt_state), strict=True)
            state = _packed([update_one(i, g, s) for g, s in steps], opt_state.tree_def)
            for old, new in zip(opt_state.subtree_defs, state.subtree_defs, strict=True):
                if old != new:
                    raise TypeError(
                        "optimizer update function produced an output structure that did not match its input "
                        f"structure: input {old} and output {new}."
                    )
            return state

        def get_params(opt_state: OptimizerState) -> Any:
            return opt_state.tree_def.unflatten([params_one(s) for s in _states(opt_state)])

        return Optimizer(init, update, get_params)

    return make


def _packed(states: Sequence[Any], tree: Any) -> OptimizerState:
    flat = [tree_util.tree_flatten(state) for state in states]
    return OptimizerState(tuple(leaves for leaves, _ in flat), tree, tuple(sub for _, sub in flat))


def _states(state: OptimizerState) -> list[Any]:
    return [sub.unflatten(leaves) for sub, leaves in zip(state.subtree_defs, state.packed_state, strict=True)]


@optimizer
def sgd(step_size: Any) -> _Triple:
    """Gradient descent.

    Args:
      step_size: a number, or a schedule.

    Returns:
      An `Optimizer`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.example_libraries import optimizers
    >>> init, update, params = optimizers.sgd(0.1)
    >>> print(params(update(0, jnp.array(1.0), init(jnp.array(1.0)))))
    0.9
    """
    rate = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - rate(i) * g, lambda x: x


@optimizer
def momentum(step_size: Any, mass: float) -> _Triple:
    """Gradient descent with a velocity.

    Args:
      step_size: a number, or a schedule.
      mass: the part of a velocity that stays from step to step.

    Returns:
      An `Optimizer`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.example_libraries import optimizers
    >>> init, update, params = optimizers.momentum(0.1, 0.9)
    >>> print(params(update(0, jnp.array(1.0), init(jnp.array(1.0)))))
    0.9
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * velocity, velocity

    return lambda x: (x, jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def nesterov(step_size: Any, mass: float) -> _Triple:
    """Gradient descent with a velocity that looks one step ahead.

    Args, Returns: as in `momentum`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.example_libraries import optimizers
    >>> init, update, params = optimizers.nesterov(0.1, 0.9)
    >>> print(params(update(0, jnp.array(1.0), init(jnp.array(1.0)))))
    0.81
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * (mass * velocity + g), velocity

    return lambda x: (x, jnp.zeros_like(x)), update, lambda state: state[0]


def _inverse_root(x: Any) -> Any:
    """1 / sqrt(x), and 0 where x is not positive."""
    positive = x > 0
    return jnp.where(positive, 1.0 / jnp.sqrt(jnp.where(positive, x, jnp.ones_like(x))), 0.0)


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> _Triple:
    """Steps scaled by the root of the sum of all squared gradients (Duchi, Hazan, Singer, 2011).

    Args:
      step_size: a number, or a schedule.
      momentum: the part of a step that stays for the next one.

    Returns:
      An `Optimizer`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.example_libraries import optimizers
    >>> init, update, params = optimizers.adagrad(0.1)
    >>> print(params(update(0, jnp.array(3.0), init(jnp.array(1.0)))))
    0.99
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, mean = state
        squares = squares + jnp.square(g)
        mean = (1.0 - momentum) * (g * _inverse_root(squares)) + momentum * mean
        return x - rate(i) * mean, squares, mean

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> _Triple:
    """Steps scaled by the root of a running mean of squared gradients (Tieleman and Hinton, 2012).

    Args:
      step_size: a number, or a schedule.
      gamma: the part of the mean that stays from step to step.
      eps: added to the mean.

    Returns:
      An `Optimizer`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.example_libraries import optimizers
    >>> init, update, params = optimizers.rmsprop(0.1, gamma=0.0)
    >>> print(params(update(0, jnp.array(3.0), init(jnp.array(1.0)))))
    0.9
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean = state
        mean = mean * gamma + jnp.square(g) * (1.0 - gamma)
        return x - rate(i) * g / jnp.sqrt(mean + eps), mean

    return lambda x: (x, jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def rmsprop_momentum(step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9) -> _Triple:
    """`rmsprop` whose steps have a velocity.

    Args:
      step_size, gamma, eps: as in `rmsprop`.
      momentum: the part of a step that stays for the next one.

    Returns: as in `rmsprop`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.example_libraries import optimizers
    >>> init, update, params = optimizers.rmsprop_momentum(0.1, gamma=0.0)
    >>> print(params(update(0, jnp.array(3.0), init(jnp.array(1.0)))))
    0.9
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, step = state
        mean = mean * gamma + jnp.square(g) * (1.0 - gamma)
        step = momentum * step + rate(i) * g / jnp.sqrt(mean + eps)
        return x - step, mean, step

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> _Triple:
    """Steps from running means of gradients and of their squares (Kingma and Ba, 2015).

    Args:
      step_size: a number, or a schedule.
      b1: the part of the first mean that stays from step to step.
      b2: the part of the second mean that stays.
      eps: added to the root of the second mean.

    Returns:
      An `Optimizer`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.example_libraries import optimizers
    >>> init, update, params = optimizers.adam(0.1)
    >>> print(params(update(0, jnp.array(3.0), init(jnp.array(1.0)))).round(4))
    0.9
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, first, second = state
        first = (1 - b1) * g + b1 * first
        second = (1 - b2) * jnp.square(g) + b2 * second
        count = jnp.asarray(i + 1, first.dtype)
        whole, squares = first / (1 - b1**count), second / (1 - b2**count)
        return x - rate(i) * whole / (jnp.sqrt(squares) + eps), first, second

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> _Triple:
    """`adam` with the largest gradient in place of the root of mean squares (Kingma and Ba, 2015).

    Args:
      step_size: a number, or a schedule.
      b1: the part of the mean that stays from step to step.
      b2: the part of the largest gradient that stays.
      eps: added to the largest gradient.

    Returns:
      An `Optimizer`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.example_libraries import optimizers
    >>> init, update, params = optimizers.adamax(0.1)
    >>> print(params(update(0, jnp.array(3.0), init(jnp.array(1.0)))).round(4))
    0.9
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, largest = state
        mean = (1 - b1) * g + b1 * mean
        largest = jnp.maximum(b2 * largest, jnp.abs(g))
        count = jnp.asarray(i + 1, mean.dtype)
        return x - (rate(i) / (1 - b1**count)) * mean / (largest + eps), mean, largest

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> _Triple:
    """`adagrad` with one accumulator for each row of each axis (Anil, Gupta, Koren, Singer, 2019).

    Args, Returns: as in `adagrad`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.example_libraries import optimizers
    >>> init, update, params = optimizers.sm3(0.1)
    >>> print(params(update(0, jnp.full((2, 2), 3.0), init(jnp.ones((2, 2))))).round(4))
    [[0.99 0.99]
     [0.99 0.99]]
    """
    rate = make_schedule(step_size)

    def init(x0: Any) -> Any:
        sizes = jnp.shape(x0) or (1,)
        return x0, jnp.zeros_like(x0), [jnp.zeros(size, jnp.result_type(x0)) for size in sizes]

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, rows = state
        shape = jnp.shape(x) or (1,)
        spread = [
            jnp.broadcast_to(row.reshape([size if k == axis else 1 for k in range(len(shape))]), shape)
            for axis, (row, size) in enumerate(zip(rows, shape, strict=True))
        ]
        squares = functools.reduce(jnp.minimum, spread) + jnp.square(jnp.reshape(g, shape))
        scale = jnp.reshape(_inverse_root(squares), jnp.shape(x))
        mean = (1.0 - momentum) * (g * scale) + momentum * mean
        others = [tuple(k for k in range(len(shape)) if k != axis) for axis in range(len(shape))]
        return x - rate(i) * mean, mean, [squares.max(axes) for axes in others]

    return init, update, lambda state: state[0]


def constant(step_size: Any) -> Schedule:
    """The schedule of one step size.

    Args:
      step_size: the step size.

    Returns:
      A function of a step's number.

    >>> from ferrax.example_libraries import optimizers
    >>> optimizers.constant(0.1)(7)
    0.1
    """
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """The schedule `step_size * decay_rate ** (i / decay_steps)`.

    Args:
      step_size: the first step size.
      decay_steps: number of steps for the rate to act once.
      decay_rate: the factor.

    Returns:
      A function of a step's number.

    >>> from ferrax.example_libraries import optimizers
    >>> optimizers.exponential_decay(1.0, 10, 0.5)(20)
    0.25
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False) -> Schedule:
    """The schedule `step_size / (1 + decay_rate * i / decay_steps)`.

    Args:
      step_size, decay_steps: as in `exponential_decay`.
      decay_rate: the rate.
      staircase: whether it acts all at once, at the ends of these steps.

    Returns: as in `exponential_decay`.

    >>> from ferrax.example_libraries import optimizers
    >>> optimizers.inverse_time_decay(1.0, 10, 1.0)(10)
    0.5
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size: Any, decay_steps: Any, final_step_size: Any, power: float = 1.0) -> Schedule:
    """The schedule that goes from one step size to another as a power of the steps that are left.

    Args:
      step_size: the first step size.
      decay_steps: number of steps.
      final_step_size: the step size from then on.
      power: the power; 1 is a straight line.

    Returns:
      A function of a step's number.

    >>> from ferrax.example_libraries import optimizers
    >>> print(optimizers.polynomial_decay(1.0, 10, 0.0)(5))
    0.5
    """

    def schedule(i: Any) -> Any:
        left = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """The schedule that changes at given steps.

    Args:
      boundaries: increasing numbers of steps, of shape (n,).
      values: step sizes before, between and after them, of shape (n + 1,).

    Returns:
      A function of a step's number.

    Raises:
      ValueError: the shapes do not fit.

    >>> from ferrax.example_libraries import optimizers
    >>> print(optimizers.piecewise_constant([5, 10], [1.0, 0.5, 0.25])(7))
    0.5
    """
    edges, sizes = jnp.array(boundaries), jnp.array(values)
    if not edges.ndim == sizes.ndim == 1:
        raise ValueError("boundaries and values must be sequences")
    if edges.shape[0] != sizes.shape[0] - 1:
        raise ValueError("boundaries length must be one shorter than values length")
    return lambda i: sizes[jnp.sum(i > edges)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A schedule, of a number the constant one.

    Args:
      scalar_or_schedule: a number, or a function of a step's number.

    Returns:
      A function of a step's number.

    Raises:
      TypeError: it is neither.

    >>> from ferrax.example_libraries import optimizers
    >>> optimizers.make_schedule(0.5)(3)
    0.5
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if np.ndim(scalar_or_schedule) == 0 and not isinstance(scalar_or_schedule, (str, bytes)):
        return constant(scalar_or_schedule)
    raise TypeError(f"a step size is a number or a function of a step's number, got {type(scalar_or_schedule)}")


def l2_norm(tree: Any) -> Any:
    """The root of the sum of all squares in a tree.

    Args:
      tree: pytree of arrays.

    Returns:
      A scalar.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.example_libraries import optimizers
    >>> print(optimizers.l2_norm({"a": jnp.array([3.0]), "b": jnp.array(4.0)}))
    5.0
    """
    leaves = tree_util.tree_leaves(tree)
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in leaves))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Gradients scaled so that their norm is no larger than a bound.

    Args:
      grad_tree: pytree of arrays.
      max_norm: the bound.

    Returns:
      A pytree like it.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.example_libraries import optimizers
    >>> print(optimizers.clip_grads(jnp.array([3.0, 4.0]), 1.0).round(4))
    [0.6 0.8]
    """
    norm = l2_norm(grad_tree)
    inside = norm < max_norm

    def clipped(g: Any) -> Any:
        return jnp.where(inside, g, g * (max_norm / jnp.where(inside, 1.0, norm)).astype(g.dtype))

    return tree_util.tree_map(clipped, grad_tree)


class JoinPoint:
    """Marks where the state of a leaf begins in a tree of states: a leaf itself.

    Args:
      subtree: the state.

    >>> from ferrax.example_libraries import optimizers
    >>> optimizers.JoinPoint((1, 2)).subtree
    (1, 2)
    """

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """A state as a tree like the parameters', with a `JoinPoint` of each leaf's state; for serialization.

    Args:
      opt_state: the state.

    Returns:
      A pytree.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.example_libraries import optimizers
    >>> state = optimizers.sgd(0.1).init_fn({"a": jnp.array(1.0)})
    >>> optimizers.unpack_optimizer_state(state)["a"].subtree
    Array(1., dtype=float32, weak_type=True)
    """
    if not isinstance(opt_state, OptimizerState):
        raise TypeError(f"unpack_optimizer_state takes an OptimizerState, got {opt_state!r}")
    return opt_state.tree_def.unflatten([JoinPoint(state) for state in _states(opt_state)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The converse of `unpack_optimizer_state`.

    Args:
      marked_pytree: a pytree whose leaves are `JoinPoint`s.

    Returns:
      The state.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.example_libraries import optimizers
    >>> init, update, params = optimizers.sgd(0.1)
    >>> tree = optimizers.unpack_optimizer_state(init({"a": jnp.array(1.0)}))
    >>> params(optimizers.pack_optimizer_state(tree))
    {'a': Array(1., dtype=float32, weak_type=True)}
    """
    points, tree = tree_util.tree_flatten(marked_pytree)
    if not all(isinstance(x, JoinPoint) for x in points):
        raise TypeError("pack_optimizer_state takes a tree whose leaves are JoinPoints")
    return _packed([point.subtree for point in points], tree)


_expose(globals())
