"""Creases of meshes under soft light."""

import os
import pathlib

import jax
import numpy as np
import pytest

import scenegraph as sg


AVOCADO = (
    pathlib.Path(os.environ.get("SCENEGRAPH_DATA", "")) / "models" / "avocado" / "avocado.gltf"
)


@pytest.mark.slow
@pytest.mark.skipif(not AVOCADO.exists(), reason="SCENEGRAPH_DATA has no models/avocado")
def test_one_cone_leaves_no_black_pixels_in_creases():
    """White under an even sky; with nine cones a pixel there is none."""
    node = sg.load_scene(AVOCADO).root.children["Avocado"]
    white = sg.Surface(node.child.shape, sg.Lambert([0.8] * 3))
    sky = sg.EnvironmentLight(np.ones((8, 16, 3)), samples=32)
    whole = sg.Group(fruit=sg.Transformed(white, node.transform), sky=sky)
    scene = sg.Scene(whole, background=[0.5] * 3)
    picture = sg.render(scene, sg.assets.frame_camera(scene, 96, 96))
    assert np.sum(np.asarray(picture.rgb).max(-1) < 0.02) == 0


@pytest.mark.slow
def test_thin_faces_of_a_plate_have_neither_edges_nor_holes():
    """A round plate as CAD writes it: 398 triangles about one corner, in one plane."""
    sides = 400
    angle = np.arange(sides) * 2 * np.pi / sides
    ring = np.stack([np.cos(angle), np.sin(angle), 0.1 + 0 * angle], axis=-1)
    first = np.arange(sides)
    second = (first + 1) % sides
    top = np.stack([0 * first, first, second], axis=-1)[1:-1]
    walls = np.concatenate(
        [[first, sides + first, second], [second, sides + first, sides + second]], axis=1
    ).T
    faces = np.concatenate([top, top[:, ::-1] + sides, walls])
    vertices = np.concatenate([ring, ring * [1, 1, -1]])
    plate = sg.Surface(sg.TriangleMesh(vertices, faces, smooth=False), sg.Lambert([0.7] * 3))
    sun = sg.DirectionalLight([-0.3, 0.4, -1.0], [1.0] * 3)
    scene = sg.Scene(sg.Group(plate=plate, sun=sun), background=[0.1, 0.2, 0.6])
    camera = sg.PerspectiveCamera.look_at([1.5, -2.0, 1.8], [0, 0, 0], [0, 0, 1], 0.8, 96, 96)
    rgb = np.asarray(sg.render(scene, camera).rgb).reshape(-1, 3)
    # Where a pixel's middle sees the plane, half a pixel or more from the rim: albedo / pi times
    # the cosine of the sun's direction.
    rays = jax.vmap(camera.ray)(sg.cameras.pixel_centres(96, 96).reshape(-1, 2))
    along = (0.1 - rays.origin[..., 2]) / rays.direction[..., 2]
    reached = rays.origin + along[..., None] * rays.direction
    inside = np.asarray(np.linalg.norm(reached[..., :2], axis=-1) < 0.95)
    assert inside.sum() > 1500
    expected = 0.7 / np.pi / np.sqrt(1.25)
    off = np.abs(rgb[inside] / expected - 1).max(axis=-1)
    assert np.sum(off > 0.05) == 0
