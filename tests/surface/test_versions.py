"""Versions of trees that are no releases, and whether a compiled part fits: as in JAX."""

import datetime

import jax.version
import pytest
from jax._src.lib import check_jaxlib_version as jax_check

import ferrax.version
from ferrax._src.lib import check_jaxlib_version

VARIABLES = (
    "JAX_RELEASE",
    "JAXLIB_RELEASE",
    "JAX_NIGHTLY",
    "JAXLIB_NIGHTLY",
    "JAX_CUSTOM_VERSION_SUFFIX",
    "WHEEL_VERSION_SUFFIX",
)
#: Environment variables, and what becomes of "1.2.3"; `{day}` is today, `{commit}` what git is made to say.
BUILDS = {
    "release": (dict(JAX_RELEASE="1"), "1.2.3"),
    "release of the compiled part": (dict(JAXLIB_RELEASE="1"), "1.2.3"),
    "night": (dict(JAXLIB_NIGHTLY="1"), "1.2.3.dev{day}"),
    "wheel": (dict(WHEEL_VERSION_SUFFIX="rc0", JAX_RELEASE="1"), "1.2.3rc0"),
    "tree": ({}, "1.2.3.dev{commit}"),
    "suffix": (dict(JAX_CUSTOM_VERSION_SUFFIX="test"), "1.2.3.dev{commit}.test"),
}


class Git:
    """What stands for a process of git."""

    said = b"1731433958-1c0f1076e"

    def __init__(self, *_, **__):
        pass

    def communicate(self):
        return self.said, b""


@pytest.fixture(params=[ferrax.version, jax.version], ids=["ferrax", "jax"])
def version(request, monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("subprocess.Popen", Git)
    monkeypatch.setattr(request.param, "_version", "1.2.3")
    monkeypatch.setattr(request.param, "_release_version", None)
    return request.param


@pytest.mark.parametrize("case", BUILDS)
def test_builds(version, case, monkeypatch):
    variables, expected = BUILDS[case]
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    day = datetime.date.today()
    commit = f"{datetime.date.fromtimestamp(1731433958):%Y%m%d}+1c0f1076e"
    assert version._get_version_for_build() == expected.format(day=f"{day:%Y%m%d}", commit=commit)
    assert version._is_prerelease() is (case == "wheel")


def test_without_git(version, monkeypatch):
    for said in (b"", None):
        monkeypatch.setattr(Git, "said", said)
        assert version._get_version_string() == f"1.2.3.dev{datetime.date.today():%Y%m%d}"
    monkeypatch.setattr(version, "_release_version", "4.5.6")
    assert version._get_version_string() == version._get_version_for_build() == "4.5.6"


@pytest.mark.parametrize("check", [check_jaxlib_version, jax_check], ids=["ferrax", "jax"])
def test_a_compiled_part_that_fits(check):
    assert check("1.2.3.4", "1.2.3", "1.2.3") == (1, 2, 3)
    assert check("2.5.dev234", "1.2.3", "1.2") == (1, 2, 3)
    for versions, message in [
        (("1.2.3", "1.0", "1.0.1"), "jax requires version >= 1.0.1"),
        (("1.2.3", "1.2.4", "1.0.5"), "incompatible with jax version 1.2.3"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            check(*versions)
    with pytest.raises(ValueError):
        check("1", "x", "1")
