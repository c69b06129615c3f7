"""Arguments for `api.py`: ordinary ones, with which most functions of the API can be called, and odd ones.

All are expressions over the names of `SCOPE`, so that a finding is a line to paste.
"""

import ml_dtypes
import numpy as np

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax


class Odd:
    def __repr__(self):
        return "Odd()"


class BadEq(Odd):
    def __eq__(self, other):
        raise RuntimeError("of the argument: eq")

    __hash__ = None


class BadIndex(Odd):
    def __index__(self):
        raise ValueError("of the argument: index")


class BigIndex(Odd):
    def __index__(self):
        return 2**70


class BadArray(Odd):
    def __array__(self, *args, **kwargs):
        raise RuntimeError("of the argument: array")


class BadLen(Odd):
    def __len__(self):
        return -1  # noqa: PLE0303

    def __getitem__(self, i):
        raise RuntimeError("of the argument: item")


class Long(Odd):
    """Has more items than it says."""

    def __len__(self):
        return 3

    def __iter__(self):
        return iter(range(50))


class HasArray(Odd):
    def __jax_array__(self):
        return 3


def deep_list():
    nested = 1.0
    for _ in range(3000):
        nested = [nested]
    return nested


recursive = []
recursive.append(recursive)
SCOPE = {
    **{c.__name__: c for c in (Odd, BadEq, BadIndex, BigIndex, BadArray, BadLen, Long, HasArray)},
    "np": np, "ml_dtypes": ml_dtypes, "jax": jax, "jnp": jnp, "lax": lax, "ferrax": jax,
    "recursive": recursive, "deep": deep_list(),
}  # fmt: skip

ODD_NUMBERS = """-1 0 1 2 3 2**31 -2**31 2**40 2**62 2**63-1 -2**63 2**64 2**200 10**400 1.5 -1.5 1e30 float('nan')
    float('inf') 1j True np.nan jnp.float32(2) jnp.int32(-7) np.float64(3) np.longdouble(2)
    ml_dtypes.bfloat16(1)"""

ODD_SHAPES = """() [] (1,) (2,3) (-1,) (0,) (2**40,) (2**40,2**40) (2**62,4) (3,None) ('a',) (0,0) (1,0) (0,1) (1,1)
    (-1,-1) (5,5) (0,1,2) (2**31,2) (-2**31,) [2**31] (2**62,) (2**20,2**20,2**20) [-1,5] [0,0]
    ((1,1),(1,1)) ((-5,2),(1,3)) ((2**31,0),(0,0)) ((-2**62,0),(0,0)) [(0,2**62,0),(0,0,0)]
    [(0,0,2**62),(0,0,0)] [(0,0,-1),(0,0,0)] (((1,),(0,)),((),())) (((0,),(0,)),((5,),(5,))) range(3)"""

ODD_ARRAYS = """jnp.zeros(()) jnp.zeros(0) jnp.ones(3) jnp.ones((2,3)) jnp.ones((3,3)) jnp.ones((2,0,3))
    jnp.arange(6).reshape(2,3) jnp.ones((2,3,4),jnp.bfloat16) jnp.ones((3,),bool) jnp.array([1j,2])
    jnp.full((3,3),jnp.nan) jnp.ones((3,3))*1j jnp.array([jnp.inf,-jnp.inf,jnp.nan]) jnp.array(3)
    jnp.array(-1) jnp.array(-2**31) jnp.array([0,2**31-1,-2**31]) jnp.ones((5,1)) jnp.ones((1,5))
    jnp.ones((4,4),jnp.int8) jnp.ones((70,70)) jnp.ones((1,)*20) jnp.arange(1000)
    jnp.array(255,jnp.uint8) jnp.ones((3,3)).astype(jnp.float8_e4m3fn) jax.random.key(0)
    jax.random.split(jax.random.key(0),3) [jnp.ones(2),jnp.ones(3)] (jnp.ones((2,2)),jnp.ones((2,2)))
    np.ones((3,3)) np.ones(3,'>f4') np.ones((1,)*33) np.ones((3,3)).T[::-1,::2]
    np.zeros(2,[('a','i4')]) np.array(['a','b']) np.array([None,1])
    np.broadcast_to(np.float32(1),(1,2**40)) np.datetime64('2020')
    jax.ShapeDtypeStruct((2,3),jnp.float32)"""

ODD_OBJECTS = """None Odd() BadEq() BadIndex() BigIndex() BadArray() BadLen() Long() HasArray() recursive deep
    slice(None) Ellipsis NotImplemented object int bool type b'ab' memoryview(b'\\2\\3\\5\\7') bytearray(8)
    frozenset([1]) iter([1,2]) {} {'a':1} [[1,2],[3]] [1,'a'] jnp.float32 jnp.uint8 jnp.complex64
    np.dtype('int8') 'float32' 'int4' 'O' 'S3' 'datetime64[s]' 'abc' '' 'ij,jk->ik' 'ii' 'constant'
    'same' 'highest' 'wrap' 'linear' 'fan_in' 'VALID' 'clip' 'fill' 'F' '\\ud800' 'x'*100000 jax.numpy
    jax.devices()[0] jax.tree_util.tree_structure([1,2]) lax.GatherDimensionNumbers((0,),(0,),(0,))
    lax.GatherDimensionNumbers((0,1,2,3),(9,),(-1,)) lax.ScatterDimensionNumbers((0,),(0,),(0,))"""

ODD_FUNCTIONS = [
    "lambda *a: a", "lambda x: x", "lambda: 1", "lambda x: None", "lambda x, y: x + y", "lambda *a, **k: 1/0",
    "jax.jit(lambda x: x)",
]  # fmt: skip

ODD = [*ODD_FUNCTIONS]
for texts in (ODD_NUMBERS, ODD_SHAPES, ODD_ARRAYS, ODD_OBJECTS):
    ODD += texts.split()

MATRIX = "jnp.arange(9.).reshape(3, 3)"
KEY = "jax.random.key(0)"

#: Arguments with which functions can be called, simple ones first.
USUAL = [line.strip().split(" | ") for line in f"""
    {MATRIX}
    jnp.arange(5)
    jnp.arange(4.) + 1
    {MATRIX} | {MATRIX}
    jnp.arange(5) | jnp.arange(5)
    jnp.arange(4.) | jnp.arange(4.) + 1
    {MATRIX} | 1
    {MATRIX} | 0
    {MATRIX} | (0, 1)
    {MATRIX} | (1, 0)
    {MATRIX} | (9,)
    jnp.arange(5) | 2
    {MATRIX} | {MATRIX} | {MATRIX}
    {MATRIX} | 0 | 1
    {MATRIX} | 1 | 0
    (2, 3)
    (2, 3) | 1.0
    3
    3 | jnp.float32
    [{MATRIX}, {MATRIX}]
    [{MATRIX}, {MATRIX}] | 0
    'ij,jk->ik' | {MATRIX} | {MATRIX}
    {KEY}
    {KEY} | (3,)
    {KEY} | 5
    {KEY} | jnp.ones(3)
    {KEY} | jnp.ones(3) | jnp.ones(3)
    {KEY} | 1.0 | 2.0
    {KEY} | (2,) | 0 | 10
    {KEY} | 0.1 | 1.0 | 0.5
    {KEY} | jnp.ones(2) | jnp.eye(2)
    {KEY} | jnp.arange(5) | (2,)
    jnp.array([True, False])
    jnp.array([True, False]) | jnp.arange(2) | jnp.arange(2)
    {MATRIX} | jnp.array([0, 2])
    {MATRIX} | jnp.array([[0, 1, 2]]) | 0
    {MATRIX} | 0 | 2 | 1
    {MATRIX} | [0, 0] | [2, 2]
    {MATRIX} | [0, 0] | (2, 2)
    {MATRIX} | jnp.ones((2, 2)) | [0, 1]
    {MATRIX} | jnp.ones((1, 3)) | 0 | 0
    {MATRIX} | 0.0 | [(1, 1, 0), (0, 0, 1)]
    {MATRIX} | 1 | 2
    {MATRIX} | jnp.float32
    {MATRIX} | jnp.int32
    jnp.float32 | (3, 3) | 0
    jnp.float32 | 5
    lambda x: x * 2 | {MATRIX}
    lambda x: x * 2
    lambda x: jnp.sum(x)
    lambda x: jnp.asarray(x).sum() | {MATRIX}
    lambda x: jnp.asarray(x).sum() | ({MATRIX},) | ({MATRIX},)
    lambda x, y: x + y | {MATRIX}
    lambda x, y: x + y | [1, 2] | [3, 4]
    lambda x: x + 1 | [1, {{'a': 2}}]
    lambda c, x: (c + x, c) | 0. | jnp.arange(4.)
    0 | 3 | lambda i, c: c + i | 1.
    lambda c: c < 5 | lambda c: c + 1 | 0
    True | lambda x: x | lambda x: x + 1 | 1.
    1 | [lambda x: x, lambda x: x + 1] | 1.
    [1, (2, 3)]
    jax.tree_util.tree_structure([1, 2]) | [5, 6]
    jax.tree_util.tree_structure([1, 2]) | jax.tree_util.tree_structure([1]) | [[5], [6]]
    {MATRIX} + 4 * jnp.eye(3) | jnp.ones((3, 1))
    jnp.eye(3) * 2
    jnp.arange(16.).reshape(4, 4)[None, None] | jnp.ones((1, 1, 2, 2)) | (1, 1) | 'SAME'
    {MATRIX} | 0. | lax.add | (2, 2) | (1, 1) | 'VALID'
    {MATRIX} | 0. | lax.add | (0,)
    {MATRIX} | jnp.array([[0], [1]]) | lax.GatherDimensionNumbers((1,), (0,), (0,)) | (1, 3)
    {MATRIX} | jnp.array([[0], [1]]) | jnp.ones((2, 3)) | lax.ScatterDimensionNumbers((1,), (0,), (0,))
    {MATRIX} | {MATRIX} | (((1,), (0,)), ((), ()))
    {MATRIX} | {MATRIX} | 1 | 0
    jnp.arange(6) | 3 | jnp.int32
    jnp.ones(4) | jnp.array([0, 0, 1, 1])
    jnp.ones((1, 4, 2, 8)) | jnp.ones((1, 4, 2, 8)) | jnp.ones((1, 4, 2, 8))
    jnp.arange(3) | 4
    0. | 1. | 5
    jnp.arange(4.) | jnp.arange(4.) | jnp.arange(4.)
    {MATRIX} | lambda a: a | 0
    lambda x: x | 0 | {MATRIX}
    lambda x: x | [0, 1] | {MATRIX}
    {MATRIX} | 3 | 0 | 1
    jnp.arange(8) | (2, 4)
    (1, 2) | (2, 3, 4)
    (0, 1, 2) | (1, 2, 3)
    jnp.ones(3, jnp.complex64)
    jnp.ones((4, 3)) * 1j
    jnp.ones(3) | jnp.ones(3) | jnp.ones(3) | jnp.ones((3, 1))
    jnp.arange(4, dtype=jnp.uint32)
    jnp.arange(4, dtype=jnp.uint32) | jnp.arange(4, dtype=jnp.uint32)
    jnp.ones(3) | 5 | 2
""".strip().split("\n")]  # fmt: skip
USUAL.insert(0, [])
