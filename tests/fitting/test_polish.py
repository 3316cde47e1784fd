"""Poses that are solved for: against a naive loop with finite differences, and in whole fits."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg
from scenegraph.data import RayBatches
from scenegraph.fields import GaussianBlob
from scenegraph.fitting import find_motion, PosePolish, poses_of, RenderLoss, with_corrections
from scenegraph.fitting._polish import (
    Polisher,
    pose_equations,
    PoseEquations,
    solve_poses,
    sum_equations,
)
from scenegraph.io import MappedArray
from scenegraph.parallel import as_layout
from scenegraph.pixels import edge_pixels, PixelList
from scenegraph.scene import Capture
from support.blender_folder import look_at
from support.helpers import assert_close
from support.toy_fits import StopAt


KEY = jax.random.key(0)
SIZE = 16
EYES = [[3.0, 0.5, 1.5], [-2.0, 2.5, 1.0], [0.5, -3.0, 0.8]]


def cloud() -> sg.Scene:
    rng = np.random.default_rng(3)
    blobs = {
        f"blob{i}": sg.Volume(GaussianBlob(rng.uniform(-0.7, 0.7, 3), 0.3, 6.0, color))
        for i, color in enumerate(np.eye(4)[:, :3] * 0.8 + 0.1)
    }
    return sg.Scene(sg.Group(**blobs), background=[1.0] * 3, integrator=sg.Hierarchical((12,)))


def cameras_at(poses: np.ndarray) -> list[sg.PerspectiveCamera]:
    poses = poses.astype(np.float32)
    return [sg.PerspectiveCamera(p, 28.0, SIZE, SIZE, near=1.5, far=5.0) for p in poses]


def moved(poses: np.ndarray, size: float) -> np.ndarray:
    shifted = poses.copy()
    shifted[:, :3, 3] += np.random.default_rng(1).normal(size=(len(poses), 3)) * size
    return shifted


@pytest.fixture(scope="module")
def capture() -> tuple[sg.Scene, sg.Views]:
    """The cloud and its pictures, whose cameras are thought to be elsewhere."""
    true = np.stack([look_at(eye) for eye in EYES])
    pictures = [sg.render(cloud(), camera).rgb for camera in cameras_at(true)]
    views = sg.views(cameras_at(moved(true, 0.02)), pictures, space=sg.images.SRGB())
    return with_corrections(cloud(), views)


def with_poses(scene: sg.Scene, poses) -> sg.Scene:
    return eqx.tree_at(lambda s: s.root.children["capture"].poses, scene, jnp.asarray(poses))


def test_equations_are_those_of_finite_differences(capture):
    scene, views = capture
    batch = RayBatches(views, 24).batch(0, 0)
    pixels: Any = batch.rays
    loss = RenderLoss(jitter=False)

    def brightness(poses: np.ndarray) -> np.ndarray:
        node: Capture = with_poses(scene, jnp.asarray(poses, jnp.float32))["capture"]
        cameras = eqx.tree_at(lambda v: v.cameras, views, node.corrected())
        rays = cameras.rays_at(pixels.frame, (pixels.place - 0.5).astype(int))
        return np.asarray(sg.render_rays(scene, rays)[-1].rgb.mean(axis=1), np.float64)

    zero, step = np.zeros((3, 6)), 0.02
    jacobian = np.zeros((24, 3, 6))
    for place in np.ndindex(3, 6):
        seed = np.zeros((3, 6))
        seed[place] = step
        jacobian[(slice(None), *place)] = (brightness(seed) - brightness(-seed)) / (2 * step)
    residual = brightness(zero) - np.asarray(batch.rgb).mean(axis=1)
    found = pose_equations(loss, scene, batch)
    curvature = np.einsum("rfi,rfj->fij", jacobian, jacobian)
    assert_close(found.curvature, curvature, 0.02, 0.01 * np.abs(curvature).max())
    gradient = np.einsum("rfi,r->fi", jacobian, residual)
    assert_close(found.gradient, gradient, 0.02, 0.01 * np.abs(gradient).max())


def test_steps_solve_the_damped_equations():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(20, 6))
    truth = rng.normal(size=6) * 0.3
    curvature = np.stack([root.T @ root, np.zeros((6, 6)), np.full((6, 6), np.nan)])
    gradient = np.stack([-root.T @ root @ truth, np.zeros(6), np.zeros(6)])
    steps = solve_poses(PoseEquations(jnp.asarray(curvature), jnp.asarray(gradient)))
    # Damping of 1 % changes little of well conditioned equations.
    assert_close(steps[0], truth, 0.1, 0.02)
    # Pictures that say nothing, or nothing finite, keep their poses.
    assert np.all(steps[1:] == 0)
    far = solve_poses(PoseEquations(jnp.asarray(curvature), jnp.asarray(100 * gradient)))
    assert np.linalg.norm(far[0]) == pytest.approx(4.0, rel=1e-5)


def fit_poses(capture, polish, *, steps: int, state=None, callbacks=()):
    scene, views = capture
    return sg.fit(
        scene,
        RayBatches(views, 64),
        trainable=["capture.poses"],
        optimizer=optax.sgd(0.0),
        loss=RenderLoss(jitter=False),
        steps=steps,
        key=KEY,
        polish=polish,
        state=state,
        callbacks=callbacks,
    )


def test_polish_finds_the_poses_that_the_pictures_have(capture):
    """No gradient moves them: what is found, the polishes have found."""
    truth = np.stack([look_at(eye) for eye in EYES])

    def error(scene: sg.Scene) -> float:
        found = poses_of(scene["capture"].corrected())
        assert find_motion(found, truth).scale == pytest.approx(1, abs=0.05)
        return float(np.linalg.norm(found[:, :3, 3] - truth[:, :3, 3], axis=1).mean())

    result = fit_poses(capture, PosePolish(rays=192), steps=24)
    assert error(result.scene) < 0.15 * error(capture[0])


def test_edges_are_the_pixels_where_pictures_change_most():
    picture = np.zeros((6, 8, 3), np.float32)
    picture[:, 4:] = 1.0
    camera = sg.PerspectiveCamera.look_at([0.0, -3.0, 0.0], [0.0] * 3, [0.0, 0.0, 1.0], 0.7, 8, 6)
    views = sg.views([camera] * 2, [picture, picture], space=sg.images.SRGB())
    everything = RayBatches(views).choice
    listed = np.asarray(edge_pixels(views, everything, 0.25).indices)
    assert set(listed % 8) == {3, 4} and len(listed) == 24
    # Of a list, and of pixels that count.
    first = PixelList(jnp.arange(48))
    assert np.asarray(edge_pixels(views, first, 0.25).indices).max() < 48
    weighted = dataclasses.replace(views, weights=jnp.arange(96) % 8 != 3)
    assert set(np.asarray(edge_pixels(weighted, everything, 0.1).indices) % 8) == {4}


def test_polishes_are_due_from_two_fifths_on_and_resume_is_exact(capture):
    polish = PosePolish(rays=64)
    half = fit_poses(capture, polish, steps=12, callbacks=[StopAt(7)])
    again = fit_poses(capture, polish, steps=12, state=half.state)
    whole = fit_poses(capture, polish, steps=12)
    early = fit_poses(capture, polish, steps=12, callbacks=[StopAt(4)])
    assert int(half.state.step) == 7 and int(early.state.step) == 4
    assert np.all(np.asarray(early.scene["capture"].poses) == 0)
    assert np.any(np.asarray(half.scene["capture"].poses) != 0)
    assert eqx.tree_equal(again.scene, whole.scene)


def test_a_horizon_that_falls_makes_one_polish_due_at_a_time(capture):
    """A deadline's horizon falls with every polish; none is due near where it may end."""
    scene, views = capture
    batches = RayBatches(views, 64)
    polisher = Polisher(PosePolish(rays=64), scene, batches, RenderLoss(), as_layout(None))
    due = lambda number, horizon: polisher.is_due(number, horizon, False)
    assert not due(399, 1000.0) and due(400, 1000.0)
    polisher.skip(500, 1000.0)
    # Every thirtieth of 1,000 steps is 33, from 400 on: the last one was after 499.
    assert not due(501, 1000.0) and not due(531, 1000.0) and due(532, 1000.0)
    assert not due(501, 800.0) and not due(525, 540.0)
    assert not due(970, 1000.0) and polisher.is_due(970, 970.0, True)


def test_poses_lose_their_gradient_when_they_are_solved_for(capture):
    scene, views = capture
    batches, loss = RayBatches(views, 64), RenderLoss(jitter=False)
    polisher = Polisher(PosePolish(rays=64), scene, batches, loss, as_layout(None))
    # From two fifths on, and where enough steps are left.
    assert polisher.stills(loss, 399, 1000.0) is None and polisher.stills(loss, 450, 800.0) is None
    still = polisher.stills(loss, 500, 1000.0)
    assert still is not None and polisher.stills(still, 501, 1000.0) is None
    batch = batches.batch(0, 0)

    def gradient(loss: RenderLoss) -> Any:
        value = lambda scene: loss(scene, None, batch, KEY)[0]
        return eqx.filter_grad(value)(scene)

    without, whole = gradient(still), gradient(loss)
    assert np.abs(np.asarray(whole["capture"].poses)).max() > 0
    assert np.all(np.asarray(without["capture"].poses) == 0)
    assert_close(without["blob0"].field.rgb, whole["blob0"].field.rgb, 1e-5, 1e-8)


def test_pixels_in_a_file_polish_as_those_in_memory_do(capture, tmp_path):
    scene, views = capture
    pixels = np.asarray(views.pixels)
    path = tmp_path / "pixels.bin"
    path.write_bytes(pixels.tobytes())
    in_file = dataclasses.replace(views, pixels=MappedArray(path, pixels.shape, pixels.dtype))

    def equations(views: sg.Views) -> PoseEquations:
        batches = RayBatches(views, 32, edge_pixels(views, RayBatches(views).choice, 0.3))
        loss, layout = RenderLoss(jitter=False), as_layout(None)
        return sum_equations(batches, loss, scene, layout, key=KEY, number=3, count=2)

    found, expected = equations(in_file), equations(views)
    assert np.abs(np.asarray(expected.gradient)).max() > 0
    assert eqx.tree_equal(found, expected, rtol=1e-5, atol=1e-6)
    whole = fit_poses((scene, views), PosePolish(rays=64), steps=4)
    again = fit_poses((scene, in_file), PosePolish(rays=64), steps=4)
    assert_close(again.scene["capture"].poses, whole.scene["capture"].poses, 1e-5, 1e-5)


def test_polish_refuses_what_has_no_poses(capture):
    scene, views = capture
    options = {"optimizer": optax.sgd(0.0), "steps": 1, "key": KEY}
    with pytest.raises(ValueError, match="needs a Capture 'other' with poses"):
        sg.fit(scene, views, polish=PosePolish("other"), **options)
    own = lambda model, state, batch, key: (jnp.zeros(()), state)
    with pytest.raises(TypeError, match="`polish` needs a `loss` that compares pictures"):
        sg.fit(scene, views, polish=PosePolish(), loss=own, **options)
    with pytest.raises(ValueError, match="at least one ray a picture; got 0"):
        PosePolish(rays=0)
