"""What programs compute with: dtypes, shapes, and arrays of ordinary and of awkward numbers.

`Variable` is a name of a program with its shape and dtype; generators choose by these alone. Next: `program.py`.
"""

import dataclasses
import math

import ml_dtypes
import numpy as np

#: The dtypes of programs with and without 64-bit types.
NARROW = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "bfloat16", "float32", "complex64"]
WIDE = [*NARROW, "int64", "uint64", "float64", "complex128"]

#: Extents by the size class of a program: edges of vectors and tiles, empty axes, arrays that take several threads.
EXTENTS = {
    "tiny": [0, 1, 1, 2, 3, 4, 5, 32],
    "odd": [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 63, 64, 65, 70],
    "wide": [1, 3, 100, 128, 255, 257, 1000, 1025, 4097],
    "huge": [100_000, 65_537, 33_333],
    "large": [1, 3, 8, 16, 50, 64, 129, 256, 513, 600, 1025, 2048],
    "rows": [8, 12, 16, 20, 24, 32, 40, 48, 64, 72, 96, 100, 112, 128],
}

#: The most elements of one value, by size class.
LIMITS = {"tiny": 20_000, "odd": 60_000, "wide": 300_000, "huge": 700_000, "large": 1_200_000, "rows": 120_000}


def words(text):
    """The names in a table's text."""
    return text.split()


def numpy_dtype(name):
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def kind(dtype):
    """NumPy's letter for the kind of a dtype, "f" for bfloat16 too."""
    name = str(dtype)
    return "f" if name == "bfloat16" else np.dtype(name).kind


@dataclasses.dataclass(frozen=True)
class Variable:
    """A name in a program's text."""

    name: str
    shape: tuple
    dtype: str

    @property
    def kind(self):
        return kind(self.dtype)

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return math.prod(self.shape)

    def __str__(self):
        return self.name


def variable(name, value):
    """The variable that holds `value`."""
    return Variable(name, tuple(value.shape), str(value.dtype))


def broadcasts_to(shape, target):
    """Whether an array of `shape` can be broadcast to `target` as it is."""
    return len(shape) <= len(target) and all(a in (1, b) for a, b in zip(shape[::-1], target[::-1]))


def broadcast_size(a, b):
    """The size of two shapes broadcast together, None where they do not match."""
    size = 1
    for i in range(max(len(a), len(b))):
        m = a[-1 - i] if i < len(a) else 1
        n = b[-1 - i] if i < len(b) else 1
        if m != n and 1 not in (m, n):
            return None
        size *= n if m == 1 else m
    return size


def draw_shape(rng, mode):
    """A shape of a size class."""
    if mode == "huge":
        shape = [rng.choice(EXTENTS["huge"])]
        if rng.random() < 0.5:
            shape.insert(rng.randrange(2), rng.choice([1, 2, 3]))
        return tuple(shape)
    if mode == "wide":
        shape = [rng.choice(EXTENTS["wide"])] + [rng.choice(EXTENTS["odd"]) for _ in range(rng.choice([0, 1, 1]))]
        rng.shuffle(shape)
        return tuple(shape)
    if mode == "large":
        # Matrices whose products are beyond the sizes from which engines do things in other ways.
        rows = rng.choice(EXTENTS["large"][-4:])
        shape = [rows, rng.choice([d for d in EXTENTS["large"] if rows * d <= LIMITS["large"]])]
        if rng.random() < 0.3:
            rng.shuffle(shape)
        return tuple(shape)
    if mode == "rows":
        # Short rows in groups, of which tiles of vectors hold some; of one element where operands are numbers of rows.
        return (
            *(rng.choice([1, 2, 3, 5, 8, 10, 17, 40]) for _ in range(rng.choice([1, 2, 2]))),
            rng.choice(EXTENTS["rows"]),
        )
    if mode == "odd":
        ndim = rng.choice([1, 2, 2, 3])
        return tuple(rng.choice(EXTENTS["odd"][: 17 if ndim < 3 else 10]) for _ in range(ndim))
    return tuple(rng.choice(EXTENTS["tiny"]) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4])))


def draw_integers(rng, values, shape, dtype):
    info = np.iinfo(dtype)
    span = rng.randrange(3)
    if span == 0:
        drawn = values.integers(max(info.min, -5), 10, size=shape)
    elif span == 1:
        drawn = values.integers(info.min, info.max, size=shape, dtype=dtype, endpoint=True)
    else:
        drawn = values.integers(max(info.min, -100), 100, size=shape)
    return np.asarray(drawn).astype(dtype)


def draw_floats(rng, values, shape, dtype, complex_):
    scale = rng.choice([1.0, 1.0, 1.0, 0.01, 100.0] + ([1e4, 1e-4] if dtype.itemsize > 2 else []))
    drawn = values.normal(size=shape) * scale
    if rng.random() < 0.15:
        drawn = np.round(drawn)
    if complex_:
        drawn = drawn + 1j * values.normal(size=shape) * scale
    return np.asarray(drawn).astype(dtype)


def awkward_floats(dtype):
    """Zeros, infinities, NaN, the ends of the range, subnormals and ties."""
    info = ml_dtypes.finfo(dtype)
    ends = [float(info.max), float(info.min), float(info.tiny), 3 * float(info.smallest_subnormal)]
    return [np.nan, np.inf, -np.inf, 0.0, -0.0, *ends, 1.0, -1.0, 0.5, -0.5, 2.5, 1e5]


def scatter_awkward(rng, values, array):
    """Overwrites a few elements with awkward numbers of the dtype."""
    flat, letter = array.reshape(-1), kind(array.dtype)
    if letter in "iu":
        info = np.iinfo(array.dtype)
        numbers = np.array([info.min, info.max, 0, 1, info.max - 1], array.dtype)
        for _ in range(min(flat.size, 6)):
            flat[values.integers(flat.size)] = values.choice(numbers)
        return
    numbers = awkward_floats(array.real.dtype)
    for _ in range(min(flat.size, rng.randrange(1, 12))):
        number = numbers[values.integers(len(numbers))]
        with np.errstate(all="ignore"):
            if letter == "c" and values.random() < 0.5:
                number = complex(number, numbers[values.integers(len(numbers))])
            flat[values.integers(flat.size)] = np.asarray(number).astype(array.dtype)


def draw_values(rng, shape, dtype, awkward):
    """A NumPy array of random numbers, some of them awkward where that is asked for."""
    values = np.random.default_rng(rng.randrange(1 << 40))
    target, letter = numpy_dtype(dtype), kind(dtype)
    if letter == "b":
        return np.asarray(values.random(shape) < values.choice([0.0, 0.1, 0.5, 0.9, 1.0])).reshape(shape)
    if letter in "iu":
        array = draw_integers(rng, values, shape, target)
    else:
        array = draw_floats(rng, values, shape, target, letter == "c")
    array = np.array(array, copy=True).reshape(shape)
    if awkward and array.size:
        scatter_awkward(rng, values, array)
    return array
