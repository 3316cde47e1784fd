import os
from collections.abc import Callable, Sequence
from typing import Any

from ..cameras import NDCCamera
from ..fitting import AbstractCallback
from ..meshing import check_export, export_scene, mesh_volumes, MeshOptions
from ..rendering import Track
from ..scene import load, Scene
from ._paths import path_context
from ._refine_meshes import refine_meshes
from ._run import Run, silent


def export_run(
    run: Run,
    out: str | os.PathLike,
    options: MeshOptions = MeshOptions(),
    *,
    scene: Scene | None = None,
    points: bool = False,
    z_up: bool = False,
    refine: int = 0,
    callbacks: Sequence[AbstractCallback] = (),
    track: Track = iter,
    say: Callable[[str], Any] = silent,
) -> None:
    """Writes the surface of a run's scene as a file of meshes, after `refine` steps of refining it.

    Colours are means over the places of the cameras of the run's pictures.
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
    scene = load(run.folder) if scene is None else scene
    viewpoints = known.poses()[:, :3, 3]
    if refine:
        views = config.data.load(run.data_folder(), "train")
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
        track=track,
        say=say,
    )
