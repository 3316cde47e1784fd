"""A ball of known radius, photographed from 32 places, fitted and exported as a mesh."""

import json
import pathlib
import tempfile
import time

import numpy as np
from measure import report


MIDDLE, RADIUS = np.array([0.3, -0.2, 0.8]), 0.8


def main(
    width: int = 160,
    steps: int = 900,
    resolution: int = 256,
    folder: pathlib.Path | None = None,
    out: pathlib.Path = pathlib.Path("docs/benchmarks/ball.json"),
) -> None:
    """Measures the radius of the ball's mesh, and that of a run folder that is given.

    The ball lies on a floor; both have smooth patterns. A sphere is fitted to the mesh's vertices
    about it; those near to the floor, of which no picture shows enough, are left out.
    """
    from scenegraph.cli import main as scenegraph

    with tempfile.TemporaryDirectory() as place:
        begin = time.process_time()
        run = folder or pathlib.Path(place, "run")
        if folder is None:
            data = _photograph(pathlib.Path(place, "ball"), width)
            flags = ["--steps", str(steps), "--batch-size", "1024", "--film", "none"]
            assert scenegraph(["fit", str(data), "--out", str(run), *flags]) == 0
        fitted = time.process_time()
        box = ["--box", *"-1 -1 -1 1 1 1".split(), "--resolution", str(resolution)]
        path = pathlib.Path(place, "ball.ply")
        assert scenegraph(["export", str(run), str(path), *box]) == 0
        found = _measure(path)
        print(found, flush=True)
        scores = json.loads((run / "metrics.json").read_text())
        report(
            out,
            {
                "radius": RADIUS,
                "width": width,
                "steps": steps,
                "resolution": resolution,
                "seconds_of_fit": None if folder else round(fitted - begin, 1),
                "seconds_of_export": round(time.process_time() - fitted, 1),
                "psnr": scores["psnr"],
                "mesh": found,
            },
        )


def _photograph(folder: pathlib.Path, width: int) -> pathlib.Path:
    """Renders the pictures, and lists them with their cameras as nerfstudio does."""
    from scipy.ndimage import zoom

    import scenegraph as sg
    from scenegraph.cameras import pose_matrix

    rng = np.random.default_rng(0)

    def pattern(count: int, size: float) -> sg.ImageTexture:
        colors = rng.uniform(size=(count, count, 3))
        smooth = zoom(colors, (8, 8, 1), order=3, mode="grid-wrap", grid_mode=True)
        return sg.ImageTexture(np.clip(smooth, 0.05, 0.95), [size, size], repeat=True)

    ball = sg.Surface(sg.Sphere(MIDDLE, RADIUS), pattern(8, 1.0))
    floor = sg.Surface(sg.Rectangle([0.0, 0, 0], [10.0, 10.0]), pattern(10, 6.0))
    scene = sg.Scene(sg.Group(ball=ball, floor=floor), background=[0.5, 0.6, 0.8])
    (folder / "images").mkdir(parents=True)
    frames, focal, height = [], 0.0, 3 * width // 4
    for number in range(32):
        angle, above = 2 * np.pi * number * 5 / 32, [0.5, 1.2, 2.0, 3.0][number % 4]
        eye = MIDDLE + [2.8 * np.cos(angle), 2.8 * np.sin(angle), above]
        camera = sg.PerspectiveCamera.look_at(eye, MIDDLE, [0.0, 0, 1], 0.9, width, height)
        name, focal = f"images/{number:02d}.png", float(camera.focal)
        sg.render(scene, camera).save(folder / name)
        pose = np.asarray(pose_matrix(camera)).tolist()
        frames.append({"file_path": name, "transform_matrix": pose})
    size = {"w": width, "h": height, "cx": width / 2, "cy": height / 2}
    listing = {"fl_x": focal, "fl_y": focal, **size, "frames": frames}
    (folder / "transforms.json").write_text(json.dumps(listing))
    return folder


def _measure(path: pathlib.Path) -> dict[str, float]:
    """Fits a sphere to the vertices about the ball, each by its distance but for outliers."""
    import trimesh
    from scipy.optimize import least_squares

    vertices = np.asarray(trimesh.load(path, force="mesh", process=False).vertices)
    distance = np.linalg.norm(vertices - MIDDLE, axis=1)
    about = (distance > 0.7 * RADIUS) & (distance < 1.3 * RADIUS) & (vertices[:, 2] > 0.25)
    residual = lambda x: np.linalg.norm(vertices[about] - x[:3], axis=1) - x[3]
    guess = [*MIDDLE, RADIUS]
    fitted = least_squares(residual, guess, loss="soft_l1", f_scale=0.01 * RADIUS).x
    return {
        "vertices": int(about.sum()),
        "radius": round(float(fitted[3]), 4),
        "percent_off": round(float(100 * (fitted[3] / RADIUS - 1)), 2),
        "median_percent_off": round(float(100 * (np.median(distance[about]) / RADIUS - 1)), 2),
        "middle_off": round(float(np.linalg.norm(fitted[:3] - MIDDLE)), 4),
    }
