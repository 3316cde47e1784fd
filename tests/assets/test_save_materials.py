"""Materials to GLB files and back: every texture and factor, and what the format does not have."""

import json
import os
import pathlib
import shutil
import subprocess
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.rays import no_light
from support.helpers import assert_close
from support.model_files import pack_glb, unpack_glb


RNG = np.random.default_rng(0)
# Numbers that 8 bits hold, linear or sRGB.
NUMBERS = RNG.integers(0, 256, (4, 8, 3)).astype(np.float32) / 255
COLORS = jnp.asarray(sg.images.srgb_to_linear(jnp.asarray(NUMBERS)))
QUAD = sg.TriangleMesh(
    [[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]],
    [[0, 1, 2], [0, 2, 3]],
    uv=[[0.0, 0], [2, 0], [2, 2], [0, 2]],
)


def texture(texels, **options):
    return sg.ImageTexture(texels, corner=[0.0, 0.0], **options)


def everything() -> sg.GGX:
    wrap = {"repeat": (True, False), "mirror": (True, False)}
    return sg.GGX(
        texture(COLORS, **wrap),
        texture(NUMBERS[..., 2:], **wrap),
        texture(NUMBERS[..., 1:2], **wrap),
        sg.shaders.NormalMap(texture(NUMBERS, repeat=True), 0.75),
        texture(COLORS, repeat=(False, True)),
        texture(NUMBERS[..., :1]),
    )


def save(tmp_path, shader, shape=QUAD, **options) -> dict:
    scene = sg.Scene(sg.Group(it=sg.Surface(shape, shader)))
    sg.save_glb(scene, tmp_path / "saved.glb", **options)
    return unpack_glb((tmp_path / "saved.glb").read_bytes())[0]


def round_trip(tmp_path, shader, shape=QUAD, **options):
    save(tmp_path, shader, shape, **options)
    return sg.load_scene(tmp_path / "saved.glb")["it"]


TERMS = RNG.integers(-127, 128, (2, 3, 9, 3)).astype(np.float32) / 127 * 0.25


@pytest.mark.parametrize("encoded", [False, True])
def test_how_colours_change_with_the_view_is_kept(tmp_path, encoded):
    shader = sg.shaders.ViewDependent(texture(COLORS), TERMS, encoded)
    content = save(tmp_path, shader)
    assert content["extensionsUsed"] == ["KHR_materials_unlit", "SCENEGRAPH_view_dependence"]
    # Other programs show the base.
    assert "baseColorTexture" in content["materials"][0]["pbrMetallicRoughness"]
    back = sg.load_scene(tmp_path / "saved.glb")["it"].shader
    assert back.encoded == encoded and back.bands == 3
    # In steps of 1/127 of the largest.
    step = np.abs(TERMS).max() / 127
    assert_close(back.terms.texels, TERMS.reshape(2, 3, -1), step * 0.51)
    assert_close(back.base.texels, COLORS, 1e-6)


def test_view_dependence_that_lies_elsewhere_is_counted(tmp_path):
    shader = sg.shaders.ViewDependent(texture(COLORS, size=[2.0, 2.0]), TERMS)
    with pytest.warns(UserWarning, match="1 x change of a colour with the view"):
        back = round_trip(tmp_path, shader)
    assert isinstance(back.shader, sg.ImageTexture)


def damaged(tmp_path, change):
    save(tmp_path, sg.shaders.ViewDependent(texture(COLORS), TERMS))
    content, binary = unpack_glb((tmp_path / "saved.glb").read_bytes())
    change(content["materials"][0]["extensions"]["SCENEGRAPH_view_dependence"])
    (tmp_path / "damaged.glb").write_bytes(pack_glb(content, binary))
    return sg.load_scene(tmp_path / "damaged.glb")


def test_damaged_view_dependence_is_refused(tmp_path):
    with pytest.raises(sg.io.FileError, match="1, 4, 9 or 16 textures; it has 8"):
        damaged(tmp_path, lambda own: own["textures"].pop())
    with pytest.raises(sg.io.FileError, match="several sizes"):
        damaged(tmp_path, lambda own: own["textures"][0].update(index=0))
    with pytest.raises(sg.io.FileError, match="scale"):
        damaged(tmp_path, lambda own: own.update(scale="much"))


def look(shader, uv):
    """What a shader shows at coordinates, for a narrow cone."""
    return np.asarray(seen_at(shader, np.zeros(3, np.float32), np.asarray(uv, np.float32)))


@eqx.filter_jit
def seen_at(shader, point, uv):
    hit = sg.rays.Hit(1.0, point, jnp.ones(3), uv, jnp.zeros((2, 2)), 1.0)
    return shader(hit, jnp.ones(3), no_light())


# --- Round trips


def test_all_textures_come_back(tmp_path):
    before, after = everything(), round_trip(tmp_path, everything()).shader
    assert jax.tree.structure(after) == jax.tree.structure(before)
    for one, other in zip(*map(jax.tree.leaves, (after, before)), strict=True):
        # A grey picture of 8 bits.
        assert_close(one, other, absolute=1e-5)


def test_numbers_come_back(tmp_path):
    before = sg.GGX([0.2, 0.4, 0.6], 0.25, 0.5, emission=[0.5, 3, 6], occlusion=0.6)
    after = round_trip(tmp_path, before).shader
    assert jax.tree.structure(after) == jax.tree.structure(before)
    for one, other in zip(*map(jax.tree.leaves, (after, before)), strict=True):
        assert_close(one, other, absolute=1e-6)


def layered() -> sg.Principled:
    """Every input of glTF's extensions, as textures where a file may have them."""
    red, green = texture(NUMBERS[..., :1]), texture(NUMBERS[..., 1:2])
    return sg.Principled(
        *(texture(COLORS), texture(NUMBERS[..., 2:]), green),
        ior=1.4,
        specular=red,
        specular_color=texture(COLORS),
        transmission=red,
        attenuation_color=[0.25, 0.5, 0.75],
        attenuation_distance=2.0,
        clearcoat=red,
        clearcoat_roughness=green,
        sheen_color=texture(COLORS),
        sheen_roughness=red,
    )


@pytest.mark.parametrize(
    "before",
    [
        layered(),
        sg.Principled([0.2, 0.4, 0.6], 0.25, 0.5, emission=[0.5, 3, 6], occlusion=0.6),
        sg.Principled("white", 0.0, 0.0, transmission=1.0, ior=1.5),
        sg.Principled("white", 0.0, 0.0, transmission=0.5, thin_walled=True),
        sg.Principled("gold", 1.0, 0.2, clearcoat=1.0, sheen_color=[0.1, 0.2, 0.3]),
        sg.Principled(specular=0.3, specular_color=[2.0, 1.0, 0.5]),
    ],
)
def test_layers_come_back(tmp_path, before):
    after = round_trip(tmp_path, before).shader
    if before.ior is None and after.ior is not None:
        # An extension that says what is so anyway makes it one of these.
        assert float(after.ior) == 1.5
        after = eqx.tree_at(lambda x: x.ior, after, None)
    assert jax.tree.structure(after) == jax.tree.structure(before)
    for one, other in zip(*map(jax.tree.leaves, (after, before)), strict=True):
        assert_close(one, other, absolute=2e-5)


def test_patterns_of_layers_are_means(tmp_path):
    """Of what has no texture in a file; and the strength of emission is in its factor."""
    strong = sg.Principled(
        emission=[1.0, 0.5, 0.2], emission_strength=4.0, ior=texture(1 + NUMBERS[..., :1])
    )
    with pytest.warns(UserWarning, match="ior of a ImageTexture, of which the mean is used"):
        after = round_trip(tmp_path, strong).shader
    assert_close(after.emission.color, np.array([4.0, 2.0, 0.8]), 1e-6)
    assert 1 < float(after.ior) < 2


def test_bright_emission_has_a_strength(tmp_path):
    content = save(tmp_path, sg.GGX(emission=texture(5 * COLORS)))
    (material,) = content["materials"]
    strength = material["extensions"]["KHR_materials_emissive_strength"]["emissiveStrength"]
    assert strength == pytest.approx(5 * float(jnp.max(COLORS)), rel=1e-5)
    assert material["emissiveFactor"] == [1, 1, 1]
    again = sg.load_scene(tmp_path / "saved.glb")["it"].shader
    assert_close(again.emission.texels, 5 * COLORS, absolute=0.03)


def test_one_picture_holds_metallic_and_roughness(tmp_path):
    rough = texture(NUMBERS[..., 1:2])
    content = save(tmp_path, sg.GGX([0.5] * 3, 0.25, rough))
    pbr = content["materials"][0]["pbrMetallicRoughness"]
    assert (pbr["metallicFactor"], pbr["roughnessFactor"]) == (0.25, 1)
    assert len(content["images"]) == 1
    again = sg.load_scene(tmp_path / "saved.glb")["it"].shader
    assert float(again.metallic) == 0.25
    assert_close(again.roughness.texels, rough.texels, absolute=1e-6)


def test_textures_that_lie_in_two_ways(tmp_path):
    """Each keeps its place, by a transform of its own."""
    base = texture(COLORS, size=[0.5, 0.25], repeat=True)
    bumps = sg.ImageTexture(NUMBERS, [2.0, 3.0], [0.1, -0.3], repeat=True)
    found = round_trip(tmp_path, sg.GGX(base, normal_map=bumps))
    for uv in RNG.uniform(0, 2, (10, 2)):
        # The mesh has the coordinates of the first.
        on_mesh = uv / [0.5, 0.25]
        assert_close(look(found.shader.base_color, on_mesh), look(base, uv), absolute=1e-3)
        mapped = look(found.shader.normal_map.texture, on_mesh)
        assert_close(mapped, look(bumps, uv), absolute=1e-3)


# --- What is baked, replaced or left out


@pytest.mark.parametrize("mode", ["MASK", "BLEND"])
def test_opacities_come_back(tmp_path, mode):
    """In the fourth channel of the base colour's texture, beside a colour or a texture."""
    alphas = NUMBERS[..., :1] if mode == "BLEND" else np.round(NUMBERS[..., :1])
    wrap = {"repeat": (True, False), "mirror": (True, False)}
    cover = texture(alphas, **wrap)
    nodes = {"plain": sg.GGX([0.2, 0.5, 0.1]), "both": sg.GGX(texture(COLORS, **wrap))}
    scene = sg.Scene(sg.Group(**{k: sg.Surface(QUAD, x, cover) for k, x in nodes.items()}))
    sg.save_glb(scene, tmp_path / "saved.glb")
    content = unpack_glb((tmp_path / "saved.glb").read_bytes())[0]
    assert [material["alphaMode"] for material in content["materials"]] == [mode] * 2
    found = sg.load_scene(tmp_path / "saved.glb")
    for name in nodes:
        back = found[name].opacity
        assert_close(back.texels, alphas, 1e-6)
        assert back.repeat == wrap["repeat"] and back.mirror == wrap["mirror"]
    assert_close(look(found["plain"].shader.base_color, [0.3, 0.4]), [0.2, 0.5, 0.1], 1e-6)
    assert_close(found["both"].shader.base_color.texels, COLORS, 1e-6)


@pytest.mark.slow
def test_opacities_that_lie_elsewhere_are_baked(tmp_path):
    """Colour and opacity share a picture, of which each keeps what it shows."""
    wide = sg.ImageTexture(NUMBERS[..., :1], [2.0, 2.0], [0.0, 0.0], repeat=True)
    surface = sg.Surface(QUAD, sg.GGX(texture(COLORS, repeat=True)), wide)
    sg.save_glb(sg.Scene(sg.Group(it=surface)), tmp_path / "saved.glb", texture_size=256)
    found = sg.load_scene(tmp_path / "saved.glb")["it"]
    assert_close(found.shape.uv, QUAD.uv / 2, 1e-6)
    for uv in ([0.3, 0.4], [1.6, 0.7], [1.1, 1.9]):
        inside = [x / 2 for x in uv]
        assert_close(look(found.opacity, inside), look(wide, uv), absolute=0.02)
        expected = look(surface.shader.base_color, uv)
        assert_close(look(found.shader.base_color, inside), expected, absolute=0.04)


def test_files_may_cut_opacity_off_and_scale_it(tmp_path):
    alphas = NUMBERS[..., :1]
    scene = sg.Scene(sg.Group(it=sg.Surface(QUAD, [0.5] * 3, texture(alphas))))
    path = tmp_path / "saved.glb"
    sg.save_glb(scene, path)
    content, binary = unpack_glb(path.read_bytes())
    material = content["materials"][0]
    material["pbrMetallicRoughness"]["baseColorFactor"][3] = 0.5
    for mode, expected in (("BLEND", 0.5 * alphas), ("MASK", 0.5 * alphas >= 0.25)):
        material |= {"alphaMode": mode, "alphaCutoff": 0.25}
        path.write_bytes(pack_glb(content, binary))
        assert_close(sg.load_scene(path)["it"].opacity.texels, expected, 1e-6)
    material["alphaMode"] = "OPAQUE"
    path.write_bytes(pack_glb(content, binary))
    assert float(sg.load_scene(path)["it"].opacity.value) == 1


def test_a_second_set_of_coordinates(tmp_path):
    """Used where all textures of a material name it."""
    save(tmp_path, sg.GGX(texture(COLORS), texture(NUMBERS[..., 2:])))
    path = tmp_path / "saved.glb"
    content, binary = unpack_glb(path.read_bytes())
    attributes = content["meshes"][0]["primitives"][0]["attributes"]
    attributes["TEXCOORD_1"] = attributes.pop("TEXCOORD_0")
    attributes["TEXCOORD_0"] = content["accessors"].index(
        content["accessors"][attributes["TEXCOORD_1"]]
    )
    pbr = content["materials"][0]["pbrMetallicRoughness"]
    for name in ("baseColorTexture", "metallicRoughnessTexture"):
        pbr[name]["texCoord"] = 1
    path.write_bytes(pack_glb(content, binary))
    found = sg.load_scene(path)["it"]
    assert_close(found.shape.uv, QUAD.uv, 1e-6)
    assert_close(found.shader.metallic.texels, NUMBERS[..., 2:], 1e-6)
    pbr["metallicRoughnessTexture"]["texCoord"] = 0
    path.write_bytes(pack_glb(content, binary))
    with pytest.warns(UserWarning, match="1 x roughness texture with coordinates of its own"):
        sg.load_scene(path)


def test_patterns_are_baked(tmp_path):
    rough = sg.Checker(1.0, [0.2] * 3, [0.8] * 3)
    metal = texture(NUMBERS[..., 2:], size=[2.0, 2.0])
    found = round_trip(tmp_path, sg.GGX([0.5] * 3, metal, rough), texture_size=64)
    on_mesh = np.array([[0.25, 0.25], [0.75, 0.25]])
    for uv, number in zip(on_mesh, (0.2, 0.8), strict=True):
        assert float(look(found.shader.roughness, uv)[1]) == pytest.approx(number, abs=3e-3)
        seen = float(look(found.shader.metallic, uv)[2])
        assert seen == pytest.approx(float(look(metal, 2 * uv)[2]), abs=0.05)


def test_patterns_in_space_are_means_and_said(tmp_path):
    solid = sg.Checker(0.7, [0.2] * 3, [0.8] * 3, coordinates=sg.shaders.InSpace())
    shader = sg.GGX([0.5] * 3, roughness=solid, emission=solid)
    with pytest.warns(UserWarning, match="roughness of a Checker, of which the mean is used"):
        found = round_trip(tmp_path, shader)
    corners = [look_in_space(solid, corner) for corner in np.asarray(QUAD.vertices)]
    assert float(found.shader.roughness) == pytest.approx(np.mean(corners), abs=1e-5)
    assert_close(found.shader.emission.color, [np.mean(corners)] * 3, 1e-5)


def look_in_space(shader, point):
    return float(seen_at(shader, np.asarray(point), np.zeros(2, np.float32))[0])


# --- Other programs


@pytest.mark.skipif(
    not os.environ.get("GLTF_VALIDATOR") or not shutil.which("node"),
    reason="needs node, and GLTF_VALIDATOR: a folder with the npm package gltf-validator",
)
@pytest.mark.parametrize("shader", [everything(), layered()])
def test_the_khronos_validator_finds_no_errors(tmp_path, shader):
    save(tmp_path, shader)
    code = (
        "const v=require('gltf-validator'),f=require('fs').readFileSync(process.argv[1]);"
        "v.validateBytes(new Uint8Array(f)).then(r=>console.log(JSON.stringify(r.issues)))"
    )
    run = subprocess.run(
        ["node", "-e", code, str(tmp_path / "saved.glb")],
        cwd=pathlib.Path(os.environ["GLTF_VALIDATOR"]),
        capture_output=True,
        check=True,
        text=True,
    )
    issues = json.loads(run.stdout)
    assert issues["numErrors"] == 0, issues["messages"]


def test_another_reader_finds_the_textures(tmp_path):
    pygltflib = pytest.importorskip("pygltflib", reason="needs pygltflib")
    save(tmp_path, everything())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = pygltflib.GLTF2().load(str(tmp_path / "saved.glb"))
    (material,) = file.materials
    assert material.normalTexture.scale == 0.75 and material.emissiveFactor == [1, 1, 1]
    sampler = file.samplers[
        file.textures[material.pbrMetallicRoughness.baseColorTexture.index].sampler
    ]
    assert (sampler.wrapS, sampler.wrapT) == (33648, 33071)
    assert material.occlusionTexture.index is not None
