"""The options that all loaders share."""

import dataclasses
from typing import TypedDict

from ..io import LARGEST
from ..pixels import AbstractBackdrop


class LoadOptions(TypedDict, total=False):
    """The keywords that all loaders share.

    **Arguments:**

    - `downscale`: the side of the blocks of pixels that are averaged; 1 by default.
    - `near`, `far`: the ends of the cameras' rays, in world units; by default those of the data, or
      wide about all that the cameras look at, for scenes whose volumes have bounds.
    - `backdrop`: the backdrop of pictures with opacity; white by default.
    - `straight_alpha`: if true, colours are averaged without weighting them by opacity, as the
      published mip-NeRF code does; false by default.
    - `memory_map`: if true, the pixels stay in a file, and are read as they are needed; by default
      if they would take more than a quarter of the memory that is free.
    - `skip_missing`: if true, pictures whose files are missing or damaged, and frames of
      `transforms.json` without a usable pose, are left out, and counted in `Views.notes`; false by
      default, which makes them an error that names them all.
    - `masks`: if false, masks that come with the pictures are not read; true by default.
    """

    downscale: int
    near: float | None
    far: float | None
    backdrop: AbstractBackdrop | None
    straight_alpha: bool
    memory_map: bool | None
    skip_missing: bool
    masks: bool


@dataclasses.dataclass(frozen=True)
class Loading:
    """`LoadOptions` with their defaults."""

    downscale: int = 1
    near: float | None = None
    far: float | None = None
    backdrop: AbstractBackdrop | None = None
    straight_alpha: bool = False
    memory_map: bool | None = None
    skip_missing: bool = False
    masks: bool = True

    def __post_init__(self):
        for name, value in {"near": self.near, "far": self.far}.items():
            if value is not None and not 0 <= value <= LARGEST:
                raise ValueError(f"`{name}` must be between 0 and {LARGEST:g}; got {value}.")
        if self.near is not None and self.far is not None and not self.near < self.far:
            raise ValueError(f"`near` must be less than `far`; got {self.near} and {self.far}.")
