"""Random programs as text: steps over named arrays, run by ferrax and by JAX alike.

A program's text uses the names jax, jnp, lax and np, and its inputs. Next: `generator.py`.
"""

import dataclasses
import enum
import re

import numpy as np

from tests.fuzz.values import kind

#: Names that a generator gives to inputs (x) and results (v); parameters and functions in bodies have other letters.
NAME = re.compile(r"\b[xv]\d+\b")
#: The most elements of an input that a script spells out.
LITERAL_SIZE = 64
#: Tests draw seeds below this one.
SEEDS = 1_000_000


class Tolerance(enum.Enum):
    """How far an operation's results may be from JAX's; `compare.py` says what each allows."""

    EXACT = "exact"
    #: One operation more than there has to be.
    ROUNDED = "rounded"
    ELEMENTWISE = "elementwise"
    #: Elementwise functions that cross zero where their terms cancel.
    CANCELLING = "cancelling"
    SUM = "sum"
    PRODUCT = "product"
    SQUARES = "squares"
    LAYER = "layer"
    FOURIER = "fourier"
    LINALG = "linalg"
    LOOSE = "loose"
    LOOP = "loop"
    #: Integers and shapes alone: ties that either side may break, values that JAX does not end with.
    UNCOMPARED = "uncompared"


@dataclasses.dataclass
class Step:
    """Lines of a program that define the names `outs`."""

    code: str
    outs: list
    tolerance: Tolerance
    family: str = ""
    variables: list = dataclasses.field(default_factory=list)

    @property
    def reads(self):
        """The inputs and earlier results that the lines use."""
        return sorted(set(NAME.findall(self.code)) - set(self.outs))


@dataclasses.dataclass
class Refusal:
    """A step that ferrax did not take."""

    step: Step
    error: Exception
    pool: list
    inner: bool


def run_step(namespace, step, operands):
    """The results of a step's text, in order."""
    scope = {**namespace, **operands}
    exec(step.code, scope)
    return [scope[name] for name in step.outs]


def rounded_to_integer(step, result):
    """Whether a loop's integers come from floats, whose rounding may decide on the next one."""
    return step.tolerance is Tolerance.LOOP and ".astype(" in step.code and kind(result.dtype) in "biu"


def indent(lines):
    return "".join(f"    {line}\n" for line in lines)


def array_literal(value):
    """An expression for a small array, with its bits."""
    value = np.asarray(value)
    dtype = "jnp.bfloat16" if str(value.dtype) == "bfloat16" else repr(str(value.dtype))
    return f'np.frombuffer(bytes.fromhex("{value.tobytes().hex()}"), {dtype}).reshape({value.shape})'


@dataclasses.dataclass
class Program:
    """Inputs, steps and the names of the results."""

    seed: int
    x64: bool
    inputs: dict = dataclasses.field(default_factory=dict)
    steps: list = dataclasses.field(default_factory=list)
    outs: list = dataclasses.field(default_factory=list)
    awkward: bool = False
    modes: tuple = None

    def source(self, outs=None):
        """The text of the function `program`."""
        lines = [line for step in self.steps for line in step.code.split("\n")]
        results = "".join(f"{name}, " for name in outs or self.outs)
        return f"def program({', '.join(self.inputs)}):\n{indent([*lines, f'return ({results})'])}"

    def function(self, namespace, outs=None):
        """The function, over the modules of `namespace`."""
        scope = dict(namespace)
        exec(self.source(outs), scope)
        return scope["program"]

    def script(self):
        """A program to run alone: it prints eager and jitted results side by side."""
        head = ["import numpy as np", "import ferrax as jax", "import ferrax.numpy as jnp", "from ferrax import lax"]
        if self.x64:
            head.append('jax.config.update("jax_enable_x64", True)')
        if any(value.size > LITERAL_SIZE for value in self.inputs.values()):
            head += [
                "from tests.fuzz.generator import drawn_values",
                f"drawn = drawn_values({self.seed}, {self.x64}, {self.modes})",
            ]
        args = [
            f"{name} = jnp.asarray({array_literal(value) if value.size <= LITERAL_SIZE else f'drawn[{name!r}]'})"
            for name, value in self.inputs.items()
        ]
        names = "".join(f"{name}, " for name in self.inputs)
        both = f"zip({self.outs}, program(*args), jax.jit(program)(*args))"
        tail = [f"args = ({names})", f"for name, eager, jitted in {both}:"]
        tail.append("    print(name, eager.dtype, eager, jitted, sep='\\n')")
        return "\n".join([*head, "", self.source(), *args, *tail]) + "\n"

    def last_step(self, out):
        """The step that defines a name."""
        return next((step for step in self.steps if out in step.outs), None)


def operation_names(code):
    """The operations of a step's last line, by which failures are told apart."""
    last = code.split("\n")[-1]
    names = re.findall(r"(?:jnp|lax|jax)\.[\w.]+|\.at\[[^]]*\]\.\w+|\.\w+\(", last)
    return ",".join(re.sub(r"\[.*\]", "[]", name) for name in names[:3]) or re.sub(r"\w\d+", "v", last)[:60]
