"""The ball about which space is contracted, and the cells that no camera sees."""

import jax
import jax.numpy as jnp
import numpy as np

import scenegraph as sg
from scenegraph.data import Ball, find_ball, find_unseen_cells
from support.helpers import assert_close


def views_of(eyes, targets):
    cameras = [
        sg.PerspectiveCamera.look_at(eye, target, [0, 0, 1], 0.9, 12, 9, near=0.01, far=1e3)
        for eye, target in zip(eyes, targets, strict=True)
    ]
    return sg.views(cameras, [np.zeros((9, 12, 3), np.uint8)] * len(cameras))


def circle(count, radius, height=0.0):
    angles = 2 * np.pi * np.arange(count) / count
    return np.stack([radius * np.cos(angles), radius * np.sin(angles), 0 * angles + height], axis=1)


def test_the_ball_reaches_from_what_cameras_look_at_to_them():
    middle = np.array([3.0, -2.0, 1.0])
    ball = find_ball(views_of(middle + circle(7, 5.0), [middle] * 7))
    assert_close(ball.centre, middle, 0, 1e-4)
    assert_close(ball.radius, 5.0, 1e-4)


def test_the_ball_of_cameras_that_look_outwards_is_about_them():
    eyes = np.array([3.0, -2.0, 1.0]) + circle(8, 0.5)
    ball = find_ball(views_of(eyes, eyes + circle(8, 1.0)))
    assert_close(ball.centre, [3.0, -2.0, 1.0], 0, 1e-4)
    assert_close(ball.radius, 2.0, 1e-4)


def test_one_camera_has_a_ball():
    ball = find_ball(views_of([[0.0, -1, 0]], [[0.0, 0, 0]]))
    assert np.isfinite(ball.radius) and ball.radius > 0


def test_no_cell_is_called_unseen_that_a_camera_sees():
    """Random places before random pixels, far away too; and behind all cameras nothing is seen."""
    eyes, ball = circle(3, 1.0)[:1] + 0.1, Ball(np.zeros(3), 1.0)
    views = views_of(eyes, [[0.0, 0, 0]])
    unseen = find_unseen_cells(views, ball, 32)
    rng = np.random.default_rng(0)
    pixels = jnp.asarray(rng.uniform([0, 0], [12, 9], (400, 2)))
    lines = jax.jit(jax.vmap(views.camera(0).line))(pixels)
    distances = 10 ** rng.uniform(-1, 2.5, 400)
    for origin, direction, distance in zip(*map(np.asarray, lines), distances, strict=True):
        place = origin + distance / np.linalg.norm(direction) * direction
        length = max(1.0, np.linalg.norm(place))
        cell = np.floor((place * (2 - 1 / length) / length / 4 + 0.5) * 32).astype(int)
        assert not unseen[tuple(cell)]
    assert unseen[30, 16, 16] and 0.5 < unseen.mean() < 0.98
