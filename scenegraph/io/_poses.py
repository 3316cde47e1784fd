import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._errors import FileError


# The square of a larger number would be infinite in single precision.
LARGEST = 1e18


def are_usable(numbers: ArrayLike) -> bool:
    """Whether numbers of a file can be computed with: finite, and not above `LARGEST`.

    **Arguments:**

    - `numbers`: of any shape.

    **Returns:**

    Whether all are.
    """
    return bool(np.all(np.abs(numbers) <= LARGEST))  # not where one is NaN


def as_pose(value: Any, where: str) -> np.ndarray:
    """A rigid motion that somebody wrote into a file.

    **Arguments:**

    - `value`: 4x4 or 3x4 numbers, or 16 in a row, line by line.
    - `where`: the file and the entry, for the message.

    **Returns:**

    A float64 array of 4x4.

    **Errors:**

    `FileError` for anything but usable numbers whose 3x3 part is a rotation.
    """
    try:
        pose = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise FileError(f"{where} is not a matrix of numbers.") from error
    pose = pose.reshape(4, 4) if pose.shape == (16,) else pose
    pose = np.concatenate([pose, [[0.0, 0.0, 0.0, 1.0]]]) if pose.shape == (3, 4) else pose
    if pose.shape != (4, 4):
        raise FileError(f"{where} must be 4x4; its shape is {pose.shape}.")
    if not are_usable(pose):
        raise FileError(f"{where} has numbers that are not finite, or above {LARGEST:g}.")
    turn = pose[:3, :3]
    if not np.allclose(turn @ turn.T, np.eye(3), atol=1e-3) or np.linalg.det(turn) < 0:
        raise FileError(f"{where}: the 3x3 part is not a rotation.")
    if not np.array_equal(pose[3], [0, 0, 0, 1]):
        raise FileError(f"{where}: the last row must be 0 0 0 1; it is {pose[3].tolist()}.")
    return pose


def as_number(value: Any, where: str, low: float, high: float) -> float:
    """A number that somebody wrote into a file.

    **Arguments:**

    - `value`: what should be one.
    - `where`: the file and the entry, for the message.
    - `low`, `high`: it must lie between them, and be neither.

    **Returns:**

    The number.

    **Errors:**

    `FileError` for anything else.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not low < value < high:
        limits = f"above {low:g}" if math.isinf(high) else f"between {low:g} and {high:g}"
        raise FileError(f"{where} must be a number {limits}; it is {value!r}.")
    return float(value)
