"""Cameras and colours of pictures as leaves of a scene: scaled, applied, and found again."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg
from scenegraph.fields import GaussianBlob
from scenegraph.fitting import align_cameras, find_motion, poses_of, with_corrections
from scenegraph.pixels import stack_cameras
from scenegraph.scene import lens_size, move_camera
from support.blender_folder import eyes, look_at
from support.helpers import assert_close


KEY = jax.random.key(0)
SIZE, FOCAL = 32, 60.0
POSES = np.stack([look_at(eye) for eye in eyes(6, 4.0)])


def cloud() -> sg.Scene:
    """Four blobs, which no turn takes to each other."""
    rng = np.random.default_rng(3)
    colors = np.eye(4)[:, :3] * 0.8 + 0.1
    places = rng.uniform(-0.8, 0.8, (4, 3))
    blobs = {
        f"blob{i}": sg.Volume(GaussianBlob(place, 0.3, 6.0, color))
        for i, (place, color) in enumerate(zip(places, colors, strict=True))
    }
    return sg.Scene(sg.Group(**blobs), background=[1.0] * 3, integrator=sg.Hierarchical((12,)))


def cameras_at(poses: np.ndarray) -> list[sg.PerspectiveCamera]:
    poses = poses.astype(np.float32)
    return [sg.PerspectiveCamera(p, FOCAL, SIZE, SIZE, near=2.5, far=5.5) for p in poses]


@pytest.fixture(scope="module")
def pictures() -> list[np.ndarray]:
    return [np.asarray(sg.render(cloud(), camera).rgb) for camera in cameras_at(POSES)]


def views_of(poses: np.ndarray, pictures) -> sg.Views:
    return sg.views(cameras_at(poses), [jnp.asarray(x) for x in pictures], space=sg.images.SRGB())


def turn(axis: np.ndarray, angle: float) -> np.ndarray:
    """Rodrigues' formula."""
    x, y, z = axis / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def perturbed(poses: np.ndarray, degrees: float, share: float) -> np.ndarray:
    """Turned about random axes, and moved by a share of the distance from the origin."""
    rng, moved = np.random.default_rng(1), poses.copy()
    for pose in moved:
        axis, way = rng.normal(size=(2, 3))
        pose[:3, :3] = pose[:3, :3] @ turn(axis, np.radians(degrees))
        pose[:3, 3] += share * np.linalg.norm(pose[:3, 3]) * way / np.linalg.norm(way)
    return moved


def errors(found: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """The largest angle, in degrees, and distance between poses."""
    cosines = (np.einsum("fij,fij->f", found[:, :3, :3], truth[:, :3, :3]) - 1) / 2
    angles = np.degrees(np.arccos(np.clip(cosines, -1, 1)))
    return angles.max(), np.linalg.norm(found[:, :3, 3] - truth[:, :3, 3], axis=1).max()


# --- Preconditioning


def test_preconditioner_is_that_of_camp(pictures):
    """Against J of a pinhole in float64 by differences: P (S + 0.1 diag S) P is the identity."""
    scene, _ = with_corrections(cloud(), views_of(POSES, pictures))
    scale = np.asarray(scene["capture"].pose_scales.value[2], np.float64)
    steps = (np.arange(5) + 0.5) / 5 * SIZE
    # The radius of what the cameras look at: all stand 4 away from the origin.
    rays = [[(x - SIZE / 2) / FOCAL, -(y - SIZE / 2) / FOCAL, -1] for y in steps for x in steps]
    rays = np.array(rays) / np.linalg.norm(rays, axis=1, keepdims=True)
    local = np.concatenate([depth * 4.0 * rays for depth in (0.5, 1.0, 2.0)])

    def seen(change: np.ndarray) -> np.ndarray:
        """Points of the camera's frame, seen after it has moved within that frame."""
        angle = np.linalg.norm(change[3:])
        moved = local - change[:3]
        moved = moved @ (turn(change[3:], angle) if angle > 0 else np.eye(3))
        return np.stack([FOCAL * moved[:, 0] / -moved[:, 2], FOCAL * moved[:, 1] / moved[:, 2]], 1)

    step = 1e-5
    slopes = [(seen(step * e) - seen(-step * e)) / (2 * step) for e in np.eye(6)]
    slopes = np.stack(slopes, axis=-1)
    square = np.einsum("pij,pik->jk", slopes, slopes) / len(local)
    damped = square + 0.1 * np.diag(np.diag(square))
    assert_close(scale @ damped @ scale, np.eye(6), 0, 2e-3)


def test_lens_is_corrected_by_its_formula():
    camera = sg.OpenCVCamera(POSES[0], [30.0, 20.0], SIZE, SIZE, k1=0.1, k2=0.01)
    assert lens_size(camera) == 5 and lens_size(cameras_at(POSES)[0]) == 3
    moved = move_camera(camera, None, jnp.asarray([0.1, 0.2, -0.3, 0.01, 0.02]))
    assert_close(moved.focal, np.exp(0.1) * np.array([30.0, 20.0]), 1e-6)
    assert_close(moved.principal_point, [16 + 6.0, 16 - 6.0], 1e-6)
    assert_close(jnp.stack([moved.k1, moved.k2]), [0.11, 0.03], 1e-5)


@pytest.mark.parametrize("scale", [1.0, 1.7])
def test_similarity_of_moved_poses_is_found(scale):
    turned, shift = turn(np.array([1.0, 2, 3]), 0.7), np.array([0.3, -2.0, 1.0])
    moved = POSES.copy()
    moved[:, :3, :3] = turned @ POSES[:, :3, :3]
    moved[:, :3, 3] = scale * POSES[:, :3, 3] @ turned.T + shift
    found = find_motion(POSES, moved)
    assert_close(found.turn, turned, 0, 1e-9)
    assert found.scale == pytest.approx(scale)
    assert_close(found.shift, shift, 0, 1e-9)
    assert_close(found.of_poses(POSES), moved, 0, 1e-9)
    # Of one camera, too, whose place tells no scale.
    alone = find_motion(POSES[:1], moved[:1])
    assert alone.scale == 1.0
    assert_close(alone.of_poses(POSES[:1]), moved[:1], 0, 1e-9)


# --- What a fit finds


@pytest.mark.slow
def test_poses_are_found_again(pictures):
    """The scene is known and stays: then nothing is left open, and the oracle is the truth."""
    given = perturbed(POSES, 1.0, 0.01)
    scene, views = with_corrections(cloud(), views_of(given, pictures))
    aligned = align_cameras(scene, views_of(given, pictures), steps=300, rays=256)
    found = poses_of(aligned.cameras)
    assert errors(given, POSES)[0] > 0.9
    angle, away = errors(found, POSES)
    assert angle < 0.1 and away < 0.01
    assert views.frames == aligned.frames == 6


@pytest.mark.slow
def test_gains_are_found_up_to_a_common_factor(pictures):
    gains = np.array([0.7, 0.85, 0.95, 1.05, 1.15, 1.3])
    seen = [0.7 * gain * x for gain, x in zip(gains, pictures, strict=True)]
    scene, views = with_corrections(
        cloud(), views_of(POSES, seen), poses=False, colors=True, color_strength=0.0
    )
    # Colours of the scene and its background may change by a common factor: by the mean gain.
    optimizer = optax.adam(optax.cosine_decay_schedule(0.03, 200))
    result = sg.fit(
        scene,
        views,
        trainable=["capture.colors", "background.**", "**.rgb"],
        optimizer=optimizer,
        steps=200,
        key=KEY,
    )
    maps = np.asarray(result.scene["capture"].color_maps())
    assert_close(maps.mean(axis=0), np.eye(3, 4), 0, 1e-5)
    # The pictures are mostly background: what the maps make of that is 0.7 times the gain.
    background = np.asarray(result.scene.background.shader.color)
    found = (maps[:, :, :3] @ background + maps[:, :, 3]).mean(axis=1)
    assert_close(found / found.mean(), gains / gains.mean(), 0.02)


def test_colours_are_mapped_in_the_loss_alone(pictures):
    scene, views = with_corrections(cloud(), views_of(POSES, pictures), poses=False, colors=True)
    camera = cameras_at(POSES)[0]
    other = eqx.tree_at(lambda s: s["capture"].colors, scene, jnp.ones((6, 3, 4)))
    assert_close(sg.render(other, camera).rgb, pictures[0], 0, 1e-6)
    assert float(other["capture"].penalty()) == pytest.approx(0.1)
    assert views.cameras.paths == ("capture",)


# --- What is refused


def test_what_cannot_be_corrected(pictures):
    views = views_of(POSES, pictures)
    scene, _ = with_corrections(cloud(), views)
    with pytest.raises(ValueError, match="a child 'capture' already"):
        with_corrections(scene, views)
    with pytest.raises(TypeError, match="root of the scene must be a Group; got a Volume"):
        with_corrections(sg.Scene(sg.Volume(GaussianBlob([0.0] * 3, 1.0, 1.0, [1.0] * 3))), views)
    forward = sg.PerspectiveCamera(np.eye(4), FOCAL, SIZE, SIZE)
    bent = stack_cameras([sg.cameras.NDCCamera(forward, [2.0, 2.0])] * 6)
    with pytest.raises(ValueError, match="NDCCamera cannot be corrected.*--no-ndc"):
        with_corrections(cloud(), dataclasses.replace(views, cameras=bent))
    with pytest.raises(ValueError, match="no Capture 'capture'; `with_corrections` makes one"):
        align_cameras(cloud(), views)
