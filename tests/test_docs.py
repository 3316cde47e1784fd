"""Every Python block of the documentation runs, block after block in one namespace a file."""

import pathlib
import re
from importlib.util import find_spec

import pytest


ROOT = pathlib.Path(__file__).parents[1]
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
WITH_CODE = [file for file in FILES if BLOCK.search(file.read_text())]


# Compiling all the scenes of these pages takes a minute.
LONG = [
    "README.md",
    "calibration.md",
    "captures.md",
    "choosing.md",
    "devices.md",
    "extending.md",
    "fast.md",
    "getting-started.md",
    "index.md",
    "light.md",
    "meshes.md",
    "reliability.md",
    "rendering.md",
    "simulation.md",
    "tasks.md",
]
NEEDS = {
    "interop.md": ("torch", "needs PyTorch: nox -s torch"),
    "meshes.md": ("xatlas", "needs the extra mesh"),
    "simulation.md": ("mujoco", "needs the extra `mujoco`"),
}


def marked(file: pathlib.Path):
    marks = [pytest.mark.slow] if file.name in LONG else []
    if file.name in NEEDS:
        package, reason = NEEDS[file.name]
        marks.append(pytest.mark.skipif(not find_spec(package), reason=reason))
    return pytest.param(file, id=file.name, marks=marks)


@pytest.mark.parametrize("file", [marked(file) for file in WITH_CODE])
def test_code_blocks_run(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace, text = {"__name__": "documentation"}, file.read_text()
    for block in BLOCK.finditer(text):
        above = "\n" * text.count("\n", 0, block.start(1))  # so that errors name the page's line
        exec(compile(above + block[1], str(file), "exec"), namespace)


def test_blocks_are_found():
    assert {"README.md", "getting-started.md", "state.md"} <= {file.name for file in WITH_CODE}
