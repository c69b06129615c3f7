"""Equal bits, and agreement with JAX within what an operation's rounding explains.

`docs/numerics.md` lists the kinds of difference that are allowed here. Each is tied to a class of operations or to a
property of the operands; none is a tolerance for everything.
"""

import dataclasses

import ml_dtypes
import numpy as np

from tests.fuzz.program import Tolerance
from tests.fuzz.values import kind

T = Tolerance
#: Families whose terms are products of two operands.
PRODUCTS = {"dot", "convolution", "window", "layer", "loop", "transformed"}
#: Classes in which a term beyond the range may appear in one order of summation and not in another.
SUMMED = {T.SUM, T.PRODUCT, T.SQUARES, T.LOOP, T.LINALG, T.FOURIER, T.LOOSE, T.LAYER}


def parts(a):
    """Real and imaginary parts, or the array itself."""
    return [np.ascontiguousarray(a.real), np.ascontiguousarray(a.imag)] if kind(a.dtype) == "c" else [a]


def same_bits(a, b):
    """Whether two arrays have equal types and bits; the payloads of NaNs do not count."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if kind(a.dtype) in "biu":
        return np.array_equal(a, b)
    for x, y in zip(parts(a), parts(b)):
        bits = f"u{x.dtype.itemsize}"
        x, y = np.ascontiguousarray(x).reshape(-1), np.ascontiguousarray(y).reshape(-1)
        other = x.view(bits) != y.view(bits)
        if not (np.isnan(x[other].astype(np.float64)) & np.isnan(y[other].astype(np.float64))).all():
            return False
    return True


def describe(a, b):
    """How two arrays differ: the first place and both numbers."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}"
    other = ~((a == b) | ((a != a) & (b != b)))
    if not other.any():
        return "only signs of zeros differ"
    at = tuple(int(i) for i in np.argwhere(other)[0])
    return f"{int(other.sum())} of {a.size} differ; at {at}: {a[at]}, not {b[at]}"


@dataclasses.dataclass
class Precision:
    """The unit, the least normal number and the largest of a dtype."""

    eps: float
    tiny: float
    largest: float


def precision(dtype):
    real = np.dtype(dtype).type(0).real.dtype if kind(dtype) == "c" else np.dtype(dtype)
    info = ml_dtypes.finfo(real)
    return Precision(float(info.eps), float(info.smallest_normal), float(info.max))


def magnitudes(a):
    """The magnitudes of an array's finite elements."""
    m = np.abs(a.astype(np.complex128)).reshape(-1)
    return m[np.isfinite(m)]


@dataclasses.dataclass
class Operands:
    """What an operation has read: its error is measured by their magnitudes."""

    arrays: list
    multiplied: bool = True

    def __post_init__(self):
        self.arrays = [np.asarray(a) for a in self.arrays]
        found = [magnitudes(a) for a in self.arrays]
        self.total = sum(float(m.sum()) for m in found)
        self.top = max((float(m.max(initial=0)) for m in found), default=0.0) if self.multiplied else 0.0
        self.size = sum(a.size for a in self.arrays)

    def product(self):
        """The largest product of some of the operands' elements."""
        with np.errstate(over="ignore"):
            return max((float(np.prod(np.maximum(magnitudes(a), 1.0))) for a in self.arrays), default=1.0)

    def terms(self):
        """What the magnitudes of the terms add up to: operands, and their products."""
        return self.total * (1 + self.top)

    def least_product(self):
        """The smallest product of some of the operands' elements."""
        with np.errstate(under="ignore"):
            return min((float(np.prod(np.minimum(magnitudes(a), 1.0))) for a in self.arrays), default=1.0)

    def eps(self, own):
        """The coarsest unit among the floating operands and the result."""
        return max([own, *(precision(a.dtype).eps for a in self.arrays if kind(a.dtype) in "fc")])

    def reach(self, bound):
        """Whether a sum or product of the operands can pass `bound`, or they are not finite themselves."""
        for a in self.arrays:
            m = magnitudes(a)
            if m.size < a.size or (m.size and m.max() * a.size > bound):
                return True
        return False


def allowance(tolerance, size, eps, tiny, operands):
    """The largest difference that rounding explains, for results of magnitudes `size`."""
    largest, total = size.max(initial=0), operands.total
    if tolerance is T.EXACT:
        return 0 * size + tiny
    if tolerance is T.ROUNDED:
        return 2 * eps * size + tiny
    if tolerance is T.ELEMENTWISE:  # XLA's functions of doubles lose up to 500 units (erfc)
        return (1000 if eps < 1e-12 else 200) * eps * size + 4 * tiny
    if tolerance is T.CANCELLING:
        return 200 * eps * (size + 1) + 4 * tiny
    if tolerance is T.SUM:
        return 20 * eps * (size + operands.terms()) + tiny
    if tolerance is T.LAYER:
        return 200 * eps * (size + total + 1)
    if tolerance is T.PRODUCT:
        return 200 * eps * max(8, operands.size) * size + tiny
    if tolerance is T.SQUARES:
        return 100 * eps * (size + total + total * total) + tiny
    if tolerance is T.FOURIER:
        return 50 * eps * (total + size)
    if tolerance is T.LINALG:
        return 2e3 * eps * (size + largest + 1)
    if tolerance is T.LOOSE:
        return 5e3 * eps * (size + largest) + tiny
    return 1e3 * eps * (size + largest + total)


def not_finite(a, b, tolerance, operands, limits):
    """What is wrong with NaNs and infinities, and the mask of the elements to compare as numbers."""
    reached = tolerance in SUMMED and operands.reach(limits.largest**0.3)
    reached |= tolerance is T.PRODUCT and operands.product() > limits.largest
    for name, x, y in [("nan", np.isnan(a), np.isnan(b)), ("inf", np.isinf(a), np.isinf(b))]:
        other = (x != y) | (x & y & (a != b)) if name == "inf" else x != y
        if not other.any() or reached:
            continue
        numbers = np.where(np.isinf(a), b, a)[other]
        if (
            tolerance in (T.ROUNDED, T.ELEMENTWISE)
            and name == "inf"
            and (np.abs(numbers) > 0.98 * limits.largest).all()
        ):
            continue  # one ulp from the end of the range
        at = tuple(int(i) for i in np.argwhere(other)[0])
        return f"{name} differs at {at}: {a[at]}, not {b[at]}", None
    return None, np.isfinite(a) & np.isfinite(b)


def complex_not_finite(a, b, operands, limits):
    """The same for complex numbers: which part is infinite is the library's affair, that one is, is not.

    Where ours are numbers JAX's may be NaN: its formulas multiply infinities on the way.
    """
    fine = np.isfinite(a), np.isfinite(b)
    other = ~fine[0] & fine[1]
    if (
        other.any()
        and not operands.reach(limits.largest**0.4)
        and magnitudes(a).max(initial=0) < limits.largest * 1e-20
    ):
        at = tuple(int(i) for i in np.argwhere(other)[0])
        return f"finiteness differs at {at}: {a[at]}, not {b[at]}", None
    return None, fine[0] & fine[1]


def disagreement(ours, theirs, tolerance, operands):
    """None where a result agrees with JAX's, else what differs.

    Args:
        ours: the result of ferrax.
        theirs: JAX's on the same operands.
        tolerance: the class of the operation.
        operands: an `Operands`.
    """
    a, b = np.asarray(ours), np.asarray(theirs)
    if a.shape != b.shape or a.dtype != b.dtype:
        return describe(a, b)
    if kind(a.dtype) in "biu":
        return None if np.array_equal(a, b) else describe(a, b)
    if tolerance is T.UNCOMPARED:
        return None
    limits = precision(a.dtype)
    if kind(a.dtype) == "c":
        a, b = a.astype(np.complex128), b.astype(np.complex128)
        wrong, mask = complex_not_finite(a, b, operands, limits)
    else:
        a, b = a.astype(np.float64), b.astype(np.float64)
        wrong, mask = not_finite(a, b, tolerance, operands, limits)
    if wrong or not mask.any():
        return wrong
    a, b = a[mask], b[mask]
    size = np.maximum(np.abs(a), np.abs(b))
    eps = limits.eps if tolerance is T.EXACT else operands.eps(limits.eps)
    error, allowed = np.abs(a - b), allowance(tolerance, size, eps, limits.tiny, operands)
    wrong = ~(error <= allowed)
    if tolerance is T.PRODUCT and operands.least_product() < limits.tiny:
        wrong &= (a != 0) & (b != 0)  # a product on the way is 0 in one of the orders
    if not wrong.any():
        return None
    worst = int(np.argmax(np.where(wrong, error / np.maximum(allowed, 1e-300), 0)))
    count = int(wrong.sum())
    return f"{count} of {mask.size} differ; {a[worst]}, not {b[worst]}: {error[worst]:.3g} > {allowed[worst]:.3g}"


def products_below(a, axis, reverse):
    """Where running products along an axis may have lost digits, whatever the order of multiplication.

    That is where some factors so far have a product below the normal numbers: it has fewer digits, or none.
    """
    limits = precision(a.dtype)
    small = np.minimum(np.abs(np.nan_to_num(a.astype(np.complex128), nan=1.0)), 1.0)
    small = np.flip(small, axis) if reverse else small
    lost = np.cumprod(small, axis) < limits.tiny / limits.eps
    return np.flip(lost, axis) if reverse else lost


def excused(ours, theirs, exact, factor, whole=False):
    """The exact numbers, but ours where they are about as near to those as JAX's.

    Args:
        ours: the result of ferrax.
        theirs: JAX's, of the same shape.
        exact: JAX's in double precision.
        factor: how many times JAX's error ours may be.
        whole: whether JAX's error is the largest of the array, not that of each element.
    """
    a, b, e = (np.asarray(v).astype(np.complex128) for v in (ours, theirs, exact))
    bound = np.where(np.isfinite(b), np.abs(b - e), 0.0)
    bound = np.nan_to_num(bound).max(initial=0) if whole else bound
    return np.where(np.abs(a - e) <= factor * bound, ours, exact)


def without_subnormals(a):
    """The array with subnormal numbers as zeros, which is how XLA's CPU code reads them."""
    a = np.array(a, copy=True)
    if kind(a.dtype) not in "fc":
        return a
    for part in [a.real, a.imag] if kind(a.dtype) == "c" else [a]:
        part[np.abs(part.astype(np.float64)) < precision(a.dtype).tiny] = 0
    return a
