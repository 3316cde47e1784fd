"""The picture record, colour spaces and resizing."""

from ._color import linear_to_srgb as linear_to_srgb
from ._color import srgb_to_linear as srgb_to_linear
from ._image import (
    SRGB as SRGB,
)
from ._image import (
    AbstractColorSpace as AbstractColorSpace,
)
from ._image import (
    Image as Image,
)
from ._image import (
    Linear as Linear,
)
from ._image import (
    as_bytes as as_bytes,
)
from ._resize import shrink as shrink
