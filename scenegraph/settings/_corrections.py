"""Corrections of cameras and colours: their settings, and what a run makes of them."""

import dataclasses
from typing import Literal

import equinox as eqx
import jax
import optax

from ..data import Annealing, RayBatches, Views
from ..fitting import align_cameras, BEGIN, move_cameras, PosePolish, with_corrections
from ..optimizers import (
    AbstractSchedule,
    by_path,
    LogLinear,
    scale_by_schedule,
    scale_by_uniform_adam,
    Until,
)
from ..pixels import edge_pixels, known_cameras
from ..scene import Capture, find_capture, Occupancy, Scene
from ._ranges import check_ranges, ranged


# The node of the scene that holds them.
CAPTURE = "capture"
# Steps, and rays of a picture, by which the poses of held-out pictures are found, and how much
# longer such a ray takes than a rendered one.
_STEPS, RAYS, BACKWARD = 100, 256, 3
_FEWEST = 20
# Cameras to be refined may show things so far off, as a share of the pictures' width.
_SPARE = 0.04
# Cells of an occupancy forget what they were by this factor. While cameras are wrong, fog is seen
# about everything, and the hull is wide.
_DECAY = 0.6
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

    def choose(self, views: Views) -> "CorrectionSettings":
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

    def annealing(self, steps: int) -> Annealing:
        """Makes the coarse-to-fine schedule, by which cameras are found from farther away."""
        return Annealing(_COARSE, max(1, min(_FINE, steps // 2)))

    def make_polish(self, batches: RayBatches) -> PosePolish | None:
        """Makes the polish of poses, with the pixels at edges, which say most of where they are."""
        if not self.polishes:
            return None
        few = batches.views.pixels.shape[0] <= _LISTED
        choice = edge_pixels(batches.views, batches.choice, _EDGES) if few else batches.choice
        return PosePolish(CAPTURE, _POLISHING, choice)

    def apply(self, scene: Scene, views: Views, appearance: int = 0) -> tuple[Scene, Views]:
        """Makes the corrections leaves of a scene, by a node for them.

        `appearance` is the size of appearance codes. Also returns the pictures with cameras in the
        scene. Both are as given if nothing is corrected.
        """
        if self.are_none and appearance == 0:
            return scene, views
        return with_corrections(
            _with_short_memory(scene) if self.refines else scene,
            views,
            poses=self.refines,
            lens=self.refine_cameras == "all",
            colors=self.exposure == "on",
            appearance=appearance,
            name=CAPTURE,
        )

    def make_optimizer(
        self, others: optax.GradientTransformationExtraArgs, appearance: int = 0
    ) -> optax.GradientTransformation:
        """Adds the optimisers of the corrections, if any, to that of all other leaves."""
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


def _with_short_memory(scene: Scene) -> Scene:
    """Returns a scene whose occupancies soon find that a cell has become empty."""
    is_known = lambda node: isinstance(node, Occupancy)
    shorten = lambda known: dataclasses.replace(known, decay=min(known.decay, _DECAY))
    change = lambda node: shorten(node) if is_known(node) else node
    return jax.tree.map(change, scene, is_leaf=is_known)


def find_corrections(scene: Scene) -> Capture | None:
    """Returns the node with corrections of cameras; `None` where none were fitted."""
    capture = find_capture(scene, CAPTURE)
    fitted = capture is not None and (capture.poses is not None or capture.lens is not None)
    return capture if fitted else None


def training_cameras(scene: Scene, views: Views) -> Views:
    """Returns training pictures with the cameras that were fitted to them."""
    capture = find_corrections(scene)
    if capture is None:
        return views
    return eqx.tree_at(lambda v: v.cameras, views, capture.corrected())


def moved_cameras(scene: Scene, views: Views) -> Views:
    """Returns pictures with cameras moved as the scene's were moved on the whole."""
    capture = find_corrections(scene)
    return views if capture is None else move_cameras(capture, views)


def is_of_training(scene: Scene, views: Views) -> bool:
    """Returns true if a scene has a camera for each of these training pictures."""
    capture = find_corrections(scene)
    if capture is None:
        return False
    return known_cameras(views).near.shape == capture.cameras.near.shape


def place_cameras(scene: Scene, views: Views, split: str, steps: int) -> tuple[Views, str | None]:
    """Places the cameras of pictures to be scored, and says how; the sentence may be `None`."""
    if find_corrections(scene) is None:
        return views, None
    if split == "train" and is_of_training(scene, views):
        return training_cameras(scene, views), "corrected by the fit"
    if steps < _FEWEST:
        moved = align_cameras(scene, views, name=CAPTURE, steps=0)
        return moved, "moved by the similarity of given and corrected training cameras"
    placed = align_cameras(scene, views, name=CAPTURE, steps=steps, rays=RAYS)
    return placed, (
        "moved by the similarity of given and corrected training cameras; then the pose of each "
        f"picture, and nothing else, was fitted to it ({steps} steps of {RAYS} of its rays)"
    )


def alignment_steps(affordable: int | None) -> int:
    """Returns the steps of an alignment, of which so many may be taken; `None` for any."""
    return _STEPS if affordable is None else min(_STEPS, affordable)


def alignment_rays(frames: int) -> int:
    """Returns the rays of an alignment, in as many as take as long when they are rendered."""
    return _STEPS * RAYS * BACKWARD * frames
