"""Optimizers as triples of functions: of the parameters, of a step with its gradients, and of the state.

An optimizer of one array is a triple of functions; `optimizer` makes one of trees of it. The rules are those of the papers
that the functions name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ferrax import lax, tree_util
from ferrax import numpy as jnp
from ferrax._boundary import expose as _expose

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

Schedule = Callable[[Any], Any]


class OptimizerState(NamedTuple):
    """The state of an optimizer of a tree: a tuple of arrays for each array of parameters, and the structures.

    >>> from ferrax.example_libraries import optimizers
    >>> len(optimizers.sgd(0.1).init_fn({"w": 1.0}).packed_state)
    1
    """

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


tree_util.register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda structures, children: OptimizerState(children[0], *structures),
)


class Optimizer(NamedTuple):
    """The functions of an optimizer.

    >>> from ferrax.example_libraries import optimizers
    >>> init, update, params = optimizers.sgd(0.5)
    >>> print(params(update(0, 1.0, init(2.0))))
    1.5
    """

    init_fn: Any
    update_fn: Any
    params_fn: Any


def optimizer(opt_maker: Callable[..., tuple[Any, Any, Any]]) -> Callable[..., Optimizer]:
    """An optimizer of trees, of one of arrays.

    Args:
      opt_maker: function that gives `init(x)`, `update(step, gradient, state)` and `params(state)` for one array.

    Returns:
      The function that gives the `Optimizer`.

    >>> from ferrax.example_libraries import optimizers
    >>> @optimizers.optimizer
    ... def plain():
    ...     return lambda x: x, lambda i, g, x: x - g, lambda x: x
    >>> opt = plain()
    >>> opt.params_fn(opt.update_fn(0, {"a": 1.0}, opt.init_fn({"a": 3.0})))
    {'a': 2.0}
    """

    @functools.wraps(opt_maker)
    def made(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, params = opt_maker(*args, **kwargs)

        def init_tree(x: Any) -> OptimizerState:
            leaves, tree = tree_util.tree_flatten(x)
            states, structures = (
                zip(*map(tree_util.tree_flatten, map(init, leaves)), strict=True) if leaves else ((), ())
            )
            return OptimizerState([tuple(s) for s in states], tree, structures)

        def update_tree(i: Any, grads: Any, state: OptimizerState) -> OptimizerState:
            leaves, tree = tree_util.tree_flatten(grads)
            if tree != state.tree_def:
                raise TypeError(
                    "optimizer update function was passed a gradient tree that did not match the parameter tree structure "
                    f"with which it was initialized: parameter tree {state.tree_def} and grad tree {tree}."
                )
            states = [t.unflatten(s) for t, s in zip(state.subtree_defs, state.packed_state, strict=True)]
            after = [tree_util.tree_flatten(update(i, g, s)) for g, s in zip(leaves, states, strict=True)]
            for (_, new), old in zip(after, state.subtree_defs, strict=True):
                if new != old:
                    raise TypeError(
                        f"optimizer update function produced an output structure that differs: {old} and {new}."
                    )
            return OptimizerState([tuple(s) for s, _ in after], tree, state.subtree_defs)

        def params_tree(state: OptimizerState) -> Any:
            states = [t.unflatten(s) for t, s in zip(state.subtree_defs, state.packed_state, strict=True)]
            return state.tree_def.unflatten(map(params, states))

        return Optimizer(init_tree, update_tree, params_tree)

    return made


@optimizer
def sgd(step_size: Any) -> Any:
    """Steps along the gradient.

    Args:
      step_size: a number, or a function of the step.

    >>> from ferrax.example_libraries import optimizers
    >>> opt = optimizers.sgd(0.5)
    >>> print(opt.params_fn(opt.update_fn(0, 1.0, opt.init_fn(2.0))))
    1.5
    """
    rate = make_schedule(step_size)
    return (lambda x: x), (lambda i, g, x: x - rate(i) * g), (lambda x: x)


@optimizer
def momentum(step_size: Any, mass: float) -> Any:
    """Steps along a decaying sum of gradients (Polyak 1964).

    Args:
      step_size: a number, or a function of the step.
      mass: how much of the sum stays.

    >>> from ferrax.example_libraries import optimizers
    >>> opt = optimizers.momentum(0.5, 0.9)
    >>> print(opt.params_fn(opt.update_fn(0, 1.0, opt.init_fn(2.0))))
    1.5
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * velocity, velocity

    return (lambda x: (x, jnp.zeros_like(x))), update, (lambda state: state[0])


@optimizer
def nesterov(step_size: Any, mass: float) -> Any:
    """Momentum that looks ahead (Nesterov 1983).

    Args:
      step_size: a number, or a function of the step.
      mass: how much of the sum stays.

    >>> from ferrax.example_libraries import optimizers
    >>> opt = optimizers.nesterov(0.5, 0.5)
    >>> print(opt.params_fn(opt.update_fn(0, 1.0, opt.init_fn(2.0))))
    1.25
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * (mass * velocity + g), velocity

    return (lambda x: (x, jnp.zeros_like(x))), update, (lambda state: state[0])


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> Any:
    """Steps divided by the root of the sum of squared gradients (Duchi, Hazan and Singer 2011), with momentum.

    Args:
      step_size: a number, or a function of the step.
      momentum: how much of the last step stays.

    >>> from ferrax.example_libraries import optimizers
    >>> opt = optimizers.adagrad(0.5, 0.0)
    >>> print(opt.params_fn(opt.update_fn(0, 4.0, opt.init_fn(2.0))))
    1.5
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, moving = state
        squares = squares + jnp.square(g)
        scaled = jnp.where(squares > 0, g / jnp.sqrt(jnp.where(squares > 0, squares, 1)), 0.0)
        moving = (1.0 - momentum) * scaled + momentum * moving
        return x - rate(i) * moving, squares, moving

    return (lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x))), update, (lambda state: state[0])


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> Any:
    """Steps divided by the root of a moving mean of squared gradients (Tieleman and Hinton 2012).

    Args:
      step_size: a number, or a function of the step.
      gamma: how much of the mean stays.
      eps: added under the root.

    >>> from ferrax.example_libraries import optimizers
    >>> opt = optimizers.rmsprop(0.5, 0.0)
    >>> print(opt.params_fn(opt.update_fn(0, 4.0, opt.init_fn(2.0))))
    1.5
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean = state
        mean = mean * gamma + jnp.square(g) * (1.0 - gamma)
        return x - rate(i) * g / jnp.sqrt(mean + eps), mean

    return (lambda x: (x, jnp.zeros_like(x))), update, (lambda state: state[0])


@optimizer
def rmsprop_momentum(step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9) -> Any:
    """`rmsprop` with momentum.

    Args:
      step_size: a number, or a function of the step.
      gamma: how much of the mean stays.
      eps: added under the root.
      momentum: how much of the last step stays.

    >>> from ferrax.example_libraries import optimizers
    >>> opt = optimizers.rmsprop_momentum(0.5, 0.0)
    >>> print(opt.params_fn(opt.update_fn(0, 4.0, opt.init_fn(2.0))))
    1.5
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, moving = state
        mean = mean * gamma + jnp.square(g) * (1.0 - gamma)
        moving = momentum * moving + rate(i) * g / jnp.sqrt(mean + eps)
        return x - moving, mean, moving

    return (lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x))), update, (lambda state: state[0])


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Moving means of gradients and of their squares, without the bias of their start (Kingma and Ba 2014).

    Args:
      step_size: a number, or a function of the step.
      b1: how much of the mean of gradients stays.
      b2: how much of the mean of squares stays.
      eps: added to the root.

    >>> from ferrax.example_libraries import optimizers
    >>> opt = optimizers.adam(0.5)
    >>> print(opt.params_fn(opt.update_fn(0, 4.0, opt.init_fn(2.0))))
    1.5
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        step = jnp.asarray(i, jnp.result_type(m)) + 1
        return x - rate(i) * (m / (1 - b1**step)) / (jnp.sqrt(v / (1 - b2**step)) + eps), m, v

    return (lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x))), update, (lambda state: state[0])


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """`adam` with the largest gradient in the place of the mean of squares.

    Args:
      step_size: a number, or a function of the step.
      b1: how much of the mean of gradients stays.
      b2: how much of the largest gradient stays.
      eps: added to it.

    >>> from ferrax.example_libraries import optimizers
    >>> opt = optimizers.adamax(0.5)
    >>> print(opt.params_fn(opt.update_fn(0, 4.0, opt.init_fn(2.0))))
    1.5
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, u = state
        m = (1 - b1) * g + b1 * m
        u = jnp.maximum(b2 * u, jnp.abs(g))
        step = jnp.asarray(i, jnp.result_type(m)) + 1
        return x - rate(i) / (1 - b1**step) * m / (u + eps), m, u

    return (lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x))), update, (lambda state: state[0])


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> Any:
    """`adagrad` with one sum a row of each axis (Anil, Gupta, Koren and Singer 2019).

    Args:
      step_size: a number, or a function of the step.
      momentum: how much of the last step stays.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.example_libraries import optimizers
    >>> opt = optimizers.sm3(0.5, 0.0)
    >>> print(opt.params_fn(opt.update_fn(0, jnp.ones(2), opt.init_fn(jnp.ones(2)))))
    [0.5 0.5]
    """
    rate = make_schedule(step_size)

    def init(x: Any) -> Any:
        x = jnp.asarray(x)
        return x, jnp.zeros_like(x), [jnp.zeros(n, x.dtype) for n in x.shape]

    def along(v: Any, axis: int, rank: int) -> Any:
        return lax.expand_dims(v, [i for i in range(rank) if i != axis])

    def update(i: Any, g: Any, state: Any) -> Any:
        x, moving, sums = state
        smallest = functools.reduce(jnp.minimum, [along(v, axis, x.ndim) for axis, v in enumerate(sums)])
        squares = smallest + jnp.square(g)
        scaled = jnp.where(squares > 0, g / jnp.sqrt(jnp.where(squares > 0, squares, 1)), 0.0)
        moving = (1.0 - momentum) * scaled + momentum * moving
        sums = [squares.max([i for i in range(x.ndim) if i != axis]) for axis in range(x.ndim)]
        return x - rate(i) * moving, moving, sums

    return init, update, (lambda state: state[0])


def constant(step_size: Any) -> Schedule:
    """Always the same step size.

    Args:
      step_size: a number.

    >>> from ferrax.example_libraries import optimizers
    >>> optimizers.constant(0.1)(7)
    0.1
    """
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """A step size that shrinks by a factor every so many steps, smoothly.

    Args:
      step_size: the first one.
      decay_steps: number of steps.
      decay_rate: the factor.

    >>> from ferrax.example_libraries import optimizers
    >>> optimizers.exponential_decay(1.0, 10, 0.25)(5)
    0.5
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False) -> Schedule:
    """A step size divided by a linear function of the step.

    Args:
      step_size: the first one.
      decay_steps: number of steps after which the divisor has grown by `decay_rate`.
      decay_rate: growth of the divisor.
      staircase: whether it grows only every `decay_steps` steps.

    >>> from ferrax.example_libraries import optimizers
    >>> optimizers.inverse_time_decay(1.0, 10, 1.0)(10)
    0.5
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size: Any, decay_steps: Any, final_step_size: Any, power: float = 1.0) -> Schedule:
    """A step size that goes to another one by a power of the steps that are left.

    Args:
      step_size: the first one.
      decay_steps: number of steps.
      final_step_size: the last one.
      power: the power.

    >>> from ferrax.example_libraries import optimizers
    >>> print(optimizers.polynomial_decay(1.0, 10, 0.0)(5))
    0.5
    """

    def schedule(step: Any) -> Any:
        left = 1 - jnp.minimum(step, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """Step sizes by intervals of steps.

    Args:
      boundaries: the last steps of all intervals but the last, growing.
      values: a step size for each interval.

    Raises:
      ValueError: there are not as many values as intervals, or arrays are not of one axis.

    >>> from ferrax.example_libraries import optimizers
    >>> print(optimizers.piecewise_constant([10], [1.0, 0.5])(11))
    0.5
    """
    edges, sizes = jnp.asarray(boundaries), jnp.asarray(values)
    if edges.ndim != 1 or sizes.ndim != 1:
        raise ValueError("boundaries and values must be sequences")
    if edges.shape[0] != sizes.shape[0] - 1:
        raise ValueError("boundaries length must be one shorter than values length")
    return lambda i: sizes[jnp.sum(i > edges)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A function of the step, of one or of a number.

    Args:
      scalar_or_schedule: a number or a function.

    Raises:
      TypeError: it is neither.

    >>> from ferrax.example_libraries import optimizers
    >>> optimizers.make_schedule(0.1)(3)
    0.1
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(type(scalar_or_schedule))


def l2_norm(tree: Any) -> Any:
    """The Euclidean norm of a tree of arrays.

    Args:
      tree: a pytree.

    >>> from ferrax.example_libraries import optimizers
    >>> print(optimizers.l2_norm({"a": 3.0, "b": 4.0}))
    5.0
    """
    leaves, _ = tree_util.tree_flatten(tree)
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in leaves))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Gradients scaled so that their norm is bounded.

    Args:
      grad_tree: a pytree.
      max_norm: the bound.

    >>> from ferrax.example_libraries import optimizers
    >>> print(optimizers.clip_grads([3.0, 4.0], 1.0)[0])
    0.6
    """
    norm = l2_norm(grad_tree)
    return tree_util.tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """Marks where the tree of parameters ends in a tree of states, for saving.

    Args:
      subtree: the state of one array.

    >>> from ferrax.example_libraries import optimizers
    >>> list(optimizers.JoinPoint(3))
    [3]
    """

    def __init__(self, subtree: Any):
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """A state as a tree like the parameters, with a `JoinPoint` for each array.

    Args:
      opt_state: the state.

    >>> from ferrax.example_libraries import optimizers
    >>> tree = optimizers.unpack_optimizer_state(optimizers.sgd(0.1).init_fn({"w": 1.0}))
    >>> tree["w"].subtree
    1.0
    """
    states = [t.unflatten(s) for t, s in zip(opt_state.subtree_defs, opt_state.packed_state, strict=True)]
    return opt_state.tree_def.unflatten(map(JoinPoint, states))


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The converse of `unpack_optimizer_state`.

    Args:
      marked_pytree: a tree with `JoinPoint`s.

    >>> from ferrax.example_libraries import optimizers
    >>> optimizers.pack_optimizer_state({"w": optimizers.JoinPoint(1.0)}).packed_state
    [(1.0,)]
    """
    marks, tree = tree_util.tree_flatten(marked_pytree)
    if not all(isinstance(m, JoinPoint) for m in marks):
        raise ValueError("every leaf of the tree must be a JoinPoint")
    pairs: Sequence[Any] = [tree_util.tree_flatten(m.subtree) for m in marks]
    return OptimizerState([tuple(s) for s, _ in pairs], tree, tuple(t for _, t in pairs))


_expose(globals())
