"""The frames of a film: what each shows, and where the colours of depths begin and end."""

import dataclasses
import functools
import hashlib
from typing import Literal

import jax
import numpy as np

from ..cameras import AbstractCamera, scale_resolution
from ..images import depth_limits, Image, Quantity, visualise
from ..scene import Scene
from ._render import render


# Outputs of `render` that are shown under these names.
_OUTPUTS = {"normals": "normal", "median-depth": "median_depth"}
# Of the first look at a film, which finds out how deep it is.
_FIRST_FRAMES, _FIRST_WIDTH = 24, 64


@dataclasses.dataclass(frozen=True)
class Film:
    """Pictures of a scene from many cameras.

    **Arguments:**

    - `scene`: it.
    - `cameras`: one a frame.
    - `show`: what each frame shows.
    - `colors`: the colour map of depths.
    - `chunk`: as in `render`.
    """

    scene: Scene
    cameras: list[AbstractCamera]
    show: tuple[Quantity, ...] = ("rgb",)
    colors: str = "turbo"
    chunk: int | Literal["auto"] = "auto"

    def look(self, number: int) -> Image:
        """Renders a frame, with all that is to be shown of it.

        **Arguments:**

        - `number`: of the frame.

        **Returns:**

        The picture.
        """
        return render(
            self.scene,
            self.cameras[number],
            chunk=self.chunk,
            outputs=[name for shown, name in _OUTPUTS.items() if shown in self.show],
        )

    @functools.cached_property
    def depths(self) -> tuple[float, float]:
        """The depths that get the last and the first colour, the same in the whole film.

        They are found by a first look at frames that are spread over it, in small; or at the only
        frame, which needs no other program to be compiled.
        """
        if not {"depth", "median-depth"} & set(self.show):
            return 0.0, 1.0
        if len(self.cameras) == 1:
            return depth_limits([self.look(0)])
        chosen = np.linspace(0, len(self.cameras) - 1, min(_FIRST_FRAMES, len(self.cameras)))
        return depth_limits(
            [render(self.scene, _small(self.cameras[i])) for i in chosen.round().astype(int)]
        )

    def panels(self, image: Image) -> list[Image]:
        """What is shown of a frame.

        **Arguments:**

        - `image`: from `look`.

        **Returns:**

        Pictures of one size, in the order of `show`.
        """
        return [
            visualise(image, what, depths=self.depths, colors=self.colors) for what in self.show
        ]

    def fingerprint(self) -> str:
        """What tells this film from others: scene, cameras, and what is shown.

        **Returns:**

        A short text that is another one whenever a frame may look different.
        """
        digest = hashlib.sha256(repr((self.show, self.colors)).encode())
        for tree in (self.scene, *self.cameras):
            leaves, structure = jax.tree.flatten(tree)
            digest.update(str(structure).encode())
            for leaf in leaves:
                digest.update(np.asarray(leaf).tobytes())
        return digest.hexdigest()[:16]


def _small(camera: AbstractCamera) -> AbstractCamera:
    return scale_resolution(camera, min(1.0, _FIRST_WIDTH / camera.width))


def resized(
    cameras: list[AbstractCamera], width: int | None, height: int | None, scale: float | None
) -> list[AbstractCamera]:
    """Cameras whose pictures have another size and the same shape.

    **Arguments:**

    - `cameras`: any.
    - `width`, `height`, `scale`: one of these may be given.

    **Returns:**

    The cameras.

    **Errors:**

    `ValueError` if more than one is given, or what is given is not positive.
    """
    given = [x for x in (width, height, scale) if x is not None]
    if len(given) > 1:
        raise ValueError("--width, --height and --scale all set the size; pass one of them.")
    if not given:
        return cameras
    if not given[0] > 0:
        raise ValueError(f"the size of a picture must be positive; got {given[0]}.")
    return [scale_resolution(x, _factor(x, width, height, scale)) for x in cameras]


def _factor(
    camera: AbstractCamera, width: int | None, height: int | None, scale: float | None
) -> float:
    if width is not None:
        return width / camera.width
    return height / camera.height if height is not None else scale or 1.0
