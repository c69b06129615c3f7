"""Rotations of space by unit quaternions, and interpolation between them.

A quaternion is (x, y, z, w), the scalar last. Sources: Markley, "Unit quaternion from rotation matrix" (2008);
Bernardes and Viollet, "Quaternion to Euler angles conversion" (2022); Markley et al., "Averaging quaternions" (2007).
Read next: `numpy/_products.py`.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ferrax import lax
from ferrax._boundary import expose as _expose
from ferrax._core import asarray
from ferrax.lax import linalg as _lax_linalg
from ferrax.numpy import _join, _products, _reductions, _search, _take, _ufuncs
from ferrax.numpy._args import Array, ArrayLike, DTypeLike, broadcast_to_shape, common_shape, user_dtype
from ferrax.numpy._dtype_functions import default_float, dtype_kind, inexact_dtype

__all__ = ["Rotation", "Slerp"]

# Below this squared angle (or sine), series take the place of divisions, and have derivatives at zero.
_SMALL = 1e-6


def _floats(x: ArrayLike) -> Array:
    x = asarray(x)
    if dtype_kind(x.dtype) == "c":
        raise TypeError(f"rotations are made of real numbers, got {x.dtype}")
    return lax.convert_element_type(x, inexact_dtype(x.dtype))


def _vectors(name: str, x: ArrayLike, size: int) -> Array:
    """`x` as a floating array with vectors of `size` elements along its last axis."""
    x = _floats(x)
    if x.ndim == 0 or x.shape[-1] != size:
        raise ValueError(f"Rotation.{name}: expected an array of shape (..., {size}), got {x.shape}.")
    return x


def _chosen(flag: Any, x: Array, y: Array) -> Array:
    """`x` where a flag, mostly a Python one, is set, else `y`."""
    return (x if flag else y) if isinstance(flag, (bool, np.bool_)) else _ufuncs.where(flag, x, y)


def _parts(x: Array) -> list[Array]:
    return [x[..., i] for i in range(x.shape[-1])]


def _vector(*parts: Array) -> Array:
    return _join.stack(parts, axis=-1)


def _square(x: Array) -> Array:
    """Sums of squares, of shape (..., 1)."""
    return _reductions.sum(x * x, -1, keepdims=True)


def _normalized(quat: Array) -> Array:
    return quat / lax.sqrt(_square(quat))


def _together(x: Array, y: Array) -> tuple[Array, Array]:
    """Both with the batch axes that theirs broadcast to."""
    batch = common_shape(x.shape[:-1], y.shape[:-1])
    return broadcast_to_shape(x, batch + x.shape[-1:]), broadcast_to_shape(y, batch + y.shape[-1:])


def _composed(p: Array, q: Array) -> Array:
    p, q = _together(p, q)
    (px, py, pz, pw), (qx, qy, qz, qw) = _parts(p), _parts(q)
    return _vector(
        pw * qx + qw * px + py * qz - pz * qy,
        pw * qy + qw * py + pz * qx - px * qz,
        pw * qz + qw * pz + px * qy - py * qx,
        pw * qw - px * qx - py * qy - pz * qz,
    )


def _matrices(quat: Array) -> Array:
    x, y, z, w = _parts(quat)
    x2, y2, z2, w2 = x * x, y * y, z * z, w * w
    rows = (
        (x2 - y2 - z2 + w2, 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), y2 - x2 - z2 + w2, 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), z2 - x2 - y2 + w2),
    )
    return _join.stack([_vector(*row) for row in rows], axis=-2)


def _from_matrices(m: Array) -> Array:
    """By the largest of the four components, each of which gives the others by a division."""
    a = [[m[..., i, j] for j in range(3)] for i in range(3)]
    trace = a[0][0] + a[1][1] + a[2][2]
    candidates = []
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        parts: list[Any] = [None] * 4
        parts[i] = 1 - trace + 2 * a[i][i]
        parts[j], parts[k] = a[j][i] + a[i][j], a[k][i] + a[i][k]
        parts[3] = a[k][j] - a[j][k]
        candidates.append(_vector(*parts))
    candidates.append(_vector(a[2][1] - a[1][2], a[0][2] - a[2][0], a[1][0] - a[0][1], 1 + trace))
    best = _reductions.argmax(_vector(a[0][0], a[1][1], a[2][2], trace), axis=-1)
    quat = _take.take_along_axis(_join.stack(candidates, axis=-2), best[..., None, None], axis=-2)
    return _normalized(lax.squeeze(quat, (quat.ndim - 2,)))


def _from_rotvecs(rotvec: Array) -> Array:
    square = _square(rotvec)
    small = square < _SMALL
    angle = lax.sqrt(_ufuncs.where(small, lax.full_like(square, 1), square))
    scale = _ufuncs.where(small, 0.5 - square / 48 + square * square / 3840, lax.sin(angle / 2) / angle)
    cosine = _ufuncs.where(small, 1 - square / 8 + square * square / 384, lax.cos(angle / 2))
    return _join.concatenate([scale * rotvec, cosine], axis=-1)


def _rotvecs(quat: Array) -> Array:
    quat = _ufuncs.where(quat[..., 3:] < 0, -quat, quat)
    vector = quat[..., :3]
    square = _square(vector)
    small = square < _SMALL
    sine = lax.sqrt(_ufuncs.where(small, lax.full_like(square, 1), square))
    large = 2 * lax.atan2(sine, quat[..., 3:]) / sine
    return _ufuncs.where(small, 2 + square / 3 + 3 * square * square / 20, large) * vector


def _axes(seq: str, lengths: Sequence[int]) -> tuple[list[int], bool]:
    """(numbers of axes, whether they turn along with the rotation) of a specification such as "xyz" or "ZYX"."""
    if len(seq) not in lengths:
        raise ValueError(f"Expected {' or '.join(map(str, lengths))} axes, got {seq}.")
    intrinsic = re.fullmatch("[XYZ]+", seq) is not None
    if not intrinsic and re.fullmatch("[xyz]+", seq) is None:
        raise ValueError(f"Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', 'Z'], got {seq}")
    axes = ["xyz".index(c) for c in seq.lower()]
    if any(a == b for a, b in itertools.pairwise(axes)):
        raise ValueError(f"Expected consecutive axes to be different, got {seq}")
    return axes, intrinsic


def _elementary(axis: int, angle: Array) -> Array:
    parts = [lax.full_like(angle, 0)] * 3 + [lax.cos(angle / 2)]
    parts[axis] = lax.sin(angle / 2)
    return _vector(*parts)


def _eulers(quat: Array, axes: list[int], intrinsic: bool) -> Array:
    """Three angles; the last one is zero where only a sum or difference of two of them is determined."""
    i, j, k = axes[::-1] if intrinsic else axes
    symmetric = i == k
    k = 3 - i - j if symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    q = _parts(quat)
    if symmetric:
        a, b, c, d = q[3], q[i], q[j], q[k] * sign
    else:
        a, b, c, d = q[3] - q[j], q[i] + q[k] * sign, q[j] + q[3], q[k] * sign - q[i]
    middle = 2 * lax.atan2(_ufuncs.hypot(c, d), _ufuncs.hypot(a, b))
    half_sum, half_difference = lax.atan2(b, a), lax.atan2(d, c)
    none, straight = lax.abs(middle) <= 1e-7, lax.abs(middle - math.pi) <= 1e-7
    zero = lax.full_like(middle, 0)
    alone = _ufuncs.where(none, 2 * half_sum, (2 if intrinsic else -2) * half_difference)
    first, third = half_sum - half_difference, half_sum + half_difference
    first, third = (third, first) if intrinsic else (first, third)
    first, third = _ufuncs.where(none | straight, alone, first), _ufuncs.where(none | straight, zero, third)
    if not symmetric:
        first, third = (first * sign, third) if intrinsic else (first, third * sign)
        middle = middle - math.pi / 2
    angles = _vector(first, middle, third)
    angles = _ufuncs.where(angles > math.pi, angles - 2 * math.pi, angles)
    return _ufuncs.where(angles < -math.pi, angles + 2 * math.pi, angles)


class Rotation(NamedTuple):
    """Rotations of space.

    Attributes:
      quat: unit quaternions (x, y, z, w), an array of shape (..., 4). One of shape (4,) is a single rotation.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy.spatial.transform import Rotation
    >>> turn = Rotation.from_euler("z", jnp.array(90.), degrees=True)
    >>> jnp.abs(jnp.round(turn.apply(jnp.array([1., 0., 0.])), 3))
    Array([0., 1., 0.], dtype=float32)
    """

    quat: Any

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Sequences of rotations, one after the other.

        Args:
          rotations: sequences of rotations; a single one counts as a sequence of one.
        """
        return cls(_join.concatenate([r.quat[None] if r.single else r.quat for r in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: Any = False) -> Rotation:
        """Rotations around one to three axes.

        Args:
          seq: the axes: "x", "y", "z" for those of space, "X", "Y", "Z" for those that turn along.
          angles: array of shape (..., number of axes); for one axis also a scalar, or (n,) for n rotations.
          degrees: whether angles are in degrees, else in radians.
        """
        axes, intrinsic = _axes(seq, (1, 2, 3))
        x = _floats(angles)
        if x.ndim == 0 or (len(axes) == 1 and x.shape[-1] != 1):
            x = x[..., None]
        if x.shape[-1] != len(axes):
            raise ValueError(f"Rotation.from_euler: {len(axes)} axes need angles of shape (..., {len(axes)}), "
                             f"got {x.shape}.")  # fmt: skip
        x = _chosen(degrees, x * (math.pi / 180), x)
        quat = _elementary(axes[0], x[..., 0])
        for place, axis in enumerate(axes[1:], 1):
            other = _elementary(axis, x[..., place])
            quat = _composed(quat, other) if intrinsic else _composed(other, quat)
        return cls(quat)

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """Rotations given by orthogonal matrices of determinant one.

        Args:
          matrix: array of shape (..., 3, 3).
        """
        x = _floats(matrix)
        if x.ndim < 2 or x.shape[-2:] != (3, 3):
            raise ValueError(f"Rotation.from_matrix: expected an array of shape (..., 3, 3), got {x.shape}.")
        return cls(_from_matrices(x))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """Rotations given by modified Rodrigues parameters: axes times the tangent of a quarter of the angle.

        Args:
          mrp: array of shape (..., 3).
        """
        x = _vectors("from_mrp", mrp, 3)
        square = _square(x)
        return cls(_join.concatenate([2 * x, 1 - square], axis=-1) / (1 + square))

    @classmethod
    def from_quat(cls, quat: ArrayLike) -> Rotation:
        """Rotations given by quaternions, which are made unit ones.

        Args:
          quat: array of shape (..., 4), the scalar last.
        """
        return cls(_normalized(_vectors("from_quat", quat, 4)))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: Any = False) -> Rotation:
        """Rotations given by axes times angles.

        Args:
          rotvec: array of shape (..., 3).
          degrees: whether angles are in degrees, else in radians.
        """
        x = _vectors("from_rotvec", rotvec, 3)
        return cls(_from_rotvecs(_chosen(degrees, x * (math.pi / 180), x)))

    @classmethod
    def identity(cls, num: int | None = None, dtype: DTypeLike = float) -> Rotation:
        """The rotation that leaves everything in its place.

        Args:
          num: how many of them; None for a single one.
          dtype: a floating dtype.
        """
        found = default_float() if dtype is float else user_dtype(dtype)
        quat = asarray(np.array([0, 0, 0, 1]), dtype=found)
        return cls(quat if num is None else broadcast_to_shape(quat, (num, 4)))

    @classmethod
    def random(cls, random_key: Array, num: int | None = None) -> Rotation:
        """Rotations drawn evenly from all.

        Args:
          random_key: a key of `ferrax.random`.
          num: how many of them; None for a single one.
        """
        from ferrax.random import normal

        return cls(_normalized(normal(random_key, (4,) if num is None else (num, 4))))

    def __getitem__(self, indexer: Any) -> Rotation:  # type: ignore[override]
        """Some of a sequence of rotations."""
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        """The number of rotations in a sequence."""
        if self.single:
            raise TypeError("Single rotation has no len().")
        return self.quat.shape[0]

    def __mul__(self, other: Rotation) -> Rotation:  # type: ignore[override]
        """The rotation that does `other` and then this one."""
        return Rotation(_normalized(_composed(self.quat, other.quat)))

    def apply(self, vectors: ArrayLike, inverse: Any = False) -> Array:
        """Vectors, rotated.

        Args:
          vectors: array of shape (..., 3), whose leading axes broadcast with those of the rotations.
          inverse: rotate back.

        Returns:
          Array of shape (..., 3).
        """
        x = _vectors("apply", vectors, 3)
        matrix = self.as_matrix()
        back = lax.transpose(matrix, (*range(matrix.ndim - 2), matrix.ndim - 1, matrix.ndim - 2))
        rotated = _products.matmul(_chosen(inverse, back, matrix), x[..., None], precision="highest")
        return lax.squeeze(rotated, (rotated.ndim - 1,))

    def as_euler(self, seq: str, degrees: Any = False) -> Array:
        """The angles of three rotations around axes.

        Args:
          seq: three axes, as for `from_euler`.
          degrees: whether angles are in degrees, else in radians.

        Returns:
          Array of shape (..., 3). Where only a sum or difference of two angles is determined, the last is zero.
        """
        angles = _eulers(self.quat, *_axes(seq, (3,)))
        return _chosen(degrees, angles * (180 / math.pi), angles)

    def as_matrix(self) -> Array:
        """Orthogonal matrices, of shape (..., 3, 3)."""
        return _matrices(self.quat)

    def as_mrp(self) -> Array:
        """Modified Rodrigues parameters, of shape (..., 3)."""
        quat = _ufuncs.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        return quat[..., :3] / (1 + quat[..., 3:])

    def as_rotvec(self, degrees: Any = False) -> Array:
        """Axes times angles, of shape (..., 3).

        Args:
          degrees: whether angles are in degrees, else in radians.
        """
        rotvec = _rotvecs(self.quat)
        return _chosen(degrees, rotvec * (180 / math.pi), rotvec)

    def as_quat(self, canonical: Any = False, scalar_first: bool = False) -> Array:
        """Quaternions, of shape (..., 4).

        Args:
          canonical: of the two that mean a rotation, the one whose last component that is not zero, in the order
            w, x, y, z, is positive.
          scalar_first: (w, x, y, z) in place of (x, y, z, w).
        """
        x, y, z, w = _parts(self.quat)
        turned = (w < 0) | ((w == 0) & ((x < 0) | ((x == 0) & ((y < 0) | ((y == 0) & (z < 0))))))
        quat = _chosen(canonical, _ufuncs.where(turned[..., None], -self.quat, self.quat), self.quat)
        return _join.concatenate([quat[..., 3:], quat[..., :3]], axis=-1) if scalar_first else quat

    def inv(self) -> Rotation:
        """The rotations back."""
        return Rotation(_join.concatenate([-self.quat[..., :3], self.quat[..., 3:]], axis=-1))

    def magnitude(self) -> Array:
        """The angles of rotations, in radians, from 0 to π."""
        sine = lax.sqrt(_square(self.quat[..., :3]))[..., 0]
        return 2 * lax.atan2(sine, lax.abs(self.quat[..., 3]))

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """The rotation that is nearest to a sequence of them, in the sum of squared sines of half the angles.

        Args:
          weights: array of shape (n,); None for ones.
        """
        count = len(self)
        w = lax.full_like(self.quat[:, 0], 1) if weights is None else asarray(weights, dtype=self.quat.dtype)
        if w.ndim != 1:
            raise ValueError(f"Expected `weights` to be 1 dimensional, got shape {w.shape}.")
        if w.shape[0] != count:
            raise ValueError(f"Expected `weights` to have number of values equal to number of rotations, got "
                             f"{w.shape[0]} values and {count} rotations.")  # fmt: skip
        v, _ = _lax_linalg.eigh(_products.matmul((w[:, None] * self.quat).T, self.quat, precision="highest"))
        return Rotation(v[:, -1])

    @property
    def single(self) -> bool:
        """Whether this is a single rotation, not a sequence."""
        return self.quat.ndim == 1


class Slerp(NamedTuple):
    """Interpolation between rotations at given times, at constant speed between two of them. Made by `Slerp.init`.

    Attributes:
      times: of shape (n,), ascending.
      timedelta: their differences, of shape (n - 1,).
      rotations: the first n - 1 rotations.
      rotvecs: the rotations from each to the next, as axes times angles, of shape (n - 1, 3).

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy.spatial.transform import Rotation, Slerp
    >>> turns = Rotation.from_euler("z", jnp.array([0., 90.]), degrees=True)
    >>> halfway = Slerp.init(jnp.array([0., 1.]), turns)(0.5)
    >>> jnp.round(halfway.as_rotvec(degrees=True), 2)
    Array([ 0.,  0., 45.], dtype=float32)
    """

    times: Any
    timedelta: Any
    rotations: Any
    rotvecs: Any

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """The interpolation of rotations.

        Args:
          times: array of shape (n,), ascending.
          rotations: n rotations, at least two.
        """
        if not isinstance(rotations, Rotation):
            raise TypeError("`rotations` must be a `Rotation` instance.")
        if rotations.single or len(rotations) == 1:
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        t = asarray(times, dtype=rotations.quat.dtype)
        if t.ndim != 1:
            raise ValueError(f"Expected times to be specified in a 1 dimensional array, got {t.ndim} dimensions.")
        if t.shape[0] != len(rotations):
            raise ValueError(f"Expected number of rotations to be equal to number of timestamps given, got "
                             f"{len(rotations)} rotations and {t.shape[0]} timestamps.")  # fmt: skip
        first, second = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(t, t[1:] - t[:-1], first, (first.inv() * second).as_rotvec())

    def __call__(self, times: ArrayLike) -> Rotation:
        """The rotations at other times; before the first and after the last, motion goes on as it was.

        Args:
          times: scalar, or array of shape (k,).
        """
        t = asarray(times, dtype=self.times.dtype)
        if t.ndim > 1:
            raise ValueError("`times` must be at most 1-dimensional.")
        at = t[None] if t.ndim == 0 else t
        count = self.timedelta.shape[0]
        index = _ufuncs.clip(_search.searchsorted(self.times, at) - 1, 0, count - 1)
        share = (at - self.times[index]) / self.timedelta[index]
        out = self.rotations[index] * Rotation(_from_rotvecs(self.rotvecs[index] * share[:, None]))
        return out[0] if t.ndim == 0 else out


_expose(globals())
