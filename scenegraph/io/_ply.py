import os

import numpy as np


def write_points(path: str | os.PathLike, points: np.ndarray, colors: np.ndarray) -> None:
    """Writes points `n 3` with colours `n 3` of bytes as a PLY file, as text."""
    properties = [f"property float {axis}" for axis in "xyz"]
    properties += [f"property uchar {name}" for name in ("red", "green", "blue")]
    header = ["ply", "format ascii 1.0", f"element vertex {len(points)}", *properties, "end_header"]
    rows = (
        f"{x:.7g} {y:.7g} {z:.7g} {r} {g} {b}"
        for (x, y, z), (r, g, b) in zip(points, colors, strict=True)
    )
    with open(path, "w", encoding="ascii") as file:
        file.writelines(f"{line}\n" for line in (*header, *rows))
