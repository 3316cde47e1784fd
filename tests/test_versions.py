"""Which versions of JAX are admitted, and what is said of others."""

import importlib.metadata
import pathlib
import runpy
import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement

from scenegraph import _versions


ROOT = pathlib.Path(__file__).parent.parent


def test_the_same_versions_are_asked_of_pip():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {x.name: x.specifier for x in map(Requirement, project["dependencies"])}
    assert {name: asked[name] for name in _versions.REQUIRED} == _versions.REQUIRED


def install(monkeypatch: pytest.MonkeyPatch, jaxlib_of_jax: str, **versions: str | None) -> None:
    """Makes it look as if some versions were installed."""

    def version(name: str) -> str:
        if versions[name] is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return versions[name]

    requires = ["numpy>=2", f"jaxlib{jaxlib_of_jax}", 'jaxlib==0.1; extra == "old"']
    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: requires)


@pytest.mark.parametrize(
    ("jax", "jaxlib", "asks"),
    [
        ("0.10.0", "0.10.0", "<=0.10.0,>=0.10.0"),
        ("0.10.1", "0.10.1", "<=0.10.1,>=0.10.1"),
        ("0.12.0.1", "0.12.0.1", "<=0.12.0.1,>=0.11.2"),
        ("0.12.0.1", "0.12.0", " <=0.12.0.1, >=0.11.2"),
        ("1.4.0", "1.3.9", "<=1.4.0,>=1.3.0"),
        ("0.13.0.dev20261120", "0.13.0.dev20261119", ">=0.12.0.1,<=0.13.0.dev20261120"),
    ],
)
def test_versions_that_fit_pass(monkeypatch, jax, jaxlib, asks):
    install(monkeypatch, asks, jax=jax, jaxlib=jaxlib)
    _versions.check_versions()


def test_the_command_ends_with_one_line(monkeypatch):
    install(monkeypatch, "", jax="0.9.2", jaxlib="0.9.2")
    for program in ("/usr/bin/scenegraph", r"scenegraph.exe", "-m"):
        monkeypatch.setattr(sys, "argv", [program, "fit"])
        with pytest.raises(SystemExit, match=r"^scenegraph: jax>=.*is needed; here is jax 0.9"):
            _versions.check_versions()


@pytest.mark.parametrize(
    ("jax", "jaxlib", "asks", "says"),
    [
        ("0.9.2", "0.9.2", "<=0.9.2,>=0.9.2", "jax>=0.10.0,!=0.10.2 is needed; here is jax 0.9.2,"),
        ("0.10.2", "0.10.2", "<=0.10.2,>=0.10.2", "jax>=0.10.0,!=0.10.2 is needed"),
        ("0.12.0.1", "0.11.2", "<=0.12.0.1,>=0.11.2", "here is jax 0.12.0.1, jaxlib 0.11.2."),
        ("0.12.0.1", "0.10.1", "<=0.12.0.1,>=0.11.2", "jax 0.12.0.1 needs jaxlib<=0.12.0.1,>="),
        ("0.10.1", "0.12.0.1", "<=0.10.1,>=0.10.1", "here is jax 0.10.1, jaxlib 0.12.0.1."),
        ("0.12.0.1", None, "<=0.12.0.1,>=0.11.2", "here is jax 0.12.0.1, jaxlib (none)."),
        (None, None, "", "here is jax (none), jaxlib (none)."),
    ],
)
def test_others_are_refused_in_one_line(monkeypatch, jax, jaxlib, asks, says):
    install(monkeypatch, asks, jax=jax, jaxlib=jaxlib)
    with pytest.raises(ImportError) as caught:
        _versions.check_versions()
    message = str(caught.value)
    assert says in message
    assert 'pip install --upgrade "jax>=0.10.0,!=0.10.2" "jaxlib>=0.10.0,!=0.10.2,' in message
    assert "\n" not in message


def test_a_wrong_version_is_said_before_jax_is_imported():
    """Whatever JAX itself would say of it, or do."""
    script = """
import importlib.metadata, sys
version = importlib.metadata.version
importlib.metadata.version = lambda name: "0.10.2" if name == "jaxlib" else version(name)
sys.modules["jax"] = None
import scenegraph
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    *_, last = done.stderr.strip().splitlines()
    assert last.startswith("ImportError: jaxlib>=0.10.0,!=0.10.2,")


def test_the_tests_for_other_versions_touch_every_package():
    lines = (ROOT / "tests" / "versions.txt").read_text().splitlines()
    chosen = [line.split("::")[0] for line in lines if not line.startswith("#")]
    assert all((ROOT / name).is_file() for name in chosen)
    packages = {path.name for path in (ROOT / "scenegraph").iterdir() if path.is_dir()}
    tested = {name for name in packages if list((ROOT / "tests" / name).glob("test_*.py"))}
    assert tested <= {name.split("/")[1] for name in chosen}


def test_the_oldest_versions_are_those_that_are_asked_of_pip():
    versions = runpy.run_path(str(ROOT / "tests" / "versions.py"))
    oldest = [Requirement(line) for line in versions["oldest"]()]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for line, asked in zip(oldest, map(Requirement, project["dependencies"]), strict=True):
        [version] = [x.version for x in line.specifier]
        assert line.name == asked.name
        assert asked.specifier.contains(version)
        assert f">={version}" in str(asked.specifier)
