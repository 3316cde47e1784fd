"""The table-top: what is on it, and that its data set shows the truth."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.diagnostics import make_dataset, table_top
from scenegraph.io import read_picture
from support.helpers import assert_close


SIZE, FOV = 48, 0.7
COUNTS = [30, 300]


def things(scene: sg.Scene) -> dict[str, sg.Instances]:
    return {name: scene.root.children[name] for name in ("balls", "boxes", "tubes")}


def corners(scene: sg.Scene) -> np.ndarray:
    """Points that hold each thing in their convex hull, in the world."""
    units = {
        "balls": np.stack(np.meshgrid(*[[-1, 1]] * 3), axis=-1).reshape(-1, 3) / np.sqrt(3),
        "boxes": np.stack(np.meshgrid(*[[-1, 1]] * 3), axis=-1).reshape(-1, 3),
    }
    points = []
    for name, unit in units.items():
        place = things(scene)[name].transforms
        turned = np.einsum("nij,kj->nki", np.asarray(place.matrix), unit)
        points.append((turned + np.asarray(place.translation)[:, None]).reshape(-1, 3))
    tubes = things(scene)["tubes"]
    for end in ("start", "end"):
        points.append(np.asarray(tubes.values[f"shape.{end}"] + tubes.transforms.translation))
    return np.concatenate(points)


@pytest.mark.parametrize("count", COUNTS)
def test_everything_is_in_pictures_from_a_distance_of_four(count):
    assert np.linalg.norm(corners(table_top(count)), axis=1).max() < 4 * np.sin(FOV / 2)


@pytest.mark.parametrize("count", COUNTS)
def test_there_are_as_many_things_as_named(count):
    balls, boxes, tubes = things(table_top(count)).values()
    pieces = np.asarray(tubes.values["shape.start"])
    rods = int(np.sum(np.all(pieces == 0, axis=1)))
    assert (tubes.count - rods) % 16 == 0
    rings = (tubes.count - rods) // 16
    assert balls.count + (boxes.count - 1) + rods + rings == count
    assert min(balls.count, boxes.count - 1, rods, rings) >= 2


@pytest.mark.parametrize("count", COUNTS)
def test_balls_and_blocks_stand_on_the_table_and_apart(count):
    balls, boxes, _ = things(table_top(count)).values()
    table = boxes.transforms.translation[0, 2] + boxes.transforms.matrix[0, 2, 2]
    radii = np.linalg.norm(np.asarray(balls.transforms.matrix)[:, :, 0], axis=1)
    assert_close(balls.transforms.translation[:, 2] - radii, np.full(balls.count, table), 0, 1e-6)
    bottoms = boxes.transforms.translation[1:, 2] - boxes.transforms.matrix[1:, 2, 2]
    assert_close(bottoms, np.full(boxes.count - 1, table), 0, 1e-6)
    sides = np.linalg.norm(np.asarray(boxes.transforms.matrix)[1:, :, 0], axis=1)
    places = np.concatenate(
        [balls.transforms.translation[:, :2], boxes.transforms.translation[1:, :2]]
    )
    reach = np.concatenate([radii, np.sqrt(2) * sides])
    gaps = np.linalg.norm(places[:, None] - places, axis=-1) - reach[:, None] - reach
    assert np.min(gaps + 9 * np.eye(len(reach))) > -1e-6


def test_the_seed_makes_the_scene():
    leaves = lambda seed: jax.tree.leaves(table_top(12, seed=seed))
    same = [np.array_equal(a, b) for a, b in zip(leaves(3), leaves(3), strict=True)]
    other = [np.array_equal(a, b) for a, b in zip(leaves(3), leaves(4), strict=True)]
    assert all(same) and not all(other)


def test_too_few_things_are_refused():
    with pytest.raises(ValueError, match="at least 6 things, some of each kind; got 5"):
        table_top(5)


# --- Pictures: a few cones a pixel, against many straight lines


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A scene and its data set, with depths and normals."""
    scene, path = table_top(8, seed=1), tmp_path_factory.mktemp("made") / "set"
    calls = []
    make_dataset(
        path,
        scene=scene,
        size=SIZE,
        train=2,
        val=1,
        test=1,
        outputs=("depth", "normal"),
        progress=lambda *call: calls.append(call),
    )
    assert calls == [(n, 4) for n in range(5)]
    return scene, path


def lines(views: sg.data.Views, frame: int, fine: int) -> tuple[np.ndarray, np.ndarray]:
    """The eye, and directions of `fine * fine` straight lines a pixel, `rows columns 3`."""
    matrix = np.eye(4)
    camera = views.camera(frame)
    matrix[:3, :3], matrix[:3, 3] = camera.pose.linear(), camera.pose.offset()
    at = (np.arange(SIZE * fine) + 0.5) / fine - SIZE / 2
    x, y = np.meshgrid(at, -at)
    focal = SIZE / 2 / np.tan(FOV / 2)
    local = np.stack([x / focal, y / focal, -np.ones_like(x)], axis=-1)
    return matrix[:3, 3], local @ matrix[:3, :3].T


def nearest(scene: sg.Scene, eye: np.ndarray, directions: np.ndarray):
    """The `t` and normal of the first ball or box on straight lines, in plain numpy."""
    t, normal = np.full(directions.shape[:-1], np.inf), np.zeros(directions.shape)
    for name in ("balls", "boxes"):
        place = scene.root.children[name].transforms
        for matrix, offset in zip(place.matrix, place.translation, strict=True):
            inverse = np.linalg.inv(np.asarray(matrix, float))
            start, way = inverse @ (eye - np.asarray(offset)), directions @ inverse.T
            first, local = (_ball if name == "balls" else _box)(start, way)
            nearer = first < t
            t = np.where(nearer, first, t)
            outward = local @ inverse
            outward /= np.maximum(np.linalg.norm(outward, axis=-1, keepdims=True), 1e-12)
            normal = np.where(nearer[..., None], outward, normal)
    return t, normal


def _ball(start, way):
    a, b, c = np.sum(way**2, -1), way @ start, start @ start - 1
    inside = b * b - a * c
    t = (-b - np.sqrt(np.maximum(inside, 0))) / a
    t = np.where(inside > 0, t, np.inf)
    return t, np.where(np.isfinite(t), 1, 0)[..., None] * (
        start + np.minimum(t, 1e3)[..., None] * way
    )


def _box(start, way):
    low, high = np.sort(np.stack([(-1 - start) / way, (1 - start) / way]), axis=0)
    axis, enter = np.argmax(low, axis=-1), low.max(-1)
    t = np.where(enter < high.min(-1), enter, np.inf)
    return t, -np.sign(way) * (np.arange(3) == axis[..., None])


@pytest.fixture(scope="module")
def solid(made):
    """The scene without tubes: balls and boxes are all that the reference knows."""
    scene, path = made
    children = {k: v for k, v in scene.root.children.items() if k != "tubes"}
    return dataclasses.replace(scene, root=sg.Group(**children)), path


@pytest.mark.slow
def test_alpha_is_the_covered_part_of_the_pixel(solid):
    scene, path = solid
    views = sg.load_blender(path, "test")
    image = sg.render(scene, views.camera(0), outputs=("normal",))
    t, _ = nearest(scene, *lines(views, 0, 16))
    covered = np.isfinite(t).reshape(SIZE, 16, SIZE, 16).mean((1, 3))
    partly = (covered > 0) & (covered < 1)
    assert np.sum(partly) > SIZE
    assert np.sqrt(np.mean((np.asarray(image.alpha) - covered)[partly] ** 2)) < 0.02
    assert_close(np.asarray(image.alpha)[~partly], covered[~partly], 0, 0.01)


@pytest.mark.slow
def test_depths_and_normals_are_those_of_straight_lines(made):
    scene, path = made
    views = sg.load_blender(path, "test")
    depth, normal = (np.load(path / f"test/r_0_{name}.npy") for name in ("depth", "normal"))
    assert depth.shape == (SIZE, SIZE) and normal.shape == (SIZE, SIZE, 3)
    t, wanted = nearest(scene, *lines(views, 0, 1))
    fine, _ = nearest(scene, *lines(views, 0, 5))
    fine = fine.reshape(SIZE, 5, SIZE, 5)
    # Pixels in which nothing begins or ends, and no tube is in front.
    even = np.all(np.isfinite(fine), axis=(1, 3)) & (
        np.ptp(np.nan_to_num(fine, posinf=9), (1, 3)) < 0.05
    )
    even &= depth > t - 0.02
    assert np.mean(even) > 0.1
    off = np.abs(depth - t)[even]
    assert np.quantile(off, 0.95) < 0.01
    cosine = np.sum(normal * wanted, axis=-1)[even]
    assert np.quantile(cosine, 0.05) > 0.98


@pytest.mark.slow
def test_data_set_has_its_views_in_straight_colours(made):
    scene, path = made
    counts = {split: sg.load_blender(path, split).frames for split in ("train", "val", "test")}
    assert counts == {"train": 2, "val": 1, "test": 1}
    rgba = read_picture(path / "test/r_0.png")
    image = sg.render(scene, sg.load_blender(path, "test").camera(0), outputs=("normal",))
    alpha = np.asarray(image.alpha)
    assert_close(rgba[..., 3], np.round(255 * alpha), 0, 1)
    partly = (alpha > 0.3) & (alpha < 0.9)
    # Straight: not darker at the outline, where premultiplied colours are.
    straight = np.asarray(image.rgb)[partly] / alpha[partly][:, None]
    encoded = 255 * np.asarray(sg.images.linear_to_srgb(jnp.clip(straight, 0, 1)))
    assert_close(rgba[partly][:, :3], encoded, 0, 2)
    # A corner of the table may touch the outermost pixels, and does not cover them.
    for edge in (rgba[0], rgba[-1], rgba[:, 0], rgba[:, -1]):
        assert edge[..., 3].max() < 64


@pytest.mark.slow
def test_nothing_is_missed(made):
    scene, path = made
    image = sg.render(scene, sg.load_blender(path, "test").camera(0), outputs=("normal",))
    assert image.overflow is None or int(np.sum(np.asarray(image.overflow) > 0)) == 0


# --- The data set that the library brings along


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    return make_dataset(tmp_path_factory.mktemp("packed") / "set")


def test_default_data_set_has_130_views(packed):
    counts = {split: sg.load_blender(packed, split).frames for split in ("train", "val", "test")}
    assert counts == {"train": 100, "val": 10, "test": 20}
    views = sg.load_blender(packed, "val")
    assert (views.camera(0).width, views.camera(0).height) == (128, 128)
    opaque = np.asarray(views.pixels)[:, 3] == 255
    assert 0.15 < np.mean(opaque) < 0.5


@pytest.mark.slow
def test_packed_pictures_are_those_that_are_rendered(packed, tmp_path):
    """If not, after a change of the scene: `python tests/support/pack_table_top.py`."""
    made = make_dataset(tmp_path / "set", scene=table_top(), train=1, val=0, test=0)
    one, other = (read_picture(x / "train/r_0.png").astype(int) for x in (packed, made))
    # Colours of pixels that are hardly covered are rounded coarsely.
    off = np.abs(one - other) * one[..., 3:] / 255
    assert np.mean(off > 2) < 0.002
