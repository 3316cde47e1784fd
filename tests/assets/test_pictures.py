"""A saved scene, loaded again, looks as it did."""

import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*rays meet more")  # derivatives are not asked for
def test_a_saved_scene_looks_as_it_did(tmp_path):
    rng = np.random.default_rng(0)
    texture = sg.ImageTexture(rng.integers(0, 255, (4, 4, 3)).astype(np.uint8), [2.0, 2.0])
    scene = sg.Scene(
        sg.Group(
            ball=sg.Surface(sg.Sphere([-0.8, 0, 0.3], 0.7), sg.GGX([0.8, 0.3, 0.2], 0.0, 0.5)),
            box=sg.Transformed(
                sg.Surface(sg.Box([-0.4] * 3, [0.4] * 3), sg.Lambert([0.2, 0.6, 0.3])),
                sg.transforms.rotate_about([0.0, 0, 1], 0.5) @ sg.transforms.translate([1.0, 0, 0]),
            ),
            card=sg.Surface(sg.Rectangle([0.0, 0, -0.5], [4.0, 4]), sg.Lambert(texture)),
            lamp=sg.PointLight([1.0, -2, 4], [30.0, 30, 30]),
            spot=sg.SpotLight([-2.0, -2, 3], [1.0, 1, -1.5], [20.0, 10, 5], 0.6, 0.5),
            sky=sg.AmbientLight([0.2, 0.2, 0.3]),
            cam=sg.PerspectiveCamera.look_at(
                [0.5, -5.0, 2.5], [0.0, 0, 0], [0.0, 0, 1], 0.8, 48, 32
            ),
        ),
        background=[0.05, 0.1, 0.2],
    )
    sg.save_glb(scene, tmp_path / "a.glb", segments=128)
    before = sg.render(scene, "cam").rgb
    after = sg.render(sg.load_scene(tmp_path / "a.glb"), "cam").rgb
    error = jnp.abs(before - after)
    # The same but for shadows' edges and the outlines of polygons.
    assert float(jnp.median(error)) < 2e-3 and float(jnp.sqrt(jnp.mean(error**2))) < 0.02
    assert float(jnp.std(before)) > 0.1
