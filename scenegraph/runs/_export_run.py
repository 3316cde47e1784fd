import dataclasses
import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..cameras import NDCCamera
from ..fitting import AbstractCallback
from ..io import FileError
from ..meshing import check_export, export_scene, mesh_volumes, MeshOptions
from ..pixels import Views
from ..rendering import Track
from ..scene import load_whole, Scene
from ..settings import DataSettings
from ._paths import path_context
from ._refine_meshes import RAYS, refine_meshes
from ._run import Run, silent


def export_run(
    run: Run,
    out: str | os.PathLike,
    options: MeshOptions = MeshOptions(),
    *,
    scene: Scene | None = None,
    points: bool = False,
    z_up: bool = True,
    refine: int = 0,
    callbacks: Sequence[AbstractCallback] = (),
    track: Track = iter,
    say: Callable[[str], Any] = silent,
) -> None:
    """Writes the surface of a run's scene as a file of meshes, after `refine` steps of refining it.

    Colours are means over the places of the cameras of the run's pictures. These are made smaller
    for refining, if the steps would see less than each of their pixels twice.
    """
    config, _ = run.load_config()  # A folder that is no run is refused first.
    if refine and points:
        raise ValueError("points cannot be refined: they are no surface.")
    known = path_context(run)
    if isinstance(known.camera, NDCCamera):
        raise ValueError(
            f"{run.folder} was fitted in NDC, whose space is bent: its surface is no mesh of the "
            "world. Fit the data without NDC (`--no-ndc`)."
        )
    scene = load_whole(run.folder) if scene is None else scene
    viewpoints = known.poses()[:, :3, 3]
    if refine:
        views = _pictures(config.data, run.data_folder(), refine, say)
        options = check_export(scene, out, options, points)
        scene = mesh_volumes(scene, options, viewpoints=viewpoints, track=track, say=say)
        scene = refine_meshes(scene, views, refine, callbacks=callbacks)
    export_scene(
        scene,
        out,
        options,
        points=points,
        z_up=z_up,
        viewpoints=viewpoints,
        origin=run.origin(),
        track=track,
        say=say,
    )


# So often, about, refining sees every pixel: of those that are seen less, colours follow the noise.
_LOOKS = 2
# Pictures are not made smaller than so many pixels along a side.
_LEAST_SIDE = 64


def _pictures(data: DataSettings, folder: os.PathLike, steps: int, say: Callable) -> Views:
    """Loads pictures, so small that the steps see each pixel about twice, if their sides allow."""
    whole = data.load(folder, "train")
    smaller = shrink_factor(np.asarray(whole.widths), np.asarray(whole.heights), steps)
    if smaller == 1:
        return whole
    try:
        views = dataclasses.replace(data, downscale=smaller * data.downscale).load(folder, "train")
    except FileError:  # Some formats need a folder of pictures of that size.
        return whole
    # Some shrink the pictures of another folder, which may be small already.
    if np.any(np.abs(np.asarray(views.widths) - np.asarray(whole.widths) / smaller) > 1):
        return whole
    say(f"refining by pictures {smaller} times smaller: of larger ones {steps:,} steps see little")
    return views


def shrink_factor(widths: np.ndarray, heights: np.ndarray, steps: int) -> int:
    """Returns how many times smaller pictures have to be for so many steps of refining."""
    # steps rays = looks pixels / factor^2
    pixels = float(np.sum(widths.astype(float) * heights))
    factor = math.ceil(math.sqrt(_LOOKS * pixels / (steps * RAYS)))
    return max(1, min(factor, int(min(widths.min(), heights.min())) // _LEAST_SIDE))
