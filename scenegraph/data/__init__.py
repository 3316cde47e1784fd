"""Data sets: loaders, the flat pixel store, and batches as a pure function of seed and step."""

from ._annealing import Annealing as Annealing
from ._backdrops import (
    AbstractBackdrop as AbstractBackdrop,
    IgnoreAlpha as IgnoreAlpha,
    Random as Random,
    Solid as Solid,
)
from ._batches import (
    AbstractPixelChoice as AbstractPixelChoice,
    AllImages as AllImages,
    Batch as Batch,
    RayBatches as RayBatches,
    SingleImage as SingleImage,
)
from ._blender import load_blender as load_blender
from ._bounds import find_bounds as find_bounds
from ._convert_colmap import convert_colmap as convert_colmap
from ._convert_multiscale import convert_multiscale as convert_multiscale
from ._formats import find_splits as find_splits, load_data as load_data
from ._llff import load_llff as load_llff
from ._multiscale import load_multiscale as load_multiscale
from ._transforms import load_transforms as load_transforms
from ._views import pixel_rays as pixel_rays, Views as Views, views as views

# Internal: for other packages of the library, and for none of its users.
from ._backdrops import put_over
from ._batches import Drawn
from ._bounds import find_empty, look_centre
from ._formats import find_format, Format
from ._in_scene import CamerasInScene, Pixels
from ._listed import Listed, pixels_through
from ._llff import llff_path
from ._pixel_store import cache_folder, gather_pixels
from ._reader import Loader, PixelReader
from ._transforms import transforms_path, transforms_splits
from ._views import stack_cameras
