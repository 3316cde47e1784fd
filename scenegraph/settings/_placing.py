"""The corrections of cameras that a scene has, and what they do to pictures."""

import dataclasses

import equinox as eqx
import jax

from ..data import Views
from ..fitting import align_cameras, move_cameras
from ..pixels import known_cameras
from ..scene import Capture, find_capture, Occupancy, Scene
from ._corrections import CAPTURE


# Steps, and rays of a picture, by which the poses of held-out pictures are found, and how much
# longer such a ray takes than a rendered one.
_STEPS, RAYS, BACKWARD = 100, 256, 3
_FEWEST = 20
# Cells of an occupancy forget what they were by this factor. While cameras are wrong, fog is seen
# about everything, and the hull is wide.
_DECAY = 0.6


def with_short_memory(scene: Scene) -> Scene:
    """Returns a scene whose occupancies soon find that a cell has become empty."""
    is_known = lambda node: isinstance(node, Occupancy)
    shorten = lambda known: dataclasses.replace(known, decay=min(known.decay, _DECAY))
    change = lambda node: shorten(node) if is_known(node) else node
    return jax.tree.map(change, scene, is_leaf=is_known)


def find_corrections(scene: Scene) -> Capture | None:
    """Returns the node with corrections of cameras; `None` where none were fitted."""
    capture = find_capture(scene, CAPTURE)
    fitted = capture is not None and (capture.poses is not None or capture.lens is not None)
    return capture if fitted else None


def training_cameras(scene: Scene, views: Views) -> Views:
    """Returns training pictures with the cameras that were fitted to them."""
    capture = find_corrections(scene)
    if capture is None:
        return views
    return eqx.tree_at(lambda v: v.cameras, views, capture.corrected())


def moved_cameras(scene: Scene, views: Views) -> Views:
    """Returns pictures with cameras moved as the scene's were moved on the whole."""
    capture = find_corrections(scene)
    return views if capture is None else move_cameras(capture, views)


def is_of_training(scene: Scene, views: Views) -> bool:
    """Returns true if a scene has a camera for each of these training pictures."""
    capture = find_corrections(scene)
    if capture is None:
        return False
    return known_cameras(views).near.shape == capture.cameras.near.shape


def place_cameras(scene: Scene, views: Views, split: str, steps: int) -> tuple[Views, str | None]:
    """Places the cameras of pictures to be scored, and says how; the sentence may be `None`."""
    if find_corrections(scene) is None:
        return views, None
    if split == "train" and is_of_training(scene, views):
        return training_cameras(scene, views), "corrected by the fit"
    if steps < _FEWEST:
        moved = align_cameras(scene, views, name=CAPTURE, steps=0)
        return moved, "moved by the similarity of given and corrected training cameras"
    placed = align_cameras(scene, views, name=CAPTURE, steps=steps, rays=RAYS)
    return placed, (
        "moved by the similarity of given and corrected training cameras; then the pose of each "
        f"picture, and nothing else, was fitted to it ({steps} steps of {RAYS} of its rays)"
    )


def alignment_steps(affordable: int | None) -> int:
    """Returns the steps of an alignment, of which so many may be taken; `None` for any."""
    return _STEPS if affordable is None else min(_STEPS, affordable)


def alignment_rays(frames: int) -> int:
    """Returns the rays of an alignment, in as many as take as long when they are rendered."""
    return _STEPS * RAYS * BACKWARD * frames
