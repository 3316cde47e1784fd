"""What hides a point from viewpoints."""

import jax.numpy as jnp
import numpy as np

from scenegraph.meshing._occlusion import are_seen, is_seen, solid_cells
from scenegraph.meshing._opacity_grid import OpacityGrid


def test_a_wall_hides_what_is_behind_it():
    """A wall at x = 0.5, with a hole about y = 0, seen from a point in the middle of the box."""
    opacity = np.zeros((40, 40, 40), np.float32)
    opacity[30, :, :] = 1.0
    opacity[30, 16:24, 16:24] = 0.0
    grid = OpacityGrid(opacity, np.full(3, -1.0), np.full(3, 0.05), 2 / 64)
    viewpoints = jnp.array(
        [[4.0, 0, 0], [4.0, 3, 0], [0.4, 0.3, 0], [-4.0, 3, 1], [4.0, 0, -3], [0.6, 0.3, 0]]
    )
    seen = is_seen(solid_cells(grid, 0.5), jnp.zeros(3), viewpoints)
    # At the wall, the second passes y = 0.375, outside of the hole, which ends at y = 0.2.
    assert seen.tolist() == [True, False, True, True, False, False]


def test_a_point_is_not_hidden_by_its_own_cells():
    opacity = np.zeros((20, 20, 20), np.float32)
    opacity[:, :, :10] = 1.0
    grid = OpacityGrid(opacity, np.full(3, -1.0), np.full(3, 0.1), 2 / 64)
    surface = jnp.array([0.03, 0.02, 0.0])
    seen = is_seen(
        solid_cells(grid, 0.5), surface, jnp.array([[0.0, 0, 3], [2.0, 0, 2], [0.0, 0, -3]])
    )
    assert seen.tolist() == [True, True, False]


def test_little_light_of_a_wall_behind_a_thin_place_is_not_seen():
    """A shell with a hole, and one with a place below the level that lets a quarter through."""
    places = (np.indices((40, 40, 40)) + 0.5) * 0.05 - 1
    x, y, z = places
    shell = np.abs(np.sqrt(x**2 + y**2 + z**2) - 0.8) < 0.1
    window = shell & (z > 0) & (np.hypot(x, y) < 0.3)
    # Layers of 0.1 halve what comes: the window is two of them thick.
    walls = np.array([[0.0, 0, 0.9], [0.6, 0, -0.66], [0.0, 0, -0.7]])
    normals = np.array([[0.0, 0, 1], [0.67, 0, -0.74], [0.0, 0, 1]])
    for opacity, inner in ((0.0, True), (0.25, True), (0.5, False)):
        cells = np.where(window, opacity, np.where(shell, 1.0, 0.0)).astype(np.float32)
        grid = OpacityGrid(cells, np.full(3, -1.0), np.full(3, 0.05), 0.1)
        seen = are_seen(grid, walls, normals, np.array([[0.0, 0, 4.0], [0.3, 0.2, 4.0]]))
        assert seen.tolist() == [True, False, inner]
