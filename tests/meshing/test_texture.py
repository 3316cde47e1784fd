"""Textures baked from fields whose colours are known."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.images import srgb_to_linear
from scenegraph.meshing import mesh_volumes, MeshOptions
from scenegraph.meshing._atlas import covered_texels, spread, unwrap
from scenegraph.meshing._surface import Triangles
from support.solid_fields import Balls


pytest.importorskip("skimage")
pytest.importorskip("xatlas")
CUBE = sg.Box([-1.0] * 3, [1.0] * 3)
FIELD = Balls([[0.0, 0, 0]], [0.6])
OPTIONS = MeshOptions(level=0.5, resolution=24, faces=None, texture=128)


def meshed(field=FIELD, options=OPTIONS, *others, **arguments):
    root = sg.Group(*others, cloud=sg.Volume(field, bounds=CUBE))
    return mesh_volumes(sg.Scene(root), options, **arguments)["cloud"]


@pytest.fixture(scope="module")
def textured():
    return meshed()


def atlas_of(surface):
    mesh = surface.shape
    height, width = surface.shader.texels.shape[:2]
    vertices, faces = np.asarray(mesh.vertices), np.asarray(mesh.faces)
    from scenegraph.meshing._atlas import Atlas

    return Atlas(Triangles(vertices, faces, vertices), np.asarray(mesh.uv), height, width)


def naive_cover(uv, faces, height, width):
    """How many triangles hold each texel's middle, by the signs of three areas, one by one."""
    count = np.zeros((height, width), int)
    for corners in uv[faces] * [width, height]:
        for row in range(height):
            y = height - 1 - row + 0.5
            if not corners[:, 1].min() <= y <= corners[:, 1].max():
                continue
            x = np.arange(width) + 0.5
            signs = []
            for k in range(3):
                (ax, ay), (bx, by) = corners[k], corners[(k + 1) % 3]
                signs.append((bx - ax) * (y - ay) - (by - ay) * (x - ax))
            signs = np.array(signs)
            count[row] += np.all(signs > 0, axis=0) | np.all(signs < 0, axis=0)
    return count


def test_the_atlas_has_no_overlaps(textured):
    mesh, texels = textured.shape, textured.shader.texels
    assert max(texels.shape[:2]) == 128
    uv = np.asarray(mesh.uv, float)
    assert np.all((uv >= 0) & (uv <= 1))
    count = naive_cover(uv, np.asarray(mesh.faces), *texels.shape[:2])
    assert np.max(count) == 1 and np.mean(count) > 0.4
    found = covered_texels(atlas_of(textured))
    covered = np.zeros(count.shape, bool)
    covered[found.row, found.column] = True
    # Those whose middle is on an edge are in one list or the other.
    assert np.mean(covered != (count > 0)) < 1e-3 and not np.any((count > 0) & ~covered)


def test_texels_have_the_colours_of_their_places(textured):
    atlas = atlas_of(textured)
    found = covered_texels(atlas)
    corners = atlas.mesh.vertices[atlas.mesh.faces[found.face]]
    places = np.einsum("nc,nck->nk", found.weights, corners)
    colors = np.asarray(textured.shader.texels)[found.row, found.column]
    # The colour is that of a place within the surface's blurred edge: a cell is 0.08 wide.
    assert np.max(np.abs(colors - (places + 1) / 2)) < 0.03
    assert np.max(np.abs(np.mean(colors - (places + 1) / 2, axis=0))) < 0.005


def test_colours_at_vertices():
    surface = meshed(options=dataclasses.replace(OPTIONS, texture=None))
    mesh = surface.shape
    assert np.max(np.abs(mesh.colors - (mesh.vertices + 1) / 2)) < 0.03


def test_views_count_by_the_cosine():
    """A field whose colour is the direction of view: its mean over two viewpoints is known."""
    field = dataclasses.replace(FIELD, by_direction=True)
    plain = dataclasses.replace(OPTIONS, texture=None, resolution=16)
    mesh = meshed(field, plain).shape
    # Seen along the normal, whose opposite is the direction of view.
    outward = np.asarray(mesh.vertices) / np.linalg.norm(mesh.vertices, axis=1, keepdims=True)
    assert np.max(np.abs(mesh.colors - (1 - outward) / 2)) < 0.03
    viewpoints = np.array([[5.0, 0, 0], [0.0, 5, 0]])
    mesh = meshed(field, plain, viewpoints=viewpoints).shape
    middle = np.argmin(np.linalg.norm(mesh.vertices - np.array([0.48, 0.48, 0]), axis=1))
    point = np.asarray(mesh.vertices)[middle]
    views = point - viewpoints
    views /= np.linalg.norm(views, axis=1, keepdims=True)
    weights = -views @ point
    expected = (weights @ (views + 1) / 2) / weights.sum()
    assert np.allclose(mesh.colors[middle], expected, atol=0.02)


@pytest.mark.slow
def test_textures_keep_how_colours_change_with_the_view():
    """A field whose colour is the direction of view, seen from where no viewpoint was."""
    field = dataclasses.replace(FIELD, by_direction=True)
    places = np.random.default_rng(0).normal(size=(16, 3))
    viewpoints = 4 * places / np.linalg.norm(places, axis=1, keepdims=True)
    options = dataclasses.replace(OPTIONS, resolution=16, texture=256)
    eye = sg.PerspectiveCamera.look_at([2.0, -2.5, 2.0], [0.0, 0, 0], [0, 0, 1], 0.4, 24, 24)

    def error(bands):
        own = dataclasses.replace(options, view_bands=bands)
        scene = sg.Scene(meshed(field, own, viewpoints=viewpoints))
        picture = sg.render(scene, eye)
        rows, columns = np.nonzero(np.asarray(picture.alpha) > 0.999)
        pixels = np.stack([columns + 0.5, rows + 0.5], axis=-1)
        views = jax.vmap(lambda at: eye.line(at)[1])(jnp.asarray(pixels, jnp.float32))
        views /= np.linalg.norm(views, axis=1, keepdims=True)
        return np.sqrt(np.mean((picture.rgb[rows, columns] - (views + 1) / 2) ** 2))

    assert error(1) > 0.15
    assert error(2) < 0.03 and error(3) < 0.03


def test_a_lit_scene_has_linear_colours():
    volume = sg.Volume(FIELD, bounds=CUBE)
    lamp = sg.PointLight([0.0, 0, 5], [1.0, 1, 1])
    plain = dataclasses.replace(OPTIONS, texture=None, resolution=12)
    lit = mesh_volumes(sg.Scene(sg.Group(cloud=volume, lamp=lamp)), plain)["cloud.shape"]
    dark = mesh_volumes(sg.Scene(sg.Group(cloud=volume)), plain)["cloud.shape"]
    assert np.allclose(lit.colors, srgb_to_linear(dark.colors), atol=1e-6)


def test_uncovered_texels_get_their_neighbours_colours():
    picture = np.zeros((4, 5, 3), np.float32)
    covered = np.zeros((4, 5), bool)
    covered[0, 0] = covered[3, 4] = True
    picture[0, 0], picture[3, 4] = 1.0, 2.0
    filled = spread(picture, covered)
    assert np.all(filled[:2, :2] == 1) and np.all(filled[2:, 3:] == 2)


def test_charts_keep_the_faces():
    tetrahedron = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    normals = np.array([[-1.0, -1, -1], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    atlas = unwrap(Triangles(tetrahedron, faces, normals), 64)
    corners = np.sort(atlas.mesh.vertices[atlas.mesh.faces].reshape(-1, 9), axis=0)
    assert np.array_equal(corners, np.sort(tetrahedron[faces].reshape(-1, 9), axis=0))
