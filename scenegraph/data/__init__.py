"""Data sets: loaders, and the pictures, pixels and batches that they make (in `pixels`).

Read what loaders share first: `_loading`, `_listing`, `_splits`, `_masks` and `_pictures`;
`_folds`, `_lenses`, `_listed` and `_listed_frames`; the formats `_blender`, `_multiscale`, `_llff`,
`_transforms`, `_colmap`, and `_formats`; the converters `_convert_multiscale` and
`_convert_colmap`, and `_save_transforms`; at last `_bounds`, which finds the scene from pictures
and cameras, and `_unbounded` for scenes without walls.
"""

from ..photographs import (
    find_poses as find_poses,
    FoundLens as FoundLens,
    FoundPoses as FoundPoses,
    UnplacedPicture as UnplacedPicture,
)
from ..pixels import (
    AbstractBackdrop as AbstractBackdrop,
    AbstractPixelChoice as AbstractPixelChoice,
    AllImages as AllImages,
    Annealing as Annealing,
    Batch as Batch,
    IgnoreAlpha as IgnoreAlpha,
    Patches as Patches,
    pixel_rays as pixel_rays,
    Random as Random,
    RayBatches as RayBatches,
    Sightings as Sightings,
    SingleImage as SingleImage,
    Solid as Solid,
    Views as Views,
    views as views,
)
from ._blender import load_blender as load_blender
from ._colmap import load_colmap as load_colmap
from ._formats import load_data as load_data
from ._llff import load_llff as load_llff
from ._loading import LoadOptions as LoadOptions
from ._multiscale import load_multiscale as load_multiscale
from ._save_transforms import save_transforms as save_transforms
from ._transforms import load_transforms as load_transforms

# Internal: for other packages of the library, and for none of its users.
from ._bounds import find_bounds, find_empty_cells, focus_point, Probe, probe_views
from ._convert_colmap import convert_colmap
from ._convert_multiscale import convert_multiscale
from ._formats import find_folder, find_format, find_splits, Format, needs_poses
from ._llff import llff_path, looks_forward
from ._transforms import transforms_path, transforms_splits
from ._unbounded import Ball, find_ball, find_unseen_cells, looks_outwards, shows_everything

from .._first_use import finish_import


finish_import(__name__)
