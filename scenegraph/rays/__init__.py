"""The records that travel: rays as cones, their sections as Gaussians, media and radiance."""

from ._by_pixel import by_pixel as by_pixel, push as push
from ._gaussian import (
    AbstractGaussian as AbstractGaussian,
    FullGaussian as FullGaussian,
    Gaussian as Gaussian,
)
from ._hit import Hit as Hit
from ._irradiance import no_light as no_light, Irradiance as Irradiance
from ._layers import Layers as Layers
from ._ray import Ray as Ray, transform_ray as transform_ray, widen as widen
from ._records import Medium as Medium, Radiance as Radiance, Section as Section, Span as Span
from ._sections import (
    AbstractBeam as AbstractBeam,
    ConeBeam as ConeBeam,
    CylinderBeam as CylinderBeam,
)

# Internal: for other packages of the library, and for none of its users.
from ._gaussian import transform_gaussian
from ._records import overlap, transform_section
