"""Pictures that one list names with their lenses and poses, made into views of one split."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from .._typing import Float, Int
from ..pixels import Sightings, Views
from ._bounds import choose_origin, depth_range, note_origin
from ._lenses import camera_kind, Lens, make_cameras
from ._listing import Frame, normalised
from ._loading import Loading
from ._masks import Mask
from ._pictures import assemble_views, gather_pictures, PictureFile


# Points only bound the scene: so many are enough.
_POINTS = 2**16
# So many say where a scene's surfaces are; and indices of more pixels are no `int32`.
_MOST_SEEN, _PIXELS = 2**20, 2**31

# A picture with so many points says how near things are, but for so many per cent of the points.
_ENOUGH, _NOWHERE = 15, 2.0


class SeenPoints(NamedTuple):
    """The points that a picture shows, and where."""

    places: Float[np.ndarray, "seen 2"]  # in pixels of the lens
    points: Float[np.ndarray, "seen 3"]  # in the world


class ListedView(NamedTuple):
    """A picture of a list: its name, file and pose, its lens, its mask, and the points it shows."""

    frame: Frame
    lens: Lens
    mask: Mask | None = None
    seen: SeenPoints | None = None

    @property
    def name(self) -> str:
        """The name, without detours: `./images/a.png` is `images/a.png`."""
        return normalised(self.frame.name)

    def from_origin(self, origin: np.ndarray) -> "ListedView":
        """Returns the same with places counted from another origin."""
        pose, seen = self.frame.pose.copy(), self.seen
        pose[:3, 3] -= origin
        if seen is not None:
            seen = seen._replace(points=seen.points - origin)
        return self._replace(frame=self.frame._replace(pose=pose), seen=seen)


class Shrinking(NamedTuple):
    """By how much pictures are averaged, and how much smaller than their lenses' they are."""

    factor: int
    smaller: float = 1.0  # of pictures of a folder `images_4`: 4
    resized: bool = False  # whether lenses are scaled to the pictures' sizes


def load_listed(
    every: Sequence[ListedView],
    chosen: Sequence[ListedView],
    loading: Loading,
    shrinking: Shrinking,
    points: np.ndarray | None = None,
    notes: tuple[str, ...] = (),
    *,
    one_size: bool = False,
    origin: np.ndarray | None = None,
) -> Views:
    """Loads some views of a list; all of it decides what kind of lens there is, and how far.

    It also decides which place of its world becomes the origin, unless that is given.
    """
    if origin is None:
        origin = choose_origin(np.stack([one.frame.pose[:3, 3] for one in every]))
    every, chosen = ([one.from_origin(origin) for one in some] for some in (every, chosen))
    points = None if points is None else points - origin
    # The sizes of cameras show which way up pictures are.
    wanted = [
        PictureFile(one.frame.picture, one.mask, one.lens.size(shrinking.smaller)) for one in chosen
    ]
    listed = [one.frame.picture for one in every]
    pictures = gather_pictures(wanted, loading, shrinking.factor, one_size=one_size, listed=listed)
    chosen = [chosen[index] for index in pictures.kept]
    lenses = [
        one.lens.pixels(*map(int, size), resized=shrinking.resized)
        for one, size in zip(chosen, pictures.sizes, strict=True)
    ]
    sizes = pictures.sizes // shrinking.factor
    width, height = pictures.sizes[0].tolist()
    cameras = make_cameras(
        camera_kind([one.lens for one in every], (float(width), float(height))),
        [one.lens for one in chosen],
        np.stack([one.frame.pose for one in chosen]),
        np.stack(lenses) / shrinking.factor,
        (int(sizes[0, 0]), int(sizes[0, 1])),
        depth_range(
            np.stack([one.frame.pose for one in every]),
            loading.near,
            loading.far,
            _nearest_seen(every),
        ),
    )
    notes = (*note_origin(every[0].lens.where.rsplit(": ", 1)[0], origin), *notes)
    pictures = pictures._replace(notes=(*notes, *pictures.notes))
    names = [one.frame.name for one in chosen]
    views = assemble_views(loading, pictures, cameras, sizes, names, points=thin_out(points))
    scales = _picture_scales(chosen, pictures.sizes) / shrinking.factor
    found = _find_sightings([one.seen for one in chosen], scales, sizes)
    return dataclasses.replace(views, sightings=found, origin=tuple(origin.tolist()))


def _nearest_seen(every: Sequence[ListedView]) -> float:
    """Returns the depth of what is nearest in any picture; zero unless all show enough points."""
    depths = []
    for frame, seen in ((one.frame, one.seen) for one in every):
        if seen is None or len(seen.points) < _ENOUGH:
            return 0.0
        # Cameras look along their -z axis. A few points are nowhere.
        before = (frame.pose[:3, 3] - seen.points) @ frame.pose[:3, 2]
        depths.append(np.percentile(before, _NOWHERE))
    return max(0.0, float(min(depths)))


def _picture_scales(chosen: Sequence[ListedView], sizes: np.ndarray) -> np.ndarray:
    """Returns how much larger pictures are than their lenses say, in width and height."""
    both = zip(chosen, sizes, strict=True)
    return np.array([size / (one.lens.size() or size) for one, size in both])


def thin_out(points: np.ndarray | None) -> np.ndarray | None:
    """Returns evenly spread ones of very many points."""
    if points is None or len(points) <= _POINTS:
        return points
    return points[np.linspace(0, len(points) - 1, _POINTS).astype(int)]


def _find_sightings(
    seen: Sequence[SeenPoints | None],
    scales: Float[np.ndarray, "frames 2"],
    sizes: Int[np.ndarray, "frames 2"],
) -> Sightings | None:
    """Finds the pixels that show points; `None` if no picture shows any.

    A picture's places are scaled by `scales`, width and height, to pictures of `sizes`. Those
    outside of it show nothing.
    """
    counts = np.prod(sizes.astype(np.int64), axis=1)
    starts = np.cumsum(counts) - counts
    pixels, points = [np.zeros(0, np.int64)], [np.zeros((0, 3))]
    for one, scale, size, start in zip(seen, scales, sizes, starts, strict=True):
        if one is None:
            continue
        # Pixel (column, row) reaches from there to (column + 1, row + 1).
        column, row = np.floor(one.places * scale).T
        inside = (column >= 0) & (row >= 0) & (column < size[0]) & (row < size[1])
        pixels.append((start + row * size[0] + column)[inside].astype(np.int64))
        points.append(one.points[inside])
    pixel, point = np.concatenate(pixels), np.concatenate(points)
    if not len(pixel) or np.sum(counts) >= _PIXELS:
        return None
    if len(pixel) > _MOST_SEEN:
        some = np.linspace(0, len(pixel) - 1, _MOST_SEEN).astype(int)
        pixel, point = pixel[some], point[some]
    return Sightings(jnp.asarray(pixel, jnp.int32), jnp.asarray(point, jnp.float32))
