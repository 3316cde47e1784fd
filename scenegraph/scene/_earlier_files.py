"""Scenes in files of earlier versions."""

import dataclasses
from typing import Any

import jax
import numpy as np

from .._typing import PyTree
from ..numerics import unfreeze
from ..transforms import compose
from ._contents import find_contents
from ._scene import Scene
from ._volume import Volume


def with_own_integrator(tree: PyTree, encoded: Any) -> PyTree:
    """Moves the integrator of a scene to its only volume, if the file knew of none there."""
    if not isinstance(tree, Scene) or tree.integrator is None or not _is_earlier(encoded):
        return tree
    volumes = find_contents(tree).volumes
    if len(volumes) != 1:
        return tree
    integrator = tree.integrator
    # Of media and surfaces together, a scene keeps that of surfaces.
    parts = {field.name for field in dataclasses.fields(integrator)}
    media = integrator.media if {"media", "surfaces"} <= parts else integrator
    rest = dataclasses.replace(integrator, media=None) if media is not integrator else None
    # Those of a user's own, and of surfaces alone, stay.
    if not callable(getattr(media, "media_along", None)):
        return tree
    own = _in_frame(media, unfreeze(volumes[0].transforms))
    is_volume = lambda node: isinstance(node, Volume)
    put = lambda node: dataclasses.replace(node, integrator=own) if is_volume(node) else node
    return dataclasses.replace(jax.tree.map(put, tree, is_leaf=is_volume), integrator=rest)


def _is_earlier(encoded: Any) -> bool:
    """Returns true if a file holds a volume that has no field for its integrator."""
    if not isinstance(encoded, dict | list):
        return False
    if isinstance(encoded, dict) and encoded.get("class") == "scenegraph.scene:Volume":
        return "integrator" not in encoded["fields"]
    parts = encoded.values() if isinstance(encoded, dict) else encoded
    return any(map(_is_earlier, parts))


def _in_frame(media: Any, transforms: tuple) -> Any:
    """Returns an integrator whose step, once of the world, is of a frame below it."""
    names = {field.name for field in dataclasses.fields(media)}
    if "step" not in names or not transforms:
        return media
    # |A^-1 d| / |d|, of a similarity 1 / det(A)^(1/3)
    scale = np.abs(np.linalg.det(np.asarray(compose(transforms).matrix))) ** (1 / 3)
    return dataclasses.replace(media, step=media.step / float(scale))
