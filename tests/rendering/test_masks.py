"""Opacities that are shaders: cut-out textures of shapes and meshes, in pictures and shadows."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from support.helpers import assert_close


SIZE = 8
ALPHAS = np.random.default_rng(0).uniform(0.1, 0.9, (SIZE, SIZE, 1)).astype(np.float32)
HOLES = np.random.default_rng(1).integers(0, 2, (2, SIZE, SIZE, 1)).astype(np.float32)
RED, SKY = [0.9, 0.2, 0.1], [0.1, 0.2, 0.5]


def card(kind: str, height: float, alphas, shader) -> sg.Surface:
    """A square from -1 to 1 whose texels are seen by one pixel each."""
    if kind == "rectangle":
        mask = sg.ImageTexture(alphas, size=[2.0, 2.0])
        return sg.Surface(sg.Rectangle([0.0, 0.0, height], [2.0, 2.0]), shader, mask)
    corners = [[-1.0, -1, height], [1, -1, height], [1, 1, height], [-1, 1, height]]
    coordinates = [[0.0, 0], [1, 0], [1, 1], [0, 1]]
    square = sg.TriangleMesh(corners, [[0, 1, 2], [0, 2, 3]], uv=coordinates, smooth=False)
    return sg.Surface(square, shader, sg.ImageTexture(alphas, corner=[0.0, 0.0]))


def render(*cards: sg.Surface, height: float = 3.0, **nodes) -> jax.Array:
    """A picture straight from above, whose top row is that of the textures."""
    pose = sg.transforms.Pose.look_at([0.0, 0, height], [0.0, 0, height - 1], [0.0, 1, 0])
    camera = sg.OrthographicCamera(pose, SIZE / 2, SIZE, SIZE)
    named = {f"card_{i}": x for i, x in enumerate(cards)}
    return sg.render(sg.Scene(sg.Group(**named, **nodes), background=SKY), camera).rgb


@pytest.mark.parametrize("kind", [pytest.param("mesh", marks=pytest.mark.slow), "rectangle"])
def test_a_pixel_shows_its_texel(kind):
    """Over the background: `a red + (1 - a) sky`, and its derivative by `a`."""

    def picture(alphas):
        return render(card(kind, 0.0, alphas, RED))

    weights = np.random.default_rng(2).normal(size=(SIZE, SIZE, 3)).astype(np.float32)
    value, change = jax.vjp(picture, jnp.asarray(ALPHAS))
    assert_close(value, ALPHAS * np.float32(RED) + (1 - ALPHAS) * np.float32(SKY), 1e-4)
    expected = np.sum(weights * np.subtract(RED, SKY), axis=2, keepdims=True)
    assert_close(change(jnp.asarray(weights))[0], expected, 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mesh", "rectangle"])
def test_light_falls_through_holes(kind):
    """Straight down through two cards: the floor is lit where both have a hole."""
    floor = sg.Surface(sg.Rectangle([0.0, 0, 0], [9.0, 9.0]), sg.Lambert([0.5] * 3))
    lamp = sg.DirectionalLight([0.0, 0, -1], [2.0] * 3)
    cards = [card(kind, 2.0 + i, holes, RED) for i, holes in enumerate(HOLES)]
    picture = render(*cards, height=1.0, floor=floor, lamp=lamp)
    lit = np.prod(1 - HOLES, axis=0)
    # Lambert: albedo / pi times irradiance.
    assert 5 < np.sum(lit) < 40
    assert_close(picture, np.repeat(lit, 3, axis=2) * 0.5 * 2 / np.pi, 1e-4)


@pytest.mark.slow
def test_shadows_have_derivatives_by_texels():
    """One card over the floor: `(1 - a) 0.5 2 / pi`."""
    floor = sg.Surface(sg.Rectangle([0.0, 0, 0], [9.0, 9.0]), sg.Lambert([0.5] * 3))
    lamp = sg.DirectionalLight([0.0, 0, -1], [2.0] * 3)

    def total(surface: sg.Surface) -> jax.Array:
        return jnp.sum(render(surface, height=1.0, floor=floor, lamp=lamp)[..., 0])

    value, gradient = eqx.filter_value_and_grad(total)(card("mesh", 2.0, ALPHAS, RED))
    assert_close(value, np.sum(1 - ALPHAS) / np.pi, 1e-4)
    assert_close(gradient.opacity.texels, np.full(ALPHAS.shape, -1 / np.pi), 1e-4)


@pytest.mark.slow
def test_meshes_and_rectangles_show_the_same():
    """A pattern under a slanted view and a slanted light, which neither has in closed form."""
    pattern = sg.Checker(0.25, [1.0] * 3, [0.0] * 3)
    corners = [[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]
    flat = [[-1.0, -1], [1, -1], [1, 1], [-1, 1]]
    shapes = [
        sg.TriangleMesh(corners, [[0, 1, 2], [0, 2, 3]], uv=flat, smooth=False),
        sg.Rectangle([0.0, 0, 0], [2.0, 2.0]),
    ]
    camera = sg.PerspectiveCamera.look_at([0.0, -4, 4], [0.0, 0, 0], [0.0, 0, 1], 0.8, 24, 24)
    floor = sg.Surface(sg.Rectangle([0.0, 0, -1], [6.0, 6.0]), sg.Lambert([0.8] * 3))
    lamp = sg.DirectionalLight([0.3, 0.0, -1.0], [3.0] * 3)
    scenes = [
        sg.Scene(sg.Group(card=sg.Surface(x, sg.Lambert(RED), pattern), floor=floor, lamp=lamp))
        for x in shapes
    ]
    mesh, rectangle = (sg.render(scene, camera).rgb for scene in scenes)
    # A mesh takes the opacity of a pixel on its diagonal from the triangle that covers more of it.
    assert float(jnp.sqrt(jnp.mean((mesh - rectangle) ** 2))) < 0.01
    assert float(jnp.std(mesh)) > 0.1


def test_patterns_need_coordinates():
    bumpy = sg.SignedDistance(lambda point: jnp.linalg.norm(point) - 1.0)
    with pytest.raises(ValueError, match="ImageTexture is a pattern in `uv`"):
        sg.Surface(bumpy, RED, sg.ImageTexture(ALPHAS))


def test_constant_opacity_is_a_fraction():
    with pytest.raises(ValueError, match="Surface.opacity.*between 0 and 1"):
        sg.Surface(sg.Sphere(), RED, sg.shaders.Constant([1.5] * 3))
