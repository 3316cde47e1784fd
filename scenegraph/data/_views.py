import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Float, Int, UInt8
from ..cameras import AbstractCamera, pixel_centres
from ..images import Image
from ..numerics import AbstractModule, as_float_leaf
from ..rays import Ray
from ._backdrops import AbstractBackdrop, Solid


class Views(AbstractModule):
    """Pictures with their cameras. All pixels lie in one flat list, as bytes where files had bytes.

    **Arguments:**

    - `pixels`: straight RGB or RGBA of all pictures, one after the other, row by row; bytes, or
      floating numbers between 0 and 1.
    - `cameras`: one camera whose leaves have a leading axis `frames`.
    - `widths`, `heights`: of the pictures, in pixels.
    - `lossmult`: how much a pixel of each picture counts.
    - `backdrop`: what RGBA pictures are put on.
    - `names`: of the pictures.
    """

    pixels: UInt8[Array, "pixels channels"] | Float[Array, "pixels channels"]
    cameras: AbstractCamera
    widths: Int[Array, " frames"]
    heights: Int[Array, " frames"]
    lossmult: Float[Array, " frames"] = eqx.field(converter=as_float_leaf)
    backdrop: AbstractBackdrop = eqx.field(default_factory=Solid)
    names: tuple[str, ...] = eqx.field(static=True, default=())

    @property
    def frames(self) -> int:
        """How many pictures there are."""
        return self.widths.shape[0]

    def camera(self, frame: Int[Array, ""] | int) -> AbstractCamera:
        """The camera of one picture.

        **Arguments:**

        - `frame`: its number.

        **Returns:**

        The camera.
        """
        return jax.tree.map(lambda x: x[frame] if eqx.is_array(x) else x, self.cameras)

    def starts(self) -> Int[Array, " frames"]:
        """Where each picture's pixels begin in the flat list.

        **Returns:**

        One index a picture.
        """
        sizes = self.widths * self.heights
        return jnp.cumsum(sizes) - sizes

    def rgba(self, indices: Int[Array, " rays"]) -> Float[Array, "rays channels"]:
        """Pixels of the flat list as numbers between 0 and 1.

        **Arguments:**

        - `indices`: in the flat list.

        **Returns:**

        Straight colours, with opacity if the pictures have it.
        """
        values = self.pixels[indices]
        return values / 255.0 if self.pixels.dtype == jnp.uint8 else values

    def rays(self, indices: Int[Array, " rays"]) -> Ray:
        """The cones through pixels of the flat list.

        **Arguments:**

        - `indices`: in the flat list.

        **Returns:**

        Rays with one leading axis.
        """
        frames, centres = jax.vmap(self._locate, (0, None))(indices, self.starts())
        return jax.vmap(lambda frame, pixel: self.camera(frame).ray(pixel))(frames, centres)

    def frame_of(self, indices: Int[Array, " rays"]) -> Int[Array, " rays"]:
        """Which picture each pixel of the flat list belongs to.

        **Arguments:**

        - `indices`: in the flat list.

        **Returns:**

        The pictures' numbers.
        """
        return jnp.searchsorted(self.starts(), indices, side="right") - 1

    def image(self, frame: int) -> Image:
        """One picture on the backdrop.

        **Arguments:**

        - `frame`: its number.

        **Returns:**

        The picture, with its opacity if known.
        """
        width, height = int(self.widths[frame]), int(self.heights[frame])
        rgba = self.rgba(self.starts()[frame] + jnp.arange(width * height))
        rgb = self.backdrop.compose(rgba, None).reshape(height, width, 3)
        alpha = rgba[:, 3].reshape(height, width) if rgba.shape[1] == 4 else None
        return Image(rgb, alpha=alpha)

    def _locate(self, index: Int[Array, ""], starts: Int[Array, " frames"]):
        """The picture and the pixel centre that a flat index stands for."""
        frame = jnp.searchsorted(starts, index, side="right") - 1
        row, column = jnp.divmod(index - starts[frame], self.widths[frame])
        return frame, jnp.stack([column, row]) + 0.5


def views(camera: AbstractCamera, image: Image) -> Views:
    """One picture with its camera, ready for `fit`.

    **Arguments:**

    - `camera`: of the picture's size.
    - `image`: what it saw; its opacity is taken to be one.

    **Returns:**

    Views of one frame.

    **Errors:**

    `ValueError` if the sizes differ.
    """
    if (camera.width, camera.height) != (image.width, image.height):
        raise ValueError(
            f"the camera's picture is {camera.width}x{camera.height} pixels; the image has "
            f"{image.width}x{image.height}."
        )
    return Views(
        image.rgb.reshape(-1, 3),
        stack_cameras([camera]),
        jnp.asarray([image.width]),
        jnp.asarray([image.height]),
        jnp.ones(1),
        names=("image",),
    )


def stack_cameras(cameras: list[AbstractCamera]) -> AbstractCamera:
    """One camera whose leaves have a leading axis.

    **Arguments:**

    - `cameras`: of one kind and size.

    **Returns:**

    The stacked camera.
    """
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *cameras)


def pixel_rays(camera: AbstractCamera) -> Ray:
    """The cones through all pixels of a camera, row by row.

    **Arguments:**

    - `camera`: one camera.

    **Returns:**

    Rays with one leading axis.
    """
    return jax.vmap(camera.ray)(pixel_centres(camera.width, camera.height))
