"""A ball of known size, photographed from all around, fitted in all of space, and exported."""

import json

import numpy as np
import pytest

from scenegraph.io import write_picture
from scenegraph.meshing import MeshOptions
from scenegraph.runs import export_run, fit_run, FitOptions, open_run
from scenegraph.settings import preset
from support.capture_folders import look


CENTRE, RADIUS, SIZE, FOCAL = np.array([0.3, -0.2, 0.1]), 1.0, 64, 80.0


def eyes(count: int = 32) -> np.ndarray:
    """Places on a sphere about the origin, evenly spread, but for its poles."""
    number = np.arange(count)
    z = 0.9 * (1 - (2 * number + 1) / count)
    angle = number * np.pi * (3 - np.sqrt(5))
    across = np.sqrt(1 - z**2)
    return 4 * np.stack([across * np.cos(angle), across * np.sin(angle), z], axis=1)


def photograph(pose: np.ndarray) -> np.ndarray:
    """A ball with a pattern before a sky that is infinitely far away, four rays a pixel."""
    steps = (np.arange(2 * SIZE) + 0.5) / 2 - SIZE / 2
    x, y = np.meshgrid(steps, -steps)
    rays = np.stack([x, y, np.full_like(x, -FOCAL)], axis=-1) @ pose[:3, :3].T
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    offset = pose[:3, 3] - CENTRE
    middle = rays @ offset
    inside = middle**2 - (offset @ offset - RADIUS**2)
    normal = (offset - (middle + np.sqrt(np.maximum(inside, 0)))[..., None] * rays) / RADIUS
    ball = 0.6 + 0.3 * np.sin(9 * normal)
    sky = 0.3 + 0.2 * np.sin(5 * rays[..., ::-1])
    shown = np.where(inside[..., None] > 0, ball, sky)
    mean = shown.reshape(SIZE, 2, SIZE, 2, 3).mean(axis=(1, 3))
    return np.round(255 * mean).astype(np.uint8)


@pytest.mark.slow
def test_its_mesh_has_its_radius(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    pytest.importorskip("skimage")
    data, frames = tmp_path / "data", []
    (data / "images").mkdir(parents=True)
    for index, eye in enumerate(eyes()):
        pose, name = look(eye), f"images/{index:02d}.png"
        write_picture(data / name, photograph(pose))
        frames.append({"file_path": name, "transform_matrix": pose.tolist()})
    (data / "transforms.json").write_text(json.dumps({"fl_x": FOCAL, "frames": frames}))
    run = open_run(tmp_path / "run")
    fit_run(run, preset("fast").replace(steps=600, film="none", eval_every=0), data, FitOptions())
    assert run.load_config()[0].data.bounds == "contracted"
    # Cameras are four units away, which is one in the volume's frame.
    box = (-0.4, -0.4, -0.4, 0.4, 0.4, 0.4)
    options = MeshOptions(resolution=128, faces=None, texture=None, box=box, min_part=0.5)
    export_run(run, tmp_path / "ball.ply", options)
    vertices = trimesh.load(tmp_path / "ball.ply").vertices
    # |v|^2 = 2 v.c + (r^2 - |c|^2) in the least-squares sense
    columns = np.concatenate([2 * vertices, np.ones((len(vertices), 1))], axis=1)
    *centre, rest = np.linalg.lstsq(columns, np.sum(vertices**2, axis=1), rcond=None)[0]
    radius = np.sqrt(rest + np.sum(np.square(centre)))
    assert radius == pytest.approx(RADIUS, rel=0.02)
    assert np.max(np.abs(np.array(centre) - CENTRE)) < 0.03
