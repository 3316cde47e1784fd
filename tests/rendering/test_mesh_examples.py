"""The examples of meshes find what they should, where the model is there that they show."""

import importlib.util
import os
import pathlib

import pytest


SPOT = pathlib.Path(os.environ.get("SCENEGRAPH_DATA", "."), "models", "spot", "spot.obj")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SPOT.exists(), reason="needs models/spot in SCENEGRAPH_DATA"),
]


def example(name):
    path = pathlib.Path(__file__).parents[2] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_ball_becomes_spot(tmp_path):
    out = tmp_path / "mesh.png"
    assert example("mesh_from_pictures").main(out=str(out)) > 30
    assert out.exists()


def test_spot_gets_its_texture_back(tmp_path):
    out = tmp_path / "texture.png"
    assert example("texture_from_pictures").main(out=str(out)) > 35
    assert out.exists()
