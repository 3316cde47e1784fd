"""Files to scenes: hierarchy, transforms, materials, cameras and lights."""

import math
import os
import pathlib
import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.assets._walk import placed_nodes
from scenegraph.images import srgb_to_linear
from scenegraph.io import encode_png, FileError
from scenegraph.rays import no_light
from support.helpers import assert_close
from support.model_files import (
    Binary,
    check_damaged,
    everything,
    pack_glb,
    TEXELS,
    write_everything,
)


DATA = os.environ.get("SCENEGRAPH_DATA")
needs_models = pytest.mark.skipif(
    not DATA or not (pathlib.Path(DATA or "") / "models").is_dir(),
    reason="SCENEGRAPH_DATA names no folder with models/",
)


def load(path, **options) -> sg.Scene:
    """Loads a file whatever is left out of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return sg.load_scene(path, **options)


@pytest.fixture
def scene(tmp_path) -> sg.Scene:
    return load(write_everything(tmp_path))


def changed(tmp_path, change) -> sg.Scene:
    content, binary = everything()
    change(content)
    path = tmp_path / "file.glb"
    path.write_bytes(pack_glb(content, binary))
    return load(path)


def test_hierarchy_and_names(scene):
    table = scene["table_1"]
    assert isinstance(table, sg.Transformed)
    assert list(table.child.children) == ["leg", "leg_2", "spot"]
    assert "table_1.leg.shape.vertices" in scene and "table_1.leg_2.glow" in scene
    assert isinstance(scene["table_1.spot.lamp"], sg.PointLight)
    assert set(scene["eye"].child.children) == {"node_6", "sun", "camera"}
    assert sg.scene.camera_paths(scene) == ["eye.camera", "eye.node_6"]


def test_transforms_keep_their_kind(scene):
    assert isinstance(scene["table_1"].transform, sg.Similarity)
    assert isinstance(scene["table_1.leg"].transform, sg.Affine)
    leg = scene["table_1.leg_2"].transform
    assert isinstance(leg, sg.Similarity)
    assert_close(leg.point(jnp.ones(3)), [7, 8, 9], 1e-6)
    assert float(leg.scale) == pytest.approx(2)


def test_mirrored_and_squashed_nodes(tmp_path):
    mirrored = changed(tmp_path, lambda c: c["nodes"][1].update(scale=[-2, -2, -2]))
    transform = mirrored["table_1.leg"].transform
    assert isinstance(transform, sg.Similarity) and float(transform.scale) == pytest.approx(-2)
    squashed = changed(tmp_path, lambda c: c["nodes"][1].update(scale=[1, 0, 1]))
    assert "table_1.leg" in squashed and "table_1.leg_2" not in squashed
    content, binary = everything()
    content["nodes"][1]["scale"] = [1, 0, 1]
    (tmp_path / "file.glb").write_bytes(pack_glb(content, binary))
    with pytest.warns(UserWarning, match="1 x node scaled to nothing"):
        sg.load_scene(tmp_path / "file.glb")


def world_triangles(scene: sg.Scene) -> np.ndarray:
    found = [
        (np.asarray(node.shape.vertices) @ matrix[:3, :3].T + matrix[:3, 3])[node.shape.faces]
        for node, matrix in placed_nodes(scene)
        if isinstance(node, sg.Surface)
    ]
    rows = np.concatenate(found).reshape(-1, 9)
    return rows[np.lexsort(np.round(rows, 3).T + 0.0)]


def check_against_trimesh(path) -> None:
    trimesh = pytest.importorskip("trimesh", reason="needs trimesh")
    other = trimesh.load(path, force="scene", process=False).to_geometry()
    rows = np.asarray(other.triangles).reshape(-1, 9)
    rows = rows[np.lexsort(np.round(rows, 3).T + 0.0)]
    assert_close(world_triangles(load(path, y_up=False)), rows, 1e-6)


def test_places_beside_trimesh(tmp_path):
    def only_lists(content):
        content["meshes"][1]["primitives"].pop()  # trimesh reads a strip in another order
        content["meshes"][1]["primitives"][0]["attributes"]["POSITION"] = 0  # and no sparse rows

    content, binary = everything()
    only_lists(content)
    path = tmp_path / "file.glb"
    path.write_bytes(pack_glb(content, binary))
    check_against_trimesh(path)


@needs_models
@pytest.mark.parametrize(
    "name", ["avocado/avocado.gltf", "glb/BoxVertexColors.glb", "glb/NormalTangentTest.glb"]
)
def test_real_models_beside_trimesh(name):
    check_against_trimesh(pathlib.Path(DATA or "") / "models" / name)


# --- Materials


def test_materials(scene):
    leg = scene["table_1.leg"].child
    assert isinstance(leg.shader, sg.GGX)
    assert (float(leg.shader.metallic), float(leg.shader.roughness)) == (0.25, 0.75)
    assert float(leg.opacity) == 0.5
    linear = srgb_to_linear(jnp.asarray(TEXELS, jnp.float32) / 255) * jnp.asarray([0.5, 1, 1])
    # The colours of vertices multiply it.
    texture = leg.shader.base_color.shader
    assert_close(texture.texels, linear, 1e-6)
    assert not texture.repeat
    # Unlit: the colour itself, which the vertices have.
    assert isinstance(scene["table_1.leg_2.glow"].shader, sg.shaders.VertexColor)
    # Without a material: white metal, as the format says.
    plain = scene["table_1.leg_2.part"].shader
    assert float(plain.metallic) == 1 and float(plain.base_color.color[0]) == 1


def test_factors_and_textures_multiply_the_colors_of_vertices(tmp_path):
    def change(content):
        material = content["materials"][1]
        material["pbrMetallicRoughness"] = {"baseColorFactor": [0.5, 1, 0.25, 1]}

    glow = changed(tmp_path, change)["table_1.leg_2.glow"]
    assert_close(glow.shader.shader.color, [0.5, 1, 0.25], 1e-6)
    assert_close(glow.shape.colors, np.full((4, 3), 0.5), 1e-6)


def test_all_textures_become_shaders(tmp_path):
    content, binary = everything()
    material, texture = content["materials"][0], {"index": 0}
    strength = {"KHR_materials_emissive_strength": {"emissiveStrength": 4}}
    material |= {
        "normalTexture": {"index": 0, "scale": 0.5},
        "occlusionTexture": {"index": 0, "strength": 0.25},
        "emissiveTexture": texture,
        "emissiveFactor": [1, 0.5, 0],
        "extensions": strength,
    }
    material["pbrMetallicRoughness"]["metallicRoughnessTexture"] = texture
    path = tmp_path / "file.glb"
    path.write_bytes(pack_glb(content, binary))
    with pytest.warns(UserWarning) as caught:
        scene = sg.load_scene(path)
    assert len(caught) == 1
    assert "2 x opacity of vertices" in str(caught[0].message) and ";" not in str(caught[0].message)
    # Red is occlusion, green roughness, blue metallic.
    shader, numbers = scene["table_1.leg.shader"], np.float32(TEXELS) / 255
    assert_close(shader.roughness.texels, 0.75 * numbers[..., 1:2], 1e-6)
    assert_close(shader.metallic.texels, 0.25 * numbers[..., 2:3], 1e-6)
    assert_close(shader.occlusion.texels, 1 + 0.25 * (numbers[..., :1] - 1), 1e-6)
    assert_close(shader.normal_map.texture.texels, numbers, 1e-6)
    assert float(shader.normal_map.scale) == 0.5
    glow = srgb_to_linear(jnp.asarray(numbers)) * jnp.asarray([4.0, 2, 0])
    assert_close(shader.emission.texels, glow, 1e-6)


def test_textures_of_one_number_are_numbers(tmp_path):
    content, binary = everything()
    even = Binary()
    even.data, even.views = binary, content["bufferViews"]
    picture = np.tile(np.uint8([51, 102, 153]), (2, 2, 1))
    content["images"].append(
        {"bufferView": even.view(encode_png(picture)), "mimeType": "image/png"}
    )
    content["textures"].append({"source": 1})
    content["buffers"][0]["byteLength"] = len(even.data)
    material = content["materials"][0]
    material["occlusionTexture"] = {"index": 1}
    material["pbrMetallicRoughness"]["metallicRoughnessTexture"] = {"index": 1}
    path = tmp_path / "file.glb"
    path.write_bytes(pack_glb(content, even.data))
    shader = load(path)["table_1.leg.shader"]
    found = [float(x) for x in (shader.occlusion, shader.roughness, shader.metallic)]
    assert found == pytest.approx([0.2, 0.75 * 0.4, 0.25 * 0.6], abs=1e-6)


def test_textures_may_be_shifted_against_each_other(tmp_path):
    """Each with a transform of its own; one that is turned is left out, and counted."""
    place = lambda **fields: {"index": 0, "extensions": {"KHR_texture_transform": fields}}

    def change(content):
        material = content["materials"][0]
        pbr = material["pbrMetallicRoughness"]
        pbr["baseColorTexture"] = place(scale=[2, 3], offset=[0.1, 0.2])
        pbr["metallicRoughnessTexture"] = place(scale=[0.5, 0.25], offset=[0.3, -0.4])
        material["normalTexture"] = place(rotation=0.5)

    with pytest.warns(UserWarning, match="1 x normal texture with coordinates of its own"):
        content, binary = everything()
        change(content)
        path = tmp_path / "file.glb"
        path.write_bytes(pack_glb(content, binary))
        leg = sg.load_scene(path)["table_1.leg"].child
    assert leg.shader.normal_map is None
    files = np.array([[0.2, 0.7], [0.4, 0.1]])
    base = files * [2, 3] + [0.1, 0.2]
    rough = files * [0.5, 0.25] + [0.3, -0.4]
    texture = leg.shader.roughness
    for uv, at in zip(base, rough, strict=True):
        place_on_mesh = np.array([uv[0], 1 - uv[1]])
        inside = (place_on_mesh - np.asarray(texture.corner)) / np.asarray(texture.size)
        assert_close([inside[0], 1 - inside[1]], at, absolute=1e-6)


@pytest.mark.parametrize(("cutoff", "opacity"), [(0.4, 1.0), (0.6, 0.0)])
def test_mask(tmp_path, cutoff, opacity):
    mask = {"alphaMode": "MASK", "alphaCutoff": cutoff}
    scene = changed(tmp_path, lambda c: c["materials"][0].update(mask))
    assert float(sg.scene.open_scene(scene)["table_1.leg.opacity"]) == opacity


def color_at(texture, u: float, v: float):
    """What a shader shows at coordinates, for a narrow cone."""
    uv = jnp.asarray([u, v])
    hit = sg.rays.Hit(1.0, jnp.zeros(3), jnp.ones(3), uv, 1e-6 * jnp.ones((2, 2)), 1.0)
    return texture(hit, jnp.ones(3), no_light())


@pytest.mark.parametrize("wrap", [10497, 33071, 33648])
def test_wrap_modes(tmp_path, wrap):
    sampler = {"wrapS": wrap, "wrapT": wrap}
    scene = changed(tmp_path, lambda c: c["samplers"][0].update(sampler))
    texture = scene["table_1.leg.shader.base_color.shader"]
    texels = srgb_to_linear(jnp.asarray(TEXELS, jnp.float32) / 255) * jnp.asarray([0.5, 1, 1])
    # Columns from -4 to 8, and rows from the bottom.
    fold = {
        10497: lambda i: i % 4,
        33071: lambda i: min(max(i, 0), 3),
        33648: lambda i: (i % 8) if i % 8 < 4 else 7 - i % 8,
    }[wrap]
    for column, row in ((-3, 1), (5, 2), (2, -2), (1, 6), (3, 0), (7, 7), (-4, -4)):
        shown = color_at(texture, (column + 0.5) / 4, (row + 0.5) / 4)
        assert_close(shown, texels[3 - fold(row), fold(column)], 1e-4)


# --- Cameras and lights


def test_cameras(scene):
    camera = sg.scene.find_camera(scene, "eye.camera")
    assert (camera.width, camera.height) == (768, 512)
    origin, direction = camera.line(jnp.asarray([384.0, 0.0]))
    # Where y is up in the file, z is up in the scene: (x, y, z) is (x, -z, y).
    assert_close(origin, [0, -9, 0], 1e-6)
    # Half of the vertical angle between the middle and the upper edge.
    assert float(jnp.arctan2(direction[2], direction[1])) == pytest.approx(0.4, abs=1e-6)
    flat = sg.scene.find_camera(scene, "eye.node_6")
    corner, _ = flat.line(jnp.asarray([flat.width, 0.0]))
    assert_close(corner, [2, -9, 1], 1e-6)


def test_a_camera_alone_stands_where_the_file_says(tmp_path):
    turn = {"rotation": [math.sin(0.5), 0, 0, math.cos(0.5)], "translation": [1, 2, 3]}
    scene = changed(tmp_path, lambda c: c["nodes"][6].update(turn))
    pose = scene["eye.node_6"].pose
    assert_close(pose.offset(), [1, 2, 3], 1e-6)
    assert_close(pose.linear()[:, 2], [0, -math.sin(1), math.cos(1)], 1e-6)


def test_lights_keep_their_numbers(scene):
    lights = {type(node): (node, matrix) for node, matrix in placed_nodes(scene)}
    lamp, matrix = lights[sg.PointLight]
    sample = lamp.sample(jnp.asarray([0.0, 0, 2]), jnp.zeros((2, 3)))
    # Candela by the squared distance.
    assert_close(sample.irradiance, [[2, 1, 0.5]], 1e-6)
    assert_close(matrix[:3, 3], [1, -3, 2], 1e-6)
    spot, _ = lights[sg.SpotLight]
    # Within the inner cone it is full, outside of the outer one dark.
    shown = [
        float(spot.sample(jnp.asarray([math.tan(x), 0.0, -1]), jnp.zeros((2, 3))).irradiance[0, 0])
        * (1 + math.tan(x) ** 2)
        for x in (0.0, 0.19, 0.3, 0.41)
    ]
    assert shown[:2] == pytest.approx([1, 1], rel=1e-5) and shown[3] == 0 and 0 < shown[2] < 1
    sun, _ = lights[sg.DirectionalLight]
    assert sun.direction.tolist() == [0, 0, -1] and sun.irradiance.tolist() == [1, 1, 1]


# --- Damage


def test_damaged_files(tmp_path):
    check_damaged(tmp_path, range(1000, 1060), load)


@pytest.mark.slow
def test_a_thousand_damaged_files(tmp_path):
    check_damaged(tmp_path, range(1000), load)


def test_one_picture_in_thousands_of_colors_is_refused(tmp_path):
    content, binary = everything()
    material, part = content["materials"][0], content["meshes"][0]["primitives"][0]
    content["materials"] = []
    for i in range(50):
        pbr = material["pbrMetallicRoughness"] | {"baseColorFactor": [i / 50, 1, 1, 1]}
        content["materials"].append({"pbrMetallicRoughness": pbr})
    content["meshes"] = [{"primitives": [{**part, "material": i} for i in range(50)]}]
    content["nodes"] = [{"mesh": 0}]
    del content["scenes"], content["scene"]
    path = tmp_path / "file.glb"
    path.write_bytes(pack_glb(content, binary))
    load(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scenegraph.assets._materials._MOST_COPIED", 16 * 40)
        with pytest.raises(FileError, match="in other colours"):
            load(path)
