"""Data sets: loaders, the flat pixel store, and batches as a pure function of seed and step.

To read it in order: `_pixel_store` (all pixels in one flat list), `_backdrops`, `_scene_cameras`,
`_annealing`, `_views` (pictures with cameras), `_lines`, `_reader`, `_batches`, `_pixel_list`;
`_loading` and `_listing`, which loaders share; the formats `_blender`, `_multiscale`, `_llff`,
`_lenses` with `_transforms`, and `_formats`; the converters `_convert_multiscale` and
`_convert_colmap`; at last `_bounds`, which finds the scene from pictures and cameras, and
`_unbounded` for scenes without walls.
"""

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
from ._loading import LoadOptions as LoadOptions
from ._multiscale import load_multiscale as load_multiscale
from ._transforms import load_transforms as load_transforms
from ._views import pixel_rays as pixel_rays, Views as Views, views as views

# Internal: for other packages of the library, and for none of its users.
from ._backdrops import over_background
from ._batches import DrawnPixels
from ._bounds import find_empty_cells, focus_point, Probe, probe_views
from ._formats import find_folder, find_format, Format
from ._lines import frame_lines, known_cameras, on_host, pixel_lines, take_camera
from ._llff import llff_path
from ._pixel_list import PixelList, pixels_through
from ._pixel_store import cache_folder, gather_pixels
from ._reader import PixelReader, Prefetcher
from ._scene_cameras import SceneCameras, ScenePixels
from ._transforms import transforms_path, transforms_splits
from ._unbounded import Ball, find_ball, find_unseen_cells, looks_outwards, shows_everything
from ._views import stack_cameras
