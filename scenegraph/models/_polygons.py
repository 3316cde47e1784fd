"""Polygons to triangles: those with dents, and those not quite flat, too."""

import numpy as np


# Of polygons with more corners, dents are not looked for: time grows with their square.
_MOST = 2**12


def split_polygons(
    counts: np.ndarray, corners: np.ndarray, vertices: np.ndarray
) -> tuple[np.ndarray, int]:
    """Splits polygons into triangles, in the polygons' order.

    `counts` has the corners of each polygon, `corners` the vertices of all, one after the other.
    Returns places in `corners`, `triangles 3`, and the number of polygons with dents that were too
    large to be seen.
    """
    if np.all(counts == 3):
        return np.arange(len(corners)).reshape(-1, 3), 0
    with np.errstate(over="ignore", invalid="ignore"):  # of vertices that are refused later
        return _split(counts, corners, vertices)


def _split(counts: np.ndarray, corners: np.ndarray, vertices: np.ndarray) -> tuple[np.ndarray, int]:
    """Splits polygons of several lengths, each length together."""
    starts = np.cumsum(counts) - counts
    found: list[np.ndarray] = []
    owners: list[np.ndarray] = []
    too_large = 0
    for count in np.unique(counts[counts > 2]).tolist():
        which = np.flatnonzero(counts == count)
        places = starts[which, None] + np.arange(count)
        faces, is_right = _fans(places, corners, vertices)
        for row in np.flatnonzero(~is_right).tolist():
            if count <= _MOST:
                points = vertices[corners[places[row]]]
                faces[row] = places[row, clip_ears(flattened(points))]
            too_large += count > _MOST
        found.append(faces.reshape(-1, 3))
        owners.append(np.repeat(which, count - 2))
    if not found:
        return np.zeros((0, 3), np.int64), 0
    order = np.argsort(np.concatenate(owners), kind="stable")
    return np.concatenate(found)[order], too_large


def _fans(
    places: np.ndarray, corners: np.ndarray, vertices: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the triangles of fans, `polygons n-2 3`, and which of them are right.

    They are about the first corner, or about the second of a quadrilateral where that is better.
    """
    count = places.shape[1]
    # (0, i, i + 1) for i = 1 ... n - 2
    steps = np.arange(1, count - 1)
    fan = np.stack([0 * steps, steps, steps + 1], axis=1)
    faces = places[:, fan]
    if count == 3:
        return faces, np.ones(len(faces), bool)
    points = np.asarray(vertices[corners[places]], np.float64)
    normals = polygon_normals(points)
    least = _least_area(points, fan, normals)
    if count == 4:
        other = np.array([[1, 2, 3], [1, 3, 0]])
        better = (least <= 0) & (_least_area(points, other, normals) > least)
        faces[better] = places[better][:, other]
        return faces, np.ones(len(faces), bool)
    # Where all triangles of a fan are turned to one side, the first corner sees all others.
    return faces, least > 0


def _least_area(points: np.ndarray, triangles: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """Returns the least area of triangles of each polygon, along its normal; rounding is zero."""
    a, b, c = (points[:, triangles[:, i]] for i in range(3))
    cross = np.cross(b - a, c - a)
    areas = np.einsum("pti,pi->pt", cross, normals)
    whole = np.linalg.norm(normals, axis=1)[:, None] ** 2
    return np.min(np.where(np.abs(areas) > 1e-9 * whole, areas, 0), axis=1)


def polygon_normals(points: np.ndarray) -> np.ndarray:
    """Computes normals of polygons `polygons n 3`, as long as twice their area.

    **Source:** Newell's sum, in Sutherland et al. 1974, "A Characterization of Ten Hidden-Surface
    Algorithms".
    """
    # sum of p_i x p_(i+1), about a corner, which keeps digits far from the origin
    about = points - points[:, :1]
    return np.sum(np.cross(about, np.roll(about, -1, axis=1)), axis=1)


def flattened(points: np.ndarray) -> np.ndarray:
    """Returns the points of one polygon, `n 3`, on the plane of its normal, counter-clockwise."""
    points = np.asarray(points, np.float64)
    normal = polygon_normals(points[None])[0]
    length = np.linalg.norm(normal)
    normal = normal / length if length > 0 else np.array([0.0, 0.0, 1.0])
    u = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    u = u / np.linalg.norm(u)
    return (points - points[0]) @ np.stack([u, np.cross(normal, u)], axis=1)


def clip_ears(points: np.ndarray) -> np.ndarray:
    """Returns the triangles `n-2 3` of one polygon, `n 2`, counter-clockwise.

    **Source:** Meisters 1975, "Polygons Have Ears".
    """
    remaining, faces = _Ring(points), []
    corner, tried, strict = 0, 0, True
    for size in range(len(points), 3, -1):
        while not remaining.is_ear(corner, strict):
            corner, tried = remaining.after[corner], tried + 1
            if tried > size:
                # Sides that touch or cross: an ear is what has no point strictly inside, then any.
                if not strict:
                    corner = remaining.most_convex()
                    break
                strict, tried = False, 0
        faces.append((remaining.before[corner], corner, remaining.after[corner]))
        corner, tried, strict = remaining.clip(corner), 0, True
    faces.append((remaining.before[corner], corner, remaining.after[corner]))
    return np.array(faces, np.int64)


class _Ring:
    """The corners of a polygon that are not clipped yet."""

    def __init__(self, points: np.ndarray):
        count = len(points)
        self.points, self.places = points, points.tolist()
        self.before = [count - 1, *range(count - 1)]
        self.after = [*range(1, count), 0]
        scale = float(np.max(np.ptp(points, axis=0))) if count else 0.0
        self.least = 1e-12 * scale * scale
        # Only corners that are not convex can lie in an ear; by x, so that few are looked at.
        is_dent = np.array([self.area(i) <= self.least for i in range(count)])
        dents = np.flatnonzero(is_dent)
        self.dents = dents[np.argsort(points[dents, 0], kind="stable")]
        self.dents_x = points[self.dents, 0]
        self.is_there = np.ones(count, bool)

    def area(self, corner: int) -> float:
        """Computes twice the area of the triangle at a corner; negative in a dent."""
        (ax, ay), (bx, by), (cx, cy) = self._triangle(corner)
        return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)

    def _triangle(self, corner: int) -> tuple[list[float], list[float], list[float]]:
        """Returns the corner with its neighbours."""
        places = self.places
        return places[self.before[corner]], places[corner], places[self.after[corner]]

    def is_ear(self, corner: int, strict: bool) -> bool:
        """Returns true if a corner is convex, and no other corner lies in its triangle."""
        if self.area(corner) <= self.least:
            return False
        triangle = self._triangle(corner)
        left, *_, right = sorted(place[0] for place in triangle)
        some = slice(
            np.searchsorted(self.dents_x, left), np.searchsorted(self.dents_x, right, "right")
        )
        dents = self.dents[some]
        dents = dents[self.is_there[dents]]
        if not len(dents):
            return True
        points = self.points[dents]
        # A point is inside where it lies to the left of all sides; on a side, it counts, too.
        inside = np.ones(len(dents), bool)
        is_corner = np.zeros(len(dents), bool)
        for i in range(3):
            (ax, ay), (bx, by) = triangle[i], triangle[(i + 1) % 3]
            side = (bx - ax) * (points[:, 1] - ay) - (by - ay) * (points[:, 0] - ax)
            inside &= side >= -self.least if strict else side > self.least
            is_corner |= (points[:, 0] == ax) & (points[:, 1] == ay)
        return not np.any(inside & ~is_corner)

    def most_convex(self) -> int:
        """Returns the corner with the largest triangle."""
        return max(np.flatnonzero(self.is_there).tolist(), key=self.area)

    def clip(self, corner: int) -> int:
        """Takes a corner out, and returns one beyond its neighbour, as slivers are few then."""
        before, after = self.before[corner], self.after[corner]
        self.after[before], self.before[after] = after, before
        self.is_there[corner] = False
        return self.after[after]
