import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, Int, Scalar
from ..numerics import AbstractModule, as_float_leaf
from ..transforms import AbstractTransform
from ._gaussian import AbstractGaussian, transform_gaussian


class Span(AbstractModule):
    """A stretch of a ray; empty where `far <= near`.

    **Arguments:**

    - `near`, `far`: its ends, in `t`.
    """

    near: Float[Array, "*rays"] = eqx.field(converter=as_float_leaf)
    far: Float[Array, "*rays"] = eqx.field(converter=as_float_leaf)


class Section(AbstractModule):
    """One sample of a ray: an interval of `t` and the Gaussian that stands for it.

    **Arguments:**

    - `gaussian`: where the sample looks.
    - `t0`, `t1`: the ends of its interval.
    """

    gaussian: AbstractGaussian
    t0: Float[Array, "*samples"] = eqx.field(converter=as_float_leaf)
    t1: Float[Array, "*samples"] = eqx.field(converter=as_float_leaf)


class Medium(AbstractModule):
    """What fills space at a sample.

    **Arguments:**

    - `density`: extinction per unit length, in the frame in which it was asked; at least zero.
    - `rgb`: the colour it shines with.
    - `normal`: where the density falls off fastest, of length one, in the world; zero where it does
      not change. `None` where nobody asked (see `Detailed`).
    """

    density: Float[Array, "*samples"] = eqx.field(converter=as_float_leaf)
    rgb: Float[Array, "*samples 3"] = eqx.field(converter=as_float_leaf)
    normal: Float[Array, "*samples 3"] | None = None


class Radiance(AbstractModule):
    """What rays saw, at one level of sampling.

    **Arguments:**

    - `rgb`: colour, the background behind it included once `render_rays` has added it.
    - `alpha`: opacity, between 0 and 1.
    - `depth`: weighted mean of `t`.
    - `weights`: each interval's share in the colour.
    - `edges`: the intervals' bin edges, in `t`.
    - `overflow`: how many surfaces, or samples, of a ray found no room; `None` where all have room.
    - `asked`: how many samples of a ray were worth asking; `None` where all were asked.
    - `normal`: the mean direction in which what the ray sees is turned, of length one, in the
      world; zero where nothing is. `None` where nobody asked, as is what follows.
    - `median_depth`: the `t` at which half of the opacity has been met.
    """

    rgb: Float[Array, "*rays 3"] = eqx.field(converter=as_float_leaf)
    alpha: Float[Array, "*rays"] = eqx.field(converter=as_float_leaf)
    depth: Float[Array, "*rays"] = eqx.field(converter=as_float_leaf)
    weights: Float[Array, "*rays samples"] = eqx.field(converter=as_float_leaf)
    edges: Float[Array, "*rays edges"] = eqx.field(converter=as_float_leaf)
    overflow: Int[Array, "*rays"] | None = None
    asked: Int[Array, "*rays"] | None = None
    normal: Float[Array, "*rays 3"] | None = None
    median_depth: Float[Array, "*rays"] | None = None


def transform_section(transform: AbstractTransform, section: Section) -> Section:
    """The same sample in the transform's parent frame.

    **Arguments:**

    - `transform`: parent from child.
    - `section`: one sample, in the child's frame.

    **Returns:**

    The sample with its Gaussian moved; `t` keeps its meaning.
    """
    return Section(transform_gaussian(transform, section.gaussian), section.t0, section.t1)


def overlap(section: Section, span: Span) -> Scalar:
    """Which part of a sample's interval lies in a span.

    **Arguments:**

    - `section`: one sample.
    - `span`: a stretch of the same ray.

    **Returns:**

    A fraction between 0 and 1; 1 for an interval of no length inside the span.
    """
    covered = jnp.clip(span.far, section.t0, section.t1) - jnp.clip(
        span.near, section.t0, section.t1
    )
    length = section.t1 - section.t0
    share = jnp.where(length > 0, covered / jnp.where(length > 0, length, 1), 1.0)
    return jnp.where(span.far > span.near, jnp.clip(share, 0, 1), 0.0)
