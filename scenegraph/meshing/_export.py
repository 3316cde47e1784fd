"""Scenes to files of meshes and of points."""

import dataclasses
import os
import pathlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np

from .._typing import ArrayLike
from ..assets import save_glb, world_parts
from ..images import as_bytes, Image, Linear, srgb_to_linear
from ..io import FileError
from ..lights import AmbientLight
from ..models import write_ply
from ..numerics import unfreeze
from ..scene import Backdrop, find_contents, Group, open_scene, Scene, Surface
from ..shaders import Constant, ImageTexture, ViewDependent
from ..shapes import TriangleMesh
from ._mesh_volumes import mesh_volumes
from ._opacity_grid import Track
from ._options import MeshOptions


def export_scene(
    scene: Scene,
    path: str | os.PathLike,
    options: MeshOptions = MeshOptions(),
    *,
    points: bool = False,
    z_up: bool = True,
    viewpoints: ArrayLike | None = None,
    origin: Sequence[float] = (0.0, 0.0, 0.0),
    track: Track = iter,
    say: Callable[[str], Any] = lambda text: None,
) -> None:
    """Writes a scene as a file of meshes, its volumes as coloured surfaces.

    Files have linear light. In a scene without lights, whose numbers are sRGB, colours are decoded,
    and an ambient light is added to the file, by which `load_scene` knows; so the file, read again,
    looks as the scene does.

    **Arguments:**

    - `scene`: the scene, of volumes, meshes and analytic shapes.
    - `path`: the path of the file. A `.glb` keeps the tree, with textures or colours of vertices; a
      `.ply` is one mesh in the world with colours of vertices.
    - `options`: the settings by which volumes become meshes.
    - `points`: if true, the file, a `.ply`, has the vertices alone, with normals and colours; those
      of volumes before they are simplified. Keyword only, as is all that follows.
    - `z_up`: if true, a `.glb` is turned so that the scene's z axis points upwards in other
      programs, where y does, and `load_scene` turns it back.
    - `viewpoints`, `track`, `say`: the arguments of `mesh_volumes`.
    - `origin`: the place in the file of the scene's origin, such as the `Views.origin` of the
      pictures, in double precision.

    **Errors:**

    `FileError` for another ending of the path; `ValueError` for a scene without volumes and
    surfaces; and those of `mesh_volumes` and `save_glb`.

    Example: a cloud as a mesh.

    ```python
    cloud = sg.Volume(sg.fields.GaussianBlob([0.0, 0, 0], 0.4, 200.0, [0.9, 0.5, 0.2]))
    sg.meshing.export_scene(sg.Scene(sg.Group(cloud=cloud)), "cloud.glb")
    ```
    """
    path = pathlib.Path(path)
    options = check_export(scene, path, options, points)
    if find_contents(scene).volumes:
        scene = mesh_volumes(scene, options, viewpoints=viewpoints, track=track, say=say)
    scene = in_linear_light(scene)
    if path.suffix.lower() == ".glb":
        save_glb(scene, path, z_up=z_up, origin=origin)
    else:
        _save_ply(scene, path, points, np.asarray(origin, float))


def check_export(
    scene: Scene, path: str | os.PathLike, options: MeshOptions, points: bool
) -> MeshOptions:
    """Refuses what `export_scene` does, and returns the options that the kind of file needs."""
    path, contents = pathlib.Path(path), find_contents(scene)
    _check_path(path, points)
    if not contents.volumes and not contents.surfaces:
        raise ValueError("the scene has neither volumes nor surfaces; there is nothing to export.")
    if path.suffix.lower() != ".ply":
        return options
    return dataclasses.replace(options, faces=None if points else options.faces, texture=None)


def _check_path(path: pathlib.Path, points: bool) -> None:
    endings = (".ply",) if points else (".glb", ".ply")
    if path.suffix.lower() not in endings:
        what = "a file of points" if points else "a file of meshes"
        raise FileError(f"{path} must end in {' or '.join(endings)}, to be {what}.")
    if not path.absolute().parent.is_dir():
        raise FileError(f"there is no folder {path.parent} to write {path.name} into.")


def in_linear_light(scene: Scene) -> Scene:
    """Decodes the colours of a scene without lights, and adds an ambient light, which says so."""
    scene = open_scene(scene)
    if find_contents(scene).lights:
        return scene
    root = jax.tree.map(_decoded, scene.root, is_leaf=lambda x: isinstance(x, Surface))
    children = root.children if isinstance(root, Group) else {"scene": root}
    name = "light" if "light" not in children else "ambient_light"
    background = scene.background
    if isinstance(background, Backdrop):
        background = Backdrop(_decoded_shader(background.shader))
    return Scene(Group(**children, **{name: AmbientLight()}), background=background)


def _decoded(node: Any) -> Any:
    """Decodes the colours of a surface."""
    if not isinstance(node, Surface):
        return node
    shape = node.shape
    if isinstance(shape, TriangleMesh) and shape.colors is not None:
        shape = eqx.tree_at(lambda s: s.colors, shape, srgb_to_linear(shape.colors))
    return Surface(shape, _decoded_shader(node.shader), unfreeze(node.opacity))


def _decoded_shader(shader: Any) -> Any:
    if isinstance(shader, ViewDependent):
        return ViewDependent(_decoded_shader(shader.base), shader.terms, encoded=True)
    kinds = Constant, ImageTexture
    return jax.tree.map(_decoded_colors, shader, is_leaf=lambda x: isinstance(x, kinds))


def _decoded_colors(shader: Any) -> Any:
    if isinstance(shader, Constant):
        return Constant(srgb_to_linear(shader.color))
    if isinstance(shader, ImageTexture):
        return eqx.tree_at(lambda s: s.texels, shader, srgb_to_linear(shader.texels))
    return shader


def _save_ply(scene: Scene, path: pathlib.Path, points: bool, origin: np.ndarray) -> None:
    """Writes all surfaces as one mesh, or their vertices."""
    parts, left_out = world_parts(scene)
    left_out.pop("AmbientLight", None)
    if not parts:
        raise ValueError("no surface of the scene can be made of triangles.")
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    join = lambda name: np.concatenate([getattr(part, name) for part in parts])
    faces = [part.faces + start for part, start in zip(parts, starts[:-1], strict=True)]
    colors = np.asarray(join("colors"), np.float32)
    encoded = as_bytes(Image(colors[None], space=Linear()))[0]
    corners = None if points else np.concatenate(faces)
    vertices = join("vertices") + origin
    # Single precision would round places that are far from the file's origin.
    write_ply(path, vertices, join("normals"), encoded, corners, double=bool(np.any(origin)))
    if left_out:
        shown = "; ".join(f"{count} x {what}" for what, count in left_out.items())
        warnings.warn(f"export_scene: {path}: left out: {shown}", stacklevel=3)
