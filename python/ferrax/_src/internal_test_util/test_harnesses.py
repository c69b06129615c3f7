"""Cases of operations for tests: a function with descriptions of its arguments, by which these are drawn.

The list of all cases starts empty: what JAX's has are cases of its own primitives. Tests define theirs.
Read next: `ferrax/_src/test_util.py`, whose `parameterized_filterable` makes tests of cases.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ferrax._src import test_util as jtu

DType = Any
Rng = Any


class RandArg(NamedTuple):
    """An argument that is drawn, of a shape and dtype."""

    shape: tuple[int, ...]
    dtype: DType


class StaticArg(NamedTuple):
    """An argument that is no array."""

    value: Any


class CustomArg(NamedTuple):
    """An argument that a function of a generator of random numbers makes."""

    make: Callable[[Rng], Any]


class Limitation:
    """Where a case is not supported: on which devices, for which dtypes; none of these means all.

    >>> from ferrax._src.internal_test_util.test_harnesses import Limitation
    >>> Limitation("no complex numbers", dtypes=["complex64"]).filter(device="cpu", dtype="float32")
    False
    """

    def __init__(
        self,
        description: str,
        *,
        enabled: bool = True,
        devices: str | Sequence[str] = ("cpu", "gpu", "tpu"),
        dtypes: Sequence[DType] = (),
        skip_run: bool = False,
    ):
        self.description, self.enabled, self.skip_run = description, enabled, skip_run
        self.devices = (devices,) if isinstance(devices, str) else tuple(devices)
        self.dtypes = tuple(dtypes)

    def filter(self, device: str | None = None, dtype: DType | None = None) -> bool:
        """Whether it applies to a device and a dtype."""
        return (
            self.enabled
            and (device is None or device in self.devices)
            and (dtype is None or not self.dtypes or dtype in self.dtypes)
        )

    def __repr__(self) -> str:
        names = [getattr(d, "__name__", str(d)) for d in self.dtypes]
        return f'"{self.description}" devices={self.devices} dtypes={names}{" (skip_run) " if self.skip_run else ""}'


class Harness:
    """One case: a function, its arguments or descriptions of them, and any further parameters of the test.

    >>> import numpy as np
    >>> from ferrax._src.internal_test_util.test_harnesses import Harness, StaticArg
    >>> case = Harness("sum", "axis=0", np.sum, [np.eye(2), StaticArg(0)], dtype=np.float64)
    >>> case.fullname, case.dyn_fun(*case.dyn_args_maker(np.random.RandomState(0))).tolist()
    ('sum_axis_0', [1.0, 1.0])
    """

    def __init__(
        self,
        group_name: str,
        name: str,
        fun: Callable[..., Any],
        arg_descriptors: Sequence[Any],
        *,
        dtype: DType,
        rng_factory: Callable[[Rng], Any] = jtu.rand_default,
        jax_unimplemented: Sequence[Limitation] = (),
        **params: Any,
    ):
        self.group_name, self.name = jtu.sanitize_test_name(group_name), jtu.sanitize_test_name(name)
        self.fullname = f"{self.group_name}_{self.name}"
        self.fun, self.arg_descriptors, self.dtype = fun, arg_descriptors, dtype
        self.rng_factory, self.jax_unimplemented, self.params = rng_factory, jax_unimplemented, params

    def __str__(self) -> str:
        return self.fullname

    def _argument(self, described: Any, rng: Rng) -> Any:
        if isinstance(described, StaticArg):
            return described.value
        if isinstance(described, RandArg):
            return self.rng_factory(rng)(described.shape, described.dtype)
        return described.make(rng) if isinstance(described, CustomArg) else described

    def args_maker(self, rng: Rng) -> list[Any]:
        """All arguments."""
        return [self._argument(a, rng) for a in self.arg_descriptors]

    def dyn_args_maker(self, rng: Rng) -> list[Any]:
        """The arguments that are no `StaticArg`s."""
        return [self._argument(a, rng) for a in self.arg_descriptors if not isinstance(a, StaticArg)]

    def dyn_fun(self, *dyn_args: Any) -> Any:
        """The function of these."""
        given = iter(dyn_args)
        return self.fun(*(a.value if isinstance(a, StaticArg) else next(given) for a in self.arg_descriptors))

    def filter(
        self, device_under_test: str, *, include_jax_unimpl: bool = False, one_containing: str | None = None
    ) -> bool:
        """Whether the case is to run on a device, and its name has a text."""
        limited = any(limit.filter(device_under_test, self.dtype) for limit in self.jax_unimplemented)
        return (include_jax_unimpl or not limited) and (one_containing is None or one_containing in self.fullname)


all_harnesses: list[Harness] = []


def define(group_name: Any, name: str, fun: Callable[..., Any], arg_descriptors: Sequence[Any], **kwargs: Any) -> None:
    """Adds a case to `all_harnesses`; the arguments are `Harness`'s."""
    all_harnesses.append(Harness(str(group_name), name, fun, arg_descriptors, **kwargs))


def parameterized(
    harnesses: Iterable[Harness], *, one_containing: str | None = None, include_jax_unimpl: bool = False
) -> Callable[[Any], Any]:
    """Makes a test of each case, its argument `harness`; without cases the test is skipped.

    Args:
      harnesses: the cases.
      one_containing: a text, for the first case alone that has it in its name; by default that of
        the environment's variable `JAX_TEST_HARNESS_ONE_CONTAINING`.
      include_jax_unimpl: whether cases run where a `Limitation` applies.

    Raises:
      ValueError: no case has `one_containing` in its name.
    """
    one_containing = one_containing or os.environ.get("JAX_TEST_HARNESS_ONE_CONTAINING")
    known, device = list(harnesses), jtu.device_under_test()
    chosen = [
        h for h in known if h.filter(device, include_jax_unimpl=include_jax_unimpl, one_containing=one_containing)
    ]
    if one_containing is not None and not chosen:
        raise ValueError(f"no case has {one_containing!r} in its name: {', '.join(map(str, known))}")
    if not chosen:
        return jtu.skip_on_devices(device)
    if one_containing is not None:
        chosen = chosen[:1]
    return jtu.parameterized_filterable(kwargs=[{"testcase_name": h.fullname, "harness": h} for h in chosen])
