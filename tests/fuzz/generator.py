"""Draws random programs. The shapes of results are learnt by running each step eagerly as it is drawn.

A seed gives the same program for the same version of these files. The families of operations are in
`operations/`; each is a function of the generator and of the variables so far, and returns a step or None.
"""

import random

import numpy as np

import ferrax
import ferrax.numpy as jnp
from ferrax import lax
from tests.fuzz.operations import INNER_WEIGHTS, LARGE_WEIGHTS, OUTER_WEIGHTS
from tests.fuzz.program import Program, Refusal, Step
from tests.fuzz.values import LIMITS, NARROW, WIDE, Variable, draw_shape, draw_values, variable

#: The modules that a program's text names.
FERRAX = {"jax": ferrax, "jnp": jnp, "lax": lax, "np": np}

MAIN_DTYPES = ["float32", "float32", "float32", "float32", "int32", "bfloat16", "float16", "complex64", None]
BODY_LIMIT = 3000
#: Size classes and how often they are drawn.
USUAL_MODES = ["tiny", "odd", "wide", "huge", "large", "rows"], [40, 30, 13, 6, 3, 8]


class Generator:
    """The state while one program is drawn.

    `env` holds the value of every name, `limit` the most elements of a value, `depth` how many bodies are around.
    """

    def __init__(self, seed, x64, modes=None):
        self.rng = random.Random(seed)
        self.seed, self.x64 = seed, x64
        self.env = dict(FERRAX)
        self.modes = modes
        self.mode = self.rng.choices(*(modes or USUAL_MODES))[0]
        self.awkward = self.rng.random() < 0.4
        self.limit = LIMITS[self.mode]
        self.depth = 0
        self.names = 0
        self.refusals = []

    def fresh(self, letter="v"):
        self.names += 1
        return f"{letter}{self.names}"

    def expression(self, text, tolerance):
        """A step that names one expression."""
        name = self.fresh()
        return Step(f"{name} = {text}", [name], tolerance)

    def pick(self, pool, condition=lambda v: True):
        """A variable for which the condition holds, newer ones more often."""
        found = [v for v in pool if condition(v)]
        if not found:
            return None
        return self.rng.choice(found[-4:] if self.rng.random() < 0.6 else found)

    def alike(self, pool, v):
        """A variable of the same shape and dtype as `v`, or `v`."""
        return self.rng.choice([w for w in pool if w.shape == v.shape and w.dtype == v.dtype] or [v])

    def dtype(self):
        return self.rng.choice(WIDE if self.x64 else NARROW)

    def literal(self, v):
        """A Python number that suits the dtype of `v`."""
        if v.kind == "b":
            return self.rng.choice(["True", "False"])
        if v.kind in "iu":
            return str(self.rng.choice([0, 1, 2, 3, 7, 5, 100]))
        return self.rng.choice(["0.5", "2.0", "-1.25", "3", "0.0", "1e-3", "1.0"])

    def bind(self, letter, expression):
        """A new name with the value of an expression: a body's parameter while the body is drawn."""
        name = self.fresh(letter)
        self.env[name] = eval(expression, self.env)
        return variable(name, self.env[name])

    def body(self, parameters, count, extra=()):
        """Lines over `parameters`, and what they leave to choose results from."""
        pool, lines, limit = [*parameters, *(v for v in extra if v.size <= 2000)], [], self.limit
        self.limit = BODY_LIMIT
        for _ in range(count):
            step = self.step(pool, inner=True)
            if step is not None:
                lines += step.code.split("\n")
                pool += step.variables
        self.limit = limit
        return lines, pool

    def step(self, pool, inner=False):
        """A step that runs, None where eight attempts gave none."""
        outer = LARGE_WEIGHTS if self.mode == "large" else OUTER_WEIGHTS
        families, weights = zip(*(INNER_WEIGHTS if inner else outer).items())
        for _ in range(8):
            family = self.rng.choices(families, weights)[0]
            step = family(self, pool)
            if step is not None:
                step.family = family.__name__
                if self.run(step, pool, inner):
                    return step
        return None

    def run(self, step, pool, inner):
        """Runs a step eagerly; whether its results are there and small enough."""
        before = dict(self.env)
        try:
            exec(step.code, self.env)
            step.variables = [variable(name, self.env[name]) for name in step.outs]
        except Exception as error:
            self.env = before
            self.refusals.append(Refusal(step, error, list(pool), inner))
            return False
        if sum(v.size for v in step.variables) > self.limit * 1.5:
            self.env = before
            return False
        return True

    def draw_input(self, index, base, main):
        """An input: often of the program's main dtype and shape, else broadcastable or small."""
        rng, roll = self.rng, self.rng.random()
        if index == 0 or roll < 0.5:
            shape = base
        elif roll < 0.75:
            shape = tuple(1 if rng.random() < 0.4 else d for d in base)
            if rng.random() < 0.5:
                shape = shape[rng.randrange(len(shape) + 1) :]
        else:
            shape = draw_shape(rng, "tiny" if self.mode == "tiny" else rng.choice(["tiny", "odd"]))
        dtype = main if main and rng.random() < 0.7 else self.dtype()
        return draw_values(rng, shape, dtype, self.awkward), Variable(f"x{index}", shape, dtype)

    def draw(self):
        """The program; `env` then holds its eager results."""
        rng = self.rng
        program = Program(self.seed, self.x64, awkward=self.awkward, modes=self.modes)
        base = draw_shape(rng, self.mode)
        main = rng.choice(MAIN_DTYPES + (["float64", "float64", "int64"] if self.x64 else []))
        pool = []
        for i in range(rng.randrange(1, 5)):
            value, v = self.draw_input(i, base, main)
            program.inputs[v.name] = value
            self.env[v.name] = jnp.asarray(value)
            pool.append(v)
        inputs = len(pool)
        for _ in range(rng.randrange(1, 11)):
            step = self.step(pool)
            if step is not None:
                program.steps.append(step)
                pool += step.variables
        made = [v.name for v in pool[inputs:]]
        last = made[-4:] if rng.random() < 0.5 else rng.sample(made, min(len(made), rng.randrange(1, 5)))
        program.outs = last or ["x0"]
        return program


def drawn_values(seed, x64, modes):
    """The inputs and results of a seed's program by name, as a failure's text asks for them."""
    with ferrax.enable_x64(x64):
        generator = Generator(seed, x64, modes)
        generator.draw()
        return generator.env
