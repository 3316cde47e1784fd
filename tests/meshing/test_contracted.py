"""Meshes of contracted volumes lie where pictures show them."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.meshing import export_scene, mesh_volumes, MeshOptions
from scenegraph.rays import Gaussian
from support.solid_fields import Balls


pytest.importorskip("skimage")
BENT = sg.encodings.Contraction(radius=1.0)
BOX = (-3.0, -3, -3, 3, 3, 3)
PLAIN = MeshOptions(level=0.5, resolution=32, faces=None, texture=None, box=BOX)
MIDDLE, RADIUS = np.array([0.5, 0.0, 0.2]), 1.6


class Unbent(sg.fields.AbstractField):
    """Balls of uncontracted space, as a field of the ball of radius one that holds all of it."""

    balls: Balls = eqx.field(
        default_factory=lambda: Balls([MIDDLE.tolist()], [RADIUS], extinction=300.0)
    )

    def __call__(self, gaussian, view, *, key=None):
        return self.balls(self._expanded(gaussian), view, key=key)

    def density(self, gaussian):
        return self.balls.density(self._expanded(gaussian))

    def _expanded(self, gaussian):
        # y = (2 - 1 / |x|) x / (2 |x|): |x| = 1 / (2 - 2 |y|) for |y| > 1/2, else x = 2 y.
        length = jnp.linalg.norm(gaussian.mean)
        far = 1 / jnp.maximum(1e-6, 2 - 2 * jnp.maximum(length, 0.5))
        place = jnp.where(length > 0.5, far / jnp.maximum(length, 1e-9), 2.0) * gaussian.mean
        return Gaussian(place, gaussian.direction, jnp.zeros(()), jnp.zeros(()))


def volume(**options):
    return sg.Volume(Unbent(), None, contraction=BENT, **options)


def offsets(vertices, middle=MIDDLE):
    return np.linalg.norm(np.asarray(vertices) - middle, axis=1)


def test_a_ball_across_the_unit_sphere_stays_round():
    mesh = mesh_volumes(sg.Scene(sg.Group(ball=volume())), PLAIN)["ball"].shape
    # A cell is 0.125 wide; in contracted space the ball has a third of its size.
    assert np.max(np.abs(offsets(mesh.vertices) - RADIUS)) < 0.15
    # Colours are those of places, (x + 1) / 2.
    shown = np.clip((np.asarray(mesh.vertices) + 1) / 2, 0, 1)
    assert np.max(np.abs(mesh.colors - shown)) < 0.08


def test_as_the_picture_shows_it_under_a_similarity(tmp_path):
    """Points, a `.ply` and a `.glb` are as large as the ball in a picture."""
    trimesh = pytest.importorskip("trimesh")
    moved = sg.Similarity([10.0, 0, 0], scale=0.5)
    scene = sg.Scene(sg.Group(ball=sg.Transformed(volume(), moved)))
    middle = [10.0, 0, 0] + MIDDLE / 2
    camera = sg.PerspectiveCamera.look_at(middle + [0, -8.0, 0], middle, [0, 0, 1], 0.4, 32, 32)
    shown = np.asarray(sg.render(scene, camera, sg.integrators.Hierarchical((96, 64))).alpha) > 0.5
    # A ball at a distance d covers the pixels of a disk with radius f tan(asin(r / d)).
    angle = np.arctan(np.sqrt(shown.sum() / np.pi) / camera.focal)
    seen_radius = 8 * np.sin(angle)
    assert seen_radius == pytest.approx(RADIUS / 2, rel=0.06)
    for name, points in (("a.ply", False), ("a.glb", False), ("points.ply", True)):
        export_scene(
            scene,
            tmp_path / name,
            PLAIN,
            points=points,
            viewpoints=middle[None] + np.array([0.0, -8, 0]),
            z_up=False,
        )
        loaded = trimesh.load(tmp_path / name)
        vertices = loaded.to_geometry().vertices if name == "a.glb" else loaded.vertices
        assert np.max(np.abs(offsets(vertices, middle) - RADIUS / 2)) < 0.08


def test_viewpoints_are_in_the_world():
    """A field whose colour is the direction of view: the mean over one viewpoint is its view."""
    field = Unbent(Balls([MIDDLE.tolist()], [RADIUS], extinction=300.0, by_direction=True))
    scene = sg.Scene(sg.Group(ball=sg.Volume(field, None, contraction=BENT)))
    eye = np.array([0.5, -6.0, 0.2])
    mesh = mesh_volumes(scene, PLAIN, viewpoints=eye[None])["ball"].shape
    front = np.argmin(np.asarray(mesh.vertices)[:, 1])
    view = np.asarray(mesh.vertices)[front] - eye
    assert np.allclose(mesh.colors[front], (view / np.linalg.norm(view) + 1) / 2, atol=0.02)


def test_cells_of_contracted_space_that_rays_skip():
    """Half of the cells are known to be empty: those of x > 0, which stay there when expanded."""
    known = sg.scene.Occupancy.everywhere(8).without(
        jnp.arange(8)[:, None, None] >= 4 * jnp.ones((8, 8, 8))
    )
    mesh = mesh_volumes(sg.Scene(sg.Group(ball=volume(occupancy=known))), PLAIN)["ball"].shape
    assert np.max(mesh.vertices[:, 0]) < 0.1
    assert np.min(mesh.vertices[:, 0]) == pytest.approx(MIDDLE[0] - RADIUS, abs=0.1)


def test_nothing_beyond_the_bounds():
    """What a field has outside of its volume's bounds, no picture shows."""
    clipped = sg.Volume(Balls([[0.0, 0, 0]], [2.0]), sg.Box([-1.0] * 3, [1.0] * 3))
    mesh = mesh_volumes(sg.Scene(sg.Group(ball=clipped)), PLAIN)["ball"].shape
    assert np.max(np.abs(mesh.vertices)) < 1.13


def test_densities_are_by_length_in_the_volumes_frame():
    """The depth through a medium is the same by `density_at` and as rays integrate it."""
    fog = sg.Volume(sg.fields.ConstantFog(2.0, [1.0, 1, 1]), None, contraction=BENT)
    place = jnp.array([1.5, 0.0, 0.0])
    zero = jnp.zeros(())
    point = Gaussian(place, jnp.array([1.0, 0, 0]), zero, zero)

    def depth(direction):
        # |f(x + h d) - f(x - h d)| / 2 h in double precision
        f = lambda x: (2 - 1 / np.linalg.norm(x)) * x / np.linalg.norm(x) / 2
        x, d = np.asarray(place, float), np.asarray(direction, float)
        return 2.0 * np.linalg.norm(f(x + 1e-6 * d) - f(x - 1e-6 * d)) / 2e-6

    along = [depth(axis) for axis in np.eye(3)]
    for axis, expected in zip(np.eye(3), along, strict=True):
        medium = eqx.filter_jit(fog.medium_at)(point, jnp.asarray(axis, jnp.float32))
        assert float(medium.density) == pytest.approx(expected, rel=1e-4)
    assert float(fog.density_at(point)) == pytest.approx(np.mean(along), rel=1e-4)


def test_faces_that_no_viewpoint_sees_are_left_out():
    """A box that ends within a ball has a flat side, which is seen from x > 0 alone."""
    balls = Unbent(Balls([[0.0, 0, 0]], [1.8], extinction=300.0))
    scene = sg.Scene(sg.Group(ball=sg.Volume(balls, None, contraction=BENT)))
    eyes = 6.0 * np.concatenate([np.eye(3), -np.eye(3)])
    halved = dataclasses.replace(PLAIN, box=(-3.0, -3, -3, 0, 3, 3))
    both = mesh_volumes(scene, halved, viewpoints=eyes)["ball"].shape.vertices
    left = mesh_volumes(scene, halved, viewpoints=eyes[3:4])["ball"].shape.vertices
    assert np.sum(np.asarray(both)[:, 0] > -0.1) > 50
    assert np.max(offsets(left, 0)) < 2.1 and np.sum(np.asarray(left)[:, 0] > 0.05) == 0


def test_the_box_that_the_message_advises():
    """It is one of the volume's frame, and holds what cameras look at."""
    inside = Unbent(Balls([[0.3, 0.0, 0.2]], [0.5], extinction=300.0))
    ball = sg.Volume(inside, None, contraction=BENT)
    scene = sg.Scene(sg.Group(ball=sg.Transformed(ball, sg.Similarity([10.0, 0, 0], scale=0.5))))
    with pytest.raises(ValueError, match="has no bounds") as caught:
        mesh_volumes(scene, dataclasses.replace(PLAIN, box=None))
    words = str(caught.value).split("--box ")[1].replace("`", " ").split()
    advised = dataclasses.replace(PLAIN, box=tuple(map(float, words[:6])))
    mesh = mesh_volumes(scene, advised)["ball"].child.shape
    assert np.max(np.abs(offsets(mesh.vertices, [0.3, 0.0, 0.2]) - 0.5)) < 0.08
