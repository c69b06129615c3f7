"""Density estimates by Gaussian kernels: a mixture of one normal distribution around each point.

Energies are squared distances in coordinates in which the kernel is the unit ball: those of the Cholesky factor of
the inverse covariance. Source: Scott, "Multivariate Density Estimation" (1992); Silverman, "Density Estimation"
(1986). Read next: `multivariate_normal.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ferrax import jit, lax
from ferrax._core import Array, asarray
from ferrax.lax import linalg as _lax_linalg
from ferrax.nn import _normalize
from ferrax.numpy import _diagonal, _products, _reductions, _statistics
from ferrax.numpy._args import cast, promote_inexact
from ferrax.numpy._dtype_functions import dtype_kind
from ferrax.scipy.linalg import _solve
from ferrax.scipy.special import _normal
from ferrax.scipy.stats._common import HALF_LOG_2PI
from ferrax.tree_util import register_pytree_node_class
from ferrax.typing import ArrayLike

__all__ = ["gaussian_kde"]

Bandwidth = None | str | ArrayLike | Callable[[Any], Any]


@register_pytree_node_class
@dataclasses.dataclass(frozen=True, init=False, eq=False)
class gaussian_kde:
    """A density estimated by a Gaussian kernel around each of n points; a pytree of its arrays.

    Args:
      dataset: points, shape (n,) or (d, n).
      bw_method: the kernel's width in units of the points' standard deviation: a number, "scott" (the default),
        "silverman", or a function of the estimate, which has its `neff`, `dataset` and `weights` by then.
      weights: weights of the points, shape (n,); equal when None.

    Raises:
      NotImplementedError: the points are complex.
      ValueError: there are fewer than two numbers, the weights do not fit, or `bw_method` is none of these.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy.stats import gaussian_kde
    >>> kde = gaussian_kde(jnp.array([0.0, 1.0, 3.0]))
    >>> kde.d, kde.n, kde(jnp.array([1.0, 9.0])).shape
    (1, 3, (2,))
    """

    # with texts for `help`
    __slots__ = {
        "neff": "Effective number of points: the square of the sum of weights over the sum of their squares.",
        "dataset": "The points, shape (d, n).",
        "weights": "Their weights, which add up to 1, shape (n,).",
        "covariance": "Covariance of the kernel, shape (d, d).",
        "inv_cov": "Its inverse.",
    }

    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    def __init__(self, dataset: ArrayLike, bw_method: Bandwidth = None, weights: ArrayLike | None = None):
        arrays = promote_inexact("gaussian_kde", dataset, *([] if weights is None else [weights]))
        points = _as_columns(arrays[0])
        if dtype_kind(points.dtype) == "c":
            raise NotImplementedError("gaussian_kde does not support complex data.")
        if points.size < 2:
            raise ValueError("gaussian_kde: the dataset must have several elements.")
        n = points.shape[1]
        if weights is None:
            parts = lax.full((n,), 1 / n, points.dtype)
        else:
            parts = arrays[1]
            if parts.ndim != 1 or parts.shape[0] != n:
                raise ValueError(f"gaussian_kde: weights must have shape {(n,)}, got {parts.shape}.")
            parts = parts / _reductions.sum(parts)
        neff, covariance, inverse = _moments(points, parts)
        for name, value in (("neff", neff), ("dataset", points), ("weights", parts)):
            object.__setattr__(self, name, value)
        square = lax.square(cast(_factor(self, bw_method), points.dtype))
        object.__setattr__(self, "covariance", covariance * square)
        object.__setattr__(self, "inv_cov", inverse / square)

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """The arrays, and nothing beside them.

        Returns:
          A tuple of the arrays, and None.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.scipy.stats import gaussian_kde
        >>> len(gaussian_kde(jnp.array([0.0, 1.0])).tree_flatten()[0])
        5
        """
        return tuple(getattr(self, name) for name in self.__slots__), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Any) -> gaussian_kde:
        """An estimate of given arrays.

        Args:
          aux_data: None.
          children: the arrays, in the order of `tree_flatten`.

        Returns:
          The estimate.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.scipy.stats import gaussian_kde
        >>> arrays, rest = gaussian_kde(jnp.array([0.0, 1.0])).tree_flatten()
        >>> gaussian_kde.tree_unflatten(rest, arrays).n
        2
        """
        del aux_data
        made = object.__new__(cls)
        for name, value in zip(cls.__slots__, children, strict=True):
            object.__setattr__(made, name, value)
        return made

    @property
    def d(self) -> int:
        """Number of dimensions."""
        return int(self.dataset.shape[0])

    @property
    def n(self) -> int:
        """Number of points."""
        return int(self.dataset.shape[1])

    def evaluate(self, points: ArrayLike) -> Array:
        """The density at points.

        Args:
          points: shape (d, m), or (m,) for d = 1, or (d,) for one point.

        Returns:
          Array of shape (m,).

        Raises:
          NotImplementedError: the points are complex.
          ValueError: they have another number of dimensions.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.scipy.stats import gaussian_kde
        >>> gaussian_kde(jnp.array([0.0, 1.0, 3.0])).evaluate(jnp.array([1.0])).shape
        (1,)
        """
        return _density(*self._places(points))

    def __call__(self, points: ArrayLike) -> Array:
        """As `evaluate`."""
        return self.evaluate(points)

    def pdf(self, x: ArrayLike) -> Array:
        """As `evaluate`.

        Args:
          x: points, shape (d, m), or (m,) for d = 1, or (d,) for one point.

        Returns:
          Array of shape (m,).

        >>> import ferrax.numpy as jnp
        >>> from ferrax.scipy.stats import gaussian_kde
        >>> gaussian_kde(jnp.array([0.0, 1.0, 3.0])).pdf(jnp.array([1.0])).shape
        (1,)
        """
        return self.evaluate(x)

    def logpdf(self, x: ArrayLike) -> Array:
        """Logarithm of the density at points.

        Args:
          x: points, shape (d, m), or (m,) for d = 1, or (d,) for one point.

        Returns:
          Array of shape (m,), finite also where the density is zero in floating point.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.scipy.stats import gaussian_kde
        >>> bool(gaussian_kde(jnp.array([0.0, 1.0, 3.0])).logpdf(99.0)[0] > -1e5)
        True
        """
        return _log_density(*self._places(x))

    def _places(self, points: ArrayLike) -> list[Array]:
        """Points as columns, and what their density depends on, of one dtype."""
        arrays = promote_inexact("gaussian_kde", points, self.dataset, self.weights, self.inv_cov)
        if dtype_kind(arrays[0].dtype) == "c":
            raise NotImplementedError("gaussian_kde does not support complex coordinates.")
        x = _as_columns(arrays[0])
        if x.shape[0] != self.d:
            if x.shape != (1, self.d):
                raise ValueError(f"points have dimension {x.shape[0]}, dataset has dimension {self.d}")
            x = lax.reshape(x, (self.d, 1))
        return [x, *arrays[1:]]

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """Integral of the density times that of a normal distribution.

        Args:
          mean: mean, shape (d,); a number for d = 1.
          cov: covariance, shape (d, d); a number for d = 1.

        Returns:
          A number.

        Raises:
          ValueError: these have another number of dimensions.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.scipy.stats import gaussian_kde
        >>> gaussian_kde(jnp.array([0.0, 1.0, 3.0])).integrate_gaussian(0.0, 1.0).shape
        ()
        """
        arrays = promote_inexact(
            "gaussian_kde.integrate_gaussian", mean, cov, self.dataset, self.weights, self.covariance
        )
        place, spread = arrays[0], arrays[1]
        d = self.d
        if place.shape not in ((d,), ()) or (place.ndim == 0 and d != 1):
            raise ValueError(f"mean does not have dimension {d}")
        if spread.shape not in ((d, d), (d,), ()) or (spread.ndim < 2 and d != 1):
            raise ValueError(f"covariance does not have dimension {d}")
        one = lax.full((1,), 1, place.dtype)
        return _overlap(lax.reshape(place, (d, 1)), one, lax.reshape(spread, (d, d)), *arrays[2:])

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """Integral of the density of an estimate in one dimension over an interval.

        Args:
          low: lower end, a number.
          high: upper end, a number.

        Returns:
          A number.

        Raises:
          ValueError: the estimate has several dimensions, or an end is not a number.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.scipy.stats import gaussian_kde
        >>> float(gaussian_kde(jnp.array([0.0, 1.0, 3.0])).integrate_box_1d(-jnp.inf, jnp.inf))
        1.0
        """
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        arrays = promote_inexact("gaussian_kde.integrate_box_1d", low, high)
        if arrays[0].ndim or arrays[1].ndim:
            raise ValueError("the limits of integration must be numbers")
        dtype = self.dataset.dtype
        return _interval(cast(low, dtype), cast(high, dtype), self.dataset[0], self.weights, self.covariance[0, 0])

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """Integral of the product of two estimates.

        Args:
          other: an estimate in as many dimensions.

        Returns:
          A number.

        Raises:
          ValueError: the dimensions differ.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.scipy.stats import gaussian_kde
        >>> kde = gaussian_kde(jnp.array([0.0, 1.0, 3.0]))
        >>> kde.integrate_kde(kde).shape
        ()
        """
        if other.d != self.d:
            raise ValueError("KDEs are not the same dimensionality")
        return _overlap(*promote_inexact(
            "gaussian_kde.integrate_kde", self.dataset, self.weights, self.covariance, other.dataset, other.weights,
            other.covariance,
        ))  # fmt: skip

    def resample(self, key: Any, shape: tuple[int, ...] = ()) -> Array:
        """Random points that are distributed as the estimate says.

        Args:
          key: a key of `ferrax.random`.
          shape: shape of the sample.

        Returns:
          Array of shape (d, *shape).

        >>> import ferrax, ferrax.numpy as jnp
        >>> from ferrax.scipy.stats import gaussian_kde
        >>> gaussian_kde(jnp.array([0.0, 1.0, 3.0])).resample(ferrax.random.key(0), (5,)).shape
        (1, 5)
        """
        from ferrax.random import _continuous, _discrete, _keys

        point_key, noise_key = _keys.split(key)
        dtype = self.dataset.dtype
        chosen = _discrete.choice(point_key, self.n, shape=shape, p=self.weights)
        center = lax.full((self.d,), 0, dtype)
        noise = _continuous.multivariate_normal(noise_key, center, self.covariance, shape=tuple(shape), dtype=dtype)
        last = noise.ndim - 1
        return self.dataset[:, chosen] + lax.transpose(noise, (last, *range(last)))

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> None:
        """Not supported: `integrate_box_1d` is, in one dimension.

        Args:
          low_bounds: ignored.
          high_bounds: ignored.
          maxpts: ignored.

        Raises:
          NotImplementedError: always.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.scipy.stats import gaussian_kde
        >>> gaussian_kde(jnp.array([0.0, 1.0])).integrate_box(0, 1)
        Traceback (most recent call last):
        NotImplementedError: only 1D box integrations are supported; use `integrate_box_1d`
        """
        raise NotImplementedError("only 1D box integrations are supported; use `integrate_box_1d`")

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Not supported: an estimate does not change. Make another one.

        Args:
          bw_method: ignored.

        Raises:
          NotImplementedError: always.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.scipy.stats import gaussian_kde
        >>> gaussian_kde(jnp.array([0.0, 1.0])).set_bandwidth(1.0)
        Traceback (most recent call last):
        NotImplementedError: dynamically changing the bandwidth method is not supported
        """
        raise NotImplementedError("dynamically changing the bandwidth method is not supported")


def _as_columns(x: Array) -> Array:
    """Points as the columns of a matrix."""
    if x.ndim > 2:
        raise ValueError(f"gaussian_kde: points must have at most two axes, got shape {x.shape}.")
    return lax.reshape(x, (1, x.size)) if x.ndim < 2 else x


def _factor(kde: gaussian_kde, bw_method: Bandwidth) -> Any:
    """Width of the kernel in units of the standard deviation."""
    d = kde.d
    if bw_method is None:
        bw_method = "scott"
    if isinstance(bw_method, str):
        if bw_method == "scott":
            return kde.neff ** (-1.0 / (d + 4))
        if bw_method == "silverman":
            return (kde.neff * (d + 2) / 4.0) ** (-1.0 / (d + 4))
    elif callable(bw_method):
        return bw_method(kde)
    elif asarray(bw_method).ndim == 0:
        return bw_method
    raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar, or a callable.")


@jit
def _moments(points: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Effective number of points, their covariance, and its inverse."""
    d = points.shape[0]
    covariance = lax.reshape(_statistics.cov(points, rowvar=True, bias=False, aweights=weights), (d, d))
    return 1 / _reductions.sum(lax.square(weights)), covariance, _solve.inv(covariance)


def _squares(x: Array, y: Array) -> Array:
    """Squared distances of the columns of matrices, shape (m, n)."""
    return _reductions.sum(lax.square(x[:, :, None] - y[:, None, :]), axis=0)


def _log_diagonal(root: Array) -> Array:
    return _reductions.sum(lax.log(_diagonal.diagonal(root)))


def _energies(x: Array, dataset: Array, inverse: Array) -> tuple[Array, Array]:
    """Minus the logarithm of the kernel around each point, shape (m, n), without its factor; and the factor's."""
    root = _lax_linalg.cholesky(inverse)
    axes = lax.transpose(root, (1, 0))
    squares = _squares(*(_products.matmul(axes, v, precision="highest") for v in (x, dataset)))
    return squares / 2, _log_diagonal(root) - x.shape[0] * HALF_LOG_2PI


@jit
def _density(x: Array, dataset: Array, weights: Array, inverse: Array) -> Array:
    energies, log_factor = _energies(x, dataset, inverse)
    return lax.exp(log_factor) * _products.matmul(lax.exp(-energies), weights, precision="highest")


@jit
def _log_density(x: Array, dataset: Array, weights: Array, inverse: Array) -> Array:
    energies, log_factor = _energies(x, dataset, inverse)
    return log_factor + _normalize.logsumexp(-energies, axis=1, b=weights[None])


@jit
def _overlap(x: Array, x_weights: Array, x_spread: Array, y: Array, y_weights: Array, y_spread: Array) -> Array:
    """Integral of the product of two mixtures of normal distributions."""
    root = _lax_linalg.cholesky(x_spread + y_spread)
    x, y = (_lax_linalg.triangular_solve(root, v, left_side=True, lower=True) for v in (x, y))
    log_factor = -(_log_diagonal(root) + x.shape[0] * HALF_LOG_2PI)
    terms = _products.matmul(lax.exp(-_squares(x, y) / 2), y_weights, precision="highest")
    return lax.exp(log_factor) * _reductions.sum(terms * x_weights)


@jit
def _interval(low: Array, high: Array, places: Array, weights: Array, variance: Array) -> Array:
    """Integral of a mixture in one dimension from `low` to `high`."""
    width = lax.sqrt(variance)
    masses = _normal.ndtr((high - places) / width) - _normal.ndtr((low - places) / width)
    return _reductions.sum(weights * masses)
