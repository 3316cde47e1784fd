"""Ways to make a good file strange: in what it says, or in its bytes."""

import copy
import io
import json
import struct
import zlib
from typing import Any

import numpy as np
from hypothesis import strategies as st

from stress.damage import altered


# --- Documents with something else in some places

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(
        ["../../etc/passwd", "/etc/passwd", "./train", "\0", "train/r_0.png", "😀", "."]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
# Which place, what is done there, and with what.
CHANGES = st.lists(
    st.tuples(st.integers(0, 10**6), st.sampled_from(["set", "scale", "drop", "double"]), VALUES),
    min_size=1,
    max_size=3,
)


def places(node: Any) -> list[tuple[Any, Any]]:
    """Every container in a document, with every key in it."""
    keys = node.keys() if isinstance(node, dict) else range(len(node))
    found = [(node, key) for key in keys]
    inner = [node[key] for key in keys if isinstance(node[key], dict | list)]
    return found + [place for child in inner for place in places(child)]


def changed(document: Any, changes: list) -> Any:
    """The document with a few changes."""
    document = copy.deepcopy(document)
    for number, kind, value in changes:
        where = places(document)
        if not where:
            break
        node, key = where[number % len(where)]
        if kind == "scale" and isinstance(node[key], int | float):
            node[key] = 1.0000001 * node[key]
        elif kind == "drop":
            del node[key]
        elif kind == "double" and isinstance(node, list):
            node.insert(key, copy.deepcopy(node[key]))
        else:
            node[key] = value
    return document


def spoilt_document(data: bytes, change: Any) -> bytes:
    """Changes in what it says; or damaged bytes."""
    if isinstance(change, int):
        return altered(data, np.random.default_rng(change))
    return json.dumps(changed(json.loads(data), change)).encode("utf-8", "surrogatepass")


def spoilt_picture(data: bytes, change: int) -> bytes:
    """Damaged bytes; or a chunk that is wrong, with its checksum put right."""
    rng = np.random.default_rng(change)
    if change % 2:
        return altered(data, rng)
    chunks, at = [], 8
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 12 + size
    which = int(rng.integers(len(chunks)))
    name, body = chunks[which]
    chunks[which] = name, altered(body, rng) if body else rng.bytes(3)
    if change % 8 == 0:
        chunks.insert(which, chunks[int(rng.integers(len(chunks)))])
    out = [
        struct.pack(">I", len(b)) + n + b + struct.pack(">I", zlib.crc32(n + b)) for n, b in chunks
    ]
    return data[:8] + b"".join(out)


# --- Tables of numbers

SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -1.0, 1e-30, 1e30, 1e300)
TYPES = ("<f2", "<f4", ">f8", "<i4", "<c16", "?", "S4", "U3", "O")


def spoilt_table(data: bytes, change: int) -> bytes:
    """Damaged bytes; or other numbers, another shape, another type."""
    rng = np.random.default_rng(change)
    if change % 2:
        return altered(data, rng)
    table = np.load(io.BytesIO(data))
    row, column = (int(rng.integers(size)) for size in table.shape)
    kinds = (
        lambda: _with(table, row, column, rng.choice(SPECIAL)),
        lambda: _with(table, row, column, rng.normal()),
        lambda: _with(table, row, slice(None), table[row] * (1 + 1e-5 * rng.normal())),
        lambda: _with(table, slice(None), slice(15, 17), table[:, 15:] * rng.uniform(0.1, 10)),
        lambda: np.delete(table, row, axis=0),
        lambda: np.delete(table, column, axis=1),
        lambda: np.insert(table, row, table[row], axis=0),
        lambda: table.T,
        lambda: table[:0],
        lambda: table[None],
        lambda: table.astype(rng.choice(TYPES)),
    )
    out = io.BytesIO()
    np.save(out, kinds[int(rng.integers(len(kinds)))](), allow_pickle=True)
    return out.getvalue()


def _with(table: np.ndarray, row: Any, column: Any, value: Any) -> np.ndarray:
    table = table.copy()
    table[row, column] = value
    return table
