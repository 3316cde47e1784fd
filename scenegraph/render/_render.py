import math
from collections.abc import Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Float, Int, RandomKey, Scalar
from ..cameras import AbstractCamera
from ..filters import AbstractFilter
from ..images import AbstractColorSpace, Image
from ..integrators import AbstractIntegrator, choose_integrator, with_room
from ..numerics import map_rows, unfreeze
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
) -> Image:
    """Renders a picture: one compiled, differentiable function of the scene.

    **Arguments:**

    - `scene`: what is looked at.
    - `camera`: a camera, or the path of one in the scene.
    - `integrator`: how; by default as the scene says.
    - `key`: for jitter and noise; `None` is deterministic. Keyword only argument.
    - `filters`: applied to the picture, in order. Keyword only argument.
    - `chunk`: how many rays are worked on at a time; the memory that a picture and its gradient
      take grows with it, the picture does not change. Keyword only argument.

    **Returns:**

    The picture, with `rgb`, `alpha` and `depth`.

    **Errors:**

    `ValueError` for a path at which there is no camera, a chunk below one, or a leaf that is not
    finite. Warns if rays meet more surfaces than they can see, or shaders have no light.
    """
    camera = find_camera(scene, camera)
    integrator = integrator or choose_integrator(scene)
    check_scene(scene)
    if is_traced((scene, camera)):
        return _draw(scene, camera, with_room(integrator, math.inf), key, filters, chunk)[0]
    image, missed, asked = _draw(scene, camera, integrator, key, filters, chunk)
    for more in (1.25, math.inf):
        if asked is None or missed is None or not int(missed):
            break
        integrator = with_room(integrator, more * float(asked))
        image, missed, asked = _draw(scene, camera, integrator, key, filters, chunk)
    report_overflow(missed)
    return image


def _draw(
    scene: Scene,
    camera: AbstractCamera,
    integrator: AbstractIntegrator,
    key: RandomKey | None,
    filters: Sequence[AbstractFilter],
    chunk: int | Literal["auto"],
) -> tuple[Image, Int[Array, ""] | None, Scalar | None]:
    samples = _SAMPLES_BY_RAY if integrator.by_ray else _SAMPLES
    size = choose_chunk(chunk, camera.width * camera.height, integrator, samples_on_cpu=samples)
    return _render(scene, camera, integrator, key, tuple(filters), size)


# Measured: networks like fewer on a CPU, cheap fields more; this serves both. What is computed by
# ray has no vectors of features, and likes many.
_SAMPLES = 2**14
_SAMPLES_BY_RAY = 2**16


@eqx.filter_jit
def _render(
    scene: Scene,
    camera: AbstractCamera,
    integrator: AbstractIntegrator,
    key: RandomKey | None,
    filters: tuple[AbstractFilter, ...],
    chunk: int,
) -> tuple[Image, Int[Array, ""] | None, Scalar | None]:
    """The picture, how many pixels miss something, and how many samples a pixel asked for."""
    scene, camera, filters = unfreeze((scene, camera, filters))

    def some_pixels(indices: Int[Array, " chunk"]) -> tuple[Array | None, ...]:
        if not integrator.by_ray:
            return _look(scene, camera, integrator, key, indices)
        return map_rows(one_pixel, (scene, camera, key), indices)

    def one_pixel(shared: Any, index: Int[Array, ""]) -> tuple[Array | None, ...]:
        scene, camera, key = shared
        return jax.tree.map(lambda x: x[0], _look(scene, camera, integrator, key, index[None]))

    *seen, overflow, asked = _in_chunks(some_pixels, camera.width * camera.height, chunk)
    image = _assemble(tuple(seen), camera, color_space(scene))
    for one in filters:
        image = one(image)
    missed = None if overflow is None else jnp.sum(overflow > 0)
    return image, missed, None if asked is None else jnp.mean(asked, dtype=jnp.float32)


def _look(
    scene: Scene,
    camera: AbstractCamera,
    integrator: AbstractIntegrator,
    key: RandomKey | None,
    indices: Int[Array, " chunk"],
) -> tuple[Array | None, ...]:
    rows, columns = jnp.divmod(indices, camera.width)
    pixels: Float[Array, "chunk 2"] = jnp.stack([columns, rows], axis=-1) + 0.5
    rays = jax.vmap(camera.ray)(pixels)
    keys = None if key is None else fold_keys(key, indices)
    radiance = integrate(scene, rays, integrator, keys, None)[-1]
    seen = radiance.rgb, radiance.alpha, radiance.depth
    return *seen, radiance.overflow, radiance.asked


def _in_chunks(function: Any, count: int, chunk: int) -> Any:
    """Maps over pixels chunk by chunk; under `grad`, a chunk is computed again, not remembered."""
    chunks = -(-count // chunk)
    # Every chunk has pixels from all over the picture, so that all have about as much to do.
    indices = jnp.minimum(jnp.arange(chunks * chunk), count - 1).reshape(chunk, chunks).T
    if chunks == 1:
        return function(indices[0])
    results = jax.lax.map(jax.checkpoint(function), indices)
    in_order = lambda x: jnp.swapaxes(x, 0, 1).reshape(chunks * chunk, *x.shape[2:])[:count]
    return jax.tree.map(in_order, results)


def _assemble(
    pixels: tuple[Array, Array, Array], camera: AbstractCamera, space: AbstractColorSpace
) -> Image:
    def shape(x: Array) -> Array:
        return x.reshape(camera.height, camera.width, *x.shape[1:])

    rgb, alpha, depth = (shape(x) for x in pixels)
    return Image(rgb, alpha=alpha, depth=depth, space=space)
