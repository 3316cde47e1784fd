"""An order of the faces of a mesh in which neighbours are near to each other."""

import numpy as np


# Faces that are searched together, and as many runs of them, are not split.
_RUN, _RUNS = 32, 1024
# Of no more faces, all are found soon in any order.
FEW = 1024


# Runs of which it is measured how large they are, and the largest size of those that are near: of
# smooth meshes in the order of a k-d tree it is 0.6 to 0.85, row by row 4 to 50.
_MEASURED, _NEAR = 128, 0.9


def are_near(faces: np.ndarray, vertices: np.ndarray) -> bool:
    """Returns true if runs of faces, `faces 3`, are about as small as in the order of a k-d tree.

    The squares of the sides of the boxes about runs are compared with those about their faces.
    """
    runs = faces[: len(faces) // _RUN * _RUN].reshape(-1, _RUN, 3)
    runs = runs[:: -(-len(runs) // _MEASURED)]
    # The faces of a run come first, then the runs, so that all are compared with few calls.
    corners = np.ascontiguousarray(runs.transpose(2, 1, 0), np.intp)
    with np.errstate(invalid="ignore", over="ignore"):
        a, b, c = vertices.take(corners, axis=0)
        low, high = np.minimum(np.minimum(a, b), c), np.maximum(np.maximum(a, b), c)
        whole = np.sum((high.max(axis=0) - low.min(axis=0)) ** 2, dtype=float)
        single = np.sum((high - low) ** 2, dtype=float)
    return bool(whole <= _NEAR * single)


def order_faces(points: np.ndarray) -> np.ndarray:
    """Orders faces by a point of each, `faces 3`: runs of 32 are close together; few stay as given.

    What is in this order already stays as it is.

    **Source:** the k-d tree: halves along the longest side, again and again (Bentley 1975,
    "Multidimensional binary search trees used for associative searching").
    """
    order = np.arange(len(points))
    if len(points) <= FEW:
        return order
    columns = [np.nan_to_num(column, copy=True) for column in points.T]
    ranges = [(0, len(points))]
    while ranges:
        begin, end = ranges.pop()
        size = end - begin
        half, own = _half(size), [column[begin:end] for column in columns]
        axis = np.argmax([np.ptp(column) for column in own])
        _divide(order[None, begin:end], [column[None] for column in own], own[axis][None], half)
        halves = (begin, begin + half), (begin + half, end)
        # Whole runs of runs are divided together, below.
        ranges += [(a, b) for a, b in halves if b - a > _RUN and b - a != _RUNS]
    whole = len(points) // _RUNS * _RUNS
    _divide_all(order[:whole], [column[:whole] for column in columns])
    return order


def _divide_all(order: np.ndarray, columns: list[np.ndarray]) -> None:
    """Divides each 1,024 in place, down to runs of 32."""
    size = _RUNS
    while size > _RUN and len(order):
        tables = [column.reshape(-1, size) for column in columns]
        axis = np.argmax([np.ptp(table, axis=1) for table in tables], axis=0)
        values = np.stack(tables)[axis, np.arange(len(axis))]
        _divide(order.reshape(-1, size), tables, values, size // 2)
        size //= 2


def _divide(order: np.ndarray, columns: list[np.ndarray], values: np.ndarray, half: int) -> None:
    """Puts the `half` entries of each row with the smallest values first, and keeps their order."""
    pivot = np.partition(values, half, axis=1)[:, half, None]
    first = values < pivot
    # Of those equal to the pivot, as many as there is space for.
    space = half - np.count_nonzero(first, axis=1)[:, None]
    if np.any(space):
        equal = values == pivot
        first |= equal & (np.cumsum(equal, axis=1) <= space)
    rows, size = values.shape
    to = np.empty(values.shape, np.intp)
    to[:, :half] = np.flatnonzero(first).reshape(rows, half)
    to[:, half:] = np.flatnonzero(~first).reshape(rows, size - half)
    for table in (order, *columns):
        table[:] = table.reshape(-1).take(to)


def _half(count: int) -> int:
    """Returns about half of a number: whole runs, and of large ones whole runs of runs."""
    whole = _RUNS if count > _RUNS else _RUN
    return whole * max(-(-count // whole) // 2, 1)
