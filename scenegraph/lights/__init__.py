"""Lights, and the light that they send to a point: `_base` has the contract, each file a light."""

from ._ambient import AmbientLight as AmbientLight
from ._base import AbstractLight as AbstractLight, LightSample as LightSample
from ._directional import DirectionalLight as DirectionalLight
from ._environment import EnvironmentLight as EnvironmentLight
from ._point import PointLight as PointLight
from ._mesh import MeshLight as MeshLight
from ._rectangle import RectangleLight as RectangleLight
from ._round import DiskLight as DiskLight, SphereLight as SphereLight
from ._sized import (
    AbstractSizedLight as AbstractSizedLight,
    LampBody as LampBody,
    LightPoint as LightPoint,
)
from ._spot import SpotLight as SpotLight

# Internal: for other packages of the library, and for none of its users.
from ._base import AbstractEnvironment
from ._environment import PreparedEnvironment
from ._panorama_table import (
    panorama_density,
    panorama_radiance,
    PanoramaTable,
    sample_panorama,
    tabulate_panorama,
)

from .._first_use import finish_import


finish_import(__name__)
