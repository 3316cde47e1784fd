import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from .._typing import Array, Bool, Float, Int, Scalar, ScalarLike, UInt8
from ..cameras import AbstractCamera, pixel_centres
from ..images import AbstractColorSpace, Image, SRGB
from ..io import LARGEST, MappedArray
from ..numerics import AbstractModule, as_float_leaf
from ..rays import Ray, widen
from ._annealing import Annealing
from ._backdrops import AbstractBackdrop, Solid
from ._pixel_weights import pixel_weights
from ._scene_cameras import SceneCameras, ScenePixels
from ._sightings import Sightings
from ._stacked import stack_cameras


class Views(AbstractModule):
    """Pictures with their cameras. All pixels lie in one flat list, as bytes where files had bytes.

    **Arguments:**

    - `pixels`: straight RGB or RGBA of all pictures, one after the other, row by row,
      `pixels channels`; bytes, or floating numbers between 0 and 1; in memory or in a file.
    - `cameras`: one camera whose leaves have a leading axis `frames`; or the paths of cameras in
      the scene. Its static size is that of the first picture.
    - `widths`, `heights`: the pictures' sizes, in pixels, `frames`; they may differ.
    - `lossmult`: the weight of each picture's pixels in the loss, `frames`.
    - `backdrop`: the backdrop that RGBA pictures are composited over.
    - `names`: the pictures' names.
    - `space`: the colour space of the pixels.
    - `weights`: the weight of each pixel in the loss, `pixels`, times that of its picture; `None`
      for equal weights. Masks are weights that are true or false.
    - `points`: points that are known to lie on surfaces of the scene, in the world, `points 3`;
      `None` if none are.
    - `sightings`: the pixels that show such points; `None` if none are known to.
    - `notes`: sentences about what a loader left out, turned or guessed.
    - `origin`: the place of the data's world from which all places here are counted, x, y and z in
      its units, in double precision; static. It is not zero for data far from their origin.
    """

    pixels: UInt8[Array, "pixels channels"] | Float[Array, "pixels channels"] | MappedArray
    cameras: AbstractCamera | SceneCameras
    widths: Int[Array, " frames"]
    heights: Int[Array, " frames"]
    lossmult: Float[Array, " frames"] = eqx.field(converter=as_float_leaf)
    backdrop: AbstractBackdrop = eqx.field(default_factory=Solid)
    names: tuple[str, ...] = eqx.field(static=True, default=())
    space: AbstractColorSpace = SRGB()
    weights: Float[Array, " pixels"] | Bool[Array, " pixels"] | None = None
    points: Float[Array, "points 3"] | None = None
    sightings: Sightings | None = None
    notes: tuple[str, ...] = eqx.field(static=True, default=())
    origin: tuple[float, float, float] = eqx.field(static=True, default=(0.0, 0.0, 0.0))

    @property
    def frames(self) -> int:
        """The number of pictures."""
        return self.widths.shape[0]

    def camera(self, frame: Int[Array, ""] | int) -> AbstractCamera:
        """Returns the camera of one picture.

        **Arguments:**

        - `frame`: the picture's number.

        **Returns:**

        The camera, with the size of that picture; where the number or the sizes are being traced,
        with the size of the first.

        **Errors:**

        `TypeError` for cameras that are in the scene; there they are found by their paths.
        """
        if isinstance(self.cameras, SceneCameras):
            raise TypeError(
                f"this picture's camera is in the scene: {self.cameras.paths[frame]!r}."
            )
        # Sizes are static, so that only a known picture's camera can have its own.
        camera = jax.tree.map(lambda x: x[frame] if eqx.is_array(x) else x, self.cameras)
        if isinstance(frame, Tracer) or isinstance(self.widths, Tracer):
            return camera
        size = int(self.widths[frame]), int(self.heights[frame])
        return camera if size == (camera.width, camera.height) else camera.resized(*size)

    def starts(self) -> Int[Array, " frames"]:
        """Computes the index of each picture's first pixel in the flat list."""
        # start_i = sum_{j<i} width_j height_j
        sizes = self.widths * self.heights
        return jnp.cumsum(sizes) - sizes

    def rgba(self, indices: Int[Array, "*rays"]) -> Float[Array, "*rays channels"]:
        """Reads pixels of the flat list: straight colours, 0 to 1, with opacity if there is any."""
        if isinstance(self.pixels, MappedArray):
            return self.as_floats(jnp.asarray(self.pixels.take(np.asarray(indices))))
        return self.as_floats(self.pixels[indices])

    def as_floats(
        self, values: UInt8[Array, "*rays channels"] | Float[Array, "*rays channels"]
    ) -> Float[Array, "*rays channels"]:
        """Converts values of `pixels` to numbers between 0 and 1."""
        return values / 255.0 if self.pixels.dtype == jnp.uint8 else values

    def rays(self, indices: Int[Array, " rays"], width: ScalarLike = 1.0) -> Ray | ScenePixels:
        """Makes the cones through pixels of the flat list.

        **Arguments:**

        - `indices`: indices in the flat list, `rays`.
        - `width`: the width of the cones, in pixels.

        **Returns:**

        Rays with one leading axis; or, for cameras in the scene, the pixels that they are made of.
        """
        return self.rays_at(*self.locate(indices), width)

    def rays_at(
        self, frame: Int[Array, " rays"], place: Int[Array, "rays 2"], width: ScalarLike = 1.0
    ) -> Ray | ScenePixels:
        """Makes the cones through pixels of pictures; they are `width` pixels wide."""
        # The centre of the first pixel is (0.5, 0.5).
        centres = place + 0.5
        if isinstance(self.cameras, SceneCameras):
            widths = jnp.full(frame.shape, width, centres.dtype)
            return ScenePixels(frame, centres, widths, self.cameras.paths)
        rays = jax.vmap(lambda frame, pixel: self.camera(frame).ray(pixel))(frame, centres)
        return widen(rays, width)

    def means(
        self, indices: Int[Array, " rays"], annealing: Annealing, width: Scalar
    ) -> tuple[Float[Array, "rays channels"], Bool[Array, " rays"]]:
        """Averages the pictures over squares of some pixels' width about pixels of the flat list.

        Also returns true for squares that lie in the picture.
        """
        frame, place = self.locate(indices)
        sizes = jnp.stack([self.widths, self.heights], axis=-1)[frame]
        pixels = self.rgba(annealing.windows(self.starts()[frame], sizes, place))
        return annealing.mean(pixels, width), annealing.is_inside(sizes, place, width)

    def locate(
        self, indices: Int[Array, " rays"]
    ) -> tuple[Int[Array, " rays"], Int[Array, "rays 2"]]:
        """Finds pictures, columns and rows of pixels of the flat list."""
        frame = self.frame_of(indices)
        # index = start + row width + column
        row, column = jnp.divmod(indices - self.starts()[frame], self.widths[frame])
        return frame, jnp.stack([column, row], axis=-1)

    def weights_at(
        self, frame: Int[Array, " rays"], place: Int[Array, "rays 2"]
    ) -> Float[Array, " rays"]:
        """Looks up the weights of pixels in the loss."""
        weights = self.lossmult[frame]
        if self.weights is None:
            return weights
        column, row = place.T
        return weights * self.weights[self.starts()[frame] + row * self.widths[frame] + column]

    def frame_of(self, indices: Int[Array, " rays"]) -> Int[Array, " rays"]:
        """Finds the numbers of the pictures of pixels of the flat list."""
        # The last picture that starts at or before the pixel.
        return jnp.searchsorted(self.starts(), indices, side="right") - 1

    def image(self, frame: int) -> Image:
        """Returns one picture on the backdrop.

        **Arguments:**

        - `frame`: the picture's number.

        **Returns:**

        The picture, with its opacity if known.
        """
        width, height = int(self.widths[frame]), int(self.heights[frame])
        rgba = self.as_floats(jnp.asarray(self.pixels[self.part(frame)]))
        rgb = self.backdrop.compose(rgba, None).reshape(height, width, 3)
        alpha = rgba[:, 3].reshape(height, width) if rgba.shape[1] == 4 else None
        return Image(rgb, alpha=alpha)

    def part(self, frame: int) -> slice:
        """Returns the slice of the flat list that is one picture."""
        # In 64 bits: a file may hold more pixels than JAX can count.
        ends = np.cumsum(np.asarray(self.widths, np.int64) * np.asarray(self.heights))
        return slice(int(ends[frame - 1]) if frame else 0, int(ends[frame]))


def views(
    cameras: AbstractCamera | str | Sequence[AbstractCamera | str],
    images: Image | ArrayLike | Sequence[Image | ArrayLike],
    *,
    space: AbstractColorSpace | None = None,
    weights: ArrayLike | Sequence[ArrayLike] | None = None,
) -> Views:
    """Puts pictures together with their cameras, ready for `fit`.

    **Arguments:**

    - `cameras`: cameras of the pictures' sizes, all of one kind; or paths of cameras in the scene
      that will be fitted. The pictures may differ in size.
    - `images`: the pictures, or their colours as arrays `height width 3`; their opacity is taken
      to be one.
    - `space`: the colour space of arrays, `SRGB()` or `Linear()`; of floating numbers without it
      `fit` takes the scene's, and says so. Keyword only argument.
    - `weights`: the weights of pixels in the loss, such as masks, one array `height width` for
      each picture; zero leaves a pixel out. Keyword only argument.

    **Returns:**

    Views of as many frames.

    **Errors:**

    `ValueError` if numbers, sizes or colour spaces differ, if colours are not finite, or if weights
    are negative or all zero;
    `TypeError` for paths among cameras.

    Example: leave out the left half of a picture.

    ```python
    camera = sg.PerspectiveCamera.look_at([0, -3, 1], [0, 0, 0], [0, 0, 1], 0.8, 8, 6)
    mask = np.arange(8) >= 4
    half = sg.views(camera, np.full((6, 8, 3), 128, np.uint8), weights=np.tile(mask, (6, 1)))
    ```
    """
    cameras = [cameras] if isinstance(cameras, AbstractCamera | str) else list(cameras)
    images = [_as_image(image, space) for image in _as_list(images, 3)]
    if len(cameras) != len(images) or not images:
        raise ValueError(f"there are {len(cameras)} cameras for {len(images)} pictures.")
    for index, (camera, image) in enumerate(zip(cameras, images, strict=True)):
        _check_sizes(camera, image)
        _check_colors(index, image)
    if len({type(image.space) for image in images}) > 1:
        raise ValueError("the pictures differ in their colour space.")
    return Views(
        jnp.concatenate([image.rgb.reshape(-1, 3) for image in images]),
        _combine(cameras),
        jnp.asarray([image.width for image in images]),
        jnp.asarray([image.height for image in images]),
        jnp.ones(len(images)),
        names=tuple(f"image_{i}" for i in range(len(images))) if len(images) > 1 else ("image",),
        space=images[0].space,
        weights=None if weights is None else pixel_weights(_as_list(weights, 2), images),
    )


def _as_list(value: Any, axes: int) -> list:
    """Returns the items of a list or an array, or of one item alone, which has so many axes."""
    alone = getattr(value, "ndim", None) == axes
    return [value] if isinstance(value, Image) or alone else list(value)


def _as_image(value: Image | ArrayLike, space: AbstractColorSpace | None) -> Image:
    """Makes a picture of an array, in a space if one is stated."""
    if isinstance(value, Image):
        if space is not None and not isinstance(value.space, type(space)):
            raise ValueError(
                f"`space` is for arrays: this `Image` says itself that it is in "
                f"{type(value.space).__name__}; got {type(space).__name__}."
            )
        return value
    return Image(value) if space is None else Image(value, space=space)


def _check_sizes(camera: AbstractCamera | str, image: Image) -> None:
    if isinstance(camera, str) or (camera.width, camera.height) == (image.width, image.height):
        return
    raise ValueError(
        f"the camera's picture is {camera.width}x{camera.height} pixels; the image has "
        f"{image.width}x{image.height}."
    )


def _check_colors(index: int, image: Image) -> None:
    """Refuses colours that no loss can compare with, where they are known."""
    if isinstance(image.rgb, Tracer):
        return
    odd = ~(np.abs(np.asarray(image.rgb)) <= LARGEST).all(axis=-1)  # also where one is NaN
    if odd.any():
        row, column = np.argwhere(odd)[0].tolist()
        raise ValueError(
            f"image {index} has {int(odd.sum())} pixels whose colours are not finite, or above "
            f"{LARGEST:g}; the first is in row {row} and column {column}. Correct them, or leave "
            "them out with `weights`, of finite colours."
        )


def _combine(cameras: list) -> AbstractCamera | SceneCameras:
    paths = [camera for camera in cameras if isinstance(camera, str)]
    if len(paths) == len(cameras):
        return SceneCameras(tuple(paths))
    if paths:
        raise TypeError(f"cameras and paths cannot be mixed; {paths[0]!r} is a path.")
    return stack_cameras(cameras)


def pixel_rays(camera: AbstractCamera) -> Ray:
    """Makes the cones through all pixels of a camera, row by row.

    **Arguments:**

    - `camera`: the camera.

    **Returns:**

    Rays with one leading axis.
    """
    return jax.vmap(camera.ray)(pixel_centres(camera.width, camera.height))


def in_stated_space(views: Views, space: AbstractColorSpace | None) -> Views:
    """Takes pictures without a stated space to be in the scene's, and says so."""
    stated = not isinstance(views.space, SRGB) or views.space.stated
    if stated or space is None or isinstance(space, SRGB):
        return views
    warnings.warn(
        f"the pictures are floating numbers that do not say their colour space; they are taken to "
        f"be in the scene's, {type(space).__name__}. Say so with "
        f"`sg.views(..., space=sg.images.Linear())`, or SRGB().",
        stacklevel=4,
    )
    return dataclasses.replace(views, space=space)
