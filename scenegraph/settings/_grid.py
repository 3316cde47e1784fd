"""The fast method: features on a grid, sampled where an occupancy says that something may be."""

import dataclasses
import math
from typing import Literal, TYPE_CHECKING

import numpy as np

from ._method import AbstractMethod, LONG
from ._ranges import check_ranges, ranged


if TYPE_CHECKING:
    from .._typing import RandomKey
    from ..data import Views
    from ..fields import GridField
    from ..integrators import AbstractMediaIntegrator
    from ..scene import Occupancy, Transformed
    from ._volumes import Space

# Samples a ray of a whole picture, of which much is empty. A fit finds what its batches need, and
# `render` takes more where that is too little.
_BUDGET = 12
# Of the occupancy that guides samples: the decay of what is known of cells, and one in how many is
# sampled at a time.
_DECAY, _PART = 0.6, 1
# The levels where there are no pictures to choose them by; the steps where no box is marched, and
# the most where one is.
_USUAL, _STEPS, _MOST_STEPS = (16, 32, 64, 128), 128, 256
# The least and the most cells along an axis of the occupancy.
_OCCUPANCY = (64, 128)
# The optical depth of cells at first, in thresholds: those that stay empty are skipped after seven
# refreshes, where ten thresholds would take 22.
_AT_FIRST = 2.0
# Rows of a level, and those of long fits: a step with the larger table takes twice as long, and
# gets more out of its rays (figures in docs/fast.md).
_CAPACITY, _LARGE_CAPACITY = 2**17, 2**19
# The width of hidden layers of fields in boxes, and of those whose many samples are guided.
_WIDTH, _GUIDED_WIDTH = 64, 32


@dataclasses.dataclass(frozen=True)
class Grid(AbstractMethod):
    """Features on a grid and two small networks, sampled only where something may be.

    **Arguments:**

    - `resolutions`: the number of cells along an axis, level by level; by default doubled from 16
      on, until a cell is about as wide as a pixel in the middle of the box.
    - `features`: the number of features at each point of a level.
    - `capacity`: the largest number of points of a level with features of their own; a power of 2;
      by default 131072, and 524288 where the time limit is 20 minutes or more, unless all of space
      is fitted.
    - `occupancy`: the number of cells along an axis of the occupancy grid, 0 for none; by default
      half as many as the finest level has, between 64 and 128; 64 if `guided`.
    - `candidates`: the number of even steps along a ray, of which the occupied ones are sampled;
      by default so many that a step is as long as the finest level's cells are wide, because levels
      fade whose cells are smaller than a sample, but 256 at most, or 512 where the `capacity` is
      524288; 128 if `guided`.
    - `precision`: the number format of the networks' matrix products.
    - `width`: the number of neurons in each network's hidden layer; by default 64, and 32 if
      `guided`.
    - `view_degree`: the number of bands of spherical harmonics of the direction.
    - `guided`: if true, every ray has `ray_samples` samples, close together where the occupancy is
      dense; otherwise all occupied steps are sampled. By default true for pictures that show
      something everywhere, of which no space is known to be empty.
    - `ray_samples`: the number of samples of a ray, if `guided`.
    - `appearance`: the size of the appearance code that is fitted to every training picture, and on
      which colours depend; 0 for none. All other pictures have the mean of the codes.

    **Source:** Müller et al. 2022, "Instant neural graphics primitives".
    """

    resolutions: tuple[int, ...] | None = ranged(None, 1, 2**14)
    features: int = ranged(4, 1, 64)
    capacity: int | None = ranged(None, 1, 2**28)
    occupancy: int | None = ranged(None, 0, 1024)
    candidates: int | None = ranged(None, 2, 2**14)
    precision: Literal["float32", "bfloat16"] = "float32"
    width: int | None = ranged(None, 1, 2**14)
    view_degree: int = ranged(4, 0, 16)
    guided: bool | None = None
    ray_samples: int = ranged(32, 1, 2**14)
    appearance: int = ranged(0, 0, 1024)

    def __post_init__(self):
        check_ranges(self)

    @property
    def appearance_size(self) -> int:
        return self.appearance

    @property
    def contracts(self) -> bool:
        return True

    def adapt(self, views: "Views", box: "Space") -> "Grid":
        from ..data import shows_everything
        from ._resolutions import choose_resolutions

        guided = shows_everything(views) if self.guided is None else self.guided
        resolutions = self.resolutions
        if resolutions is None and box is not None:
            resolutions = choose_resolutions(views, box)
        return dataclasses.replace(self, guided=guided, resolutions=resolutions)

    def choose_by_time(self, limit: float | None) -> "Grid":
        if self.capacity is not None or limit is None:
            return self
        capacity = _CAPACITY if limit < LONG else _LARGE_CAPACITY
        return dataclasses.replace(self, capacity=capacity)

    def _choose_width(self) -> int:
        if self.width is not None:
            return self.width
        return _GUIDED_WIDTH if self.guided else _WIDTH

    def _choose_occupancy(self) -> int:
        if self.occupancy is not None:
            return self.occupancy
        least, most = _OCCUPANCY
        # That of guided samples is sampled whole each time.
        finest = 0 if self.guided else max(self.resolutions or _USUAL)
        return min(max(finest // 2, least), most)

    def _choose_steps(self, box: "Space") -> int:
        from ..data import Ball

        if self.candidates is not None:
            return self.candidates
        if self.guided or box is None or isinstance(box, Ball) or not self.resolutions:
            return _STEPS
        # diagonal / steps = longest side / cells
        sides = box[1] - box[0]
        steps = math.ceil(max(self.resolutions) * float(np.linalg.norm(sides) / np.max(sides)))
        large = self.capacity is not None and self.capacity >= _LARGE_CAPACITY
        return min(max(steps, 2), 2 * _MOST_STEPS if large else _MOST_STEPS)

    def make_field(self, *, key: "RandomKey") -> "GridField":
        import jax

        from ..encodings import Grid as GridEncoding
        from ..fields import GridField

        grid_key, weights_key = jax.random.split(key)
        resolutions = _USUAL if self.resolutions is None else self.resolutions
        capacity = _CAPACITY if self.capacity is None else self.capacity
        grid = GridEncoding(resolutions, self.features, capacity, key=grid_key)
        return GridField(
            grid,
            self._choose_width(),
            view_degree=self.view_degree,
            precision=self.precision,
            appearance=self.appearance,
            key=weights_key,
        )

    def make_volume(
        self, box: "Space", empty: np.ndarray | None, *, key: "RandomKey"
    ) -> "Transformed":
        from ..data import Ball
        from ._volumes import build_field, in_ball, in_box

        if box is None:
            raise ValueError(
                "a grid fills a box, which has to be known: use `--bounds found`, or `--field mlp`."
            )
        known = None if empty is None else self._possible(empty)
        field, integrator = build_field(self, key), self.make_integrator(box)
        if isinstance(box, Ball):
            return in_ball(field, box, integrator, known)
        return in_box(field, box, integrator, known)

    def make_integrator(self, box: "Space") -> "AbstractMediaIntegrator":
        from ..data import Ball
        from ..integrators import Guided, OccupancyMarch

        candidates = self._choose_steps(box)
        if self.guided or isinstance(box, Ball):
            return Guided(self.ray_samples, candidates, scale_gradients=True)
        # In the volume's frame the longest side is 2.
        sides = None if box is None else box[1] - box[0]
        diagonal = 0.0 if sides is None else float(2 * np.linalg.norm(sides) / np.max(sides))
        steps = max(1, candidates)  # The integrator refuses less.
        return OccupancyMarch(candidates, min(_BUDGET, steps), diagonal / steps)

    def _possible(self, empty: np.ndarray) -> "Occupancy":
        """Makes an occupancy that skips nothing but cells known to stay empty."""
        from ..scene import Occupancy

        first, others = _AT_FIRST * Occupancy.threshold, {}
        if self.guided:
            # Thin at first: of a ray through all cells, an optical depth of about 1.
            first = 1 / len(empty)
            others = {"threshold": 0.1 * first, "decay": _DECAY, "part": _PART}
        return Occupancy(np.where(empty, -1, first), **others)

    def find_empty(self, views: "Views", box: "Space", *, spare: float = 0.0) -> np.ndarray | None:
        from ..data import Ball, find_empty_cells, find_unseen_cells

        cells = self._choose_occupancy()
        if box is None or cells < 1:
            return None
        if isinstance(box, Ball):
            return find_unseen_cells(views, box, cells)
        # More cells take seconds, and the first refreshes find empty ones as well.
        times = 2 if cells > _OCCUPANCY[0] and cells % 2 == 0 else 1
        empty = find_empty_cells(views, *box, cells // times, spare)
        return empty.repeat(times, 0).repeat(times, 1).repeat(times, 2)
