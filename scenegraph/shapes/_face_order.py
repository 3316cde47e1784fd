"""An order of the faces of a mesh in which neighbours are near to each other."""

import numpy as np


# Faces that are searched together, and as many runs of them, are not split.
_RUN, _RUNS = 32, 1024
# Of no more faces, all are found soon in any order.
_FEW = 1024


def order_faces(points: np.ndarray) -> np.ndarray:
    """Orders faces by a point of each, `faces 3`: runs of 32 are close together; few stay as given.

    **Source:** the k-d tree: halves along the longest side, again and again (Bentley 1975,
    "Multidimensional binary search trees used for associative searching").
    """
    order = np.arange(len(points))
    ranges = [(0, len(points))] if len(points) > _FEW else []
    while ranges:
        begin, end = ranges.pop()
        own = order[begin:end]
        places = points[own]
        axis = np.argmax(np.ptp(places, axis=0))
        half = _half(end - begin)
        order[begin:end] = own[np.argpartition(places[:, axis], half)]
        halves = (begin, begin + half), (begin + half, end)
        ranges += [(a, b) for a, b in halves if b - a > _RUN]
    return order


def _half(count: int) -> int:
    """Returns about half of a number: whole runs, and of large ones whole runs of runs."""
    whole = _RUNS if count > _RUNS else _RUN
    return whole * max(-(-count // whole) // 2, 1)
