"""The lenses of a `transforms.json`: a model, intrinsics in pixels, and coefficients."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from .._typing import Array
from ..cameras import AbstractCamera, FisheyeCamera, OpenCVCamera, PanoramaCamera, PerspectiveCamera
from ..io import FileError, LARGEST
from ..transforms import Pose
from ._folds import folded_share


Kind = Callable[..., AbstractCamera]

# The coefficients that each model has.
MODELS = {
    "SIMPLE_PINHOLE": (),
    "PINHOLE": (),
    "SIMPLE_RADIAL": ("k1",),
    "RADIAL": ("k1", "k2"),
    "OPENCV": ("k1", "k2", "p1", "p2", "k3"),
    "FULL_OPENCV": ("k1", "k2", "p1", "p2", "k3", "k4", "k5", "k6"),
    "OPENCV_FISHEYE": ("k1", "k2", "k3", "k4"),
    "EQUIRECTANGULAR": (),
}
# No model has others than these.
_COEFFICIENTS = MODELS["FULL_OPENCV"]
# The classes of lenses that are not a pinhole's with distortion.
_WIDE: dict[str, Kind] = {
    "OPENCV_FISHEYE": FisheyeCamera,
    "EQUIRECTANGULAR": PanoramaCamera,
}
# A fitted polynomial may fold in the corners of a picture, which no scene needs; not in more.
_FOLDED = 0.05
# Focal lengths along x and y that differ by less than this share are one.
_ALIKE = 1e-5
# The keys of focal lengths along each axis.
_FOCAL = {"x": ("fl_x", "camera_angle_x"), "y": ("fl_y", "camera_angle_y")}
# Keys that instant-ngp reads and this does not: nothing that changes a picture is ignored silently.
_OTHER_LENSES = ("ftheta_p0", "latlong", "equirectangular", "orthographic", "rolling_shutter")


class Lens(NamedTuple):
    """One camera of a listing, without its pose; `where` is the listing and frame, for messages."""

    where: str
    model: str
    numbers: dict[str, float]

    def coefficients(self) -> dict[str, float]:
        """Returns the distortion coefficients, zero where the listing has none."""
        return {name: self.numbers.get(name, 0.0) for name in MODELS[self.model]}

    def size(self, smaller: float = 1.0) -> tuple[float, float] | None:
        """Returns the width and height of pictures that are so much smaller, if they are known."""
        width, height = self.numbers.get("w"), self.numbers.get("h")
        if width is None or height is None:
            return None
        return width / smaller, height / smaller

    def pixels(self, width: int, height: int, *, resized: bool = False) -> np.ndarray:
        """Returns `(focal x, focal y, centre x, centre y)` in pixels, for pictures of this size.

        If they are `resized`, the lens is scaled to them; else its own size must be theirs.
        """
        own = int(self.numbers.get("w", width)), int(self.numbers.get("h", height))
        scale = np.array([width / own[0], height / own[1]] if resized else [1.0, 1.0])
        # Sizes of smaller pictures are rounded.
        alike = abs(width - scale[1] * own[0]) <= 1 + 0.01 * width if resized else True
        for (name, size), mine in zip({"w": width, "h": height}.items(), own, strict=True):
            if (mine != size and not resized) or not alike:
                raise FileError(
                    f"{self.where}: `{name}` is {mine}, but the picture has {width}x{height} "
                    "pixels; correct the listing, or use pictures of its size."
                )
        centre = self.numbers.get("cx", own[0] / 2), self.numbers.get("cy", own[1] / 2)
        found = np.array([*self.focals(*own), *centre])
        check_fold(self, found, own)
        # (f_x, f_y, c_x, c_y) grow with width and height.
        return found * np.tile(scale, 2)

    def focals(self, width: float, height: float) -> tuple[float, float]:
        """Returns the focal lengths along x and y, for pictures of the lens' own size."""
        # f = (length / 2) / tan(angle / 2), where the listing has angles of view instead.
        whole = self.model == "EQUIRECTANGULAR"
        x = self._focal_along("x", width, width / 2 if whole else None)
        y = self._focal_along("y", height, height if whole else x)
        assert x is not None and y is not None  # `read_lens` has seen to it.
        # nerfstudio's panoramas have pixels a half turn, the cameras here pixels a radian.
        return (x / math.pi, y / math.pi) if whole else (x, y)

    def _focal_along(self, axis: str, length: float, otherwise: float | None) -> float | None:
        angle = self.numbers.get(f"camera_angle_{axis}")
        known = otherwise if angle is None else 0.5 * length / math.tan(0.5 * angle)
        return self.numbers.get(f"fl_{axis}", known)


def read_lens(where: str, listing: dict[str, Any], frame: dict[str, Any]) -> Lens:
    """Reads the lens of one frame, whose keys take precedence over the whole listing's."""
    keys = _without_focals(listing, frame) | frame
    for key in _OTHER_LENSES:
        if keys.get(key) not in (None, False, 0, [0, 0, 0], [0, 0, 0, 0]):
            raise FileError(f"{where}: lenses with `{key}` are not supported.")
    model = keys.get("camera_model", "OPENCV_FISHEYE" if keys.get("is_fisheye") else "OPENCV")
    if not isinstance(model, str) or model not in MODELS:
        raise FileError(
            f"{where}: `camera_model` {model!r} is not supported; there are {', '.join(MODELS)}."
        )
    given = [key for key in (*_SIZES, *_COEFFICIENTS) if keys.get(key) is not None]
    lens = Lens(where, model, {key: _checked_number(where, key, keys[key]) for key in given})
    _check_coefficients(lens)
    if lens.model != "EQUIRECTANGULAR" and not any(key in lens.numbers for key in _FOCAL["x"]):
        raise FileError(
            f"{where}: `fl_x` or `camera_angle_x`, an angle between 0 and pi, is needed, and not "
            "there."
        )
    return lens


def _without_focals(listing: dict[str, Any], frame: dict[str, Any]) -> dict[str, Any]:
    """Returns a listing without the focal lengths that a frame has itself, in whichever key."""
    first = lambda keys, there: next((key for key in keys if there.get(key) is not None), None)
    given = {axis: first(keys, frame) for axis, keys in _FOCAL.items()}
    axes = {axis for axis, key in given.items() if key is not None}
    # The file's y goes with its x, unless the frame has no more than another value of that key.
    if "x" in axes and given["x"] != first(_FOCAL["x"], listing):
        axes = set(_FOCAL)
    dropped = {key for axis in axes for key in _FOCAL[axis]}
    return {key: value for key, value in listing.items() if key not in dropped}


def _positive(value: float) -> bool:
    return value > 0


def _angle(value: float) -> bool:
    return 0 < value < math.pi


def _count(value: float) -> bool:
    return value == int(value) and 0 < value < 2**20


_SIZES = {
    "fl_x": (_positive, "be positive"),
    "fl_y": (_positive, "be positive"),
    "camera_angle_x": (_angle, "lie between 0 and pi"),
    "camera_angle_y": (_angle, "lie between 0 and pi"),
    "cx": (math.isfinite, "be finite"),
    "cy": (math.isfinite, "be finite"),
    "w": (_count, "be a number of pixels"),
    "h": (_count, "be a number of pixels"),
}


def _checked_number(where: str, key: str, value: Any) -> float:
    fits, rule = _SIZES.get(key, (math.isfinite, "be finite"))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FileError(f"{where}: `{key}` must be a number, and {rule}; got {value!r}.")
    if not abs(value) <= LARGEST:  # not NaN, nor an integer that no float holds
        raise FileError(f"{where}: `{key}` must be finite, not above {LARGEST:g}, and {rule}.")
    if not fits(value):
        raise FileError(f"{where}: `{key}` must {rule}; got {value!r}.")
    return float(value)


def _check_coefficients(lens: Lens) -> None:
    # Every coefficient that is not zero must mean something.
    for key in _COEFFICIENTS:
        if lens.numbers.get(key, 0.0) != 0 and key not in MODELS[lens.model]:
            others = [name for name, has in MODELS.items() if key in has]
            raise FileError(
                f"{lens.where}: `{key}` is {lens.numbers[key]:g}, but cameras of the model "
                f"{lens.model} have no `{key}`; set it to 0, or name a model that has it: "
                f"{', '.join(others)}."
            )


def check_fold(lens: Lens, pixels: np.ndarray, size: tuple[int, int]) -> None:
    """Refuses coefficients by which a lens shows nothing in a part of its pictures."""
    share = folded_share(lens.model, lens.coefficients(), pixels, size)
    if share > _FOLDED:
        values = ", ".join(f"{name} {x:g}" for name, x in lens.coefficients().items() if x)
        raise FileError(
            f"{lens.where}: the coefficients ({values}) fold the picture over: {100 * share:.0f} % "
            "of its pixels would show nothing. Correct them, or calibrate again."
        )


def camera_kind(lenses: list[Lens], size: tuple[float, float]) -> Kind:
    """Returns the camera class for all of these lenses: a pinhole if none of them distorts.

    `size` is the width and height of the pictures of those that do not say it.
    """
    kinds = [_WIDE.get(lens.model, OpenCVCamera) for lens in lenses]
    for lens, kind in zip(lenses, kinds, strict=True):
        if kind is not kinds[0]:
            raise FileError(
                f"{lens.where}: `camera_model` {lens.model} cannot be mixed with "
                f"{lenses[0].model}; put these pictures into a data set of their own."
            )
    # A plain pinhole has fewer leaves, and an exact inverse.
    bent = any(any(lens.coefficients().values()) for lens in lenses)
    pairs = np.array([lens.focals(*(lens.size() or size)) for lens in lenses])
    plain = not bent and np.allclose(pairs[:, 0], pairs[:, 1], rtol=_ALIKE, atol=0)
    return PerspectiveCamera if kinds[0] is OpenCVCamera and plain else kinds[0]


def make_cameras(
    kind: Kind,
    lenses: list[Lens],
    poses: np.ndarray,
    pixels: np.ndarray,
    size: tuple[int, int],
    limits: tuple[float, float],
) -> AbstractCamera:
    """Makes cameras whose leaves have a leading axis, one a lens, a pose and a row of `pixels`."""
    focal = pixels[:, 0] if kind is PerspectiveCamera else pixels[:, :2]
    columns = {"focal": focal, "principal_point": pixels[:, 2:]}
    if kind in (OpenCVCamera, FisheyeCamera):
        names = MODELS["FULL_OPENCV" if kind is OpenCVCamera else "OPENCV_FISHEYE"]
        given = [lens.coefficients() for lens in lenses]
        columns |= {name: np.array([each.get(name, 0.0) for each in given]) for name in names}
    (width, height), (near, far) = size, limits

    def camera(pose: Array, columns: dict[str, Array]) -> AbstractCamera:
        return kind(Pose(pose), width=width, height=height, near=near, far=far, **columns)

    return jax.jit(jax.vmap(camera))(*jax.tree.map(np.float32, (poses, columns)))
