import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Key

from .._typing import Array
from ..flat import FlatScene
from ..numerics import safe_divide, safe_normalise
from ..rays import Radiance, Ray
from ..rows import map_rows
from ..visibility import count_parts, nearest_on_line
from ._base import AbstractIntegrator
from ._emitters import gather_emitters
from ._masks import masks_by_owner
from ._path_events import meet, PathOptions, PathScene
from ._path_of_ray import no_sums, PathSums
from ._path_replay import integrate_paths
from ._random import key_words


class Path(AbstractIntegrator):
    """Integrates surfaces by random paths of light: soft shadows, reflection, light that bounces.

    Each sample is a line through a random point of the pixel. Where it meets a material it sees
    light directly, from all lights without a size and from one point of a lamp or panorama, and is
    scattered on; both ways to find a lamp are weighted against each other. Shaders that are no
    materials show what they show under `Surfaces`, and paths end there. The picture is right on
    average, with noise that falls as one over the square root of the samples.

    **Arguments:**

    - `samples`: the number of paths of each pixel; static.
    - `bounces`: how often light is scattered on its way to the surface that the camera sees; with 0
      there are emission and direct light alone, and mirrors show what shines. Static.
    - `roulette`: if true, paths that add little are ended at random from the third surface on; the
      others then count more; static.
    - `interreflection`: if false, light that is scattered below a surface, as all of a `Lambert`'s
      is, goes on to lamps and panoramas alone, as under `Surfaces`; static.

    **Source:** Kajiya 1986, "The Rendering Equation"; Veach and Guibas 1995, "Optimally Combining
    Sampling Techniques for Monte Carlo Rendering".

    Example: a red wall colours the floor.

    ```python
    floor = sg.Surface(sg.Plane(), sg.Lambert([0.6, 0.6, 0.6]))
    wall = sg.Surface(sg.Plane([0.0, 2.0, 0.0], [0.0, -1.0, 0.0]), sg.Lambert([0.8, 0.1, 0.1]))
    lamp = sg.PointLight([0.0, 0.0, 2.0], [9.0, 9.0, 9.0])
    scene = sg.Scene(sg.Group(floor=floor, wall=wall, lamp=lamp))
    camera = sg.PerspectiveCamera.look_at([0, -5, 2], [0, 0, 0.5], [0, 0, 1], 0.8, 32, 32)
    image = sg.render(scene, camera, sg.Path(samples=16, bounces=2), key=jax.random.key(0))
    ```
    """

    samples: int = eqx.field(static=True, default=64)
    bounces: int = eqx.field(static=True, default=4)
    roulette: bool = eqx.field(static=True, default=False)
    interreflection: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        if self.samples < 1:
            raise ValueError(f"`Path.samples` must be at least 1; got {self.samples}.")
        if self.bounces < 0:
            raise ValueError(f"`Path.bounces` must be at least 0; got {self.bounces}.")

    @property
    def budget(self) -> None:
        """None: every ray has paths of its own."""
        return None

    @property
    def samples_per_ray(self) -> int:
        return 1

    def with_budget(self, samples: float) -> "Path":
        del samples
        return self

    def with_fixed_samples(self, scene: FlatScene, rays: Ray) -> "Path":
        del scene, rays
        return self

    def __call__(
        self,
        scene: FlatScene,
        rays: Ray,
        *,
        keys: Key[Array, " rays"] | None = None,
        outputs: tuple[str, ...] = (),
    ) -> tuple[Radiance, ...]:
        if scene.volumes:
            raise ValueError(
                "`Path` does not integrate volumes, and there are "
                f"{sum(stack.count for stack in scene.volumes)} in the scene; use the integrators "
                "of media, such as `Guided`, and `Surfaces`."
            )
        if keys is None:
            count = rays.near.shape[0]
            keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(0), jnp.arange(count))
        how = PathOptions(
            self.samples,
            self.bounces,
            self.roulette,
            self.interreflection,
            count_parts(scene),
            "albedo" in outputs,
        )
        sums = no_sums(rays.near)
        if has_surfaces(scene):
            sums = integrate_paths(share(scene), rays, key_words(keys), how)
        return (self._radiance(scene, rays, sums, outputs),)

    def _radiance(
        self, scene: FlatScene, rays: Ray, sums: PathSums, outputs: tuple[str, ...]
    ) -> Radiance:
        """Computes means over samples, and what they show of the surfaces that they hit first."""
        alpha = sums.hits / self.samples
        there = sums.hits > 0
        over_hits = lambda x: safe_divide(x, jnp.broadcast_to(sums.hits[:, None], x.shape))
        details = {}
        if "variance" in outputs:
            details["variance"] = self._variance(scene, rays, sums)
        if "normal" in outputs:
            details["normal"] = safe_normalise(sums.normal)
        if "albedo" in outputs:
            details["albedo"] = over_hits(sums.albedo)
        if "position" in outputs:
            details["position"] = over_hits(sums.point)
        if has_surfaces(scene) and {"median_depth", "uv", "surface"} & set(outputs):
            middle = _look_in_middle(share(scene), rays)
            details |= {name: x for name, x in middle.items() if name in outputs}
        return Radiance(
            rgb=sums.rgb / self.samples,
            alpha=alpha,
            depth=jnp.where(there, safe_divide(sums.t, sums.hits), rays.far),
            weights=alpha[:, None],
            edges=jnp.stack([rays.near, rays.far], axis=1),
            overflow=sums.cut,
            **details,
        )

    def _variance(self, scene: FlatScene, rays: Ray, sums: PathSums) -> Array:
        """Computes the variance of the mean over samples; those that hit nothing see behind."""
        count = self.samples
        if count < 2:
            raise ValueError("`Path.samples` must be at least 2 for `variance`; got 1.")
        behind = jax.vmap(scene.background)(rays).astype(rays.near.dtype)
        missed = (count - sums.hits)[:, None]
        # var(mean) = (sum x^2 / n - (sum x / n)^2) / (n - 1)
        mean = (sums.rgb + missed * behind) / count
        square = (sums.square + missed * behind**2) / count
        return jnp.maximum(square - mean**2, 0) / (count - 1)


def has_surfaces(scene: FlatScene) -> bool:
    """Returns false if there is nothing that a line can meet."""
    return scene.tree is not None or scene.triangles is not None


def share(scene: FlatScene) -> PathScene:
    """Returns what all rays share, computed once for a picture."""
    masks = masks_by_owner(scene) if scene.masks else None
    return PathScene(scene.without_media(), gather_emitters(scene), masks)


def _look_in_middle(shared: PathScene, rays: Ray) -> dict[str, Array]:
    """Returns depth, surface and uv where the middles of pixels look."""
    parts = count_parts(shared.scene)

    def look(shared: PathScene, ray: Ray) -> tuple[Array, Array, Array]:
        still = jnp.zeros_like(ray.d_origin)
        line = eqx.tree_at(lambda x: (x.d_origin, x.d_direction), ray, (still, still))
        none, used = jnp.full((), -1, jnp.int32), ray.far > ray.near
        found = nearest_on_line(shared.scene, line, none, used, parts=parts)
        hit, _, number = meet(shared, line, found, parts)
        is_hit = jnp.isfinite(found.t)
        surface = jnp.where(is_hit, number, -1).astype(jnp.int32)
        return jnp.where(is_hit, hit.t, ray.far), jnp.where(is_hit, hit.uv, 0), surface

    t, uv, surface = map_rows(look, shared, rays)
    return {"median_depth": t, "uv": uv, "surface": surface}
