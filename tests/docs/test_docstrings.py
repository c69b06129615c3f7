"""Docstrings of the façade: every public name has a line, its arguments, what it returns, an example that runs."""

import doctest
import importlib
import inspect
import pydoc
import types

import pytest

import ferrax

MODULES = [
    "ferrax",
    "ferrax.ad",
    "ferrax.api_util",
    "ferrax.config",
    "ferrax.core",
    "ferrax.custom_derivatives",
    "ferrax.debug",
    "ferrax.distributed",
    "ferrax.dlpack",
    "ferrax.dtypes",
    "ferrax.errors",
    "ferrax.example_libraries.optimizers",
    "ferrax.example_libraries.stax",
    "ferrax.experimental",
    "ferrax.experimental.checkify",
    "ferrax.experimental.compilation_cache.compilation_cache",
    "ferrax.experimental.hijax",
    "ferrax.experimental.jet",
    "ferrax.experimental.layout",
    "ferrax.experimental.mesh_utils",
    "ferrax.experimental.multihost_utils",
    "ferrax.experimental.ode",
    "ferrax.experimental.pallas",
    "ferrax.experimental.pallas.tpu",
    "ferrax.experimental.pallas.triton",
    "ferrax.experimental.pjit",
    "ferrax.experimental.random",
    "ferrax.experimental.rnn",
    "ferrax.experimental.shard_map",
    "ferrax.experimental.sparse",
    "ferrax.experimental.sparse.ad",
    "ferrax.experimental.sparse.api",
    "ferrax.experimental.sparse.bcoo",
    "ferrax.experimental.sparse.bcsr",
    "ferrax.experimental.sparse.coo",
    "ferrax.experimental.sparse.csr",
    "ferrax.experimental.sparse.linalg",
    "ferrax.experimental.sparse.random",
    "ferrax.experimental.sparse.test_util",
    "ferrax.experimental.sparse.transform",
    "ferrax.experimental.sparse.util",
    "ferrax.export",
    "ferrax.extend.backend",
    "ferrax.extend.core",
    "ferrax.extend.linear_util",
    "ferrax.extend.random",
    "ferrax.extend.source_info_util",
    "ferrax.image",
    "ferrax.interpreters",
    "ferrax.interpreters.ad",
    "ferrax.interpreters.batching",
    "ferrax.interpreters.mlir",
    "ferrax.interpreters.partial_eval",
    "ferrax.interpreters.xla",
    "ferrax.lax",
    "ferrax.lax.linalg",
    "ferrax.monitoring",
    "ferrax.nn",
    "ferrax.nn.initializers",
    "ferrax.numpy",
    "ferrax.numpy.fft",
    "ferrax.numpy.linalg",
    "ferrax.ops",
    "ferrax.profiler",
    "ferrax.random",
    "ferrax.ref",
    "ferrax.scipy.cluster.vq",
    "ferrax.scipy.fft",
    "ferrax.scipy.integrate",
    "ferrax.scipy.interpolate",
    "ferrax.scipy.linalg",
    "ferrax.scipy.ndimage",
    "ferrax.scipy.optimize",
    "ferrax.scipy.signal",
    "ferrax.scipy.sparse.linalg",
    "ferrax.scipy.spatial.transform",
    "ferrax.scipy.special",
    "ferrax.scipy.stats",
    "ferrax.scipy.stats.bernoulli",
    "ferrax.scipy.stats.beta",
    "ferrax.scipy.stats.betabinom",
    "ferrax.scipy.stats.binom",
    "ferrax.scipy.stats.cauchy",
    "ferrax.scipy.stats.chi2",
    "ferrax.scipy.stats.dirichlet",
    "ferrax.scipy.stats.expon",
    "ferrax.scipy.stats.gamma",
    "ferrax.scipy.stats.gennorm",
    "ferrax.scipy.stats.geom",
    "ferrax.scipy.stats.gumbel_l",
    "ferrax.scipy.stats.gumbel_r",
    "ferrax.scipy.stats.laplace",
    "ferrax.scipy.stats.logistic",
    "ferrax.scipy.stats.multinomial",
    "ferrax.scipy.stats.multivariate_normal",
    "ferrax.scipy.stats.nbinom",
    "ferrax.scipy.stats.norm",
    "ferrax.scipy.stats.pareto",
    "ferrax.scipy.stats.poisson",
    "ferrax.scipy.stats.t",
    "ferrax.scipy.stats.truncnorm",
    "ferrax.scipy.stats.uniform",
    "ferrax.scipy.stats.vonmises",
    "ferrax.scipy.stats.wrapcauchy",
    "ferrax.sharding",
    "ferrax.stages",
    "ferrax.tree",
    "ferrax.tree_util",
    "ferrax.typing",
]


def public_names(module):
    return getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]


def is_ours(value):
    """Whether a value is a function or class that the façade defines (not a module, a constant, one of NumPy's)."""
    if isinstance(value, types.ModuleType) or not callable(value):
        return False
    return str(getattr(value, "__module__", "")).startswith("ferrax")


def objects():
    """(name, object) of every public function and class, once each, and the methods of classes written in Python."""
    seen = set()
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in sorted(public_names(module)):
            value = getattr(module, name)
            if is_ours(value) and id(value) not in seen:
                seen.add(id(value))
                yield f"{module_name}.{name}", value


OBJECTS = dict(objects())


def run(name, value):
    """Runs the examples of a docstring; gives the report of what failed."""
    parser, report = doctest.DocTestParser(), []
    test = parser.get_doctest(inspect.getdoc(value) or "", {}, name, name, 0)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(optionflags=flags, verbose=False).run(test, out=report.append)
    return "".join(report)


def signature(value):
    """Whether a function takes arguments, and whether it gives something back."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return False, False
    return bool(found.parameters), found.return_annotation not in ("None", None)


@pytest.mark.parametrize("name", OBJECTS)
def test_example(name):
    assert run(name, OBJECTS[name]) == ""


@pytest.mark.parametrize("name", OBJECTS)
def test_parts(name):
    value = OBJECTS[name]
    text = inspect.getdoc(value) or ""
    assert text.splitlines() and text.splitlines()[0].endswith((".", ":")), "no line that says what it is"
    assert ">>> " in text, "no example"
    assert ": as in `" not in text, "a reference to another docstring that nothing completes"
    if isinstance(value, type):
        return
    takes, gives = signature(value)
    assert not takes or "Args:" in text, "no Args"
    assert not (takes and gives) or "Returns:" in text or "Yields:" in text, "no Returns"


def test_shared_text():
    """What a docstring refers to stands in it: single arguments in their order, and whole sections."""
    lines = inspect.getdoc(ferrax.numpy.prod).splitlines()
    own, shared = [next(i for i, line in enumerate(lines) if line.startswith(f"  {n}: ")) for n in ("a", "keepdims")]
    assert lines[0] == "Product of elements over axes." and own < shared
    assert "  keepdims: keep reduced axes with length 1." in lines
    std, var = (inspect.getdoc(f).split("\n\n") for f in (ferrax.numpy.std, ferrax.numpy.var))
    assert [part.split("\n")[0] for part in std[1:4]] == ["Args:", "Returns:", "Raises:"]
    assert std[1:4] == var[1:4] and std[0] != var[0]


@pytest.mark.parametrize(
    ("function", "first"),
    [
        (ferrax.numpy.matmul, "matmul(a: 'ArrayLike', b: 'ArrayLike', *,"),
        (ferrax.numpy.add, "add(*args,"),
        (ferrax.lax.scan, "scan(f:"),
        (ferrax.tree.map, "map(f:"),
        (ferrax.vmap, "vmap(fun:"),
    ],
)
def test_help(function, first):
    """`help` shows a signature and the docstring, whatever a function is made of."""
    text = pydoc.render_doc(function, renderer=pydoc.plaintext)
    assert first in text.splitlines()[2], text.splitlines()[:4]
    assert inspect.getdoc(function).splitlines()[0] in text
    assert inspect.isroutine(function)


def test_there_are_hundreds():
    assert len(OBJECTS) > 600


def test_examples_leave_no_settings():
    assert ferrax.config.jax_enable_x64 is False
