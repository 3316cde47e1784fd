"""Numbers as colours."""

import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest

from scenegraph.images import color_map, srgb_to_linear


def luminance(colors: np.ndarray) -> np.ndarray:
    return np.asarray(srgb_to_linear(jnp.asarray(colors / 255))) @ [0.2126, 0.7152, 0.0722]


def test_ends_of_the_map_and_what_lies_beyond():
    colors = color_map(np.array([0.0, 1.0, -3.0, 7.0, np.inf]), "magma")
    assert colors.dtype == np.uint8 and colors.shape == (5, 3)
    first, last = (np.round(255 * np.array(matplotlib.colormaps["magma"](x))) for x in (0.0, 1.0))
    assert np.array_equal(colors[[0, 2]], [first[:3]] * 2)
    assert np.array_equal(colors[[1, 3, 4]], [last[:3]] * 3)


@pytest.mark.parametrize("name", ["magma", "viridis", "cividis"])
def test_more_is_lighter(name):
    assert np.all(np.diff(luminance(color_map(np.linspace(0, 1, 50), name))) > 0)


def test_what_is_not_a_number_is_grey():
    assert color_map(np.array([[np.nan, 0.5]]), "viridis")[0, 0].tolist() == [128, 128, 128]


def test_unknown_map_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match="no colour map 'magna'; did you mean 'magma'"):
        color_map(np.zeros(3), "magna")
