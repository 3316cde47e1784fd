"""Meshes of one side: pictures against hard visibility of fronts, shadows, lines and files."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
import support.hard_surfaces as hard
from support.hard_triangles import flat_picture, icosphere, torus
from support.model_files import everything, pack_glb, unpack_glb


EYE = [1.2, -3.0, 1.5], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]
SIZE = 32
SQUARE = [[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]
UP = np.array([[0, 1, 2], [0, 2, 3]])


def bowl():
    """The lower part of a ball: from above, some faces are seen from behind."""
    vertices, faces = icosphere(2)
    return vertices, faces[np.mean(vertices[faces], axis=1)[:, 2] < 0.3]


def opacity_of(mesh, transform=None) -> np.ndarray:
    node = sg.Surface(mesh, [1.0, 1.0, 1.0])
    node = node if transform is None else sg.Transformed(node, transform)
    camera = sg.PerspectiveCamera.look_at(*EYE, 0.8, SIZE, SIZE)
    image = sg.render(sg.Scene(sg.Group(mesh=node)), camera)
    assert int(jnp.sum(image.overflow)) == 0
    return np.asarray(image.rgb)


def fronts_seen(triangles) -> np.ndarray:
    """The picture of those triangles whose corners run counter-clockwise, seen from the eye."""
    a, b, c = np.moveaxis(triangles, 1, 0)
    front = triangles[np.sum(np.cross(b - a, c - a) * (EYE[0] - a), axis=1) > 0]
    assert 0 < len(front) < len(triangles)
    return flat_picture(front, np.ones((len(front), 3)), hard.Camera(*EYE, 0.8, SIZE, SIZE), 16)


@pytest.mark.parametrize("mirrored", [False, True])
def test_only_fronts_are_seen(mirrored):
    vertices, faces = bowl()
    matrix = np.diag([1.0, -0.8, 1.1]) if mirrored else np.eye(3)
    drawn = opacity_of(sg.TriangleMesh(vertices, faces, two_sided=False), sg.Affine(matrix))
    # In a mirror, what was the front is still the front.
    triangles = (vertices @ matrix.T)[faces[:, ::-1] if mirrored else faces]
    assert np.sqrt(np.mean((drawn - fronts_seen(triangles)) ** 2)) < 0.006
    both = opacity_of(sg.TriangleMesh(vertices, faces), sg.Affine(matrix))
    assert np.mean(both) > np.mean(drawn) + 0.02


def test_one_ray_alone_sees_the_same():
    vertices, faces = bowl()
    one, two = (sg.TriangleMesh(vertices, faces, two_sided=x) for x in (False, True))
    camera = sg.PerspectiveCamera.look_at(*EYE, 0.8, SIZE, SIZE)
    pixels = jnp.stack(jnp.meshgrid(jnp.arange(SIZE), jnp.arange(SIZE)), axis=-1) + 0.5
    rays = jax.vmap(jax.vmap(camera.ray))(pixels)
    seen = jax.jit(jax.vmap(jax.vmap(lambda ray: one.parts(ray).coverage[0])))(rays)
    drawn = opacity_of(one)[..., 0]
    # A single ray has its nearest sheet alone.
    assert np.mean(np.abs(seen - drawn)) < 4e-3
    stopped = jax.jit(
        jax.vmap(jax.vmap(lambda ray: jnp.stack([one.coverage(ray), two.coverage(ray)])))
    )
    from_one, from_two = np.moveaxis(np.asarray(stopped(rays)), -1, 0)
    assert np.all(from_one <= from_two + 1e-6) and from_one.sum() < from_two.sum()


def lit(mesh, light, size=24):
    ball = sg.Surface(mesh, sg.Lambert([0.8, 0.5, 0.3]))
    floor = sg.Surface(sg.Plane([0.0, 0, -1.2]), sg.Lambert([0.6, 0.6, 0.6]))
    camera = sg.PerspectiveCamera.look_at([2.5, -4.0, 3.0], *EYE[1:], 0.9, size, size)
    return sg.render(sg.Scene(sg.Group(ball=ball, floor=floor, light=light)), camera)


LIGHTS = {
    "lamp": sg.PointLight([1.5, -1.0, 4.0], [40.0] * 3),
    "sun": sg.DirectionalLight([-0.4, 0.3, -1.0], [3.0] * 3),
}


@pytest.mark.parametrize("name", LIGHTS)
def test_a_closed_mesh_looks_the_same_from_outside(name):
    vertices, faces = torus(20, 10)
    one, two = (
        lit(sg.TriangleMesh(vertices, faces, two_sided=x), LIGHTS[name]) for x in (False, True)
    )
    np.testing.assert_allclose(one.rgb, two.rgb, atol=2e-3)


@pytest.mark.slow
def test_gradients_of_a_closed_mesh_are_the_same():
    vertices, faces = torus(12, 6)

    def loss(vertices, two_sided):
        mesh = sg.TriangleMesh(vertices, faces, two_sided=two_sided)
        return jnp.mean(lit(mesh, LIGHTS["lamp"], 16).rgb ** 2)

    one, two = (eqx.filter_grad(loss)(jnp.asarray(vertices, jnp.float32), x) for x in (False, True))
    assert np.linalg.norm(one - two) < 0.05 * np.linalg.norm(two)


@pytest.mark.parametrize("up", [True, False])
def test_lamps_see_fronts_alone(up):
    mesh = sg.TriangleMesh(SQUARE, UP if up else UP[:, ::-1], two_sided=False)
    floor = sg.Surface(sg.Plane([0.0, 0, -1]), sg.Lambert([1.0, 1.0, 1.0]))
    lamp = sg.PointLight([0.0, 0, 3], [1.0] * 3)
    scene = sg.Scene(sg.Group(square=sg.Surface(mesh, [0.5] * 3), floor=floor, lamp=lamp))
    below = sg.PerspectiveCamera.look_at([3.0, 0, -0.5], [0.0, 0, -1], [0, 0, 1], 0.1, 8, 8)
    middle = np.asarray(sg.render(scene, below).rgb)
    if up:
        np.testing.assert_allclose(middle, 0, atol=1e-5)
    else:
        assert np.all(middle > 0.01)


def test_lines_hit_fronts_alone():
    mesh = sg.TriangleMesh(SQUARE, UP, two_sided=False)
    other = sg.TriangleMesh(np.add(SQUARE, [0, 0, -1]), UP)
    scene = sg.Scene(sg.Group(a=sg.Surface(mesh, [0.5] * 3), b=sg.Surface(other, [0.5] * 3)))
    origins = jnp.array([[0.2, 0.1, 2.0], [0.2, 0.1, -0.5], [0.2, 0.1, -3.0], [5.0, 0, 2]])
    ways = jnp.array([[0.0, 0, -1], [0, 0, 1], [0, 0, 1], [0, 0, -1]])
    hits = sg.cast_rays(scene, origins, ways)
    np.testing.assert_allclose(hits.t, [2.0, np.inf, 2.0, np.inf], rtol=1e-6)


@pytest.mark.parametrize(("written", "two_sided"), [(None, False), (False, False), (True, True)])
def test_files_say_which_sides_are_seen(tmp_path, written, two_sided):
    content, binary = everything()
    for material in content["materials"]:
        material.pop("doubleSided", None)
        if written is not None:
            material["doubleSided"] = written
    (tmp_path / "file.glb").write_bytes(pack_glb(content, binary))
    with pytest.warns(UserWarning):
        scene = sg.load_scene(tmp_path / "file.glb")
    sides = [x.shape.two_sided for x in _surfaces(scene)]
    # One part has no material, and so one side.
    assert sorted(sides) == [False, two_sided, two_sided]
    sg.save_glb(scene, tmp_path / "again.glb")
    again = unpack_glb((tmp_path / "again.glb").read_bytes())[0]
    assert {x["doubleSided"] for x in again["materials"]} == {False, two_sided}


def _surfaces(scene) -> list:
    return [x for x in jax.tree.leaves(scene, is_leaf=_is_surface) if _is_surface(x)]


def _is_surface(x) -> bool:
    return isinstance(x, sg.Surface) and isinstance(x.shape, sg.TriangleMesh)
