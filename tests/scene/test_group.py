"""Groups: names, spans, and media that add up."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.compositing import mix_media
from scenegraph.fields import AbstractField, ConstantFog
from scenegraph.flat import flatten
from scenegraph.numerics import Frozen
from scenegraph.rays import ConeBeam, Medium, Ray, Section
from scenegraph.scene import find_contents
from support.helpers import assert_close, assert_finite_gradients


RED, BLUE = [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]
THIN = [[0.0, 1e-3, 0.0], [0.0, 0.0, 1e-3]]
RAY = Ray([-3, 0, 0], [2, 0, 0], [1, 0, 0], THIN, THIN, 0.5, 4.0)
SECTION = Section(ConeBeam()(RAY, jnp.asarray(1.4), jnp.asarray(1.6)), 1.4, 1.6)


def fog(extinction, rgb, lower=(-1, -1, -1), upper=(1, 1, 1)):
    return sg.Volume(ConstantFog(extinction, rgb), sg.Box(list(lower), list(upper)))


def ask(node, ray=RAY, section=SECTION):
    flat = flatten(sg.Scene(node))
    return flat.medium(section, flat.prepare(ray))


def camera():
    return sg.PerspectiveCamera(sg.Pose(jnp.eye(4)), 2.0, 3, 2)


# --- Media


def test_densities_add_and_colours_mix_by_density():
    medium = ask(sg.Group(a=fog(1.0, RED), b=sg.Group(c=fog(3.0, BLUE))))
    assert_close(medium.density, 4.0, 1e-6)
    assert_close(medium.rgb, [0.25, 0, 0.75], 1e-6)


def test_what_is_not_there_gives_no_colour():
    medium = ask(
        sg.Group(a=fog(1.0, RED), b=fog(0.0, BLUE), c=fog(9.0, BLUE, (5, 5, 5), (6, 6, 6)))
    )
    assert_close(medium.density, 1.0, 1e-6)
    assert_close(medium.rgb, RED, 1e-6)


def test_a_group_of_one_is_that_one():
    alone, grouped = ask(fog(1.0, RED)), ask(sg.Group(a=fog(1.0, RED)))
    assert_close(grouped.density, alone.density, 0)
    assert_close(grouped.rgb, alone.rgb, 0)


def test_cameras_fill_no_space():
    with_camera = sg.Group(a=fog(1.0, RED), cam=camera(), deep=sg.Group(cam=camera()))
    assert_close(ask(with_camera).density, 1.0, 1e-6)
    for full in (with_camera, sg.Group(x=Frozen(fog(1, RED)))):
        assert len(find_contents(sg.Scene(full)).volumes) == 1
    for empty in (sg.Group(), camera(), sg.Group(a=sg.Group()), sg.Group(c=Frozen(camera()))):
        for node in (empty, sg.Transformed(empty, sg.Similarity())):
            assert not flatten(sg.Scene(node)).volumes


@pytest.mark.parametrize("density", [0.0, 1e-38, 1e-30, 1e-12, 1.0, 1e10])
def test_mixing_has_finite_gradients(density):
    """Blobs fade to densities whose square is zero in single precision."""

    def mix(densities, colors):
        return mix_media(Medium(densities, colors))

    assert_finite_gradients(mix, jnp.array([density, 0.5 * density]), jnp.array([RED, BLUE]))


def test_pictures_of_media_in_one_place():
    """Beer and Lambert with the sum; the brighter colour is the mean by density."""
    scene = sg.Scene(sg.Group(a=fog(0.3, RED), b=fog(0.1, BLUE)), background=[0, 1, 0])
    view = sg.OrthographicCamera.look_at([0, 0, 3], [0, 0, 0], [0, 1, 0], 1.0, 2, 2)
    image = sg.render(scene, view, sg.Hierarchical((4,)))
    alpha = 1 - np.exp(-0.4 * 2)
    assert_close(image.alpha, np.full((2, 2), alpha), 1e-5)
    assert_close(image.rgb[0, 0], [0.75 * alpha, 1 - alpha, 0.25 * alpha], 1e-5)


# --- Spans


def span(node, ray=RAY):
    found = flatten(sg.Scene(node)).span(ray)
    return float(found.near), float(found.far)


def test_spans():
    """The ray is at `x = 2 t - 3`."""
    left, right = fog(1, RED, (-1, -1, -1), (0, 1, 1)), fog(1, RED, (1, -1, -1), (2, 1, 1))
    missed = fog(1, RED, (-1, 5, -1), (0, 6, 1))
    cases = {
        (1.0, 1.5): [left],
        (1.0, 2.5): [left, right],
        (2.0, 2.5): [missed, right, missed],
        (0.5, 4.0): [sg.Volume(ConstantFog(1, RED), bounds=None), left],
        (0.5, 0.5): [missed, missed],
    }
    for expected, nodes in cases.items():
        named = {f"n{index}": node for index, node in enumerate(nodes)}
        assert span(sg.Group(cam=camera(), **named)) == pytest.approx(expected), expected
    assert span(sg.Group()) == (0.5, 0.5)


def test_spans_in_other_frames():
    moved = sg.Transformed(fog(1, RED), sg.Similarity([1.0, 0, 0], scale=0.5))
    assert span(sg.Group(a=moved)) == pytest.approx((1.75, 2.25))


# --- Names


@pytest.mark.parametrize("name", ["", "a.b", "a*", "**", "background", "integrator", "transform"])
def test_names_that_paths_need(name):
    with pytest.raises(ValueError, match="a child of a Group needs a name"):
        sg.Group(**{name: fog(1, RED)})


def test_children_are_nodes_or_cameras():
    """A field alone would fill no space, and be missing from the picture without a word."""
    alone = ConstantFog(1, RED)
    for make in (lambda: sg.Group(a=alone), lambda: sg.Group(a=Frozen(alone))):
        with pytest.raises(TypeError, match="child 'a' of a Group must be a node.*ConstantFog"):
            make()
    with pytest.raises(TypeError, match="child of a Transformed.*A field becomes"):
        sg.Transformed(alone, sg.Similarity())
    with pytest.raises(TypeError, match="root of a Scene.*got 3.0"):
        sg.Scene(3.0)


def test_names_that_are_fine():
    assert list(sg.Group(b=fog(1, RED), a_1=camera()).children) == ["b", "a_1"]


# --- A field of one's own


class Layers(AbstractField):
    """Ten lines that a user writes: density falls off with height, colour follows the view."""

    height: jax.Array

    def __call__(self, gaussian, view, *, key=None):
        return Medium(self.density(gaussian), 0.5 + 0.5 * view)

    def density(self, gaussian):
        return jnp.exp(-gaussian.mean[2] / self.height)


def test_a_field_of_ones_own():
    """Level rays: density is constant along each, and known."""
    scene = sg.Scene(sg.Group(a=sg.Volume(Layers(jnp.asarray(0.5)))), background=[0, 0, 0])
    view = sg.OrthographicCamera.look_at([0, -4, 0.2], [0, 0, 0.2], [0, 0, 1], 1.0, 2, 2)

    def opacity(scene):
        image = sg.render(scene, view, sg.Hierarchical((4,)))
        return jnp.sum(image.alpha), image

    gradient, image = eqx.filter_jit(eqx.filter_grad(opacity, has_aux=True))(scene)
    alpha = 1 - np.exp(-3 * np.exp(-np.array([0.45, -0.05]) / 0.5))
    assert_close(image.alpha, np.stack([alpha, alpha], 1), 1e-5)
    assert_close(image.rgb[0, 0], alpha[0] * np.array([0.5, 1.0, 0.5]), 1e-5)
    assert gradient.root.children["a"].field.height > 0
