"""Ellipsoids: spheres under an affine map, and numbers by brute force."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from support.helpers import assert_close


CENTER, RADII = np.array([0.2, -0.1, 0.3]), np.array([0.9, 0.5, 0.25])
CAMERA = sg.PerspectiveCamera.look_at([1.5, -3.0, 1.4], [0.2, 0.0, 0.2], [0, 0, 1], 0.7, 24, 20)


def picture(node, camera=CAMERA):
    lamp, floor = sg.PointLight([1.0, -2.0, 3.0], [12.0] * 3), sg.Plane([0.0, 0.0, -0.2])
    ground = sg.Surface(floor, sg.Lambert([0.6, 0.6, 0.6]))
    root = sg.Group(ball=node, floor=ground, lamp=lamp)
    outputs = "normal", "uv", "position"
    return sg.render(sg.Scene(root), camera, outputs=outputs)


def test_it_is_a_stretched_sphere():
    """Its picture, shadow, normals and coordinates, and derivatives by centre and radii."""
    look = sg.Lambert(sg.Checker(0.4))

    def own(center, radii):
        return picture(sg.Surface(sg.Ellipsoid(center, radii), look))

    def stretched(center, radii):
        affine = sg.Affine(jnp.diag(radii), center)
        return picture(sg.Transformed(sg.Surface(sg.Sphere(), look), affine))

    def loss(draw):
        def total(center, radii):
            image = draw(center, radii)
            return jnp.sum(image.rgb * jnp.linspace(0.3, 1, 24)[:, None]), image

        return jax.jit(jax.value_and_grad(total, (0, 1), has_aux=True))

    leaves = jnp.asarray(CENTER, jnp.float32), jnp.asarray(RADII, jnp.float32)
    (value, image), slopes = loss(own)(*leaves)
    (wanted, other), wanted_slopes = loss(stretched)(*leaves)
    assert_close(value, wanted, 1e-5)
    for name in ("rgb", "alpha", "normal", "position", "uv"):
        # The two round differently: at an outline a pixel may differ by the rounding of a root.
        assert_close(getattr(image, name), getattr(other, name), 2e-3)
    for one, another in zip(slopes, wanted_slopes, strict=True):
        assert_close(one, another, 2e-3)


def test_of_equal_radii_it_is_a_sphere():
    ball = sg.Surface(sg.Sphere(CENTER, 0.6), [0.5, 0.4, 0.3])
    egg = sg.Surface(sg.Ellipsoid(CENTER, [0.6] * 3), [0.5, 0.4, 0.3])
    assert_close(picture(egg).rgb, picture(ball).rgb, 1e-5)


def test_it_covers_the_area_of_its_shadow():
    """From above, an orthographic picture shows an ellipse of area pi a b."""
    camera = sg.OrthographicCamera.look_at([0.2, -0.1, 4], CENTER, [0, 1, 0], 2.4, 40, 40)
    egg = sg.Scene(sg.Group(egg=sg.Surface(sg.Ellipsoid(CENTER, RADII), [1.0] * 3)))
    area = jnp.sum(sg.render(egg, camera).alpha) * (2.4 / 40) ** 2
    assert_close(area, np.pi * RADII[0] * RADII[1], 3e-3)


@pytest.mark.parametrize(
    "line", [([0.2, -3, 0.3], [0, 1, 0]), ([2.0, -2.0, 0.5], [-1.8, 1.9, -0.2])]
)
def test_hits_are_those_of_a_search(line):
    """The first of many points of a line inside; the normal is the gradient of the quadric."""
    origin, direction = np.asarray(line[0], float), np.asarray(line[1], float)
    t = np.linspace(0, 6, 600_001)
    inside = np.sum(((origin + t[:, None] * direction - CENTER) / RADII) ** 2, axis=1) <= 1
    first = t[np.argmax(inside)]
    ray = sg.rays.Ray(
        *map(jnp.asarray, (origin, direction, direction)), *(1e-4 * jnp.eye(2, 3),) * 2, 0.01, 50.0
    )
    hit = sg.Ellipsoid(CENTER, RADII).intersect(jax.tree.map(jnp.asarray, ray))
    assert_close(hit.t, first, 1e-4)
    outward = (origin + first * direction - CENTER) / RADII**2
    assert_close(hit.normal, outward / np.linalg.norm(outward), 2e-3)
    assert_close(hit.coverage, 1.0, 1e-5)


@pytest.mark.parametrize("radii", [[1.0, 0.0, 1.0], [1.0, -1.0, 1.0], [1.0, np.nan, 1.0]])
def test_radii_that_are_not_positive_are_refused(radii):
    with pytest.raises(ValueError, match=r"Ellipsoid\.radii.*positive"):
        sg.Ellipsoid([0.0] * 3, radii)


def test_a_needle_and_a_disk_are_finite():
    """Radii of very different lengths: numbers and derivatives."""

    def shown(radii):
        return jnp.sum(picture(sg.Surface(sg.Ellipsoid(CENTER, radii), [0.5] * 3)).rgb)

    slope = jax.jit(jax.value_and_grad(shown))
    for radii in ([1.0, 1e-3, 1e-3], [1.0, 1.0, 1e-3]):
        assert all(np.all(np.isfinite(x)) for x in slope(jnp.asarray(radii)))
