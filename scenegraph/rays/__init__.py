"""The records that travel: rays as cones, their sections as Gaussians, media and radiance."""

from ._by_pixel import by_pixel as by_pixel, push as push
from ._gaussian import (
    AbstractGaussian as AbstractGaussian,
    FullGaussian as FullGaussian,
    Gaussian as Gaussian,
    transform_gaussian as transform_gaussian,
)
from ._hit import Hit as Hit
from ._illumination import darkness as darkness, Illumination as Illumination
from ._layers import Layers as Layers
from ._ray import Ray as Ray, transform_ray as transform_ray, widen as widen
from ._records import (
    Medium as Medium,
    overlap as overlap,
    Radiance as Radiance,
    Section as Section,
    Span as Span,
    transform_section as transform_section,
)
from ._sections import AbstractBeam as AbstractBeam, Cone as Cone, Cylinder as Cylinder
