"""Views of references, and references among the inputs of loops, branches and `jvp`."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax

WHOLE = np.arange(24, dtype=np.float32).reshape(4, 6)
VIEWS = {
    "row": (lambda r: r.at[1], lambda x: x[1]),
    "rows of rows": (lambda r: r.at[1:4].at[1:, 2], lambda x: x[1:4][1:, 2]),
    "every second": (lambda r: r.at[::2].at[:, 1::2], lambda x: x[::2][:, 1::2]),
    "window": (lambda r: r.at[ferrax.ds(1, 2)].at[:, ferrax.ds(2, 3)], lambda x: x[1:3][:, 2:5]),
    "shape": (lambda r: r.reshape(3, -1).at[2], lambda x: x.reshape(3, -1)[2]),
    "axes": (lambda r: r.T.at[1], lambda x: x.T[1]),
    "order": (
        lambda r: r.reshape(2, 2, 6).transpose(2, 0, 1).at[3],
        lambda x: x.reshape(2, 2, 6).transpose(2, 0, 1)[3],
    ),
    "bits": (lambda r: r.bitcast(jnp.int32).at[0], lambda x: x.view(np.int32)[0]),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("staged", [False, True])
def test_views_read_and_write(name, staged):
    of_ref, of_array = VIEWS[name]
    wrap = ferrax.jit if staged else (lambda f: f)
    ref = ferrax.new_ref(WHOLE)
    wanted = WHOLE.copy()
    part = of_array(wanted)

    @wrap
    def change():
        view = of_ref(ref)
        assert view.shape == part.shape and view.dtype == part.dtype and view.size == part.size
        before = view[...]
        old = view.swap(before + 1)
        view[0] = view[0] + 1
        view.addupdate(jnp.ones_like(view))
        return before, old, view.get()

    before, old, now = change()
    np.testing.assert_array_equal(before, part)
    np.testing.assert_array_equal(old, part)
    part += 2
    part[0] += 1
    np.testing.assert_array_equal(now, part)
    np.testing.assert_array_equal(ref[...], wanted)


def test_windows_of_traced_places_and_repeated_indices():
    ref = ferrax.new_ref(jnp.zeros(8))

    @ferrax.jit
    def change(i):
        view = ref.at[ferrax.ds(i, 4)]
        view.at[jnp.array([1, 1, 2])].addupdate(jnp.ones(3))
        return view.at[ferrax.ds(i, 1)][...]

    assert change(1).tolist() == [2]
    assert ref[...].tolist() == [0, 0, 2, 1, 0, 0, 0, 0]


def test_bits_of_another_width_fill_rows():
    ref = ferrax.new_ref(WHOLE)
    halves = ref.bitcast(jnp.int16)
    assert halves.shape == (8, 6)
    bits = WHOLE.view(np.int16).reshape(4, 6, 2).swapaxes(1, 2).reshape(8, 6)
    np.testing.assert_array_equal(halves[...], bits)
    halves[0] = jnp.zeros(6, jnp.int16)
    halves[1] = jnp.zeros(6, jnp.int16)
    np.testing.assert_array_equal(ref[...], np.concatenate([np.zeros((1, 6)), WHOLE[1:]]))
    with pytest.raises(NotImplementedError, match="1D"):
        ferrax.new_ref(jnp.zeros(4)).bitcast(jnp.int16)[...]
    with pytest.raises(ValueError, match="whole elements"):
        ferrax.new_ref(jnp.zeros((3, 2), jnp.int16)).bitcast(jnp.int32)[...]


def test_views_are_arguments_of_functions_but_not_of_vmap():
    def change(view, x):
        view[...] += x
        return view[...]

    for call in (
        lambda view: ferrax.jit(change)(view, 1.0),
        lambda view: ferrax.checkpoint(change)(view, 1.0),
        lambda view: lax.cond(True, change, lambda view, x: view[...], view, 1.0),
        lambda view: lax.scan(lambda c, row: (c, change(row, 1.0)), 0, view)[1],
    ):
        ref = ferrax.new_ref(jnp.arange(6.0))
        assert ferrax.jit(lambda ref=ref, call=call: call(ref.at[jnp.array([4, 1])]))().tolist() == [5, 2]
        assert ref[...].tolist() == [0, 2, 2, 3, 5, 5]
    with pytest.raises(TypeError, match=r"for vmap, TransformedRefs are not allowed.*view\.ref"):
        ferrax.vmap(change, in_axes=(0, None))(ref.at[1:3], 1.0)
    for call in (jnp.sin, ferrax.new_ref, ferrax.freeze, np.asarray):
        with pytest.raises(TypeError):
            call(ref.at[1])
    with pytest.raises(Exception, match="cannot be abstractified"):
        ferrax.typeof(ref.at[1])


def test_shapes_of_views_must_fit():
    ref = ferrax.new_ref(WHOLE)
    for shape in ((5, 5), (-1, 7)):
        with pytest.raises(ValueError, match=r"cannot reshape|evenly divide"):
            ref.reshape(shape)
    with pytest.raises(ValueError, match="At most one dimension"):
        ref.reshape(-1, -1)
    with pytest.raises(ValueError, match="Invalid shape for `swap`"):
        ref.at[1][...] = jnp.zeros(5)
    with pytest.raises(ValueError, match="Invalid dtype"):
        ref.bitcast(jnp.int32)[...] = jnp.zeros((4, 6))
    with pytest.raises(ValueError, match=r"Out of bound indexer: idx=7, dim=6\."):
        ref.at[1][7]


@pytest.mark.parametrize("staged", [False, True])
def test_scan_takes_references_row_by_row(staged):
    wrap = ferrax.jit if staged else (lambda f: f)
    ref, other = ferrax.new_ref(jnp.arange(4.0)), ferrax.new_ref(jnp.zeros((4, 2)))

    def body(c, x):
        row, pair, number = x
        row[...] += c
        pair[1] = row[...]
        return c + number, row[...]

    run = lambda ref, other: lax.scan(body, 1.0, (ref, other, jnp.arange(4.0)), reverse=True)
    c, rows = wrap(run)(ref, other)
    assert c == 7 and rows.tolist() == ref[...].tolist() == [7, 7, 6, 4]
    assert other[...].tolist() == [[0, 7], [0, 7], [0, 6], [0, 4]]
    assert lax.map(lambda x: x[...] * 2, ref).tolist() == [14, 14, 12, 8]


def test_references_that_loops_and_branches_must_not_have():
    ref = ferrax.new_ref(jnp.zeros(3))
    once = "only one reference to a mutable array"
    with pytest.raises(ValueError, match=once + r"[\s\S]*appeared at both c\[0\] and c\[1\]"):
        lax.scan(lambda c, _: (None, None), (ref, ref), None, length=1)
    with pytest.raises(ValueError, match=once + r"[\s\S]*for cond .* appeared at both a and b"):
        lax.cond(True, lambda a, b: 1, lambda a, b: 1, ref, ref)
    for call in (
        lambda: lax.scan(lambda mine, _: (ref[...] + mine[...], None), ref, None, length=1),
        lambda: lax.scan(lambda c, mine: (ref[...], None), jnp.zeros(3), ref),
        lambda: lax.cond(True, lambda mine: ref[...] + mine[...], lambda mine: mine[...], ref),
    ):
        with pytest.raises(ValueError, match="closed over and passed as the argument mine"):
            call()
    returned = "returned a mutable array reference of type Ref"
    for transform, call in {
        "while_body": lambda: lax.while_loop(lambda c: False, lambda c: c, ref),
        "scan": lambda: lax.scan(lambda c, x: (ferrax.new_ref(c), x), 0.0, jnp.arange(3)),
        "cond": lambda: lax.cond(True, lambda: ferrax.new_ref(1.0), lambda: ferrax.new_ref(2.0)),
    }.items():
        with pytest.raises(ValueError, match=f"traced for {transform} {returned}"):
            call()


def test_references_stay_where_they_are():
    refs = {"a": ferrax.new_ref(jnp.zeros(3)), "b": jnp.ones(2)}
    got = ferrax.device_get(refs)
    assert got["a"] is refs["a"] and type(got["b"]) is np.ndarray


def test_jvp_of_references():
    """The tangents of a reference are in another one."""
    ref, slope = ferrax.new_ref(2.0), ferrax.new_ref(1.0)

    def f(ref, x):
        ref[...] = jnp.sin(ref[...]) * x
        return ref[...] + x

    value, tangent = ferrax.jvp(f, (ref, 3.0), (slope, 0.5))
    np.testing.assert_allclose([ref[...], value], [3 * np.sin(2), 3 * np.sin(2) + 3], rtol=1e-6)
    wanted = 3 * np.cos(2) + 0.5 * np.sin(2)
    np.testing.assert_allclose([slope[...], tangent], [wanted, wanted + 0.5], rtol=1e-6)


def test_checkpoint_of_references_keeps_values():
    def f(x):
        ref = ferrax.new_ref(x)

        @ferrax.checkpoint
        def step(y):
            ref[...] *= y
            return jnp.sin(ref[...])

        return step(x) + step(2.0)

    g = lambda x: jnp.sin(x * x) + jnp.sin(2 * x * x)
    np.testing.assert_allclose([f(0.7), ferrax.grad(f)(0.7)], [g(0.7), ferrax.grad(g)(0.7)], rtol=1e-5)


def counting():
    """The identity, whose backward rule adds the largest cotangent to a reference, and doubles."""

    @ferrax.custom_vjp
    def f(x, ref):
        return x

    def bwd(ref, ct):
        ref[...] = ref[...] + jnp.max(ct)
        return ct * 2, None

    f.defvjp(lambda x, ref: (x, ref), bwd)
    return f


def test_backward_rules_of_jitted_functions_write_to_references():
    """Whether the reference is an argument or closed over, and wherever `jit` stands."""
    f, x = counting(), jnp.ones(3)
    calls = {
        "closed over": lambda ref: ferrax.grad(ferrax.jit(lambda x: f(x @ x, ref)))(x),
        "argument": lambda ref: ferrax.grad(ferrax.jit(lambda x, ref: f(x @ x, ref)))(x, ref),
        "inside": lambda ref: ferrax.jit(ferrax.grad(lambda x, ref: f(x @ x, ref)))(x, ref),
        "both": lambda ref: ferrax.jit(ferrax.grad(ferrax.jit(lambda x, ref: f(x @ x, ref))))(x, ref),
        "checkpoint": lambda ref: ferrax.grad(lambda x: ferrax.checkpoint(lambda x: f(x @ x, ref))(x))(x),
    }
    for name, call in calls.items():
        ref = ferrax.new_ref(0.0)
        for n in (1, 2):
            assert call(ref).tolist() == [4, 4, 4], name
            assert number(ref) == n, name
    jitted = ferrax.jit(lambda x, ref: f(x @ x, ref))
    assert jitted(x, ref) == 3 and number(ref) == 2  # which is compiled where nothing is differentiated


def number(ref):
    return float(ref[...])


def test_backward_rules_in_loops_write_to_references():
    f, ref = counting(), ferrax.new_ref(0.0)
    loop = lambda x: lax.scan(lambda c, k: (f(c * x, ref) * k, None), 1.0, jnp.ones(3))[0]
    assert ferrax.grad(loop)(2.0) == 56 and number(ref) == 21
    assert loop(2.0) == 8 and number(ref) == 21
    chosen = lambda x: lax.cond(x > 0, lambda: f(x, ref), lambda: x)
    many = lambda x: lax.while_loop(lambda c: c < 3, lambda c: f(c * 2.0, ref), x)
    for function in (chosen, many):
        with pytest.raises(NotImplementedError, match=r"backward rule .*bwd.* uses references"):
            ferrax.grad(function)(1.0)
    assert number(ref) == 21
