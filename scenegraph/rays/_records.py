import equinox as eqx
import jax.numpy as jnp
from jax.typing import DTypeLike

from .._typing import Array, Float, Int, Scalar
from ..numerics import AbstractModule, as_float_leaf
from ..transforms import AbstractTransform
from ._gaussian import AbstractGaussian, transform_gaussian


class Span(AbstractModule):
    """An interval of a ray; empty where `far <= near`."""

    near: Float[Array, "*rays"] = eqx.field(converter=as_float_leaf)
    far: Float[Array, "*rays"] = eqx.field(converter=as_float_leaf)


class Section(AbstractModule):
    """One sample of a ray: an interval of `t` and the Gaussian that stands for it."""

    gaussian: AbstractGaussian  # the Gaussian with the moments of that part of the cone
    t0: Float[Array, "*samples"] = eqx.field(converter=as_float_leaf)
    t1: Float[Array, "*samples"] = eqx.field(converter=as_float_leaf)


class Medium(AbstractModule):
    """The participating medium at a sample.

    **Arguments:**

    - `density`: extinction per unit length of the frame of the query; at least zero.
    - `rgb`: the emitted colour.
    - `normal`: unit vector along the steepest decrease of the density, in the world frame; zero
      where the density is constant. `None` unless requested.
    """

    density: Float[Array, "*samples"] = eqx.field(converter=as_float_leaf)
    rgb: Float[Array, "*samples 3"] = eqx.field(converter=as_float_leaf)
    normal: Float[Array, "*samples 3"] | None = None


class LampPolygons(AbstractModule):
    """Lamps with a size, as they are seen from a point of a surface.

    **Arguments:**

    - `corners`: corners of their outlines relative to the point, in world units, counterclockwise
      as seen from there. Corners may repeat, and may lie behind the surface.
    - `radiance`: radiance towards the point, shadows included; zero on a lamp's dark side.
    """

    corners: Float[Array, "*rays lamps corners 3"] = eqx.field(converter=as_float_leaf)
    radiance: Float[Array, "*rays lamps 3"] = eqx.field(converter=as_float_leaf)


class Irradiance(AbstractModule):
    """The light that arrives at a point of a surface, shadows included.

    **Arguments:**

    - `direction`: unit vectors from the point to the lights.
    - `irradiance`: power per area that each light sends through a surface that faces it.
    - `ambient`: radiance that arrives evenly from all directions.
    - `glossy`: mean radiance over what surfaces reflect to the eye, for roughnesses in equal steps
      from 0 to 1; `None` if no light is a panorama.
    - `soft`: the number of last directions that are parts of panoramas: they make no highlights,
      because `glossy` has their light; static.
    - `lamps`: the lamps with a size among the lights, whose directions come before those of
      panoramas: their light is that of the visible part of the outline, and its mean direction.
      Highlights are made of the outlines instead. `None` if there are none.
    """

    direction: Float[Array, "*rays lights 3"] = eqx.field(converter=as_float_leaf)
    irradiance: Float[Array, "*rays lights 3"] = eqx.field(converter=as_float_leaf)
    ambient: Float[Array, "*rays 3"] = eqx.field(converter=as_float_leaf)
    glossy: Float[Array, "*rays levels 3"] | None = None
    soft: int = eqx.field(static=True, default=0)
    lamps: LampPolygons | None = None


class Layers(AbstractModule):
    """The surfaces along rays as thin layers, sorted from near to far.

    Colours are not multiplied by opacity; `overflow` counts the surfaces that a ray would have
    shown beyond its layers. The rest is `None` unless requested: normals and positions are in the
    world frame, normals turned to the eye; `surface` is the number of the surface.
    """

    t: Float[Array, "*rays layers"] = eqx.field(converter=as_float_leaf)
    alpha: Float[Array, "*rays layers"] = eqx.field(converter=as_float_leaf)
    rgb: Float[Array, "*rays layers 3"] = eqx.field(converter=as_float_leaf)
    overflow: Int[Array, "*rays"]
    normal: Float[Array, "*rays layers 3"] | None = None
    albedo: Float[Array, "*rays layers 3"] | None = None
    uv: Float[Array, "*rays layers 2"] | None = None
    position: Float[Array, "*rays layers 3"] | None = None
    surface: Int[Array, "*rays layers"] | None = None


class Radiance(AbstractModule):
    """The rendered values of rays at one level of sampling.

    **Arguments:**

    - `rgb`: colour; `render_rays` adds the background.
    - `alpha`: opacity, between 0 and 1.
    - `depth`: weighted mean of `t`.
    - `weights`: the contribution of each interval to the colour.
    - `edges`: bin edges of the intervals, in `t`.
    - `overflow`: number of surfaces or samples of a ray that exceeded the budget; `None` if nothing
      can exceed it.
    - `requested`: number of samples of a ray that were requested; `None` without a budget.
    - `normal`: mean unit normal in the world frame; zero where nothing is. `None` unless requested.
    - `median_depth`: the `t` at which half of the opacity is reached; `None` unless requested.
    - `albedo`: mean albedo, weighted by what each thing adds to the opacity; zero where nothing is.
      `None` unless requested.
    - `uv`: surface coordinates on the surface `surface`; zero where there is none. `None` unless
      requested.
    - `position`: mean position in the world, weighted as the albedo is; zero where nothing is.
      `None` unless requested.
    - `surface`: the number of the surface that adds most to the opacity, which
      `sg.surface_paths` names; -1 where there is none. `None` unless requested.
    - `variance`: the variance of the colour, the background included, as an estimate of its mean
      over random samples. `None` unless requested.
    """

    rgb: Float[Array, "*rays 3"] = eqx.field(converter=as_float_leaf)
    alpha: Float[Array, "*rays"] = eqx.field(converter=as_float_leaf)
    depth: Float[Array, "*rays"] = eqx.field(converter=as_float_leaf)
    weights: Float[Array, "*rays samples"] = eqx.field(converter=as_float_leaf)
    edges: Float[Array, "*rays edges"] = eqx.field(converter=as_float_leaf)
    overflow: Int[Array, "*rays"] | None = None
    requested: Int[Array, "*rays"] | None = None
    normal: Float[Array, "*rays 3"] | None = None
    median_depth: Float[Array, "*rays"] | None = None
    albedo: Float[Array, "*rays 3"] | None = None
    uv: Float[Array, "*rays 2"] | None = None
    position: Float[Array, "*rays 3"] | None = None
    surface: Int[Array, "*rays"] | None = None
    variance: Float[Array, "*rays 3"] | None = None


def no_light(dtype: DTypeLike = float) -> Irradiance:
    """Returns the irradiance of a point without lights."""
    none = jnp.zeros((0, 3), dtype)
    return Irradiance(none, none, jnp.zeros(3, dtype))


def transform_section(transform: AbstractTransform, section: Section) -> Section:
    """Transforms one sample's Gaussian to the parent's frame; `t` keeps its meaning."""
    return Section(transform_gaussian(transform, section.gaussian), section.t0, section.t1)


def overlap(section: Section, span: Span) -> Scalar:
    """Returns the part of one sample's interval that lies in a span, between 0 and 1."""
    # (min(far, t1) - max(near, t0)) / (t1 - t0), clipped to [0, 1].
    covered = jnp.clip(span.far, section.t0, section.t1) - jnp.clip(
        span.near, section.t0, section.t1
    )
    length = section.t1 - section.t0
    # An interval of no length inside the span counts as covered.
    share = jnp.where(length > 0, covered / jnp.where(length > 0, length, 1), 1.0)
    return jnp.where(span.far > span.near, jnp.clip(share, 0, 1), 0.0)
