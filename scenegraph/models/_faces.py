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


def flat_and_repeated(faces: np.ndarray, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns which faces, `faces 3`, have no area, and which have the corners of an earlier one.

    The corners of a face without area lie on one line, and are finite. Those of a repeated face
    run in the same sense as before, from whichever of them.
    """
    has_area, sums = np.empty(len(faces), bool), np.empty(len(faces), np.uint32)
    places = _places(vertices, 0, 1)
    for some, sure, own in zip(blocks(faces), blocks(has_area), blocks(sums), strict=True):
        sure[:] = _have_area(places.take(np.ascontiguousarray(some.T, np.intp)))
        # a^2 + b^2 + c^2, whatever the order of the corners: of sums of numbers that are only
        # multiplied, many would be equal.
        numbers = some.astype(np.uint32, copy=False)
        squares = numbers * numbers
        np.add(squares[:, 0], squares[:, 1], out=own)
        own += squares[:, 2]
    return _are_flat(faces, vertices, has_area), _are_repeated(faces, sums)


def _places(vertices: np.ndarray, x: int, y: int) -> np.ndarray:
    """Returns vertices, seen along an axis, as complex numbers, which are looked up at once."""
    places = np.empty(len(vertices), np.complex64)
    places.real, places.imag = vertices[:, x], vertices[:, y]
    return places


def _have_area(places: np.ndarray) -> np.ndarray:
    """Returns which triangles, `3 faces`, surely have an area; overwrites the places."""
    with np.errstate(over="ignore", invalid="ignore"):
        u, v = np.subtract(places[1:], places[0], out=places[1:])
        # conj(u) v = u.v + i |u x v|, which is known to within some roundings of its length.
        product = np.multiply(np.conj(u, out=u), v, out=u).view(np.float32)
        cosine, area = np.abs(product, out=product).reshape(-1, 2).T
        return area > _SURE * cosine + _TINY


def _are_flat(faces: np.ndarray, vertices: np.ndarray, has_area: np.ndarray) -> np.ndarray:
    """Returns which faces have no area, of those that do not surely have one."""
    flat, numbers = np.zeros(len(faces), bool), np.flatnonzero(~has_area)
    # Seen along two other axes, most have one.
    for axes in ((1, 2), (2, 0)):
        if len(numbers) > _FEW:
            places = _places(vertices, *axes)
            sure = [_have_area(places.take(some.T)) for some in blocks(faces[numbers])]
            numbers = numbers[~np.concatenate(sure)]
    if not len(numbers):
        return flat
    a, b, c = vertices[faces[numbers]].astype(np.float64).transpose(1, 2, 0)
    with np.errstate(over="ignore", invalid="ignore"):
        # (b - a) x (c - a) is twice the area, along the normal.
        (ux, uy, uz), (vx, vy, vz) = b - a, c - a
        cross = np.stack([uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx])
        flat[numbers] = ~np.any(cross != 0, axis=0) & np.all(np.isfinite(a + b + c), axis=0)
    return flat


def _are_repeated(faces: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Returns which faces have the corners of an earlier one, of those whose sums are equal."""
    again = np.zeros(len(faces), bool)
    some = _alike(sums)
    # Of those, most have other corners, or the same ones in the other sense.
    some = some[_alike(_face_keys(faces[some]))]
    if not len(some):
        return again
    turned = _turned(faces[some])
    first = np.zeros(len(some), bool)
    first[np.unique(turned, axis=0, return_index=True)[1]] = True
    again[some[~first]] = True
    return again


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
