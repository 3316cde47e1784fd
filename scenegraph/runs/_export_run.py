import os
from collections.abc import Callable
from typing import Any

from ..cameras import NDCCamera
from ..meshing import export_scene, MeshOptions
from ..rendering import Track
from ..scene import load, Scene
from ._paths import path_context
from ._run import Run, silent


def export_run(
    run: Run,
    out: str | os.PathLike,
    options: MeshOptions = MeshOptions(),
    *,
    scene: Scene | None = None,
    points: bool = False,
    z_up: bool = False,
    track: Track = iter,
    say: Callable[[str], Any] = silent,
) -> None:
    """Writes the surface of a run's scene as a file of meshes.

    Colours are means over the places of the cameras of the run's pictures.

    **Arguments:**

    - `run`: the run.
    - `out`: the path of the file, which ends in `.glb` or `.ply`.
    - `options`: the settings of the mesh.
    - `scene`: the scene; by default the saved one. Keyword only, as is all that follows.
    - `points`, `z_up`, `track`, `say`: the arguments of `meshing.export_scene`.

    **Errors:**

    `ValueError` for a run in NDC, whose space is bent; and those of `meshing.export_scene`.
    """
    run.load_config()  # A folder that is no run is refused first.
    known = path_context(run)
    if isinstance(known.camera, NDCCamera):
        raise ValueError(
            f"{run.folder} was fitted in NDC, whose space is bent: its surface is no mesh of the "
            "world. Fit the data without NDC (`--no-ndc`)."
        )
    scene = load(run.folder) if scene is None else scene
    export_scene(
        scene,
        out,
        options,
        points=points,
        z_up=z_up,
        viewpoints=known.poses()[:, :3, 3],
        track=track,
        say=say,
    )
