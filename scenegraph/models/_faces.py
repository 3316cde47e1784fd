"""Faces without area and faces that come again, in arrays of NumPy; a few passes over each."""

import numpy as np


# So many at a time stay in the processor's cache.
_BLOCK = 2**14
# Rounding of single precision moves a cross product by less than this part of its factors.
_SURE = 1e-5
_MIX = np.uint64(0x9E3779B97F4A7C15)


def flat_faces(faces: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    """Returns which faces, `faces 3`, have corners on one line; false where one is not finite."""
    flat = np.zeros(len(faces), bool)
    columns = [np.ascontiguousarray(column, np.float32) for column in vertices.T]
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(faces), _BLOCK):
            flat[start : start + _BLOCK] = ~_have_area(faces[start : start + _BLOCK], columns)
        doubtful = np.flatnonzero(flat)
        if len(doubtful):
            a, b, c = np.moveaxis(vertices.astype(np.float64)[faces[doubtful]], 1, 0)
            # (b - a) x (c - a) is twice the area, along the normal.
            cross = np.cross(b - a, c - a)
            flat[doubtful] = ~np.any(cross != 0, axis=1) & np.all(np.isfinite(a + b + c), axis=1)
    return flat


def _have_area(faces: np.ndarray, columns: list[np.ndarray]) -> np.ndarray:
    """Returns which faces surely have an area, by single precision."""
    a, b, c = (np.ascontiguousarray(corner, np.intp) for corner in faces.T)
    first = [column.take(a) for column in columns]
    u = [column.take(b) - x for column, x in zip(columns, first, strict=True)]
    v = [column.take(c) - x for column, x in zip(columns, first, strict=True)]
    cross = np.abs(u[1] * v[2] - u[2] * v[1])
    cross += np.abs(u[2] * v[0] - u[0] * v[2])
    cross += np.abs(u[0] * v[1] - u[1] * v[0])
    length = np.abs(u[0]) + np.abs(u[1]) + np.abs(u[2])
    return cross > _SURE * length * (np.abs(v[0]) + np.abs(v[1]) + np.abs(v[2]))


def repeated_faces(faces: np.ndarray) -> np.ndarray:
    """Returns which faces, `faces 3`, have the corners of an earlier one, in the same sense."""
    again = np.zeros(len(faces), bool)
    if _all_differ(faces):
        return again
    keys = _face_keys(faces)
    ordered = np.sort(keys)
    alike = ordered[1:] == ordered[:-1]
    if not np.any(alike):
        return again
    # Few: those whose keys are equal are compared corner by corner.
    some = np.flatnonzero(np.isin(keys, ordered[1:][alike]))
    turned = _turned(faces[some])
    first = np.zeros(len(some), bool)
    first[np.unique(turned, axis=0, return_index=True)[1]] = True
    again[some[~first]] = True
    return again


# So often, faces that fall into one place of a table are put into it again.
_TRIES = 12


def _all_differ(faces: np.ndarray) -> bool:
    """Returns true if all faces have different corners; false too where that is not found soon."""
    count = len(faces)
    if not count:
        return True
    # The sum of its corners' mixed numbers does not change as a face is turned.
    mixed = np.arange(int(faces.max()) + 1, dtype=np.uint64) * _MIX
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX
    a, b, c = faces.T
    sums = mixed.take(a)
    sums += mixed.take(b)
    sums += mixed.take(c)
    bits = count.bit_length() + 1
    places = (sums >> np.uint64(64 - bits)).astype(np.intp)
    owners, left = np.empty(2**bits, np.int32), np.arange(count, dtype=np.int32)
    for _ in range(_TRIES):
        owners[places] = left
        there = owners.take(places)
        others = np.flatnonzero(there != left)
        if not len(others):
            return True
        there, left, places = (x.take(others) for x in (there, left, places))
        if np.any(sums.take(there) == sums.take(left)):
            return False
    return False


def _face_keys(faces: np.ndarray) -> np.ndarray:
    """Returns a number for each face that does not change as its corners are turned."""
    keys = np.empty(len(faces), np.uint64)
    count = np.uint64(int(faces.max()) + 1 if len(faces) else 1)
    # Below 2^21 vertices the number says all; beyond, it is mixed.
    factor = count if count < 2**21 else _MIX
    for start in range(0, len(faces), _BLOCK):
        a, b, c = faces[start : start + _BLOCK].astype(np.int64).T
        low, high = np.minimum(np.minimum(a, b), c), np.maximum(np.maximum(a, b), c)
        middle = a + b + c - low - high
        # Of the three steps around, two go upwards on one side and one on the other.
        side = (a < b).astype(np.uint64) + (b < c) + (c < a)
        low, middle, high = (x.astype(np.uint64) for x in (low, middle, high))
        key = ((low * factor + middle) * factor + high) * np.uint64(2) + (side >> np.uint64(1))
        keys[start : start + _BLOCK] = key
    return keys


def _turned(faces: np.ndarray) -> np.ndarray:
    """Turns faces such that the least number comes first; they keep their side."""
    start = np.argmin(faces, axis=1)[:, None]
    return np.take_along_axis(faces, (start + np.arange(3)) % 3, axis=1)


def number_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers the different rows of a table of 32- or 64-bit integers, in the order they come in.

    Returns where each comes first, and the number of each row.
    """
    rows = rows.reshape(len(rows), -1)
    if not len(rows):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    bits = np.uint64(int(len(rows)).bit_length())
    keys = _row_keys(rows)
    # A key's upper bits and the row's number, sorted as one number: equal keys are together.
    ordered = np.sort((keys << bits) | np.arange(len(rows), dtype=np.uint64))
    where = (ordered & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)
    keys = ordered >> bits
    begins = np.ones(len(rows), bool)
    begins[1:] = keys[1:] != keys[:-1]
    first = np.empty(len(rows), np.int64)
    first[where] = where[begins][np.cumsum(begins) - 1]
    if not np.array_equal(rows.take(first, axis=0), rows):
        # Two rows have one key.
        _, starts, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        first = starts[inverse.reshape(-1)]
    is_first = first == np.arange(len(rows))
    return np.flatnonzero(is_first), (np.cumsum(is_first) - 1).take(first)


def _row_keys(rows: np.ndarray) -> np.ndarray:
    """Mixes the columns of each row into one number."""
    keys = np.zeros(len(rows), np.uint64)
    factor = _MIX
    for column in rows.T:
        keys += np.multiply(column, factor, dtype=np.uint64, casting="unsafe")
        factor = np.uint64(int(factor) * int(_MIX) % 2**64)
    # The upper bits of a product depend on all lower ones; the lower are kept.
    return keys ^ (keys >> np.uint64(32))
