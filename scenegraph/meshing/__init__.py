"""Volumes to meshes: grids of opacity, marching cubes, textures baked from fields; files.

In reading order: `_options`; `_opacity_grid` (the density on a grid), `_surface` (its triangles),
`_atlas`, `_occlusion` and `_colors` (the texture), `_mesh_volumes` (the new scene), `_export`
(files).
"""

from ._export import export_scene as export_scene
from ._mesh_volumes import mesh_volumes as mesh_volumes
from ._options import MeshOptions as MeshOptions

# Internal: for other packages of the library, and for none of its users.
from ._export import check_export

from .._first_use import finish_import


finish_import(__name__)
