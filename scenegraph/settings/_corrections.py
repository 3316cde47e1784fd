"""The settings of corrections of cameras and colours."""

import dataclasses
from typing import Literal, TYPE_CHECKING

from ._ranges import check_ranges, ranged


if TYPE_CHECKING:
    import optax

    from ..data import Annealing, RayBatches, Views
    from ..fitting import PosePolish
    from ..scene import Scene

# The node of the scene that holds them.
CAPTURE = "capture"
# Cameras to be refined may show things so far off, as a share of the pictures' width.
_SPARE = 0.04
# Learning rates fall to a share, after a soft start: at first there is nothing to compare with.
_END, _SOFT = 0.05, 50
# The decay of the running mean of gradients, which are noisy: a step has few rays of any picture.
_MEMORY = 0.95
# The width of the first rays, in pixels, and the steps after which they are a pixel wide.
_COARSE, _FINE = 6.0, 400
# The share of each picture's pixels, those with the largest slopes, that polish poses; the most
# pixels of all pictures that are searched for them; and how many a polish takes of a picture.
_EDGES, _LISTED, _POLISHING = 0.15, 2**28, 512


@dataclasses.dataclass(frozen=True)
class CorrectionSettings:
    """The corrections of pictures that are fitted with the scene.

    **Arguments:**

    - `refine_cameras`: the part of the cameras that is corrected: none; their poses; or all, with
      the lens that they share.
    - `camera_rate`: the learning rate of these corrections at the start, in pixels.
    - `polish_cameras`: the solving for poses, every so many steps from two fifths of the fit on,
      each against the scene as it is: on, off (they only follow the gradient), or auto, which is on
      for pictures with opacity.
    - `exposure`: the correction of every training picture's exposure and white balance: on, off, or
      auto, which is on for pictures without opacity (photographs).
    - `exposure_rate`: the learning rate of these corrections at the start.
    - `appearance_rate`: the learning rate of appearance codes at the start.
    """

    refine_cameras: Literal["none", "poses", "all"] = "none"
    camera_rate: float = ranged(0.4, 0)
    polish_cameras: Literal["auto", "on", "off"] = "auto"
    exposure: Literal["auto", "on", "off"] = "off"
    exposure_rate: float = ranged(2e-3, 0)
    appearance_rate: float = ranged(2e-2, 0)

    def __post_init__(self):
        check_ranges(self)

    @property
    def refines(self) -> bool:
        """True if anything of the cameras is corrected."""
        return self.refine_cameras != "none"

    @property
    def polishes(self) -> bool:
        """True if poses are solved for."""
        return self.refines and self.polish_cameras == "on"

    @property
    def spare(self) -> float:
        """The distance by which pictures may be off, as a share of their width."""
        return _SPARE if self.refines else 0.0

    @property
    def are_none(self) -> bool:
        """True if nothing is corrected."""
        return not self.refines and self.exposure == "off"

    def choose(self, views: "Views") -> "CorrectionSettings":
        """Decides what is left to the pictures: `exposure`, and `polish_cameras`."""
        photographs = views.pixels.shape[1] < 4
        exposure, polish = self.exposure, self.polish_cameras
        exposure = ("on" if photographs else "off") if exposure == "auto" else exposure
        if self.refines and polish == "auto":
            polish = "off" if photographs else "on"
        return dataclasses.replace(self, exposure=exposure, polish_cameras=polish)

    def describe(self, appearance: int = 0) -> str | None:
        """Says what is corrected, in a sentence; `None` if nothing is."""
        what = {"none": [], "poses": ["the pose of every camera"]}.get(
            self.refine_cameras, ["the pose of every camera", "the lens"]
        )
        if self.polishes:
            what[0] += " (from two fifths of the fit on by Gauss and Newton's method)"
        what = [*what, *["exposure and white balance of every picture"] * (self.exposure == "on")]
        what += [f"an appearance code of {appearance} numbers for every picture"] * (appearance > 0)
        return f"fitted with the scene: {', '.join(what)}" if what else None

    def annealing(self, steps: int) -> "Annealing":
        """Makes the coarse-to-fine schedule, by which cameras are found from farther away."""
        from ..data import Annealing

        return Annealing(_COARSE, max(1, min(_FINE, steps // 2)))

    def make_polish(self, batches: "RayBatches") -> "PosePolish | None":
        """Makes the polish of poses, with the pixels at edges, which say most of where they are."""
        if not self.polishes:
            return None
        from ..fitting import PosePolish
        from ..pixels import edge_pixels

        few = batches.views.pixels.shape[0] <= _LISTED
        choice = edge_pixels(batches.views, batches.choice, _EDGES) if few else batches.choice
        return PosePolish(CAPTURE, _POLISHING, choice)

    def apply(self, scene: "Scene", views: "Views", appearance: int = 0) -> "tuple[Scene, Views]":
        """Makes the corrections leaves of a scene, by a node for them.

        `appearance` is the size of appearance codes. Also returns the pictures with cameras in the
        scene. Both are as given if nothing is corrected.
        """
        if self.are_none and appearance == 0:
            return scene, views
        from ..fitting import with_corrections
        from ._placing import with_short_memory

        return with_corrections(
            with_short_memory(scene) if self.refines else scene,
            views,
            poses=self.refines,
            lens=self.refine_cameras == "all",
            colors=self.exposure == "on",
            appearance=appearance,
            name=CAPTURE,
        )

    def make_optimizer(
        self, others: "optax.GradientTransformationExtraArgs", appearance: int = 0
    ) -> "optax.GradientTransformation":
        """Adds the optimisers of the corrections, if any, to that of all other leaves."""
        import optax

        from ..fitting import BEGIN
        from ..optimizers import (
            AbstractSchedule,
            by_path,
            LogLinear,
            scale_by_schedule,
            scale_by_uniform_adam,
            Until,
        )

        rules: dict[str, optax.GradientTransformation] = {}
        for chosen, name, rate in (
            (self.refines, "poses", self.camera_rate),
            (self.refine_cameras == "all", "lens", self.camera_rate),
            (self.exposure == "on", "colors", self.exposure_rate),
            (appearance > 0, "appearances", self.appearance_rate),
        ):
            if chosen:
                falling: AbstractSchedule = LogLinear(rate, _END * rate, _SOFT, 0.01)
                polished = name == "poses" and self.polishes
                schedule = scale_by_schedule(Until(falling, BEGIN) if polished else falling)
                rules[f"{CAPTURE}.{name}"] = optax.chain(scale_by_uniform_adam(_MEMORY), schedule)
        return by_path(rules | {"**": others}) if rules else others
