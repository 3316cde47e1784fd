"""Values of some pixels."""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Int, PyTree, RandomKey
from ..cameras import AbstractCamera
from ..flat import FlatScene
from ..integrators import (
    AbstractIntegrator,
    goes_ray_by_ray,
    is_of_surfaces,
    uses_lists,
)
from ..numerics import common_type
from ..rays import Ray
from ..rows import as_operands, call_late, map_rows
from ._rays import integrate
from ._subpixels import (
    outputs_of_parts,
    pixels_of_parts,
    PixelValues,
    split_pixels,
    subpixel_keys,
    subpixel_rays,
    Subpixels,
)


# The outputs that are always there, because they cost nothing more.
ALWAYS = ("rgb", "alpha", "depth")
# Those that have three numbers.
_COLORS = ("rgb", "albedo", "normal", "position", "variance")


class Pixels(NamedTuple):
    """The way in which pixels are computed; all of it is static."""

    integrator: AbstractIntegrator
    extras: tuple[str, ...]  # outputs beside those that are always there
    side: int  # the square root of the number of cones of a pixel

    def compute(self, shared: "_Shared", indices: Int[Array, " pixels"]) -> PixelValues:
        """Computes pixels, given by their numbers; those below zero are none."""
        rows, compute = split_pixels(indices, self.side), self._compute_parts
        if is_of_surfaces(self.integrator):
            if not uses_lists(self.integrator, shared[0]):
                compute = partial(map_rows, self._compute_one)
            elif goes_ray_by_ray(shared[0]):
                compute = partial(_compute_ray_by_ray, pixels=self)
        fields, missed, requested = pixels_of_parts(compute(shared, rows), self.side)
        return {name: fields[name] for name in (*ALWAYS, *self.extras)}, missed, requested

    def _compute_one(self, shared: "_Shared", row: Subpixels) -> PixelValues:
        rows = jax.tree.map(lambda x: x[None], row)
        return jax.tree.map(lambda x: x[0], self._compute_parts(shared, rows))

    @property
    def _outputs_of_parts(self) -> tuple[str, ...]:
        return self.extras if self.side == 1 else outputs_of_parts(self.extras)

    def _shapes(self, camera: AbstractCamera, rows: Subpixels) -> PyTree:
        """Returns the shapes of the values of parts of pixels of surfaces alone."""
        integer, axes = jnp.dtype(jnp.int32), {**dict.fromkeys(_COLORS, (3,)), "uv": (2,)}
        dtype = lambda name: integer if name == "surface" else common_type(camera)
        shape = lambda name: (*rows.pixel.shape, *axes.get(name, ()))
        names = *ALWAYS, *self._outputs_of_parts
        fields = {name: jax.ShapeDtypeStruct(shape(name), dtype(name)) for name in names}
        return fields, jax.ShapeDtypeStruct(rows.pixel.shape, integer), None

    def _rays(self, camera: AbstractCamera, rows: Subpixels) -> Ray:
        """Returns the rays of parts of pixels; those of no pixel end where they begin."""
        rays = subpixel_rays(camera, rows._replace(pixel=jnp.maximum(rows.pixel, 0)), self.side)
        far = jnp.where(rows.pixel < 0, rays.near, rays.far)
        return eqx.tree_at(lambda ray: ray.far, rays, far)

    def _compute_parts(self, shared: "_Shared", rows: Subpixels) -> PixelValues:
        scene, camera, key = shared
        rays, keys = self._rays(camera, rows), subpixel_keys(key, rows)
        extras = self._outputs_of_parts
        radiance = integrate(scene, rays, self.integrator, keys, outputs=extras)[-1]
        fields = {name: getattr(radiance, name) for name in (*ALWAYS, *extras)}
        if missing := [name for name, value in fields.items() if value is None]:
            kind = type(self.integrator).__name__
            raise ValueError(f"a {kind} does not compute {', '.join(missing)}.")
        return fields, radiance.overflow, radiance.requested


def _compute_ray_by_ray(shared: "_Shared", rows: Subpixels, *, pixels: Pixels) -> PixelValues:
    """Computes parts of pixels each by one function; what has derivatives goes layer by layer."""
    compute = lambda shared, rows: map_rows(pixels._compute_one, as_operands(shared), rows)
    push = lambda primals, tangents: eqx.filter_jvp(pixels._compute_parts, primals, tangents)
    return call_late(compute, push, pixels._shapes(shared[1], rows), shared, rows)


# What all pixels share: the scene, the camera, and the key of jitter and noise.
_Shared = tuple[FlatScene, AbstractCamera, RandomKey | None]
