"""Writes the StableHLO of whole programs (`benches/whole.py`) into a folder: `python write_programs.py FOLDER`.

`make test-cuda-compile` compiles them for GPUs, beside one program for each kind of node.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "benches"))

import whole

import ferrax as jax
import ferrax.numpy as jnp


def main(folder):
    count = 0
    for family in whole.FAMILIES:
        for function, *args in family(jax, jnp).values():
            text = jax.jit(function).lower(*jax.tree.map(jnp.asarray, args)).as_text()
            (folder / f"whole-{count}.mlir").write_text(text)
            count += 1
    print(f"{count} programs")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
