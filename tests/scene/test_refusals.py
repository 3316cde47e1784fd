"""Parameters that make no sense are refused where a user gives them, and nowhere else."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg


LAMP = [0.0, 0.0, 3.0]
DOWN = [0.0, 0.0, -1.0]
NEGATIVE = [1.0, -0.5, 1.0]


def look_at(eye, target, up, **more):
    return sg.PerspectiveCamera.look_at(eye, target, up, 0.5, 8, 8, **more)


REFUSED = {
    "Surface.opacity` must be between 0 and 1": lambda: sg.Surface(
        sg.Sphere(), [0.5] * 3, opacity=2.0
    ),
    "GGX.roughness` must be between 0 and 1": lambda: sg.GGX(roughness=1.5),
    "GGX.metallic` must be between 0 and 1": lambda: sg.GGX(metallic=-0.5),
    "GGX.base_color` must be between 0 and 1": lambda: sg.GGX([1.0, 2.0, 0.0]),
    "Lambert.albedo` must be between 0 and 1": lambda: sg.Lambert([1.0, 1.5, 0.0]),
    "Phong.specular` must be between 0 and 1": lambda: sg.Phong(specular=NEGATIVE),
    "SpotLight.angle` must be at most 3.142": lambda: sg.SpotLight(LAMP, DOWN, [1.0] * 3, 45.0),
    "SpotLight.intensity` must be": lambda: sg.SpotLight(LAMP, DOWN, NEGATIVE),
    "PointLight.intensity` must be": lambda: sg.PointLight(LAMP, NEGATIVE),
    "DirectionalLight.irradiance` must be": lambda: sg.DirectionalLight(DOWN, NEGATIVE),
    "AmbientLight.radiance` must be": lambda: sg.AmbientLight(NEGATIVE),
    "EnvironmentLight.texels` must be": lambda: sg.EnvironmentLight(-np.ones((2, 4, 3))),
    "PerspectiveCamera.near` must be below `far`": lambda: look_at(
        LAMP, [0, 0, 0], [0, 1, 0], near=2.0, far=1.0
    ),
    "OrthographicCamera.near` must be below `far`": lambda: sg.OrthographicCamera.look_at(
        LAMP, [0, 0, 0], [0, 1, 0], 1.0, 8, 8, near=2.0, far=1.0
    ),
    "`up` must not be zero or parallel": lambda: look_at(LAMP, [0, 0, 0], [0, 0, 2]),
    "`eye` and `target` must be two points": lambda: look_at(LAMP, LAMP, [0, 1, 0]),
    "are \\[2.0, 2.0, 2.0\\] long": lambda: sg.Pose(np.diag([2.0, 2.0, 2.0, 1.0])),
    "its determinant is -1": lambda: sg.Pose(np.diag([1.0, 1.0, -1.0, 1.0])),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused_with_a_message(message):
    with pytest.raises(ValueError, match=message):
        REFUSED[message]()


def scene():
    ball = sg.Surface(sg.Sphere(), sg.Lambert([0.5] * 3), opacity=0.5)
    turned = sg.Transformed(sg.PointLight(LAMP, [20.0] * 3), sg.Similarity([0.1, 0.0, 0.0]))
    return sg.Scene(sg.Group(ball=ball, lamp=turned))


def beyond(scene):
    """A scene as an optimiser may leave it: opacity above one, negative light."""
    ball, lamp = scene.root.children["ball"], scene.root.children["lamp"]
    where = lambda s: (
        s.root.children["ball"].opacity,
        s.root.children["ball"].shader.albedo.color,
        s.root.children["lamp"].child.intensity,
    )
    assert ball.opacity < 1 < lamp.child.intensity[0]
    return eqx.tree_at(where, scene, (jnp.asarray(1.5), jnp.full(3, 1.2), jnp.full(3, -1.0)))


def test_an_optimiser_may_pass_through():
    camera, outside = look_at([0, -4, 1], [0, 0, 0], [0, 0, 1]), beyond(scene())
    with pytest.warns(UserWarning, match="ball.opacity must be between 0 and 1, lamp.intensity"):
        assert np.isfinite(sg.render(outside, camera).rgb).all()
        # Also as a constant of a traced function.
        assert np.isfinite(jax.jit(lambda: sg.render(outside, camera).rgb)()).all()
    sg.flat.flatten(outside)


def test_what_was_saved_is_loaded(tmp_path):
    sg.save(beyond(scene()), tmp_path / "scene")
    loaded = sg.load(tmp_path / "scene")
    assert float(loaded.root.children["ball"].opacity) == 1.5


def test_what_is_traced_is_not_checked():
    def brightness(angle):
        spot = sg.SpotLight(LAMP, DOWN, [1.0] * 3, angle)
        return spot.sample(jnp.zeros(3), jnp.zeros((2, 3))).irradiance.sum()

    assert np.isfinite(jax.jit(brightness)(45.0))


def test_a_negative_number_of_steps_is_refused():
    with pytest.raises(ValueError, match="`steps` must not be negative; got -3"):
        sg.fit(scene(), None, optimizer=optax.adam(0.1), steps=-3, key=jax.random.key(0))


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_bytes_of_a_picture_are_scaled(kind):
    most = np.iinfo(kind).max
    numbers = np.random.default_rng(0).integers(0, most, (3, 5, 3)).astype(kind)
    fractions = numbers / most
    np.testing.assert_allclose(sg.Image(numbers).rgb, fractions, atol=1e-6)
    # The formula of IEC 61966-2-1, written out.
    linear = np.where(fractions <= 0.04045, fractions / 12.92, ((fractions + 0.055) / 1.055) ** 2.4)
    np.testing.assert_allclose(sg.ImageTexture(numbers).texels, linear, atol=1e-5)
    np.testing.assert_allclose(sg.ImageTexture(fractions).texels, fractions, atol=1e-6)
