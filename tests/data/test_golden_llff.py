"""The published LLFF loader's poses, rays, colours and film paths."""

import os
import pathlib
import shutil

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.cameras import (
    average_pose,
    line_to_ndc,
    llff_spiral,
    recentre_poses,
    spherified_circle,
    spherify_poses,
)
from scenegraph.data import llff_path, load_llff
from scenegraph.io import write_picture
from support.helpers import assert_close, GOLDEN, golden


OPTIONS = {"llff_forward": {}, "llff_spherify": {"spherify": True, "near": 0.2, "far": 100.0}}
every_kind = pytest.mark.parametrize("kind", OPTIONS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    """The scene with grey pictures: rays do not depend on what the pictures show."""
    folder = tmp_path_factory.mktemp("llff")
    shutil.copy(GOLDEN / "llff_poses_bounds.npy", folder / "poses_bounds.npy")
    (folder / "images_4").mkdir()
    for index in range(10):
        write_picture(
            folder / "images_4" / f"img_{index:03d}.png", np.full((24, 32, 3), 99, np.uint8)
        )
    return folder


def square(poses: np.ndarray) -> np.ndarray:
    bottom = np.tile([[[0.0, 0.0, 0.0, 1.0]]], (len(poses), 1, 1))
    return np.concatenate([poses[:, :3, :4].astype(float), bottom], axis=1)


def test_recentring():
    data = golden("llff_forward")
    poses = recentre_poses(square(data["poses_before_recenter"]))
    assert_close(poses[:, :3], data["poses_after_recenter"][..., :4], 0, 3e-7)
    assert_close(average_pose(poses)[:3], data["poses_avg_after_recenter"][:, :4], 0, 3e-7)


def test_spiral():
    data = golden("llff_forward")
    path = llff_spiral(square(data["poses_after_recenter"]), data["bds_scaled"])
    assert_close(path[:, :3], data["render_poses"], 0, 1e-6)


def test_spherified_poses_and_circle():
    data = golden("llff_spherify")
    poses, scale = spherify_poses(square(data["poses_after_recenter"]))
    assert_close(poses[:, :3], data["poses_after_spherify"][..., :4], 0, 3e-7)
    assert_close(scale * data["bds_scaled"], data["bds_after_spherify"], 3e-7)
    circle = spherified_circle(poses, closed=True)
    assert_close(circle[:, :3], data["render_poses"], 0, 3e-7)


def test_bent_lines():
    data = golden("llff_ndc")
    frustum = 2 * jnp.stack([data["focal"] / data["w"], data["focal"] / data["h"]])
    one = lambda origin, direction: line_to_ndc(origin, direction, frustum, float(data["near"]))
    origin, direction = jax.jit(jax.vmap(one))(*(data[f"in_{x}"] for x in LINE))
    assert_close(origin, data["out_origins"], 0, 5e-7)
    assert_close(direction, data["out_directions"], 1e-6)


LINE = ("origins", "directions")


def compare_rays(rays, data, prefix: str) -> None:
    """In the order of tolerances of the golden arrays' README, a few times as wide."""
    flat = {name: data[prefix + name] for name in (*LINE, "viewdirs", "radii")}
    flat = {name: x.reshape(-1, x.shape[-1]) for name, x in flat.items()}
    assert_close(rays.origin, flat["origins"], 0, 1e-6)
    assert_close(rays.direction, flat["directions"], 0, 1e-6)
    assert_close(rays.view, flat["viewdirs"], 0, 5e-7)
    assert_close(rays.radius, flat["radii"][:, 0], 0, 3e-7)


@every_kind
@pytest.mark.parametrize("split", ["train", "test"])
def test_rays(folder, kind, split):
    data = golden(kind)
    views = load_llff(folder, split, downscale=4, published_radii=True, **OPTIONS[kind])
    assert [name[4:7] for name in views.names] == [f"{i:03d}" for i in data[f"{split}_indices"]]
    rows, columns = data["pixel_row_col"].T
    assert rows.max() == 23 and columns.max() == 31  # where the published differences slip
    indices = (np.arange(views.frames)[:, None] * 24 * 32 + rows * 32 + columns).reshape(-1)
    rays = eqx.filter_jit(lambda views, where: views.rays(where))(views, jnp.asarray(indices))
    compare_rays(rays, data, f"{split}.")
    assert_close(rays.near, data[f"{split}.near"].reshape(-1), 1e-7)
    assert_close(rays.far, data[f"{split}.far"].reshape(-1), 1e-7)
    np.testing.assert_array_equal(views.lossmult, data[f"{split}.lossmult"][:, 0, 0])


@every_kind
def test_film(folder, kind):
    data = golden(kind)
    cameras = llff_path(folder, downscale=4, published_radii=True, **OPTIONS[kind])
    assert len(cameras) == 120
    chosen = [cameras[frame] for frame in data["render_ray_frames"]]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *chosen)
    pixels = jnp.asarray(data["pixel_row_col"][:, ::-1] + 0.5, jnp.float32)
    each = lambda camera: jax.vmap(camera.ray)(pixels)
    rays = eqx.filter_jit(eqx.filter_vmap(each))(stacked)
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rays)
    compare_rays(flat, data, "render_rays.")


@every_kind
def test_colours(kind):
    data, root = golden(kind), os.environ.get("SCENEGRAPH_DATA", "")
    scene = pathlib.Path(root).parent / "golden" / "llff" / "scene"
    if not root or not scene.is_dir():
        pytest.skip("there are no golden pictures beside SCENEGRAPH_DATA (../golden/llff/scene)")
    rows, columns = data["pixel_row_col"].T
    for split in ("train", "test"):
        views = load_llff(scene, split, downscale=4, spherify=kind == "llff_spherify")
        rgb = [views.image(frame).rgb[rows, columns] for frame in range(views.frames)]
        assert_close(np.stack(rgb), data[f"{split}.rgb"], 0, 1e-7)
