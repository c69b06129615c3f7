"""References: reading and writing, and every transformation of functions that use them."""

import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax


def number(ref):
    return float(ref[...])


INDICES = [0, -1, 1, slice(None), slice(1, None), slice(None, None, 2), ..., (slice(0, 2), 1), (2, 3), (..., 0)]


@pytest.mark.parametrize("idx", INDICES, ids=repr)
@pytest.mark.parametrize("staged", [False, True])
def test_reads_and_writes_like_numpy(idx, staged):
    wanted = np.arange(12, dtype=np.float32).reshape(3, 4)
    ref = ferrax.new_ref(wanted)
    wrap = ferrax.jit if staged else (lambda f: f)
    np.testing.assert_array_equal(wrap(lambda: ref[idx])(), wanted[idx])
    value = np.full_like(wanted[idx], 7)

    @wrap
    def write(v):
        ref[idx] = v
        ref[idx] += v

    write(value)
    wanted[idx] = 14
    np.testing.assert_array_equal(ref[...], wanted)
    assert ref.shape == wanted.shape and ref.dtype == wanted.dtype and ref.ndim == 2 and ref.size == 12


@pytest.mark.parametrize("idx", [3, (0, 4), (slice(None), 5), (..., 7), np.int8(5), jnp.int32(3), (None, 3)], ids=repr)
@pytest.mark.parametrize("staged", [False, True])
def test_a_number_that_is_known_must_be_in_the_array(idx, staged):
    """Of arrays reads stop at the end, and writes are dropped; of references both are errors, as in JAX."""
    import jax

    ref = ferrax.new_ref(jnp.zeros((3, 4)))
    wrap = ferrax.jit if staged else (lambda f: f)

    def write():
        ref[idx] = 1.0

    for use in (lambda: ref[idx], write, lambda: ferrax.ref.addupdate(ref, idx, 1.0)):
        with pytest.raises(ValueError, match=r"Out of bound indexer: idx=\d, dim=[34]\.") as ours:
            wrap(use)()
    assert not ref[...].any()
    if not isinstance(idx, tuple) or idx[0] is not None:  # which JAX's references do not take
        with pytest.raises(ValueError) as theirs:
            jax.new_ref(jax.numpy.zeros((3, 4)))[np.int32(3) if isinstance(idx, ferrax.Array) else idx]
        assert str(ours.value).startswith(str(theirs.value))


def test_a_traced_number_stops_at_the_end():
    ref = ferrax.new_ref(jnp.arange(3.0))
    assert ferrax.jit(lambda i: ref[i])(7) == 2
    ferrax.jit(lambda i: ferrax.ref.set(ref, i, 9.0))(7)
    assert ref[...].tolist() == [0, 1, 2]


def test_arrays_as_indices():
    ref = ferrax.new_ref(jnp.zeros((3, 4)))
    ref[jnp.array([1, 2, 1]), jnp.array([0, 0, 1])] = jnp.array([1.0, 2.0, 3.0])
    assert ref[1].tolist() == [1, 3, 0, 0] and ref[jnp.array([2, 1]), 0].tolist() == [2, 1]
    ferrax.ref.addupdate(ref, (jnp.array([0, 0]), 3), jnp.ones(2))
    assert number(ferrax.new_ref(ref[0, 3])) == 2


def test_functions():
    ref = ferrax.new_ref(jnp.arange(3.0))
    assert ferrax.ref.get(ref).tolist() == [0, 1, 2] and ferrax.ref.get(ref, 1) == 1
    assert ferrax.ref.swap(ref, 1, 9.0) == 1
    ferrax.ref.set(ref, 2, 8.0)
    ref.addupdate(1.0, 0)
    assert repr(ref) == "Ref([1., 9., 8.], dtype=float32)"
    assert ferrax.freeze(ref).tolist() == [1, 9, 8]
    assert ferrax.empty_ref(ferrax.ShapeDtypeStruct((2,), "int32")).dtype == np.int32
    ferrax.free_ref(ferrax.new_ref(1))
    assert repr(ferrax.typeof(ferrax.new_ref(jnp.ones(2)))) == "Ref{float32[2]}"
    copy = pickle.loads(pickle.dumps(ferrax.new_ref(2.0)))
    assert copy[...] == 2 and copy[...].weak_type


def test_types_of_what_is_written():
    ref, number_ref = ferrax.new_ref(jnp.zeros(3)), ferrax.new_ref(0.0)
    assert not ref[...].weak_type and number_ref[...].weak_type
    ref[0], number_ref[...] = 1, 2.0
    assert ref[0] == 1 and not ref[...].weak_type and number_ref[...].weak_type
    number_ref[...] += 1.0
    peer = pytest.importorskip("jax").new_ref(0.0)
    peer[...] += 3.0
    assert repr(number_ref) == repr(peer)
    ref[...] = np.ones(3)
    for idx, value, text in [
        (..., 1.0, "Invalid shape for `swap`. Ref shape: (3,). Expected shape: (3,). Value shape: ()."),
        (0, jnp.ones(1), "Expected shape: (). Value shape: (1,)."),
        (0, jnp.int32(1), "Invalid dtype for `swap`. Ref dtype: float32. Value dtype: int32."),
        (0, 1j, "Value dtype: complex64."),
    ]:
        with pytest.raises(ValueError) as caught:
            ref[idx] = value
        assert text in str(caught.value)
    for value in ("a", [1.0], ref):
        with pytest.raises(TypeError, match="`swap` writes arrays"):
            ref[...] = value
    assert ref[...].tolist() == [1, 1, 1]


def test_jit_closes_over():
    ref = ferrax.new_ref(jnp.zeros(3))
    traces = []

    @ferrax.jit
    def step(x):
        traces.append(0)
        ref[1] += x
        return ref[...].sum()

    assert [float(step(1.0)) for _ in range(4)] == [1, 2, 3, 4]
    count = len(traces)
    ref[...] = jnp.ones(3)
    assert step(1.0) == 4 and len(traces) == count, "new values are no new types"
    assert ref[...].tolist() == [1, 2, 1]


def test_jit_takes_references():
    @ferrax.jit
    def swap(refs, n, *, by):
        refs["a"][...], refs["b"][...] = refs["b"][...] * n, refs["a"][...] + by[...]
        by[...] *= 2.0

    a, b, by = (ferrax.new_ref(x) for x in (1.0, 10.0, 100.0))
    swap({"a": a, "b": b}, 3.0, by=by)
    assert (number(a), number(b), number(by)) == (30, 101, 200)
    other = ferrax.new_ref(5.0)
    swap({"a": other, "b": a}, 1.0, by=by)
    assert (number(other), number(a), number(by)) == (30, 205, 400)


def test_static_and_donated_arguments():
    ref = ferrax.new_ref(0.0)

    def f(ref, n, x, name=""):
        ref[...] += n * x.sum() + len(name)
        return x + 1

    g = ferrax.jit(f, static_argnums=1, static_argnames="name", donate_argnums=2)
    x = jnp.ones(1000)
    g(ref, 2, x, name="abc")
    assert number(ref) == 2003 and x.is_deleted()
    g(ref, 3, jnp.ones(2), name="")
    assert number(ref) == 2009


def test_another_branch_of_python_finds_more_references():
    a, b = ferrax.new_ref(0.0), ferrax.new_ref(0.0)

    @ferrax.jit
    def f(x):
        a[...] += 1.0
        if x.ndim:
            b[...] += 10.0
        return a[...] + b[...]

    assert [float(f(1.0)), float(f(jnp.ones(1))), float(f(1.0)), float(f(jnp.ones(1)))] == [1, 12, 13, 24]


def test_jit_in_jit():
    ref = ferrax.new_ref(0.0)
    inner = ferrax.jit(lambda x: ref.addupdate(x))

    @ferrax.jit
    def outer(x):
        inner(x)
        own = ferrax.new_ref(x)
        ferrax.jit(lambda: own.addupdate(ref[...]))()
        inner(2 * x)
        return ferrax.freeze(own)

    assert outer(1.0) == 2 and number(ref) == 3
    assert outer(1.0) == 5 and number(ref) == 6


def scan_into(ref, n):
    def body(c, x):
        ref[x] += c
        return c + 1.0, ref[0]

    return lax.scan(body, 1.0, jnp.arange(n) % 3)


@pytest.mark.parametrize("wrap", [lambda f: f, ferrax.jit, lambda f: ferrax.jit(ferrax.jit(f))])
def test_loops(wrap):
    ref = ferrax.new_ref(jnp.zeros(3))
    c, firsts = wrap(lambda: scan_into(ref, 5))()
    assert c == 6 and firsts.tolist() == [1, 1, 1, 5, 5] and ref[...].tolist() == [5, 7, 3]
    total = ferrax.new_ref(0)
    wrap(lambda: lax.fori_loop(0, 5, lambda i, _: total.addupdate(i), None))()
    assert total[...] == 10
    wrap(lambda n: lax.fori_loop(0, n, lambda i, _: total.addupdate(i), None))(jnp.int32(4))
    assert total[...] == 16

    def countdown(x):
        total[...] -= 1
        return x + 1

    assert wrap(lambda: lax.while_loop(lambda x: total[...] > 0, countdown, 0))() == 16
    assert total[...] == 0
    assert wrap(lambda: lax.map(lambda x: ref.addupdate(x, 0), jnp.ones(4)))() is None
    assert ref[0] == 9


@pytest.mark.parametrize("wrap", [lambda f: f, ferrax.jit])
def test_a_condition_that_writes(wrap):
    """What it writes counts where it holds, as in JAX; JAX, too, refuses references that the body writes as well."""
    ref, steps = ferrax.new_ref(0), ferrax.new_ref(0)

    def condition(i):
        ref[...] += 2
        return i < 5

    def body(i):
        steps[...] += i + ref[...]
        return i + 1

    assert wrap(lambda: lax.while_loop(condition, body, 0))() == 5
    assert (ref[...], steps[...]) == (10, 10 + 2 + 4 + 6 + 8 + 10)

    def both(i):
        ref[...] += 1
        return i + 1

    with pytest.raises(NotImplementedError, match="Cannot write to the same ref in both cond and body"):
        wrap(lambda: lax.while_loop(condition, both, 0))()
    assert ref[...] == 10


@pytest.mark.parametrize("wrap", [lambda f: f, ferrax.jit])
def test_loops_in_loops(wrap):
    ref = ferrax.new_ref(0)

    def outer(i, _):
        own = ferrax.new_ref(0)
        lax.fori_loop(0, 3, lambda j, _: (ref.addupdate(1), own.addupdate(j))[0], None)
        ref[...] += own[...]

    wrap(lambda: lax.fori_loop(0, 4, outer, None))()
    assert ref[...] == 4 * (3 + 3)


@pytest.mark.parametrize("wrap", [lambda f: f, ferrax.jit])
def test_branches(wrap):
    a, b = ferrax.new_ref(0.0), ferrax.new_ref(0.0)

    def f(p):
        return lax.cond(p, lambda x: (a.addupdate(x), x)[1], lambda x: (b.addupdate(-x), a[...])[1], 2.0)

    f = wrap(f)
    assert (f(True), number(a), number(b)) == (2, 2, 0)
    assert (f(False), number(a), number(b)) == (2, 2, -2)
    lax.switch(1, [lambda r, x: None, lambda r, x: r.addupdate(x)], a, 5.0)
    assert number(a) == 7


def test_vmap_over_references():
    def distance(x, y, out):
        assert x.ndim == y.ndim == 1 and out.ndim == 0
        out[...] = jnp.sum((x - y) ** 2)
        return out[...] + 1

    rows = jnp.arange(12.0).reshape(3, 4)
    out = ferrax.new_ref(jnp.zeros((3, 3)))
    plus = ferrax.vmap(ferrax.vmap(distance, (0, None, 0)), (None, 0, 0))(rows, rows, out)
    wanted = np.sum((np.asarray(rows)[:, None] - np.asarray(rows)[None]) ** 2, -1)
    np.testing.assert_array_equal(out[...], wanted)
    np.testing.assert_array_equal(plus, wanted + 1)
    columns = ferrax.new_ref(jnp.zeros((2, 3)))
    ferrax.vmap(lambda t: t["r"].addupdate(t["x"]), ({"r": 1, "x": None},))({"r": columns, "x": jnp.ones(2)})
    assert columns[...].tolist() == [[1, 1, 1], [1, 1, 1]]
    shared = ferrax.new_ref(2.0)
    read = ferrax.vmap(lambda r, x: r[...] * x, (None, 0))
    assert read(shared, jnp.arange(3.0)).tolist() == [0, 2, 4]
    assert ferrax.jit(read)(shared, jnp.arange(3.0)).tolist() == [0, 2, 4]


def test_vmap_does_not_write_to_what_it_closes_over():
    ref = ferrax.new_ref(0.0)
    for call in (ferrax.vmap(lambda x: ref.addupdate(x)), ferrax.jit(ferrax.vmap(lambda x: ref.addupdate(x)))):
        with pytest.raises(Exception, match="vmapped value on an unbatched array reference of type"):
            call(jnp.arange(3.0))
    assert number(ref) == 0
    with pytest.raises(Exception, match="vmapped value on an unbatched array reference of type"):
        ferrax.vmap(lambda x: ref.addupdate(1.0))(jnp.arange(3.0))
    ref.addupdate(1.0)
    # an argument that is not mapped is one of those
    with pytest.raises(Exception, match="vmapped value on an unbatched array reference of type"):
        ferrax.vmap(lambda r, x: r.addupdate(x), (None, 0))(ref, jnp.arange(3.0))
    rows = ferrax.new_ref(jnp.zeros(3))
    add = ferrax.vmap(lambda rows, r, x: rows.addupdate(r[...] * x), (0, None, 0))
    add(rows, ref, jnp.arange(3.0))
    ferrax.jit(add)(rows, ref, jnp.arange(3.0))
    assert rows[...].tolist() == [0, 2, 4] and number(ref) == 1


def pure(x):
    ref = ferrax.new_ref(x)
    ref[...] = ref[...] * ref[...]
    lax.fori_loop(0, 2, lambda i, _: ref.__setitem__(..., jnp.sin(ref[...])), None)
    return ref[...]


def test_pure_functions_are_transformed_as_any():
    plain = lambda x: jnp.sin(jnp.sin(x * x))
    x = jnp.linspace(0.1, 1.0, 5)
    for f in (pure, ferrax.jit(pure)):
        np.testing.assert_allclose(f(x), plain(x), rtol=1e-6)
        np.testing.assert_allclose(ferrax.vmap(f)(x), plain(x), rtol=1e-6)
        np.testing.assert_allclose(ferrax.grad(f)(0.7), ferrax.grad(plain)(0.7), rtol=1e-6)
        np.testing.assert_allclose(ferrax.vmap(ferrax.grad(f))(x), ferrax.vmap(ferrax.grad(plain))(x), rtol=1e-5)
        np.testing.assert_allclose(ferrax.jvp(f, (0.7,), (2.0,))[1], 2 * ferrax.grad(plain)(0.7), rtol=1e-5)
        np.testing.assert_allclose(ferrax.hessian(f)(0.7), ferrax.hessian(plain)(0.7), rtol=1e-4)


@pytest.mark.parametrize("wrap", [lambda f: f, ferrax.jit])
def test_gradients_beside_references(wrap):
    def f(x, seen):
        y = x * x
        seen[...] += lax.stop_gradient(y)
        return y * seen[...]

    seen = ferrax.new_ref(1.0)
    slope = ferrax.grad(wrap(f))(3.0, seen)
    assert slope == 2 * 3 * 10 and number(seen) == 10

    def wrong(x, seen):
        seen[...] += 2 * x
        return x

    with pytest.raises(Exception, match="a differentiated value on a non-differentiated array reference"):
        ferrax.grad(wrap(wrong))(3.0, seen)
    assert number(seen) == 10
    wrap(wrong)(3.0, seen)
    assert number(seen) == 16


@ferrax.custom_vjp
def stash(ref, x):
    return x


stash.defvjp(lambda ref, x: (x, (ref, x)), lambda kept, g: (kept[0].__setitem__(..., g * kept[1]), (None, g))[1])


@pytest.mark.parametrize("wrap", [lambda f: f, ferrax.jit])
def test_cotangents_are_stashed(wrap):
    ref = ferrax.new_ref(0.0)
    slope = wrap(ferrax.grad(lambda x, ref: jnp.sin(stash(ref, x))))(1.0, ref)
    np.testing.assert_allclose([slope, ref[...]], np.cos([1.0, 1.0]), rtol=1e-6)


def test_vjp_with_references():
    _, pullback = ferrax.vjp(jnp.sin, 1.0)
    into = ferrax.new_ref(1.0)
    assert pullback.with_refs(into)(1.0) == (ferrax.ad.GradRef(),)
    np.testing.assert_allclose(into[...], 1 + np.cos(1.0), rtol=1e-6)
    _, pullback = ferrax.vjp(lambda t, y: t["a"] * y, {"a": 2.0}, 3.0)
    assert pullback.with_refs(ferrax.ad.GradValue(), ferrax.ad.DontWant())(1.0) == ({"a": 3}, ferrax.ad.DidntWant())
    assert pullback.with_refs({"a": into}, ferrax.ad.GradValue())(0.0) == ({"a": ferrax.ad.GradRef()}, 0)
    with pytest.raises(ValueError, match="one entry an argument, 2 in all, got 1"):
        pullback.with_refs(into)(1.0)


def test_vjp_of_references():
    def f(ref, y):
        ref[...] = jnp.sin(ref[...])
        return ref[...] ** 2 * y

    ref, slope = ferrax.new_ref(2.0), ferrax.new_ref(100.0)
    value, pullback = ferrax.vjp(f, ref, 3.0)
    np.testing.assert_allclose([value, ref[...]], [3 * np.sin(2.0) ** 2, np.sin(2.0)], rtol=1e-6)
    with pytest.raises(ValueError, match="with_refs"):
        pullback(1.0)
    _, of_y = pullback.with_refs(slope, ferrax.ad.GradValue())(1.0)
    np.testing.assert_allclose(of_y, np.sin(2.0) ** 2, rtol=1e-6)
    np.testing.assert_allclose(slope[...], 100 + 6 * np.sin(2.0) * np.cos(2.0), rtol=1e-6)
    with pytest.raises(TypeError, match="with_refs method of what vjp gives"):
        ferrax.grad(f)(ref, 3.0)


def test_what_is_not_allowed():
    ref, other = ferrax.new_ref(0.0), ferrax.new_ref(0.0)

    @ferrax.jit
    def two(x_ref, y_ref):
        pass

    with pytest.raises(ValueError, match="appeared at both x_ref and y_ref"):
        two(ref, ref)
    two(ref, other)

    @ferrax.jit
    def closes(y_ref):
        y_ref[...] = ref[...]

    with pytest.raises(ValueError, match="both closed over and passed as the argument y_ref"):
        closes(ref)
    for f in (lambda r: r, lambda r: [ferrax.new_ref(1.0)], lambda r: (r[...], {"a": r})):
        with pytest.raises(ValueError, match="references cannot be returned"):
            ferrax.jit(f)(ref)
    with pytest.raises(ValueError, match="references cannot be returned"):
        ferrax.jit(lambda: ferrax.new_ref(1.0))()
    with pytest.raises(ValueError, match="references cannot be returned"):
        lax.scan(lambda c, _: (c, ref), 0.0, None, length=2)
    with pytest.raises(ValueError, match="only be frozen where it was made"):
        ferrax.jit(lambda r: ferrax.freeze(r))(ref)
    with pytest.raises(ValueError, match="only be frozen where it was made"):
        ferrax.jit(lambda: ferrax.freeze(ref))()
    for call in (
        jnp.sin,
        np.asarray,
        jnp.asarray,
        ferrax.new_ref,
    ):
        with pytest.raises(TypeError):
            call(ref)
    with pytest.raises(ValueError, match=r"for scan returned .* result\[0\].*\n\n.* was passed in as the argument c"):
        lax.scan(lambda c, _: (c, 0), ref, length=1)
    with pytest.raises(ValueError, match=r"for jit returned .*\n\n.* was created on line .*:\d+:\d+ \(.*<lambda>\)\.$"):
        ferrax.jit(lambda: ferrax.new_ref(1.0))()
    with pytest.raises(TypeError):
        ref + 1
    ferrax.freeze(ref)
    for use in (lambda: ref[...], lambda: ref.__setitem__(..., 1.0), lambda: ferrax.freeze(ref)):
        with pytest.raises(ValueError, match="after it had been frozen"):
            use()
    assert ferrax.jit(lambda x: x + 1)(1.0) == 2, "what failed leaves nothing behind"


def test_rules_and_references():
    """Errors of functions with rules, in the words of JAX's tests."""
    ref, other = ferrax.new_ref(1.0), ferrax.new_ref(2.0)

    def ruled(fun, fwd):
        made = ferrax.custom_vjp(fun)
        made.defvjp(fwd, lambda residuals, g: (g, None))
        return made

    given_back = ruled(lambda x, r: r, lambda x, r: (x, r))
    passed_on = ruled(lambda x, r: x, lambda x, r: (x, r))
    twice = ruled(lambda x_ref, y_ref: 1.0, lambda x, r: (x, r))
    for transform in (lambda f: f, ferrax.jit):
        with pytest.raises(ValueError, match=r"custom_vjp primal function .* returned .* that was not an argument"):
            transform(given_back)(1.0, ref)
        for out, why in [
            (
                lambda x, r: ((x, r), r),
                r"Ref\{float32\[\]\} at output tree path \[0\]\[1\], but .* cannot be returned there",
            ),
            (lambda x, r: (x, {"a": other}), r"at output tree path \[1\]\['a'\] that was not an argument"),
        ]:
            with pytest.raises(ValueError, match=f"custom_vjp fwd function .* returned a .*{why}"):
                ferrax.vjp(transform(ruled(lambda x, r: x, out)), 3.0, ref)
        with pytest.raises(ValueError, match=r"at(?: both)? x_ref and y_ref"):
            transform(twice)(ref, ref)
        assert ferrax.vjp(transform(passed_on), 3.0, ref)[0] == 3


def test_references_to_numbers_are_weak():
    """What is read has the type of the first value, whatever was written since, which shows as it is."""

    def told(jax):
        ref = jax.new_ref(2.0)
        seen = [repr(ref), str((ref[...] + jax.numpy.float16(1)).dtype), ref[...].weak_type]
        for write in (lambda: ref.__setitem__(..., 3.0), lambda: ref.__setitem__(..., jax.numpy.float32(4))):
            write()
            seen += [repr(ref), ref[...].weak_type]
        jax.jit(lambda r: r.__setitem__(..., r[...] * jax.numpy.float32(2)))(ref)
        jax.lax.fori_loop(0, 3, lambda i, _: ref.__setitem__(..., ref[...] * 2), None)
        return [*seen, repr(ref), ref[...].weak_type, repr(jax.typeof(ref).inner_aval)]

    assert told(ferrax) == told(pytest.importorskip("jax"))


def test_shapes_without_running():
    ref = ferrax.new_ref(jnp.ones(3))
    out = ferrax.eval_shape(lambda r, x: (r.addupdate(x, 0), r[...] * x)[1], ref, 2.0)
    assert out.shape == (3,) and ref[...].tolist() == [1, 1, 1]


def test_errors_inside_leave_values_alone():
    ref = ferrax.new_ref(0.0)

    @ferrax.jit
    def f(fail):
        ref[...] += 1.0
        if fail.shape:
            raise KeyError("mine")

    f(1.0)
    with pytest.raises(KeyError, match="mine"):
        f(jnp.ones(1))
    f(1.0)
    assert number(ref) == 2


def test_references_of_several_threads():
    def work(n):
        ref = ferrax.new_ref(0)
        step = ferrax.jit(lambda x: ref.addupdate(x))
        for _ in range(50):
            step(n)
        results.append((n, int(ref[...])))

    results = []
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(results) == [(n, 50 * n) for n in range(4)]


def test_functions_and_references_are_freed():
    def used():
        ref = ferrax.new_ref(jnp.zeros(3))

        @ferrax.jit
        def f():
            ref[0] += 1.0

        f()
        return weakref.ref(ref)

    alive = used()
    gc.collect()
    assert alive() is None


def test_what_fails_keeps_no_references():
    """Those that a failed trace has used are forgotten when one is made or used outside of traces."""

    def used(attempt):
        ref = ferrax.new_ref(jnp.zeros(3))
        with pytest.raises((KeyError, NotImplementedError)):
            attempt(ref)
        return weakref.ref(ref)

    def fails(ref):
        ref[0] += 1.0
        raise KeyError("mine")

    attempts = [
        lambda ref: ferrax.jit(lambda: fails(ref))(),
        lambda ref: lax.fori_loop(0, 2, lambda i, _: fails(ref), None),
        lambda ref: ferrax.make_jaxpr(lambda: fails(ref))(),
        lambda ref: ferrax.jit(lambda: fails(ref)).lower(),
    ]
    for attempt in attempts:
        alive = used(attempt)
        ferrax.new_ref(1.0)
        gc.collect()
        assert alive() is None


def test_disable_jit():
    ref = ferrax.new_ref(0.0)
    f = ferrax.jit(lambda: ref.addupdate(1.0))
    f()
    with ferrax.disable_jit():
        f()
    f()
    assert number(ref) == 3


def test_cotangents_that_nobody_wants_are_not_computed():
    def f(w, x, y):
        return jnp.sum((w["a"] @ x) * jnp.cos(y)) + jnp.sum(w["b"])

    w, x, y = {"a": jnp.ones((4, 4)), "b": jnp.ones(2)}, jnp.arange(4.0), jnp.arange(4.0)
    _, pull = ferrax.vjp(f, w, x, y)
    all_of_them = pull(1.0)
    value, skip = ferrax.ad.GradValue(), ferrax.ad.DontWant()
    for wanted in (
        (value, skip, value),
        (skip, value, skip),
        ({"a": value, "b": skip}, skip, skip),
        (skip, skip, skip),
    ):
        got = pull.with_refs(*wanted)(1.0)
        for mine, whole, want in zip(got, all_of_them, wanted, strict=True):
            if want is skip:
                assert isinstance(mine, ferrax.ad.DidntWant)
            elif isinstance(want, dict):
                assert isinstance(mine["b"], ferrax.ad.DidntWant) and (mine["a"] == whole["a"]).all()
            else:
                assert ferrax.tree.all(ferrax.tree.map(lambda a, b: (a == b).all(), mine, whole))

    _, product = ferrax.vjp(jnp.multiply, y, y)
    program = ferrax.make_jaxpr(lambda ct: product.with_refs(skip, value)(ct))(y)
    assert [e.primitive.name for e in program.eqns] == ["mul"]

    def products(*wanted):
        return str(ferrax.make_jaxpr(lambda: pull.with_refs(*wanted)(1.0))()).count("dot_general")

    assert products(value, value, value) == 2
    assert products(value, skip, value) == products(skip, value, value) == 1
    assert products(skip, skip, value) == 0
    accumulated = ferrax.new_ref(jnp.ones(4))
    pull.with_refs(skip, accumulated, skip)(1.0)
    np.testing.assert_allclose(accumulated[...], 1 + all_of_them[1])


@pytest.mark.parametrize("how", ["eager", "jit", "inner jit", "scan", "argument"])
def test_rows_that_write_a_reference_of_all_rows(how):
    ref, rows = ferrax.new_ref(jnp.zeros(())), jnp.arange(3.0)

    def write(x, ref=ref):
        ferrax.ref.addupdate(ref, ..., jnp.ones(()))
        return x

    def steps(x):
        return ferrax.lax.scan(lambda c, _: (write(c), None), x, None, length=2)[0]

    runs = {
        "eager": lambda: ferrax.vmap(write)(rows),
        "jit": lambda: ferrax.jit(ferrax.vmap(write))(rows),
        "inner jit": lambda: ferrax.vmap(ferrax.jit(write))(rows),
        "scan": lambda: ferrax.vmap(steps)(rows),
        "argument": lambda: ferrax.vmap(write, in_axes=(0, None))(rows, ref),
    }
    with pytest.raises(Exception, match="vmapped value on an unbatched array reference"):
        runs[how]()
    assert ref[...] == 0
    # one of each row is its own
    own = ferrax.vmap(lambda x: write(x, own := ferrax.new_ref(0.0 * x)) + own[...])
    np.testing.assert_array_equal(own(rows), rows + 1)
