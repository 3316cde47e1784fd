import dataclasses
from typing import Any

import equinox as eqx
import jax

from .._typing import Array, Bool, PyTree, RandomKey, Scalar
from ..images import AbstractColorSpace, Linear, SRGB
from ..rays import Medium, Ray, Section, Span
from ._node import AbstractNode
from ._scene import Scene
from ._stage import is_lit
from ._volume import Volume


class Linearised(AbstractNode):
    """A volume in a scene with lights: its colours are decoded to linear light.

    **Arguments:**

    - `volume`: which says what its colours are.
    """

    volume: Volume

    def span(self, ray: Ray) -> Span:
        return self.volume.span(ray)

    def prepare(self, ray: Ray) -> PyTree:
        return self.volume.prepare(ray)

    def propose(self, section: Section, prepared: PyTree) -> Scalar:
        return self.volume.propose(section, prepared)

    def occupied(self, ray: Ray, part: Span) -> Bool[Array, ""]:
        return self.volume.occupied(ray, part)

    def medium(self, section: Section, prepared: PyTree, *, key: RandomKey | None = None) -> Medium:
        medium = self.volume.medium(section, prepared, key=key)
        return eqx.tree_at(lambda m: m.rgb, medium, self.volume.space.to_linear(medium.rgb))


def color_space(scene: Scene) -> AbstractColorSpace:
    """Which numbers a scene's colours are.

    **Arguments:**

    - `scene`: any.

    **Returns:**

    Linear light where there are lights; else the numbers of picture files.
    """
    return Linear() if is_lit(scene.root) else SRGB()


def linearise(scene: Scene) -> Scene:
    """A scene whose numbers are all in one colour space: linear, if there are lights in it.

    **Arguments:**

    - `scene`: without frozen wrappers.

    **Returns:**

    The scene, its volumes decoded; the same scene if there are no lights.
    """
    if not is_lit(scene.root):
        return scene

    def decode(node: Any) -> Any:
        return Linearised(node) if isinstance(node, Volume) else node

    root = jax.tree.map(decode, scene.root, is_leaf=lambda node: isinstance(node, Volume))
    return dataclasses.replace(scene, root=root)
