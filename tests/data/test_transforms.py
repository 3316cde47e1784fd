"""nerfstudio's format: cameras see what their listing says, pictures are those of their split."""

import json
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.data import find_bounds, transforms_splits
from scenegraph.io import FileError
from support.blender_folder import write_ball
from support.helpers import assert_close
from support.transforms_folder import BENT, frames, LENS, NAMES, noise, POSES, write_transforms


def load(folder, split="train", **options) -> sg.Views:
    return sg.load_transforms(folder, split, hold_every=5, **options)


def ahead(pose: np.ndarray, x: float, y: float, z: float) -> jnp.ndarray:
    """A point given as OpenCV has it, seen from a pose: x right, y down, z ahead."""
    return jnp.asarray(pose[:3, :3] @ [x, -y, -z] + pose[:3, 3], jnp.float32)


# --- Lenses


def test_opencv_lens(tmp_path):
    """Golden number by the formula: r^2 = 0.05, radial = 1 - 0.1 * 0.05 + 0.02 * 0.0025."""
    views = load(write_transforms(tmp_path, LENS | {"frames": frames(2)}))
    assert type(views.cameras) is sg.OpenCVCamera and views.names == ("images/c.png",)
    radial = 1 - 0.1 * 0.05 + 0.02 * 0.0025
    u = 0.2 * radial + 2 * 0.003 * 0.02 - 0.002 * (0.05 + 2 * 0.04)
    v = 0.1 * radial + 0.003 * (0.05 + 2 * 0.01) - 2 * 0.002 * 0.02
    seen = eqx.filter_jit(views.camera(0).project)(ahead(POSES[0], 0.4, 0.2, 2.0))
    assert_close(seen, [4.5 + 9.0 * u, 2.75 + 8.5 * v], 0, 1e-5)


def test_pinhole_where_nothing_bends(tmp_path):
    lens = LENS | {name: 0.0 for name in BENT} | dict(fl_y=9.0, camera_model="PINHOLE")
    camera = load(write_transforms(tmp_path, lens | {"frames": frames(2)})).camera(0)
    assert type(camera) is sg.PerspectiveCamera
    assert_close(
        eqx.filter_jit(camera.project)(ahead(POSES[0], 0.4, 0.2, 2.0)), [6.3, 3.65], 0, 1e-5
    )


def test_angle_of_view_alone(tmp_path):
    """As instant-ngp reads it: square pixels, and the picture's own size and centre."""
    listing = {"camera_angle_x": 2 * math.atan(0.5), "frames": frames(2)}
    camera = load(write_transforms(tmp_path, listing)).camera(0)
    assert type(camera) is sg.PerspectiveCamera
    assert_close(camera.focal, 8.0, 1e-6)
    assert_close(camera.principal_point, [4.0, 3.0])


def test_a_blender_listing_is_read_as_its_own_loader_does(tmp_path):
    write_ball(tmp_path, {"train": 3})
    mine = sg.load_transforms(tmp_path / "transforms_train.json", near=1.0, far=5.0, hold_every=3)
    theirs = sg.load_blender(tmp_path, near=1.0, far=5.0)
    assert mine.names == theirs.names[1:]
    for frame in range(2):
        a, b = (jax.tree.leaves(x) for x in (mine.camera(frame), theirs.camera(frame + 1)))
        assert all(map(np.allclose, a, b))
        np.testing.assert_array_equal(mine.image(frame).rgb, theirs.image(frame + 1).rgb)


@pytest.mark.parametrize("flag", [{"camera_model": "OPENCV_FISHEYE"}, {"is_fisheye": True}])
def test_fisheye(tmp_path, flag):
    """tan 0.3 off the axis is seen at 0.3 (1 + k1 0.3^2 + ...)."""
    lens = dict(fl_x=9.0, fl_y=8.5, cx=4.5, cy=2.75, k1=0.1, k2=0.02, k3=0.003, k4=0.001)
    views = load(write_transforms(tmp_path, lens | flag | {"frames": frames(2)}))
    assert type(views.cameras) is sg.FisheyeCamera
    bent = 0.3 + 0.1 * 0.3**3 + 0.02 * 0.3**5 + 0.003 * 0.3**7 + 0.001 * 0.3**9
    seen = eqx.filter_jit(views.camera(0).project)(ahead(POSES[0], 0.0, 2 * math.tan(0.3), 2.0))
    assert_close(seen, [4.5, 2.75 + 8.5 * bent], 0, 1e-5)


def test_panorama(tmp_path):
    """nerfstudio's formula of its directions."""
    lens = dict(camera_model="EQUIRECTANGULAR", fl_x=4.0, fl_y=6.0, cx=4.0, cy=3.0)
    camera = load(write_transforms(tmp_path, lens | {"frames": frames(2)})).camera(0)
    assert type(camera) is sg.PanoramaCamera
    for x, y in ((0.5, 0.5), (6.5, 2.5)):
        theta, phi = -np.pi * (x - 4.0) / 4.0, np.pi * (0.5 + (y - 3.0) / 6.0)
        local = [-np.sin(theta) * np.sin(phi), np.cos(phi), -np.cos(theta) * np.sin(phi)]
        direction = eqx.filter_jit(camera.line)(jnp.array([x, y]))[1]
        assert_close(direction, POSES[0][:3, :3] @ local, 0, 1e-5)
    (tmp_path / "transforms.json").write_text(
        json.dumps({"camera_model": "EQUIRECTANGULAR", "frames": frames(2)})
    )
    assert_close(load(tmp_path).camera(0).focal, camera.focal, 1e-6)


def test_every_frame_may_have_its_own_lens_and_size(tmp_path):
    """What a frame says goes before what the listing says."""
    sizes = [(8, 6), (8, 6), (6, 9), (4, 4)]
    own = [{}, {}, dict(fl_x=7.0, k1=0.2, w=6, h=9, cx=3.25), dict(fl_y=5.0, w=4, h=4)]
    given = [frame | more for frame, more in zip(frames(4), own, strict=True)]
    views = load(write_transforms(tmp_path, LENS | {"frames": given}, sizes))
    assert views.names == ("images/b.png", "images/c.png", "images/d.png")
    for place, index in enumerate((2, 0, 3)):
        camera, (width, height) = views.camera(place), sizes[index]
        lens = LENS | own[index]
        assert (camera.width, camera.height) == (width, height)
        assert_close(camera.focal, [lens["fl_x"], lens["fl_y"]])
        assert_close(camera.principal_point, [lens["cx"], lens["cy"]])
        assert_close(jnp.stack([camera.k1, camera.p2]), [lens["k1"], lens["p2"]], 1e-6)
        assert_close(camera.pose.offset(), POSES[index][:3, 3], 1e-6)
        expected = noise(index, width, height) / 255
        assert_close(views.image(place).rgb, expected, 1e-6)


def test_smaller_pictures_see_the_same(tmp_path):
    folder = write_transforms(tmp_path, LENS | {"frames": frames(2)})
    full, half = load(folder).camera(0), load(folder, downscale=2).camera(0)
    assert (half.width, half.height) == (4, 3)
    place = jnp.array([3.4, 1.2])
    assert_close(eqx.filter_jit(half.line)(place)[1], eqx.filter_jit(full.line)(2 * place)[1], 1e-6)
    blocks = noise(0, 8, 6).reshape(3, 2, 4, 2, 3).mean(axis=(1, 3)) / 255
    assert_close(load(folder, downscale=2).image(0).rgb, blocks, 1e-6)


def test_limits_hold_the_scene_unless_given(tmp_path):
    folder = write_transforms(tmp_path, LENS | {"frames": frames(6)})
    camera = load(folder).camera(0)
    assert 0 < camera.near < 0.1 and camera.far > 8
    given = load(folder, near=1.0, far=5.0).camera(0)
    assert (float(given.near), float(given.far)) == (1.0, 5.0)


# --- Splits


def test_every_eighth_is_held_out(tmp_path):
    folder = write_transforms(tmp_path, LENS | {"frames": frames(10)})
    letters = lambda views: "".join(name[-5] for name in views.names)
    assert letters(sg.load_transforms(folder)) == "bcdefghj"
    assert letters(sg.load_transforms(folder, "val")) == "ai"
    assert letters(sg.load_transforms(folder, "test", hold_every=4)) == "aei"
    assert transforms_splits(folder) == ("train", "val", "test")


def test_lists_of_names_go_before_that(tmp_path):
    names = {"train_filenames": ["./images/d.png", "images/a.png"], "holdout_filenames": NAMES[:1]}
    folder = write_transforms(tmp_path, LENS | names | {"frames": frames(4)})
    assert load(folder).names == ("images/a.png", "images/d.png")
    assert load(folder, "holdout").names == ("images/c.png",)
    assert transforms_splits(folder) == ("train", "holdout")
    with pytest.raises(FileError, match="no `test_filenames`; there are: train_filenames, hold"):
        load(folder, "test")


def test_a_listing_of_another_name(tmp_path):
    folder = write_transforms(tmp_path, LENS | {"frames": frames(2)})
    (folder / "transforms.json").rename(folder / "mine.json")
    assert sg.load_transforms(folder / "mine.json").frames == 1


def test_it_is_one_store_for_fitting(tmp_path):
    """Rays of the flat list are those of each picture's camera."""
    sizes = [(8, 6), (8, 6), (6, 9)]
    lens = {name: value for name, value in LENS.items() if name not in "wh"}
    views = load(write_transforms(tmp_path, lens | {"frames": frames(3)}, sizes))
    rays = jax.jit(lambda: views.rays(jnp.arange(54 + 48)))()
    for place, pixel, index in ((0, [1.5, 2.5], 2 * 6 + 1), (1, [7.5, 5.5], 54 + 47)):
        line = eqx.filter_jit(views.camera(place).line)(jnp.array(pixel))
        assert_close(rays.direction[index], line[1], 1e-6)
        assert_close(rays.origin[index], line[0], 1e-6)


@pytest.mark.parametrize("model", ["EQUIRECTANGULAR", "OPENCV_FISHEYE"])
def test_bounds_of_what_sees_all_around(tmp_path, model):
    """Corners that look up or back give no width, and no warning: the nearest camera does."""
    lens = dict(camera_model=model, fl_x=3.0 if model == "OPENCV_FISHEYE" else 4.0)
    lower, upper = find_bounds(load(write_transforms(tmp_path, lens | {"frames": frames(6)})))
    assert np.all(upper > lower) and np.all(np.abs([lower, upper]) < 4.0)


# --- Written


@pytest.mark.parametrize(
    "lens",
    [
        LENS,
        {**LENS, **dict.fromkeys(BENT, 0.0), "fl_y": 9.0, "camera_model": "PINHOLE"},
        {**LENS, **dict.fromkeys(("p1", "p2"), 0.0), "camera_model": "OPENCV_FISHEYE"},
        {"camera_model": "EQUIRECTANGULAR", "w": 8, "h": 6},
    ],
    ids=["opencv", "pinhole", "fisheye", "panorama"],
)
def test_written_cameras_are_read_again(tmp_path, lens):
    """From another folder than that of the pictures, which are averaged over blocks."""
    data = write_transforms(tmp_path / "data", lens | {"frames": frames(6)})
    splits = {split: load(data, split, downscale=2) for split in ("train", "test")}
    path = sg.data.save_transforms(tmp_path / "run", splits, data)
    assert path == tmp_path / "run" / "transforms.json"
    for split, views in splits.items():
        again = sg.load_transforms(path.parent, split, downscale=2)
        assert type(again.cameras) is type(views.cameras) and again.names == views.names
        for mine, other in zip(*map(jax.tree.leaves, (again.cameras, views.cameras)), strict=True):
            assert_close(mine, other, 1e-5)
        assert np.array_equal(again.pixels, views.pixels)


def test_pictures_lie_in_the_folder_that_a_listing_names(tmp_path):
    data = write_transforms(tmp_path / "data", LENS | {"frames": frames(2)})
    listing = json.loads((data / "transforms.json").read_text())
    other = tmp_path / "listings" / "transforms.json"
    other.parent.mkdir()
    for name, message in {
        "../data": None,
        "../gone": "`pictures_folder`: there is no folder ../gone",
        "../data/images": "cannot be read",
    }.items():
        other.write_text(json.dumps(listing | {"pictures_folder": name}))
        if message is None:
            assert load(other.parent).names == ("images/c.png",)
            continue
        with pytest.raises(FileError, match=message):
            load(other.parent)
    outside = [frame | {"file_path": "../secret.png"} for frame in listing["frames"]]
    other.write_text(json.dumps({**listing, "frames": outside, "pictures_folder": "../data"}))
    with pytest.raises(FileError, match="leads out of the data folder"):
        load(other.parent)
