"""The flat scene: what rendering makes of the tree, once a picture.

`_flat` has `flatten`, which stacks the leaves of a scene (`_stacks`) into instances of equal
structure (`_instances`, with `_look_up`), the faces of meshes among them (`_mesh_faces`), and
builds the tree of the others (`_tree`), and of the
bodies of lamps (`_lamps`); `_surface_instances` and `_volume_instances` say what a ray
meets in one of them.
"""

from ._flat import FlatScene as FlatScene

# Internal: for other packages of the library, and for none of its users.
from ._flat import (
    color_space,
    count_sided_surfaces,
    count_surfaces,
    flatten,
    has_surfaces,
    SceneStacks,
    stack_scene_once,
)
from ._instances import (
    Instance,
    InstanceStack,
    locate,
    of_member,
    Places,
    split_large,
    switch,
)
from ._lamps import Glow, has_size
from ._mesh_faces import FaceTree, FACES_OF_LEAF, MeshFace, MeshFaces
from ._stacks import LeafStack
from ._tree import SurfaceTree
from ._surface_instances import (
    albedo_at,
    hit_on_part,
    intersect,
    Occluder,
    occlusion,
    opacity_at,
    part_alphas,
    shade,
    with_own_view,
    world_ball,
)
from ._volume_instances import is_occupied, medium_of, prepare_of, proposal_of, span_of

from .._first_use import finish_import


finish_import(__name__)
