"""The records that travel: rays as cones, their sections as Gaussians, media and radiance."""

from ._gaussian import (
    AbstractGaussian as AbstractGaussian,
)
from ._gaussian import (
    FullGaussian as FullGaussian,
)
from ._gaussian import (
    Gaussian as Gaussian,
)
from ._gaussian import (
    transform_gaussian as transform_gaussian,
)
from ._hit import Hit as Hit
from ._ray import Ray as Ray
from ._ray import transform_ray as transform_ray
from ._records import (
    Medium as Medium,
)
from ._records import (
    Radiance as Radiance,
)
from ._records import (
    Section as Section,
)
from ._records import (
    Span as Span,
)
from ._records import (
    overlap as overlap,
)
from ._records import (
    transform_section as transform_section,
)
from ._sections import AbstractBeam as AbstractBeam
from ._sections import Cone as Cone
from ._sections import Cylinder as Cylinder
