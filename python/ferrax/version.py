"""The version of ferrax: that of its crates, which a test compares with `Cargo.toml`.

A release says its version as it is. Of anything else, the private functions say when and from which commit it was
built, by the rules and environment variables of JAX's builds.
"""

import os
import time

__all__ = ["__version__", "__version_info__"]

#: What the next release is called.
_version = "0.1.0"
#: What this release is called; None of a tree that is no release.
_release_version: str | None = "0.1.0"


def _is_set(*names: str) -> bool:
    return any(os.environ.get(name) for name in names)


def _dated(base: str, seconds: float) -> str:
    return base + time.strftime(".dev%Y%m%d", time.localtime(seconds))


def _version_from_todays_date(base_version: str) -> str:
    return _dated(base_version, time.time())


def _version_from_git_tree(base_version: str) -> str | None:
    """The version with the last commit's day and hash; None where git has none."""
    import subprocess

    folder = os.path.dirname(os.path.realpath(__file__))
    try:
        with_pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        git = subprocess.Popen(["git", "log", "-1", "--format=%at-%h"], cwd=folder, **with_pipes)  # type: ignore[call-overload]
        said = git.communicate()[0] or b""
        seconds, dash, commit = said.decode().strip().partition("-")
        if not (dash and commit.isalnum()):
            return None
        dated = _dated(base_version, int(seconds))
    except (OSError, ValueError):
        return None
    suffix = os.environ.get("JAX_CUSTOM_VERSION_SUFFIX")
    return f"{dated}+{commit}{f'.{suffix}' if suffix else ''}"


def _get_version_string() -> str:
    """The version of the tree that this file is in."""
    if _release_version is not None:
        return _release_version
    if _is_set("WHEEL_VERSION_SUFFIX"):
        return _version + os.environ["WHEEL_VERSION_SUFFIX"]
    return _version_from_git_tree(_version) or _version_from_todays_date(_version)


def _get_version_for_build() -> str:
    """The version that a build is to have: a release's, a night's, or that of the tree."""
    if _release_version is None and not _is_set("WHEEL_VERSION_SUFFIX"):
        if _is_set("JAX_RELEASE", "JAXLIB_RELEASE"):
            return _version
        if _is_set("JAX_NIGHTLY", "JAXLIB_NIGHTLY"):
            return _version_from_todays_date(_version)
    return _get_version_string()


def _is_prerelease() -> bool:
    return os.environ.get("WHEEL_VERSION_SUFFIX", "").startswith("rc")


def _version_as_tuple(version: str) -> tuple[int, ...]:
    """The parts of a version that are numbers."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())


__version__ = _get_version_string()
#: The three numbers of `__version__`.
__version_info__ = _version_as_tuple(__version__)
