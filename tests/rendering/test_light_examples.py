"""The examples of lamps and materials find what they should, and draw what they should."""

import importlib.util
import pathlib

import pytest

import scenegraph as sg


pytestmark = pytest.mark.slow


def example(name):
    path = pathlib.Path(__file__).parents[2] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "largest"), [("find_window", 0.02), ("find_material", 0.02)])
def test_numbers_are_found(name, largest, tmp_path):
    out = tmp_path / "pictures.png"
    assert example(name).main(out=str(out)) < largest
    assert out.exists()


def test_gold_and_glass(tmp_path):
    """The ball is golden, and the panel's mirror image is white."""
    out = tmp_path / "balls.png"
    example("glass_and_metal").main(steps=1, width=64, out=str(out))
    rgb = sg.Image.load(out).rgb
    assert rgb.shape == (36, 64, 3)
    red, _, blue = rgb[18, 20]
    assert red > 1.5 * blue


def test_the_ceiling_of_the_box_is_lit(tmp_path):
    """By light that has met walls: red on the left, green on the right."""
    out = tmp_path / "box.png"
    example("cornell_box").main(steps=1, size=32, out=str(out))
    rgb = sg.Image.load(out).rgb
    ceiling = rgb[2:4].mean(axis=0)
    assert ceiling.mean() > 0.05
    assert ceiling[4:10, 0].mean() > ceiling[4:10, 1].mean()
