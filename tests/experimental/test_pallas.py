"""Kernels: what `pallas_call` gives against JAX's interpreter, under every transformation, and its errors."""

import importlib
import re

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax.experimental import checkify, pallas as pl
from ferrax.experimental.pallas import tpu as pltpu, triton as plgpu
from tests.recorded import expected

X = np.arange(32, dtype=np.float32).reshape(4, 8) / 8
ROW = np.arange(8, dtype=np.float32)


class Package:
    """JAX or ferrax, with what kernels are written with."""

    def __init__(self, jax):
        name = jax.__name__
        self.jax, self.lax, self.shape = jax, jax.lax, jax.ShapeDtypeStruct
        self.jnp = importlib.import_module(f"{name}.numpy")
        self.pl = importlib.import_module(f"{name}.experimental.pallas")
        self.tpu = importlib.import_module(f"{name}.experimental.pallas.tpu")
        self.gpu = importlib.import_module(f"{name}.experimental.pallas.triton")

    def call(self, kernel, shape, dtype="float32", **kwargs):
        return self.pl.pallas_call(kernel, self.shape(shape, np.dtype(dtype)), interpret=True, **kwargs)


def blocks(p):
    def kernel(x, y, out):
        out[...] = x[...] @ y[...] + p.pl.program_id(0)

    rows, columns = p.pl.BlockSpec((2, 8), lambda i, j: (i, 0)), p.pl.BlockSpec((8, 2), lambda i, j: (0, j))
    out = p.pl.BlockSpec((2, 2), lambda i, j: (i, j))
    return p.call(kernel, (4, 4), grid=(2, 2), in_specs=[rows, columns], out_specs=out)(X, X.T)


def accumulated(p):
    def kernel(x, out, total):
        @p.pl.when(p.pl.program_id(1) == 0)
        def _():
            total[...] = p.jnp.zeros_like(total)

        total[...] += x[...]

        @p.pl.when(p.pl.program_id(1) == p.pl.num_programs(1) - 1)
        def _():
            out[...] = total[...]

    x, out = p.pl.BlockSpec((2, 2), lambda i, j: (i, j)), p.pl.BlockSpec((2, 2), lambda i, j: (i, 0))
    scratch = [p.tpu.VMEM((2, 2), p.jnp.float32)]
    return p.call(kernel, (4, 2), grid=(2, 4), in_specs=[x], out_specs=out, scratch_shapes=scratch)(X)


def ragged(p):
    """Blocks beyond the end see NaN, and what they write there is dropped."""

    def kernel(x, out):
        out[...] = x[...] + p.pl.program_id(0)

    three = p.pl.BlockSpec((3,), lambda i: i)
    f = p.call(kernel, (8,), grid=3, in_specs=[three], out_specs=three)
    short = p.call(lambda x, out: out.__setitem__(..., x[...]), (6,), in_specs=[p.pl.BlockSpec((6,), lambda: 0)])
    return f(ROW), short(ROW[:4])


def unwritten(p):
    return [p.call(lambda out: None, (2,), d)() for d in ("float32", "int32", "bool", "uint8", "int16", "float16")]


def squeezed(p):
    def kernel(x, y, out):
        assert x.shape == (8,) and out.shape == ()
        out[...] = (x[...] * y[...]).sum()

    row = p.pl.BlockSpec((None, 8), lambda i: (i, 0))
    other = p.pl.BlockSpec((p.pl.Squeezed(), 8), lambda i: (3 - i, 0))
    return p.call(kernel, (4,), grid=4, in_specs=[row, other], out_specs=p.pl.BlockSpec((None,), lambda i: i))(X, X)


def elements(p):
    def kernel(x, out):
        out[...] = x[...].sum(keepdims=True)

    window = p.pl.BlockSpec((p.pl.Element(3, (1, 1)),), lambda i: (i,))
    return p.call(kernel, (8,), grid=8, in_specs=[window], out_specs=p.pl.BlockSpec((1,), lambda i: i))(ROW)


def prefetched(p):
    def kernel(order, x, out):
        out[...] = x[...] + order[p.pl.program_id(0)]

    spec = p.tpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[p.pl.BlockSpec((2,), lambda i, order: (order[i],))],
        out_specs=p.pl.BlockSpec((2,), lambda i, order: (i,)),
    )
    return p.call(kernel, (8,), grid_spec=spec)(np.array([2, 0, 3, 1], np.int32), ROW)


def aliased(p):
    def kernel(_, x, out):
        i = p.pl.program_id(0)
        out[i] = out[i] + x[i]

    return p.call(kernel, (8,), grid=4, input_output_aliases={0: 0})(ROW, ROW)


def trees(p):
    def kernel(x, out):
        out["a"][...] = x["b"][0][...] * 2
        out["c"][...] = x["d"][...].sum()

    shapes = {"a": p.shape((8,), np.float32), "c": p.shape((), np.float32)}
    return p.pl.pallas_call(kernel, shapes, interpret=True)({"b": [ROW, None], "d": X})


def masked(p):
    def kernel(x, out):
        row, places = p.pl.program_id(0), p.jnp.arange(8)
        mask = places < x.shape[1]
        found = p.gpu.load(x.at[row, places], mask=mask, other=-np.inf)
        e = p.jnp.exp(found - found.max())
        p.gpu.store(out.at[row, places], e / e.sum(), mask=mask)

    return p.call(kernel, (4, 5), grid=4)(X[:, :5])


def atomic(p):
    def kernel(x, _, out):
        value = x[p.pl.ds(p.pl.program_id(0), 1)]
        p.gpu.atomic_add(out, p.pl.ds(0, 1), value)
        p.gpu.atomic_max(out, (p.pl.ds(1, 1),), value)
        p.gpu.atomic_min(out, (p.pl.ds(2, 1),), value)

    return p.call(kernel, (3,), grid=8, input_output_aliases={1: 0})(ROW, np.array([1, 3, 5], np.float32))


def control(p):
    def kernel(x, out):
        out[...] = p.jnp.zeros_like(out)

        @p.pl.loop(1, 7, step=2)
        def _(i):
            out[0] += x[i]

        out[1] = p.pl.loop(0, 3, init_carry=x[1])(lambda i, c: c + i)
        out[2] = p.lax.fori_loop(0, 8, lambda i, c: c + x[i], 0.0)
        out[3] = p.lax.cond(x[0] > 0, lambda: x[1], lambda: x[2])
        view = x.at[p.pl.ds(2, 4)]
        out[p.pl.ds(4, 2)] = view[0:2] + view.at[2:][...]

    return p.call(kernel, (8,))(ROW)


def scratch(p):
    def kernel(x, out, sem):
        def body(memory, count):
            copy = p.tpu.make_async_copy(x, memory, sem)
            copy.start()
            copy.wait()
            p.pl.semaphore_signal(count, 3)
            out[...] = memory[...] + p.pl.semaphore_read(count)
            p.pl.semaphore_wait(count, 3)

        p.pl.run_scoped(body, p.tpu.VMEM((8,), p.jnp.float32), p.tpu.SemaphoreType.REGULAR)

    return p.call(kernel, (8,), scratch_shapes=[p.tpu.SemaphoreType.DMA])(ROW)


def bounds(p):
    """A grid whose size is traced."""

    def kernel(x, out):
        out[p.pl.program_id(0)] = x[p.pl.program_id(0)] * p.pl.num_programs(0)

    return p.jax.jit(lambda n, x: p.call(kernel, (8,), grid=(n,), input_output_aliases={0: 0})(x))(5, ROW)


def named(p):
    """A grid whose axes have names, by which kernels ask for their sizes."""

    def kernel(x, out):
        out[...] = x[...] * p.lax.psum(1, "i") + p.lax.psum(1, "j") + p.pl.program_id(1)

    cell = p.pl.BlockSpec((None, 4), lambda i, j: (i, j))
    return p.call(kernel, (4, 8), grid=(("j", 4), ("i", 2)), in_specs=[cell], out_specs=cell)(X)


def doubled(p):
    def kernel(x, out):
        out[...] = p.jnp.sin(x[...]) * 2 + p.pl.program_id(0)

    two = p.pl.BlockSpec((2,), lambda i: i)
    return p.call(kernel, (8,), grid=4, in_specs=[two], out_specs=two)


TRANSFORMED = {
    "jit": lambda p: p.jax.jit(doubled(p))(ROW),
    "vmap": lambda p: p.jax.vmap(doubled(p))(X),
    "vmap of vmap": lambda p: p.jax.vmap(p.jax.vmap(doubled(p)), in_axes=1)(np.stack([X, X + 1])),
    "scan": lambda p: p.lax.scan(lambda c, x: (doubled(p)(c + x), c), ROW, X),
}
KERNELS = [blocks, accumulated, ragged, unwritten, squeezed, elements, prefetched, aliased, trees, masked, atomic]
KERNELS += [control, scratch, bounds, named]


def compare(ours, theirs):
    leaves = ferrax.tree.leaves(ours)
    wanted = ferrax.tree.leaves(theirs)
    assert len(leaves) == len(wanted)
    for a, b in zip(leaves, wanted, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_kernels_like_jax(kernel):
    compare(kernel(Package(ferrax)), expected(lambda jax: kernel(Package(jax))))


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformations_like_jax(name):
    compare(TRANSFORMED[name](Package(ferrax)), expected(lambda jax: TRANSFORMED[name](Package(jax))))


def test_kernels_have_derivatives():
    value, slope = ferrax.jvp(doubled(Package(ferrax)), (ROW,), (np.cos(ROW),))
    np.testing.assert_allclose(value, 2 * np.sin(ROW) + np.arange(8) // 2, rtol=1e-5)
    np.testing.assert_allclose(slope, 2 * np.cos(ROW) ** 2, rtol=1e-5)
    f = lambda x: jnp.sum(doubled(Package(ferrax))(x) * ROW)
    np.testing.assert_allclose(ferrax.grad(f)(ROW), 2 * np.cos(ROW) * ROW, rtol=1e-5)


def test_grids_of_symbolic_sizes():
    f = lambda x: Package(ferrax).call(
        lambda x, out: out.set(x[...] + pl.num_programs(0)),
        x.shape,
        grid=(x.shape[0] // 2,),
        in_specs=[pl.BlockSpec((2,), lambda i: i)],
        out_specs=pl.BlockSpec((2,), lambda i: i),
    )(x)
    rows = ferrax.ShapeDtypeStruct(ferrax.export.symbolic_shape("2*b"), np.float32)
    exported = ferrax.export.export(ferrax.jit(f))(rows)
    for n in (2, 8):
        assert exported.call(ROW[:n]).tolist() == (ROW[:n] + n // 2).tolist()


def test_checks_in_kernels():
    """The first error of the grid counts; windows beyond the end and NaN are found, too."""
    two = pl.BlockSpec((2,), lambda i: i)

    def checked(kernel, errors, x=ROW, spec=two):
        call = pl.pallas_call(kernel, x, grid=4, in_specs=[spec], out_specs=spec, interpret=True)
        error, out = checkify.checkify(call, errors=errors)(x)
        return error.get() or "", out

    def kernel(x, out):
        checkify.check(x[0] < 3, "failed at {i}", i=x[0])
        out[...] = jnp.log(x[...] - 1)

    text, out = checked(kernel, checkify.user_checks)
    assert text.startswith("failed at 4")
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(out, np.log(ROW - 1), rtol=1e-6)
    assert checked(kernel, checkify.nan_checks)[0].startswith("nan generated by primitive: log")
    copy = lambda x, out: out.set(x[...])
    assert checked(copy, checkify.index_checks)[0] == ""
    assert "index 6 is out of bounds" in checked(copy, checkify.index_checks, ROW[:6])[0]


def test_a_kernel_is_traced_once_for_each_type():
    traced = []

    def kernel(x, out):
        traced.append(x.shape)
        out[...] = x[...] + 1

    f = pl.pallas_call(kernel, ROW, interpret=True)
    assert ferrax.jit(lambda x: f(f(x)))(ROW).tolist() == (ROW + 2).tolist()
    f(ROW)
    assert traced == [(8,)]


def refused(p, which):
    def call(kernel=lambda x, out: None, shape=(8,), dtype="float32", **kwargs):
        return p.call(kernel, shape, dtype, **kwargs)(ROW)

    spec, constant = p.pl.BlockSpec, p.jnp.arange(3)
    cases = {
        "result": lambda: call(lambda x, out: 1),
        "constant": lambda: call(lambda x, out: out.__setitem__(slice(0, 3), X[0, :3])),
        "rank": lambda: call(in_specs=[spec((1, 1), lambda: (0, 0))]),
        "operands": lambda: call(in_specs=[spec((1,), lambda: 0)] * 2),
        "results": lambda: call(out_specs=[spec((1,), lambda: 0)] * 2),
        "many indices": lambda: call(in_specs=[spec((1,), lambda: (0, 0))]),
        "no integer": lambda: call(in_specs=[spec((1,), lambda: 0.5)]),
        "index constant": lambda: call(grid=(1,), in_specs=[spec((1,), lambda i: constant[i])]),
        "aliased operand": lambda: call(input_output_aliases={1: 0}),
        "aliased result": lambda: call(input_output_aliases={0: 1}),
        "aliased type": lambda: call(dtype="int32", input_output_aliases={0: 0}),
        "grid": lambda: call(grid=("a",)),
        "axis": lambda: call(lambda x, out: p.pl.program_id(3) and None, grid=(1,)),
        "two grids": lambda: call(grid=(1,), grid_spec=p.pl.GridSpec(grid=(1,))),
        "dimension": lambda: call(in_specs=[spec(("a",), lambda: 0)]),
        "compiled": lambda: p.pl.pallas_call(lambda x, out: None, p.shape((8,), np.float32))(ROW),
        "mask": lambda: call(lambda x, out: p.gpu.load(x.at[0:2], mask=p.jnp.ones(3, bool)) and None),
        "product": lambda: p.gpu.dot(X, ROW),
        "half": lambda: call(lambda x, out: p.gpu.atomic_max(out, 0, out[0]) and None, dtype="float16"),
        "estimate": lambda: p.pl.CostEstimate(1.5, 0, 0),
        "specs": lambda: p.pl.GridSpec(in_specs=3),
        "roll": lambda: p.tpu.roll(X, -1, 0),
    }
    return sorted(cases) if which is None else cases[which]()


@pytest.mark.parametrize("which", refused(Package(ferrax), None))
def test_mistakes_like_jax(which):
    """The class of the error is JAX's, and its text begins alike."""

    def ask(jax):
        try:
            refused(Package(jax), which)
        except ValueError as error:
            return str(error).replace(__file__, "this file")
        raise AssertionError("no error")

    heads = [re.sub(r" at \S+:\d+|`\w+`", "", text)[:40] for text in (ask(ferrax), expected(ask))]
    assert heads[0] == heads[1]


def test_what_there_is_not():
    call = lambda **kw: pl.pallas_call(lambda x, out: None, ROW, interpret=True, **kw)(ROW)
    for case in (
        lambda: call(in_specs=[pl.BlockSpec((pl.BoundedSlice(4),), lambda: pl.ds(0, 2))]),
        lambda: call(in_specs=[pl.BlockSpec((pl.Indirect(4),), lambda: 0)]),
        lambda: pltpu.InterpretParams(detect_races=True),
        lambda: pl.run_scoped(lambda ref: None, pltpu.VMEM((1,), jnp.float32), collective_axes="i"),
        lambda: pl.semaphore_signal(ferrax.new_ref(jnp.int16(0)), device_id=1),
        lambda: plgpu.elementwise_inline_asm("", args=[], constraints="", pack=1, result_shape_dtypes=[]),
    ):
        with pytest.raises(NotImplementedError):
            case()
    ref = ferrax.new_ref(jnp.zeros(8))
    with pytest.raises(NotImplementedError, match="closes over references"):
        pl.pallas_call(lambda x, out: ref.set(x[...]), ROW, interpret=True)(ROW)
    with pytest.raises(ValueError, match="inside of kernels"):
        pl.program_id(0)
    with pytest.raises(ferrax.errors.MissingFeatureError):
        pl.core_map


def test_interpreting_everywhere():
    f = pl.pallas_call(lambda x, out: out.set(x[...]), ROW)
    with pltpu.force_tpu_interpret_mode():
        assert f(ROW).tolist() == ROW.tolist()
    pltpu.set_tpu_interpret_mode()
    try:
        assert f(ROW).tolist() == ROW.tolist()
    finally:
        pltpu.set_tpu_interpret_mode(None)
    with pytest.raises(ValueError, match="Only interpret mode"):
        f(ROW)


def test_kernels_of_another_platform_are_only_traced():
    def kernel(x):
        assert x.shape == (1, 8)
        return pl.pallas_call(lambda x, out: out.set(x[...] * 2), x)(x)

    def apply(x):
        return ferrax.lax.platform_dependent(x, cuda=kernel, default=lambda x: x + 1)

    row = ROW[None]
    assert apply(row).tolist() == ferrax.jit(apply)(row).tolist() == (row + 1).tolist()
    with pytest.raises(ValueError, match="Only interpret mode"):
        ferrax.lax.platform_dependent(row, cpu=kernel, default=lambda x: x + 1)
    with pytest.raises(TypeError, match="values of one type"):
        ferrax.lax.platform_dependent(row, cuda=kernel, default=lambda x: x[0])


def test_kernels_print(capfd):
    def kernel(x, out):
        pl.debug_print("block", pl.program_id(0))
        ferrax.debug.print("x = {}", x)
        out[...] = x[...]

    two = pl.BlockSpec((2,), lambda i: i)
    pl.pallas_call(kernel, ROW[:4], grid=2, in_specs=[two], out_specs=two, interpret=True)(ROW[:4])
    ferrax.effects_barrier()
    assert capfd.readouterr().out.splitlines() == ["block 0", "x = [0. 1.]", "block 1", "x = [2. 3.]"]


def test_numbers_like_jax():
    def numbers(p):
        pl, jnp = p.pl, p.jnp
        x = jnp.arange(12).reshape(3, 4)
        return (
            [
                pl.cdiv(7, 2),
                pl.align_to(7, 4),
                pl.next_power_of_2(9),
                pl.next_power_of_2(0),
                pl.strides_from_shape((2, 3, 4)),
            ],
            [pl.cdiv(jnp.array([7, 8]), 2), p.jax.jit(lambda x: pl.reciprocal(x, approx=True))(jnp.array([3.0, 7.0]))],
            [p.jax.jit(lambda x: p.tpu.roll(x, 1, 1))(x)],
            [p.jax.jit(lambda x: p.tpu.roll(x, 1, 1, stride=2, stride_axis=0))(x)],
            [p.gpu.dot(jnp.ones((2, 3), jnp.int8), jnp.ones((3, 2), jnp.int8))],
            [p.gpu.dot(jnp.ones((3, 2), jnp.bfloat16), jnp.ones((2, 3), jnp.bfloat16), trans_a=True, trans_b=True)],
        )

    def arrays(jax):
        return ferrax.tree.map(np.asarray, numbers(Package(jax)))

    compare(arrays(ferrax), expected(arrays))


def estimates(jax):
    p = Package(jax)
    functions = {
        "elements": lambda x, y: -p.jnp.exp(x) * y + p.jnp.maximum(x, y) / 2,
        "product": lambda x, y: p.jnp.tanh(x @ y.T),
        "batch": lambda x, y: p.jnp.einsum("bij,bkj->bik", x[:, :, None], y[:, :, None]),
        "powers": lambda x, y: [p.lax.integer_pow(x, n) for n in (1, 2, 5, 9)],
        "jit": lambda x, y: p.jax.jit(lambda x: p.jnp.sin(x) * 2)(x).astype("float16"),
    }
    x = p.shape((4, 8), np.float32)
    costs = {name: p.pl.estimate_cost(f, x, x) for name, f in functions.items()}
    return {name: [c.flops, c.transcendentals, c.bytes_accessed] for name, c in costs.items()}


def test_estimates_like_jax():
    assert estimates(ferrax) == expected(estimates)
    steps = lambda x: ferrax.lax.scan(lambda c, row: (c * row, None), x[0], x)[0]
    assert pl.estimate_cost(steps, X).flops == 32
