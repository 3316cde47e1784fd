"""A picture, the truth and the error in a row."""

import jax.numpy as jnp
import numpy as np

import scenegraph as sg
from scenegraph.images import color_map, error_panels


def panels(size: int, error) -> tuple[np.ndarray, np.ndarray]:
    truth = jnp.full((size, size, 3), 0.5)
    return error_panels(sg.Image(truth + error), sg.Image(truth)), np.asarray(error)


def test_colours_of_known_errors():
    error = np.zeros((200, 200, 3), np.float32)
    error[:100] = [0.03, 0.0, 0.12]  # 0.05 on average over channels
    error[:, :50] = -0.2
    shown, _ = panels(200, error)
    right = shown[:200, -200:]
    assert shown.shape[1] == 3 * 200 + 2 * 4 and shown.shape[0] > 200
    low, middle, high = color_map(np.array([0.0, 0.5, 1.0]), "magma").astype(int)
    assert np.all(right[150, 100] == low) and np.all(right[50, 10] == high)
    assert np.all(np.abs(right[50, 100] - middle) <= 2)


def test_picture_and_truth_are_as_they_are():
    error = np.linspace(-0.4, 0.4, 200)[None, :, None] * np.ones((200, 1, 3), np.float32)
    shown, _ = panels(200, error)
    assert np.all(shown[:200, 204:404] == 128)
    assert np.all(np.abs(shown[0, :200, 0] - 255 * (0.5 + error[0, :, 0])) <= 0.51)


def test_small_pictures_are_enlarged_pixel_by_pixel():
    error = np.zeros((16, 16, 3), np.float32)
    error[3, 5] = 1.0
    shown, _ = panels(16, error)
    left = shown[:208, :208]
    assert np.all(left[3 * 13 : 4 * 13, 5 * 13 : 6 * 13] == 255)
    assert np.sum(left == 255) == 13 * 13 * 3


def test_scale_stands_below():
    """A bar with the ends of the colours, dark to light."""
    shown, _ = panels(200, np.zeros((200, 200, 3), np.float32))
    row = shown[209, -200:].astype(int)
    ends = color_map(np.array([0.0, 1.0]), "magma")
    places = [np.flatnonzero(np.all(row == end, axis=1)) for end in ends.astype(int)]
    assert places[0].size and places[1].size and places[0][0] < places[1][-1]
