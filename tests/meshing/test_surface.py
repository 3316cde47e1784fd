"""The surface of fields whose surface is known."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.meshing import mesh_volumes, MeshOptions
from support.solid_fields import Balls, density_radius


pytest.importorskip("skimage")
CUBE = sg.Box([-1.0] * 3, [1.0] * 3)
OFFSETS = jnp.array([[0.0, 5, 0], [0.0, 9, 0]])
# The thickness of the layer whose opacity is the level.
LAYER = 2 / 64
PLAIN = MeshOptions(level=0.5, resolution=40, faces=None, texture=None)


def meshed(field, options=PLAIN, bounds=CUBE, **options_of_volume):
    scene = sg.Scene(sg.Group(cloud=sg.Volume(field, bounds=bounds, **options_of_volume)))
    return mesh_volumes(scene, options)["cloud"].shape


def signed_volume(mesh):
    a, b, c = np.moveaxis(np.asarray(mesh.vertices, float)[np.asarray(mesh.faces)], 1, 0)
    return np.sum(np.cross(a, b) * c) / 6


def distances(mesh, center=(0.0, 0, 0)):
    return np.linalg.norm(np.asarray(mesh.vertices) - np.asarray(center), axis=1)


def test_vertices_lie_where_the_density_is_that_of_the_level():
    mesh = meshed(Balls([[0.1, 0, 0]], [0.6]))
    radius = density_radius(0.6, 1000.0, 0.02, 0.5, LAYER)
    # The surface is found by linear interpolation: to a part of a cell, which is 0.05 wide.
    assert np.max(np.abs(distances(mesh, [0.1, 0, 0]) - radius)) < 0.02
    # Closed, with its faces seen from outside: the volume of a polyhedron in the ball.
    assert 0.97 < signed_volume(mesh) / (4 / 3 * np.pi * radius**3) < 1.02


def test_a_lower_level_is_farther_out():
    field = Balls([[0.0, 0, 0]], [0.6], edge=0.05)
    radii = [
        np.mean(distances(meshed(field, dataclasses.replace(PLAIN, level=level))))
        for level in (0.1, 0.5, 0.9)
    ]
    expected = [density_radius(0.6, 1000.0, 0.05, level, LAYER) for level in (0.1, 0.5, 0.9)]
    assert np.allclose(radii, expected, atol=0.02) and radii[0] > radii[1] > radii[2]


def test_the_density_is_averaged_over_a_cell():
    """A blob's mean over a Gaussian is known: so is where it has the level."""
    blob = sg.fields.GaussianBlob([0.0, 0, 0], 0.2, 400.0, [1.0, 1, 1])
    mesh = meshed(blob, MeshOptions(level=0.5, resolution=20, faces=None, texture=None))
    spread = 0.2**2 + 0.1**2 / 12
    peak = 400.0 * (0.2**2 / spread) ** 1.5
    radius = np.sqrt(2 * spread * np.log(peak * LAYER / np.log(2)))
    assert np.max(np.abs(distances(mesh) - radius)) < 0.02


def test_cells_are_even_in_a_box_that_is_not_a_cube():
    mesh = meshed(Balls([[0.0, 0, 0]], [0.4]), bounds=sg.Box([-1.5, -0.5, -0.75], [1.5, 0.5, 0.75]))
    assert np.max(np.abs(distances(mesh) - 0.484)) < 0.03


def test_a_field_that_goes_on_is_closed_at_the_bounds():
    fog = sg.fields.ConstantFog(1000.0, [1.0, 1, 1])
    mesh = meshed(fog, MeshOptions(level=0.5, resolution=8, faces=None, texture=None))
    assert np.max(np.abs(mesh.vertices)) == pytest.approx(1.0, abs=0.01)
    assert 7.0 < signed_volume(mesh) < 8.0


def test_small_parts_are_left_out():
    field = Balls([[-0.3, 0, 0], [0.7, 0.6, 0]], [0.5, 0.12])
    assert np.max(meshed(field).vertices[:, 0]) > 0.6
    options = dataclasses.replace(PLAIN, min_part=0.1)
    assert np.max(meshed(field, options).vertices[:, 0]) < 0.4
    options = dataclasses.replace(PLAIN, min_part=0.0)
    assert np.max(meshed(field, options).vertices[:, 0]) > 0.6


def test_hollows_are_filled():
    class Hollow(sg.fields.AbstractField):
        ball: Balls

        def __call__(self, gaussian, view, *, key=None):
            return sg.rays.Medium(self.density(gaussian), jnp.ones(3))

        def density(self, gaussian):
            distance = jnp.linalg.norm(gaussian.mean)
            return jnp.where((distance > 0.3) & (distance < 0.7), 1000.0, 0.0)

    mesh = meshed(Hollow(Balls([[0.0, 0, 0]], [0.6])))
    assert np.min(distances(mesh)) > 0.6


def test_the_number_of_faces():
    pytest.importorskip("fast_simplification")
    field = Balls([[0.0, 0, 0]], [0.7])
    many = meshed(field)
    few = meshed(field, dataclasses.replace(PLAIN, faces=500))
    assert len(many.faces) > 4000 and 450 < len(few.faces) <= 500
    assert np.max(np.abs(distances(few) - np.mean(distances(many)))) < 0.05


def test_empty_cells_are_not_asked():
    """A part of the field that the occupancy does not know is not seen by rays either."""
    known = sg.scene.Occupancy.everywhere(8).without(
        jnp.arange(8)[:, None, None] >= 4 * jnp.ones((8, 8, 8))
    )
    field = Balls([[-0.5, 0, 0], [0.5, 0, 0]], [0.3, 0.3])
    mesh = meshed(field, occupancy=known)
    assert np.max(mesh.vertices[:, 0]) < 0


def test_refused():
    field = Balls([[0.0, 0, 0]], [0.6], extinction=1.0)
    with pytest.raises(ValueError, match=r"no surface at level 0\.5.*has opacity 0\.03"):
        meshed(field)
    with pytest.raises(ValueError, match="no bounds.*--box"):
        meshed(field, bounds=None)
    nothing = sg.scene.Occupancy.everywhere(4).without(jnp.ones((4, 4, 4), bool))
    with pytest.raises(ValueError, match="no cell .* is occupied"):
        meshed(field, occupancy=nothing)


def test_a_box_for_what_has_no_bounds():
    options = dataclasses.replace(PLAIN, box=(-1.0, -1, -1, 1, 1, 1))
    mesh = meshed(Balls([[0.0, 0, 0]], [0.6]), options, bounds=None)
    assert np.max(np.abs(distances(mesh) - 0.676)) < 0.02


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("level", 1.0),
        ("resolution", 1),
        ("resolution", 5000),
        ("faces", 3),
        ("texture", 8),
        ("min_part", -0.1),
        ("box", (0.0, 0, 0, 1, 0, 1)),
    ],
)
def test_options_out_of_range(name, value):
    with pytest.raises(ValueError, match=f"MeshOptions.{name}"):
        MeshOptions(**{name: value})


def test_transforms_stay_and_copies_become_groups():
    volume = sg.Volume(Balls([[0.0, 0, 0]], [0.5]), bounds=CUBE)
    moved = sg.Transformed(volume, sg.Similarity([3.0, 0, 0], scale=2.0))
    pair = sg.Instances(volume, jax.vmap(sg.transforms.translate)(OFFSETS))
    lamp = sg.PointLight([0.0, 0, 5], [1.0, 1, 1])
    scene = sg.Scene(sg.Group(moved=moved, pair=pair, lamp=lamp), background=[0.1, 0.2, 0.3])
    options = dataclasses.replace(PLAIN, resolution=10)
    made = mesh_volumes(scene, options)
    assert np.max(made["moved.shape.vertices"]) < 0.7
    assert isinstance(made.root.children["moved"], sg.Transformed)
    assert sorted(made["pair"].children) == ["copy_0", "copy_1"]
    assert eqx.tree_equal(made["lamp"], lamp) and eqx.tree_equal(made.background, scene.background)
