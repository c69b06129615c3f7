"""Layers as pairs of functions: one of a random key and a shape that makes parameters, one that applies them.

Parameters are tuples; `serial` and `parallel` combine layers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ferrax import lax, nn, random
from ferrax import numpy as jnp
from ferrax._boundary import expose as _expose
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
    "parallel",
    "serial",
    "shape_dependent",
]

Layer = tuple[Callable[..., Any], Callable[..., Any]]


def Dense(out_dim: int, W_init: Any = glorot_normal(), b_init: Any = normal()) -> Layer:
    """A product with a matrix and a sum.

    Args:
      out_dim: length of the last axis of results.
      W_init: initializer of the matrix.
      b_init: initializer of the vector.

    >>> import ferrax as jax
    >>> init, apply = jax.example_libraries.stax.Dense(2)
    >>> shape, (w, b) = init(jax.random.key(0), (5, 3))
    >>> shape, w.shape, b.shape
    ((5, 2), (3, 2), (2,))
    """

    def init(rng: Any, input_shape: Sequence[int]) -> Any:
        k1, k2 = random.split(rng)
        return (*input_shape[:-1], out_dim), (W_init(k1, (input_shape[-1], out_dim)), b_init(k2, (out_dim,)))

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        return jnp.dot(inputs, W) + b

    return init, apply


def _filters(
    specs: tuple[str, str, str], out_chan: int, filter_shape: Sequence[int], input_shape: Sequence[int]
) -> tuple[int, ...]:
    lhs, rhs, _ = specs
    sizes = iter(filter_shape)
    return tuple(out_chan if c == "O" else input_shape[lhs.index("C")] if c == "I" else next(sizes) for c in rhs)


def _convolution(transposed: bool, specs: Any, out_chan: int, filter_shape: Any, rest: tuple[Any, ...]) -> Layer:
    strides, padding, W_init, b_init = rest
    lhs, rhs, out = specs
    steps = tuple(strides or (1,) * len(filter_shape))
    W_init = W_init or glorot_normal(rhs.index("I"), rhs.index("O"))
    convolve = lax.conv_transpose if transposed else lax.conv_general_dilated

    def product(x: Any, W: Any) -> Any:
        return convolve(x, W, steps, padding, dimension_numbers=specs)

    def init(rng: Any, input_shape: Sequence[int]) -> Any:
        from ferrax._api import ShapeDtypeStruct, eval_shape

        k1, k2 = random.split(rng)
        W = W_init(k1, _filters(specs, out_chan, filter_shape, input_shape))
        b = b_init(k2, tuple(out_chan if c == "C" else 1 for c in out))
        known = tuple(n if n > 0 else 1 for n in input_shape)
        shape = eval_shape(product, ShapeDtypeStruct(known, W.dtype), W).shape
        return tuple(n if n > 0 else n_in for n, n_in in zip(shape, input_shape, strict=True)), (W, b)

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        return product(inputs, W) + b

    return init, apply


def GeneralConv(
    dimension_numbers: Any, out_chan: int, filter_shape: Any, strides: Any = None, padding: Any = "VALID",
    W_init: Any = None, b_init: Any = normal(1e-6),
) -> Layer:  # fmt: skip
    """A convolution and a sum.

    Args:
      dimension_numbers: names of the axes of inputs, filters and results, as ("NHWC", "HWIO", "NHWC").
      out_chan: number of channels of results.
      filter_shape: sizes of the window.
      strides: steps of the window; 1 by default.
      padding: "SAME", "VALID" or pairs.
      W_init: initializer of the filters.
      b_init: initializer of the vector.

    >>> import ferrax as jax
    >>> init, apply = jax.example_libraries.stax.Conv(4, (3, 3))
    >>> init(jax.random.key(0), (2, 8, 8, 3))[0]
    (2, 6, 6, 4)
    """
    return _convolution(False, dimension_numbers, out_chan, filter_shape, (strides, padding, W_init, b_init))


def GeneralConvTranspose(
    dimension_numbers: Any, out_chan: int, filter_shape: Any, strides: Any = None, padding: Any = "VALID",
    W_init: Any = None, b_init: Any = normal(1e-6),
) -> Layer:  # fmt: skip
    """A transposed convolution and a sum.

    Args:
      dimension_numbers: names of the axes of inputs, filters and results.
      out_chan: number of channels of results.
      filter_shape: sizes of the window.
      strides: steps of the window; 1 by default.
      padding: "SAME", "VALID" or pairs.
      W_init: initializer of the filters.
      b_init: initializer of the vector.

    >>> import ferrax as jax
    >>> init, apply = jax.example_libraries.stax.ConvTranspose(4, (3, 3))
    >>> init(jax.random.key(0), (2, 8, 8, 3))[0]
    (2, 10, 10, 4)
    """
    return _convolution(True, dimension_numbers, out_chan, filter_shape, (strides, padding, W_init, b_init))


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: Any = (0, 1, 2), epsilon: float = 1e-5, center: bool = True, scale: bool = True,
    beta_init: Any = zeros, gamma_init: Any = ones,
) -> Layer:  # fmt: skip
    """Mean zero and variance one along axes, then a scale and a shift.

    Args:
      axis: the axes.
      epsilon: added to variances.
      center: whether there is a shift.
      scale: whether there is a scale.
      beta_init: initializer of shifts.
      gamma_init: initializer of scales.

    >>> import ferrax as jax
    >>> init, apply = jax.example_libraries.stax.BatchNorm(axis=0)
    >>> shape, params = init(jax.random.key(0), (4, 3))
    >>> print(apply(params, jax.numpy.ones((4, 3))).sum())
    0.0
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init(rng: Any, input_shape: Sequence[int]) -> Any:
        shape = tuple(n for i, n in enumerate(input_shape) if i not in axes)
        k1, k2 = random.split(rng)
        return tuple(input_shape), (beta_init(k1, shape) if center else (), gamma_init(k2, shape) if scale else ())

    def apply(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        spread = tuple(None if i in axes else slice(None) for i in range(jnp.ndim(x)))
        z = nn.standardize(x, axes, epsilon=epsilon)
        if scale:
            z = gamma[spread] * z
        return z + beta[spread] if center else z

    return init, apply


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """A layer without parameters that applies a function.

    Args:
      fun: function of an array.
      **fun_kwargs: its keyword arguments.

    >>> import ferrax as jax
    >>> init, apply = jax.example_libraries.stax.elementwise(jax.numpy.exp)
    >>> print(apply((), 0.0))
    1.0
    """
    return (lambda rng, input_shape: (input_shape, ())), (lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs))


Tanh = elementwise(jnp.tanh)
Relu = elementwise(nn.relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(nn.log_softmax, axis=-1)
Softmax = elementwise(nn.softmax, axis=-1)
Softplus = elementwise(nn.softplus)
Sigmoid = elementwise(nn.sigmoid)
Elu = elementwise(nn.elu)
LeakyRelu = elementwise(nn.leaky_relu)
Selu = elementwise(nn.selu)
Gelu = elementwise(nn.gelu)
Identity: Layer = (lambda rng, input_shape: (input_shape, ())), (lambda params, inputs, **kwargs: inputs)


def _pool(reducer: Any, start: Any, average: bool, window_shape: Any, strides: Any, padding: Any, spec: Any) -> Layer:
    steps = tuple(strides or (1,) * len(window_shape))
    places = spec or "N" + "HWD"[: len(window_shape)] + "C" if len(window_shape) < 4 else spec
    inner = [i for i, c in enumerate(places) if c not in "NC"]

    def full(sizes: Sequence[int]) -> tuple[int, ...]:
        given = dict(zip(inner, sizes, strict=True))
        return tuple(given.get(i, 1) for i in range(len(places)))

    def pool(x: Any) -> Any:
        out = lax.reduce_window(x, start, reducer, full(window_shape), full(steps), padding)
        if not average:
            return out
        return out / lax.reduce_window(jnp.ones_like(x), start, reducer, full(window_shape), full(steps), padding)

    def init(rng: Any, input_shape: Sequence[int]) -> Any:
        from ferrax._api import ShapeDtypeStruct, eval_shape

        known = tuple(n if n > 0 else 1 for n in input_shape)
        shape = eval_shape(pool, ShapeDtypeStruct(known, jnp.float32)).shape
        return tuple(n if given > 0 else given for n, given in zip(shape, input_shape, strict=True)), ()

    return init, lambda params, inputs, **kwargs: pool(inputs)


def MaxPool(window_shape: Any, strides: Any = None, padding: Any = "VALID", spec: Any = None) -> Layer:
    """The maxima of windows.

    Args:
      window_shape: sizes of the window.
      strides: steps of the window; 1 by default.
      padding: "SAME", "VALID" or pairs.
      spec: names of the axes, "NHWC" by default.

    >>> import ferrax as jax
    >>> init, apply = jax.example_libraries.stax.MaxPool((2, 2), (2, 2))
    >>> init(None, (1, 4, 4, 3))[0]
    (1, 2, 2, 3)
    """
    return _pool(lax.max, -jnp.inf, False, window_shape, strides, padding, spec)


def SumPool(window_shape: Any, strides: Any = None, padding: Any = "VALID", spec: Any = None) -> Layer:
    """The sums of windows.

    Args:
      window_shape: sizes of the window.
      strides: steps of the window; 1 by default.
      padding: "SAME", "VALID" or pairs.
      spec: names of the axes, "NHWC" by default.

    >>> import ferrax as jax
    >>> init, apply = jax.example_libraries.stax.SumPool((2, 2))
    >>> print(apply((), jax.numpy.ones((1, 2, 2, 1))).item())
    4.0
    """
    return _pool(lax.add, 0.0, False, window_shape, strides, padding, spec)


def AvgPool(window_shape: Any, strides: Any = None, padding: Any = "VALID", spec: Any = None) -> Layer:
    """The means of windows, of the elements that are not padding.

    Args:
      window_shape: sizes of the window.
      strides: steps of the window; 1 by default.
      padding: "SAME", "VALID" or pairs.
      spec: names of the axes, "NHWC" by default.

    >>> import ferrax as jax
    >>> init, apply = jax.example_libraries.stax.AvgPool((2, 2), padding="SAME")
    >>> print(apply((), jax.numpy.ones((1, 2, 2, 1))).sum())
    4.0
    """
    return _pool(lax.add, 0.0, True, window_shape, strides, padding, spec)


def _flat_shape(input_shape: Sequence[int]) -> tuple[int, int]:
    size = functools.reduce(lambda a, b: a * b, input_shape[1:], 1)
    return input_shape[0], size


#: All axes but the first as one.
Flatten: Layer = (
    (lambda rng, input_shape: (_flat_shape(input_shape), ())),
    (lambda params, inputs, **kwargs: jnp.reshape(inputs, (inputs.shape[0], -1))),
)


def FanOut(num: int) -> Layer:
    """Copies of the input, for `parallel`.

    Args:
      num: number of copies.

    >>> import ferrax as jax
    >>> jax.example_libraries.stax.FanOut(2)[1]((), 3)
    [3, 3]
    """
    return (lambda rng, input_shape: ([input_shape] * num, ())), (lambda params, inputs, **kwargs: [inputs] * num)


#: The sum of several inputs.
FanInSum: Layer = (
    (lambda rng, input_shape: (input_shape[0], ())),
    (lambda params, inputs, **kwargs: functools.reduce(jnp.add, inputs)),
)


def FanInConcat(axis: int = -1) -> Layer:
    """Several inputs one after the other.

    Args:
      axis: along which axis.

    >>> import ferrax as jax
    >>> jax.example_libraries.stax.FanInConcat()[0](None, [(2, 3), (2, 4)])[0]
    (2, 7)
    """

    def init(rng: Any, input_shape: Sequence[Sequence[int]]) -> Any:
        first = list(input_shape[0])
        first[axis] = sum(shape[axis] for shape in input_shape)
        return tuple(first), ()

    return init, lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Elements left out at random, the others divided by the rate.

    Args:
      rate: the probability that an element STAYS.
      mode: "train"; otherwise inputs pass.

    >>> import ferrax as jax
    >>> init, apply = jax.example_libraries.stax.Dropout(0.5, mode="test")
    >>> print(apply((), jax.numpy.ones(2)))
    [1. 1.]
    """

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a PRNG key argument: apply_fun(params, inputs, rng=key)"
            )
        keep = random.bernoulli(rng, rate, inputs.shape)
        return jnp.where(keep, inputs / rate, 0)

    same = Identity[1]
    return Identity[0], apply if mode == "train" else same


def _keys(rng: Any, count: int) -> Any:
    return [None] * count if rng is None else random.split(rng, count)


def serial(*layers: Layer) -> Layer:
    """Layers one after the other.

    Args:
      *layers: pairs of functions.

    >>> import ferrax as jax
    >>> stax = jax.example_libraries.stax
    >>> init, apply = stax.serial(stax.Dense(4), stax.Relu, stax.Dense(2))
    >>> init(jax.random.key(0), (5, 3))[0]
    (5, 2)
    """
    inits, applies = zip(*layers, strict=True)

    def init(rng: Any, input_shape: Any) -> Any:
        params = []
        for each in inits:
            rng, key = random.split(rng)
            input_shape, made = each(key, input_shape)
            params.append(made)
        return input_shape, params

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        for each, own, key in zip(applies, params, keys, strict=True):
            inputs = each(own, inputs, rng=key, **kwargs)
        return inputs

    return init, apply


def parallel(*layers: Layer) -> Layer:
    """Layers side by side, each with an input of its own.

    Args:
      *layers: pairs of functions.

    >>> import ferrax as jax
    >>> stax = jax.example_libraries.stax
    >>> init, apply = stax.serial(stax.FanOut(2), stax.parallel(stax.Dense(4), stax.Identity), stax.FanInConcat())
    >>> init(jax.random.key(0), (5, 3))[0]
    (5, 7)
    """
    inits, applies = zip(*layers, strict=True)

    def init(rng: Any, input_shape: Any) -> Any:
        made = [f(key, s) for f, key, s in zip(inits, random.split(rng, len(layers)), input_shape, strict=True)]
        return [shape for shape, _ in made], [params for _, params in made]

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        return [f(p, x, rng=k, **kwargs) for f, p, x, k in zip(applies, params, inputs, keys, strict=True)]

    return init, apply


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """A layer made for the shape of its input.

    Args:
      make_layer: function of a shape that gives a layer.

    >>> import ferrax as jax
    >>> stax = jax.example_libraries.stax
    >>> init, apply = stax.shape_dependent(lambda shape: stax.Dense(shape[-1]))
    >>> init(jax.random.key(0), (5, 3))[0]
    (5, 3)
    """
    return (
        lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape),
        lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs),
    )


_expose(globals())
