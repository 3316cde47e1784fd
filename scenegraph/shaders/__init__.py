"""What surfaces and backgrounds look like."""

from ._base import AbstractShader as AbstractShader
from ._checker import Checker as Checker
from ._constant import Constant as Constant
from ._convert import as_shader as as_shader
from ._coordinates import (
    AbstractCoordinates as AbstractCoordinates,
    InSpace as InSpace,
    OnSurface as OnSurface,
)
from ._lambert import cosines as cosines, incident as incident, Lambert as Lambert
