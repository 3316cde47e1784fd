"""The published Blender loader's rays and colours, from the real pictures."""

import functools
import json
import os
import pathlib
import shutil

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.data import IgnoreAlpha
from support.helpers import assert_close, golden


@pytest.fixture(scope="module")
def first_frame(tmp_path_factory) -> pathlib.Path:
    """A data folder that holds the chair's first training picture alone."""
    data = os.environ.get("SCENEGRAPH_DATA", "")
    chair = pathlib.Path(data) / "chair"
    if not data or not (chair / "transforms_train.json").exists():
        pytest.skip("SCENEGRAPH_DATA names no folder with the chair of NeRF-synthetic in it")
    folder = tmp_path_factory.mktemp("chair")
    listing = json.loads((chair / "transforms_train.json").read_text())
    listing["frames"] = listing["frames"][:1]
    (folder / "transforms_train.json").write_text(json.dumps(listing))
    (folder / "train").mkdir()
    shutil.copy(chair / "train" / "r_0.png", folder / "train" / "r_0.png")
    return folder


@pytest.fixture(scope="module")
def load(first_frame):
    """Loads that frame, once for every set of options."""

    @functools.cache
    def load(**options) -> sg.Views:
        return sg.load_blender(first_frame, near=2.0, far=6.0, **options)

    return load


def load_like(load, prefix: str, **options) -> sg.Views:
    scale = {"factor0": 1, "factor2": 2}[prefix]
    return load(downscale=scale, straight_alpha=True, **options)


def pixels_of(data, prefix: str) -> jnp.ndarray:
    rows, columns = data[f"{prefix}.pixel_row_col"].T
    return jnp.asarray(rows * data[f"{prefix}.hw"][1] + columns)


both_sizes = pytest.mark.parametrize("prefix", ["factor0", "factor2"])


@both_sizes
def test_camera(load, prefix):
    data, views = golden("blender_rays"), load_like(load, prefix)
    camera = views.camera(0)
    assert views.frames == 1 and [camera.height, camera.width] == data[f"{prefix}.hw"].tolist()
    assert_close(camera.focal, data[f"{prefix}.focal"], 1e-6)
    assert_close(camera.pose.linear(), data[f"{prefix}.camtoworld"][:3, :3], 1e-6)
    assert_close(camera.pose.offset(), data[f"{prefix}.camtoworld"][:3, 3], 1e-6)


@both_sizes
def test_rays(load, prefix):
    data = golden("blender_rays")
    views = load_like(load, prefix)
    rays = eqx.filter_jit(lambda views, where: views.rays(where))(views, pixels_of(data, prefix))
    assert_close(rays.origin, data[f"{prefix}.origins"], 1e-6)
    assert_close(rays.direction, data[f"{prefix}.directions"], 1e-6)
    assert_close(rays.view, data[f"{prefix}.viewdirs"], 1e-6)
    assert_close(rays.radius, data[f"{prefix}.radii"][:, 0], 0, 1e-7)
    np.testing.assert_array_equal(rays.near, data[f"{prefix}.near"][:, 0])
    np.testing.assert_array_equal(rays.far, data[f"{prefix}.far"][:, 0])


@both_sizes
def test_colours_on_white(load, prefix):
    data, views = golden("blender_rays"), load_like(load, prefix)
    image = views.image(0)
    rows, columns = data[f"{prefix}.pixel_row_col"].T
    assert_close(image.rgb[rows, columns], data[f"{prefix}.rgb_white"], 0, 2e-6)
    mean = np.asarray(image.rgb, np.float64).mean(axis=(0, 1))
    assert_close(mean, data[f"{prefix}.image_mean_white"], 1e-6)
    np.testing.assert_array_equal(views.lossmult, data[f"{prefix}.lossmult"][0])


@both_sizes
def test_colours_as_in_the_file(load, prefix):
    data, views = golden("blender_rays"), load_like(load, prefix, backdrop=IgnoreAlpha())
    rgba = views.rgba(pixels_of(data, prefix))
    rgb = views.backdrop.compose(rgba, None)
    assert_close(rgb, data[f"{prefix}.rgb_nobkgd"], 0, 2e-6)


def test_weighted_averages_differ_from_the_published_ones(load):
    data = golden("blender_rays")
    rows, columns = data["factor2.pixel_row_col"].T
    ours = load(downscale=2).image(0).rgb[rows, columns]
    assert 1e-3 < np.max(np.abs(ours - data["factor2.rgb_white"]))
