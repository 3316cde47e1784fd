"""The settings of the data: from a folder to pictures with cameras, and the box they show."""

import dataclasses
import os
import pathlib
from typing import Any, Literal, TYPE_CHECKING

from ..io import LARGEST
from ._ranges import check_ranges, ranged


if TYPE_CHECKING:
    from ..data import Views
    from ._volumes import Corners, Space

# Held-out pictures on random colours are put on white.
_COLORS = {"white": (1.0, 1.0, 1.0), "black": (0.0, 0.0, 0.0), "random": (1.0, 1.0, 1.0)}
_MEMORY_MAP = {"auto": None, "always": True, "never": False}
# How much farther rays reach where all of space is fitted: beyond what differs from infinity.
_FARTHER = 100.0


@dataclasses.dataclass(frozen=True)
class DataSettings:
    """The reading of pictures and cameras.

    **Arguments:**

    - `downscale`: the side, in pixels, of the blocks over which pictures are averaged.
    - `background`: the colour behind pictures with opacity; random ones differ at each step.
    - `memory_map`: the use of a file for the pixels instead of memory; auto if there are many.
    - `straight_alpha`: if true, downscaling does not weight colours by their opacity.
    - `area_weights`: if true, a pixel of a small picture counts for the pixels that it stands for.
    - `hold_every`: the spacing of held-out pictures (LLFF, nerfstudio and COLMAP data).
    - `held_out`: the held-out pictures instead, by names or by numbers in the order of names (LLFF,
      nerfstudio and COLMAP data).
    - `skip_missing`: if true, pictures whose files are missing or damaged are left out; otherwise
      they are an error that names them all.
    - `masks`: if true, pixels that masks leave out do not count (nerfstudio, COLMAP and LLFF data).
    - `ndc`: if true, the space before the cameras is mapped to a cube, NDC; if false (`--no-ndc`),
      it is not; by default it is where the rays of all pixels leave forward (LLFF data).
    - `spherify`: if true, the cameras look inwards and are scaled to the unit sphere (LLFF data).
    - `published_radii`: if true, radii and views of rays in NDC are the published ones; otherwise
      exact (LLFF data).
    - `bounds`: the space that the field fills: the box found from cameras and opacities; all of
      space, contracted into a ball; none, which is each ray's interval from near to far; or auto,
      which chooses between the first two by the pictures.
    - `box_scale`: the size of that box, as a multiple of the one found.
    - `near`: the distance at which rays begin; by default close to the camera.
    - `far`: the distance at which rays end; by default behind everything.
    """

    downscale: int = ranged(1, 1, 1024)
    background: Literal["white", "black", "random"] = "white"
    memory_map: Literal["auto", "always", "never"] = "auto"
    straight_alpha: bool = False
    area_weights: bool = True
    hold_every: int = ranged(8, 2, 2**31 - 1)
    held_out: tuple[str, ...] = ()
    skip_missing: bool = False
    masks: bool = True
    ndc: bool | None = None
    spherify: bool = False
    published_radii: bool = False
    bounds: Literal["auto", "found", "contracted", "none"] = "auto"
    box_scale: float = ranged(1.0, 0, open=True)
    near: float | None = ranged(None, 0, LARGEST)
    far: float | None = ranged(None, 0, LARGEST)

    def __post_init__(self):
        check_ranges(self)
        if self.near is not None and self.far is not None and not self.near < self.far:
            raise ValueError(
                f"--near (`near`) must be less than --far (`far`); got {self.near} and {self.far}."
            )

    @property
    def background_color(self) -> tuple[float, float, float]:
        """The red, green and blue behind the scene and behind held-out pictures."""
        return _COLORS[self.background]

    def load(self, folder: str | os.PathLike, split: str = "train") -> "Views":
        """Loads one split of a data set.

        **Arguments:**

        - `folder`: the data folder, of any format.
        - `split`: the name of the split, such as `train` or `test`.

        **Returns:**

        The pictures with their cameras. Held-out pictures are never put on random colours.

        **Errors:**

        `FileError` for a bad folder; `ValueError` for a setting that the folder's format lacks.
        """
        import jax.numpy as jnp

        from ..data import load_data, Random, Solid

        random = self.background == "random" and split == "train"
        backdrop = Random() if random else Solid(self.background_color)
        views = load_data(
            folder,
            split,
            **self._loader_options(folder),
            downscale=self.downscale,
            near=self.near,
            far=self.far,
            backdrop=backdrop,
            straight_alpha=self.straight_alpha,
            memory_map=_MEMORY_MAP[self.memory_map],
            skip_missing=self.skip_missing,
            masks=self.masks,
        )
        if not self.area_weights:
            views = dataclasses.replace(views, lossmult=jnp.ones(views.frames))
        return self.reach(views)

    def reach(self, views: "Views") -> "Views":
        """Moves the far ends of rays next to infinity, if all of space is fitted.

        The pictures are the same unless `bounds` is `contracted`, or if `far` is given.
        """
        if self.bounds != "contracted" or self.far is not None:
            return views
        import equinox as eqx

        from ..pixels import known_cameras

        far = _FARTHER * known_cameras(views).far
        return eqx.tree_at(lambda v: v.cameras.far, views, far)

    def find_box(self, views: "Views", *, spare: float = 0.0) -> "Space":
        """Finds the box that holds the scene, or the ball about which all of space is contracted.

        `spare` is the distance by which pictures may be off, as a share of their width.
        `ValueError` for a contraction of NDC.
        """
        from ..cameras import NDCCamera
        from ..data import Ball, find_ball, find_bounds

        if self.bounds == "none":
            return None
        if self.bounds == "contracted":
            if isinstance(views.cameras, NDCCamera):
                raise ValueError("`bounds=contracted` needs cameras without NDC: pass --no-ndc.")
            ball = find_ball(views)
            return Ball(ball.centre, self.box_scale * ball.radius)
        return scale_box(find_bounds(views, spare=spare), self.box_scale)

    def own_path(self, folder: str | os.PathLike) -> list | None:
        """Returns the cameras of the film that goes with the data: LLFF's that look forward."""
        from ..data import llff_path, looks_forward

        options = self._loader_options(folder)
        around = options.get("ndc") is None and not options.get("spherify")
        if "spherify" not in options or (around and not looks_forward(folder)):
            return None
        del options["hold_every"], options["held_out"]
        limits = {"downscale": self.downscale, "near": self.near, "far": self.far}
        return llff_path(folder, **limits, **options)

    def _loader_options(self, folder: str | os.PathLike) -> dict[str, Any]:
        """Returns the settings that only the loader of the folder's format has."""
        from ..data import find_format

        form = find_format(folder)
        listed = "data of which no file has the splits: LLFF, nerfstudio and COLMAP"
        for name, where in {
            "spherify": "LLFF data",
            "ndc": "LLFF data",
            "held_out": listed,
        }.items():
            # Runs of earlier versions have `ndc=True`, whatever their data.
            usual = (getattr(DataSettings, name), True if name == "ndc" else None)
            if name not in form.options and getattr(self, name) not in usual:
                raise ValueError(f"`{name}` is for {where}; {folder} is {form.name} data.")
        return {name: getattr(self, name) for name in form.options}


def scale_box(box: "Corners", scale: float) -> "Corners":
    """Enlarges a box about its middle."""
    lower, upper = box
    middle, half = (lower + upper) / 2, scale * (upper - lower) / 2
    return (lower, upper) if scale == 1 else (middle - half, middle + half)


def held_out_split(folder: str | os.PathLike) -> str:
    """Returns the split to evaluate on: `test` if there is one, else `val`, else `train`."""
    from ..data import find_splits

    splits = find_splits(pathlib.Path(folder))
    return next((split for split in ("test", "val") if split in splits), "train")
