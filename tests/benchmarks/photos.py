"""Finding the poses of photographs: seconds, memory and errors, by the number of pictures."""

import json
import multiprocessing
import pathlib
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import report
from PIL import Image as PillowImage


# Helpers of the tests render the photographs.
sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from support.photographs import around, boxes_on_table, photograph, pose_errors  # noqa: E402


def main(
    counts: tuple[int, ...] = (25, 50, 100, 200),
    width: int = 4000,
    height: int = 3000,
    out: pathlib.Path = pathlib.Path("docs/benchmarks/photos.json"),
) -> None:
    """Renders photographs of textured boxes on a table, and finds the poses of some and of all.

    Each number of photographs has a process of its own. Memory is that of the library and of
    COLMAP at their peaks, which are not at the same time; COLMAP's is no less than what the library
    had when it was started.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        poses = _alone(_render, folder, max(counts), width, height)
        figures = []
        for count in sorted(counts):
            figures.append(_alone(_measure, folder, poses, count))
            report(out, {"width": width, "height": height, "counts": figures})


def _alone(call: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function in a process of its own, so that nothing else is in its memory."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(call, arguments)


def _render(folder: pathlib.Path, count: int, width: int, height: int) -> list[np.ndarray]:
    poses = around(count, turns=1.0)
    scene = boxes_on_table(resolution=2048)
    for number, pose in enumerate(poses):
        picture = photograph(scene, pose, width, height, float(width))
        PillowImage.fromarray(picture).save(folder / f"{number:03d}.jpg", quality=90)
    return poses


def _measure(folder: pathlib.Path, poses: list[np.ndarray], count: int) -> dict[str, Any]:
    import scenegraph as sg

    # So many of all, at even steps around the table.
    chosen = np.linspace(0, len(poses), count, endpoint=False).astype(int).tolist()
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        some = pathlib.Path(place) / "photos"
        some.mkdir()
        for number in chosen:
            (some / f"{number:03d}.jpg").hardlink_to(folder / f"{number:03d}.jpg")
        begin, cpu = time.perf_counter(), _cpu()
        stages: dict[str, float] = {}
        found = sg.data.find_poses(
            some, pathlib.Path(place) / "out", progress=lambda stage, *_: _note(stages, stage)
        )
        seconds, cpu = time.perf_counter() - begin, _cpu() - cpu
        listing = json.loads((found.folder / "transforms.json").read_text())
    named = {
        pathlib.Path(frame["file_path"]).name: np.array(frame["transform_matrix"])
        for frame in listing["frames"]
    }
    errors = pose_errors(named, {f"{number:03d}.jpg": poses[number] for number in chosen})
    who = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    peaks = [round(resource.getrusage(one).ru_maxrss / 1024) for one in who]
    times = [*stages.values(), begin + seconds]
    return {
        "pictures": count,
        "placed": len(found.placed),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "stages": {
            stage: round(end - start, 1)
            for (stage, start), end in zip(stages.items(), times[1:], strict=True)
        },
        "place_percent": round(100 * float(np.median(errors[:, 0])), 3),
        "angle_degrees": round(float(np.median(errors[:, 1])), 3),
        "reprojection_error": round(found.reprojection_error, 2),
        "peak_mib": {"library": peaks[0], "colmap": peaks[1]},
    }


def _note(stages: dict[str, float], stage: str) -> None:
    stages.setdefault(stage, time.perf_counter())


def _cpu() -> float:
    """CPU seconds of this process and of those that it has started."""
    who = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(x.ru_utime + x.ru_stime for x in map(resource.getrusage, who))
