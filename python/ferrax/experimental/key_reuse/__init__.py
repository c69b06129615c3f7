"""Finding random keys that are used twice: ``jax_debug_key_reuse``, and the `debug_key_reuse` context manager.

Under it a function that uses a typed key marks it, and a second use raises `KeyReuseError`, be it in a call that runs
at once or in a program that is traced. `jax.random.split` uses the key it is given and makes fresh ones, `fold_in`
makes a fresh one and uses none, and `jax.random.clone` gives the same key once more. Raw keys (`jax.random.PRNGKey`)
are numbers like any others, and nothing is known of them.

>>> import ferrax as jax
>>> key = jax.random.key(0)
>>> with jax.debug_key_reuse(True):
...     _ = jax.random.normal(key)
...     try:
...         jax.random.normal(key)
...     except jax.errors.KeyReuseError as error:
...         print(str(error).split(".")[0])
Previously-consumed key passed to jit-compiled function at index 0

As JAX's module of this name it has no functions of its own. Read next: `_key_signatures.py`.
"""

from ferrax._boundary import expose as _expose

_expose(globals())
