from typing import Any, ClassVar

import equinox as eqx

from ..transforms import AbstractTransform, as_transform
from ._node import AbstractNode, check_node


class Transformed(AbstractNode):
    """A node in another frame. Paths omit it: the child keeps the path of the whole.

    The density of media in it is per unit length of their own frame, so that scaling a whole scene
    and its camera together leaves the picture as it is.

    **Arguments:**

    - `child`: a node, a light or a camera.
    - `transform`: the map from the child's frame to the frame around it; or its 4x4 matrix, which
      becomes an `Affine`. A `Pose` or a `Similarity` keeps cones in their simple form.
    """

    child: Any
    transform: AbstractTransform = eqx.field(converter=as_transform)

    unnamed: ClassVar[str] = "child"

    def __check_init__(self):
        check_node(self.child, "the child of a Transformed")
