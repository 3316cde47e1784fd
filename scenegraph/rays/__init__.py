"""Records of ray casting: rays as cones, their sections as Gaussians, hits, media and radiance."""

from ._gaussian import FullGaussian as FullGaussian, Gaussian as Gaussian
from ._hit import Hit as Hit
from ._pixel_jvp import pixel_jvp as pixel_jvp
from ._ray import Ray as Ray
from ._records import (
    Irradiance as Irradiance,
    LampPolygons as LampPolygons,
    Medium as Medium,
    Radiance as Radiance,
)
from ._sections import ConeBeam as ConeBeam, CylinderBeam as CylinderBeam

# Internal: for other packages of the library, and for none of its users.
from ._gaussian import AbstractGaussian, transform_gaussian
from ._pixel_jvp import batched_jvp
from ._ray import transform_ray, widen
from ._records import Layers, no_light, overlap, Section, Span, transform_section
from ._sections import AbstractBeam

from .._first_use import finish_import


finish_import(__name__)
