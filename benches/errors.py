"""What a mistake costs: raising and catching an error, its text included (promise P16: 10 µs at most).

Each row makes one mistake, whose operands exist already. Mistakes with traced values are made a thousand times in
one trace, and the time is of one of them. The mistakes themselves, and what their texts must say, are in
`tests/errors/mistakes.py`.
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


def rows(libs):
    for name, mistake in eager_mistakes().items():
        contenders = {n: partial(eager, *lib, mistake) for n, lib in libs.items()}
        yield harness.Row(name.replace("_", " "), contenders, target=10e-6, budget=0.2)
    for name, mistake in traced_mistakes().items():
        contenders = {n: partial(traced, *lib, mistake) for n, lib in libs.items()}
        yield harness.Row(f"{name} of a traced value", contenders, target=10e-6, calls=TRACED, once=True, budget=0.2)


def main():
    options = harness.parse_arguments(__doc__.splitlines()[0])
    harness.run([partial(rows, harness.libraries(options))], options)


if __name__ == "__main__":
    main()
