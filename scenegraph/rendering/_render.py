import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh, SingleDeviceSharding

from .._jax import trace_state_clean
from .._typing import Array, Device, Int, PyTree, RandomKey, Scalar
from ..cameras import AbstractCamera
from ..filters import AbstractFilter
from ..flat import (
    color_space,
    count_sided_surfaces,
    count_surfaces,
    FlatScene,
    flatten,
    SceneStacks,
    stack_scene_once,
)
from ..images import AbstractColorSpace, Image
from ..integrators import (
    AbstractIntegrator,
    choose_integrator,
    fixed_key,
    follows_light,
    is_of_surfaces,
    uses_lists,
    with_more_surfaces,
)
from ..numerics import as_type, common_type, unfreeze
from ..parallel import (
    device_mesh,
    is_on_explicit_mesh,
    map_over_devices,
    mesh_of,
    whole_on,
    with_automatic_axes,
)
from ..rows import map_rows
from ..scene import check_leaves, Contents, find_camera, find_contents, Scene
from ..visibility import count_touched
from ._chunks import choose_chunk
from ._pixel_order import PixelOrder, TILE_SIDE
from ._pixels import ALWAYS, Pixels
from ._subpixels import parts_along_side, split_pixels, subpixel_rays
from ._warnings import check_scene, is_traced, report_overflow


# Names of what a picture may hold.
_OUTPUTS = (
    *ALWAYS,
    "normal",
    "median_depth",
    "albedo",
    "uv",
    "position",
    "surface",
    "variance",
    "candidates",
)


def render(
    scene: Scene,
    camera: AbstractCamera | str,
    integrator: AbstractIntegrator | None = None,
    *,
    key: RandomKey | None = None,
    filters: AbstractFilter | Sequence[AbstractFilter] = (),
    chunk: int | Literal["auto"] = "auto",
    devices: Sequence[Device] | None = None,
    outputs: Sequence[str] = ALWAYS,
    samples_per_pixel: int = 1,
) -> Image:
    """Renders a picture: one compiled, differentiable function of the scene.

    **Arguments:**

    - `scene`: the scene to render.
    - `camera`: a camera, or the path of one in the scene.
    - `integrator`: the integrator; by default the scene's own, or those of its volumes.
    - `key`: the key of jitter and noise; `None` is deterministic. Keyword only argument.
    - `filters`: a filter, or several in order, to apply to the picture. Keyword only argument.
    - `chunk`: the number of rays that a device works on at a time, or of a CPU each thread, though
      at least those of one pixel; the memory that a picture and its gradient take grows with it,
      the picture does not change. Keyword only argument.
    - `devices`: the devices that share the pixels; by default those on which the scene or the
      camera lies, such as those of a fit, or else all of this process. In a traced function, where
      that is not known, the default is to leave it to JAX. Keyword only argument.
    - `outputs`: names of the fields of the picture to compute: `"rgb"`, `"alpha"` and `"depth"`,
      which are always there; `"normal"`, the mean normal, turned to the eye, which for media is
      minus the gradient of the density and takes about twice as long; `"median_depth"`;
      `"albedo"`, the mean base colour without light, which for media is their own; `"position"`,
      the mean position in the world; `"surface"`, the number of the surface that adds most to the
      pixel, which `sg.surface_paths` names, and -1 where there is none; `"uv"`, the coordinates on
      that surface; `"variance"`, that of the colours as estimates by the random samples of a
      `Path`, which no other integrator has; `"candidates"`, the number of surfaces, and of faces of
      meshes, whose bounds the pixel may touch. What is not named is not computed. Keyword only
      argument.
    - `samples_per_pixel`: the number of cones of every pixel, `n * n`; the pixel is split into as
      many squares. With 1, the pixel is one cone, whose footprint filters edges and patterns; more
      of them give what one cone approximates (see the documentation's page on surfaces), and take
      as many times as long. Colours and opacities are their means; depths, normals, albedos and
      positions are weighted by opacity, and the median depth is the weighted median of theirs. The
      surface is that which most of them show, and `uv` that of the one nearest to the pixel's
      middle that shows it. Keyword only argument.

    **Returns:**

    The picture.

    **Errors:**

    `ValueError` for a path at which there is no camera, a chunk below one, an unknown output, a
    leaf that is not finite, `samples_per_pixel` that is not a square, or an integrator that cannot
    compute an output; `TypeError` for a leaf that does not fit its node, by its path. Where rays
    meet more surfaces than they have layers, the picture is drawn again with more, and a warning
    says so if these do not do; in a traced function see `Image.overflow`. Warns if shaders have no
    light, and of values that an optimiser put out of range.
    """
    flattened = jax.tree.flatten(scene)
    check_leaves(scene, flattened=flattened)
    eye = find_camera(scene, camera)
    check_leaves(eye, "the camera")
    extras, side = check_outputs(outputs), parts_along_side(samples_per_pixel)
    leaves = [*flattened[0], *jax.tree.leaves(eye)]
    traced = is_traced(leaves) or not trace_state_clean()
    placed, eye, mesh = placed_on(scene, eye, None if traced else leaves, devices)
    if mesh is None and len(leaves) > _MANY_LEAVES:
        placed = stack_scene_once(placed, flattened)
    contents = placed if isinstance(placed, SceneStacks) else find_contents(scene)
    integrator = choose_integrator(scene, integrator, contents)
    # Stacks that were made in a traced function are traced, even of numbers that are known.
    stacks = None if traced else placed
    check_scene(scene, stacks, contents, needs_lights=not follows_light(integrator))
    filters = (filters,) if isinstance(filters, AbstractFilter) else tuple(filters)
    more = fixed_key(integrator, key), filters, chunk, mesh, extras, side
    draw = lambda integrator: draw_picture(placed, eye, integrator, *more)
    if traced:
        whole = integrator.with_budget(math.inf)
        picture = lambda tree: draw_picture(tree[0], tree[1], whole, *more)[0]
        return with_automatic_axes(picture, (placed, eye))
    integrator = with_first_layers(integrator, contents)
    return draw_completely(draw, integrator, (placed, eye))


def draw_completely(draw: Any, integrator: AbstractIntegrator, like: PyTree) -> Image:
    """Draws a picture, and again with space for more as long as something overflows."""
    first = integrator
    if _enlarged:
        integrator = _enlarged.get(_kind_of((first, like)), first)
    image, missed, requested = draw(integrator)
    for margin in _MARGINS:
        # In a traced function even the number of a constant scene's picture is not known.
        if missed is None or is_traced(missed) or not int(missed):
            break
        larger = _enlarge(integrator, requested, margin)
        if larger == integrator:  # What suffices on average need not do so in every chunk.
            continue
        integrator = larger
        image, missed, requested = draw(integrator)
    if integrator != first and not jax.tree.leaves(integrator):
        _enlarged[_kind_of((first, like))] = integrator
    report_overflow(missed)
    return image


def _kind_of(tree: PyTree) -> Any:
    """Returns what trees have in common that are compiled to the same program."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((jnp.shape(x), jnp.result_type(x)) for x in leaves)


# The integrators with which pictures of scenes of some structure were complete at last: the next
# picture begins there, and is not drawn twice.
_enlarged: dict[Any, AbstractIntegrator] = {}


def with_first_layers(
    integrator: AbstractIntegrator, contents: Contents | SceneStacks
) -> AbstractIntegrator:
    """Returns an integrator with the layers that pictures of some surfaces are begun with."""
    count = count_surfaces(contents)
    if count > _MANY_SURFACES:
        integrator = with_more_surfaces(integrator)
    sided = count_sided_surfaces(contents)
    if sided > _MANY_SIDED and _FEW_SIDED * sided >= count:
        integrator = with_more_surfaces(integrator)
    return integrator


# Pictures of more surfaces are begun with twice the layers, because most need them, and each try is
# another program.
_MANY_SURFACES = 4096
# So are those of more surfaces of which a pixel may show several sides, each a layer, if they are
# at least one in so many of all.
_MANY_SIDED, _FEW_SIDED = 512, 4
# More array leaves than this are stacked before a picture is traced, which takes its time by leaf.
_MANY_LEAVES = 256


# What a picture that overflowed is given in turn, as parts of the samples that it requested.
_MARGINS = (1.25, math.inf, math.inf, math.inf)


def _enlarge(
    integrator: AbstractIntegrator, requested: Scalar | None, margin: float
) -> AbstractIntegrator:
    """Returns an integrator with space for more samples and layers."""
    samples = 0.0 if requested is None else margin * float(requested)
    if samples > (integrator.budget or math.inf):
        integrator = integrator.with_budget(samples)
    return with_more_surfaces(integrator)


def check_outputs(outputs: Sequence[str]) -> tuple[str, ...]:
    """Returns the outputs that are not always there, in a fixed order."""
    names = (outputs,) if isinstance(outputs, str) else tuple(outputs)
    if unknown := [name for name in names if name not in _OUTPUTS]:
        raise ValueError(f"there is no output {unknown[0]!r}; a picture has {', '.join(_OUTPUTS)}.")
    return tuple(name for name in _OUTPUTS if name in names and name not in ALWAYS)


def placed_on(
    scene: Scene, camera: Any, leaves: list | None, devices: Sequence[Device] | None
) -> tuple[Scene, Any, Mesh | None]:
    """Returns scene and camera on the devices that render them, and the mesh of these.

    There are no leaves if some are traced.
    """
    if leaves is None:
        return scene, camera, None if devices is None else device_mesh(devices)
    if devices is None and not is_on_explicit_mesh(leaves):
        return scene, camera, mesh_of(leaves)
    mesh = mesh_of(leaves) if devices is None else device_mesh(devices)
    first = (jax.devices() if devices is None else devices)[0]
    where = SingleDeviceSharding(first) if mesh is None else whole_on(mesh)
    put = lambda x: jax.device_put(x, where) if eqx.is_array(x) else x
    return *jax.tree.map(put, (scene, camera)), mesh


def _pixels_at_a_time(
    chunk: int | Literal["auto"],
    pixels: int,
    side: int,
    integrator: AbstractIntegrator,
    scene: FlatScene,
) -> int:
    """Returns the number of pixels that a device works on at a time."""
    samples, lists, rays = _SAMPLES, uses_lists(integrator, scene), pixels * side**2
    if is_of_surfaces(integrator):
        samples = _SAMPLES_BY_RAY
    elif lists:
        samples = _SAMPLES_AND_LAYERS if scene.shaders else _SAMPLES_LISTED
    size = choose_chunk(chunk, rays, integrator, samples_on_cpu=samples)
    return max(1, size // side**2)


# Samples in a chunk on a CPU. Measured: networks are fastest with fewer, cheap fields with more;
# this serves both. Surfaces alone have no vectors of features, and are fastest with many: chunks of
# gradients are computed twice.
_SAMPLES = 2**14
_SAMPLES_BY_RAY = 2**21
# With media, but many things: lists want bundles of many rays, and those of surfaces more of them.
_SAMPLES_LISTED, _SAMPLES_AND_LAYERS = 2**17, 2**18


@eqx.filter_jit
def draw_picture(
    scene: Scene | SceneStacks,
    camera: AbstractCamera,
    integrator: AbstractIntegrator,
    key: RandomKey | None,
    filters: tuple[AbstractFilter, ...],
    chunk: int | Literal["auto"],
    mesh: Mesh | None,
    extras: tuple[str, ...],
    side: int,
) -> tuple[Image, Int[Array, ""] | None, Scalar | None]:
    """Returns the picture, the number of incomplete pixels, and of samples requested by a pixel."""
    camera, filters = unfreeze((camera, filters))
    dtype = common_type(scene, camera)
    camera, flat = as_type((camera, flatten(scene)), dtype)
    space = color_space(scene)

    some = Pixels(integrator, tuple(name for name in extras if name != "candidates"), side)
    tile = TILE_SIDE if uses_lists(integrator, flat) else 1
    order, shared = PixelOrder(camera.width, camera.height, tile), (flat, camera, key)
    each = -(-camera.width * camera.height // (1 if mesh is None else mesh.size))
    size = _pixels_at_a_time(chunk, each, side, integrator, flat)
    draw, spread = partial(_chunk_by_chunk, some.compute), not is_of_surfaces(integrator)
    pixels, overflow, requested = _in_chunks(draw, shared, order, size, mesh, spread)
    if "candidates" in extras:
        pixels["candidates"] = _count_candidates(flat, camera)
    image = _assemble(pixels, overflow, camera, space)
    for one in filters:
        image = one(image)
    missed = None if overflow is None else jnp.sum(overflow > 0)
    return image, missed, None if requested is None else jnp.mean(requested, dtype=jnp.float32)


def _count_candidates(scene: FlatScene, camera: AbstractCamera) -> Int[Array, " pixels"]:
    """Returns how many surfaces and faces of meshes the pixels of a picture may touch."""
    order, count = PixelOrder(camera.width, camera.height, TILE_SIDE), camera.width * camera.height
    rows = split_pixels(order.pixel(jnp.arange(count)), 1)
    lengths = count_touched(scene, subpixel_rays(camera, rows, 1))
    return jnp.zeros_like(lengths).at[rows.pixel].set(lengths, unique_indices=True)


def _chunk_by_chunk(
    compute: Callable[[Any, Array], PyTree], shared: PyTree, indices: Int[Array, "chunks pixels"]
) -> PyTree:
    """Computes the pixels of all chunks; under `grad`, chunks are rematerialised."""
    if indices.shape[0] == 1:
        return jax.tree.map(lambda x: x[None], compute(shared, indices[0]))
    return jax.lax.map(jax.checkpoint(partial(compute, shared)), indices)


def _in_chunks(
    draw: Any, shared: PyTree, order: PixelOrder, chunk: int, mesh: Mesh | None, spread: bool
) -> Any:
    """Draws pixels chunk by chunk; chunks are put together as a picture."""
    devices, count = 1 if mesh is None else mesh.size, order.width * order.height
    chunks = devices * -(-count // (devices * chunk))
    # Every device has tiles from all over the picture, so that all have about as much to do. So has
    # every chunk whose rays share space for samples; others have neighbours, whose shadow rays go
    # the same way.
    parts, tile = chunks if spread else devices, math.gcd(chunk, order.side**2)
    deal = lambda x: jnp.swapaxes(x.reshape(-1, parts, tile), 0, 1).reshape(chunks, chunk)
    place = deal(jnp.arange(chunks * chunk))
    pixel_of = lambda _, place: order.pixel(jnp.minimum(place, count - 1))
    indices = map_rows(pixel_of, None, place.ravel()).reshape(place.shape)

    def in_order(x: Array) -> Array:
        # Put, not looked up: within a look-up, XLA computes what is looked up number by number.
        if order.side == parts == 1:
            return x[:count]
        number = jnp.where(place < count, indices, place).ravel()
        picture = jnp.zeros((count, *x.shape[1:]), x.dtype)
        return picture.at[number].set(x, mode="drop", unique_indices=True)

    results = map_over_devices(draw, shared, indices, mesh)
    if mesh is not None:
        results = jax.lax.with_sharding_constraint(results, whole_on(mesh))
    return jax.tree.map(lambda x: in_order(x.reshape(-1, *x.shape[2:])), results)


def _assemble(
    pixels: dict[str, Array],
    overflow: Array | None,
    camera: AbstractCamera,
    space: AbstractColorSpace,
) -> Image:
    def shape(x: Array) -> Array:
        return x.reshape(camera.height, camera.width, *x.shape[1:])

    return Image(**jax.tree.map(shape, {**pixels, "overflow": overflow}), space=space)
