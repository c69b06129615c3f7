"""The families of operations that programs are drawn from, with how often each is drawn.

A family is a function of the generator and the variables so far, and returns a step or None.
"""

from tests.fuzz.operations import control, elementwise, indexing, movement, products, reductions

#: In a program's own lines.
OUTER_WEIGHTS = {
    elementwise.unary: 14, elementwise.binary: 14, elementwise.choice: 5, elementwise.cast: 7, elementwise.create: 7,
    elementwise.special: 1, movement.move: 16, movement.several: 4, reductions.reduce: 10, reductions.lax_reduce: 2,
    reductions.cumulative: 4, reductions.sort: 4, reductions.rows: 5, indexing.index: 10, products.dot: 6,
    products.layer: 5, products.convolution: 3, products.window: 3, products.fourier: 3, products.linalg: 2,
    control.loop: 8, control.transformed: 3,
}  # fmt: skip

#: In a program's own lines, where its arrays are large matrices.
LARGE_WEIGHTS = {**OUTER_WEIGHTS, products.dot: 30, products.layer: 50, reductions.reduce: 30, control.loop: 2}

#: In the bodies of loops, branches and nested functions.
INNER_WEIGHTS = {
    elementwise.unary: 14, elementwise.binary: 20, elementwise.choice: 6, elementwise.cast: 4, elementwise.create: 2,
    movement.move: 8, movement.several: 2, reductions.reduce: 6, reductions.cumulative: 1, reductions.sort: 1,
    reductions.rows: 2, indexing.index: 12, products.dot: 4, products.layer: 1, products.window: 1,
    products.fourier: 0.5, products.linalg: 0.3, control.loop: 3, control.transformed: 1,
}  # fmt: skip
