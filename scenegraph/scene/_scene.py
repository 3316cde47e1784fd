from typing import Any, ClassVar

import equinox as eqx

from ..numerics import AbstractModule
from ._background import AbstractBackground, as_background
from ._node import check_node
from ._paths import find_part, has_part


class Scene(AbstractModule):
    """A tree of nodes before a background, and how it is integrated.

    `scene["table.ball"]` is the part at a path: a node, a field or a leaf, as it is in the tree;
    `"table.ball" in scene` is true if there is one. The same holds for groups and other nodes.

    **Arguments:**

    - `root`: usually a `Group`.
    - `background`: a background, an environment light, a shader, or a colour.
    - `integrator`: the integrator of rays through the scene, before those of its volumes; `None`
      for each volume's own, or one that suits the nodes.
    """

    root: Any
    background: AbstractBackground = eqx.field(
        converter=as_background, default=(0.0, 0.0, 0.0), kw_only=True
    )
    integrator: Any = eqx.field(default=None, kw_only=True)

    unnamed: ClassVar[str] = "root"

    def __check_init__(self):
        check_node(self.root, "the root of a Scene")

    def __getitem__(self, path: str) -> Any:
        return find_part(self, path)

    def __contains__(self, path: str) -> bool:
        return has_part(self, path)
