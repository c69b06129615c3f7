"""Random choices from a seed: the same in every run, so that JAX's answers to them are recorded (`recorded.py`).

A choice is a function of a `random.Random`; a test makes it with `draw(choice)`. Hypothesis has choices of the same
names, but what it draws changes with its version and with the constants of all sources that are loaded.
"""

import random


def drawing(seed):
    """The function that makes choices, from a text as seed."""
    rng = random.Random(seed)
    return lambda choice: choice(rng)


def integers(low, high):
    """An integer; both bounds are possible."""
    return lambda rng: rng.randint(low, high)


def booleans():
    return lambda rng: rng.random() < 0.5


def sampled_from(options):
    """One of a sequence."""
    return lambda rng: rng.choice(options)


def tuples(*choices):
    return lambda rng: tuple(choice(rng) for choice in choices)


def subsets(options, least, most=None):
    """So many of a sequence, each once, in random order."""
    return lambda rng: rng.sample(options, rng.randint(least, len(options) if most is None else most))


def filtered(choice, condition):
    """The first of a choice's values that meets a condition."""

    def choose(rng):
        while not condition(value := choice(rng)):
            pass
        return value

    return choose
