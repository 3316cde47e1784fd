"""Meshes fitted to pictures."""

import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.runs import refine_meshes
from scenegraph.runs._export_run import _pictures, shrink_factor
from scenegraph.settings import DataSettings
from support.blender_folder import write_ball


def scene(tilt: float, texels) -> sg.Scene:
    """Two triangles whose corners meet at two places, each with corners of its own."""
    corners = [[-1.0, -1, 0], [1, -1, 0], [1, 1, tilt], [-1.0, -1, 0], [1, 1, tilt], [-1, 1, 0]]
    coordinates = [[0.0, 0], [1, 0], [1, 1], [0, 0], [1, 1], [0, 1]]
    mesh = sg.TriangleMesh(corners, [[0, 1, 2], [3, 4, 5]], uv=coordinates)
    surface = sg.Surface(mesh, sg.ImageTexture(texels, corner=[0.0, 0.0]))
    return sg.Scene(sg.Group(field=surface), background=[1.0, 1.0, 1.0])


@pytest.mark.slow
def test_pictures_come_nearer():
    texels = np.random.default_rng(0).uniform(0.2, 0.8, (4, 4, 3)).astype(np.float32)
    truth, start = scene(0.3, texels), scene(0.25, np.full((4, 4, 3), 0.5, np.float32))
    look = sg.PerspectiveCamera.look_at
    eyes = [[0.0, -2, 4], [2.0, 1, 4], [-2.0, 1, 3]]
    cameras = [look(eye, [0.0, 0, 0], [0.0, 0, 1], 0.7, 24, 24) for eye in eyes]
    pictures = [sg.render(truth, camera).rgb for camera in cameras]
    found = refine_meshes(start, sg.views(cameras, pictures), 40)
    error = lambda scene: np.mean(
        [
            jnp.mean((sg.render(scene, c).rgb - p) ** 2)
            for c, p in zip(cameras, pictures, strict=True)
        ]
    )
    assert error(found) < 0.7 * error(start)
    moved = np.asarray(found["field.shape.vertices"])
    assert np.array_equal(moved[[0, 2]], moved[[3, 4]])
    assert np.any(moved != start["field.shape.vertices"])


def test_a_scene_without_meshes_is_refused():
    camera = sg.PerspectiveCamera.look_at([0.0, -4, 0], [0.0, 0, 0], [0.0, 0, 1], 0.6, 8, 8)
    ball = sg.Scene(sg.Group(ball=sg.Surface(sg.Sphere(), [0.5] * 3)))
    with pytest.raises(ValueError, match="no meshes"):
        refine_meshes(ball, sg.views(camera, np.zeros((8, 8, 3), np.float32)), 1)


@pytest.mark.parametrize(("steps", "factor"), [(2000, 4), (8000, 2), (31_250, 1), (50, 12)])
def test_pictures_are_so_small_that_each_pixel_is_seen(steps, factor):
    sides = np.full(100, 800)
    assert shrink_factor(sides, sides, steps) == factor
    looks = steps * 4096 / (100 * (800 / factor) ** 2)
    # Once or twice, unless pictures would be smaller than 64 pixels.
    assert looks >= 2 or factor == 12
    assert factor == 1 or steps * 4096 / (100 * (800 / (factor - 1)) ** 2) < 2


def test_pictures_of_a_run_are_loaded_smaller(tmp_path):
    write_ball(tmp_path, {"train": 3}, size=130)
    said = []
    views = _pictures(DataSettings(), tmp_path, 1, said.append)
    assert views.widths.tolist() == [65, 65, 65]
    assert "2 times smaller" in said[0]
    assert _pictures(DataSettings(), tmp_path, 10**4, said.append).widths.tolist() == [130] * 3
    assert len(said) == 1
