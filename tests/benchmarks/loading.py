"""Loading files of meshes: seconds of CPU, beside those of trimesh."""

import pathlib
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import report


def main(
    subdivisions: int = 6,
    objects: int = 2000,
    runs: int = 5,
    out: pathlib.Path = pathlib.Path("docs/benchmarks/loading.json"),
) -> None:
    """Times `load_scene`, its reader alone, and trimesh, with and without its merging.

    Meshes are bumpy spheres of `20 * 4 ** subdivisions` triangles; the least of some runs counts.
    """
    import trimesh

    import scenegraph as sg
    from scenegraph.models import read_model

    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files = _write(pathlib.Path(place), subdivisions, objects)
        figures: dict[str, Any] = {}
        for name, path in files.items():
            calls = {
                "load_scene": lambda path=path: sg.load_scene(path),
                "read_model": lambda path=path: read_model(path),
                "trimesh": lambda path=path: trimesh.load(path),
                "trimesh_unprocessed": lambda path=path: trimesh.load(path, process=False),
            }
            figures[name] = {"megabytes": round(path.stat().st_size / 1e6, 2)}
            figures[name] |= _cpu(calls, runs)
            print(name, figures[name], flush=True)
    report(out, {"triangles": 20 * 4**subdivisions, "objects": objects, "files": figures})


def _cpu(calls: dict[str, Callable[[], Any]], runs: int) -> dict[str, float]:
    """Returns the least seconds of CPU of each call, by turns, since other work comes and goes."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for run in range(runs + 1):
        for name, call in calls.items():
            begin = time.process_time()
            call()
            if run:  # The first compiles and imports.
                seconds[name].append(time.process_time() - begin)
    return {name: round(min(found), 5) for name, found in seconds.items()}


def _write(folder: pathlib.Path, subdivisions: int, objects: int) -> dict[str, pathlib.Path]:
    """Writes one mesh in many forms, by their names."""
    import trimesh

    rng = np.random.default_rng(0)
    ball = trimesh.creation.icosphere(subdivisions=subdivisions)
    bumps = 1 + 0.1 * rng.normal(size=(len(ball.vertices), 1))
    mesh = trimesh.Trimesh(ball.vertices * bumps, ball.faces, process=False)
    files = {
        "STL": folder / "a.stl",
        "STL, text": folder / "text.stl",
        "PLY": folder / "a.ply",
        "PLY, colours of vertices": folder / "vertices.ply",
        "PLY, colours of faces": folder / "faces.ply",
        "PLY, text": folder / "text.ply",
        "GLB": folder / "a.glb",
        "OBJ": folder / "a.obj",
        "OBJ, coordinates and normals": folder / "uv.obj",
        f"OBJ, {objects} objects": folder / "objects.obj",
        f"OBJ, {objects} objects, all different": folder / "different.obj",
    }
    for name in ("STL", "PLY", "GLB", "OBJ"):
        mesh.export(files[name])
    mesh.export(files["STL, text"], file_type="stl_ascii")
    mesh.export(files["PLY, text"], encoding="ascii")
    for what in ("vertices", "faces"):
        colors = rng.integers(0, 256, (len(getattr(mesh, what)), 4)).astype(np.uint8)
        kind = {"vertices": "vertex_colors", "faces": "face_colors"}[what]
        colored = mesh.copy()
        colored.visual = trimesh.visual.ColorVisuals(colored, **{kind: colors})
        colored.export(files[f"PLY, colours of {what}"])
    _write_obj(files["OBJ, coordinates and normals"], mesh, rng)
    corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf -3 -2 -1\n"
    lines = (f"o thing{i}\nusemtl m{i % 50}\n{corners}" for i in range(objects))
    files[f"OBJ, {objects} objects"].write_text("".join(lines))
    _write_different(files[f"OBJ, {objects} objects, all different"], objects, rng)
    return files


def _write_different(path: pathlib.Path, objects: int, rng: np.random.Generator) -> None:
    """Writes objects of three to seven vertices, with a material each."""
    lines, materials, count = [f"mtllib {path.stem}.mtl\n"], [], 0
    for i in range(objects):
        corners = rng.normal(size=(3 + i % 5, 3))
        lines.append(f"o thing{i}\nusemtl m{i}\n")
        lines += [f"v {x:.6f} {y:.6f} {z:.6f}\n" for x, y, z in corners]
        lines += [f"f {count + 1} {count + j} {count + j + 1}\n" for j in range(2, len(corners))]
        count += len(corners)
        red, green, blue = rng.random(3)
        materials.append(f"newmtl m{i}\nKd {red:.4f} {green:.4f} {blue:.4f}\nNs {i % 200}\n")
    path.write_text("".join(lines))
    path.with_suffix(".mtl").write_text("".join(materials))


def _write_obj(path: pathlib.Path, mesh: Any, rng: np.random.Generator) -> None:
    uv = rng.uniform(size=(len(mesh.vertices), 2))
    rows = {"v": mesh.vertices, "vt": uv, "vn": mesh.vertex_normals}
    with path.open("w") as file:
        for kind, table in rows.items():
            file.writelines(f"{kind} {' '.join(f'{x:.6f}' for x in row)}\n" for row in table)
        corners = ((f"{i}/{i}/{i}" for i in face) for face in mesh.faces + 1)
        file.writelines(f"f {' '.join(face)}\n" for face in corners)
