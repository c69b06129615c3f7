"""Programs against JAX: each step alone on ferrax's own operands, so that errors do not add up.

The steps of a program are one JAX program, compiled once; what differs there is compared again outside of `jit`, where
XLA does not keep narrow floats in float32, and once more in double precision: where ferrax is about as near to that as
JAX, JAX's own precision is the inexact one. `expected` knows the differences that are on purpose. Next: `compare.py`.
"""

import ast
import contextlib
import re
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax._src.lax.lax import _convert_element_type

from ferrax._core import with_weak_type
from tests.fuzz.checks import signature, weighted_sum
from tests.fuzz.compare import (
    PRODUCTS,
    Operands,
    disagreement,
    excused,
    products_below,
    same_bits,
    without_subnormals,
)
from tests.fuzz.generator import FERRAX
from tests.fuzz.program import Tolerance, operation_names, rounded_to_integer, run_step
from tests.fuzz.values import kind

JAX = {"jax": jax, "jnp": jnp, "lax": jax.lax, "np": np}
#: Gradients beyond these magnitudes are not compared: the programs are not made to be well-conditioned.
LEAST, LARGEST = 1e-6, 1e7
#: How JAX refuses what it has no answer to: axes longer than an index dtype counts, a map over nothing in batches, jvp
#: rules that are not there.
NOT_IN_JAX = (OverflowError, ZeroDivisionError, NotImplementedError)
#: Errors that say what is wrong with a call, whichever of them JAX raises.
PLAIN = (TypeError, ValueError, IndexError, NotImplementedError)
#: How many times JAX's distance from its own results in double precision ours may be: of the same number, and of the
#: largest difference in a gradient.
TIMES_JAX_IN_STEPS, TIMES_JAX_IN_GRADIENTS = 2, 8
#: Floats and complex numbers in double precision.
DOUBLE = {"f": "float64", "c": "complex128"}
#: Updates whose index vectors have no components (docs/differences.md).
NO_COMPONENTS = re.compile(r"lax\.(scatter|gather).*np\.array\([\[\], ]*, np\.int32\)", re.DOTALL)
#: Reductions with a function, or an initial value that is no identity.
LEAVES_INITIAL_VALUES_OUT = re.compile(r"lax\.reduce\(")
#: Conversions that JAX takes by way of float32.
NARROWED = re.compile(r"\.astype\(jnp\.b?float16\)")
#: Running products, their axis and direction.
RUNNING_PRODUCT = re.compile(r"lax\.cumprod\(([vx]\d+), axis=(\d+), reverse=(True|False)\)")
#: Windows over elements, their initial value, and what fills the gaps between the elements.
SPREAD_WINDOWS = re.compile(
    r"lax\.reduce_window\((\w+), (jnp\.array\(.*?\.dtype\)), (.*), \*\[(\(.*?\)), (\(.*?\))\]\)"
)
#: Functions whose series JAX stops early for large parameters, in both precisions: 0 and NaN where 1/2 is right.
INCOMPLETE_GAMMA = re.compile(r"lax\.igammac?\(")
#: Decompositions whose slopes divide by differences of singular values or eigenvalues.
DECOMPOSED = re.compile(r"linalg\.(svd|eig)")
#: Where JAX shares slopes of equal numbers wrongly: extremes at indices that repeat, and `partition`, which may take
#: one of them into both halves and leave another one out; and reductions of two operands, whose order XLA chooses.
EQUAL_NUMBERS = re.compile(r"\.at\[.*\]\.(max|min)\(|scatter_(max|min)|jnp\.partition|lax\.reduce\(\(")
#: Where JAX counts the equal numbers at the index that was given, and divides by none of them.
EXTREMES_AT_CLIPPED = re.compile(r"\.at\[.*\]\.(max|min)\(.*mode='clip'")
#: What ferrax says of derivatives that it does not have (docs/differences.md).
NOT_IN_FERRAX = re.compile("lax.reduce(_window)? with a function other than|nextafter")


def in_jax(subject, read):
    """Operands as JAX's arrays, weakly typed where ours are: that decides on the dtypes of results."""
    values = {name: jnp.asarray(value) for name, value in read.items()}
    return {name: _convert_element_type(v, weak_type=name in subject.weak) for name, v in values.items()}


class Oracle:
    """Real JAX.

    Args:
        share: the share of programs that are compared.
    """

    def __init__(self, share):
        self.share = share

    def compare(self, subject):
        """All steps of a program, and those that ferrax refused."""
        subject.report.count("programs against JAX")
        steps = [s for s in subject.program.steps if s.tolerance is not Tolerance.UNCOMPARED]
        operands = [
            {name: np.asarray(subject.env[name]) for name in step.reads if name in subject.env} for step in steps
        ]
        ours = [[subject.env[name] for name in step.outs] for step in steps]
        for i, step in enumerate(steps):
            if any(has_subnormals(value) for value in operands[i].values()):
                operands[i] = {name: without_subnormals(value) for name, value in operands[i].items()}
                ours[i] = self.ours_again(subject, step, operands[i])
        theirs = self.results(subject, steps, operands)
        for step, read, own, other in zip(steps, operands, ours, theirs):
            if own is not None and other is not None:
                self.compare_step(subject, step, read, own, other)
        for refusal in [r for r in subject.refusals if not r.inner][:4]:
            self.compare_refusal(subject, refusal)

    def ours_again(self, subject, step, operands):
        """Our results on operands without subnormal numbers."""
        try:
            own = {name: FERRAX["jnp"].asarray(value) for name, value in operands.items()}
            return run_step(FERRAX, step, {name: with_weak_type(v, name in subject.weak) for name, v in own.items()})
        except Exception as error:
            subject.raised("step raises without subnormals", error)
            return None

    def results(self, subject, steps, operands):
        """JAX's results of every step; None for a step that it refuses."""
        try:
            with self.within_jax(subject):
                run = lambda reads: [run_step(JAX, s, in_jax(subject, read)) for s, read in zip(steps, reads)]
                return jax.block_until_ready(jax.jit(run)(operands))
        except Exception:
            return [self.result_alone(subject, step, read) for step, read in zip(steps, operands)]

    @contextlib.contextmanager
    def within_jax(self, subject):
        """Notes that JAX runs: a crash or a hang is its own."""
        subject.report.begin([subject.seed, "JAX"])
        try:
            yield
        finally:
            subject.report.begin(subject.seed)

    def alone(self, subject, step, read):
        """JAX's results of one step, outside of `jit`."""
        with self.within_jax(subject):
            return jax.block_until_ready(run_step(JAX, step, in_jax(subject, read)))

    def result_alone(self, subject, step, read):
        try:
            return self.alone(subject, step, read)
        except NOT_IN_JAX as error:
            subject.report.count(f"explained: JAX has no answer ({type(error).__name__})")
            return None
        except Exception as error:
            if "Unsupported elementwise operation" in str(error):
                subject.report.count("explained: XLA has no such operation")
                return None
            if "must be integers of the same type" in str(error):
                subject.report.count("explained: starts of several dtypes")
                return None
            sign = f"{operation_names(step.code)} {type(error).__name__}"
            subject.fail("JAX raises", sign, str(error)[:300], self.text(subject, step, read))
            return None

    def text(self, subject, step, read):
        """A step with its operands, small ones in full."""
        lines = [
            f"# {name}: {'weak ' if name in subject.weak else ''}{v.dtype}{list(v.shape)} "
            f"{v.tolist() if v.size <= 12 else ''}"
            for name, v in read.items()
        ]
        return "\n".join([*lines, step.code]) + "\n"

    def compare_step(self, subject, step, read, ours, theirs):
        subject.report.count("steps against JAX")
        operands = Operands(list(read.values()), step.family in PRODUCTS)
        for i, own in enumerate(ours):
            if disagreement(own, theirs[i], step.tolerance, operands) is None or rounded_to_integer(step, own):
                continue
            eager = self.alone(subject, step, read)
            why = disagreement(own, eager[i], step.tolerance, operands)
            reason = "JAX's jit alone differs" if why is None else expected(step, read, own, eager[i])
            reason = reason or self.nearer_in_double(subject, step, read, i, own, eager[i], operands)
            if reason:
                subject.report.count(f"explained: {reason}")
                continue
            sign = f"{operation_names(step.code)} {why.split(' ')[0]}"
            subject.fail("JAX", sign, f"{step.outs[i]}: {why}", self.text(subject, step, read))
            return

    def nearer_in_double(self, subject, step, read, i, own, theirs, operands):
        """What JAX in double precision says for our result; None where nothing.

        Truth values and integers count as well: they may come of numbers that XLA takes for zeros, or of rounded ones.
        """
        wide = {name: in_double(value) for name, value in read.items()}
        try:
            with jax.enable_x64(True):
                exact = np.asarray(self.alone(subject, step, wide)[i])
        except Exception:
            return None
        if disagreement(own, exact.astype(own.dtype), step.tolerance, operands) is None:
            return "JAX in double precision agrees"
        if kind(own.dtype) not in "fc" or exact.shape != own.shape:
            return None
        # Elements of some layers are products of sums that cancel, each as exact as its terms. Loops make errors grow,
        # and numbers, beyond the range: infinities of both signs may meet there.
        whole = step.tolerance in (Tolerance.LAYER, Tolerance.LOOP)
        known = excused(own, theirs, exact, TIMES_JAX_IN_STEPS, whole).astype(own.dtype)
        if step.tolerance is Tolerance.LOOP:
            beyond = ~np.isfinite(np.asarray(own)) & ~np.isfinite(exact.astype(own.dtype))
            known = np.where(beyond, own, known)
        if disagreement(own, known, step.tolerance, operands) is None:
            return "JAX is as far from its result in double precision"
        return None

    def compare_refusal(self, subject, refusal):
        """A step that ferrax refused: JAX refuses it too, with the same class of error."""
        step = refusal.step
        read = {name: np.asarray(subject.env[name]) for name in step.reads if name in subject.env}
        ours = signature(refusal.error)
        try:
            self.alone(subject, step, read)
        except Exception as error:
            subject.report.count("refused by both")
            if not isinstance(refusal.error, PLAIN) and not same_class(refusal.error, error):
                subject.fail(
                    "class of error", ours, f"{refusal.error}\nJAX: {signature(error)}", self.text(subject, step, read)
                )
            return
        if NOT_IN_FERRAX.search(str(refusal.error)):
            subject.report.count("explained: a derivative that is not there yet")
            return
        subject.fail(
            "refused by ferrax alone",
            f"{operation_names(step.code)} {ours}",
            str(refusal.error),
            self.text(subject, step, read),
        )

    def gradient(self, subject, chosen, convert=lambda value: value):
        function = subject.program.function(JAX)
        with self.within_jax(subject):
            args = [jnp.asarray(convert(value)) for value in subject.program.inputs.values()]
            return jax.block_until_ready(jax.grad(weighted_sum(JAX, function), chosen)(*args))

    def gradient_in_double(self, subject, chosen):
        """JAX's gradient of a program whose arguments are in double precision; none where that is another program."""
        try:
            with jax.enable_x64(True):
                return self.gradient(subject, chosen, in_double)
        except Exception:
            return [np.nan] * len(chosen)

    def refused_gradient(self, subject, chosen, error):
        """A gradient that ferrax refused in every mode."""
        if subject.rng.random() > 2 * self.share or NOT_IN_FERRAX.search(str(error)):
            return
        try:
            self.gradient(subject, chosen)
        except Exception:
            subject.report.count("gradient refused by both")
            return
        subject.fail("gradient refused by ferrax alone", signature(error), str(error))

    def compare_gradients(self, subject, chosen, ours):
        """Gradients of a whole program, of ordinary numbers, to a few digits."""
        if subject.rng.random() > self.share / 4 or subject.program.awkward:
            return
        if NO_COMPONENTS.search(subject.program.source()):
            subject.report.count("explained: updates whose index vectors have no components")
            return
        try:
            theirs = self.gradient(subject, chosen)
        except Exception:
            subject.report.count("gradient refused by JAX")
            return
        subject.report.count("gradients against JAX")
        sign = operation_names(subject.program.steps[-1].code)
        why = self.differing_gradients(subject, chosen, ours, theirs)
        if not why:
            return
        check, text = why
        if check == "finiteness of gradients" and DECOMPOSED.search(subject.program.source()):
            subject.report.count("explained: a decomposition with equal values")
        elif check == "finiteness of gradients" and any(has_subnormals(v) for v in subject.env.values()):
            subject.report.count("explained: XLA takes a subnormal number on the way for zero")
        elif check == "gradients against JAX" and EQUAL_NUMBERS.search(subject.program.source()):
            subject.report.count("explained: slopes of equal numbers")
        elif reason := self.nearer_gradient(subject, chosen, ours, theirs):
            subject.report.count(f"explained: {reason}")
        else:
            subject.fail(check, sign, text)

    def nearer_gradient(self, subject, chosen, ours, theirs):
        """What JAX's gradient in double precision says for ours; None where nothing.

        Slopes may cancel altogether, as those of a sum of softmax: what is left is rounding, on both sides.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            # in our own dtype, whose numbers end where others do not
            pairs = zip(ours, self.gradient_in_double(subject, chosen), strict=True)
            exact = [np.asarray(e).astype(np.asarray(o).dtype) for o, e in pairs]
        if not self.differing_gradients(subject, chosen, ours, exact):
            return "JAX's gradient in double precision agrees"
        known = [excused(a, b, e, TIMES_JAX_IN_GRADIENTS, whole=True) for a, b, e in zip(ours, theirs, exact)]
        if not self.differing_gradients(subject, chosen, ours, known):
            return "JAX's gradient is as far from that in double precision"
        return None

    def differing_gradients(self, subject, chosen, ours, theirs):
        """How two gradients differ; None where they agree to a few digits, or are too large to tell."""
        allowed = 0.1 if subject.narrow() else 2e-3
        for i, a, b in zip(chosen, ours, theirs):
            a, b = (np.asarray(g).astype(np.float64) for g in (a, b))
            finite = np.isfinite(a) & np.isfinite(b)
            other = np.isfinite(a) != np.isfinite(b)
            # no slope at all on one side, zero times one that is not finite on the other
            other &= np.where(np.isfinite(a), a, b) != 0
            if other.any():
                return "finiteness of gradients", f"argument {i}: {a[other][:3]}, not {b[other][:3]}"
            size = max(np.abs(b[finite]).max(initial=0), LEAST)
            far = np.abs(a[finite] - b[finite]) > allowed * (np.abs(b[finite]) + size)
            if size < LARGEST and finite.all() and far.any():
                worst = a[finite][far][:2], b[finite][far][:2]
                return "gradients against JAX", f"argument {i}: {worst[0]}, not {worst[1]}, of {size}"
        return None


def in_double(value):
    """Floats and complex numbers in double precision, others as they are."""
    wide = DOUBLE.get(kind(value.dtype))
    return value.astype(wide) if wide else value


def spread_by_hand(step, read):
    """JAX's result of windows over elements with gaps where these are filled before; None for other steps."""
    found = SPREAD_WINDOWS.search(step.code)
    if found is None:
        return None
    operand, initial, rest, gaps, window = found.groups()
    gaps = ast.literal_eval(gaps)
    if set(gaps) == {1}:
        return None
    filled = f"lax.pad({operand}, {initial}, {[(0, 0, n - 1) for n in gaps]})"
    code = f"lax.reduce_window({filled}, {initial}, {rest}, *[{(1,) * len(gaps)}, {window}])"
    (out,) = step.outs
    return np.asarray(
        run_step(JAX, replace(step, code=f"{out} = {code}"), {n: jnp.asarray(v) for n, v in read.items()})[0]
    )


def incomplete_gamma(step, read):
    """SciPy's result of an incomplete gamma function, in double precision; None for other steps."""
    if INCOMPLETE_GAMMA.search(step.code) is None:
        return None
    wide = lambda function: lambda a, x: function(a.astype(np.float64), x.astype(np.float64))
    functions = SimpleNamespace(igamma=wide(scipy.special.gammainc), igammac=wide(scipy.special.gammaincc))
    return run_step({"jnp": np, "lax": functions, "np": np}, step, read)[0]


def expected(step, read, result, theirs):
    """Why a step's results differ on purpose (docs/differences.md and docs/numerics.md); None where they should not."""
    values = [np.asarray(v) for v in read.values()]
    wide = [v for v in values if v.dtype in (np.uint32, np.int64, np.uint64) and v.size]
    if any(v.max() >= 2**31 or v.min() < -(2**31) for v in wide) and re.search(r"[vx]\d+(\.at)?\[", step.code):
        return "indices beyond int32"
    if "mode='fill'" in step.code and any(too_narrow_to_count(i, v) for i in values for v in values):
        return "indices of a type that cannot count the axis"
    if NO_COMPONENTS.search(step.code):
        return "updates whose index vectors have no components"
    if NARROWED.search(step.code) and disagreement(result, theirs, Tolerance.ROUNDED, Operands([])) is None:
        return "JAX rounds twice on the way to a narrow float"
    spread = spread_by_hand(step, read)
    if spread is not None and disagreement(result, spread, step.tolerance, Operands(values)) is None:
        return "JAX reads wrong elements under windows over elements with gaps"
    exact = incomplete_gamma(step, read)
    if exact is not None and disagreement(result, exact.astype(result.dtype), step.tolerance, Operands(values)) is None:
        return "JAX loses incomplete gamma functions of large parameters"
    if "jax.jvp" in step.code and EXTREMES_AT_CLIPPED.search(step.code):
        known = np.where(np.isnan(theirs), result, theirs)
        if disagreement(result, known, step.tolerance, Operands(values)) is None:
            return "JAX's slopes of extremes at clipped indices are no numbers"
    if LEAVES_INITIAL_VALUES_OUT.search(step.code) and any(1 in v.shape for v in values):
        return "JAX leaves the initial value of a reduction over axes of one element out"
    turns = [np.abs(v.imag).max(initial=0, where=np.isfinite(v.imag)) for v in values if kind(v.dtype) == "c"]
    if turns and max(turns) > 1e5 and re.search("exp2|power", step.code):
        return "turns of complex powers beyond their precision"
    if running := RUNNING_PRODUCT.search(step.code):
        name, axis, reverse = running.groups()
        lost = products_below(np.asarray(read[name]), int(axis), reverse == "True")
        known = np.where(lost, result, theirs).astype(result.dtype)
        if disagreement(result, known, step.tolerance, Operands(values)) is None:
            return "products below the normal numbers lose digits"
    if "jnp.i0(" in step.code and result.dtype == np.float64:
        return "JAX's i0 overflows early"
    nans = [np.isnan(v) for v in values if kind(v.dtype) in "fc"]
    if not any(n.any() for n in nans):
        return None
    if "top_k" in step.code:
        return "NaNs with a sign"
    if kind(result.dtype) == "c" and re.search(r"max|min", step.code):
        return "the largest of complex numbers with NaNs"
    if re.search(r"jnp\.(max|min|ptp)\(", step.code) and np.isnan(result).any():
        return "JAX drops a NaN from a largest or smallest number"
    return None


def too_narrow_to_count(indices, value):
    """Whether an axis is longer than the signed type of the indices counts: JAX wraps its length."""
    return kind(indices.dtype) == "i" and max(value.shape, default=0) > np.iinfo(indices.dtype).max


def has_subnormals(value):
    value = np.asarray(value)
    return kind(value.dtype) in "fc" and not same_bits(without_subnormals(value), value)


def same_class(ours, theirs):
    """Whether an error is of JAX's class, or of one of the same name."""
    return isinstance(ours, type(theirs)) or type(ours).__name__ == type(theirs).__name__
