"""The least program that still shows a difference between jit and eager."""

import dataclasses

import numpy as np

import ferrax
import ferrax.numpy as jnp
from tests.fuzz.compare import same_bits
from tests.fuzz.generator import FERRAX
from tests.fuzz.program import NAME


def differs(program):
    """Whether jitted bits are not the eager ones; each is computed from the program's own inputs."""
    function = program.function(FERRAX)
    args = [jnp.asarray(value) for value in program.inputs.values()]
    try:
        pairs = list(zip(ferrax.jit(function)(*args), function(*args)))
    except Exception:
        return False
    return any(not same_bits(a, b) for a, b in pairs)


def needed(program):
    """The program without the steps and inputs that no result needs."""
    wanted, steps = set(program.outs), []
    for step in reversed(program.steps):
        if wanted & set(step.outs):
            steps.insert(0, step)
            wanted |= set(NAME.findall(step.code))
    inputs = {name: value for name, value in program.inputs.items() if name in wanted}
    return dataclasses.replace(program, steps=steps, inputs=inputs)


def cut(program, step, env):
    """The program with the results of a step as inputs."""
    values = {name: np.asarray(env[name]) for name in step.outs}
    steps = [other for other in program.steps if other is not step]
    return needed(dataclasses.replace(program, steps=steps, inputs={**program.inputs, **values}))


def can_be_cut(step, program):
    return len(program.steps) > 1 and not set(step.outs) & set(program.outs)


def minimized(program, env, out):
    """A smaller program with the difference, or the program itself where it does not show again.

    Args:
        program: the program that failed.
        env: the eager value of every name.
        out: the result that differed.
    """
    alone = needed(dataclasses.replace(program, outs=[out]))
    least = alone if differs(alone) else program
    tried = set()
    while step := next((s for s in least.steps if can_be_cut(s, least) and s.outs[0] not in tried), None):
        tried.add(step.outs[0])
        smaller = cut(least, step, env)
        least = smaller if differs(smaller) else least
    return least
