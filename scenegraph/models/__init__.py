"""Files of meshes to plain records, and back: glTF, OBJ with MTL, PLY, STL.

Read `_model` first, the record that every reader returns, `_mesh_checks` with `_faces`, what is
repaired and counted, `_polygons`, `_beside` and `_pictures` (files that a file names); then a
format: `_gltf` with `_fields`, `_gltf_buffers`, `_gltf_nodes` and `_gltf_materials`, `_obj` with
`_obj_text` and `_mtl`, `_ply` with `_ply_rows` and `_write_ply`, `_stl`. `_read_model` chooses by
the ending.
"""

# Internal: for other packages of the library, and for none of its users.
from ._faces import flat_and_repeated
from ._gltf_buffers import write_container
from ._gltf_materials import VIEW_DEPENDENCE
from ._gltf_nodes import is_singular
from ._mesh_checks import checked_part, vertex_normals
from ._model import (
    linear_from_srgb,
    Model,
    ModelCamera,
    ModelLight,
    ModelLayers,
    ModelMaterial,
    ModelMesh,
    ModelNode,
    ModelPart,
    ModelTexture,
    textures_of,
    ViewTexels,
)
from ._ply import read_points, write_points
from ._read_model import MODEL_ENDINGS, read_model
from ._write_ply import write_ply

from .._first_use import finish_import


finish_import(__name__)
