"""The files of a film: one or more pictures for each frame, or an animation."""

import abc
import pathlib
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from ..images import as_bytes, Image, published_suite, side_by_side
from ..io import (
    FileError,
    read_json,
    require_exr,
    require_video,
    write_animation,
    write_exr,
    write_float_picture,
    write_json,
    write_picture,
)
from ._film import Film


_NOTE = "film.json"
# An iterator over the numbers of the frames to render, which may show progress.
Track = Callable[[list[int]], Iterable[int]]


class AbstractFrameFiles(abc.ABC):
    """The form in which a frame is kept in files of a folder."""

    @abc.abstractmethod
    def names(self, film: Film, number: int) -> list[str]:
        """Returns the names of the files of a frame.

        **Arguments:**

        - `film`: the film.
        - `number`: the index of the frame.

        **Returns:**

        Names in the folder.
        """

    @abc.abstractmethod
    def write(self, film: Film, image: Image, paths: list[pathlib.Path]) -> None:
        """Writes a frame.

        **Arguments:**

        - `film`: the film.
        - `image`: the frame.
        - `paths`: the files, in the order of `names`.
        """


class Rows(AbstractFrameFiles):
    """PNG files, one for each frame, with all quantities side by side."""

    def names(self, film: Film, number: int) -> list[str]:
        return [f"frame_{number:03d}.png"]

    def write(self, film: Film, image: Image, paths: list[pathlib.Path]) -> None:
        write_picture(paths[0], side_by_side(film.panels(image)))


class SeparateFiles(AbstractFrameFiles):
    """PNG files, one for each quantity of each frame."""

    def names(self, film: Film, number: int) -> list[str]:
        return [f"{what}_{number:03d}.png" for what in film.show]

    def write(self, film: Film, image: Image, paths: list[pathlib.Path]) -> None:
        for path, panel in zip(paths, film.panels(image), strict=True):
            write_picture(path, as_bytes(panel))


class Exr(AbstractFrameFiles):
    """OpenEXR files of numbers: linear light, depths in units of `t`, and all else as it is."""

    def names(self, film: Film, number: int) -> list[str]:
        return [f"frame_{number:03d}.exr"]

    def write(self, film: Film, image: Image, paths: list[pathlib.Path]) -> None:
        layers = {what: _layer(image, what) for what in film.show}
        write_exr(paths[0], {name: x for layer in layers.values() for name, x in layer.items()})


def _layer(image: Image, what: str) -> dict[str, np.ndarray]:
    if what == "rgb":
        return _channels("RGB", image.space.to_linear(image.rgb))
    if what == "normals":
        return _channels(["normal.X", "normal.Y", "normal.Z"], image.normal)
    if what == "albedo":
        assert image.albedo is not None
        light = image.space.to_linear(image.albedo)
        return _channels(["albedo.R", "albedo.G", "albedo.B"], light)
    if what == "uv":
        return _channels(["uv.U", "uv.V"], image.uv)
    if what == "positions":
        return _channels(["position.X", "position.Y", "position.Z"], image.position)
    name, values = {
        "depth": ("Z", image.depth),
        "median-depth": ("median.Z", image.median_depth),
        "opacity": ("opacity.A", image.alpha),
        "surfaces": ("surface.ID", image.surface),
        "candidates": ("candidates.N", image.candidates),
    }[what]
    return {name: np.asarray(values)}


def _channels(names, values) -> dict[str, np.ndarray]:
    return dict(zip(names, np.moveaxis(np.asarray(values), -1, 0), strict=True))


class Suite(AbstractFrameFiles):
    """The six files that the published mip-NeRF code writes for a picture."""

    def names(self, film: Film, number: int) -> list[str]:
        pictures = ("color", "depth", "depth_mod", "depth_normals")
        return [
            *(f"{name}_{number:03d}.png" for name in pictures),
            *(f"{name}_{number:03d}.tiff" for name in ("distance", "acc")),
        ]

    def write(self, film: Film, image: Image, paths: list[pathlib.Path]) -> None:
        depth, alpha = np.asarray(image.depth), np.asarray(image.alpha)
        pictures = published_suite(depth, alpha).values()
        write_picture(paths[0], as_bytes(image))
        for path, rgb in zip(paths[1:4], pictures, strict=True):
            write_picture(path, np.round(255 * np.clip(rgb, 0, 1)).astype(np.uint8))
        for path, numbers in zip(paths[4:], (depth, alpha), strict=True):
            write_float_picture(path, numbers)


def write_frames(
    film: Film,
    folder: pathlib.Path,
    files: AbstractFrameFiles,
    *,
    overwrite: bool = False,
    track: Track = iter,
) -> None:
    """Renders a film into a folder; frames that are there already are kept.

    **Arguments:**

    - `film`: the film.
    - `folder`: the folder; it is made if there is none.
    - `files`: the form of the files.
    - `overwrite`: if true, frames that exist are rendered again. Keyword only, as is what follows.
    - `track`: an iterator over the numbers of the missing frames, which may show progress.

    **Errors:**

    `FileError` for a folder with frames of another film, unless `overwrite`.
    """
    if isinstance(files, Exr):
        require_exr()
    _check_note(film, folder, files, overwrite)
    missing = [
        number
        for number in range(len(film.cameras))
        if overwrite or not all((folder / name).exists() for name in files.names(film, number))
    ]
    for number, image in _rendered(film, missing, track):
        files.write(film, image, [folder / name for name in files.names(film, number)])


def _check_note(
    film: Film, folder: pathlib.Path, files: AbstractFrameFiles, overwrite: bool
) -> None:
    """Makes sure that existing frames are of this film, and writes down which film it is."""
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / _NOTE
    own = {"film": film.fingerprint(), "frames": len(film.cameras), "kind": type(files).__name__}
    there = [x for i in range(len(film.cameras)) for x in files.names(film, i)]
    if not overwrite and any((folder / name).exists() for name in there):
        if not note.exists() or read_json(note) != own:
            raise FileError(
                f"the frames in {folder} are of another film (or of another state of the scene); "
                "pass --overwrite, or another --out."
            )
    write_json(note, own)


def _rendered(film: Film, numbers: list[int], track: Track) -> Iterator[tuple[int, Image]]:
    """Renders frames one after the other."""
    if numbers:
        film.depths  # noqa: B018 - computed before the clock of `track` starts
    for number in track(numbers):
        yield number, film.render_frame(number)


def write_film(
    film: Film,
    out: pathlib.Path,
    *,
    frames_per_second: float = 20.0,
    separate: bool = False,
    track: Track = iter,
) -> list[pathlib.Path]:
    """Renders a film into one animation, or one for each quantity.

    **Arguments:**

    - `film`: the film.
    - `out`: the file; its name ends in `.gif` or `.mp4`.
    - `frames_per_second`: the speed. Keyword only, as is what follows.
    - `separate`: if true, each quantity gets a file of its own, named after it.
    - `track`: an iterator over frame numbers, which may show progress.

    **Returns:**

    The files.

    **Errors:**

    `ValueError` for frames of several sizes; `FileError` for an MP4 without the extra `video`.
    """
    sizes = {(camera.width, camera.height) for camera in film.cameras}
    if len(sizes) > 1:
        raise ValueError(
            f"the frames have {len(sizes)} sizes, and a film has one; pass --width or --height, or "
            "a folder as --out."
        )
    if out.suffix == ".mp4":
        require_video()
    frames = []
    for _, image in _rendered(film, list(range(len(film.cameras))), track):
        panels = film.panels(image)
        frames.append([as_bytes(x) for x in panels] if separate else [side_by_side(panels)])
    outs = _outs(film, out, separate)
    for path, pictures in zip(outs, zip(*frames, strict=True), strict=True):
        write_animation(path, pictures, frames_per_second=frames_per_second)
    return outs


def write_still(film: Film, out: pathlib.Path, *, separate: bool = False) -> list[pathlib.Path]:
    """Renders the first frame of a film into a file.

    **Arguments:**

    - `film`: the film.
    - `out`: the file; its name ends in `.png` or `.exr`.
    - `separate`: if true, each quantity gets a PNG file of its own. Keyword only argument.

    **Returns:**

    The files.
    """
    if out.suffix == ".exr":
        require_exr()
        Exr().write(film, film.render_frame(0), [out])
        return [out]
    outs = _outs(film, out, separate)
    (SeparateFiles() if separate else Rows()).write(film, film.render_frame(0), outs)
    return outs


def _outs(film: Film, out: pathlib.Path, separate: bool) -> list[pathlib.Path]:
    if not separate:
        return [out]
    return [out.with_name(f"{out.stem}_{what}{out.suffix}") for what in film.show]
