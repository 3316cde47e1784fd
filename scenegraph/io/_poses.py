import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._errors import FileError


# The square of a larger number would be infinite in single precision.
LARGEST = 1e18


def are_usable(numbers: ArrayLike) -> bool:
    """Returns true if all numbers of a file are finite and not above `LARGEST`."""
    array = np.asarray(numbers)
    # Not where one is NaN.
    return not array.size or bool(-LARGEST <= array.min() and array.max() <= LARGEST)


def as_matrix(value: Any, where: str) -> np.ndarray:
    """Converts a file's nested lists of numbers to an array, float64."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise FileError(f"{where} is not a matrix of numbers.") from error


def as_pose(value: Any, where: str) -> np.ndarray:
    """Checks and converts a file's 4x4, 3x4 or 16 numbers, row by row, to a rigid motion, 4x4."""
    pose = as_matrix(value, where)
    pose = pose.reshape(4, 4) if pose.shape == (16,) else pose
    pose = np.concatenate([pose, [[0.0, 0.0, 0.0, 1.0]]]) if pose.shape == (3, 4) else pose
    if pose.shape != (4, 4):
        raise FileError(f"{where} must be 4x4; its shape is {pose.shape}.")
    if not are_usable(pose):
        raise FileError(f"{where} has numbers that are not finite, or above {LARGEST:g}.")
    # R R^T = 1 and det R > 0
    rotation = pose[:3, :3]
    orthogonal = np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-3)
    if not orthogonal or np.linalg.det(rotation) < 0:
        raise FileError(f"{where}: the 3x3 part is not a rotation.")
    if not np.array_equal(pose[3], [0, 0, 0, 1]):
        raise FileError(f"{where}: the last row must be 0 0 0 1; it is {pose[3].tolist()}.")
    return pose


def as_number(value: Any, where: str, low: float, high: float) -> float:
    """Checks a file's number, which must lie between `low` and `high`, both excluded."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not low < value < high:
        limits = f"above {low:g}" if math.isinf(high) else f"between {low:g} and {high:g}"
        raise FileError(f"{where} must be a number {limits}; it is {value!r}.")
    return float(value)
