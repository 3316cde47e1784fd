import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh, SingleDeviceSharding

from .._typing import Array, Device, Float, Int, PyTree, RandomKey, Scalar
from ..cameras import AbstractCamera
from ..filters import AbstractFilter
from ..images import AbstractColorSpace, Image
from ..integrators import AbstractIntegrator, choose_integrator, with_room
from ..numerics import unfreeze
from ..parallel import device_mesh, map_over_devices, mesh_of, whole_on
from ..rowwise import map_rows
from ..scene import color_space, find_camera, Scene
from ._chunks import choose_chunk
from ._rays import fold_keys, integrate
from ._warnings import check_scene, is_traced, report_overflow


def render(
    scene: Scene,
    camera: AbstractCamera | str,
    integrator: AbstractIntegrator | None = None,
    *,
    key: RandomKey | None = None,
    filters: Sequence[AbstractFilter] = (),
    chunk: int | Literal["auto"] = "auto",
    devices: Sequence[Device] | None = None,
    normals: bool = False,
    median_depth: bool = False,
) -> Image:
    """Renders a picture: one compiled, differentiable function of the scene.

    **Arguments:**

    - `scene`: what is looked at.
    - `camera`: a camera, or the path of one in the scene.
    - `integrator`: how; by default as the scene says.
    - `key`: for jitter and noise; `None` is deterministic. Keyword only argument.
    - `filters`: applied to the picture, in order. Keyword only argument.
    - `chunk`: how many rays a device works on at a time; the memory that a picture and its gradient
      take grows with it, the picture does not change. Keyword only argument.
    - `devices`: that share the pixels; by default those on which the scene or the camera lies, such
      as those of a fit, or else all of this process. In a traced function, where that is not known,
      the default is to leave it to JAX. Keyword only argument.
    - `normals`: whether the picture has them: of surfaces their own, turned to the eye; of media
      minus the gradient of the density, which takes about twice as long. Keyword only argument.
    - `median_depth`: whether the picture has it. Keyword only argument.

    **Returns:**

    The picture, with `rgb`, `alpha` and `depth`, and what else was asked for.

    **Errors:**

    `ValueError` for a path at which there is no camera, a chunk below one, a leaf that is not
    finite, or an integrator that cannot tell what is asked for. Warns if rays meet more surfaces
    than they can see, or shaders have no light.
    """
    camera = find_camera(scene, camera)
    integrator = integrator or choose_integrator(scene)
    check_scene(scene)
    scene, camera, mesh = _placed(scene, camera, devices)
    asked_for = ("normal",) * normals + ("median_depth",) * median_depth
    draw = partial(_draw, scene, camera, key, filters, chunk, mesh, asked_for)
    if is_traced((scene, camera)):
        return draw(with_room(integrator, math.inf))[0]
    image, missed, asked = draw(integrator)
    for more in (1.25, math.inf):
        if asked is None or missed is None or not int(missed):
            break
        integrator = with_room(integrator, more * float(asked))
        image, missed, asked = draw(integrator)
    report_overflow(missed)
    return image


def _placed(
    scene: Scene, camera: AbstractCamera, devices: Sequence[Device] | None
) -> tuple[Scene, AbstractCamera, Mesh | None]:
    """What is looked at, where it is to be looked at, and the devices that do so."""
    if is_traced((scene, camera)):
        return scene, camera, None if devices is None else device_mesh(devices)
    if devices is None:
        return scene, camera, mesh_of((scene, camera))
    mesh = device_mesh(devices)
    where = SingleDeviceSharding(devices[0]) if mesh is None else whole_on(mesh)
    put = lambda x: jax.device_put(x, where) if eqx.is_array(x) else x
    return *jax.tree.map(put, (scene, camera)), mesh


def _draw(
    scene: Scene,
    camera: AbstractCamera,
    key: RandomKey | None,
    filters: Sequence[AbstractFilter],
    chunk: int | Literal["auto"],
    mesh: Mesh | None,
    extras: tuple[str, ...],
    integrator: AbstractIntegrator,
) -> tuple[Image, Int[Array, ""] | None, Scalar | None]:
    samples = _SAMPLES_BY_RAY if integrator.by_ray else _SAMPLES
    pixels = -(-camera.width * camera.height // (1 if mesh is None else mesh.size))
    size = choose_chunk(chunk, pixels, integrator, samples_on_cpu=samples)
    return _render(scene, camera, integrator, key, tuple(filters), size, mesh, extras)


# Measured: networks like fewer on a CPU, cheap fields more; this serves both. What is computed by
# ray has no vectors of features, and likes many.
_SAMPLES = 2**14
_SAMPLES_BY_RAY = 2**18


# Of some pixels: what the picture is made of, what found no room, and how much was asked.
_Seen = tuple[dict[str, Array], Array | None, Array | None]


@eqx.filter_jit
def _render(
    scene: Scene,
    camera: AbstractCamera,
    integrator: AbstractIntegrator,
    key: RandomKey | None,
    filters: tuple[AbstractFilter, ...],
    chunk: int,
    mesh: Mesh | None,
    extras: tuple[str, ...],
) -> tuple[Image, Int[Array, ""] | None, Scalar | None]:
    """The picture, how many pixels miss something, and how many samples a pixel asked for."""
    scene, camera, filters = unfreeze((scene, camera, filters))

    def some_pixels(shared: Any, indices: Int[Array, " chunk"]) -> _Seen:
        if integrator.by_ray:
            return map_rows(one_pixel, shared, indices)
        scene, camera, key = shared
        return _look(scene, camera, integrator, key, extras, indices)

    def one_pixel(shared: Any, index: Int[Array, ""]) -> _Seen:
        scene, camera, key = shared
        seen = _look(scene, camera, integrator, key, extras, index[None])
        return jax.tree.map(lambda x: x[0], seen)

    count, shared = camera.width * camera.height, (scene, camera, key)
    seen, overflow, asked = _in_chunks(some_pixels, shared, count, chunk, mesh)
    image = _assemble(seen, camera, color_space(scene))
    for one in filters:
        image = one(image)
    missed = None if overflow is None else jnp.sum(overflow > 0)
    return image, missed, None if asked is None else jnp.mean(asked, dtype=jnp.float32)


def _look(
    scene: Scene,
    camera: AbstractCamera,
    integrator: AbstractIntegrator,
    key: RandomKey | None,
    extras: tuple[str, ...],
    indices: Int[Array, " chunk"],
) -> _Seen:
    rows, columns = jnp.divmod(indices, camera.width)
    pixels: Float[Array, "chunk 2"] = jnp.stack([columns, rows], axis=-1) + 0.5
    rays = jax.vmap(camera.ray)(pixels)
    keys = None if key is None else fold_keys(key, indices)
    radiance = integrate(scene, rays, integrator, keys, None, detailed=bool(extras))[-1]
    seen = {name: getattr(radiance, name) for name in ("rgb", "alpha", "depth", *extras)}
    if missing := [name for name, value in seen.items() if value is None]:
        raise ValueError(f"a {type(integrator).__name__} does not tell {' and '.join(missing)}.")
    return seen, radiance.overflow, radiance.asked


def _in_chunks(function: Any, shared: PyTree, count: int, chunk: int, mesh: Mesh | None) -> Any:
    """Maps over pixels chunk by chunk; under `grad`, a chunk is computed again, not remembered."""
    devices = 1 if mesh is None else mesh.size
    chunks = devices * -(-count // (devices * chunk))
    # Every chunk has pixels from all over the picture, so that all have about as much to do.
    indices = jnp.minimum(jnp.arange(chunks * chunk), count - 1).reshape(chunk, chunks).T
    if chunks == 1:
        return function(shared, indices[0])

    def several(shared: PyTree, indices: Int[Array, "chunks chunk"]) -> Any:
        return jax.lax.map(jax.checkpoint(partial(function, shared)), indices)

    results = map_over_devices(several, shared, indices, mesh)
    if mesh is not None:
        results = jax.lax.with_sharding_constraint(results, whole_on(mesh))
    in_order = lambda x: jnp.swapaxes(x, 0, 1).reshape(chunks * chunk, *x.shape[2:])[:count]
    return jax.tree.map(in_order, results)


def _assemble(pixels: dict[str, Array], camera: AbstractCamera, space: AbstractColorSpace) -> Image:
    def shape(x: Array) -> Array:
        return x.reshape(camera.height, camera.width, *x.shape[1:])

    return Image(**jax.tree.map(shape, pixels), space=space)
