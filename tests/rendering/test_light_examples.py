"""The example of materials finds what it should."""

import importlib.util
import pathlib

import pytest


pytestmark = pytest.mark.slow


def example(name):
    path = pathlib.Path(__file__).parents[2] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_metal_and_paint_are_found(tmp_path):
    out = tmp_path / "pictures.png"
    assert example("find_material").main(out=str(out)) < 0.02
    assert out.exists()
