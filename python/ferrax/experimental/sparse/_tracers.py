"""`sparsify` with tracers: each operation goes to its rule as the function runs, so that Python sees sparse values.

A value refers to buffers in its trace's environment. Operations without a sparse operand, and the parts of sparse ones,
are bound under the trace that was at work before. Read next: `transform.py`, whose environments these are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ferrax import core
from ferrax.experimental.sparse._base import is_sparse
from ferrax.experimental.sparse._transform import sparse_rules_bcoo, sparse_rules_bcsr
from ferrax.experimental.sparse.transform import (
    SparsifyEnv,
    SparsifyValue,
    arrays_to_spvalues,
    spvalues_to_arrays,
    spvalues_to_avals,
)
from ferrax.extend.core import _traces
from ferrax.extend.linear_util import transformation_with_aux2
from ferrax.tree_util import tree_flatten, tree_unflatten

__all__ = ["SparseTrace", "SparseTracer", "sparsify_subtrace", "sparsify_with_tracer"]


class SparseTracer(core.Tracer):
    """A dense or sparse array in a function that `sparsify(use_tracer=True)` runs.

    Args:
      trace: the trace that it belongs to.
      spvalue: where its parts are in the trace's environment.

    Raises:
      RuntimeError: the trace has no environment.

    >>> from ferrax.experimental import sparse
    >>> function = lambda x: print(isinstance(x, sparse.SparseTracer)) or 2 * x
    >>> sparse.sparsify(function, use_tracer=True)(sparse.eye(3))
    True
    BCOO(float32[3, 3], nse=3)
    """

    __slots__ = ("_spvalue",)

    def __init__(self, trace: Any, *, spvalue: SparsifyValue):
        if not hasattr(trace, "spenv"):
            raise RuntimeError(f"a SparseTracer's trace has an environment, got {trace}")
        super().__init__(trace, spvalues_to_avals(trace.spenv, [spvalue])[0])
        self._spvalue = spvalue

    @property
    def spenv(self) -> SparsifyEnv:
        """The environment that has the value's buffers."""
        environment: SparsifyEnv = self._trace.spenv
        return environment


class SparseTrace(core.Trace):
    """The run of a function over dense and sparse arrays.

    Args:
      parent_trace: the trace at work before.
      tag: marks its values.
      spenv: has the buffers.

    >>> import ferrax as jax
    >>> from ferrax.extend.core import TraceTag, take_current_trace
    >>> from ferrax.experimental.sparse import transform
    >>> with take_current_trace() as parent:
    ...     trace = transform.SparseTrace(parent, TraceTag(), transform.SparsifyEnv())
    >>> trace.to_sparse_tracer(jax.numpy.ones(3)).shape
    (3,)
    """

    __slots__ = ("parent_trace", "spenv", "tag")

    def __init__(self, parent_trace: Any, tag: Any, spenv: SparsifyEnv):
        super().__init__()
        self.parent_trace, self.tag, self.spenv = parent_trace, tag, spenv

    def _mine(self, val: Any) -> bool:
        return isinstance(val, SparseTracer) and self.tag is val._trace.tag

    def to_sparse_tracer(self, val: Any) -> SparseTracer:
        """A value as one of this trace's: itself where it is one."""
        if self._mine(val):
            tracer: SparseTracer = val
            return tracer
        with _traces.set_current_trace(self.parent_trace):
            (spvalue,) = arrays_to_spvalues(self.spenv, [val])
        return SparseTracer(self, spvalue=spvalue)

    def stage_value(self, val: Any) -> Any:
        return val if self._mine(val) else self.to_sparse_tracer(self.parent_trace.stage_value(val))

    def process_primitive(self, primitive: Any, tracers: Any, params: dict[str, Any], /) -> Any:
        spvalues = [self.to_sparse_tracer(t)._spvalue for t in tracers]
        with _traces.set_current_trace(self.parent_trace):
            if any(v.is_sparse() for v in spvalues):
                rules = sparse_rules_bcsr if any(v.is_bcsr() for v in spvalues) else sparse_rules_bcoo
                if primitive not in rules:
                    raise NotImplementedError(f"sparse rule for {primitive.name} is not implemented.")
                outs = rules[primitive](self.spenv, *spvalues, **params)
            else:
                values = [self.spenv.data(v) for v in spvalues]
                out = primitive.bind(*values, **primitive.get_bind_params(params))
                outs = arrays_to_spvalues(self.spenv, list(out) if primitive.multiple_results else [out])
        results = [SparseTracer(self, spvalue=v) for v in outs]
        return results if primitive.multiple_results else results[0]

    def process_custom_jvp_call(
        self, primitive: Any, fun: Any, jvp: Any, tracers: Any, /, *, symbolic_zeros: bool
    ) -> Any:
        with _traces.set_current_trace(self):
            return fun.call_wrapped(*tracers)


def sparsify_with_tracer(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function of sparse arrays that runs `f` itself, on tracers.

    Args:
      f: a function of pytrees of arrays.

    Returns:
      A function with the same arguments, dense or sparse.

    Raises:
      NotImplementedError: the function applies an operation to a sparse array that has no sparse form.
    """

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_flatten((args, kwargs), is_leaf=is_sparse)
        spenv = SparsifyEnv()
        trees: list[Any] = []

        def flat(*tracers: Any) -> Any:
            positional, named = tree_unflatten(tree, tracers)
            outs, out_tree = tree_flatten(f(*positional, **named))
            trees.append(out_tree)
            return outs

        values = _traced(flat, _traces.TraceTag(), spenv, arrays_to_spvalues(spenv, leaves))
        return tree_unflatten(trees[0], list(spvalues_to_arrays(spenv, values)))

    return wrapped


def _traced(f: Callable[..., Any], tag: Any, spenv: SparsifyEnv, spvalues: Sequence[SparsifyValue]) -> Any:
    """The values that a function of tracers gives, whose parts are in the environment."""
    with _traces.take_current_trace() as parent:
        trace = SparseTrace(parent, tag, spenv)
        with _traces.set_current_trace(trace):
            outs = f(*(SparseTracer(trace, spvalue=v) for v in spvalues))
        return [trace.to_sparse_tracer(x)._spvalue for x in outs]


@transformation_with_aux2
def sparsify_subtrace(
    f: Callable[..., Any], store: Any, tag: Any, spenv: SparsifyEnv, spvalues: Sequence[SparsifyValue], *bufs: Any
) -> Any:
    """Makes of a function of arrays one of the buffers of values, which may be sparse; the second value gives results.

    Args:
      f: function wrapped by `linear_util.wrap_init`, of flat arrays.
      store: given by the wrapper; gets the values that are results.
      tag: marks the function's tracers.
      spenv: has the buffers, and gets those of results.
      spvalues: the arguments.
      *bufs: the buffers, which `spenv` has already.

    Returns:
      The environment's buffers.

    >>> from ferrax.experimental.sparse import eye, transform
    >>> from ferrax.extend import linear_util as lu
    >>> from ferrax.extend.core import TraceTag
    >>> env = transform.SparsifyEnv()
    >>> values = transform.arrays_to_spvalues(env, [eye(3)])
    >>> f, outs = transform.sparsify_subtrace(lu.wrap_init(lambda x: [2 * x]), TraceTag(), env, values)
    >>> _ = f.call_wrapped()
    >>> transform.spvalues_to_arrays(env, outs())
    [BCOO(float32[3, 3], nse=3)]
    """
    store.store(_traced(f, tag, spenv, spvalues))
    return spenv._buffers
