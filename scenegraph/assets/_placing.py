"""Matrices to the shift, rotation and scale of glTF's nodes."""

from typing import Any

import jax.numpy as jnp
import jaxlie
import numpy as np

from ..numerics import tangents


# The turn to y upwards from z upwards: (x, y, z) to (x, z, -y).
UPRIGHT = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])


def as_parts(matrix: np.ndarray) -> list[dict[str, Any]]:
    """Returns a matrix as the fields of nodes, the outermost first: one, or with shears two."""
    linear, shift = matrix[:3, :3], matrix[:3, 3]
    if np.array_equal(matrix, np.eye(4)):
        return [{}]
    scale = np.linalg.norm(linear, axis=0)
    axes = linear / scale
    if np.allclose(axes.T @ axes, np.eye(3), atol=1e-5):
        return [_fields(shift, axes, scale)]
    # A = (U V^T) (V S V^T) is a rotation and a shear; U S (V^T) are a node and one in it.
    outer, stretch, inner = np.linalg.svd(linear)
    turned = np.sign(np.linalg.det(inner))
    parts = (
        _fields(shift, outer * turned, stretch),
        _fields(np.zeros(3), inner * turned, np.ones(3)),
    )
    return list(parts)


def _fields(shift: np.ndarray, axes: np.ndarray, scale: np.ndarray) -> dict[str, Any]:
    """Returns fields of a node from orthonormal axes; a mirrored one has a negative scale."""
    if np.linalg.det(axes) < 0:
        axes, scale = axes * [-1, 1, 1], scale * [-1, 1, 1]
    w, *xyz = np.asarray(jaxlie.SO3.from_matrix(np.asarray(axes, np.float32)).wxyz, float)
    quaternion = np.array([*xyz, w]) / np.linalg.norm([w, *xyz])
    fields = {}
    if np.any(shift):
        fields["translation"] = shift.tolist()
    if not np.allclose(quaternion, [0, 0, 0, 1], atol=1e-7):
        fields["rotation"] = quaternion.tolist()
    if not np.allclose(scale, 1, atol=1e-6):
        fields["scale"] = scale.tolist()
    return fields


def matrix_of_direction(direction: np.ndarray) -> np.ndarray:
    """Returns a rotation that turns -z to a direction."""
    back = -direction / np.linalg.norm(direction)
    u, v = map(np.asarray, tangents(jnp.asarray(back)))
    return np.stack([u, v, back], axis=1)
