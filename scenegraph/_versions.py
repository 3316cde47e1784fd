"""The versions of JAX that scenegraph runs with."""

import importlib.metadata
import pathlib
import sys

from packaging.specifiers import SpecifierSet


# As in pyproject.toml. On CPUs, the excluded jaxlibs sum many short rows wrongly, without a word
# (https://github.com/jax-ml/jax/issues/39103): at the wrong picture size, half a picture. One of
# them is what jax 0.10.2 was made for.
REQUIRED = {
    "jax": ">=0.10.0,!=0.10.2",
    "jaxlib": ">=0.10.0,!=0.10.2,!=0.11.0,!=0.11.1,!=0.11.2",
}


# What `sys.argv` begins with while the library's own command is being loaded.
_COMMANDS = "scenegraph", "-m"


def check_versions() -> None:
    """Checks the installed JAX, before its first import.

    **Errors:** `ImportError` in one line: what is installed, what is needed and how to get it. The
    command `scenegraph` ends with this line alone.
    """
    if not (wrong := _what_is_wrong()):
        return
    if pathlib.Path(sys.argv[0]).stem in _COMMANDS:
        raise SystemExit(f"scenegraph: {wrong}")
    raise ImportError(wrong)


def _what_is_wrong() -> str | None:
    """Returns what is wrong with the installed versions, and how to mend it."""
    needed = " ".join(f'"{name}{wanted}"' for name, wanted in REQUIRED.items())
    remedy = f"Install versions that fit: pip install --upgrade {needed}"
    installed = {name: _installed(name) for name in REQUIRED}
    found = ", ".join(f"{name} {version or '(none)'}" for name, version in installed.items())
    for name, version in installed.items():
        if version is None or not _fits(version, REQUIRED[name]):
            return f"{name}{REQUIRED[name]} is needed; here is {found}. {remedy}"
    wanted = _wanted_by_jax()
    if not _fits(installed["jaxlib"] or "", wanted):
        return f"jax {installed['jax']} needs jaxlib{wanted}; here is {found}. {remedy}"
    return None


def _installed(name: str) -> str | None:
    """Returns the version of an installed package, or `None`."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _fits(version: str, wanted: str) -> bool:
    """Returns true for a version that fits a requirement; builds before a release count."""
    return SpecifierSet(wanted).contains(version, prereleases=True)


def _wanted_by_jax() -> str:
    """Returns which versions of jaxlib the installed jax asks for."""
    lines = importlib.metadata.requires("jax") or []
    plain = (line.replace(" ", "") for line in lines if ";" not in line)
    return next((x.removeprefix("jaxlib") for x in plain if x.startswith("jaxlib")), "")
