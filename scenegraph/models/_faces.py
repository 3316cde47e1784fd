"""Faces without area and faces that come again, in arrays of NumPy; a few passes over each."""

from collections.abc import Iterator

import numpy as np


# So many at a time stay in the processor's cache.
_BLOCK = 2**14
# Rounding of single precision moves a cross product by less than this part of its terms, which are
# rounded otherwise where they are hardly above zero.
_SURE, _TINY = np.float32(1e-5), np.float32(1e-36)
_MIX = np.uint64(0x9E3779B97F4A7C15)
# So many numbers are looked for, and faces looked at, one by one.
_FEW = 32


def blocks(rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yields so many rows at a time as stay in the processor's cache."""
    for start in range(0, len(rows), _BLOCK):
        yield rows[start : start + _BLOCK]


def flat_faces(faces: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    """Returns which faces, `faces 3`, have corners on one line; false where one is not finite."""
    flat, left, numbers = np.zeros(len(faces), bool), faces, None
    # Seen along one axis, most have an area.
    for x, y in ((0, 1), (1, 2), (2, 0)):
        places = np.empty(len(vertices), np.complex64)
        places.real, places.imag = vertices[:, x], vertices[:, y]
        sure = np.empty(len(left), bool)
        for some, found in zip(blocks(left), blocks(sure), strict=True):
            found[:] = _have_area(some, places)
        others = np.flatnonzero(~sure)
        numbers = others if numbers is None else numbers[others]
        left = left[others]
        if len(left) <= _FEW:
            break
    if not len(left):
        return flat
    a, b, c = np.moveaxis(vertices[left].astype(np.float64), 1, 0)
    with np.errstate(over="ignore", invalid="ignore"):
        # (b - a) x (c - a) is twice the area, along the normal.
        cross = np.cross(b - a, c - a)
        flat[numbers] = ~np.any(cross != 0, axis=1) & np.all(np.isfinite(a + b + c), axis=1)
    return flat


def _have_area(faces: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Returns which triangles surely have an area in a plane, whose places are complex numbers."""
    a, b, c = (places.take(np.ascontiguousarray(corner, np.intp)) for corner in faces.T)
    with np.errstate(over="ignore", invalid="ignore"):
        # conj(u) v = u.v + i |u x v|, which is known to within some roundings of its length.
        product = np.conj(b - a) * (c - a)
        area, cosine = np.abs(np.imag(product)), np.abs(np.real(product))
        return area > _SURE * (area + cosine) + _TINY


def repeated_faces(faces: np.ndarray) -> np.ndarray:
    """Returns which faces, `faces 3`, have the corners of an earlier one, in the same sense."""
    again = np.zeros(len(faces), bool)
    some = _alike(_sums(faces))
    # Of those, most have other corners, or the same ones in the other sense.
    some = some[_alike(_face_keys(faces[some]))]
    if not len(some):
        return again
    turned = _turned(faces[some])
    first = np.zeros(len(some), bool)
    first[np.unique(turned, axis=0, return_index=True)[1]] = True
    again[some[~first]] = True
    return again


def _sums(faces: np.ndarray) -> np.ndarray:
    """Returns a number for each face that does not change with the order of its corners."""
    mixed = np.arange(int(faces.max()) + 1 if len(faces) else 0, dtype=np.uint32)
    # The finaliser of MurmurHash3: sums of numbers that are only multiplied would often be equal.
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        mixed ^= mixed >> np.uint32(shift)
        mixed *= np.uint32(factor)
    sums = np.empty(len(faces), np.uint32)
    for some, found in zip(blocks(faces), blocks(sums), strict=True):
        a, b, c = (np.ascontiguousarray(corner, np.intp) for corner in some.T)
        found[:] = mixed.take(a) + mixed.take(b) + mixed.take(c)
    return sums


def _alike(keys: np.ndarray) -> np.ndarray:
    """Returns the places of numbers that come more than once."""
    ordered = np.sort(keys)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(twice):
        return np.zeros(0, np.intp)
    if len(twice) <= _FEW:
        return np.flatnonzero(np.logical_or.reduce([keys == key for key in twice]))
    return np.flatnonzero(np.isin(keys, twice))


def _face_keys(faces: np.ndarray) -> np.ndarray:
    """Returns a number for each face that does not change as its corners are turned."""
    keys = np.empty(len(faces), np.uint64)
    count = np.uint64(int(faces.max()) + 1 if len(faces) else 1)
    # Below 2^21 vertices the number says all; beyond, it is mixed.
    factor = count if count < 2**21 else _MIX
    for some, found in zip(blocks(faces), blocks(keys), strict=True):
        a, b, c = some.astype(np.int64).T
        low, high = np.minimum(np.minimum(a, b), c), np.maximum(np.maximum(a, b), c)
        middle = a + b + c - low - high
        # Of the three steps around, two go upwards on one side and one on the other.
        side = (a < b).astype(np.uint64) + (b < c) + (c < a)
        low, middle, high = (x.astype(np.uint64) for x in (low, middle, high))
        found[:] = ((low * factor + middle) * factor + high) * np.uint64(2) + (side >> np.uint64(1))
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
