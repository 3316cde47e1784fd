"""The published converter's bytes and the published multiscale loader's rays."""

import hashlib
import json
import os
import pathlib
import shutil

import equinox as eqx
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.data import convert_multiscale
from scenegraph.io import read_json, read_picture
from support.helpers import assert_close, GOLDEN, golden


PUBLISHED = json.loads((GOLDEN / "multiscale.json").read_text())
COUNTS = {"train": 2, "val": 1, "test": 1}


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> pathlib.Path:
    """The pictures of the chair that were converted."""
    data = os.environ.get("SCENEGRAPH_DATA", "")
    chair = pathlib.Path(data) / "chair"
    if not data or not (chair / "transforms_train.json").exists():
        pytest.skip("SCENEGRAPH_DATA names no folder with the chair of NeRF-synthetic in it")
    folder = tmp_path_factory.mktemp("chair")
    for split, count in COUNTS.items():
        listing = json.loads((chair / f"transforms_{split}.json").read_text())
        listing["frames"] = listing["frames"][:count]
        (folder / f"transforms_{split}.json").write_text(json.dumps(listing))
        (folder / split).mkdir()
        for frame in listing["frames"]:
            shutil.copy(chair / f"{frame['file_path']}.png", folder / split)
    return folder


@pytest.fixture(scope="module")
def converted(source, tmp_path_factory) -> pathlib.Path:
    out = tmp_path_factory.mktemp("multiscale") / "out"
    convert_multiscale(source, out, straight_alpha=True)
    return out


def test_metadata_is_the_published_one(converted):
    mine = read_json(converted / "metadata.json")
    assert mine == PUBLISHED["metadata"]
    # Not only the numbers: the order of splits, lists and keys, and which numbers are whole.
    assert json.dumps(mine) == json.dumps(PUBLISHED["metadata"])


@pytest.mark.parametrize("name", PUBLISHED["md5"])
def test_bytes_are_the_published_ones(converted, name):
    picture = read_picture(converted / name)
    assert int(picture.sum(dtype=np.int64)) == PUBLISHED["sum"][name]
    assert hashlib.md5(picture.tobytes()).hexdigest() == PUBLISHED["md5"][name]


def test_nothing_else_is_written(converted):
    files = {str(path.relative_to(converted)) for path in converted.rglob("*") if path.is_file()}
    assert files == {"metadata.json", *PUBLISHED["md5"]}


def test_weighted_averages_differ_from_the_published_ones(source, tmp_path):
    convert_multiscale(source, tmp_path / "out", 2)
    mine = read_picture(tmp_path / "out" / "images_test" / "000_d1.png").astype(int)
    theirs = read_picture(source / "test" / "r_0.png").reshape(400, 2, 400, 2, 4).mean((1, 3))
    away = np.abs(mine - theirs)
    assert away[..., 3].max() <= 0.5 and away[..., :3].max() > 20


@pytest.mark.parametrize("split", ["train", "test"])
def test_rays_and_colours_are_those_of_the_published_loader(converted, split):
    data = {k.split(".")[1]: x for k, x in golden("multiscale_rays").items() if split in k}
    views = sg.data.load_multiscale(converted, split)
    assert views.names == tuple(data["file_path"])
    rows, columns = np.moveaxis(data["pixel_row_col"], -1, 0)
    starts, widths = views.starts()[:, None], views.widths[:, None]
    indices = (starts + rows * widths + columns).reshape(-1)
    flat = {name: x.reshape(-1, x.shape[-1]) for name, x in data.items() if x.ndim == 3}
    rays = eqx.filter_jit(lambda views, indices: views.rays(indices))(views, indices)
    assert_close(rays.origin, flat["origins"], 1e-7)
    assert_close(rays.direction, flat["directions"], 1e-7)
    assert_close(rays.view, flat["viewdirs"], 2e-7)
    # The last row repeats a difference there; of a pinhole all differences are alike.
    assert np.all(rows.max(axis=1) == views.heights - 1)
    np.testing.assert_allclose(rays.radius, flat["radii"][:, 0], rtol=2e-7)
    np.testing.assert_array_equal(rays.near, flat["near"][:, 0])
    np.testing.assert_array_equal(rays.far, flat["far"][:, 0])
    np.testing.assert_array_equal(views.lossmult[views.frame_of(indices)], flat["lossmult"][:, 0])
    rgb = [views.image(frame).rgb[rows[frame], columns[frame]] for frame in range(views.frames)]
    assert_close(np.stack(rgb), data["rgb_white"], 0, 1e-7)
