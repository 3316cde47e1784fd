"""The settings of the optimisation: batches, loss, optimiser and its schedule."""

import dataclasses
from typing import Literal, TYPE_CHECKING

from ._method import LONG
from ._ranges import check_ranges, ranged


if TYPE_CHECKING:
    import optax

    from ..data import Annealing, RayBatches, Views
    from ..fitting import RenderLoss
    from ..optimizers import AbstractSchedule
    from ._volumes import Space

# A list of more pixels would take more memory than it is worth: a gigabyte.
_LISTED = 2**28
# Rays in a step, and in one of fits that take at most so many seconds, or at least so many: large
# batches spend less of their time on Adam (figures in docs/fast.md).
_RAYS, _FEWER_RAYS, _SHORT = 2048, 1024, 60.0
_MORE_RAYS = ((LONG, 8192), (LONG / 4, 4096))
# The same where all of space is fitted, whose rays have more samples (figures in docs/captures.md).
_SHORT_IN_SPACE = 300.0
# One of so many rays goes through a pixel in which a reconstruction found a point.
_SIGHTED = 8
# The part of a fit after which rays are one pixel wide, and the fewest pixels that are worth it:
# short fits draw fewer often enough (figures in docs/fast.md).
_WIDE_PART, _WIDE_PIXELS = 0.6, 2**22
# The weight of points for one picture, and the least for many (figures in docs/captures.md).
_POINTS, _LEAST_OF_POINTS = 10.0, 0.1


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
    """The optimisation: batches of rays, loss, Adam and its learning rate.

    **Arguments:**

    - `batch_size`: the number of rays in a step; by default 2048, or 1024 where the time limit
      is a minute or less, or five where all of space is fitted: few steps are better spent on more
      of them. In a box it is 4096 for five minutes and more, and 8192 for twenty.
    - `batching`: the pictures from which the rays of one step are drawn.
    - `start_width`: the largest width of the first rays in pixels, and of the squares of pixels
      whose mean they have to show; it falls to 1, the least, in the first six tenths of the fit.
      All rays are one pixel wide where a fit draws twice as many pixels as there are, where these
      are fewer than four million, and where all of space is fitted.
    - `learning_rate`: the learning rate at the start.
    - `final_learning_rate`: the learning rate at the end.
    - `rate_decay`: the way in which it falls until then.
    - `delay_steps`: the number of steps of a soft start; 0 for none.
    - `delay_multiplier`: the factor of the learning rate at the beginning of the soft start.
    - `adam_b2`: the decay of Adam's mean of squared gradients.
    - `adam_epsilon`: the number added to the root of that mean.
    - `max_gradient_value`: the limit of each entry of the gradient; 0 for none.
    - `max_gradient_norm`: the limit of the length of the gradient after that; 0 for none.
    - `weight_decay`: the factor of the mean square of all network weights in the loss.
    - `point_weight`: the factor, in the loss, of how far rays miss the points that a reconstruction
      found in their pixels, where all of space is fitted; 0 to ignore these. By default 10 over the
      number of pictures, but no less than 0.1: few pictures need points most.
    - `coarse_weight`: the factor of the loss of every level but the last.
    - `sum_channels`: if true, squared errors are summed over channels, as published; otherwise
      averaged.
    - `jitter`: if true, sample positions are random while training.
    """

    batch_size: int | None = ranged(512, 1, 2**24)
    batching: Literal["all_images", "single_image"] = "all_images"
    start_width: float = ranged(1.0, 1, 1024)
    learning_rate: float = ranged(1e-2, 0)
    final_learning_rate: float = ranged(2e-4, 0)
    rate_decay: Literal["exponential", "linear"] = "exponential"
    delay_steps: int = ranged(100, 0, 2**31 - 1)
    delay_multiplier: float = ranged(0.1, 0)
    adam_b2: float = ranged(0.999, 0, 1, open=True)
    adam_epsilon: float = ranged(1e-8, 0)
    max_gradient_value: float = ranged(0.0, 0)
    max_gradient_norm: float = ranged(0.0, 0)
    weight_decay: float = ranged(0.0, 0)
    point_weight: float | None = ranged(None, 0)
    coarse_weight: float = ranged(0.1, 0)
    sum_channels: bool = False
    jitter: bool = True

    def __post_init__(self):
        check_ranges(self)

    def make_batches(self, views: "Views", box: "Space" = None) -> "RayBatches":
        """Makes the random batches of a fit.

        Given a box, batches from all pictures have only pixels whose rays meet it, unless there are
        very many.
        """
        from ..data import AbstractPixelChoice, AllImages, Ball, RayBatches, SingleImage
        from ..pixels import pixels_through

        choice: AbstractPixelChoice = AllImages()
        if self.batching == "single_image":
            choice = SingleImage()
        elif (
            isinstance(box, tuple)
            and not isinstance(box, Ball)
            and views.pixels.shape[0] <= _LISTED
        ):
            choice = pixels_through(views, *box)
        batches = RayBatches(views, self.rays(), choice)
        if not isinstance(box, Ball):
            return dataclasses.replace(batches, annealing=self._widen(batches))
        if self.weigh_points(views) == 0:
            return batches
        return dataclasses.replace(batches, sighted=self.rays() // _SIGHTED)

    def _widen(self, batches: "RayBatches") -> "Annealing | None":
        """Makes the schedule of wide rays; `None` where all are one pixel wide."""
        from ..data import Annealing
        from ..pixels import PixelList

        choice, pixels = batches.choice, batches.views.pixels
        count = choice.indices.shape[0] if isinstance(choice, PixelList) else len(pixels)
        if self.start_width == 1 or count < _WIDE_PIXELS:
            return None
        return Annealing(self.start_width, 1, _WIDE_PART, count / self.rays())

    def weigh_points(self, views: "Views | None") -> float:
        """Returns the factor of missed points in the loss; 0 for pictures that show none."""
        if views is None or views.sightings is None:
            return 0.0
        if self.point_weight is not None:
            return self.point_weight
        return max(_POINTS / views.frames, _LEAST_OF_POINTS)

    def rays(self, limit: float | None = None, *, space: bool = False) -> int:
        """Chooses the number of rays in a step: `batch_size`, if it is a number.

        `limit` is the time of the whole fit, in seconds; `space` is true where all of space is
        fitted.
        """
        if self.batch_size is not None:
            return self.batch_size
        if limit is None:
            return _RAYS
        if limit <= (_SHORT_IN_SPACE if space else _SHORT):
            return _FEWER_RAYS
        more = (rays for least, rays in _MORE_RAYS if limit >= least and not space)
        return next(more, _RAYS)

    def make_loss(self, views: "Views | None" = None) -> "RenderLoss":
        """Makes the loss that a step minimises, with points where pictures show any."""
        from ..fitting import RenderLoss
        from ..losses import MultiLevelLoss

        loss = MultiLevelLoss(self.coarse_weight, self.sum_channels)
        return RenderLoss(
            loss,
            weight_decay=self.weight_decay,
            jitter=self.jitter,
            point_weight=self.weigh_points(views),
        )

    def make_schedule(self) -> "AbstractSchedule":
        """Makes the learning rate of every step."""
        from ..optimizers import Linear, LogLinear

        kind = Linear if self.rate_decay == "linear" else LogLinear
        return kind(
            self.learning_rate, self.final_learning_rate, self.delay_steps, self.delay_multiplier
        )

    def make_optimizer(self) -> "optax.GradientTransformationExtraArgs":
        """Makes Adam with clipping and the scheduled learning rate."""
        from ..optimizers import mip_nerf_optimizer

        return mip_nerf_optimizer(
            self.make_schedule(),
            max_value=self.max_gradient_value,
            max_norm=self.max_gradient_norm,
            b2=self.adam_b2,
            epsilon=self.adam_epsilon,
        )
