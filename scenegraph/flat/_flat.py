"""The flat scene: what rays meet, in world coordinates, stacked by structure."""

import math
import weakref
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer

from .._typing import Array, Bool, PyTree, RandomKey, Scalar
from ..compositing import mix_media
from ..images import AbstractColorSpace, Linear, SRGB
from ..lights import AbstractEnvironment, AbstractLight, AbstractSizedLight, MeshLight
from ..numerics import AbstractModule, is_frozen, safe_norm, unfreeze
from ..rays import Medium, Ray, Section, Span
from ..scene import (
    AbstractBackground,
    Contents,
    find_contents,
    find_lamps,
    has_pattern,
    Leaf,
    Pace,
    resolve_ties,
    Scene,
)
from ..shaders import asks_for_own_view, prepare_textures
from ..shapes import AbstractSmoothShape, FACETED
from ..transforms import compose
from ._instances import Instance, InstanceStack, locate, Places, split_large, stacked
from ._lamps import mesh_lamp, stack_lamps
from ._leaf_tables import LeafRows, tabulate
from ._mesh_faces import is_mesh, MeshFaces, stack_faces
from ._stacks import LeafStack, map_stack, place_stack, stack_leaves, StackedArrays
from ._surface_instances import Occluder
from ._tree import build_tree, SurfaceTree
from ._volume_instances import (
    is_occupied,
    medium_of,
    pace_of,
    prepare_of,
    proposal_of,
    rate_of,
    span_of,
    thickness_of,
)


class FlatScene(AbstractModule):
    """A scene without its tree: every leaf node in the world, nodes of one structure stacked.

    Rendering makes it once a picture; rays then never walk the tree.

    **Arguments:**

    - `surfaces`: stacks of `Surface`s, but for meshes.
    - `occluders`: the same surfaces, stacked by the structure of their shapes alone.
    - `shaders`: their shaders, stacked by structure.
    - `cuts`: booleans by the surface's number, true if its opacity takes no gradient, so that what
      it covers altogether is never seen.
    - `volumes`: stacks of `Volume`s.
    - `lights`: stacks of lights, moved to the world; lamps with a size come after the others, and
      panoramas last, which are prepared.
    - `background`: the colour of rays that nothing stops.
    - `triangles`: the faces of all meshes, in the world; `None` if there are none.
    - `masks`: the opacities of meshes that are shaders, stacked by structure.
    - `tree`: the tree by which rays find occluders; `None` if there are none.
    - `occluders_at`, `shaders_at`: the places of surfaces in those stacks, the large ones split.
    - `lamps`: the places of lamps with a size in `lights`, by body; `None` without. These bodies
      are the last surfaces, and the numbers of such lights are those of their bodies.
    """

    surfaces: tuple[InstanceStack, ...]
    occluders: tuple[InstanceStack, ...]
    shaders: tuple[InstanceStack, ...]
    cuts: Bool[Array, " surfaces"]
    volumes: tuple[InstanceStack, ...]
    lights: tuple[InstanceStack, ...]
    background: AbstractBackground
    triangles: MeshFaces | None = None
    masks: tuple[InstanceStack, ...] = ()
    tree: SurfaceTree | None = None
    occluders_at: Places | None = None
    shaders_at: Places | None = None
    lamps: Places | None = None

    def without_media(self) -> "FlatScene":
        """Returns the surfaces and lights alone."""
        return eqx.tree_at(lambda flat: flat.volumes, self, ())

    def span(self, ray: Ray) -> Span:
        """Returns the smallest part of a ray, in the world, that holds all media."""
        nothing = Span(ray.near, ray.near)
        if not self.volumes:
            return nothing
        spans = _joined(stack.map(partial(span_of, ray=ray)) for stack in self.volumes)
        if spans.near.shape[0] == 1:
            return jax.tree.map(lambda x: x.reshape(()), spans)
        # From the least near to the largest far end, of spans that are not empty.
        hit = spans.far > spans.near
        near = jnp.min(jnp.where(hit, spans.near, jnp.inf))
        far = jnp.max(jnp.where(hit, spans.far, -jnp.inf))
        found = near < jnp.inf
        return Span(jnp.where(found, near, ray.near), jnp.where(found, far, ray.near))

    def prepare(self, ray: Ray) -> PyTree:
        """Computes what all samples of a ray share, stack by stack."""
        return tuple(stack.map(partial(prepare_of, ray=ray)) for stack in self.volumes)

    def occupied(self, ray: Ray, part: Span) -> Bool[Array, ""]:
        """Returns false where a part of a ray is known to be empty."""
        if not self.volumes:
            return jnp.zeros((), bool)
        answers = _joined(
            stack.map(partial(is_occupied, ray=ray, part=part)) for stack in self.volumes
        )
        return jnp.any(answers)

    def pace(self, ray: Ray) -> Pace | None:
        """Returns the pace of the first contracted volume; `None` if there is none."""
        bent = [stack for stack in self.volumes if stack.first().node.contraction is not None]
        return pace_of(bent[0].first(), ray) if bent else None

    def rate(self, ray: Ray) -> Scalar:
        """Returns the length of a ray in a volume's frame per unit of `t`, the largest of all."""
        lengths = [stack.map(partial(rate_of, ray=ray)) for stack in self.volumes]
        return jnp.max(_joined(lengths)) if lengths else safe_norm(ray.direction)

    def thickness(self, ray: Ray, part: Span) -> Scalar:
        """Returns the optical depth of a part of a ray that occupancies know of."""
        if not self.volumes:
            return jnp.zeros_like(part.near)
        one = partial(thickness_of, ray=ray, part=part)
        return jnp.sum(_joined(stack.map(one) for stack in self.volumes))

    def propose(self, section: Section, prepared: PyTree) -> Scalar:
        """Returns the density that the volumes' proposals have at one sample."""
        if not self.volumes:
            return jnp.zeros_like(section.t0)
        one = partial(proposal_of, section=section)
        stacks = zip(self.volumes, prepared, strict=True)
        return jnp.sum(_joined(stack.map(one, ready) for stack, ready in stacks))

    def medium(
        self,
        section: Section,
        prepared: PyTree,
        *,
        key: RandomKey | None = None,
        normal: bool = False,
    ) -> Medium:
        """Returns the sum of all media at one sample.

        Densities add, colours mix in proportion to density. With `normal`, the medium has the
        direction in which the density falls off fastest: `- grad(density)`, of any length.
        """
        if not self.volumes:
            return Medium(jnp.zeros_like(section.t0), jnp.zeros_like(section.gaussian.mean))
        linear = bool(self.lights)
        one = partial(medium_of, section=section, linear=linear, key=key, normal=normal)
        stacks = zip(self.volumes, prepared, strict=True)
        # sigma = sum_i sigma_i and rgb = sum_i sigma_i rgb_i / sigma
        return mix_media(_joined(stack.map(one, ready) for stack, ready in stacks))


class SceneStacks(AbstractModule):
    """A scene of many nodes in few arrays: the stacks of `FlatScene`, in their own frames."""

    surfaces: tuple[LeafStack, ...]
    occluders: tuple[LeafStack, ...]
    shaders: tuple[LeafStack, ...]
    masks: tuple[LeafStack, ...]
    volumes: tuple[LeafStack, ...]
    lights: tuple[LeafStack, ...]
    cuts: tuple[bool, ...] = eqx.field(static=True)
    background: AbstractBackground
    # The numbers of lights that are meshes: these are the last surfaces.
    mesh_lamps: tuple[int, ...] = eqx.field(static=True, default=())


def stack_scene(scene: Scene) -> SceneStacks:
    """Gathers and stacks the leaf nodes of a scene; nothing is computed.

    Frozen wrappers are opened: no gradient passes them. Tied leaves get their value.
    """
    contents = find_contents(scene)
    untie = partial(resolve_ties, scene=scene, known={})
    # Pyramids of textures are built once a picture.
    lamps = [leaf for leaf in find_lamps(contents) if isinstance(leaf.node, MeshLight)]
    leaves = [*contents.surfaces, *(mesh_lamp(leaf, untie) for leaf in lamps)]
    surfaces = tabulate(leaves, untie, prepare_textures)
    known: StackedArrays = {}
    return SceneStacks(
        stack_leaves(surfaces, known=known),
        stack_leaves(surfaces, _occluder_of, known),
        stack_leaves(surfaces, _shader_of, known),
        stack_leaves(surfaces, _mask_of),
        stack_leaves(tabulate(contents.volumes, untie)),
        stack_leaves(tabulate(contents.lights, untie)),
        _cuts(surfaces),
        prepare_textures(unfreeze(untie(scene.background))),
        _mesh_lights(contents.lights),
    )


def _mesh_lights(lights: Sequence[Leaf]) -> tuple[int, ...]:
    """Returns the numbers of lights, and of their copies, that are meshes."""
    kinds = [isinstance(leaf.node, MeshLight) for leaf in lights for _ in range(_copies(leaf))]
    return tuple(number for number, is_mesh in enumerate(kinds) if is_mesh)


def _copies(leaf: Leaf) -> int:
    return math.prod(leaf.counts)


# Parts of surfaces, each with the transforms that count for it.


def _occluder_of(surface: LeafRows) -> tuple:
    node = surface.node
    return Occluder(node.shape, node.opacity), surface.transforms


def _shader_of(surface: LeafRows) -> tuple:
    shader = surface.node.shader
    return shader, surface.transforms if asks_for_own_view(shader) else ()


def _mask_of(surface: LeafRows) -> tuple | None:
    """Returns the shader that is the opacity of a mesh; `None` for all others."""
    node = surface.node
    is_mesh = isinstance(unfreeze(node.shape), FACETED)
    return (node.opacity, ()) if is_mesh and has_pattern(node.opacity) else None


def _cuts(surfaces: Sequence[LeafRows]) -> tuple[bool, ...]:
    """Returns by number which surfaces have opacities that take no gradient."""
    cuts: dict[int, bool] = {}
    for rows in surfaces:
        own = is_frozen(rows.node.opacity)
        # What another leaf gives its opacity can change.
        cuts |= {number: own or frozen for number, frozen in rows.members()}
    return tuple(cuts[i] for i in range(len(cuts)))


# The last scene that was stacked, by its structure and leaves, which are not kept alive by this.
_last: list[tuple[Any, list[weakref.ref], SceneStacks]] = []


def has_surfaces(contents: Contents | SceneStacks) -> bool:
    """Returns true for a scene with surfaces, or with lamps that are visible."""
    if isinstance(contents, SceneStacks):
        lamps = [x for x in contents.lights if isinstance(x.varying[0], AbstractSizedLight)]
        return bool(contents.surfaces or lamps)
    return bool(contents.surfaces or find_lamps(contents))


def count_surfaces(contents: Contents | SceneStacks) -> int:
    """Counts the surfaces of a scene, and all of their copies."""
    return sum(count for _, count in _shapes(contents))


def count_sided_surfaces(contents: Contents | SceneStacks) -> int:
    """Counts surfaces of several parts, such as boxes, and all of their copies."""
    of_one = (AbstractSmoothShape, *FACETED)  # A mesh has its own layers.
    return sum(count for shape, count in _shapes(contents) if not isinstance(shape, of_one))


def _shapes(contents: Contents | SceneStacks) -> list[tuple[Any, int]]:
    """Returns shapes of surfaces, and how many surfaces have one of that structure."""
    if isinstance(contents, SceneStacks):
        return [(stack.varying[0].shape, stack.number.shape[0]) for stack in contents.surfaces]
    return [(leaf.node.shape, math.prod(leaf.counts)) for leaf in contents.surfaces]


def stack_scene_once(scene: Scene, flattened: tuple[list, Any] | None = None) -> SceneStacks:
    """Returns the stacks of a scene; those of the last one without traced leaves are kept.

    `flattened` are its leaves and structure, where they are known.
    """
    leaves, structure = flattened or jax.tree.flatten(scene)
    for known, references, stacks in _last:
        pairs = zip(references, leaves, strict=False)
        same = len(references) == len(leaves) and all(ref() is leaf for ref, leaf in pairs)
        if same and known == structure:
            return stacks
    stacks = stack_scene(scene)
    # Made in a traced function, the stacks of constants are traced, and must not leave it.
    traced = any(isinstance(x, Tracer) for x in jax.tree.leaves(stacks))
    if all(map(eqx.is_array, leaves)) and not traced:
        _last[:] = [(structure, list(map(weakref.ref, leaves)), stacks)]
    return stacks


def flatten(scene: Scene | SceneStacks) -> FlatScene:
    """Gathers what rays meet in a scene, in world coordinates.

    The transforms above every node are composed into one affine map. Nodes of equal structure are
    stacked, so that a hundred spheres, volumes or lights compile like one. Frozen wrappers are
    opened: no gradient passes them. Tied leaves get their value.
    """
    stacks = scene if isinstance(scene, SceneStacks) else stack_scene(scene)
    place = lambda stacks: tuple(map(place_stack, stacks))
    without_meshes = lambda stacks: place(x for x in stacks if not is_mesh(x))
    lights = tuple(map(_lights, sorted(stacks.lights, key=_rank_of_lights)))
    first = len(stacks.cuts) - len(stacks.mesh_lamps)
    lamps = stack_lamps(lights, first, stacks.mesh_lamps)
    occluders = without_meshes(stacks.occluders) + lamps.occluders
    shaders = place(stacks.shaders) + lamps.shaders
    cuts = jnp.asarray((*stacks.cuts, *[True] * lamps.total), bool)
    return FlatScene(
        without_meshes(stacks.surfaces) + lamps.surfaces,
        occluders,
        shaders,
        cuts,
        place(stacks.volumes),
        lamps.lights,
        stacks.background,
        stack_faces([x for x in stacks.occluders if is_mesh(x)]),
        place(stacks.masks),
        build_tree(occluders),
        locate(split_large(occluders), len(cuts)),
        locate(split_large(shaders), len(cuts)),
        lamps.light_of_body,
    )


def _rank_of_lights(stack: LeafStack) -> int:
    """Returns what lights are sorted by: those without a size, lamps with one, and panoramas."""
    light = stack.varying[0]
    return 2 * isinstance(light, AbstractEnvironment) + isinstance(light, AbstractSizedLight)


def _is_environment(stack: LeafStack) -> bool:
    return isinstance(stack.varying[0], AbstractEnvironment)


def _lights(stack: LeafStack) -> InstanceStack:
    """Moves stacked lights to the world, and computes what all rays share of panoramas."""
    if not stack.varying[1] and not _is_environment(stack):
        return place_stack(stack)

    def moved(member: tuple[AbstractLight, tuple]) -> AbstractLight:
        light, transforms = member
        light = light.moved(compose(transforms)) if transforms else light
        return light.prepare() if isinstance(light, AbstractEnvironment) else light

    arrays, rest = eqx.partition(
        map_stack(moved, stack, (stack.varying, stack.shared)), eqx.is_array
    )
    return stacked(Instance(arrays, None, None, stack.number), rest)


def color_space(scene: Scene | SceneStacks) -> AbstractColorSpace:
    """Returns the space of a scene's colours: linear light if there are lights, else sRGB."""
    lights = scene.lights if isinstance(scene, SceneStacks) else find_contents(scene).lights
    return Linear() if lights else SRGB()


def _joined(parts: Iterable[PyTree]) -> PyTree:
    """Concatenates trees of arrays along their leading axes."""
    first, *others = parts
    return jax.tree.map(lambda *xs: jnp.concatenate(xs), first, *others) if others else first
