"""Scenes from and to files of meshes: glTF, OBJ, PLY and STL.

Read `_load`, `_build`, `_materials` and `_mesh_shape` (files to scenes), `_save`, `_looks`,
`_texture_maps`, `_material_fields`, `_glb`, `_triangulate`, `_placing` and `_parts` (scenes to
files), `_framing` with `_walk` (a view and lights).
"""

from ._framing import add_lights as add_lights, frame_camera as frame_camera
from ._load import load_scene as load_scene
from ._save import save_glb as save_glb

# Internal: for other packages of the library, and for none of its users.
from ._framing import camera_path, scene_camera
from ._names import unique_names
from ._parts import world_parts
from ._walk import copies, matrix_of

from .._first_use import finish_import


finish_import(__name__)
