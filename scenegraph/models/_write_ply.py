"""PLY files of meshes and of points, binary."""

import os

import numpy as np

from ..io import replace_file


_TYPES = {"<f4": "float", "<f8": "double"}


def write_ply(
    path: str | os.PathLike,
    vertices: np.ndarray,
    normals: np.ndarray,
    colors: np.ndarray,
    faces: np.ndarray | None = None,
    *,
    double: bool = False,
) -> None:
    """Writes vertices `n 3` with normals and colours of bytes, and triangles, or points alone.

    Places are in single precision, unless `double`.
    """
    floats = [(name, "<f8" if double else "<f4") for name in ("x", "y", "z")]
    floats += [(name, "<f4") for name in ("nx", "ny", "nz")]
    bytes_ = [(name, "u1") for name in ("red", "green", "blue")]
    table = np.empty(len(vertices), np.dtype(floats + bytes_))
    columns = np.concatenate([vertices, normals, colors], axis=1)
    for name, column in zip(table.dtype.names or (), columns.T, strict=True):
        table[name] = column
    header = ["ply", "format binary_little_endian 1.0", "comment scenegraph"]
    header += [f"element vertex {len(vertices)}"]
    header += [f"property {_TYPES[kind]} {name}" for name, kind in floats]
    header += [f"property uchar {name}" for name, _ in bytes_]
    data = table.tobytes()
    if faces is not None:
        header += [f"element face {len(faces)}", "property list uchar int vertex_indices"]
        rows = np.empty(len(faces), np.dtype([("n", "u1"), ("corners", "<i4", (3,))]))
        rows["n"], rows["corners"] = 3, faces
        data += rows.tobytes()
    text = "\n".join([*header, "end_header", ""]).encode("ascii")
    replace_file(path, lambda file: file.write(text + data))
