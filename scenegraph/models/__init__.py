"""Files of meshes to plain records, and back: glTF, OBJ with MTL, PLY, STL.

Read `_model` first, the record that every reader returns, and `_mesh_checks`, what is repaired and
counted; then a format: `_gltf` with `_fields`, `_gltf_buffers` and `_gltf_materials`, `_obj` with
`_mtl`, `_ply` with `_write_ply`, `_stl`. `_read_model` chooses by the file's ending.
"""

# Internal: for other packages of the library, and for none of its users.
from ._gltf_buffers import write_container
from ._gltf_materials import VIEW_DEPENDENCE
from ._mesh_checks import checked_part, vertex_normals
from ._model import (
    linear_from_srgb,
    Model,
    ModelCamera,
    ModelLight,
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
