"""Balls of known radius, photographed from 32 places, fitted and exported as meshes."""

import json
import pathlib
import tempfile
import time
from typing import NamedTuple

import numpy as np
from measure import report


class Capture(NamedTuple):
    """A ball above a floor, and the cameras about it."""

    middle: tuple[float, float, float]
    radius: float
    # Of the cameras: how far from the target, how high above it, and what they look at beside the
    # middle of the ball.
    distance: float
    heights: tuple[float, ...]
    aside: tuple[float, float, float] = (0.0, 0.0, 0.0)
    field_of_view: float = 0.9
    turns: int = 5
    # Of the patterns: their seed, how large they are, and the least and largest colour.
    seed: int = 0
    pattern: float = 1.0
    darkest: tuple[float, float, float] = (0.05, 0.05, 0.05)
    brightest: tuple[float, float, float] = (0.95, 0.95, 0.95)


CAPTURES = {
    "middle": Capture((0.3, -0.2, 0.8), 0.8, 2.8, (0.5, 1.2, 2.0, 3.0)),
    "small": Capture(
        (-0.9, 0.7, 1.0),
        0.6,
        2.6,
        (-0.3, 0.4, 1.4, 2.2),
        aside=(0.5, -0.3, -0.2),
        field_of_view=1.0,
        turns=7,
        seed=1,
        pattern=0.7,
        darkest=(0.3, 0.05, 0.05),
        brightest=(0.95, 0.6, 0.3),
    ),
    "large": Capture(
        (1.6, 1.1, 1.4),
        1.4,
        4.2,
        (0.2, 1.5, 3.0, 4.5),
        aside=(-0.6, 0.4, 0.0),
        turns=9,
        seed=2,
        pattern=1.6,
        darkest=(0.05, 0.2, 0.3),
        brightest=(0.5, 0.9, 0.95),
    ),
}


def main(
    name: str = "middle",
    width: int = 160,
    steps: int = 900,
    resolution: int = 256,
    folder: pathlib.Path | None = None,
    out: pathlib.Path = pathlib.Path("docs/benchmarks/ball.json"),
) -> None:
    """Measures the radius of a ball's mesh, and that of a run folder that is given.

    The ball lies on a floor, or hangs above it; both have smooth patterns. A sphere is fitted to
    the mesh's vertices about it; those near to the floor, of which no picture shows enough, are
    left out.
    """
    from scenegraph.cli import main as scenegraph

    capture = CAPTURES[name]
    with tempfile.TemporaryDirectory() as place:
        begin = time.process_time()
        run = folder or pathlib.Path(place, "run")
        if folder is None:
            data = _photograph(capture, pathlib.Path(place, "ball"), width)
            flags = ["--steps", str(steps), "--batch-size", "1024", "--film", "none"]
            assert scenegraph(["fit", str(data), "--out", str(run), *flags]) == 0
        fitted = time.process_time()
        box = ["--box", *"-1 -1 -1 1 1 1".split(), "--resolution", str(resolution)]
        path = pathlib.Path(place, "ball.ply")
        assert scenegraph(["export", str(run), str(path), *box]) == 0
        found = _measure(capture, path)
        print(found, flush=True)
        scores = json.loads((run / "metrics.json").read_text())
        report(
            out,
            {
                "capture": name,
                "radius": capture.radius,
                "width": width,
                "steps": steps,
                "resolution": resolution,
                "seconds_of_fit": None if folder else round(fitted - begin, 1),
                "seconds_of_export": round(time.process_time() - fitted, 1),
                "psnr": scores["psnr"],
                "mesh": found,
            },
        )


def _photograph(capture: Capture, folder: pathlib.Path, width: int) -> pathlib.Path:
    """Renders the pictures, and lists them with their cameras as nerfstudio does."""
    from scipy.ndimage import zoom

    import scenegraph as sg
    from scenegraph.cameras import pose_matrix

    rng = np.random.default_rng(capture.seed)

    def pattern(count: int, size: float) -> sg.ImageTexture:
        colors = rng.uniform(size=(count, count, 3))
        smooth = zoom(colors, (8, 8, 1), order=3, mode="grid-wrap", grid_mode=True)
        texels = np.clip(smooth, capture.darkest, capture.brightest)
        return sg.ImageTexture(texels, [size, size], repeat=True)

    middle, distance = np.asarray(capture.middle), capture.distance
    target = middle + capture.aside
    ball = sg.Surface(sg.Sphere(middle, capture.radius), pattern(8, capture.pattern))
    floor = sg.Surface(sg.Rectangle([0.0, 0, 0], [10.0, 10.0]), pattern(10, 6.0))
    scene = sg.Scene(sg.Group(ball=ball, floor=floor), background=[0.5, 0.6, 0.8])
    (folder / "images").mkdir(parents=True)
    frames, focal, height = [], 0.0, 3 * width // 4
    for number in range(32):
        angle, above = 2 * np.pi * number * capture.turns / 32, capture.heights[number % 4]
        eye = target + [distance * np.cos(angle), distance * np.sin(angle), above]
        camera = sg.PerspectiveCamera.look_at(
            eye, target, [0.0, 0, 1], capture.field_of_view, width, height
        )
        name, focal = f"images/{number:02d}.png", float(camera.focal)
        sg.render(scene, camera).save(folder / name)
        pose = np.asarray(pose_matrix(camera)).tolist()
        frames.append({"file_path": name, "transform_matrix": pose})
    size = {"w": width, "h": height, "cx": width / 2, "cy": height / 2}
    listing = {"fl_x": focal, "fl_y": focal, **size, "frames": frames}
    (folder / "transforms.json").write_text(json.dumps(listing))
    return folder


def _measure(capture: Capture, path: pathlib.Path) -> dict[str, float]:
    """Fits a sphere to the vertices about the ball, each by its distance but for outliers."""
    import trimesh
    from scipy.optimize import least_squares

    vertices = np.asarray(trimesh.load(path, force="mesh", process=False).vertices)
    middle, radius = np.asarray(capture.middle), capture.radius
    distance = np.linalg.norm(vertices - middle, axis=1)
    about = (distance > 0.7 * radius) & (distance < 1.3 * radius)
    about &= vertices[:, 2] > middle[2] - 0.7 * radius
    residual = lambda x: np.linalg.norm(vertices[about] - x[:3], axis=1) - x[3]
    guess = [*middle, radius]
    fitted = least_squares(residual, guess, loss="soft_l1", f_scale=0.01 * radius).x
    return {
        "vertices": int(about.sum()),
        "radius": round(float(fitted[3]), 4),
        "percent_off": round(float(100 * (fitted[3] / radius - 1)), 2),
        "median_percent_off": round(float(100 * (np.median(distance[about]) / radius - 1)), 2),
        "middle_off": round(float(np.linalg.norm(fitted[:3] - middle)), 4),
    }
