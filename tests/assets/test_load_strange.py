"""Scenes of files as other programs write them, and of files that were saved here."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.images import by_table, srgb_to_linear
from scenegraph.shapes._face_order import order_faces
from support.helpers import assert_close
from support.model_files import Binary, everything, pack_glb, TRIANGLE


def quiet(path) -> sg.Scene:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return sg.load_scene(path)


def test_copies_become_instances(tmp_path):
    binary = Binary()
    position = binary.array(TRIANGLE, "VEC3", 5126)
    places = np.float32([[0, 0, 0], [5, 0, 0], [0, 7, 0]])
    attributes = {"TRANSLATION": binary.array(places, "VEC3", 5126)}
    extension = {"EXT_mesh_gpu_instancing": {"attributes": attributes}}
    content = {
        "asset": {"version": "2.0"},
        "buffers": [{"byteLength": len(binary.data)}],
        "bufferViews": binary.views,
        "accessors": binary.accessors,
        "meshes": [{"name": "leaf", "primitives": [{"attributes": {"POSITION": position}}]}],
        "nodes": [{"mesh": 0, "extensions": extension, "scale": [2, 2, 2]}],
    }
    path = tmp_path / "a.glb"
    path.write_bytes(pack_glb(content, binary.data))
    scene = sg.load_scene(path, y_up=False)
    node = scene["leaf"].child
    assert isinstance(node, sg.Instances) and node.count == 3
    assert isinstance(node.transforms, sg.Similarity)
    # Of one size or not, they are of one kind.
    sizes = binary.array(np.float32([[1, 1, 1], [1, 2, 1], [1, 1, 1]]), "VEC3", 5126)
    attributes["SCALE"] = sizes
    content["buffers"][0]["byteLength"] = len(binary.data)
    path.write_bytes(pack_glb(content, binary.data))
    scene = sg.load_scene(path, y_up=False)
    assert isinstance(scene["leaf"].child.transforms, sg.Affine)
    bounds = sg.assets._framing.scene_bounds(scene)
    assert_close(bounds.lower, [0, 0, 0], absolute=1e-6)
    # 2 (5 + 1) and 2 (7 + 1)
    assert_close(bounds.upper, [12, 16, 0], 1e-6)


@pytest.mark.parametrize("mode", ["BLEND", "MASK"])
def test_wholly_transparent_materials_are_counted(tmp_path, mode):
    content, binary = everything()
    material = content["materials"][0]
    material["alphaMode"] = mode
    material["pbrMetallicRoughness"]["baseColorFactor"][3] = 0
    path = tmp_path / "a.glb"
    path.write_bytes(pack_glb(content, binary))
    with pytest.warns(UserWarning, match="1 x material that is wholly transparent"):
        sg.load_scene(path)


@pytest.mark.parametrize("kind", ["grid", "random"])
def test_saved_faces_keep_their_order(tmp_path, kind):
    """3,200 faces, which a mesh keeps in an order of its own; on a grid, many places are equal."""
    rng, side = np.random.default_rng(0), 41
    x, y = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    z = np.zeros_like(x) if kind == "grid" else rng.normal(size=x.shape)
    points = np.stack([x, y, z], axis=-1).reshape(-1, 3).astype(np.float32)
    corner = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).reshape(-1, 1)
    faces = np.concatenate([corner + [0, side, side + 1], corner + [0, side + 1, 1]])
    mesh = sg.TriangleMesh(points, rng.permutation(faces))
    scene = sg.Scene(sg.Group(sheet=sg.Surface(mesh, sg.Lambert([0.5, 0.5, 0.5]))))
    sg.save_glb(scene, tmp_path / "a.glb")
    first = quiet(tmp_path / "a.glb")
    np.testing.assert_array_equal(first["sheet.shape.faces"], mesh.faces)
    sg.save_glb(first, tmp_path / "b.glb")
    again = quiet(tmp_path / "b.glb")
    assert jax.tree.structure(again) == jax.tree.structure(first)
    for leaf, other in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(leaf, other)


@pytest.mark.parametrize("count", [1025, 2048, 3072, 5000, 40_000])
def test_an_order_of_faces_stays_as_it_is(count):
    rng = np.random.default_rng(count)
    for points in (rng.normal(size=(count, 3)), rng.integers(0, 4, (count, 3)) / 2.0):
        order = order_faces(points)
        np.testing.assert_array_equal(np.sort(order), np.arange(count))
        np.testing.assert_array_equal(order_faces(points[order]), np.arange(count))


def test_texels_by_table_beside_the_formula():
    texels = np.random.default_rng(0).integers(0, 256, (7, 5, 3)).astype(np.uint8)
    numbers = np.float32(texels) / 255
    assert_close(by_table(texels, np.arange(256) / 255), numbers, 1e-7)
    factor = np.array([0.5, 1, 2])
    table = np.asarray(srgb_to_linear(jnp.arange(256) / 255))[:, None] * factor
    assert_close(by_table(texels, table), srgb_to_linear(jnp.asarray(numbers)) * factor, 1e-5)
    assert_close(sg.ImageTexture(texels).texels, srgb_to_linear(jnp.asarray(numbers)), 1e-5)


def test_one_picture_in_two_slots_is_held_once(tmp_path):
    content, binary = everything()
    material = content["materials"][0]
    material["pbrMetallicRoughness"]["baseColorFactor"] = [1, 1, 1, 1]
    material |= {"emissiveTexture": {"index": 0}, "emissiveFactor": [1, 1, 1]}
    path = tmp_path / "a.glb"
    path.write_bytes(pack_glb(content, binary))
    shader = quiet(path)["table_1.leg.shader"]
    assert shader.emission.texels is shader.base_color.shader.texels
