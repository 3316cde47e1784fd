"""From distorted photographs to a fitted scene: the lens in the listing is what makes them fit."""

import json
import pathlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg
from scenegraph.data import RayBatches
from scenegraph.fields import GaussianBlob
from scenegraph.io import write_picture
from scenegraph.runs import evaluate
from support.blender_folder import eyes


LENS = dict(k1=-0.35, k2=0.15, p1=0.01, p2=-0.01)
SIZES = [(32, 24), (32, 24), (20, 30)]


def scene_of(center, rgb) -> sg.Scene:
    """A ball of fog, which is to be found, off the middle of all pictures."""
    volume = sg.Volume(GaussianBlob(center, 0.35, 8.0, rgb))
    return sg.Scene(sg.Group(ball=volume), background=[0, 0, 0], integrator=sg.Hierarchical((24,)))


TRUTH = scene_of([0.5, -0.3, 0.7], [0.9, 0.5, 0.2])


def photograph(camera: sg.OpenCVCamera) -> np.ndarray:
    return np.round(255 * np.clip(np.asarray(sg.render(TRUTH, camera).rgb), 0, 1)).astype(np.uint8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    """Nine photographs through a strong lens, of two sizes."""
    folder, frames = tmp_path_factory.mktemp("data"), []
    for index, eye in enumerate(eyes(9, 3.0)):
        width, height = SIZES[index % 3]
        pose = sg.Pose.look_at(eye.tolist(), [0.0, 0.0, 0.0], [0.0, 0.0, 1.0])
        camera = sg.OpenCVCamera(pose, [30.0, 27.0], width, height, near=1.0, far=5.0, **LENS)
        write_picture(folder / f"{index}.png", photograph(camera))
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = pose.linear(), pose.offset()
        frames.append(
            {"file_path": f"{index}.png", "transform_matrix": matrix.tolist()}
            | {"w": width, "h": height, "cx": width / 2, "cy": height / 2}
        )
    listing = {"camera_model": "OPENCV", "fl_x": 30.0, "fl_y": 27.0, **LENS, "frames": frames}
    (folder / "transforms.json").write_text(json.dumps(listing))
    straight = listing | dict.fromkeys(LENS, 0.0)
    (folder / "straight.json").write_text(json.dumps(straight))
    return folder


def quality(scene: sg.Scene, views: sg.Views) -> float:
    return float(np.mean([score.psnr for score in evaluate(scene, views)]))


def load(path: pathlib.Path, split: str) -> sg.Views:
    return sg.load_transforms(path, split, near=1.0, far=5.0, hold_every=4)


@pytest.mark.slow
def test_the_true_scene_looks_like_the_photographs(folder):
    assert quality(TRUTH, load(folder, "val")) > 45
    assert quality(TRUTH, load(folder / "straight.json", "val")) < 30


@pytest.mark.slow
def test_a_short_fit_finds_the_scene_through_the_lens_only(folder):
    start = scene_of([0.3, -0.1, 0.5], [0.5, 0.5, 0.5])
    fitted = {}
    for name in ("transforms.json", "straight.json"):
        batches = RayBatches(load(folder / name, "train"), 256)
        key, optimizer = jax.random.key(0), optax.adam(0.02)
        result = sg.fit(
            start, batches, trainable=["ball.**"], optimizer=optimizer, steps=60, key=key
        )
        fitted[name] = result.scene
    held = load(folder, "val")
    before, with_lens = quality(start, held), quality(fitted["transforms.json"], held)
    without = quality(fitted["straight.json"], load(folder / "straight.json", "val"))
    assert with_lens > before + 10 and with_lens > without + 5


@pytest.mark.slow
def test_a_lens_can_be_found_from_a_photograph(folder):
    """The camera is a node of the scene; its first coefficient begins at zero."""
    views = load(folder, "train")
    camera = eqx.tree_at(lambda c: c.k1, views.camera(0), jnp.array(0.0))
    scene = eqx.tree_at(lambda s: s.root, TRUTH, sg.Group(**TRUTH.root.children, cam=camera))
    result = sg.fit(
        scene,
        RayBatches(sg.views("cam", views.image(0)), 256),
        trainable=["cam.k1"],
        optimizer=optax.adam(0.03),
        steps=60,
        key=jax.random.key(0),
    )
    assert abs(float(result.scene.root.children["cam"].k1) - LENS["k1"]) < 0.02
