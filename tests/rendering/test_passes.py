"""Pictures in passes: their mean is that of pictures of many keys."""

import jax
import numpy as np
import pytest

import scenegraph as sg


FLOOR = sg.Surface(sg.Plane(), sg.Lambert([0.6, 0.5, 0.4]))
BALL = sg.Surface(sg.Sphere([0.0, 0.0, 0.5], 0.5), sg.Lambert([0.2, 0.5, 0.4]))
LAMP = sg.PointLight([1.0, -1.0, 2.0], [9.0, 9.0, 9.0])
SCENE = sg.Scene(sg.Group(floor=FLOOR, ball=BALL, lamp=LAMP), background=[0.1, 0.2, 0.3])
CAMERA = sg.PerspectiveCamera.look_at([0, -4, 1.5], [0, 0, 0.5], [0, 0, 1], 0.8, 8, 8)
OUTPUTS = ["variance", "normal", "albedo", "position", "surface", "uv", "median_depth"]


def test_the_mean_is_that_of_its_passes():
    key, path = jax.random.key(1), sg.Path(samples=48, bounces=1)
    image = sg.rendering.render_passes(SCENE, CAMERA, path, key=key, outputs=OUTPUTS)
    part = sg.Path(samples=16, bounces=1)
    draw = lambda k: sg.render(SCENE, CAMERA, part, key=jax.random.fold_in(key, k), outputs=OUTPUTS)
    parts = [draw(k) for k in range(3)]
    np.testing.assert_allclose(image.rgb, np.mean([x.rgb for x in parts], axis=0), rtol=1e-5)
    np.testing.assert_allclose(image.alpha, np.mean([x.alpha for x in parts], axis=0), rtol=1e-5)
    variance = np.sum([x.variance for x in parts], axis=0) / 9
    np.testing.assert_allclose(image.variance, variance, rtol=1e-4)
    alphas = np.asarray([x.alpha for x in parts])
    depths = np.asarray([x.depth for x in parts])
    seen = alphas.sum(axis=0) > 0
    mean = (alphas * depths).sum(axis=0)[seen] / alphas.sum(axis=0)[seen]
    np.testing.assert_allclose(image.depth[seen], mean, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(image.normal, axis=-1)[seen], 1, rtol=1e-5)
    np.testing.assert_array_equal(image.surface, parts[0].surface)


def test_an_interrupted_picture_is_that_of_the_passes_that_are_done():
    key, path = jax.random.key(1), sg.Path(samples=1600, bounces=1)

    def two(numbers):
        yield numbers[0]
        yield numbers[1]
        raise KeyboardInterrupt

    done = sg.rendering.render_passes(SCENE, CAMERA, path, key=key, track=two)
    whole = sg.rendering.render_passes(SCENE, CAMERA, sg.Path(samples=32, bounces=1), key=key)
    np.testing.assert_array_equal(done.rgb, whole.rgb)

    def none(numbers):
        raise KeyboardInterrupt
        yield from numbers

    with pytest.raises(KeyboardInterrupt):
        sg.rendering.render_passes(SCENE, CAMERA, path, key=key, track=none)
