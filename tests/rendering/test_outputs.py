"""Albedo, uv, position and surface of pictures, against numpy and finite differences."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.fields import ConstantFog
from scenegraph.numerics import as_type
from scenegraph.scene import trainable_leaves
from support.helpers import assert_close


OUTPUTS = ("albedo", "uv", "position", "surface")
EYE, SIZE = [1.0, -5.0, 1.2], 12
BALL, RADIUS, LOWER, UPPER = np.array([-0.6, 0, 0.1]), 0.7, [0.3, -0.4, -0.6], [1.1, 0.4, 0.2]
FLOOR = -0.6
START, END = np.array([-2.0, -1.0]), np.array([3.0, 2.0])
LEFT, RIGHT = np.array([0.9, 0.1, 0.2]), np.array([0.1, 0.6, 0.8])


def camera(size=SIZE, target=(0.2, 0, 0.3)):
    return sg.PerspectiveCamera.look_at(EYE, list(target), [0, 0, 1], 0.6, size, size)


def table(**others):
    """A lit ball and box on a floor with a ramp; numbers are those of sorted names."""
    ramp = sg.Gradient(START, END, LEFT, RIGHT)
    return sg.Group(
        ball=sg.Surface(sg.Sphere(BALL, RADIUS), sg.Lambert([0.8, 0.3, 0.1])),
        box=sg.Surface(sg.Box(LOWER, UPPER), sg.Lambert([0.2, 0.5, 0.3])),
        floor=sg.Surface(sg.Plane([0.0, 0.0, FLOOR]), ramp),
        light=sg.AmbientLight([0.5, 0.6, 0.7]),
        **others,
    )


def rays_of(seen):
    rays = jax.vmap(seen.ray)(sg.cameras.pixel_centres(seen.width, seen.height))
    return np.asarray(rays.origin, float), np.asarray(rays.direction, float)


def ball_distance(origin, way):
    away = origin - BALL
    a, b = np.sum(way**2, axis=1), np.sum(away * way, axis=1)
    root = b**2 - a * (np.sum(away**2, axis=1) - RADIUS**2)
    return np.where(root > 0, (-b - np.sqrt(np.maximum(root, 0))) / a, np.inf)


def box_distance(origin, way):
    ends = np.sort(np.stack([(LOWER - origin) / way, (UPPER - origin) / way]), axis=0)
    near, far = ends[0].max(axis=1), ends[1].min(axis=1)
    return np.where(near < far, near, np.inf)


def floor_distance(origin, way):
    t = (FLOOR - origin[:, 2]) / way[:, 2]
    return np.where(t > 0, t, np.inf)


def hard(seen):
    """Surface and position where the middle of each pixel meets the table; -1 and zero for none."""
    origin, way = rays_of(seen)
    each = np.stack([f(origin, way) for f in (ball_distance, box_distance, floor_distance)])
    t, which = each.min(axis=0), each.argmin(axis=0)
    there = np.isfinite(t)
    position = np.where(there[:, None], origin + np.where(there, t, 0)[:, None] * way, 0)
    shape = seen.height, seen.width
    return np.where(there, which, -1).reshape(shape), position.reshape(*shape, 3)


def shares(parts=8):
    """The part of every pixel in which each surface is seen, and where there is one alone.

    Of many lines; those about a pixel's border count for the latter, too.
    """
    which = hard(camera(parts * SIZE))[0]
    pixels = which.reshape(SIZE, parts, SIZE, parts)
    wide = np.lib.stride_tricks.sliding_window_view(np.pad(which, 1, mode="edge"), (parts + 2,) * 2)
    wide = wide[::parts, ::parts].reshape(SIZE, SIZE, -1)
    alone = np.all(wide == wide[..., :1], axis=-1)
    return np.stack([np.mean(pixels == k, axis=(1, 3)) for k in (-1, 0, 1, 2)]), alone


def ramp(places):
    along = END - START
    share = np.clip((places - START) @ along / (along @ along), 0, 1)
    return LEFT + share[..., None] * (RIGHT - LEFT)


@functools.cache
def pictures():
    """Of one program for the whole ray, of one with a search, and of parts of pixels."""
    few, many = sg.Scene(table()), sg.Scene(table(), integrator=sg.Surfaces(lists=True))
    draw = functools.partial(sg.render, camera=camera(), outputs=OUTPUTS)
    return draw(few), draw(many), draw(few, samples_per_pixel=4)


@pytest.mark.parametrize("way", range(3))
def test_table_against_lines(way):
    image, (part, whole) = pictures()[way], shares()
    which, position = hard(camera())
    # The surface is that which most of a pixel shows, but where two show about as much.
    _, second, most = np.sort(part[1:], axis=0)
    sure = whole | (most > second + (0.15 if way < 2 else 0.5))
    expected = np.where(part[0] == 1, -1, part[1:].argmax(axis=0))
    assert np.mean(sure) > 0.8 and np.array_equal(image.surface[sure], expected[sure])
    assert image.surface.dtype == jnp.int32

    seen = whole & (which >= 0)
    assert np.sum(seen) > SIZE**2 / 3
    # Of a ball, a pixel has the mean of what it sees; of four cones, of their four points.
    error = np.linalg.norm(np.asarray(image.position) - position, axis=-1)
    away = np.linalg.norm(position - EYE, axis=-1)
    assert (
        np.max(error[seen & (which > 0)] / away[seen & (which > 0)] ** 2) < (1e-4, 1e-4, 5e-3)[way]
    )
    assert np.max(error[seen & (which == 0)]) < 2e-2
    albedo = np.array([[0.8, 0.3, 0.1], [0.2, 0.5, 0.3]])[np.clip(which, 0, 1)]
    albedo = np.where((which == 2)[..., None], ramp(position[..., :2]), albedo)
    # Far away, a pixel has the mean over more than a straight part of the ramp.
    near = seen & (away < 8)
    assert np.sum(near & (which == 2)) > SIZE
    assert_close(image.albedo[near], albedo[near], 0, 3e-3)
    on_floor = whole & (which == 2)
    # A plane has its uv in world units, from its point on; of four cones it is one's.
    error = np.linalg.norm(np.asarray(image.uv) - position[..., :2], axis=-1)[on_floor]
    assert np.max(error / away[on_floor] ** 2) < (1e-4, 1e-4, 2e-2)[way]
    nothing = whole & (which < 0)
    assert np.sum(nothing) > SIZE
    for name in ("albedo", "uv", "position"):
        assert not np.any(np.asarray(getattr(image, name))[nothing])
        assert np.all(np.isfinite(getattr(image, name)))


def test_both_ways_are_the_same():
    few, many, _ = pictures()
    for name in OUTPUTS:
        assert_close(getattr(few, name), getattr(many, name), 0, 1e-5)


def test_names_of_numbers():
    scene = sg.Scene(table())
    image = pictures()[0]
    assert sg.surface_paths(scene) == ["ball", "box", "floor"]
    assert set(np.unique(image.surface)) == {-1, 0, 1, 2}


def test_chunks_and_other_outputs_change_nothing():
    image = sg.render(sg.Scene(table()), camera(), outputs=["uv"], chunk=50)
    assert_close(image.uv, pictures()[0].uv, 0, 1e-6)
    assert image.surface is None and image.albedo is None and image.position is None


# --- Layers, media, and nothing


def screens(*opacities):
    """Rectangles across the ray, one behind the other, each with a colour of its own."""
    colors = np.eye(3)
    return {
        f"s{k}": sg.Surface(sg.Rectangle([0.0, 0.0, -float(k)], [9.0, 9.0]), colors[k], opacity)
        for k, opacity in enumerate(opacities)
    }


def from_above(**nodes):
    down = sg.PerspectiveCamera.look_at(
        [0.5, 0.2, 3], [0.5, 0.2, 0], [0, 1, 0], 0.01, 1, 1, near=1, far=10
    )
    image = sg.render(sg.Scene(sg.Group(**nodes)), down, outputs=OUTPUTS)
    return {name: np.asarray(getattr(image, name))[0, 0] for name in ("alpha", *OUTPUTS)}


def test_layers_mix_by_what_is_seen_of_them():
    """Weights of 0.3, of 0.7 x 0.6, and of 0.7 x 0.4 x 0.5."""
    seen = from_above(**screens(0.3, 0.6, 0.5))
    weights = np.array([0.3, 0.42, 0.14])
    assert_close(seen["albedo"], weights / weights.sum(), 1e-5)
    assert seen["surface"] == 1
    # All screens have the same uv below the eye.
    assert_close(seen["uv"], [0.5, 0.2], 1e-4)
    assert_close(seen["position"][2], -(weights @ [0, 1, 2]) / weights.sum(), 0, 1e-4)


def test_parts_of_one_surface_count_together():
    """Of a box of half opacity both sides are seen, each less than the screen between them."""
    box = sg.Surface(sg.Box([-4.0, -4, -2.5], [4, 4, 0]), [0.2, 0.2, 0.2], 0.5)
    assert from_above(box=box, **screens(0.0, 0.4))["surface"] == 0


def test_media_have_their_colour_and_no_number():
    """A fog of extinction 0.4 from z = 1 to 0, before a screen of half opacity and a wall."""
    color = np.array([0.1, 0.2, 0.7])
    fog = sg.Volume(ConstantFog(0.4, color), sg.Box([-9.0, -9, 0], [9, 9, 1]))
    fog = eqx.tree_at(
        lambda x: x.integrator, fog, sg.Hierarchical((64,)), is_leaf=lambda x: x is None
    )
    alone = from_above(fog=fog)
    left = np.exp(-0.4)
    assert_close(alone["alpha"], 1 - left, 1e-4)
    assert_close(alone["albedo"], color, 1e-4)
    assert alone["surface"] == -1 and not np.any(alone["uv"])
    # The mean of s over 0.4 exp(-0.4 s), from the top of the fog.
    depth = (1 / 0.4 - left * (1 + 1 / 0.4)) / (1 - left)
    assert_close(alone["position"], [0.5, 0.2, 1 - depth], 0, 1e-3)

    seen = from_above(fog=fog, **screens(0.5, 1.0))
    # The screen lies on the fog's end.
    screen, wall = 0.5 * left, 0.5 * left
    expected = (1 - left) * color + [screen, wall, 0]
    assert_close(seen["albedo"], expected, 1e-4)
    assert_close(seen["position"][2], (1 - left) * (1 - depth) - wall, 0, 1e-3)
    assert seen["surface"] in (0, 1)


def test_nothing_is_seen_of_a_background():
    away = sg.Surface(sg.Sphere([0.0, 9.0, 0.0]), [1.0, 0, 0])
    for group in (sg.Group(), sg.Group(away=away)):
        seen = sg.PerspectiveCamera.look_at(EYE, [1, -9, 1], [0, 0, 1], 0.5, 2, 2)
        scene = sg.Scene(group, background=[0.2, 0.4, 0.6])
        image = sg.render(scene, seen, outputs=OUTPUTS)
        assert not np.any(image.albedo) and not np.any(image.uv) and not np.any(image.position)
        assert np.all(image.surface == -1) and not np.any(image.alpha)


# --- Copies and meshes


def quad(**options):
    """A square over the unit square, whose uv is its place."""
    corners = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    mesh = sg.TriangleMesh(
        corners, [[0, 1, 2], [0, 2, 3]], uv=corners[:, :2], smooth=False, **options
    )
    return sg.Surface(mesh, [0.3, 0.6, 0.9])


def test_copies_of_meshes_have_numbers_and_names():
    places = [sg.Similarity(translation=[float(x), 0.0, 0.0]) for x in (-2, 0, 2)]
    pair = sg.Instances(
        sg.Group(tile=quad()), [sg.Similarity(translation=[0.0, y, 0.0]) for y in (-1.5, 0.5)]
    )
    scene = sg.Scene(
        sg.Group(
            a=sg.Surface(sg.Sphere([9.0, 9, 9]), [1.0, 0, 0]), tiles=sg.Instances(pair, places)
        )
    )
    paths = sg.surface_paths(scene)
    copies = [f"tiles.tile[{i}, {j}]" for i in range(3) for j in range(2)]
    assert paths == ["a", *copies]

    above = sg.OrthographicCamera.look_at([0.5, 0.0, 5], [0.5, 0, 0], [0, 1, 0], 6.0, 12, 12)
    image = sg.render(scene, above, outputs=OUTPUTS)
    origin = rays_of(above)[0].reshape(12, 12, 3)
    for row, column in np.ndindex(12, 12):
        x, y, _ = origin[row, column]
        inside = [
            f"tiles.tile[{i}, {j}]"
            for i, left in enumerate((-2, 0, 2))
            for j, bottom in enumerate((-1.5, 0.5))
            if left < x < left + 1 and bottom < y < bottom + 1
        ]
        number = int(image.surface[row, column])
        assert number == (paths.index(inside[0]) if inside else -1)
        if inside:
            i, j = (int(n) for n in inside[0][11:-1].split(","))
            corner = np.array([(-2, 0, 2)[i], (-1.5, 0.5)[j]])
            assert_close(image.uv[row, column], [x, y] - corner, 0, 1e-4)
            assert_close(image.position[row, column], [x, y, 0], 0, 1e-4)
            assert_close(image.albedo[row, column], [0.3, 0.6, 0.9], 1e-4)


# --- Gradients


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["few", "mesh", "fog"])
def test_gradients_are_finite_differences(kind):
    """Of all float leaves, along one direction, in float64; silhouettes are in the picture."""
    draw = np.random.default_rng(3)
    with jax.enable_x64(True):
        others = {
            "few": {},
            "mesh": {"tile": sg.Transformed(quad(), sg.Affine(np.eye(3), [-0.1, -1.5, -0.4]))},
            "fog": {"fog": sg.Volume(ConstantFog(0.2, [0.5, 0.5, 0.9]))},
        }[kind]
        # Sample positions have derivatives, as differences see them.
        media = sg.Hierarchical((16,), stop_gradient=False) if kind == "fog" else None
        scene = sg.Scene(table(**others), integrator=sg.Integrator(media))
        # No horizon, where positions are very far away.
        scene, seen = as_type((scene, camera(6, (0.2, 0.0, -0.7))), jnp.float64)
        sizes = {"albedo": 3, "uv": 2, "position": 3}
        weights = {name: draw.normal(size=(6, 6, size)) for name, size in sizes.items()}
        leaves, rest = eqx.partition(scene, trainable_leaves(scene))

        @jax.jit
        def loss(leaves):
            image = sg.render(eqx.combine(leaves, rest), seen, outputs=OUTPUTS)
            return sum(jnp.sum(weights[name] * getattr(image, name)) for name in weights)

        slope = jax.jit(jax.grad(loss))(leaves)
        field = jax.tree.map(lambda x: jnp.asarray(draw.normal(size=x.shape)), leaves)
        along = sum(
            jnp.sum(a * b)
            for a, b in zip(jax.tree.leaves(slope), jax.tree.leaves(field), strict=True)
        )
        ends = [
            loss(jax.tree.map(lambda x, d: x + step * d, leaves, field))  # noqa: B023
            for step in (1e-6, -1e-6)
        ]
        np.testing.assert_allclose(along, (ends[0] - ends[1]) / 2e-6, rtol=1e-4)
