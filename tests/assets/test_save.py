"""Scenes to GLB files: what is written is read again, and by other programs."""

import json
import math
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.assets._placing import as_parts
from scenegraph.assets._triangulate import triangulate
from scenegraph.assets._walk import matrix_of, placed_nodes
from scenegraph.rays import no_light
from support.helpers import assert_close
from support.model_files import TEXELS, unpack_glb, write_everything


def round_trip(tmp_path, scene: sg.Scene, **options) -> sg.Scene:
    sg.save_glb(scene, tmp_path / "saved.glb", **options)
    return sg.load_scene(tmp_path / "saved.glb")


def content_of(path) -> dict:
    return unpack_glb(path.read_bytes())[0]


def one(surface) -> sg.Scene:
    return sg.Scene(sg.Group(it=surface))


# --- Shapes to triangles


def area_and_volume(part) -> tuple[float, float]:
    a, b, c = np.moveaxis(np.asarray(part.vertices, float)[part.faces], 1, 0)
    cross = np.cross(b - a, c - a)
    # The divergence theorem: positive if faces are counter-clockwise, seen from outside.
    return np.sum(np.linalg.norm(cross, axis=1)) / 2, np.sum(a * cross) / 6


R, H = 0.7, 1.9
SHAPES = {
    "sphere": (sg.Sphere([1.0, 2, 3], R), 4 * math.pi * R**2, 4 / 3 * math.pi * R**3),
    "capsule": (
        sg.Capsule([1.0, 0, 2], [1.0, H * 0.6, 2 + H * 0.8], R),
        2 * math.pi * R * (H + 2 * R),
        math.pi * R**2 * (H + 4 / 3 * R),
    ),
    "point": (sg.Capsule([1.0, 0, 2], [1.0, 0, 2], R), 4 * math.pi * R**2, 4 / 3 * math.pi * R**3),
    "cylinder": (
        sg.Cylinder([1.0, 2, 3], R, H),
        2 * math.pi * R * (R + H),
        math.pi * R**2 * H,
    ),
    "box": (sg.Box([0.0, 1, 2], [1.0, 3, 5]), 2 * (2 + 3 + 6), 6),
    "disk": (sg.Disk([0.0, 0, 2], R), math.pi * R**2, 2 / 3 * math.pi * R**2),
    "rectangle": (sg.Rectangle([0.0, 0, 2], [2.0, 3]), 6, 4),
    "plane": (sg.Plane([0.0, 0, 2], [0.0, 0, 5]), 36, 24),
}


@pytest.mark.parametrize("name", SHAPES)
def test_area_and_volume(name):
    shape, area, volume = SHAPES[name]
    part = triangulate(shape, 256, 6.0)
    assert area_and_volume(part) == pytest.approx((area, volume), rel=1e-3)


@pytest.mark.parametrize("name", ["sphere", "capsule", "disk", "rectangle", "plane"])
def test_normals_and_coordinates_are_the_shapes_own(name):
    shape, part = SHAPES[name][0], triangulate(SHAPES[name][0], 16, 6.0)
    # Not on seams and at poles, where coordinates jump.
    kept = np.abs(np.abs(part.uv[:, 0]) - math.pi) > 1e-3
    if name in ("sphere", "capsule"):
        axis = [0, 0.6, 0.8] if name == "capsule" else [0, 0, 1]
        kept &= np.abs(part.normals @ np.array(axis)) < 0.999
    both = jax.jit(jax.vmap(lambda vertex: (shape.normal_at(vertex), shape.uv_at(vertex))))
    normals, uv = both(jnp.asarray(part.vertices[kept]))
    assert_close(normals, part.normals[kept], absolute=1e-5)
    assert_close(uv, part.uv[kept], absolute=2e-3)


@pytest.mark.parametrize("name", ["cylinder", "box"])
def test_coordinates_are_those_of_hits(name):
    """At the middle of every face, a ray from outside finds the same normal and coordinates."""
    shape, part = SHAPES[name][0], triangulate(SHAPES[name][0], 64, 6.0)
    middle = part.vertices[part.faces].mean(axis=1)
    normal = part.normals[part.faces].mean(axis=1)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)

    def hit(point, normal):
        still = jnp.zeros((2, 3))
        ray = sg.rays.Ray(point + normal, -normal, -normal, still, still, 0.0, 10.0)
        found = shape.parts(ray)
        return jax.tree.map(lambda x: x[jnp.argmax(found.coverage)], found)

    found = jax.jit(jax.vmap(hit))(
        jnp.asarray(middle, jnp.float32), jnp.asarray(normal, jnp.float32)
    )
    assert_close(found.normal, normal, absolute=2e-2)
    uv = part.uv[part.faces].mean(axis=1)
    assert_close(found.uv, uv, absolute=5e-3)


# --- Round trips


def test_everything_comes_back(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        scene = sg.load_scene(write_everything(tmp_path))
    again = round_trip(tmp_path, scene)
    assert jax.tree.structure(again) == jax.tree.structure(scene)
    for (path, leaf, _), (_, other, _) in zip(
        sg.scene.named_leaves(scene), sg.scene.named_leaves(again), strict=True
    ):
        # Textures are written with 8 bits.
        assert_close(other, leaf, absolute=6e-3 if "texels" in path else 1e-6)


LIT = sg.GGX([0.9, 0.5, 0.1], 1.0, 0.3)


def test_a_tree_of_many_kinds(tmp_path):
    camera = sg.PerspectiveCamera.look_at([0.0, -5, 2], [0.0, 0, 0], [0.0, 0, 1], 0.8, 64, 48)
    flat = sg.OrthographicCamera.look_at([0.0, -5, 2], [0.0, 0, 0], [0.0, 0, 1], 3.0, 64, 48)
    turn = sg.transforms.rotate_about([0.0, 1, 0], 0.3, [1.0, 2, 3])
    scene = sg.Scene(
        sg.Group(
            table=sg.Group(ball=sg.Transformed(sg.Surface(sg.Sphere(), LIT), turn)),
            cam=camera,
            flat=sg.Transformed(flat, turn),
            sun=sg.DirectionalLight([0.0, 0.3, -1], [2.0, 2, 1]),
            lamp=sg.PointLight([0.0, 0, 3], [1.0, 2, 3]),
            spot=sg.Transformed(sg.SpotLight([0.0, 0, 3], [1.0, 0, -1], [9.0, 9, 9]), turn),
            sky=sg.AmbientLight([0.1, 0.2, 0.3]),
        ),
        background=[0.1, 0.2, 0.3],
    )
    again = round_trip(tmp_path, scene)
    assert set(again.root.children) == set(scene.root.children)
    pixels = jnp.asarray([[0.5, 0.5], [60.5, 3.5]])
    for path in ("cam", "flat"):
        one, other = (sg.scene.find_camera(x, path) for x in (scene, again))
        assert (one.width, one.height) == (other.width, other.height)
        for before, after in zip(map(one.line, pixels), map(other.line, pixels), strict=True):
            assert_close(after, before, absolute=1e-5)
    for path in ("sun", "lamp", "sky"):
        for before, after in zip(*map(jax.tree.leaves, (scene[path], again[path])), strict=True):
            along = np.linalg.norm(before) if before.shape else 1
            assert_close(after / np.linalg.norm(after) * along, before, absolute=1e-5)
    spot, moved = again["spot"], scene["spot"].child.moved(turn)
    assert_close(spot.position, moved.position, absolute=1e-5)
    assert_close(spot.angle, moved.angle, absolute=1e-6)
    assert_close(spot.softness, moved.softness, absolute=1e-6)
    assert_close(again.background.shader.color, [0.1, 0.2, 0.3], 1e-6)
    ball = again["table.ball"]
    assert_close(matrix_of(ball.transform), matrix_of(turn), absolute=1e-6)
    assert_close(ball.child.shader.roughness, 0.3, 1e-6)


@pytest.mark.parametrize(
    ("shader", "metallic", "roughness"),
    [
        (sg.Lambert([0.2, 0.4, 0.6]), 0.0, 1.0),
        (sg.GGX([0.2, 0.4, 0.6], 0.25, 0.125), 0.25, 0.125),
        (sg.Phong([0.2, 0.4, 0.6], shininess=7.5), 0.0, 0.5),
    ],
)
def test_shaders(tmp_path, shader, metallic, roughness):
    found = round_trip(tmp_path, one(sg.Surface(sg.Rectangle(), shader, 0.5)))["it"]
    assert_close(found.shader.base_color.color, [0.2, 0.4, 0.6], 1e-6)
    assert_close([found.shader.metallic, found.shader.roughness], [metallic, roughness], 1e-6)
    assert float(found.opacity) == 0.5


@eqx.filter_jit
def shown(shader, uv):
    """What a shader shows at coordinates, for a narrow cone."""
    hit = sg.rays.Hit(1.0, jnp.zeros(3), jnp.ones(3), uv, 1e-6 * jnp.ones((2, 2)), 1.0)
    return shader(hit, jnp.ones(3), no_light())


def coordinates_at(part, point):
    """A part's coordinates at a point in the plane of a rectangle, from its first three corners."""
    (a, b, c), uv = part.vertices[part.faces[0]], part.uv[part.faces[0]]
    weights = np.linalg.lstsq(np.stack([b - a, c - a], axis=1), point - a, rcond=None)[0]
    return uv[0] + weights @ (uv[1:] - uv[0])


@pytest.mark.parametrize("repeat", [False, True])
def test_textures_lie_where_they_lay(tmp_path, repeat):
    texture = sg.ImageTexture(TEXELS, [0.5, 0.25], [0.1, -0.2], repeat=repeat)
    scene = one(sg.Surface(sg.Rectangle(size=[3.0, 2]), sg.Lambert(texture)))
    found = round_trip(tmp_path, scene)["it"]
    assert_close(found.shader.base_color.texels, texture.texels, 1e-6)
    part = found.shape
    for x, y in ((0.2, -0.15), (0.5, 0.0), (-1.3, 0.7), (1.2, -0.9)):
        before = shown(texture, jnp.asarray([x, y]))
        uv = coordinates_at(part, np.array([x, y, 0]))
        assert_close(shown(found.shader.base_color, jnp.asarray(uv)), before, absolute=1e-4)


def test_patterns_become_textures(tmp_path):
    pattern = sg.Gradient([-0.4, 0.0], [0.3, 0.3])
    scene = one(sg.Surface(sg.Rectangle(size=[1.0, 1]), sg.Lambert(pattern)))
    found = round_trip(tmp_path, scene, texture_size=256)["it"]
    for x, y in ((0.2, -0.15), (0.4, 0.3), (-0.3, 0.2)):
        uv = coordinates_at(found.shape, np.array([x, y, 0]))
        after = shown(found.shader.base_color, jnp.asarray(uv))
        assert_close(after, shown(pattern, jnp.asarray([x, y])), absolute=1e-2)


def test_patterns_in_space_become_colors_of_vertices(tmp_path):
    pattern = sg.Noise(scale=0.5)
    scene = one(sg.Surface(sg.Sphere(), sg.Lambert(pattern)))
    shape = round_trip(tmp_path, scene)["it"].shape
    for number in (5, 500, 1500):
        point = shape.vertices[number]
        assert_close(shape.colors[number], shown_in_space(pattern, point), absolute=1e-5)


@eqx.filter_jit
def shown_in_space(shader, point):
    """What a shader shows at a point, without a footprint."""
    hit = sg.rays.Hit(1.0, point, point, jnp.zeros(2), jnp.zeros((2, 2)), 1.0)
    return shader(hit, point, no_light())


def test_copies_share_a_mesh(tmp_path):
    places = [sg.Similarity([x, 0.0, 0.0]) for x in range(3)]
    ball = sg.Surface(sg.Sphere(), sg.Lambert([0.1, 0.1, 0.1]))
    row = sg.Instances(ball, places, {"shader.albedo.color": 0.5 * jnp.eye(3)})
    again = round_trip(tmp_path, one(row))
    for number, name in enumerate(["it_0", "it_1", "it_2"]):
        color = again[f"it.{name}.shader.base_color.color"]
        assert_close(color, 0.5 * np.eye(3)[number], 1e-6)
    matrices = [matrix for _, matrix in placed_nodes(again)]
    assert [matrix[0, 3] for matrix in matrices] == [0, 1, 2]
    accessors = content_of(tmp_path / "saved.glb")["accessors"]
    assert len(accessors) == 4


def test_tied_and_frozen_leaves_are_saved_with_their_values(tmp_path):
    ball = sg.Surface(sg.Sphere(), sg.Lambert([0.1, 0.2, 0.3]))
    scene = sg.tie(sg.Scene(sg.Group(a=ball, b=ball)), "*.shader.albedo.color")
    again = round_trip(tmp_path, sg.freeze(scene, "a.**"))
    assert_close(again["b.shader.base_color.color"], [0.1, 0.2, 0.3], 1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_any_matrix_is_nodes(seed):
    rng = np.random.default_rng(seed)
    matrix = np.eye(4)
    matrix[:3] = rng.normal(size=(3, 4))
    if seed % 3 == 0:  # a turn and unequal scales, which need one node
        matrix[:3, :3] = np.linalg.qr(matrix[:3, :3])[0] * rng.normal(size=3)
    parts = as_parts(matrix)
    assert len(parts) == (1 if seed % 3 == 0 else 2)
    whole = np.eye(4)
    for part in parts:
        quaternion = np.array(part.get("rotation", [0, 0, 0, 1]))
        turn = sg.Similarity(rotation=np.roll(quaternion, 1)).linear()
        place = np.eye(4)
        place[:3, :3] = np.asarray(turn) * part.get("scale", [1, 1, 1])
        place[:3, 3] = part.get("translation", [0, 0, 0])
        whole = whole @ place
    assert_close(whole, matrix, absolute=2e-6)


@pytest.mark.parametrize("z_up", [True, False])
def test_z_is_turned_upwards_unless_told_otherwise(tmp_path, z_up):
    box = sg.Surface(sg.Box([0.0, 1, 2], [1.0, 3, 5]), LIT)
    sg.save_glb(one(box), tmp_path / "box.glb", z_up=z_up)
    scene = sg.load_scene(tmp_path / "box.glb", y_up=False)
    ((node, matrix),) = placed_nodes(scene)
    points = np.asarray(node.shape.vertices) @ matrix[:3, :3].T
    # x stays, z goes up along y, and y goes away along -z.
    corners = ([0, 2, -3], [1, 5, -1]) if z_up else ([0, 1, 2], [1, 3, 5])
    assert_close(points.min(axis=0), corners[0], 1e-5)
    assert_close(points.max(axis=0), corners[1], 1e-5)


def everything_at_the_top():
    """Nodes of every kind with and without transforms, none of them upright by chance."""
    turn = sg.Similarity([1.0, 2.0, 3.0], np.array([0.5, 0.1, -0.7, 0.5]) / 1.0, 1.5)
    triangle = sg.TriangleMesh([[0.0, 0, 0], [1, 0, 0], [0, 1, 2]], [[0, 1, 2]], smooth=False)
    eye = sg.PerspectiveCamera.look_at([3.0, -4, 2], [0, 0, 1], [0, 0, 1], 0.7, 8, 6)
    return sg.Scene(
        sg.Group(
            plain=sg.Surface(triangle, LIT),
            turned=sg.Transformed(sg.Surface(triangle, LIT), turn),
            group=sg.Transformed(sg.Group(inner=sg.Surface(triangle, LIT)), turn),
            eye=eye,
            lamp=sg.PointLight([1.0, 2.0, 3.0], [5.0] * 3),
            sun=sg.DirectionalLight([0.1, 0.2, -0.9], [2.0] * 3),
            even=sg.AmbientLight([0.2] * 3),
        )
    )


def test_saving_and_loading_changes_no_place_and_no_node(tmp_path):
    """However often, with all that can stand at the top; leaves by path, to single precision."""
    scene = everything_at_the_top()
    leaves = lambda scene: {path: np.asarray(x) for path, x, _ in sg.scene.named_leaves(scene)}
    again = round_trip(tmp_path, scene)
    twice = leaves(round_trip(tmp_path, again))
    assert type(again["plain"]) is sg.Surface and type(again["even"]) is sg.AmbientLight
    for path, leaf in leaves(again).items():
        assert_close(twice[path], leaf, 2e-6)
    assert_close(again["plain.shape.vertices"], scene["plain.shape.vertices"], 1e-6)
    assert_close(again["lamp.position"], [1, 2, 3], 1e-6)
    for (_, before), (_, after) in zip(placed_nodes(scene), placed_nodes(again), strict=True):
        assert_close(after, before, absolute=1e-5)
    assert_close(again["sun.direction"], scene["sun.direction"] / np.sqrt(0.86), absolute=1e-6)
    ends = [sg.scene.find_camera(x, "eye").line(jnp.array([1.0, 2.0])) for x in (scene, again)]
    for before, after in zip(*ends, strict=True):
        assert_close(after, before, absolute=1e-5)


def test_a_sky_over_a_loaded_model_is_upright(tmp_path):
    """A file whose y points upwards, under a panorama that is bright above."""
    card = one(sg.Surface(sg.Rectangle(), [0.5, 0.2, 0.1]))
    sg.save_glb(card, tmp_path / "card.glb", z_up=False)
    model = sg.load_scene(tmp_path / "card.glb")
    texels = np.zeros((16, 32, 3))
    texels[:8] = 1.0
    scene = sg.Scene(model.root, background=sg.EnvironmentLight(texels))
    view = sg.PerspectiveCamera.look_at([0.2, -3, 0], [0.0, 0, 0], [0.0, 0, 1], 0.8, 12, 12)
    rgb = np.asarray(sg.render(scene, view).rgb)
    assert rgb[0].mean() > 0.9 and rgb[-1].mean() < 0.1


def test_what_is_left_out_is_said_once(tmp_path):
    blob = sg.Volume(sg.fields.GaussianBlob([0.1, 0.0, 0.1], 0.2, 30.0, [0.9, 0.4, 0.1]))
    sky = sg.EnvironmentLight(np.full((4, 8, 3), 0.5))
    with pytest.warns(UserWarning) as caught:
        sg.save_glb(sg.Scene(sg.Group(fog=blob, sky=sky), background=sky), tmp_path / "a.glb")
    assert len(caught) == 1
    for part in ("Volume", "EnvironmentLight", "background Sky"):
        assert part in str(caught[0].message)


def test_segments_are_checked(tmp_path):
    with pytest.raises(ValueError, match="multiple of 4"):
        sg.save_glb(one(sg.Surface(sg.Sphere(), LIT)), tmp_path / "a.glb", segments=6)


# --- Other readers


def test_beside_other_readers(tmp_path):
    trimesh = pytest.importorskip("trimesh", reason="needs trimesh")
    turn = sg.transforms.rotate_about([0.0, 1, 0], 0.3, [1.0, 2, 3])
    shear = sg.Affine([[1.0, 0.5, 0], [0, 1, 0], [0, 0, 2]], [3.0, 0, 0])
    scene = sg.Scene(
        sg.Group(
            a=sg.Transformed(sg.Surface(sg.Sphere(), LIT), turn),
            b=sg.Transformed(sg.Surface(sg.Box(), LIT), shear),
        )
    )
    sg.save_glb(scene, tmp_path / "a.glb", z_up=False)
    other = trimesh.load(tmp_path / "a.glb", force="scene", process=False)
    ours = []
    for node, matrix in placed_nodes(scene):
        part = triangulate(node.shape, 64, 1.0)
        ours.append((part.vertices @ matrix[:3, :3].T + matrix[:3, 3])[part.faces])
    rows = [np.concatenate(ours).reshape(-1, 9), np.asarray(other.to_geometry().triangles)]
    rows = [x.reshape(-1, 9) for x in rows]
    sums = [np.sort(np.linalg.norm(x, axis=1)) for x in rows]
    assert_close(sums[0], sums[1], 1e-5)
    assert_close(rows[0].mean(axis=0), rows[1].mean(axis=0), absolute=1e-4)


def test_the_file_is_what_the_format_says(tmp_path):
    pygltflib = pytest.importorskip("pygltflib", reason="needs pygltflib")
    texture = sg.ImageTexture(TEXELS)
    scene = one(sg.Surface(sg.Rectangle(), sg.GGX(texture, 0.0, 0.5)))
    path = tmp_path / "a.glb"
    sg.save_glb(scene, path)
    assert path.stat().st_size % 4 == 0 and json.dumps(content_of(path))
    file = pygltflib.GLTF2().load(str(path))
    primitive = file.meshes[0].primitives[0]
    accessor = file.accessors[primitive.attributes.POSITION]
    assert accessor.count == 4 and accessor.min == [-0.5, -0.5, 0] and accessor.max == [0.5, 0.5, 0]
    assert file.materials[0].pbrMetallicRoughness.roughnessFactor == 0.5
    assert file.images[0].mimeType == "image/png" and len(file.buffers) == 1
