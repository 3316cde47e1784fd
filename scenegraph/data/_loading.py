"""The options that all loaders share, and what they do alike."""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import TypedDict

import jax.numpy as jnp
import numpy as np

from .._typing import Int
from ..cameras import AbstractCamera
from ..images import shrink
from ..io import read_picture
from ._backdrops import AbstractBackdrop, Solid
from ._pixel_store import gather_pixels, PixelArray
from ._views import Views


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
    """

    downscale: int
    near: float | None
    far: float | None
    backdrop: AbstractBackdrop | None
    straight_alpha: bool
    memory_map: bool | None


@dataclasses.dataclass(frozen=True)
class Loading:
    """`LoadOptions` with their defaults."""

    downscale: int = 1
    near: float | None = None
    far: float | None = None
    backdrop: AbstractBackdrop | None = None
    straight_alpha: bool = False
    memory_map: bool | None = None


def gather_pictures(
    files: list[pathlib.Path], loading: Loading, factor: int, *, one_size: bool = True
) -> tuple[PixelArray, Int[np.ndarray, "frames 2"]]:
    """Reads pictures into one flat list, averaged over blocks; also the files' sizes."""

    def shrunk(picture: np.ndarray) -> np.ndarray:
        if factor == 1:
            return picture
        if not loading.straight_alpha:
            return shrink(picture, factor)
        # As the published code rounds.
        return shrink(picture.astype(np.float32) / np.float32(255), factor, straight_alpha=True)

    pixels, shapes = gather_pixels(
        files,
        lambda index: read_picture(files[index]),
        shrunk,
        # Part of the name of the file in the cache.
        settings=f"{factor} {loading.straight_alpha}",
        memory_map=loading.memory_map,
        one_size=one_size,
    )
    return pixels, np.asarray([(width, height) for height, width, _ in shapes])


def assemble_views(
    loading: Loading,
    pixels: PixelArray,
    cameras: AbstractCamera,
    sizes: Int[np.ndarray, "frames 2"],
    names: Sequence[str],
    lossmult: np.ndarray | None = None,
) -> Views:
    """Puts together what a loader has read; by default every pixel counts alike."""
    return Views(
        pixels,
        cameras,
        jnp.asarray(sizes[:, 0]),
        jnp.asarray(sizes[:, 1]),
        jnp.ones(len(sizes)) if lossmult is None else lossmult.astype(np.float32),
        Solid() if loading.backdrop is None else loading.backdrop,
        tuple(names),
    )


def choose_frames(count: int, hold_every: int, *, training: bool) -> list[int]:
    """Splits frames: of each `hold_every` the first is held out, the others are for training."""
    if hold_every < 2:
        raise ValueError(f"`hold_every` must be at least 2, or nothing is left; got {hold_every}.")
    return [index for index in range(count) if (index % hold_every != 0) == training]
