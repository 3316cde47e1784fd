import dataclasses
import functools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Key

from .._typing import Array, Int, RandomKey, UInt32
from ..compositing import composite_rows, with_media_details
from ..flat import FlatScene, has_surfaces, SceneStacks
from ..numerics import count_bits
from ..rays import Radiance, Ray
from ..scene import Contents, find_contents, Scene
from ._base import AbstractIntegrator, AbstractMediaIntegrator
from ._details import need_normals
from ._guided import Guided
from ._hierarchical import Hierarchical
from ._media import has_many_volumes
from ._occupancy_march import OccupancyMarch
from ._path import Path
from ._per_volume import media_of_volumes, PerVolume
from ._surfaces import Surfaces


class Integrator(AbstractIntegrator):
    """Integrates media and surfaces together: media before, between and behind the layers.

    **Arguments:**

    - `media`: the integrator of media; `None` in a scene without.
    - `surfaces`: the integrator of surfaces; `None` in a scene without.
    """

    media: AbstractMediaIntegrator | None = None
    surfaces: Surfaces | None = None

    @property
    def budget(self) -> int | None:
        """The budget of the integrator of media."""
        return None if self.media is None else self.media.budget

    @property
    def samples_per_ray(self) -> int:
        return sum(x.samples_per_ray for x in (self.media, self.surfaces) if x is not None) or 1

    def with_budget(self, samples: float) -> "Integrator":
        if self.media is None:
            return self
        return dataclasses.replace(self, media=self.media.with_budget(samples))

    def with_fixed_samples(self, scene: FlatScene, rays: Ray) -> "Integrator":
        if self.media is None:
            return self
        layers = None if self.surfaces is None else self.surfaces.layers_along(scene, rays)
        return dataclasses.replace(self, media=self.media.with_fixed_samples(scene, rays, layers))

    def __call__(
        self,
        scene: FlatScene,
        rays: Ray,
        *,
        keys: Key[Array, " rays"] | None = None,
        outputs: tuple[str, ...] = (),
    ) -> tuple[Radiance, ...]:
        layers = None
        if self.surfaces is not None:
            layers = self.surfaces.layers_along(scene, rays, outputs=outputs)
        if self.media is not None:
            return self.media(scene, rays, layers, keys=keys, outputs=outputs)
        if layers is not None:
            return (composite_rows(layers, rays),)
        return (jax.vmap(lambda ray: _nothing(ray, outputs))(rays),)


def _media_of(integrator: AbstractIntegrator) -> AbstractIntegrator | None:
    """Returns the part that integrates media; an integrator of its own kind is that itself."""
    return integrator.media if isinstance(integrator, Integrator) else integrator


def follows_light(integrator: AbstractIntegrator) -> bool:
    """Returns true if whatever shines is a light, and not lights alone."""
    return isinstance(integrator, Path)


def fixed_key(integrator: AbstractIntegrator, key: RandomKey | None) -> RandomKey | None:
    """Returns a key: where there is none, the one that random paths have."""
    return jax.random.key(0) if key is None and isinstance(integrator, Path) else key


def is_of_surfaces(integrator: AbstractIntegrator) -> bool:
    """Returns true if there are surfaces and no media."""
    if not isinstance(integrator, Integrator):
        return False
    return integrator.media is None and integrator.surfaces is not None


def uses_lists(integrator: AbstractIntegrator, scene: FlatScene) -> bool:
    """Returns true if rays that go together search together."""
    if not isinstance(integrator, Integrator):
        return False
    surfaces = integrator.surfaces is not None and not integrator.surfaces.asks_all(scene)
    return surfaces or (integrator.media is not None and has_many_volumes(scene))


def count_levels(integrator: AbstractIntegrator) -> int | None:
    """Returns the number of levels that an integrator computes, where that is known untraced."""
    media = _media_of(integrator)
    if isinstance(media, Hierarchical):
        return len(media.samples)
    return 1 if media is None or isinstance(media, OccupancyMarch | Guided | PerVolume) else None


def skips_empty_space(integrator: AbstractIntegrator) -> bool:
    """Returns true for an integrator that occupancies guide, as fields of small networks need."""
    media = _media_of(integrator)
    return isinstance(media, OccupancyMarch | Guided)


def is_packed(integrator: AbstractIntegrator) -> bool:
    """Returns true if rays have no more than samples of media in one list."""
    media = _media_of(integrator)
    alone = not isinstance(integrator, Integrator) or integrator.surfaces is None
    return alone and isinstance(media, OccupancyMarch)


def count_requested(
    integrator: AbstractIntegrator,
    scene: FlatScene,
    rays: Ray,
    keys: Key[Array, " rays"] | None = None,
) -> Array | None:
    """Counts the samples that each ray needs, `rays`; `None` where rays share no budget."""
    media = _media_of(integrator)
    if isinstance(media, OccupancyMarch):  # No more is compiled than is needed.
        return count_steps(media.find_steps(scene, rays, keys))
    return integrator(scene, rays, keys=keys)[-1].requested


def count_steps(words: UInt32[Array, "rays words"]) -> Int[Array, " rays"]:
    """Counts the occupied steps of rays."""
    return jnp.sum(count_bits(words), axis=1)


def march_of(integrator: AbstractIntegrator) -> OccupancyMarch:
    """Returns the integrator of media of one that `is_packed`."""
    media = _media_of(integrator)
    assert isinstance(media, OccupancyMarch)
    return media


def with_known_steps(
    integrator: AbstractIntegrator, words: UInt32[Array, "rays words"]
) -> AbstractIntegrator:
    """Returns an integrator that `is_packed` for rays whose occupied steps are known."""
    march = dataclasses.replace(march_of(integrator), known=words)
    if not isinstance(integrator, Integrator):
        return march
    return dataclasses.replace(integrator, media=march)


# The most layers on a ray that are given without being requested.
_MOST_LAYERS = 64


def with_more_surfaces(integrator: AbstractIntegrator) -> AbstractIntegrator:
    """Returns an integrator with space for twice as many layers, up to a limit."""
    if not isinstance(integrator, Integrator) or integrator.surfaces is None:
        return integrator
    count = integrator.surfaces.layers
    more = dataclasses.replace(integrator.surfaces, layers=max(count, min(2 * count, _MOST_LAYERS)))
    return dataclasses.replace(integrator, surfaces=more)


def _nothing(ray: Ray, outputs: tuple[str, ...]) -> Radiance:
    """Returns the radiance of a ray through an empty scene."""
    zero, black = jnp.zeros_like(ray.far), jnp.zeros_like(ray.view)
    details = {"normal": black, "median_depth": ray.far} if need_normals(outputs) else {}
    edges = jnp.stack([ray.near, ray.far])
    nothing = Radiance(black, zero, ray.far, zero[None], edges, **details)
    return with_media_details(nothing, ray, outputs)


def complete(
    integrator: AbstractIntegrator | None, contents: Contents | SceneStacks
) -> AbstractIntegrator:
    """Completes an integrator so that it omits nothing of a scene, and samples nothing else.

    An integrator of a user's own stays as it is. Raises `ValueError` for an integrator of surfaces
    alone where there are media.
    """
    if integrator is None:
        if has_surfaces(contents) and not contents.volumes:
            return _of_surfaces()
        integrator = Integrator()
    elif isinstance(integrator, AbstractMediaIntegrator):
        integrator = Integrator(media=integrator)
    elif isinstance(integrator, Surfaces):
        integrator = Integrator(surfaces=integrator)
        if contents.volumes:
            raise ValueError(
                "there are media in the scene, which the integrator `Surfaces` does not integrate; "
                "use `Integrator(Hierarchical(...), Surfaces(...))`."
            )
    if not isinstance(integrator, Integrator):
        return integrator
    return Integrator(
        (integrator.media or media_of_volumes(_volumes(contents))) if contents.volumes else None,
        (integrator.surfaces or Surfaces()) if has_surfaces(contents) else None,
    )


@functools.cache
def _of_surfaces() -> Integrator:
    """Returns the integrator of surfaces alone, made once: every picture asks for it."""
    return Integrator(None, Surfaces())


def _volumes(contents: Contents | SceneStacks) -> list[tuple[Any, int]]:
    """Returns volumes with their copies, or one volume of each stack with its members."""
    if isinstance(contents, Contents):
        return [(leaf.node, math.prod(leaf.counts)) for leaf in contents.volumes]
    stacks = contents.volumes
    return [(eqx.combine(x.varying, x.shared)[0], x.number.shape[0]) for x in stacks]


def choose_integrator(
    scene: Scene,
    integrator: AbstractIntegrator | None = None,
    contents: Contents | SceneStacks | None = None,
) -> AbstractIntegrator:
    """Chooses an integrator that serves a scene: the requested one, or the scene's own.

    What neither of them says is integrated volume by volume, each by its own integrator, or guided
    by its occupancy; volumes without both by two levels of 64 samples, and surfaces by the eight
    nearest layers.
    """
    return complete(integrator or scene.integrator, contents or find_contents(scene))
