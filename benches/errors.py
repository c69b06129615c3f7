"""What a mistake costs: raising and catching an error, its text included (promise P16: 10 µs at most).

Each row makes one mistake, whose operands exist already. Mistakes with traced values are made a thousand times in
one trace, and the time is of one of them. Mistakes of loops, branches and jitted functions are whole calls, which trace
the functions again each time: the rows beside them make the same calls without the mistake. Large trees have a thousand
leaves. The mistakes themselves, and what their texts must say, are in `tests/errors/mistakes.py`.
"""

from functools import partial

import harness

TRACED = 1000


def eager(*arguments):
    """A function that makes a mistake, catches it and reads its text; the last argument sets the mistake up."""
    *given, mistake = arguments
    wrong = mistake(*given)

    def attempt():
        try:
            wrong()
        except Exception as error:
            return str(error)
        raise AssertionError("the mistake went unnoticed")

    return attempt


def traced(jax, jnp, mistake):
    """A function that traces a program which makes a mistake `TRACED` times; a new one each time."""

    def trace():
        def program(x):
            attempt = eager(jnp, x, mistake)
            for _ in range(TRACED):
                attempt()
            return x

        return jax.make_jaxpr(program)(jnp.float32(1.0))

    return trace


def whole_call(jax, jnp, calls, part):
    """A function that makes a mistake (or the call without it) and catches the error."""
    call = calls(jax, jnp)[part]

    def attempt():
        try:
            call()
        except Exception as error:
            str(error)

    return attempt


def eager_mistakes():
    def add(jax, jnp):
        x, y = jnp.ones(3), jnp.ones(4)
        return lambda: x + y

    def matmul(jax, jnp):
        x, y = jnp.ones((2, 3)), jnp.ones((4, 5))
        return lambda: x @ y

    def concatenate(jax, jnp):
        x, y = jnp.ones((2, 3)), jnp.ones((2, 4))
        return lambda: jnp.concatenate([x, y])

    def reshape(jax, jnp):
        x = jnp.arange(6)
        return lambda: x.reshape(4, 2)

    def axis(jax, jnp):
        x = jnp.ones((2, 3))
        return lambda: jnp.sum(x, axis=2)

    def index(jax, jnp):
        x = jnp.ones((2, 3))
        return lambda: x[0, 0, 0]

    def assign(jax, jnp):
        x = jnp.ones(3)
        return lambda: x.__setitem__(0, 1.0)

    def dtype(jax, jnp):
        x, y = jnp.ones(3), jnp.arange(3)
        return lambda: jax.lax.add(x, y)

    def kind(jax, jnp):
        return lambda: jnp.sin("three")

    def static(jax, jnp):
        f = jax.jit(lambda x, n: x, static_argnums=1)
        x = jnp.ones(3)
        return lambda: f(x, [1])

    def argument(jax, jnp):
        f = jax.jit(lambda x, label: x)
        x = jnp.ones(3)
        return lambda: f(x, "train")

    def arity(jax, jnp):
        f = jax.jit(lambda x, y: x)
        x = jnp.ones(3)
        return lambda: f(x)

    def deleted(jax, jnp):
        x = jnp.ones(3)
        x.delete()
        return lambda: x + 1

    def integer_gradient(jax, jnp):
        f = jax.grad(lambda x: x * x)
        return lambda: f(3)

    def vmap(jax, jnp):
        f = jax.vmap(lambda x, y: x * y)
        x, y = jnp.ones(3), jnp.ones(4)
        return lambda: f(x, y)

    def tree(jax, jnp):
        x, y = {"a": 1, "b": 2}, {"a": 1, "c": 2}
        return lambda: jax.tree.map(lambda a, b: a, x, y)

    def dot(jax, jnp):
        x, y = jnp.ones(3), jnp.ones(4)
        return lambda: jnp.dot(x, y)

    def stack(jax, jnp):
        x, y = jnp.ones(3), jnp.ones(4)
        return lambda: jnp.stack([x, y])

    def broadcast(jax, jnp):
        x = jnp.ones(3)
        return lambda: jnp.broadcast_to(x, (2, 4))

    def where(jax, jnp):
        x, y = jnp.ones(3), jnp.ones(4)
        return lambda: jnp.where(x > 0, y, 0.0)

    def einsum(jax, jnp):
        x, y = jnp.ones((2, 3)), jnp.ones((4, 5))
        return lambda: jnp.einsum("ij,jk->ik", x, y)

    def transposition(jax, jnp):
        x = jnp.ones((2, 3))
        return lambda: jnp.transpose(x, (0, 0))

    def name_of_a_dtype(jax, jnp):
        return lambda: jnp.zeros(3, "float33")

    def shape_of_floats(jax, jnp):
        return lambda: jnp.zeros(2.5)

    def object_as_an_array(jax, jnp):
        return lambda: jnp.asarray(object())

    def float_index(jax, jnp):
        x = jnp.ones(3)
        return lambda: x[0.5]

    def iteration(jax, jnp):
        x = jnp.float32(1.0)
        return lambda: list(x)

    def number(jax, jnp):
        x = jnp.ones(3)
        return lambda: float(x)

    def truth(jax, jnp):
        x = jnp.ones(3)
        return lambda: bool(x)

    def key(jax, jnp):
        x = jax.random.key(0)
        return lambda: x + 1

    def keyword(jax, jnp):
        x = jnp.ones(3)
        return lambda: jnp.sum(x, axes=0)

    def vector_gradient(jax, jnp):
        f = jax.grad(lambda x: x * x)
        x = jnp.ones(3)
        return lambda: f(x)

    def in_axes(jax, jnp):
        f = jax.vmap(lambda x, y: x, in_axes=({"b": 0}, 0))
        x = jnp.ones(3)
        return lambda: f({"a": x}, x)

    def donated(jax, jnp):
        f = jax.jit(lambda x: x + 1, donate_argnums=0)
        x = jnp.ones(3)
        f(x)
        return lambda: f(x)

    def leaves(jax, jnp):
        treedef = jax.tree.structure([1, 2])
        return lambda: jax.tree.unflatten(treedef, [1])

    def setting(jax, jnp):
        return lambda: jax.config.update("jax_enable_x65", True)

    def attribute(jax, jnp):
        return lambda: jnp.sine

    return locals()


def traced_mistakes():
    def truth(jnp, x):
        positive = x > 0
        return lambda: bool(positive)

    def integer(jnp, x):
        n = x.astype(int)
        return lambda: range(n)

    def number(jnp, x):
        return lambda: float(x)

    def numpy(jnp, x):
        return x.__array__

    def shape(jnp, x):
        n = x.astype(int)
        return lambda: jnp.zeros(n)

    def mask(jnp, x):
        y = jnp.ones(3)
        above = y > x
        return lambda: y[above]

    return locals()


def whole_calls():
    """Name -> (the mistake, the same call without it); both trace anew each time."""

    def call_of_cond(jax, jnp):
        x = jnp.float32(1.0)
        cond = jax.lax.cond
        return lambda: cond(True, lambda x: x, lambda x: (x, x), x), lambda: cond(True, lambda x: x, lambda x: -x, x)

    def call_of_scan(jax, jnp):
        x, xs = jnp.float32(1.0), jnp.ones(3)
        scan = jax.lax.scan
        return lambda: scan(lambda c, x: ((c, c), x), x, xs), lambda: scan(lambda c, x: (c, x), x, xs)

    def call_of_while_loop(jax, jnp):
        x = jnp.float32(1.0)
        loop = jax.lax.while_loop
        return lambda: loop(lambda c: c < 0, lambda c: (c, c), x), lambda: loop(lambda c: c < 0, lambda c: c, x)

    def call_of_jit_with_if(jax, jnp):
        x = jnp.float32(1.0)
        return lambda: jax.jit(lambda x: x if x > 0 else -x)(x), lambda: jax.jit(lambda x: x > 0)(x)

    def call_of_jit_with_float(jax, jnp):
        x = jnp.float32(1.0)
        return lambda: jax.jit(lambda x: 2 * float(x))(x), lambda: jax.jit(lambda x: x + 1)(x)

    return locals()


def large_trees():
    """Mistakes with trees of a thousand leaves, one of which is missing."""

    def two(value):
        tree = {f"w{i}": value for i in range(1000)}
        return tree, {k: v for k, v in tree.items() if k != "w7"}

    def tree_map(jax, jnp):
        tree, less = two(jnp.ones((8, 8)))
        return lambda: jax.tree.map(lambda a, b: a, tree, less)

    def flatten_up_to(jax, jnp):
        tree, less = two(jnp.ones((8, 8)))
        treedef = jax.tree.structure(tree)
        return lambda: treedef.flatten_up_to(less)

    def in_axes_of_a_tree(jax, jnp):
        tree, less = two(jnp.ones((8, 8)))
        f = jax.vmap(lambda p: p, in_axes=(dict.fromkeys(less, 0),))
        return lambda: f(tree)

    def jvp_of_a_tree(jax, jnp):
        tree, less = two(1.0)
        return lambda: jax.jvp(lambda p: p["w1"], (tree,), (less,))

    def carry_of_a_tree(jax, jnp):
        tree, _ = two(1.0)
        xs = jnp.ones(2)
        return lambda: jax.lax.scan(lambda c, x: (two(1.0)[1], x), tree, xs)

    return {name: mistake for name, mistake in locals().items() if name != "two"}


def rows(libs):
    for name, mistake in eager_mistakes().items():
        contenders = {n: partial(eager, *lib, mistake) for n, lib in libs.items()}
        yield harness.Row(name.replace("_", " "), contenders, target=10e-6, budget=0.2)
    for name, mistake in traced_mistakes().items():
        contenders = {n: partial(traced, *lib, mistake) for n, lib in libs.items()}
        yield harness.Row(f"{name} of a traced value", contenders, target=10e-6, calls=TRACED, once=True, budget=0.2)
    for name, calls in whole_calls().items():
        for part, label in enumerate(("", " without the mistake")):
            contenders = {n: partial(whole_call, *lib, calls, part) for n, lib in libs.items()}
            yield harness.Row(name.replace("_", " ") + label, contenders, budget=0.2)
    for name, mistake in large_trees().items():
        contenders = {n: partial(eager, *lib, mistake) for n, lib in libs.items()}
        yield harness.Row(name.replace("_", " "), contenders, budget=0.2)


def main():
    options = harness.parse_arguments(__doc__.splitlines()[0])
    harness.run([partial(rows, harness.libraries(options))], options)


if __name__ == "__main__":
    main()
