"""What JAX's own tests and those of libraries on top of it are written with: a test case, devices, sampled cases.

The case class is absl's where absl is installed, so that its decorators work, and unittest's otherwise. Read next:
`_test_draws.py` (random arrays), `_test_dtypes.py`, `_test_devices.py`,
`_test_counts.py` (what is compiled in a block).
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import os
import re
import unittest
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

import ferrax
from ferrax import _ferrax, dtypes as _dtypes, tree_util
from ferrax._src._test_counts import (
    assert_num_jit_and_pmap_compilations as assert_num_jit_and_pmap_compilations,
    count_aot_jit_cpp_cache_miss as count_aot_jit_cpp_cache_miss,
    count_compilation_after_persistent_cache_miss as count_compilation_after_persistent_cache_miss,
    count_device_put as count_device_put,
    count_jit_and_pmap_lowerings as count_jit_and_pmap_lowerings,
    count_jit_compilation_cache_miss as count_jit_compilation_cache_miss,
    count_jit_tracing_cache_miss as count_jit_tracing_cache_miss,
    count_pjit_cpp_cache_miss as count_pjit_cpp_cache_miss,
    count_primitive_compiles as count_primitive_compiles,
)
from ferrax._src._test_devices import (
    device_supports_buffer_donation as device_supports_buffer_donation,
    device_under_test as device_under_test,
    is_asan as is_asan,
    is_cloud_tpu as is_cloud_tpu,
    is_cloud_tpu_at_least as is_cloud_tpu_at_least,
    is_cuda_compute_capability_at_least as is_cuda_compute_capability_at_least,
    is_cuda_compute_capability_equal as is_cuda_compute_capability_equal,
    is_cuda_version_at_least as is_cuda_version_at_least,
    is_device_cuda as is_device_cuda,
    is_device_rocm as is_device_rocm,
    is_device_tpu as is_device_tpu,
    is_device_tpu_at_least as is_device_tpu_at_least,
    is_gil_disabled as is_gil_disabled,
    is_msan as is_msan,
    is_optimized_build as is_optimized_build,
    is_running_under_pytest as is_running_under_pytest,
    is_sanitized as is_sanitized,
    is_test_rbe as is_test_rbe,
    is_tsan as is_tsan,
    request_cpu_devices as request_cpu_devices,
    run_on_devices as run_on_devices,
    skip_on_devices as skip_on_devices,
    skip_on_flag as skip_on_flag,
    skip_under_pytest as skip_under_pytest,
    test_device_matches as test_device_matches,
)
from ferrax._src._test_draws import (
    NUMPY_SCALAR_SHAPE as NUMPY_SCALAR_SHAPE,
    PYTHON_SCALAR_SHAPE as PYTHON_SCALAR_SHAPE,
    ScalarShape as ScalarShape,
    dims_of as _dims_of_shape,
    is_valid_shape as is_valid_shape,
    rand_bool as rand_bool,
    rand_default as rand_default,
    rand_fullrange as rand_fullrange,
    rand_indices_unique_along_axis as rand_indices_unique_along_axis,
    rand_int as rand_int,
    rand_nonzero as rand_nonzero,
    rand_not_small as rand_not_small,
    rand_positive as rand_positive,
    rand_small as rand_small,
    rand_small_positive as rand_small_positive,
    rand_some_equal as rand_some_equal,
    rand_some_inf as rand_some_inf,
    rand_some_inf_and_nan as rand_some_inf_and_nan,
    rand_some_nan as rand_some_nan,
    rand_some_zero as rand_some_zero,
    rand_uniform as rand_uniform,
    rand_unique_int as rand_unique_int,
)
from ferrax._src._test_dtypes import (
    dtypes as dtypes,
    join_tolerance as join_tolerance,
    promote_like_jnp as promote_like_jnp,
    strict_promotion_if_dtypes_match as strict_promotion_if_dtypes_match,
    supported_dtypes as supported_dtypes,
    to_default_dtype as to_default_dtype,
    tolerance as tolerance,
    with_jax_dtype_defaults as with_jax_dtype_defaults,
)
from ferrax._src._test_more import (
    JIT_IMPLEMENTATION as JIT_IMPLEMENTATION,
    NUM_GENERATED_CASES as NUM_GENERATED_CASES,
    SKIP_SLOW_TESTS as SKIP_SLOW_TESTS,
    TEST_NUM_THREADS as TEST_NUM_THREADS,
    TEST_WITH_PERSISTENT_COMPILATION_CACHE as TEST_WITH_PERSISTENT_COMPILATION_CACHE,
    CudaArchSpecificTest as CudaArchSpecificTest,
    MeshSpec as MeshSpec,
    NotPresent as NotPresent,
    assert_global_configs_unchanged as assert_global_configs_unchanged,
    cases_from_gens as cases_from_gens,
    collect_lowered_jaxprs as collect_lowered_jaxprs,
    complex_plane_sample as complex_plane_sample,
    count_device_put_fast_path_hit as count_device_put_fast_path_hit,
    count_events as count_events,
    count_internal_device_puts as count_internal_device_puts,
    count_jax_array_shard_arg_calls as count_jax_array_shard_arg_calls,
    count_subjaxpr_to_hlo_conversion as count_subjaxpr_to_hlo_conversion,
    fwd_bwd_jaxprs as fwd_bwd_jaxprs,
    get_cuda_nonportable_max_cluster_size as get_cuda_nonportable_max_cluster_size,
    get_tpu_version as get_tpu_version,
    numpy_with_mpmath as numpy_with_mpmath,
    pjrt_c_api_version_at_least as pjrt_c_api_version_at_least,
    register_event_duration_listener as register_event_duration_listener,
    runtime_environment as runtime_environment,
    stablehlo_version_at_least as stablehlo_version_at_least,
    vectorize_with_mpmath as vectorize_with_mpmath,
    with_mesh_from_kwargs as with_mesh_from_kwargs,
)
from ferrax._src.public_test_util import (
    ToleranceDict as ToleranceDict,
    _default_tolerance as _default_tolerance,
    check_close as check_close,
    check_grads as check_grads,
    check_jvp as check_jvp,
    check_vjp as check_vjp,
    default_gradient_tolerance as default_gradient_tolerance,
    default_tolerance as default_tolerance,
    rand_like as rand_like,
)
from ferrax._src.test_warning_util import (
    ignore_warning as ignore_warning,
    raise_on_warnings as raise_on_warnings,
)
from ferrax.config import config
from ferrax.sharding import Mesh, set_mesh

try:
    from absl.testing import parameterized as _parameterized

    _Base: Any = _parameterized.TestCase
    parameterized = _parameterized
except ImportError:
    _Base = unittest.TestCase


# ---- versions and names ----------------------------------------------------------------------------------------------


def parse_version(v: str) -> tuple[int, ...]:
    """The numbers of a version."""
    return tuple(int(part) for part in re.findall(r"\d+", v.split("+")[0])[:3])


def numpy_version() -> tuple[int, ...]:
    """NumPy's version."""
    return parse_version(np.__version__)


def jaxlib_version() -> tuple[int, ...]:
    """The version of the library."""
    return parse_version(ferrax.__version__)


def sanitize_test_name(s: str) -> str:
    """A name with no character that shells or test runners read otherwise."""
    return re.sub(r"[ \"'\[\](){}<>=,._]+", "_", s)


def dtype_str(dtype: Any) -> str:
    """The name of a dtype."""
    return np.dtype(dtype).name


def format_shape_dtype_string(shape: Any, dtype: Any) -> str:
    """Shapes and dtypes as names of tests show them."""
    if isinstance(shape, np.ndarray):
        return f"{dtype_str(dtype)}[{shape}]"
    if isinstance(shape, list):
        shape = tuple(shape)
    if isinstance(shape, tuple) and shape and not all(isinstance(d, (int, np.integer)) for d in shape):
        return f"{dtype_str(dtype)}[{', '.join(map(str, shape))}]" if dtype else str(shape)
    if shape is NUMPY_SCALAR_SHAPE:
        return dtype_str(dtype)
    if shape is PYTHON_SCALAR_SHAPE:
        return f"py{dtype_str(dtype)}"
    return f"{dtype_str(dtype)}[{','.join(map(str, _dims_of_shape(shape)))}]"


def num_float_bits(dtype: Any) -> int:
    """The bits of a float."""
    return int(_dtypes.finfo(_dtypes.canonicalize_dtype(dtype)).bits)


def is_sequence(x: Any) -> bool:
    """Whether a value can be gone through."""
    try:
        iter(x)
    except TypeError:
        return False
    return True


def pattern_search(patterns: str | Sequence[str], string: str) -> str | None:
    """The first of some patterns that is in a text."""
    patterns = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    return next((p for p in patterns if re.search(p, string)), None)


def device_kind_match(device_patterns: str | Sequence[str]) -> str | None:
    """The first of some patterns that the device's kind has."""
    return pattern_search(device_patterns, ferrax.devices()[0].device_kind)


def pytest_mark_if_available(marker: str) -> Callable[[Any], Any]:
    """A mark of pytest's, where pytest is installed."""
    try:
        import pytest
    except ImportError:
        return lambda method: method
    mark: Callable[[Any], Any] = getattr(pytest.mark, marker)
    return mark


def thread_unsafe_test(*_: Any, **__: Any) -> Callable[[Any], Any]:
    """Marks a test that other tests must not run beside; tests of a process run one after another."""
    return lambda method: method


def thread_unsafe_test_class(*_: Any, **__: Any) -> Callable[[Any], Any]:
    """As `thread_unsafe_test`, for a class."""
    return lambda cls: cls


# ---- cases -----------------------------------------------------------------------------------------------------------

_CASES = "_ferrax_cases"


def sample_product_testcases(*args: Sequence[dict[str, Any]], **kw: Iterable[Any]) -> list[dict[str, Any]]:
    """Some of the combinations of arguments: as many as `JAX_NUM_GENERATED_CASES` says (10), the same each time."""
    axes: list[list[dict[str, Any]]] = [list(cases) for cases in args]
    axes += [[{name: value} for value in values] for name, values in kw.items()]
    combinations = [{k: v for part in parts for k, v in part.items()} for parts in itertools.product(*axes)]
    count = int(os.environ.get("JAX_NUM_GENERATED_CASES", "10"))
    if len(combinations) <= count:
        return combinations
    chosen = np.random.RandomState(42).choice(len(combinations), count, replace=False)
    return [combinations[i] for i in sorted(chosen)]


def sample_product(*args: Sequence[dict[str, Any]], **kw: Iterable[Any]) -> Callable[[Any], Any]:
    """Makes a test method of `JaxTestCase` several tests, of some combinations of arguments.

    Args:
      *args: lists of dictionaries of arguments that belong together.
      **kw: values of an argument.
    """
    cases = sample_product_testcases(*args, **kw)

    def decorate(method: Any) -> Any:
        setattr(method, _CASES, cases)
        return method

    return decorate


def named_cases_from_sampler(gen: Callable[..., Any]) -> list[Any]:
    """Cases of a generator that is given a function to choose one of several values with."""
    rng = np.random.RandomState(42)
    cases: dict[Any, Any] = {}
    for _ in range(int(os.environ.get("JAX_NUM_GENERATED_CASES", "10"))):
        for case in gen(lambda values: [list(values)[rng.randint(len(list(values)))]]):
            cases.setdefault(case["testcase_name"], case)
    return list(cases.values())


def parameterized_filterable(
    *,
    kwargs: Sequence[dict[str, Any]],
    testcase_name: Callable[[dict[str, Any]], str] | None = None,
    one_containing: str | None = None,
) -> Callable[[Any], Any]:
    """Makes a test method of `JaxTestCase` several tests, of dictionaries of arguments.

    Args:
      kwargs: the arguments of each test.
      testcase_name: function of these that gives the test's name.
      one_containing: a part of the name of the one test to keep.
    """
    named = [
        (sanitize_test_name(str(k.get("testcase_name") or (testcase_name(k) if testcase_name else _name_of(k)))), k)
        for k in kwargs
    ]
    if one_containing is not None:
        named = [(name, k) for name, k in named if one_containing in name][:1]

    def decorate(method: Any) -> Any:
        setattr(method, _CASES, [{**k, "testcase_name": name} for name, k in named])
        return method

    return decorate


def _name_of(arguments: dict[str, Any]) -> str:
    return "_".join(f"{name}={value}" for name, value in arguments.items())


def _test_of(method: Any, arguments: dict[str, Any]) -> Any:
    @functools.wraps(method)
    def test(self: Any) -> Any:
        return method(self, **arguments)

    delattr(test, "__wrapped__")  # pytest would take the arguments for fixtures
    return test


def with_config(**kwds: Any) -> Callable[[type], type]:
    """Settings for the tests of a class."""

    def decorate(cls: type) -> type:
        if not issubclass(cls, JaxTestCase):
            raise TypeError(f"with_config decorates subclasses of JaxTestCase, not {cls.__name__}")
        cls._default_thread_local_config = {**cls._default_thread_local_config, **kwds}
        return cls

    return decorate


with_global_config = with_config


@contextlib.contextmanager
def global_config_context(**kwds: Any) -> Iterator[None]:
    """Settings for a block."""
    before = {name: config.read(name) for name in kwds}
    try:
        for name, value in kwds.items():
            config.update(name, value)
        yield
    finally:
        for name, value in before.items():
            config.update(name, value)


thread_local_config_context = global_config_context


@contextlib.contextmanager
def set_env(**kwargs: Any) -> Iterator[None]:
    """Variables of the environment for a block; None takes one away."""
    before = {name: os.environ.get(name) for name in kwargs}

    def write(values: dict[str, Any]) -> None:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    write(kwargs)
    try:
        yield
    finally:
        write(before)


@contextlib.contextmanager
def _capture(name: str) -> Iterator[Callable[[], str]]:
    text = io.StringIO()
    redirect = contextlib.redirect_stdout if name == "stdout" else contextlib.redirect_stderr
    with redirect(text):
        yield text.getvalue


def capture_stdout() -> Any:
    """A context that takes what is printed; its value is a function that gives the text."""
    return _capture("stdout")


def capture_stderr() -> Any:
    """As `capture_stdout`, for errors."""
    return _capture("stderr")


def check_raises(thunk: Callable[[], Any], err_type: type[BaseException], msg: str) -> None:
    """Raises unless a function raises an error whose text begins so."""
    try:
        thunk()
    except err_type as error:
        assert str(error).startswith(msg), f"\n{error}\ndoes not begin with\n{msg}"
        return
    raise AssertionError(f"no {err_type.__name__} was raised")


def check_raises_regexp(thunk: Callable[[], Any], err_type: type[BaseException], pattern: str) -> None:
    """Raises unless a function raises an error whose text begins like a pattern."""
    try:
        thunk()
    except err_type as error:
        assert re.match(pattern, str(error)), f"\n{error}\ndoes not match\n{pattern}"
        return
    raise AssertionError(f"no {err_type.__name__} was raised")


def check_eq(xs: Any, ys: Any, err_msg: str = "") -> None:
    """Raises unless two trees of arrays are equal, floats but for the last digits of float32."""

    def check(x: Any, y: Any) -> None:
        one, other = np.asarray(x), np.asarray(y)
        if not np.issubdtype(one.dtype, np.inexact):
            return np.testing.assert_array_equal(one, other, err_msg)
        return np.testing.assert_allclose(one, other, err_msg=err_msg)

    tree_util.tree_map(check, xs, ys)


def _check_dtypes_match(xs: Any, ys: Any) -> None:
    """Raises unless the dtypes of two trees of arrays and numbers are the same."""

    def check(x: Any, y: Any) -> None:
        one, other = (_dtypes.canonicalize_dtype(_dtypes.result_type(v)) for v in (x, y))
        assert one == other, f"{one} != {other}"

    tree_util.tree_map(check, xs, ys)


def iter_eqns(jaxpr: Any) -> Iterator[Any]:
    """The equations of a program, and of the programs in it."""
    from ferrax.extend.core import subjaxprs

    yield from jaxpr.eqns
    for inner in subjaxprs(jaxpr):
        yield from iter_eqns(inner)


def assert_dot_precision(expected_precision: Any, fun: Callable[..., Any], *args: Any) -> None:
    """Raises unless every product of a function has a precision."""
    found = [e.params["precision"] for e in iter_eqns(ferrax.make_jaxpr(fun)(*args).jaxpr) if _is_dot(e)]
    for precision in found:
        wanted = expected_precision if isinstance(expected_precision, tuple) else (expected_precision,) * 2
        assert precision == (None if expected_precision is None else wanted), f"{precision} is not {expected_precision}"


def assert_dot_preferred_element_type(expected: Any, fun: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Raises unless every product of a function accumulates in a dtype."""
    program = ferrax.make_jaxpr(functools.partial(fun, **kwargs))(*args)
    for eqn in iter_eqns(program.jaxpr):
        if _is_dot(eqn):
            found = eqn.params["preferred_element_type"]
            assert found == expected, f"{found} is not {expected}"


def _is_dot(eqn: Any) -> bool:
    return eqn.primitive.name in ("dot_general", "conv_general_dilated")


# ---- meshes ----------------------------------------------------------------------------------------------------------


def create_mesh(mesh_shape: Any, axis_names: Any, iota_order: bool = False, axis_types: Any = None) -> Any:
    """A mesh; the test is skipped where there are too few devices."""
    shape = (mesh_shape,) if isinstance(mesh_shape, int) else tuple(mesh_shape)
    size = int(np.prod(shape))
    if len(ferrax.devices()) < size:
        raise unittest.SkipTest(f"Test requires {size} global devices.")
    if axis_types is None:
        axis_types = (ferrax.sharding.AxisType.Auto,) * len(shape)
    devices = np.array(sorted(ferrax.devices(), key=lambda d: d.id)[:size]).reshape(shape)
    return Mesh(devices, axis_names, axis_types=axis_types)


@contextlib.contextmanager
def with_mesh(named_shape: Iterable[tuple[str, int]]) -> Iterator[None]:
    """A mesh of named sizes for a block."""
    pairs = list(named_shape)
    if not pairs:
        yield
        return
    names, sizes = zip(*pairs, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with create_mesh(sizes, names):
            yield


def with_explicit_mesh(
    sizes: Any, names: Any, axis_types: Any = None, iota_order: bool = False
) -> Callable[[Any], Any]:
    """A mesh of explicit axes in use in a test, which gets it as its last argument."""
    names = (names,) if isinstance(names, str) else tuple(names)

    def decorate(method: Any) -> Any:
        @functools.wraps(method)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
            types = axis_types or (ferrax.sharding.AxisType.Explicit,) * len(names)
            mesh = create_mesh(sizes, names, iota_order, types)
            with set_mesh(mesh):
                return method(self, *args, **kwargs, mesh=mesh)

        return wrapper

    return decorate


# ---- the test case ---------------------------------------------------------------------------------------------------


class JaxTestCase(_Base):  # type: ignore[misc]
    """A test case that compares trees of arrays, and functions eagerly, compiled and with NumPy's.

    >>> import numpy as np, ferrax.numpy as jnp
    >>> from ferrax._src import test_util as jtu
    >>> class Case(jtu.JaxTestCase):
    ...     def runTest(self):
    ...         self._CheckAgainstNumpy(np.negative, jnp.negative, lambda: [np.ones(2, np.float32)])
    >>> Case().runTest()
    """

    _default_thread_local_config: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, method in list(vars(cls).items()):
            cases = getattr(method, _CASES, None)
            if cases is None:
                continue
            delattr(cls, name)
            for i, case in enumerate(cases):
                arguments = dict(case)
                suffix = arguments.pop("testcase_name", i)
                setattr(cls, f"{name}{suffix}", _test_of(method, arguments))

    def setUp(self) -> None:
        super().setUp()
        # each test has settings of its class for itself
        self._settings = contextlib.ExitStack()
        self._settings.enter_context(global_config_context(**self._default_thread_local_config))
        self.addCleanup(self._settings.close)

    def rng(self) -> np.random.RandomState:
        """A generator of random numbers that depends on the test's name alone."""
        if "_generator" not in self.__dict__:
            self._generator = np.random.RandomState(zlib.adler32(self._testMethodName.encode()))
        return self._generator

    def assertDeprecationWarnsOrRaises(
        self, deprecation_id: str, message: str, *, error_class: type[Exception] = ValueError
    ) -> Any:
        """A context in which a `DeprecationWarning` is to appear."""
        return self.assertWarnsRegex(DeprecationWarning, message)

    @contextlib.contextmanager
    def assertNoWarnings(self) -> Iterator[None]:
        """A context in which nothing warns."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield

    def assertMultiLineStrippedEqual(self, expected: str, what: str) -> None:
        """Equal texts, up to space at the ends of lines."""
        strip = lambda text: "\n".join(line.rstrip() for line in text.strip().split("\n"))
        self.assertMultiLineEqual(strip(expected), strip(what))

    def assertDtypesMatch(self, actual: Any, desired: Any, *, canonicalize_dtypes: bool = True) -> None:
        """Equal dtypes, of 64 bits up to whether these are enabled."""
        if not config.jax_enable_x64 and canonicalize_dtypes:
            of = lambda x: np.dtype(_dtypes.canonicalize_dtype(_dtype(x)))
        else:
            of = lambda x: np.dtype(_dtype(x))
        if _is_key(actual) or _is_key(desired):
            self.assertEqual(_dtype(actual), _dtype(desired))
        else:
            self.assertEqual(of(actual), of(desired))

    def assertArraysEqual(
        self,
        actual: Any,
        desired: Any,
        *,
        check_dtypes: bool = True,
        err_msg: str = "",
        allow_object_dtype: bool = False,
        verbose: bool = True,
    ) -> None:
        """Equal arrays: NaN equals NaN."""
        if check_dtypes:
            self.assertDtypesMatch(actual, desired)
        actual, desired = _host(actual), _host(desired)
        if not allow_object_dtype and object in (actual.dtype, desired.dtype):
            raise ValueError("assertArraysEqual of arrays of objects; say allow_object_dtype=True")
        np.testing.assert_array_equal(actual, desired, err_msg=err_msg, verbose=verbose)

    def assertArraysAllClose(
        self,
        actual: Any,
        desired: Any,
        *,
        check_dtypes: bool = True,
        atol: Any = None,
        rtol: Any = None,
        err_msg: str = "",
    ) -> None:
        """Close arrays, by the tolerance of the less exact dtype where none is given."""
        self.assertEqual(np.shape(_host(actual)), np.shape(_host(desired)))
        if check_dtypes:
            self.assertDtypesMatch(actual, desired)
        x, y = _host(actual), _host(desired)
        limits: dict[str, Any] = {
            kind: max(tolerance(x.dtype, given), tolerance(y.dtype, given))
            for kind, given in (("atol", atol), ("rtol", rtol))
        }
        np.testing.assert_allclose(_wide(x), _wide(y), **limits, err_msg=err_msg)

    def assertAllClose(
        self,
        actual: Any,
        desired: Any,
        *,
        check_dtypes: bool = True,
        atol: Any = None,
        rtol: Any = None,
        canonicalize_dtypes: bool = True,
        err_msg: str = "",
    ) -> None:
        """Close trees of arrays and numbers."""
        options: dict[str, Any] = {"check_dtypes": check_dtypes, "atol": atol, "rtol": rtol, "err_msg": err_msg}
        options["canonicalize_dtypes"] = canonicalize_dtypes
        if isinstance(actual, dict):
            self.assertIsInstance(desired, dict)
            self.assertEqual(set(actual), set(desired))
            for key in actual:
                self.assertAllClose(actual[key], desired[key], **options)
        elif isinstance(actual, (str, type(None))) or isinstance(desired, (str, type(None))):
            if type(actual) is not type(desired) or actual != desired:
                self.fail(f"{actual!r} is not {desired!r}. {err_msg}")
        elif isinstance(actual, (list, tuple)) and not hasattr(actual, "__array__"):
            self.assertTrue(is_sequence(desired))
            self.assertEqual(len(actual), len(desired))
            for a, d in zip(actual, desired, strict=True):
                self.assertAllClose(a, d, **options)
        elif hasattr(actual, "__array__") or np.isscalar(actual):
            self.assertTrue(hasattr(desired, "__array__") or np.isscalar(desired))
            if check_dtypes:
                self.assertDtypesMatch(actual, desired, canonicalize_dtypes=canonicalize_dtypes)
            self.assertArraysAllClose(actual, desired, check_dtypes=False, atol=atol, rtol=rtol, err_msg=err_msg)
        elif actual != desired:
            self.fail(f"{actual!r} is not {desired!r}. {err_msg}")

    def _CompileAndCheck(
        self,
        fun: Callable[..., Any],
        args_maker: Callable[[], Sequence[Any]],
        *,
        check_dtypes: bool = True,
        tol: Any = None,
        rtol: Any = None,
        atol: Any = None,
        check_cache_misses: bool = True,
    ) -> None:
        """Compares a function's result with that of its compiled form, which is traced once."""
        args = args_maker()
        python_should_be_running = True

        def traced(*args: Any) -> Any:
            self.assertTrue(python_should_be_running, msg=f"the jitted function {fun} was traced again")
            return fun(*args)

        plain = fun(*args)
        compiled = ferrax.jit(traced)
        first = compiled(*args)
        python_should_be_running = not check_cache_misses
        again = compiled(*args)
        for result in (first, again):
            self.assertAllClose(
                plain,
                result,
                check_dtypes=check_dtypes,
                atol=tol if atol is None else atol,
                rtol=tol if rtol is None else rtol,
            )

    def _CheckAgainstNumpy(
        self,
        numpy_reference_op: Callable[..., Any],
        lax_op: Callable[..., Any],
        args_maker: Callable[[], Sequence[Any]],
        check_dtypes: bool = True,
        tol: Any = None,
        atol: Any = None,
        rtol: Any = None,
        canonicalize_dtypes: bool = True,
    ) -> None:
        """Compares a function with NumPy's."""
        args = args_maker()
        wanted = numpy_reference_op(*args)
        self.assertAllClose(
            lax_op(*args),
            wanted,
            check_dtypes=check_dtypes,
            atol=tol if atol is None else atol,
            rtol=tol if rtol is None else rtol,
            canonicalize_dtypes=canonicalize_dtypes,
        )

    @contextlib.contextmanager
    def assertCacheMisses(self, func: Callable[[], Any], **misses: int | None) -> Iterator[None]:
        """Calls a function, and raises unless it makes as many programs as each of the counts says."""
        with count_jit_tracing_cache_miss() as count:
            func()
        for name, wanted in misses.items():
            if wanted is not None:
                self.assertEqual(count(), wanted, f"{name} cache misses")
        yield


class BufferDonationTestCase(JaxTestCase):
    """A test case about donated arrays."""

    def assertDeleted(self, x: Any) -> None:
        """An array is deleted."""
        self.assertTrue(x.is_deleted())

    def assertNotDeleted(self, x: Any) -> None:
        """An array is not deleted."""
        self.assertFalse(x.is_deleted())


class JaxTestLoader(unittest.TestLoader):
    """Finds the tests of a module: all of them."""


def _dtype(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return np.asarray(x).dtype
    return x.dtype if hasattr(x, "dtype") else _ferrax.typeof(x).dtype


def _is_key(x: Any) -> bool:
    return _dtypes.issubdtype(_dtype(x), _dtypes.prng_key)


def _host(x: Any) -> np.ndarray:
    return np.asarray(ferrax.random.key_data(x) if _is_key(x) else x)


def _wide(x: np.ndarray) -> np.ndarray:
    """Numbers that NumPy can compare: narrow floats and integers of few bits as wider ones."""
    if x.dtype.kind != "V":
        return x
    if x.dtype == _dtypes.float0:
        return np.zeros(x.shape, bool)
    return x.astype(np.float32 if _dtypes.issubdtype(x.dtype, np.floating) else np.int32)
