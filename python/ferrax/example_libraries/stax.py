"""Neural networks of examples: a layer is a pair of functions, which make its parameters and apply it.

`init_fun(rng, input_shape)` gives `(output_shape, params)`, and `apply_fun(params, inputs, **kwargs)` the outputs;
`rng=` is passed on to layers that draw.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import lax, numpy as jnp, random
from ferrax._boundary import expose as _expose
from ferrax.nn import (
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    relu,
    selu,
    sigmoid,
    softmax,
    softplus,
    standardize,
)
from ferrax.nn.initializers import glorot_normal, normal, ones, zeros

__all__ = [
    "AvgPool",
    "BatchNorm",
    "Conv",
    "Conv1DTranspose",
    "ConvTranspose",
    "Dense",
    "Dropout",
    "Elu",
    "Exp",
    "FanInConcat",
    "FanInSum",
    "FanOut",
    "Flatten",
    "Gelu",
    "GeneralConv",
    "GeneralConvTranspose",
    "Identity",
    "LeakyRelu",
    "LogSoftmax",
    "MaxPool",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "SumPool",
    "Tanh",
    "elementwise",
    "elu",
    "gelu",
    "glorot",
    "glorot_normal",
    "leaky_relu",
    "log_softmax",
    "logsoftmax",
    "normal",
    "ones",
    "parallel",
    "randn",
    "relu",
    "selu",
    "serial",
    "shape_dependent",
    "sigmoid",
    "softmax",
    "softplus",
    "standardize",
    "zeros",
]

Layer = tuple[Callable[..., Any], Callable[..., Any]]

glorot = glorot_normal
randn = normal
logsoftmax = log_softmax


def Dense(out_dim: int, W_init: Any = glorot_normal(), b_init: Any = normal()) -> Layer:
    """A layer that multiplies by a matrix and adds a bias.

    Args:
      out_dim: size of the last axis of its outputs.
      W_init: initializer of the matrix.
      b_init: initializer of the bias.

    Returns:
      A layer.

    >>> import ferrax as jax
    >>> from ferrax.example_libraries import stax
    >>> init, apply = stax.Dense(3)
    >>> shape, (W, b) = init(jax.random.key(0), (-1, 4))
    >>> shape, W.shape, b.shape
    ((-1, 3), (4, 3), (3,))
    """

    def init_fun(rng: Any, input_shape: Sequence[int]) -> tuple[Any, Any]:
        first, second = random.split(rng)
        return (*input_shape[:-1], out_dim), (W_init(first, (input_shape[-1], out_dim)), b_init(second, (out_dim,)))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        out = jnp.dot(inputs, W)
        return out + jnp.broadcast_to(b, out.shape)

    return init_fun, apply_fun


def _kernel_shape(spec: str, filter_shape: Sequence[int], in_chan: int, out_chan: int) -> tuple[int, ...]:
    sizes = iter(filter_shape)
    return tuple(out_chan if c == "O" else in_chan if c == "I" else next(sizes) for c in spec)


def _bias_shape(spec: str, out_chan: int) -> tuple[int, ...]:
    return tuple(out_chan if c == "C" else 1 for c in spec)


def GeneralConv(
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = normal(1e-6),
) -> Layer:
    """A layer that convolves.

    Args:
      dimension_numbers: letters of the axes of inputs, kernels and outputs, such as `("NHWC", "HWIO", "NHWC")`.
      out_chan: number of channels of its outputs.
      filter_shape: sizes of the kernel.
      strides: steps between outputs; ones by default.
      padding: `"VALID"`, `"SAME"`, or pairs.
      W_init: initializer of the kernel.
      b_init: initializer of the bias.

    Returns:
      A layer.

    >>> import ferrax as jax
    >>> from ferrax.example_libraries import stax
    >>> init, apply = stax.GeneralConv(("NHWC", "HWIO", "NHWC"), 2, (3, 3))
    >>> init(jax.random.key(0), (1, 5, 5, 3))[0]
    (1, 3, 3, 2)
    """
    lhs, rhs, out = dimension_numbers
    steps = strides or (1,) * len(filter_shape)
    kernel_init = W_init or glorot_normal(rhs.index("I"), rhs.index("O"))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        y = lax.conv_general_dilated(inputs, W, steps, padding, None, None, dimension_numbers=dimension_numbers)
        return y + jnp.broadcast_to(b, y.shape)

    def init_fun(rng: Any, input_shape: Sequence[int]) -> tuple[Any, Any]:
        kernel = _kernel_shape(rhs, filter_shape, input_shape[lhs.index("C")], out_chan)
        first, second = random.split(rng)
        params = kernel_init(first, kernel), b_init(second, _bias_shape(out, out_chan))
        return _output_shape(apply_fun, params, input_shape, lhs.index("N"), out.index("N")), params

    return init_fun, apply_fun


def _output_shape(apply_fun: Any, params: Any, shape: Sequence[int], batch: int, out_batch: int) -> tuple[int, ...]:
    """The shape of a layer's outputs; a batch of any size may be -1."""
    from ferrax._api import eval_shape
    from ferrax._shape_dtype import ShapeDtypeStruct

    size = shape[batch]
    given = [1 if k == batch and size < 0 else n for k, n in enumerate(shape)]
    dtype = params[0].dtype if params else np.float32
    found = list(eval_shape(apply_fun, params, ShapeDtypeStruct(tuple(given), dtype)).shape)
    if size < 0:
        found[out_batch] = size
    return tuple(found)


def GeneralConvTranspose(
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = normal(1e-6),
) -> Layer:
    """A layer that convolves in the transposed direction, from coarse to fine.

    Args:
      dimension_numbers: letters of the axes of inputs, kernels and outputs.
      out_chan, filter_shape: as in `GeneralConv`.
      strides: steps between inputs; ones by default.
      padding, W_init, b_init: as in `GeneralConv`.

    Returns: as in `GeneralConv`.

    >>> import ferrax as jax
    >>> from ferrax.example_libraries import stax
    >>> init, apply = stax.GeneralConvTranspose(("NHC", "HIO", "NHC"), 2, (3,), strides=(2,))
    >>> init(jax.random.key(0), (1, 5, 3))[0]
    (1, 11, 2)
    """
    lhs, rhs, out = dimension_numbers
    steps = strides or (1,) * len(filter_shape)
    kernel_init = W_init or glorot_normal(rhs.index("I"), rhs.index("O"))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        y = lax.conv_transpose(inputs, W, steps, padding, dimension_numbers=dimension_numbers)
        return y + jnp.broadcast_to(b, y.shape)

    def init_fun(rng: Any, input_shape: Sequence[int]) -> tuple[Any, Any]:
        kernel = _kernel_shape(rhs, filter_shape, input_shape[lhs.index("C")], out_chan)
        first, second = random.split(rng)
        params = kernel_init(first, kernel), b_init(second, _bias_shape(out, out_chan))
        return _output_shape(apply_fun, params, input_shape, lhs.index("N"), out.index("N")), params

    return init_fun, apply_fun


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Any = zeros,
    gamma_init: Any = ones,
) -> Layer:
    """A layer that gives its inputs mean 0 and variance 1 along axes, then a scale and a shift.

    Args:
      axis: the axes.
      epsilon: added to the variance.
      center: whether there is a shift.
      scale: whether there is a scale.
      beta_init: initializer of the shift.
      gamma_init: initializer of the scale.

    Returns:
      A layer.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.example_libraries import stax
    >>> init, apply = stax.BatchNorm(axis=(0,))
    >>> _, params = init(jax.random.key(0), (2, 1))
    >>> print(apply(params, jnp.array([[1.0], [3.0]])).round(3))
    [[-1.]
     [ 1.]]
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: Sequence[int]) -> tuple[Any, Any]:
        shape = tuple(n for k, n in enumerate(input_shape) if k not in axes)
        first, second = random.split(rng)
        beta = beta_init(first, shape) if center else ()
        gamma = gamma_init(second, shape) if scale else ()
        return tuple(input_shape), (beta, gamma)

    def apply_fun(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        z = standardize(x, axes, epsilon=epsilon)

        def spread(p: Any) -> Any:
            return jnp.broadcast_to(jnp.expand_dims(p, [k for k in range(z.ndim) if k in axes]), z.shape)

        if scale:
            z = spread(gamma) * z
        return z + spread(beta) if center else z

    return init_fun, apply_fun


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """A layer without parameters that applies a function to each element.

    Args:
      fun: the function.
      **fun_kwargs: its keyword arguments.

    Returns:
      A layer.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.example_libraries import stax
    >>> init, apply = stax.elementwise(jnp.clip, max=1.0)
    >>> print(apply((), jnp.array([0.5, 2.0])))
    [0.5 1. ]
    """
    return lambda rng, input_shape: (input_shape, ()), lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)


Tanh = elementwise(jnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)


def _pooling(
    reducer: Any,
    start: float,
    finish: Callable[..., Any] | None,
    window_shape: Sequence[int],
    strides: Sequence[int] | None,
    padding: str,
    spec: str | None,
) -> Layer:
    """A layer that reduces windows; the axes of batches and channels have windows of one element."""
    steps = tuple(strides or (1,) * len(window_shape))
    letters = spec or "NHWC"
    window, moves = list(window_shape), list(steps)
    for at in sorted((letters.index("N"), letters.index("C"))):
        window.insert(at, 1)
        moves.insert(at, 1)

    def init_fun(rng: Any, input_shape: Sequence[int]) -> tuple[Any, Any]:
        batch = letters.index("N")
        return _output_shape(apply_fun, (), input_shape, batch, batch), ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        out = lax.reduce_window(inputs, start, reducer, window, moves, padding)
        return finish(out, inputs, window, moves, padding) if finish else out

    return init_fun, apply_fun


def _mean(out: Any, inputs: Any, window: Any, strides: Any, padding: str) -> Any:
    """Sums divided by how many elements of each window are there."""
    there = jnp.ones(inputs.shape, inputs.dtype)
    return out / lax.reduce_window(there, 0.0, lax.add, window, strides, padding)


def MaxPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: str = "VALID", spec: str | None = None
) -> Layer:
    """A layer that takes the largest element of each window.

    Args:
      window_shape: sizes of the window.
      strides: steps between windows; ones by default.
      padding: `"VALID"` or `"SAME"`.
      spec: letters of the axes; `"NHWC"` by default.

    Returns:
      A layer.

    >>> import ferrax as jax
    >>> from ferrax.example_libraries import stax
    >>> stax.MaxPool((2, 2), strides=(2, 2))[0](jax.random.key(0), (-1, 4, 4, 3))
    ((-1, 2, 2, 3), ())
    """
    return _pooling(lax.max, -math.inf, None, window_shape, strides, padding, spec)


def SumPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: str = "VALID", spec: str | None = None
) -> Layer:
    """A layer that adds the elements of each window.

    Args, Returns: as in `MaxPool`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.example_libraries import stax
    >>> print(stax.SumPool((2, 2))[1]((), jnp.ones((1, 2, 2, 1))))
    [[[[4.]]]]
    """
    return _pooling(lax.add, 0.0, None, window_shape, strides, padding, spec)


def AvgPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: str = "VALID", spec: str | None = None
) -> Layer:
    """A layer that takes the mean of each window, of the elements that are there.

    Args, Returns: as in `MaxPool`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.example_libraries import stax
    >>> print(stax.AvgPool((2, 2))[1]((), jnp.ones((1, 2, 2, 1))))
    [[[[1.]]]]
    """
    return _pooling(lax.add, 0.0, _mean, window_shape, strides, padding, spec)


def _flatten(rng: Any, input_shape: Sequence[int]) -> tuple[Any, Any]:
    return (input_shape[0], functools.reduce(operator.mul, input_shape[1:], 1)), ()


Flatten: Layer = (_flatten, lambda params, inputs, **kwargs: jnp.reshape(inputs, (inputs.shape[0], -1)))
Identity: Layer = (lambda rng, input_shape: (input_shape, ()), lambda params, inputs, **kwargs: inputs)


def FanOut(num: int) -> Layer:
    """A layer that gives its input several times.

    Args:
      num: how many times.

    Returns:
      A layer.

    >>> from ferrax.example_libraries import stax
    >>> stax.FanOut(2)[1]((), "x")
    ['x', 'x']
    """
    return (
        lambda rng, input_shape: ([input_shape] * num, ()),
        lambda params, inputs, **kwargs: [inputs] * num,
    )


FanInSum: Layer = (
    lambda rng, input_shape: (input_shape[0], ()),
    lambda params, inputs, **kwargs: functools.reduce(operator.add, inputs),
)


def FanInConcat(axis: int = -1) -> Layer:
    """A layer that joins its inputs along an axis.

    Args:
      axis: the axis.

    Returns:
      A layer.

    >>> import ferrax as jax
    >>> from ferrax.example_libraries import stax
    >>> stax.FanInConcat()[0](jax.random.key(0), [(1, 2), (1, 3)])
    ((1, 5), ())
    """

    def init_fun(rng: Any, input_shape: Sequence[Any]) -> tuple[Any, Any]:
        first = input_shape[0]
        at = axis % len(first)
        total = sum(shape[at] for shape in input_shape)
        return (*first[:at], total, *first[at + 1 :]), ()

    return init_fun, lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """A layer that keeps each element with a probability, scaled up, and sets the others to zero.

    Args:
      rate: the probability.
      mode: `"train"`; otherwise everything is kept.

    Returns:
      A layer, which is applied with `rng=`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.example_libraries import stax
    >>> print(stax.Dropout(0.5, mode="test")[1]((), jnp.ones(2), rng=jax.random.key(0)))
    [1. 1.]
    """

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a PRNG key argument. That is, instead of "
                "`apply_fun(params, inputs)`, call it like `apply_fun(params, inputs, rng)` where `rng` is a PRNG key "
                "(e.g. from `jax.random.key`)."
            )
        if mode != "train":
            return inputs
        keep = random.bernoulli(rng, rate, inputs.shape)
        return jnp.where(keep, inputs / rate, 0)

    return lambda rng, input_shape: (input_shape, ()), apply_fun


def serial(*layers: Layer) -> Layer:
    """Layers one after the other.

    Args:
      *layers: the layers.

    Returns:
      A layer, whose parameters are a list.

    >>> import ferrax as jax
    >>> from ferrax.example_libraries import stax
    >>> init, apply = stax.serial(stax.Dense(8), stax.Relu, stax.Dense(2), stax.LogSoftmax)
    >>> init(jax.random.key(0), (-1, 4))[0]
    (-1, 2)
    """

    def init_fun(rng: Any, input_shape: Any) -> tuple[Any, Any]:
        params = []
        for init, _ in layers:
            rng, own = random.split(rng)
            input_shape, param = init(own, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rngs = _keys(kwargs.pop("rng", None), len(layers))
        for (_, apply), param, rng in zip(layers, params, rngs, strict=True):
            inputs = apply(param, inputs, rng=rng, **kwargs)
        return inputs

    return init_fun, apply_fun


def _keys(rng: Any, count: int) -> Any:
    return (None,) * count if rng is None else random.split(rng, count)


def parallel(*layers: Layer) -> Layer:
    """Layers beside each other, each with an input of its own.

    Args:
      *layers: the layers.

    Returns:
      A layer that takes a list and gives a list, whose parameters are a tuple.

    >>> import ferrax as jax
    >>> from ferrax.example_libraries import stax
    >>> init, apply = stax.parallel(stax.Dense(2), stax.Identity)
    >>> init(jax.random.key(0), [(1, 3), (1, 4)])[0]
    ((1, 2), (1, 4))
    """

    def init_fun(rng: Any, input_shape: Any) -> tuple[Any, Any]:
        keys = random.split(rng, len(layers))
        made = [init(key, shape) for (init, _), key, shape in zip(layers, keys, input_shape, strict=True)]
        return tuple(shape for shape, _ in made), tuple(params for _, params in made)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rngs = _keys(kwargs.pop("rng", None), len(layers))
        rows = zip(layers, params, inputs, rngs, strict=True)
        return [apply(param, x, rng=rng, **kwargs) for (_, apply), param, x, rng in rows]

    return init_fun, apply_fun


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """A layer that is made when the shape of its inputs is known.

    Args:
      make_layer: function from a shape to a layer.

    Returns:
      A layer.

    >>> import ferrax as jax
    >>> from ferrax.example_libraries import stax
    >>> init, apply = stax.shape_dependent(lambda shape: stax.Dense(shape[-1]))
    >>> init(jax.random.key(0), (1, 3))[0]
    (1, 3)
    """

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape), apply_fun


_expose(globals())
