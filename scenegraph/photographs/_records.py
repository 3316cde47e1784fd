import dataclasses
import pathlib

import numpy as np


@dataclasses.dataclass(frozen=True)
class FoundLens:
    """A lens that pictures share, in pixels of the pictures.

    **Arguments:**

    - `model`: COLMAP's name of the lens model, such as `OPENCV`.
    - `width`, `height`: the size of the pictures.
    - `pictures`: the number of pictures with this lens.
    - `parameters`: the parameters of the model by their names, such as `f`, `cx`, `cy` and `k1`.
    - `from_exif`: if true, the focal length was known approximately from the pictures' EXIF.
    """

    model: str
    width: int
    height: int
    pictures: int
    parameters: dict[str, float]
    from_exif: bool

    @property
    def focal(self) -> float:
        """The horizontal focal length, in pixels."""
        return self.parameters.get("f", self.parameters.get("fx", 0.0))

    def describe(self) -> str:
        """Describes the lens in a line."""
        angle = np.degrees(2 * np.arctan2(self.width / 2, self.focal))
        fisheye = "FISHEYE" in self.model
        view = "" if fisheye else f", which sees {angle:.0f} degrees across"
        source = "EXIF and pictures" if self.from_exif else "the pictures"
        return (
            f"{self.model} for {self.pictures} pictures of {self.width} x {self.height}: focal "
            f"length {self.focal:.1f} pixels{view} (from {source})"
        )


@dataclasses.dataclass(frozen=True)
class UnplacedPicture:
    """A picture that no pose was found for.

    **Arguments:**

    - `name`: the name of the picture in its folder.
    - `why`: the reason.
    """

    name: str
    why: str


@dataclasses.dataclass(frozen=True)
class FoundPoses:
    """The result of `find_poses`: which pictures have a pose, and how well it fits.

    **Arguments:**

    - `folder`: the capture, which `load_data` and `scenegraph fit` read.
    - `placed`: the names of the pictures with a pose, as they are in the capture.
    - `unplaced`: the pictures without one, each with the reason.
    - `lenses`: the lenses that were found.
    - `reprojection_error`: the mean distance, in pixels of the features' pictures, between where a
      point is seen and where the cameras say.
    - `points`: the number of points that were found.
    - `angle`: the median over points of the largest angle between two rays to it, in degrees.
    - `models`: the numbers of pictures of all unconnected parts that were found; the first, the
      largest, is the capture.
    - `notes`: what else there is to know.
    """

    folder: pathlib.Path
    placed: tuple[str, ...]
    unplaced: tuple[UnplacedPicture, ...]
    lenses: tuple[FoundLens, ...]
    reprojection_error: float
    points: int
    angle: float
    models: tuple[int, ...]
    notes: tuple[str, ...] = ()

    def describe(self) -> list[str]:
        """Describes the result, in lines of text."""
        total = len(self.placed) + len(self.unplaced)
        lines = [
            f"{len(self.placed)} of {total} pictures have a pose ({self.points:,} points, "
            f"reprojection error {self.reprojection_error:.2f} pixels)"
        ]
        lines += [f"no pose for {one.name}: {one.why}" for one in self.unplaced]
        return [*lines, *(f"lens: {lens.describe()}" for lens in self.lenses), *self.notes]
