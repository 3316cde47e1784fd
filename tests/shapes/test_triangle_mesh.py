"""Meshes: their pictures and gradients against hard visibility, leaks, order, and bad input."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
import support.hard_surfaces as hard
from support.hard_triangles import flat_picture, icosphere, slab, torus


SQUARE = [[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
HALVES = [[0, 1, 2], [0, 2, 3]]
EYES = {"ball": [0.3, -4.0, 1.0], "ring": [0.0, -3.5, 2.0], "slab": [0.4, -4.0, 0.3]}
MESHES = {"ball": icosphere(1), "ring": torus(16, 8), "slab": slab((1.0, 0.8, 0.02))}


def cameras(name, size):
    """The same camera twice: the library's, and the reference's."""
    place = EYES[name], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]
    return sg.PerspectiveCamera.look_at(*place, 0.8, size, size), hard.Camera(
        *place, 0.8, size, size
    )


@functools.cache
def draw(name, size):
    """A function of vertices: the opacity of the mesh in every pixel."""
    camera, faces = cameras(name, size)[0], MESHES[name][1]

    def picture(vertices):
        mesh = sg.TriangleMesh(vertices, faces)
        return sg.render(sg.Scene(sg.Group(mesh=sg.Surface(mesh, [1.0, 1.0, 1.0]))), camera)

    return jax.jit(picture)


def truth(name, vertices, size, samples):
    faces = MESHES[name][1]
    white = np.ones((len(faces), 3))
    return flat_picture(vertices[faces], white, cameras(name, size)[1], samples)


QUICK = ["slab", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ball", "ring"))]


@pytest.mark.parametrize("name", QUICK)
def test_coverage_is_that_of_hard_visibility(name):
    image = draw(name, 32)(jnp.asarray(MESHES[name][0]))
    error = np.asarray(image.rgb) - truth(name, MESHES[name][0], 32, 32)
    assert int(jnp.sum(image.overflow)) == 0
    assert np.sqrt(np.mean(error**2)) < 0.004


@pytest.mark.slow
@pytest.mark.parametrize("name", MESHES)
def test_coverage_is_that_of_hard_visibility_in_larger_pictures(name):
    image = draw(name, 64)(jnp.asarray(MESHES[name][0]))
    error = np.asarray(image.rgb) - truth(name, MESHES[name][0], 64, 32)
    assert np.sqrt(np.mean(error**2)) < 0.004


@pytest.mark.slow
@pytest.mark.parametrize("name", MESHES)
def test_gradients_along_smooth_fields_are_those_of_hard_visibility(name):
    vertices, rng = MESHES[name][0], np.random.default_rng(3)
    y, x = np.mgrid[:32, :32] / 32
    picture, target = draw(name, 32), np.sin(5 * x + 3 * y)[..., None]
    loss = lambda rgb: ((rgb - target) ** 2).sum()
    slope = jax.jit(jax.grad(lambda v: loss(picture(v).rgb)))(jnp.asarray(vertices))
    errors, sizes = [], []
    for _ in range(6):
        turn, shift = rng.normal(size=(3, 3)), rng.normal(size=3)
        field = np.sin(vertices @ turn + shift) * rng.normal(size=3)
        step = 0.005
        ends = [loss(truth(name, vertices + s * field, 32, 64)) for s in (step, -step)]
        expected = (ends[0] - ends[1]) / (2 * step)
        errors.append(np.sum(slope * field) - expected)
        sizes.append(expected)
    # Relative to the usual size: some fields nearly leave the loss as it is.
    assert np.median(np.abs(errors)) < 0.03 * np.sqrt(np.mean(np.square(sizes)))


@pytest.mark.slow
def test_closed_mesh_does_not_leak():
    camera = cameras("ball", 64)[0]
    vertices, faces = icosphere(2)
    mesh = sg.TriangleMesh(3 * vertices, faces)  # it fills the picture
    image = sg.render(sg.Scene(sg.Group(m=sg.Surface(mesh, [1.0, 1.0, 1.0]))), camera)
    assert np.max(np.abs(np.asarray(image.alpha) - 1)) < 1e-5


@pytest.mark.slow
def test_order_of_faces_does_not_matter():
    vertices, faces = MESHES["ring"]
    shuffled = np.random.default_rng(0).permutation(faces)
    camera, pictures = cameras("ring", 24)[0], []
    for rows in (faces, shuffled, np.roll(shuffled, 1, axis=1)):
        mesh = sg.TriangleMesh(vertices, rows)
        scene = sg.Scene(sg.Group(m=sg.Surface(mesh, sg.Normals())))
        pictures.append(np.asarray(sg.render(scene, camera).rgb))
    np.testing.assert_allclose(pictures[1], pictures[0], atol=1e-5)
    np.testing.assert_allclose(pictures[2], pictures[0], atol=1e-5)


@pytest.mark.slow
def test_square_is_drawn_like_a_rectangle():
    camera = sg.PerspectiveCamera.look_at([0.5, -1.5, 2.5], [0.5, 0.5, 0], [0, 0, 1], 0.6, 24, 24)
    place = sg.Similarity([0.1, 0.0, 0.2], [0.9, 0.1, -0.2, 0.3], 0.7)
    board = sg.Checker(0.25, coordinates=sg.shaders.InSpace())
    # Not at z = 0, where the cells of a board in space meet, and rounding decides between them.
    square = np.array(SQUARE) + [0.0, 0.0, 0.1]
    shapes = [
        sg.TriangleMesh(square, HALVES, uv=square[:, :2], smooth=False),
        sg.Rectangle([0.5, 0.5, 0.1], [1.0, 1.0]),
    ]
    lamps = {"lamp": sg.PointLight([1.0, -1.0, 3.0], [9.0, 9.0, 9.0])}
    pictures = []
    for shape in shapes:
        card = sg.Transformed(sg.Surface(shape, sg.Lambert(board)), place)
        floor = sg.Surface(sg.Plane([0, 0, -0.5]), sg.Lambert([0.6, 0.5, 0.4]))
        image = sg.render(sg.Scene(sg.Group(card=card, floor=floor, **lamps)), camera)
        pictures.append(np.asarray(image.rgb))
    # Corners of a rectangle are products of slabs.
    assert np.sqrt(np.mean((pictures[0] - pictures[1]) ** 2)) < 0.01


@pytest.mark.slow
def test_vertices_colour_and_normals_are_interpolated():
    colors = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]])
    mesh = sg.TriangleMesh(SQUARE, HALVES, colors=colors, normals=[[0.0, 0, 2]] * 4)
    camera = sg.OrthographicCamera.look_at([0.5, 0.5, 2], [0.5, 0.5, 0], [0, 1, 0], 1.0, 8, 8)
    scene = sg.Scene(sg.Group(m=sg.Surface(mesh, sg.shaders.VertexColor())))
    image = sg.render(scene, camera, outputs=["rgb", "normal"])
    x, y = np.meshgrid((np.arange(8) + 0.5) / 8, 1 - (np.arange(8) + 0.5) / 8)
    below = (
        (1 - x)[..., None] * colors[0] + (x - y)[..., None] * colors[1] + y[..., None] * colors[2]
    )
    lower = x - y > 1 / 8
    np.testing.assert_allclose(np.asarray(image.rgb)[lower], below[lower], atol=1e-4)
    np.testing.assert_allclose(image.normal[..., 2], 1, atol=1e-5)


@pytest.mark.slow
def test_pixels_on_a_seam_are_of_one_side():
    """Two squares side by side, from far-off parts of a texture: no pixel mixes their uv."""
    corners = np.array([[x, y, 0.0] for x in (-1, 0.03, 0.03, 1) for y in (-1, 1)])
    faces = [[0, 2, 3], [0, 3, 1], [4, 6, 7], [4, 7, 5]]
    uv = [[0.1, 0.5]] * 4 + [[0.9, 0.5]] * 4
    mesh = sg.TriangleMesh(corners, faces, uv=uv)
    camera = sg.PerspectiveCamera.look_at([0, 0, 3], [0, 0, 0], [0, 1, 0], 0.3, 9, 9)
    image = sg.render(sg.Scene(sg.Group(mesh=sg.Surface(mesh, sg.shaders.UV()))), camera)
    np.testing.assert_allclose(image.alpha, 1, atol=1e-5)
    sides = np.abs(np.asarray(image.rgb)[..., 0, None] - [0.1, 0.9])
    assert np.all(np.min(sides, axis=-1) < 1e-3)
    assert np.all(np.any(sides < 1e-3, axis=(0, 1)))


def test_mesh_is_saved_and_described(tmp_path):
    scene = sg.Scene(sg.Group(m=sg.Surface(sg.TriangleMesh(SQUARE, HALVES), [1.0, 0.0, 0.0])))
    sg.save(scene, tmp_path / "mesh.sg")
    assert eqx.tree_equal(sg.load(tmp_path / "mesh.sg"), scene)
    assert "vertices  float32[4 3]" in sg.describe(scene)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((SQUARE, [[0, 1, 4]]), r"faces\[0, 2\].* is 4, but there are 4 vertices"),
        ((SQUARE, [[0, 1, -1]]), r"is -1"),
        ((SQUARE, np.zeros((0, 3), int)), "is empty"),
        ((SQUARE, [[0, 1, 2, 3]]), "polygons of more corners"),
        (([[0.0, 0, 0], [1, 0, 0], [1, np.nan, 0]], [[0, 1, 2]]), r"vertices\[2\].* finite"),
        (([[0.0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 1, 2]]), "no face .* has an area"),
        ((SQUARE, HALVES, [[0.0, 0, 1]]), r"normals` needs the shape \(4, 3\)"),
        ((SQUARE, HALVES, None, [[0.0, 0, 1]] * 4), r"uv` needs the shape \(4, 2\)"),
    ],
)
def test_bad_meshes_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        sg.TriangleMesh(*arguments)


def test_faces_that_are_no_integers_are_refused():
    with pytest.raises(TypeError, match="integers"):
        sg.TriangleMesh(SQUARE, [[0.0, 1.0, 2.0]])


def test_faces_without_area_and_twice_are_left_out():
    with pytest.warns(UserWarning, match="leaves out 1 faces without area and 1 that are"):
        mesh = sg.TriangleMesh(SQUARE, [*HALVES, [0, 0, 1], [1, 2, 0]])
    assert mesh.faces.tolist() == HALVES


@pytest.mark.slow
def test_gradients_are_those_of_finite_differences():
    camera = sg.PerspectiveCamera.look_at(*[EYES["ball"], [0, 0, 0], [0, 0, 1]], 0.8, 12, 12)
    mesh = sg.TriangleMesh(*icosphere(1))
    scene = sg.Scene(sg.Group(mesh=sg.Surface(mesh, [1.0, 0.5, 0.2])))
    checks = sg.diagnostics.check_gradients(scene, camera)
    assert {check.verdict for check in checks} == {"right"}


def test_faces_are_a_copy_of_what_is_given():
    """JAX takes memory that begins at a multiple of 64 bytes for its own, without a copy."""
    memory = np.zeros(256, np.uint8)
    start = -memory.ctypes.data % 64
    faces = memory[start : start + 24].view(np.int32).reshape(2, 3)
    faces[:] = [[0, 1, 2], [0, 2, 3]]
    mesh = sg.TriangleMesh([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], faces)
    faces[:] = 0
    assert mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3]]
