"""A table-top of things: the scene of the data set that the library makes for itself."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from ..integrators import Surfaces
from ..lights import AmbientLight, PointLight
from ..scene import freeze, Group, Instances, Scene, Surface
from ..shaders import Checker, ImageTexture, InSpace, Phong
from ..shapes import Box, Capsule, Sphere
from ..transforms import Affine


# The table: half of its side, the height of its top, and its thickness, in world units. Its corners
# stay in pictures from a distance of 4 with an angle of view of 0.7 rad.
_HALF, _TOP, _THICK = 0.9, -0.35, 0.08
# Linear colours.
_PALETTE = np.array(
    [
        [0.76, 0.10, 0.03],
        [0.90, 0.38, 0.01],
        [0.82, 0.56, 0.14],
        [0.36, 0.56, 0.22],
        [0.03, 0.34, 0.28],
        [0.13, 0.32, 0.50],
        [0.03, 0.06, 0.25],
        [0.28, 0.09, 0.17],
        [0.82, 0.78, 0.64],
        [0.70, 0.20, 0.28],
    ]
)
_TEXELS = 64
# Capsules in a ring, and the layers of a ray that grazes one.
_SEGMENTS, _LAYERS = 16, 12


def table_top(count: int = 30, *, seed: int = 0) -> Scene:
    """Makes a table with things on it: balls, blocks, rods, and rings, with patterns and shadows.

    It lies inside a ball of radius 1.36 about the origin. A lamp casts shadows, and there is even
    light from all around; the background is black, and visible on all sides of the table. A quarter
    of the things are thin rods, with a radius of less than a hundredth of the table's side. A ring
    is made of 16 capsules.

    **Arguments:**

    - `count`: the number of things on the table. With many they are smaller: 300 are a hard test of
      fine parts.
    - `seed`: the seed of places, sizes and colours. Keyword only argument.

    **Returns:**

    The scene, in linear light and with frozen opacities. Its children are `balls`, `boxes` (the
    table is the first), `tubes` (rods, then the pieces of rings), `lamp` and `sky`.

    **Errors:**

    `ValueError` for fewer than six things.
    """
    if count < 6:
        raise ValueError(f"a table-top has at least 6 things, some of each kind; got {count}.")
    generator = np.random.default_rng(seed)
    counts = _counts(count)
    footprints = _place(generator, counts)
    scene = Scene(
        Group(
            balls=_balls(generator, footprints["balls"]),
            boxes=_boxes(generator, footprints["blocks"]),
            tubes=_tubes(generator, footprints["rods"], footprints["rings"]),
            lamp=PointLight([1.6, -1.2, 3.0], [26.0, 24.5, 22.5]),
            sky=AmbientLight([0.30, 0.32, 0.36]),
        ),
        integrator=Surfaces(layers=_LAYERS),
    )
    # What is known to be opaque hides what is behind it, which then needs no shading.
    return freeze(scene, "*.opacity")


@dataclasses.dataclass(frozen=True)
class _Footprints:
    """Circles on the table in which things of one kind stand."""

    centers: np.ndarray  # things 2
    radii: np.ndarray  # things

    @property
    def count(self) -> int:
        """The number of things."""
        return len(self.radii)

    def standing(self, heights: np.ndarray) -> np.ndarray:
        """Returns points at some heights above the middles of the circles, `things 3`."""
        return np.concatenate([self.centers, (_TOP + heights)[:, None]], axis=1)


def _counts(count: int) -> dict[str, int]:
    """Returns the numbers of things of each kind."""
    rings = max(2, count // 20)
    rods = max(1, count // 4)
    blocks = max(1, (count - rings - rods) * 2 // 5)
    return {"balls": count - rings - rods - blocks, "blocks": blocks, "rods": rods, "rings": rings}


# The smallest and the largest radius of a kind's footprint, before all are scaled to fill the
# table.
_RANGES = {"balls": (0.5, 1.5), "blocks": (0.7, 1.5), "rods": (0.35, 0.45), "rings": (0.9, 1.6)}
# The part of the table that footprints cover.
_COVERED = 0.5


def _place(generator: np.random.Generator, counts: dict[str, int]) -> dict[str, _Footprints]:
    """Puts circles on the table that do not overlap, the largest first."""
    radii = np.concatenate([generator.uniform(*_RANGES[k], n) for k, n in counts.items()])
    # sum pi r^2 = covered (2 half)^2
    radii *= 2 * _HALF * np.sqrt(_COVERED / np.sum(np.pi * radii**2))
    radii = np.minimum(radii, 0.3)
    centers = None
    while centers is None:
        centers = _without_overlap(generator, radii)
        radii = radii if centers is not None else 0.97 * radii
    ends = np.cumsum(list(counts.values()))[:-1]
    pairs = zip(np.split(centers, ends), np.split(radii, ends), strict=True)
    return dict(zip(counts, [_Footprints(*pair) for pair in pairs], strict=True))


def _without_overlap(generator: np.random.Generator, radii: np.ndarray) -> np.ndarray | None:
    """Returns centres of circles that are apart from each other, or `None` if one has no place."""
    centers = np.full((len(radii), 2), np.inf)
    for index in np.argsort(-radii):
        reach = _HALF - 0.03 - radii[index]
        tries = generator.uniform(-reach, reach, (400, 2))
        gaps = np.linalg.norm(tries[:, None] - centers, axis=-1) - radii - radii[index]
        free = np.all(gaps > 0, axis=1)
        if not np.any(free):
            return None
        centers[index] = tries[np.argmax(free)]
    return centers


def _balls(generator: np.random.Generator, where: _Footprints) -> Instances:
    turns = [_random_rotation(generator) for _ in range(where.count)]
    matrices = where.radii[:, None, None] * np.stack(turns)
    # Two of three are checkered, the others have one colour.
    values = _colors(generator, where.count, checkered=0.67)
    values["shader.diffuse.scale"] = generator.choice([0.5, 0.7, 1.0], where.count)
    ball = Surface(Sphere([0.0] * 3, 1.0), _checkered())
    return Instances(ball, _affine(matrices, where.standing(where.radii)), values)


def _boxes(generator: np.random.Generator, where: _Footprints) -> Instances:
    """Makes the table, the first box, and toy blocks on it, with pictures from one sheet."""
    # A square of half side a is in a circle of radius sqrt(2) a.
    sides = where.radii / np.sqrt(2)
    heights = sides * generator.choice([0.5, 1.0, 1.0, 2.2], where.count)
    sizes = np.stack([sides, sides, heights], axis=-1)
    turns = [_about_z(angle) for angle in generator.uniform(0, np.pi / 2, where.count)]
    table, middle = np.diag([_HALF, _HALF, _THICK / 2]), [0.0, 0.0, _TOP - _THICK / 2]
    matrices = np.concatenate([table[None], np.stack(turns) * sizes[:, None, :]])
    offsets = np.concatenate([np.array([middle]), where.standing(heights)])
    # One sheet for all: a texture of its own for each block would be copied ray by ray.
    pictures = [_planks(), *(_block_picture(_two_colors(generator), i % 4) for i in range(15))]
    sheet = np.concatenate([np.concatenate(pictures[i : i + 4], axis=1) for i in (0, 4, 8, 12)])
    own = np.concatenate([[0], 1 + np.arange(where.count) % 15])
    # The sheet has 4 x 4 pictures; a face, from -1 to 1, shows the one in row and column of `own`.
    row, column = np.divmod(own, 4)
    size = 8.0
    corner = np.stack([-1.0 - 2.0 * column, -1.0 - 2.0 * (3 - row)], axis=-1)
    # The data set that comes with the library was made so.
    texture = ImageTexture(sheet, size=[size, size], corner=corner[0], probes=1)
    box = Surface(Box([-1.0] * 3, [1.0] * 3), Phong(texture, [0.03, 0.03, 0.03], 20.0))
    return Instances(box, _affine(matrices, offsets), {"shader.diffuse.corner": corner})


def _tubes(generator: np.random.Generator, rods: _Footprints, rings: _Footprints) -> Instances:
    """Makes rods and rings of capsules: of one kind, so that they compile like one."""
    parts = [_rods(generator, rods), _rings(generator, rings)]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    offsets = joined.pop("offsets")
    tube = Surface(Capsule([0.0, 0.0, 0.0], [0.0, 0.0, 1.0], 0.01), _checkered())
    return Instances(tube, _affine(np.tile(np.eye(3), (len(offsets), 1, 1)), offsets), joined)


def _rods(generator: np.random.Generator, where: _Footprints) -> dict[str, np.ndarray]:
    """Makes thin rods that stand, or lean a little."""
    radii = generator.uniform(0.006, 0.016, where.count)
    lengths = generator.uniform(0.25, 0.65, where.count)
    directions = generator.uniform(0, 2 * np.pi, where.count)
    lean = generator.uniform(0, 1, where.count) * where.radii
    ends = np.stack([lean * np.cos(directions), lean * np.sin(directions), lengths], axis=-1)
    return {
        **_colors(generator, where.count, checkered=0.67),
        "shader.diffuse.scale": np.full(where.count, 0.08),
        "shape.start": np.zeros_like(ends),
        "shape.end": ends,
        "shape.radius": radii,
        "offsets": where.standing(radii),
    }


def _rings(generator: np.random.Generator, where: _Footprints) -> dict[str, np.ndarray]:
    """Makes tori of straight pieces, some flat on the table and some upright."""
    thick = where.radii * generator.uniform(0.12, 0.3, where.count)
    upright = np.arange(where.count) % 2 == 1
    turns = [_about_z(angle) for angle in generator.uniform(0, np.pi, where.count)]
    turns = [x @ _UPRIGHT if up else x for x, up in zip(turns, upright, strict=True)]
    angles = 2 * np.pi * np.arange(_SEGMENTS + 1) / _SEGMENTS
    circle = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=-1)
    # Corners of the middle line, relative to the ring's centre: things segments+1 3.
    points = np.einsum("nij,kj->nki", np.reshape(turns, (-1, 3, 3)), circle)
    points *= (where.radii - thick)[:, None, None]
    each = lambda x: np.repeat(x, _SEGMENTS, axis=0)
    colors = _colors(generator, where.count, checkered=0.5)
    return {
        **{name: each(color) for name, color in colors.items()},
        "shader.diffuse.scale": each(where.radii / 2),
        "shape.start": points[:, :-1].reshape(-1, 3),
        "shape.end": points[:, 1:].reshape(-1, 3),
        "shape.radius": each(thick),
        "offsets": each(where.standing(np.where(upright, where.radii, thick))),
    }


def _checkered() -> Phong:
    return Phong(Checker(0.5, coordinates=InSpace()), [0.1, 0.1, 0.1], 40.0)


def _affine(matrices: np.ndarray, offsets: np.ndarray) -> Affine:
    return jax.vmap(Affine)(jnp.asarray(matrices, float), jnp.asarray(offsets, float))


def _colors(generator: np.random.Generator, count: int, *, checkered: float) -> dict:
    pairs = np.stack([_two_colors(generator) for _ in range(count)], axis=1)
    plain = generator.uniform(size=count) > checkered
    other = np.where(plain[:, None], pairs[0], pairs[1])
    return {"shader.diffuse.color_a": pairs[0], "shader.diffuse.color_b": other}


def _two_colors(generator: np.random.Generator) -> np.ndarray:
    return _PALETTE[generator.choice(len(_PALETTE), 2, replace=False)]


_UPRIGHT = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])


def _about_z(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _random_rotation(generator: np.random.Generator) -> np.ndarray:
    # Q of normal numbers with diag(R) > 0 is even over the orthogonal group (Stewart 1980).
    q, r = np.linalg.qr(generator.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q * np.sign(np.linalg.det(q))


def _block_picture(colors: np.ndarray, kind: int) -> np.ndarray:
    """Draws the face of a toy block: a frame around a disk, a cross, a diamond or stripes."""
    x, y = np.meshgrid(*[(np.arange(_TEXELS) + 0.5) / _TEXELS * 2 - 1] * 2)
    inside = [
        np.hypot(x, y) < 0.55,
        np.minimum(abs(x), abs(y)) < 0.17,
        abs(x) + abs(y) < 0.65,
        np.sin(7 * (x + y)) > 0,
    ][kind]
    frame = np.maximum(abs(x), abs(y)) > 0.8
    return np.where((inside | frame)[..., None], colors[0], colors[1])


def _planks() -> np.ndarray:
    """Draws boards with a grain, which tile the plane."""
    x, y = np.meshgrid(*[np.arange(_TEXELS) / _TEXELS] * 2)
    board = np.floor(4 * y)
    waves = np.sin(2 * np.pi * (3 * x + board * 0.37)) * 0.15 + board * 0.6
    grain = (
        np.sin(2 * np.pi * (9 * y + waves)) * 0.5 + np.sin(2 * np.pi * (23 * y + 2 * waves)) * 0.3
    )
    light = 1 + 0.10 * grain + 0.12 * np.cos(2.4 * board)
    seam = (4 * y - board) * _TEXELS / 4 < 1
    return np.where(seam[..., None], 0.5, light[..., None]) * np.array([0.42, 0.24, 0.11])
