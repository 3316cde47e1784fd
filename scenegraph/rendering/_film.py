"""The frames of a film, and the range of the colours of depths."""

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterable
from typing import Literal

import jax
import numpy as np

from ..cameras import AbstractCamera, scale_resolution
from ..images import depth_limits, Image, Quantity, visualise
from ..integrators import Path
from ..scene import Scene
from ._passes import render_passes
from ._render import render


# Outputs of `render` that are shown under these names.
_OUTPUTS = {
    "normals": "normal",
    "median-depth": "median_depth",
    "albedo": "albedo",
    "uv": "uv",
    "positions": "position",
    "surfaces": "surface",
    "candidates": "candidates",
}
# Frames, and their width in pixels, that are rendered first, to find the range of depths.
_FIRST_FRAMES, _FIRST_WIDTH = 24, 64


@dataclasses.dataclass(frozen=True)
class Film:
    """Pictures of a scene from many cameras.

    **Arguments:**

    - `scene`: the scene.
    - `cameras`: the cameras, one for each frame.
    - `show`: the quantities that each frame shows.
    - `colors`: the colour map of depths.
    - `chunk`: the number of rays that are rendered at a time, as in `render`.
    - `samples_per_pixel`: the number of cones of every pixel, a square, as in `render`.
    - `paths`: the integrator of random paths; `None` for that of the scene.
    - `track`: maps the numbers of passes of random paths to an iterator, as in `render_passes`.
    """

    scene: Scene
    cameras: list[AbstractCamera]
    show: tuple[Quantity, ...] = ("rgb",)
    colors: str = "turbo"
    chunk: int | Literal["auto"] = "auto"
    samples_per_pixel: int = 1
    paths: Path | None = None
    track: Callable[[range], Iterable[int]] = iter

    def render_frame(self, number: int) -> Image:
        """Renders a frame, with all quantities that are to be shown of it."""
        camera = self.cameras[number]
        outputs = [name for shown, name in _OUTPUTS.items() if shown in self.show]
        if self.paths is not None:
            how = {"outputs": outputs, "chunk": self.chunk, "track": self.track}
            return render_passes(self.scene, camera, self.paths, **how)
        return render(
            self.scene,
            camera,
            chunk=self.chunk,
            outputs=outputs,
            samples_per_pixel=self.samples_per_pixel,
        )

    @functools.cached_property
    def depths(self) -> tuple[float, float]:
        """The depths that get the last and the first colour, the same in the whole film.

        They are those of small frames that are spread over the film; or of the only frame, which
        needs no other program to be compiled.
        """
        if not {"depth", "median-depth"} & set(self.show):
            return 0.0, 1.0
        if len(self.cameras) == 1:
            return depth_limits([self.render_frame(0)])
        chosen = np.linspace(0, len(self.cameras) - 1, min(_FIRST_FRAMES, len(self.cameras)))
        cameras = [self.cameras[i] for i in chosen.round().astype(int)]
        small = [scale_resolution(x, min(1.0, _FIRST_WIDTH / x.width)) for x in cameras]
        return depth_limits([render(self.scene, camera) for camera in small])

    def panels(self, image: Image) -> list[Image]:
        """Makes the pictures of the quantities that a frame shows, in the order of `show`."""
        return [
            visualise(image, what, depths=self.depths, colors=self.colors) for what in self.show
        ]

    def fingerprint(self) -> str:
        """Computes a hash that differs whenever a frame may look different."""
        # With one sample a pixel, as in folders that were begun before there could be more.
        samples = () if self.samples_per_pixel == 1 else (self.samples_per_pixel,)
        samples = samples if self.paths is None else (*samples, self.paths)
        digest = hashlib.sha256(repr((self.show, self.colors, *samples)).encode())
        for tree in (self.scene, *self.cameras):
            leaves, structure = jax.tree.flatten(tree)
            digest.update(str(structure).encode())
            for leaf in leaves:
                digest.update(np.asarray(leaf).tobytes())
        return digest.hexdigest()[:16]


def resized(
    cameras: list[AbstractCamera], width: int | None, height: int | None, scale: float | None
) -> list[AbstractCamera]:
    """Changes the size of cameras' pictures, and not their shape; at most one size is given."""
    given = [x for x in (width, height, scale) if x is not None]
    if len(given) > 1:
        raise ValueError("--width, --height and --scale all set the size; pass one of them.")
    if not given:
        return cameras
    if not given[0] > 0:
        raise ValueError(f"the size of a picture must be positive; got {given[0]}.")
    if width is not None:
        return [scale_resolution(camera, width / camera.width) for camera in cameras]
    if height is not None:
        return [scale_resolution(camera, height / camera.height) for camera in cameras]
    return [scale_resolution(camera, given[0]) for camera in cameras]
