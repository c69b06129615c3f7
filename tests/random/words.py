"""What JAX makes of keys of each generator, recorded in `generators.json` because XLA takes minutes to compile it all.

python -m tests.random.words    # writes the file
"""

import json
import pathlib

import numpy as np

PATH = pathlib.Path(__file__).with_name("generators.json")
IMPLS = ["threefry2x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32", "threefry4x32"]


def words(api, impl, seed):
    """What keys of a generator make, as a dictionary of arrays of words."""
    r, np_ = api.random, api.numpy
    key = r.key(seed, impl=impl)
    keys = r.split(key, 3)
    out = {
        "data": r.key_data(key),
        "raw": r.PRNGKey(seed, impl=impl),
        "split": r.key_data(r.split(key, (2, 2))),
        "fold_in": r.key_data(r.fold_in(key, 123)),
        "scalar": r.bits(key),
        "vmapped bits": api.vmap(lambda k: r.bits(k, (2,)))(keys),
        "vmapped split": api.vmap(lambda k: r.key_data(r.split(k)))(keys),
        "vmapped fold_in": api.vmap(lambda k, i: r.key_data(r.fold_in(k, i)))(keys, np_.arange(3)),
        "vmapped data": api.vmap(lambda i: r.key_data(r.fold_in(key, i)))(np_.arange(3)),
        "nested": api.vmap(api.vmap(lambda k: r.bits(k, (3,))))(r.split(key, (2, 2))),
    }
    for width in (8, 16, 32):
        out[f"bits of {width}"] = r.bits(key, (5, 3), f"uint{width}")
    return out


def older(api):
    """The default generator's words without `jax_threefry_partitionable`, and what depends on them."""
    r = api.random
    with api.threefry_partitionable(False):
        key = r.key(11)
        return words(api, "threefry2x32", 11) | {
            "odd": r.bits(key, (7,)),
            "randint": r.randint(key, (3,), 0, 100),
            "rbg": r.key_data(r.split(r.key(11, impl="rbg"))),
        }


def wide(api, impl):
    """Seeds and words of 64 bits."""
    with api.enable_x64(True):
        key = api.random.key(2**33 + 5, impl=impl)
        out = {"data": api.random.key_data(key), "bits": api.random.bits(key, (3,), "uint64")}
        if impl == "threefry2x32":
            with api.threefry_partitionable(False):
                out["older"] = api.random.bits(key, (3,), "uint64")
        return out


def samples(api, impl):
    """Integers and booleans drawn with a key."""
    r, key = api.random, api.random.key(3, impl=impl)
    p = api.numpy.array([0.2, 0.5, 0.3])
    return {
        "randint": r.randint(key, (4,), 0, 10),
        "permutation": r.permutation(key, 7),
        "bernoulli": r.bernoulli(key, 0.3, (6,)),
        "categorical": r.categorical(key, api.numpy.log(p), shape=(5,)),
    }


def floats(api, impl):
    """Floats drawn with a key."""
    r, key = api.random, api.random.key(3, impl=impl)
    return {
        "uniform": r.uniform(key, (3,)),
        "normal": r.normal(key, (3,)),
        "gamma": r.gamma(key, 0.7, (4,)),
    }


def draws(api, module):
    """What a generator with a state draws."""
    rng = module.stateful_rng(3)
    child = rng.spawn(2)[1]
    return {
        "uniform": rng.uniform(),
        "bounds": rng.uniform(1, 2, (2,)),
        "normal": rng.normal(size=2),
        "integers": rng.integers(5, size=(3,)),
        "random": rng.random(2),
        "rows": rng.integers(api.numpy.array([1, 2]), 9),
        "child": child.normal(),
        "keys": api.random.key_data(rng.key((2,))),
        "split": api.random.key_data(rng.split(2)._base_key),
    }


def generated(api):
    """Words of `rng_bit_generator`, with the states after it, for rows of states."""
    states = np.arange(12, dtype=np.uint32).reshape(3, 4)
    first = api.vmap(lambda s: api.lax.rng_bit_generator(s, (2,)))(states)
    second = api.vmap(lambda s: api.lax.rng_bit_generator(s, (5,), "uint16"))(states)
    return {"states": first[0], "words": first[1], "states of 16": second[0], "words of 16": second[1]}


def recorded():
    """JAX's answers."""
    return json.loads(PATH.read_text())


def record():
    """Asks JAX, and writes the file after each answer."""
    import jax
    from jax.experimental import random as stateful

    found = {}

    def note(name, values):
        found[name] = {k: [str(v.dtype), np.asarray(v).tolist()] for k, v in values.items()}
        PATH.write_text(json.dumps(found, separators=(",", ":")))

    note("draws", draws(jax, stateful))
    note("generated", generated(jax))
    for impl in IMPLS:
        note(f"words {impl}", words(jax, impl, 7))
        note(f"wide {impl}", wide(jax, impl))
    note("older", older(jax))
    for impl in ("rbg", "philox4x32"):
        note(f"samples {impl}", samples(jax, impl))
        note(f"floats {impl}", floats(jax, impl))


if __name__ == "__main__":
    record()
