"""The walk over the tree: its leaf nodes with the transforms above them."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..cameras import AbstractCamera, MovedCamera
from ..filters import AbstractFilter
from ..lights import AbstractLight, AbstractSizedLight, MeshLight
from ..numerics import Frozen, is_frozen, unfreeze
from ..transforms import AbstractTransform
from ._capture import Capture
from ._copies import Instances, unfold
from ._group import Group
from ._scene import Scene
from ._surface import Surface
from ._ties import resolve_ties
from ._transformed import Transformed
from ._volume import Volume


class Leaf(NamedTuple):
    """A node that holds no further nodes, in its own frame, and the transforms above it."""

    path: str
    node: Any
    transforms: tuple[AbstractTransform, ...]  # the outermost first
    frozen: bool  # the node is, or lies in, a frozen node, and takes no gradient
    counts: tuple[int, ...] = ()  # of copies by each `Instances` around it, the outermost first


@dataclass(frozen=True)
class Contents:
    """The leaf nodes of a scene by kind, sorted by name."""

    surfaces: tuple[Leaf, ...]
    volumes: tuple[Leaf, ...]
    lights: tuple[Leaf, ...]
    cameras: tuple[Leaf, ...]


def find_contents(scene: Scene) -> Contents:
    """Walks the tree once. Frozen wrappers about nodes are opened, nothing is computed.

    The places of tied leaves stay as they are but in `Instances`; see `open_scene`.
    """
    leaves = list(_leaves(scene))
    kinds = Surface, Volume, AbstractLight, AbstractCamera
    return Contents(*(tuple(x for x in leaves if isinstance(x.node, kind)) for kind in kinds))


def _leaves(scene: Scene) -> Iterator[Leaf]:
    """Yields the leaf nodes of a scene."""
    return _walk(Leaf("", scene.root, (), False), scene)


def _walk(at: Leaf, scene: Scene) -> Iterator[Leaf]:
    """Yields the leaf nodes at or below a node."""
    node = at.node
    if isinstance(node, Group):
        for name, child in sorted(node.children.items()):
            path = f"{at.path}.{name}" if at.path else name
            yield from _walk(Leaf(path, child, *at[2:]), scene)
    elif is_frozen(node):
        yield from _walk(at._replace(node=node.value, frozen=True), scene)
    elif isinstance(node, Transformed):
        transforms = *at.transforms, node.transform
        yield from _walk(at._replace(node=node.child, transforms=transforms), scene)
    elif isinstance(node, Instances):
        # A copy may have its own value where the child's leaf is tied.
        node = resolve_ties(node, scene)
        child, transform = unfold(node, len(at.counts))
        transforms, counts = (*at.transforms, transform), (*at.counts, node.count)
        yield from _walk(at._replace(node=child, transforms=transforms, counts=counts), scene)
    else:
        yield at


def surface_paths(scene: Scene) -> list[str]:
    """Lists the paths of the surfaces of a scene, in the order of their numbers.

    `render(..., outputs=["surface"])` and `cast_rays` say by such numbers which surface is seen.
    Every copy of an `Instances` has one of its own. Lamps with a size are surfaces, too, and come
    last, those of meshes first.

    **Arguments:**

    - `scene`: the scene.

    **Returns:**

    One path for each surface. Copies have the number of the copy in brackets after the path, from 0
    on: `"forest.leaves[3]"`; within several `Instances` one number for each, the outermost first:
    `"forest.leaves[3, 0]"`. What stands before the bracket is a path in the scene.

    Example: what the middle of a picture shows.

    ```python
    ball = sg.Surface(sg.Sphere(), [1.0, 0.0, 0.0])
    places = [sg.Similarity(translation=[x, 0.0, 0.0]) for x in (-3.0, 0.0, 3.0)]
    floor = sg.Surface(sg.Plane([0.0, 0.0, -1.0]), [0.5, 0.5, 0.5])
    scene = sg.Scene(sg.Group(row=sg.Instances(ball, places), floor=floor))
    camera = sg.PerspectiveCamera.look_at([0, -5, 1], [0, 0, 0], [0, 0, 1], 0.5, 9, 9)
    seen = sg.render(scene, camera, outputs=["surface"]).surface
    print(sg.surface_paths(scene)[int(seen[4, 4])])  # row[1]
    ```
    """
    contents = find_contents(scene)
    paths = [path for leaf in contents.surfaces for path in _paths_of_copies(leaf)]
    return paths + [path for leaf in find_lamps(contents) for path in _paths_of_copies(leaf)]


def find_lamps(contents: Contents) -> list[Leaf]:
    """Returns the lamps with a size among the leaf nodes of a scene, meshes first.

    They are visible, too: in this order, they are the surfaces after all others.
    """
    lamps = [leaf for leaf in contents.lights if isinstance(leaf.node, AbstractSizedLight)]
    return sorted(lamps, key=lambda leaf: not isinstance(leaf.node, MeshLight))


def _paths_of_copies(leaf: Leaf) -> list[str]:
    """Returns the path of a leaf node, or those of its copies, the innermost ones in a row."""
    if not leaf.counts:
        return [leaf.path]
    copies = itertools.product(*map(range, leaf.counts))
    return [f"{leaf.path}[{', '.join(map(str, copy))}]" for copy in copies]


def find_cameras(scene: Scene) -> dict[str, AbstractCamera]:
    """Returns the cameras of a scene in world coordinates, by path."""
    return {leaf.path: _in_world(scene, leaf) for leaf in find_contents(scene).cameras}


def find_camera(scene: Scene, camera: AbstractCamera | str) -> AbstractCamera:
    """Returns a camera, or the one at a path in the scene, in world coordinates."""
    if isinstance(camera, AbstractCamera):
        return camera
    found = find_cameras(scene)
    if camera not in found:
        known = ", ".join(sorted(found)) or "none"
        raise ValueError(f"there is no camera at {camera!r}; cameras in the scene: {known}.")
    return found[camera]


def find_capture(scene: Scene, path: str) -> Capture | None:
    """Returns the `Capture` at a path, if there is one; its cameras are in the world."""
    found = {leaf.path: leaf for leaf in _leaves(scene)}
    leaf = found.get(path)
    if leaf is None or not isinstance(leaf.node, Capture):
        return None
    if leaf.transforms:
        raise ValueError(f"the Capture {path!r} must not be moved: put it beside what is.")
    return unfreeze(Frozen(leaf.node) if leaf.frozen else leaf.node)


def camera_paths(scene: Scene) -> list[str]:
    """Lists the paths of the cameras of a scene, sorted."""
    return sorted(leaf.path for leaf in find_contents(scene).cameras)


def find_filter(scene: Scene, path: str) -> AbstractFilter:
    """Returns the filter at a path; refuses one at which there is none."""
    is_filter = lambda leaf: isinstance(leaf.node, AbstractFilter)
    found = {leaf.path: leaf for leaf in _leaves(scene) if is_filter(leaf)}
    if path not in found:
        known = ", ".join(sorted(found)) or "none"
        raise ValueError(f"there is no filter at {path!r}; filters in the scene: {known}.")
    found_filter = resolve_ties(found[path].node, scene)
    return unfreeze(Frozen(found_filter) if found[path].frozen else found_filter)


def _in_world(scene: Scene, leaf: Leaf) -> AbstractCamera:
    camera, transforms = resolve_ties((leaf.node, leaf.transforms), scene)
    for transform in reversed(transforms):
        camera = MovedCamera(transform, camera)
    return unfreeze(Frozen(camera)) if leaf.frozen else camera
