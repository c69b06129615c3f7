"""Long short-term memory networks of several layers and both directions, with all weights in one array.

Gates are in the order input, forget, cell, output. Source: Hochreiter and Schmidhuber, "Long short-term memory" (1997),
in the form with two biases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ferrax import lax, nn, numpy as jnp, random
from ferrax._boundary import expose as _expose
from ferrax._composites import Composite
from ferrax._core import Array, ShapedArray
from ferrax._derivatives import vjp
from ferrax._lazy import lend as _lend
from ferrax.config import config

__all__ = [
    "get_num_params_in_lstm",
    "init_lstm_weight",
    "lstm",
    "lstm_bwd",
    "lstm_fwd",
    "lstm_ref",
    "rnn_abstract_eval",
    "rnn_bwd_abstract_eval",
    "rnn_bwd_p",
    "rnn_fwd_p",
    "swap_lstm_gates",
    "unpack_lstm_weights",
]

# what JAX's module has from elsewhere
__getattr__ = _lend(
    __name__,
    {
        "ferrax._src.typing": "Shape",
        "ferrax.custom_derivatives": "custom_vjp",
        "ferrax.nn": "sigmoid",
        "ferrax.numpy": "tanh",
        "typing": "PRNGKeyArray=Any",
    },
)


def _shapes(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Iterator[tuple[int, ...]]:
    """Shapes of the parameters in their order: the matrices of all layers, then the biases."""
    directions = 2 if bidirectional else 1
    for layer in range(num_layers):
        for _ in range(directions):
            yield 4 * hidden_size, input_size if layer == 0 else directions * hidden_size
            yield 4 * hidden_size, hidden_size
    for _ in range(2 * num_layers * directions):
        yield (4 * hidden_size,)


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """The number of a network's weights.

    Args:
      input_size: size of an input.
      hidden_size: size of a state.
      num_layers: number of layers.
      bidirectional: whether each layer has a second part that reads the sequence backward.

    Returns:
      A number.

    >>> from ferrax.experimental import rnn
    >>> rnn.get_num_params_in_lstm(3, 4, 1, False)
    144
    """
    return sum(math.prod(shape) for shape in _shapes(input_size, hidden_size, num_layers, bidirectional))


def init_lstm_weight(rng: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Array:
    """Weights drawn uniformly between -k and k, where k is 1 over the root of the hidden size.

    Args:
      rng: a random key.
      input_size: size of an input.
      hidden_size: size of a state.
      num_layers: number of layers.
      bidirectional: whether layers have both directions.

    Returns:
      float32 array of shape (number of weights,).

    >>> import ferrax as jax
    >>> jax.experimental.rnn.init_lstm_weight(jax.random.key(0), 3, 4, 1, False).shape
    (144,)
    """
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    k = np.sqrt(1.0 / hidden_size)
    return random.uniform(rng, shape=(count,), dtype=np.float32, minval=-k, maxval=k)


def unpack_lstm_weights(
    weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[dict[int, Array], dict[int, Array], dict[int, Array], dict[int, Array]]:
    """The matrices and biases in an array of all weights.

    Args:
      weights: array of shape (number of weights,).
      input_size, hidden_size, num_layers, bidirectional: as in `init_lstm_weight`.

    Returns:
      Four dictionaries by the number of the layer times that of directions, plus the direction's: matrices of inputs,
      matrices of states, and their biases; gates are along the first axis.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import rnn
    >>> W_ih, W_hh, b_ih, b_hh = rnn.unpack_lstm_weights(jnp.zeros(144), 3, 4, 1, False)
    >>> W_ih[0].shape, W_hh[0].shape, b_ih[0].shape
    ((16, 3), (16, 4), (16,))
    """
    parts, first = [], 0
    for shape in _shapes(input_size, hidden_size, num_layers, bidirectional):
        size = math.prod(shape)
        parts.append(weights[first : first + size].reshape(shape))
        first += size
    half = len(parts) // 2
    groups = (parts[0:half:2], parts[1:half:2], parts[half::2], parts[half + 1 :: 2])
    w_ih, w_hh, b_ih, b_hh = (dict(enumerate(group)) for group in groups)
    return w_ih, w_hh, b_ih, b_hh


def swap_lstm_gates(weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Array:
    """Weights with the cell's and the output's gates exchanged, which libraries order differently.

    Args:
      weights: array of shape (number of weights,).
      input_size, hidden_size, num_layers, bidirectional: as in `init_lstm_weight`.

    Returns:
      Array of that shape.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import rnn
    >>> print(rnn.swap_lstm_gates(jnp.arange(16), 1, 1, 1, False)[:4])
    [0 1 3 2]
    """
    parts, first = [], 0
    weights = jnp.asarray(weights)
    for shape in _shapes(input_size, hidden_size, num_layers, bidirectional):
        size = math.prod(shape)
        gates = weights[first : first + size].reshape(4, -1)
        parts.append(jnp.stack([gates[0], gates[1], gates[3], gates[2]]).ravel())
        first += size
    return jnp.concatenate(parts)


def lstm(
    x: Array,
    h_0: Array,
    c_0: Array,
    weights: Array,
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any = None,
) -> tuple[Array, Array, Array]:
    """A network's outputs for a batch of sequences, and its last states.

    Args:
      x: inputs, of shape (batch, longest sequence, input size).
      h_0: first states, of shape (layers times directions, batch, hidden size).
      c_0: first cells, likewise.
      weights: array of shape (number of weights,), see `unpack_lstm_weights`.
      seq_lengths: int array of shape (batch,), how long each sequence is.
      input_size: size of an input.
      hidden_size: size of a state.
      num_layers: number of layers.
      dropout: must be 0.
      bidirectional: whether layers have both directions.
      precision: how precise products are.

    Returns:
      `(y, h_n, c_n)`: outputs of shape (batch, longest sequence, hidden size times directions), zero after a sequence's
      end; the last states and cells, like `h_0`.

    Raises:
      NotImplementedError: `dropout` is not 0.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> rnn = jax.experimental.rnn
    >>> w = rnn.init_lstm_weight(jax.random.key(0), 3, 4, 1, False)
    >>> y, h, c = rnn.lstm(jnp.ones((2, 5, 3)), *[jnp.zeros((1, 2, 4))] * 2, w, jnp.array([5, 2]), 3, 4, 1, 0.0, False)
    >>> y.shape, h.shape, c.shape
    ((2, 5, 4), (1, 2, 4), (1, 2, 4))
    """
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return _lstm(x, h_0, c_0, *parts, seq_lengths, num_layers, dropout, bidirectional, precision)


def lstm_ref(
    x: Array,
    h_0: Array,
    c_0: Array,
    W_ih: Mapping[int, Array],
    W_hh: Mapping[int, Array],
    b_ih: Mapping[int, Array],
    b_hh: Mapping[int, Array],
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> tuple[Array, Array, Array]:
    """`lstm` of unpacked weights.

    Args:
      x, h_0, c_0: as in `lstm`.
      W_ih: matrices of inputs, see `unpack_lstm_weights`.
      W_hh: matrices of states.
      b_ih: biases of inputs.
      b_hh: biases of states.
      seq_lengths: int array of shape (batch,).
      input_size, hidden_size, num_layers, dropout, bidirectional: as in `lstm`.

    Returns:
      `(y, h_n, c_n)`, as `lstm`.

    Raises: as in `lstm`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import rnn
    >>> parts = rnn.unpack_lstm_weights(jnp.ones(16), 1, 1, 1, False)
    >>> zero = jnp.zeros((1, 1, 1))
    >>> rnn.lstm_ref(jnp.ones((1, 2, 1)), zero, zero, *parts, jnp.array([2]), 1, 1, 1, 0.0, False)[0].shape
    (1, 2, 1)
    """
    return _lstm(x, h_0, c_0, W_ih, W_hh, b_ih, b_hh, seq_lengths, num_layers, dropout, bidirectional, None)


def _lstm(
    x: Array,
    h_0: Array,
    c_0: Array,
    w_ih: Mapping[int, Array],
    w_hh: Mapping[int, Array],
    b_ih: Mapping[int, Array],
    b_hh: Mapping[int, Array],
    seq_lengths: Array,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any,
) -> tuple[Array, Array, Array]:
    if dropout != 0.0:
        raise NotImplementedError(
            "Dropout is not supported in lstm: which units a vendor's library drops is not known."
        )
    directions = 2 if bidirectional else 1
    rows = jnp.swapaxes(jnp.asarray(x), 0, 1)
    there = jnp.arange(rows.shape[0])[:, None] < jnp.asarray(seq_lengths)[None]
    last_h, last_c = [], []
    for layer in range(num_layers):
        outs = []
        for direction in range(directions):
            n = layer * directions + direction
            step = _cell(w_ih[n], w_hh[n], b_ih[n] + b_hh[n], precision)
            # a sequence that is read backward starts at its own end, and what is beyond it changes nothing
            (h, c), ys = lax.scan(step, (h_0[n], c_0[n]), (rows, there), reverse=direction == 1)
            outs.append(ys)
            last_h.append(h)
            last_c.append(c)
        rows = jnp.concatenate(outs, axis=-1)
    return jnp.swapaxes(rows, 0, 1), jnp.stack(last_h), jnp.stack(last_c)


def _cell(w_ih: Array, w_hh: Array, bias: Array, precision: Any) -> Callable[[Any, Any], Any]:
    """A step of a layer in one direction, for a batch; rows whose sequence is not there keep their state."""

    def step(carry: Any, row: Any) -> Any:
        (h, c), (x, there) = carry, row
        gates = jnp.matmul(x, w_ih.T, precision=precision) + jnp.matmul(h, w_hh.T, precision=precision) + bias[None]
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        c_next = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
        h_next = nn.sigmoid(o) * jnp.tanh(c_next)
        mask = jnp.broadcast_to(there[:, None], h.shape)
        kept = jnp.where(mask, h_next, h), jnp.where(mask, c_next, c)
        return kept, jnp.where(mask, h_next, jnp.zeros_like(h_next))

    return step


# --- the network and its derivative as primitives


def _allows_tf32(precision: Any) -> bool:
    """Whether products may be of fewer bits than float32 has: not at the highest precision."""
    if precision is None:
        precision = config.jax_default_matmul_precision
    first = precision[0] if isinstance(precision, (tuple, list)) else precision
    return first is None or lax.Precision(first) != lax.Precision.HIGHEST


def _forward(
    x: Array,
    h_0: Array,
    c_0: Array,
    w: Array,
    seq_lengths: Array,
    *,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    cudnn_allow_tf32: bool,
) -> list[Array]:
    precision = None if cudnn_allow_tf32 else lax.Precision.HIGHEST
    sizes = (input_size, hidden_size, num_layers, dropout, bidirectional)
    # nothing is kept for the derivative besides the operands
    return [*lstm(x, h_0, c_0, w, seq_lengths, *sizes, precision), jnp.zeros(0, np.float32)]


def _backward(
    dy: Array,
    dh_n: Array,
    dc_n: Array,
    x: Array,
    h_0: Array,
    c_0: Array,
    w: Array,
    y: Array,
    reserve_space: Array,
    seq_lengths: Array,
    **sizes: Any,
) -> list[Array]:
    def run(x: Array, h_0: Array, c_0: Array, w: Array) -> tuple[Array, ...]:
        return tuple(_forward(x, h_0, c_0, w, seq_lengths, **sizes)[:3])

    return list(vjp(run, x, h_0, c_0, w)[1]((dy, dh_n, dc_n)))


rnn_fwd_p = Composite("rnn_fwd", _forward, multiple_results=True)
rnn_bwd_p = Composite("rnn_bwd", _backward, multiple_results=True, linear=(0, 1, 2))


def rnn_abstract_eval(
    x_aval: Any,
    h_0_aval: Any,
    c_0_aval: Any,
    w_aval: Any,
    seq_lengths_aval: Any,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    cudnn_allow_tf32: bool,
) -> tuple[Any, Any, Any, Any]:
    """The types of `rnn_fwd_p`'s results.

    Args:
      x_aval: the type of inputs, of shape (batch, longest sequence, input size).
      h_0_aval: the type of first states.
      c_0_aval: the type of first cells.
      w_aval: the type of weights.
      seq_lengths_aval: the type of lengths.
      input_size, hidden_size, num_layers, dropout, bidirectional: as in `lstm`.
      cudnn_allow_tf32: whether products may be less precise.

    Returns:
      Types of the outputs, the last states and cells, and of what the derivative needs besides: nothing.

    >>> import ferrax as jax
    >>> rnn = jax.experimental.rnn
    >>> x, h = (jax.core.ShapedArray(shape, "float32") for shape in ((2, 5, 3), (1, 2, 4)))
    >>> rnn.rnn_abstract_eval(x, h, h, None, None, 3, 4, 1, 0.0, False, True)[0]
    ShapedArray(float32[2,5,4])
    """
    directions = 2 if bidirectional else 1
    shape = (*x_aval.shape[:2], directions * hidden_size)
    return ShapedArray(shape, x_aval.dtype), h_0_aval, c_0_aval, ShapedArray((0,), np.dtype(np.float32))


def rnn_bwd_abstract_eval(
    dy_aval: Any,
    dhn_aval: Any,
    dcn_aval: Any,
    x_aval: Any,
    h0_aval: Any,
    c0_aval: Any,
    w_aval: Any,
    y_aval: Any,
    reserve_space_aval: Any,
    seq_lengths_aval: Any,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    cudnn_allow_tf32: bool,
) -> tuple[Any, Any, Any, Any]:
    """The types of `rnn_bwd_p`'s results: those of the operands that have derivatives.

    Args:
      dy_aval, dhn_aval, dcn_aval: types of the cotangents of outputs, last states and last cells.
      x_aval, h0_aval, c0_aval, w_aval: types of inputs, first states, first cells and weights.
      y_aval: the type of outputs.
      reserve_space_aval: the type of what `rnn_fwd_p` kept.
      seq_lengths_aval: the type of lengths.
      input_size, hidden_size, num_layers, dropout, bidirectional, cudnn_allow_tf32: as in `rnn_abstract_eval`.

    Returns:
      Four types.

    >>> from ferrax.experimental import rnn
    >>> rnn.rnn_bwd_abstract_eval(*"abcdefghij", 3, 4, 1, 0.0, False, True)
    ('d', 'e', 'f', 'g')
    """
    return x_aval, h0_aval, c0_aval, w_aval


def lstm_fwd(
    x: Array,
    h_0: Array,
    c_0: Array,
    w: Array,
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any,
) -> tuple[tuple[Array, Array, Array], tuple[Array, ...]]:
    """`lstm`, and what `lstm_bwd` needs.

    Args:
      x, h_0, c_0: as in `lstm`.
      w: array of shape (number of weights,).
      seq_lengths: int32 array of shape (batch,).
      input_size, hidden_size, num_layers, dropout, bidirectional, precision: as in `lstm`.

    Returns:
      `((y, h_n, c_n), residuals)`.

    Raises:
      NotImplementedError: `dropout` is not 0, or `seq_lengths` is not int32.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> rnn = jax.experimental.rnn
    >>> zero = jnp.zeros((1, 1, 1))
    >>> operands = (jnp.ones((1, 2, 1)), zero, zero, jnp.ones(16), jnp.array([2]))
    >>> (y, _, _), kept = rnn.lstm_fwd(*operands, 1, 1, 1, 0.0, False, None)
    >>> y.shape, len(kept)
    ((1, 2, 1), 7)
    """
    x, h_0, c_0, w, seq_lengths = (jnp.asarray(operand) for operand in (x, h_0, c_0, w, seq_lengths))
    if seq_lengths.dtype != np.int32:
        raise NotImplementedError("`seq_lengths` can only be int32.")
    y, h_n, c_n, reserve_space = rnn_fwd_p.bind(
        *(x, h_0, c_0, w, seq_lengths),
        input_size=input_size,
        hidden_size=hidden_size,
        num_layers=num_layers,
        dropout=dropout,
        bidirectional=bidirectional,
        cudnn_allow_tf32=_allows_tf32(precision),
    )
    return (y, h_n, c_n), (x, h_0, c_0, w, seq_lengths, y, reserve_space)


def lstm_bwd(
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any,
    residuals: tuple[Array, ...],
    gradients: tuple[Array, Array, Array],
) -> tuple[Array, Array, Array, Array, Array]:
    """The cotangents of `lstm`'s operands.

    Args:
      input_size, hidden_size, num_layers, dropout, bidirectional, precision: as in `lstm`.
      residuals: what `lstm_fwd` gives second.
      gradients: cotangents of outputs, last states and last cells.

    Returns:
      Cotangents of inputs, first states, first cells and weights, and zeros for the lengths.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> rnn = jax.experimental.rnn
    >>> zero, sizes = jnp.zeros((1, 1, 1)), (1, 1, 1, 0.0, False, None)
    >>> outs, kept = rnn.lstm_fwd(jnp.ones((1, 2, 1)), zero, zero, jnp.ones(16), jnp.array([2]), *sizes)
    >>> [ct.shape for ct in rnn.lstm_bwd(*sizes, kept, outs)]
    [(1, 2, 1), (1, 1, 1), (1, 1, 1), (16,), (1,)]
    """
    x, h_0, c_0, w, seq_lengths, y, reserve_space = residuals
    cotangents = rnn_bwd_p.bind(
        *(*gradients, x, h_0, c_0, w, y, reserve_space, seq_lengths),
        input_size=input_size,
        hidden_size=hidden_size,
        num_layers=num_layers,
        dropout=dropout,
        bidirectional=bidirectional,
        cudnn_allow_tf32=_allows_tf32(precision),
    )
    return (*cotangents, jnp.zeros_like(seq_lengths))


_expose(globals())
