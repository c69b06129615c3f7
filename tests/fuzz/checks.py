"""What is asked of every program: the same bits under jit, donation and vmap, derivatives that agree.

`Checks.run(seed)` draws a program and puts the questions to it, the costly ones to a share of the programs.
Comparison with JAX is in `oracle.py`.
"""

import random
import re

import numpy as np

import ferrax
import ferrax.numpy as jnp
from tests.fuzz.compare import PRODUCTS, Operands, describe, disagreement, same_bits
from tests.fuzz.generator import FERRAX, Generator
from tests.fuzz.minimize import minimized
from tests.fuzz.program import Program, Tolerance, operation_names
from tests.fuzz.report import Failure
from tests.fuzz.values import kind

#: Errors that say that the library is wrong, not the program.
OUR_FAULT = (SystemError, RuntimeError, AssertionError, MemoryError, NameError, AttributeError, KeyError)
#: Errors that a derivative may answer with, in every mode alike.
REFUSALS = (TypeError, ValueError, NotImplementedError)
#: Texts of the operations of which a vmap may differ from its rows in the last bits (docs/numerics.md).
BATCHED_OTHERWISE = re.compile(r"@|matmul|dot|fft|einsum|tensordot|outer|kron|linalg|convol|conv_general")
#: Loops that stack their bodies' results: under vmap these have the mapped axis second, and sums of them another order.
STACKED = re.compile(r"lax\.(scan|map)\(")
#: The same inside of a body, where the sums are part of one step.
STACKED_INSIDE = re.compile(r"^ +.*lax\.(scan|map)\(", re.MULTILINE)
#: The rewrites of docs/rewrites.md that may change bits meet this.
REWRITTEN = re.compile(r"log|astype|convert_element_type")
#: Operations with kinks or jumps, at which a jvp and a vjp may choose other slopes, and a rounding of the slopes.
KINKED = re.compile(
    r"jnp.array|standardize|mean|var|std|select_n|sort|max|min|median|quantile|unique|nextafter|spacing|reduce_precision"
)


def signature(error):
    return f"{type(error).__name__} {str(error)[:80]}"


class Checks:
    """The questions, over one report.

    Args:
        report: where failures go.
        x64: whether programs have 64-bit types.
        gradients: the share of programs that are differentiated.
        oracle: an `Oracle`, None to leave JAX out.
        modes: size classes and their weights, None for the usual ones.
    """

    def __init__(self, report, x64=False, gradients=0.3, oracle=None, modes=None):
        self.report, self.x64, self.gradients, self.oracle, self.modes = report, x64, gradients, oracle, modes

    def run(self, seed):
        """Draws the program of a seed and checks it."""
        self.report.count("programs")
        generator = Generator(seed, self.x64, self.modes)
        program = generator.draw()
        self.refusals(seed, generator)
        if not program.steps:
            return
        subject = Subject(self, program, generator)
        share = random.Random(f"share {seed}").random
        if not subject.jitted():
            return
        if share() < 0.3:
            subject.every_result()
        if share() < 0.3:
            subject.donated()
        if share() < 0.25:
            subject.mapped()
        if share() < self.gradients:
            subject.differentiated()
        if self.oracle is not None and share() < self.oracle.share:
            self.oracle.compare(subject)

    def refusals(self, seed, generator):
        """Steps that ferrax did not take: its errors must be about the step."""
        for refusal in generator.refusals:
            if isinstance(refusal.error, MemoryError) and str(refusal.error).startswith("out of memory"):
                self.report.count("explained: an array too large for the process")
                continue
            fault = isinstance(refusal.error, OUR_FAULT) and not isinstance(refusal.error, NotImplementedError)
            if fault or type(refusal.error).__name__ == "InternalError":
                operands = ", ".join(f"{v.name}: {v.dtype}{list(v.shape)}" for v in refusal.pool)
                text = f"{refusal.step.code}\n# {operands}"
                self.report.fail(Failure("error", seed, signature(refusal.error), str(refusal.error), text))


class Subject:
    """One program with its eager results."""

    def __init__(self, checks, program, generator):
        self.checks, self.report, self.program = checks, checks.report, program
        self.seed, self.env, self.refusals = program.seed, generator.env, generator.refusals
        self.weak = {name for name, value in self.env.items() if getattr(value, "weak_type", False)}
        self.rng = random.Random(f"checks {program.seed}")
        self.function = program.function(FERRAX)
        self.args = [jnp.asarray(value) for value in program.inputs.values()]
        self.expected = [self.env[name] for name in program.outs]

    def fail(self, check, sign, why, script=None):
        if self.report.wants(check, sign) and script is None:
            script = self.program.script()
        self.report.fail(Failure(check, self.seed, sign, why, script or ""))

    def narrow(self):
        """Whether some number may have 16 bits."""
        return "16" in self.program.source() or any("16" in str(a.dtype) for a in self.args)

    def raised(self, check, error):
        self.fail(check, signature(error), str(error))

    def agree(self, check, results, expected, names):
        """Whether results have the bits expected; a failure comes with the least program that shows it."""
        for result, value, name in zip(results, expected, names):
            if same_bits(result, value):
                continue
            if self.rewritten(name, value):
                self.report.count("explained: a rewrite")
                continue
            step = self.program.last_step(name)
            sign = operation_names(step.code) if step else name
            script = None
            if self.report.wants(check, sign):
                script = minimized(self.program, self.env, name).script()
            self.fail(check, sign, f"{name}: {describe(result, value)}", script)
            return False
        return True

    def rewritten(self, name, value, rows=None, axes=None):
        """Whether the difference is one of docs/rewrites.md: gone under strict numerics, in every row if mapped."""
        if not REWRITTEN.search(self.program.source()):
            return False
        function = self.program.function(FERRAX, [name])
        with ferrax.strict_numerics(True):
            if rows is None:
                return same_bits(ferrax.jit(function)(*self.args)[0], value)
            strict = ferrax.jit(ferrax.vmap(function, in_axes=tuple(axes)))(*rows)[0]
        return all(same_bits(row, value) for row in np.asarray(strict))

    def spoil_memory(self):
        """Fills what the allocator hands out next, so that what is read before it is written shows."""
        sizes = {v.size * width // 4 for step in self.program.steps for v in step.variables for width in (1, 2, 4)}
        for number in (7.0, float("nan")):
            spoilt = [jnp.full(max(1, n), number, jnp.float32) for n in sizes if n < 1_000_000 for _ in range(3)]
            del spoilt

    def jitted(self):
        """Eager bits under jit, twice, and arguments as they were."""
        try:
            compiled = ferrax.jit(self.function)
            for check in ("jit", "jit, second call"):
                self.spoil_memory()
                if not self.agree(check, compiled(*self.args), self.expected, self.program.outs):
                    return False
        except Exception as error:
            self.raised("jit raises", error)
            return False
        for (name, value), arg in zip(self.program.inputs.items(), self.args):
            if not same_bits(value, arg):
                self.fail("argument changed", name, describe(arg, value))
        return True

    def every_result(self):
        """All steps' results at once: nothing is fused away."""
        names = [name for step in self.program.steps for name in step.outs]
        try:
            results = ferrax.jit(self.program.function(FERRAX, names))(*self.args)
            self.agree("jit, every result", results, [self.env[name] for name in names], names)
        except Exception as error:
            self.raised("jit of every result raises", error)

    def donated(self):
        """Some arguments given away; the others are as they were."""
        given = tuple(i for i in range(len(self.args)) if self.rng.random() < 0.6)
        copies = [jnp.array(value) for value in self.program.inputs.values()]
        try:
            results = ferrax.jit(self.function, donate_argnums=given)(*copies)
            self.agree("donation", results, self.expected, self.program.outs)
        except Exception as error:
            self.raised("donation raises", error)
            return
        for i, (copy, value) in enumerate(zip(copies, self.program.inputs.values())):
            if i not in given and not same_bits(copy, value):
                self.fail("donation changed an argument", str(i), describe(copy, value))

    def mapped(self):
        """Equal rows under vmap give the eager result in each."""
        count = self.rng.choice([1, 2, 3, 5])
        axes = [self.rng.choice([0, 0, 0, None, -1]) for _ in self.args]
        if all(axis is None for axis in axes):
            axes[0] = 0
        rows = [a if i is None else jnp.moveaxis(jnp.stack([a] * count), 0, i) for a, i in zip(self.args, axes)]
        try:
            results = ferrax.jit(ferrax.vmap(self.function, in_axes=tuple(axes)))(*rows)
        except Exception as error:
            self.raised("vmap raises", error)
            return
        self.report.count("vmap")
        for name, result, value in zip(self.program.outs, results, self.expected):
            if result.shape != (count, *value.shape) or result.dtype != value.dtype:
                self.fail("vmap type", operation_names(self.program.last_step(name).code), describe(result, value))
                return
        self.rows_agree(results, rows, axes)

    def rows_agree(self, results, rows, axes):
        """Whether every row of every result has the eager bits; else whether each step explains its own difference."""
        for name, result in zip(self.program.outs, results):
            value = np.asarray(self.env[name])
            row = next((row for row in np.asarray(result) if not same_bits(row, value)), None)
            if row is None or (self.batched_otherwise(axes) and self.steps_agree()):
                continue
            if self.rewritten(name, value, rows, axes):
                self.report.count("explained: a rewrite")
                continue
            sign = operation_names(self.program.last_step(name).code)
            self.fail("vmap", sign, f"{name}: {describe(row, value)}", f"{self.program.script()}# in_axes={axes}")
            return

    def batched_otherwise(self, axes):
        """Whether rows may be computed in another order: products, and sums when the mapped axis is not the first."""
        steps = self.program.steps
        return -1 in axes or any(BATCHED_OTHERWISE.search(s.code) or STACKED.search(s.code) for s in steps)

    def steps_agree(self):
        """Each step alone on two equal rows of its operands: the eager bits, or close where sums have another order."""
        for step in self.program.steps:
            names = [name for name in step.reads if name in self.env]
            run = Program(self.seed, self.program.x64, dict.fromkeys(names), [step], step.outs).function(FERRAX)
            values = [self.env[name] for name in names]
            results = ferrax.jit(ferrax.vmap(run))(*[jnp.stack([a, a]) for a in values]) if names else []
            for name, result in zip(step.outs, results):
                row, value = np.asarray(result)[1], np.asarray(self.env[name])
                if same_bits(row, value):
                    continue
                why = f"{name}: {describe(row, value)}"
                if BATCHED_OTHERWISE.search(step.code) or STACKED_INSIDE.search(step.code):
                    self.report.count("explained: a product or sum in another order under vmap")
                    why = disagreement(row, value, step.tolerance, Operands(values, step.family in PRODUCTS))
                if why:
                    self.fail("vmap of a step", operation_names(step.code), why)
                    return False
        return True

    def differentiated(self):
        """Gradients eagerly and under jit, jvp against vjp, and against JAX's."""
        chosen = tuple(i for i, a in enumerate(self.args) if kind(a.dtype) == "f")
        if not chosen or not any(kind(self.env[name].dtype) in "fc" for name in self.program.outs):
            return
        Gradients(self, chosen).check()


def weighted_sum(namespace, function):
    """A real number of all floating results of a program."""
    jnp = namespace["jnp"]

    def loss(*args):
        total = 0.0
        for k, out in enumerate(function(*args)):
            if jnp.issubdtype(out.dtype, jnp.complexfloating):
                out = jnp.real(out) + 0.5 * jnp.imag(out)
            if jnp.issubdtype(out.dtype, jnp.floating):
                total = total + (k + 1) * jnp.sum(out.astype(jnp.float32))
        return total

    return loss


def apart(slope, other, size, relative):
    """Whether two slopes are numbers and differ by more than a share of their terms."""
    allowed = relative * (size + abs(slope) + 1e-3)
    return np.isfinite(other) and np.isfinite(slope) and abs(other - slope) > allowed


class Gradients:
    """Derivatives of one program by its floating arguments."""

    def __init__(self, subject, chosen):
        self.subject, self.chosen = subject, chosen
        self.report, self.args = subject.report, subject.args
        self.loss = weighted_sum(FERRAX, subject.function)

    def attempt(self, check, function, *args):
        """A result or the refusal; None after an error of ours."""
        try:
            return function(*args)
        except REFUSALS as error:
            return error
        except Exception as error:
            self.subject.raised(check, error)
            return None

    def check(self):
        gradient = ferrax.grad(self.loss, self.chosen)
        eager = self.attempt("grad raises", gradient, *self.args)
        jitted = self.attempt("jit of grad raises", ferrax.jit(gradient), *self.args)
        if eager is None or jitted is None:
            return
        self.report.count("gradients")
        oracle = self.subject.checks.oracle
        if isinstance(eager, Exception) or isinstance(jitted, Exception):
            if type(eager) is not type(jitted):
                self.subject.fail("grad refused in one mode", f"{eager!s:.80} {jitted!s:.80}", f"{eager}\n{jitted}")
            elif oracle is not None:
                oracle.refused_gradient(self.subject, self.chosen, eager)
            return
        for i, a, b in zip(self.chosen, eager, jitted):
            self.compare_modes(i, np.asarray(a), np.asarray(b))
        if self.subject.rng.random() < 0.5:
            self.forward_and_backward(eager)
        if oracle is not None:
            oracle.compare_gradients(self.subject, self.chosen, eager)

    def compare_modes(self, i, eager, jitted):
        arg = self.args[i]
        if eager.shape != arg.shape or eager.dtype != arg.dtype:
            self.subject.fail("grad type", str(i), describe(eager, np.asarray(arg)))
        if same_bits(eager, jitted):
            return
        self.report.count("gradients in other bits under jit")
        why = disagreement(jitted, eager, Tolerance.LOOP, Operands([arg]))
        size = np.abs(eager.astype(np.float64)).max(initial=0)
        if why and np.isfinite(size) and size < 1e6:
            self.subject.fail("jit of grad", f"argument {i} {why[:10]}", why)

    def forward_and_backward(self, gradient):
        """The slope along a random direction, from a jvp and from the gradient."""
        subject = self.subject
        narrow = subject.narrow()
        found = self.slopes(self.args, gradient)
        if found is None:
            return
        self.report.count("jvp")
        if not apart(*found, 0.2 if narrow else 5e-3) or KINKED.search(subject.program.source()):
            return
        if self.out_of_range():
            self.report.count("explained: slopes of clamped indices")
            return
        slope, other, size = found
        if self.agree_in_wide_floats(slope - other):
            self.report.count("explained: slopes that cancel in few bits")
            return
        if self.cancel(slope - other):
            self.report.count("explained: slopes of outputs that cancel")
            return
        sign = operation_names(subject.program.steps[-1].code)
        subject.fail("jvp and vjp", sign, f"jvp {slope}, vjp {other} of terms of {size}")

    def along(self, function, args):
        """The tangents of a function's outputs along a random direction of the chosen arguments, and the direction."""
        directions = np.random.default_rng(self.subject.seed)
        tangents = tuple(jnp.asarray(directions.normal(size=args[i].shape)).astype(args[i].dtype) for i in self.chosen)

        def chosen_alone(*values):
            every = list(args)
            for i, value in zip(self.chosen, values):
                every[i] = value
            return function(*every)

        return ferrax.jvp(chosen_alone, tuple(args[i] for i in self.chosen), tangents)[1], tangents

    def slopes(self, args, gradient):
        """The slope from a jvp, that from the gradient, and the size of its terms; None where there is no jvp."""
        found = self.attempt("jvp raises", lambda: self.along(self.loss, args))
        if found is None or isinstance(found, Exception):
            if found is not None:
                self.subject.raised("jvp refused", found)
            return None
        slope, tangents = found
        products = [
            np.asarray(g).astype(np.float64) * np.asarray(t).astype(np.float64) for g, t in zip(gradient, tangents)
        ]
        other, size = (sum(float(f(p).sum()) for p in products) for f in (np.positive, np.abs))
        return float(slope), other, size

    def cancel(self, difference):
        """Whether a difference of slopes is rounding: the loss adds up slopes of outputs, often large, in 32 bits."""
        outputs, _ = self.along(self.subject.function, self.args)
        sizes = (np.abs(np.asarray(t)).astype(np.float64) for t in outputs if jnp.issubdtype(t.dtype, jnp.inexact))
        return abs(difference) < 2.0**-20 * sum(float(size.sum()) for size in sizes)

    def agree_in_wide_floats(self, difference):
        """Whether both slopes agree where arguments have twice the bits, or whether they differ by rounding.

        Terms may cancel inside of the function, as those of `x / x`: then a slope is rounding alone, and its terms say
        nothing of its error. With more bits, a difference that is rounding is as many times smaller, and no other is.
        """
        wide = {"float16": "float32", "bfloat16": "float32", "float32": "float64"}
        try:
            with ferrax.enable_x64(True):
                args = [a.astype(wide.get(a.dtype.name, a.dtype)) for a in self.args]
                found = self.slopes(args, ferrax.grad(self.loss, self.chosen)(*args))
        except Exception:
            return False
        return found is not None and (not apart(*found, 5e-3) or abs(found[0] - found[1]) < 2.0**-7 * abs(difference))

    def out_of_range(self):
        """Whether some index is out of range: reading clamps it, and a gradient leaves it out, as in JAX."""
        try:
            with ferrax.check_indices():
                self.loss(*self.args)
        except IndexError:
            return True
        return False
