"""The bounds of the scene, found from cameras and opacities alone."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np

from .._typing import Array, Float
from ..cameras import AbstractCamera, NDCCamera
from ..io import MappedArray
from ..pixels import frame_lines, known_cameras, on_host, pixel_lines, take_camera, Views


# The cells of the box, and of the pictures' rasters, along each axis.
_CELLS = 48
# Pixels with less opacity count as empty.
_VISIBLE = 0.02
# So many points are projected to so many pictures at a time: one program serves all of them.
_POINTS, _TOGETHER = 2**12, 8
# What a box leaves out is found by so many rays along each axis of at most so many pictures.
_RAYS, _PICTURES = 32, 1000
# Points give a box if there are so many of them; so many percent on each side count as outliers,
# and the box is wider by a share. Its size is found in so many steps.
_FEWEST_POINTS, _OUTLIERS, _SPARE, _TRIALS = 64, 5, 0.05, 10
# A box that holds less than this share of the points is not about the scene.
_HELD = 0.75
# A point that fewer of the cameras see than this share is taken to be outside the scene.
_QUORUM = 0.5
# Single precision resolves places to 6e-8 of their distance from the origin. If that is more than
# so many times the cameras' distance from each other, the origin is moved.
_FAR = 100.0


def focus_point(positions: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Finds the point that the cameras' axes pass nearest to, in the least-squares sense."""
    # sum (I - d d^T) (c - x) = 0. Axes that do not cross, as those of a single camera, are drawn
    # weakly to a point ahead of the cameras, as far away as these are apart (or one unit).
    middle = positions.mean(axis=0)
    apart = float(np.linalg.norm(positions - middle, axis=1).max())
    ahead = middle + directions.mean(axis=0) * (apart or 1.0)
    across = np.eye(3) - directions[:, :, None] * directions[:, None, :]
    weak = 1e-6 * len(positions)
    matrix = across.sum(axis=0) + weak * np.eye(3)
    right = (across @ positions[:, :, None]).sum(axis=0)[:, 0] + weak * ahead
    return np.linalg.solve(matrix, right)


def depth_range(
    poses: np.ndarray, near: float | None = None, far: float | None = None, nearest: float = 0.0
) -> tuple[float, float]:
    """Returns near and far, by default generous ones for cameras that look at one thing.

    Nothing that pictures show is nearer than about `nearest`.
    """
    centre = focus_point(poses[:, :3, 3], -poses[:, :3, 2])
    # From a thousandth to ten times the largest distance of a camera from that thing.
    reach = max(float(np.linalg.norm(poses[:, :3, 3] - centre, axis=1).max()), 1e-6)
    # Up to half of the way to what is nearest there is nothing but fog that fits leave.
    first = np.clip(nearest / 2, 1e-3 * reach, reach)
    return (float(first) if near is None else near), (10 * reach if far is None else far)


def choose_origin(places: Float[np.ndarray, "cameras 3"]) -> Float[np.ndarray, "3"]:
    """Returns the place that becomes the origin: zero, or near cameras that are far from there."""
    middle = np.median(places, axis=0)
    # The median, because a camera that was not found may be at the origin.
    apart = float(np.median(np.linalg.norm(places - middle, axis=1)))
    if not apart or np.linalg.norm(middle) <= _FAR * apart:
        return np.zeros(3)
    # A multiple of a power of two is the same number in every file.
    unit = 2.0 ** np.floor(np.log2(apart))
    return np.round(middle / unit) * unit


def note_origin(where: object, origin: np.ndarray) -> tuple[str, ...]:
    """Says that the origin is moved."""
    if not np.any(origin):
        return ()
    place = ", ".join(f"{x:.12g}" for x in origin)
    return (
        f"{where}: cameras are far from the origin, so that places are counted from ({place}); "
        "files that are written for other programs have those of the data",
    )


def find_bounds(views: Views, *, spare: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Finds a box about what the pictures show: its two corners in world units.

    With opacities: the box of the visual hull, the points that no picture shows as empty, found on
    a coarse grid, then on a finer one inside it. Without: the cube that the nearest camera sees
    whole; or, where that is larger or lacks many of the points that are known to lie on surfaces, a
    box about most of these; either is enlarged until the line of every pixel meets it. In NDC: all
    that the cameras see between near and far. `spare` is the distance by which pictures may be off,
    as a share of their width.
    """
    cameras = views.cameras
    if in_ndc := isinstance(cameras, NDCCamera):
        lower, upper = _frustum_box(views, cameras)
    else:
        lower, upper = _common_cube(views)
    if views.pixels.shape[1] < 4 or not _has_empty_pixels(views):
        return (lower, upper) if in_ndc else _open_box(views, lower, upper)
    # The second round's grid is finer, because it spans the first round's box.
    masks = [
        _dilate(mask, 1 + math.ceil(spare * mask.shape[1])) for mask in _coarse_masks(views, _CELLS)
    ]
    for _ in range(2):
        lower, upper = _hull_box(views, masks, lower, upper)
    return lower, upper


def find_empty_cells(
    views: Views, lower: np.ndarray, upper: np.ndarray, resolution: int, spare: float = 0.0
) -> np.ndarray:
    """Finds the cells of a box that are empty in at least one picture: all but the visual hull.

    `spare` is how far pictures may be off because cameras are, as a share of their width.
    """
    shape = (resolution,) * 3
    if views.pixels.shape[1] < 4 or not _has_empty_pixels(views):
        return np.zeros(shape, bool)
    cell = (upper - lower) / resolution
    places = (np.indices(shape).reshape(3, -1).T + 0.5) * cell + lower
    # A cell is empty if nothing is seen within half of it about its middle.
    shares = _projected_sizes(views, places[:: max(1, len(places) // 512)], cell / 2) + spare
    masks = [
        _dilate(mask, math.ceil(share * mask.shape[1]))
        for share, mask in zip(shares, _coarse_masks(views, resolution), strict=True)
    ]
    empty = np.ones(len(places), bool)
    empty[_carve(views, masks, places)[0]] = False
    return empty.reshape(shape)


def _projected_sizes(views: Views, places: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Bounds projected distances from a box's middle to its corners, as shares of the widths."""
    # A corner is a half axis away along each of three axes: |p(c) - p| <= sum_i |p(m + h_i) -
    # p(m)|.
    moved = np.concatenate([places, *(places + half * axis for axis in np.eye(3))])
    middle, *others = np.split(_project(views, np.arange(views.frames), moved), 4, axis=1)
    away = np.sum([np.abs(other - middle) for other in others], axis=0)
    finite = np.all(np.isfinite(away), axis=-1, keepdims=True)
    return np.max(np.where(finite, away, 0), axis=(1, 2), initial=1.0) / np.asarray(views.widths)


def _frustum_box(views: Views, cameras: NDCCamera) -> tuple[np.ndarray, np.ndarray]:
    """Returns the box about all that the cameras see: lines in NDC are straight and end."""
    sizes, frames = np.stack([views.widths, views.heights], axis=-1), np.arange(views.frames)
    near, far = (np.asarray(x)[:, None] for x in (cameras.near, cameras.far))
    ends = []
    for corner in ([0, 0], [1, 0], [0, 1], [1, 1]):
        origins, directions = pixel_lines(cameras, frames, sizes * np.asarray(corner))
        ends += [origins + t * directions for t in (near, far)]
    points = np.concatenate(ends)
    # A little wider, so that rounding cuts nothing off.
    spare = 1e-4 * (points.max(axis=0) - points.min(axis=0))
    return points.min(axis=0) - spare, points.max(axis=0) + spare


def _common_cube(views: Views) -> tuple[np.ndarray, np.ndarray]:
    """Returns a cube about the point that all cameras look at, as large as their pictures there."""
    cameras = known_cameras(views)
    middles = np.stack([views.widths, views.heights], axis=-1) / 2
    positions, axes = frame_lines(cameras, middles)
    _, edges = frame_lines(cameras, np.zeros_like(middles))
    centre = focus_point(positions, axes)
    distance = np.linalg.norm(positions - centre, axis=1)
    # half = max distance tan(angle of a corner), within 0.95 of the nearest camera's distance.
    # Panoramas and fisheyes may see beyond a right angle: as far as there is anything.
    cosine = np.maximum(np.sum(axes * edges, axis=1), 1e-6)
    reach = distance * np.sqrt(1 / cosine**2 - 1)
    half = float(np.max(reach)) if np.all(np.isfinite(reach)) else float(np.max(distance))
    half = min(half, 0.95 * float(np.min(distance)) + 1e-6 * float(np.max(distance)))
    return centre - half, centre + half


def _open_box(views: Views, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Enlarges a box until it cuts nothing off; where it lacks points, or is large, theirs."""
    probe = probe_views(views, to_edges=True)
    found = _enlarge(probe, lower, upper)
    if views.points is None or views.points.shape[0] < _FEWEST_POINTS:
        return found
    points = np.asarray(views.points, np.float64)
    low, high = np.percentile(points, [_OUTLIERS, 100 - _OUTLIERS], axis=0)
    spare = _SPARE * max(float(np.max(high - low)), 1e-6)
    other = _enlarge(probe, low - spare, high + spare)
    inside = np.mean(np.all((points > found[0]) & (points < found[1]), axis=1))
    larger = np.prod(found[1] - found[0]) > np.prod(other[1] - other[0])
    return other if larger or inside < _HELD else found


def _enlarge(probe: "Probe", lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Enlarges a box about its middle until every line meets it."""
    if np.max(probe.missed(lower, upper)) == 0:
        return lower, upper
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    # A box about all cameras is met by every line. In between, larger boxes miss less: bisection.
    around = float(np.max(np.abs(probe.origins[:, 0] - middle) / half))
    least, most = 0.0, math.log(max(1.0, 1.01 * around))
    for _ in range(_TRIALS):
        log = (least + most) / 2
        box = middle - math.exp(log) * half, middle + math.exp(log) * half
        cuts = np.max(probe.missed(*box)) > 0
        least, most = (log, most) if cuts else (least, log)
    return middle - math.exp(most) * half, middle + math.exp(most) * half


class Probe(NamedTuple):
    """Lines through a raster of pixels of every picture, or of many, that show something."""

    frames: np.ndarray  # the indices of the pictures
    origins: np.ndarray  # frames rays 3
    directions: np.ndarray
    limits: np.ndarray  # near and far, frames 2
    visible: np.ndarray  # frames rays; false where a picture has no opacity

    def missed(self, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Returns, for every picture, the share of the visible pixels that miss a box."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = [(side - self.origins) / self.directions for side in (lower, upper)]
        # Enters the last of three slabs, and leaves the first; 0/0 is inside.
        enter = np.nanmax(np.fmin(*ends), axis=-1, initial=-np.inf)
        leave = np.nanmin(np.fmax(*ends), axis=-1, initial=np.inf)
        near, far = self.limits[:, None, 0], self.limits[:, None, 1]
        misses = np.maximum(enter, near) >= np.minimum(leave, far)
        return np.sum(misses & self.visible, axis=1) / np.maximum(self.visible.sum(axis=1), 1)


def probe_views(views: Views, *, to_edges: bool = False) -> Probe:
    """Makes the lines by which it is found what a box leaves out of the pictures.

    Those `to_edges` go through the corners, too: what meets a box there meets it everywhere.
    """
    cameras = known_cameras(views)
    chosen = np.linspace(0, views.frames - 1, min(views.frames, _PICTURES)).astype(int)
    sizes = np.stack([views.widths, views.heights], axis=-1)[chosen]
    # Parts of width and height: with both edges, or middles of cells.
    steps = np.linspace(0, 1, _RAYS) if to_edges else (np.arange(_RAYS) + 0.5) / _RAYS
    raster = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    pixels = np.minimum(np.floor(raster * sizes[:, None]), sizes[:, None] - 1)  # column and row
    lines = pixel_lines(cameras, np.repeat(chosen, len(raster)), pixels.reshape(-1, 2) + 0.5)
    origins, directions = (part.reshape(len(chosen), -1, 3) for part in lines)
    ends = [np.asarray(x)[chosen] for x in (cameras.near, cameras.far)]
    return Probe(
        chosen,
        origins,
        directions,
        np.stack(ends, axis=-1),
        _visible_at(views, chosen, pixels.astype(int)),
    )


def _visible_at(views: Views, frames: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Finds which pixels of some pictures, by column and row, show anything."""
    if views.pixels.shape[1] < 4:
        return np.ones(places.shape[:2], bool)
    wanted = set(frames.tolist())
    masks = [mask for frame, mask in enumerate(_visible(views)) if frame in wanted]
    pairs = zip(masks, places, strict=True)
    return np.stack([mask[place[:, 1], place[:, 0]] for mask, place in pairs])


def _has_empty_pixels(views: Views) -> bool:
    return not all(np.all(visible) for visible in _visible(views))


def _visible(views: Views) -> Iterator[np.ndarray]:
    """Yields masks of the visible pixels, picture by picture: all opacities may be too many."""
    pixels = views.pixels if isinstance(views.pixels, MappedArray) else np.asarray(views.pixels)
    alpha = np.asarray(pixels[:, 3])
    limit = 255 * _VISIBLE if alpha.dtype == np.uint8 else _VISIBLE
    sizes = np.stack([views.heights, views.widths], axis=-1)
    for frame, size in enumerate(sizes):
        yield np.asarray(alpha[views.part(frame)]).reshape(*size) > limit


def _coarse_masks(views: Views, cells: int) -> list[np.ndarray]:
    """Returns, for every picture, the cells of a coarse raster in which anything is visible."""
    return [_max_pool(seen, max(1, seen.shape[1] // (2 * cells))) for seen in _visible(views)]


def _max_pool(seen: np.ndarray, block: int) -> np.ndarray:
    # The last blocks may be cut by the picture's edge.
    rows, columns = -(-seen.shape[0] // block), -(-seen.shape[1] // block)
    padded = np.zeros((rows * block, columns * block), bool)
    padded[: seen.shape[0], : seen.shape[1]] = seen
    return np.any(padded.reshape(rows, block, columns, block), axis=(1, 3))


def _dilate(seen: np.ndarray, times: int) -> np.ndarray:
    """Adds the neighbours of all cells that are true, so many times."""
    for _ in range(times):
        padded = np.pad(seen, 1)
        rows = padded[:-2] | padded[1:-1] | padded[2:]
        seen = rows[:, :-2] | rows[:, 1:-1] | rows[:, 2:]
    return seen


def _hull_box(views: Views, masks, lower, upper) -> tuple[np.ndarray, np.ndarray]:
    cell = (upper - lower) / _CELLS
    axes = [low + (np.arange(_CELLS) + 0.5) * step for low, step in zip(lower, cell, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    # A point of the hull is in no picture where that is empty, and in enough pictures at all.
    # Laurentini 1994, "The Visual Hull Concept for Silhouette-Based Image Understanding".
    kept, counts = _carve(views, masks, points)
    inside = points[kept[counts >= _QUORUM * len(masks)]]
    if not len(inside):
        return lower, upper
    return inside.min(axis=0) - 1.5 * cell, inside.max(axis=0) + 1.5 * cell


def _carve(views: Views, masks, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Finds the points that no picture shows to be empty, and how many pictures each is in."""
    left, counts = np.arange(len(points)), np.zeros(len(points), np.int32)
    sizes = np.stack([views.widths, views.heights], axis=-1).tolist()
    for begin in range(0, views.frames, _TOGETHER):
        frames = np.arange(begin, min(begin + _TOGETHER, views.frames))
        places, kept = _project(views, frames, points[left]), np.arange(len(left))
        for frame, place in zip(frames.tolist(), places, strict=True):
            seen, filled = _look_up(sizes[frame], masks[frame], place[kept])
            stays = ~seen | filled
            kept, counts = kept[stays], (counts + seen)[stays]
        left = left[kept]
    return left, counts


def _look_up(
    size: list[int], mask: np.ndarray, places: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Finds which places, in pixels, lie in a picture, and at which of them its mask is true."""
    x, y = places.T
    # Masks are coarser than pictures: x / width and y / height, in their cells.
    column = np.floor(x / size[0] * mask.shape[1])
    row = np.floor(y / size[1] * mask.shape[0])
    seen = (column >= 0) & (column < mask.shape[1]) & (row >= 0) & (row < mask.shape[0])
    filled = np.zeros(len(places), bool)
    filled[seen] = mask[row[seen].astype(int), column[seen].astype(int)]
    return seen, filled


def _project(views: Views, frames: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Projects points to some pictures, in pixels: `frames points 2`."""
    cameras = on_host(known_cameras(views))
    padded = np.zeros((max(1, -(-len(points) // _POINTS)), _POINTS, 3), np.float32)
    padded.reshape(-1, 3)[: len(points)] = points
    rows = []
    for begin in range(0, len(frames), _TOGETHER):
        some = frames[begin : begin + _TOGETHER]
        chosen = take_camera(cameras, np.pad(some, (0, _TOGETHER - len(some)), "edge"))
        seen = [np.asarray(_project_block(chosen, part)) for part in padded]
        rows.append(np.concatenate(seen, axis=1)[: len(some), : len(points)])
    return np.concatenate(rows)


@eqx.filter_jit
def _project_block(
    cameras: AbstractCamera, points: Float[np.ndarray, "n 3"] | Float[Array, "n 3"]
) -> Float[Array, "cameras n 2"]:
    return eqx.filter_vmap(lambda camera: jax.vmap(camera.project)(points))(cameras)
