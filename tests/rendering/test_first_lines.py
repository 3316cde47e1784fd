"""The first lines of the README, as they stand in issue 2."""

import numpy as np
import pytest


@pytest.mark.slow
def test_the_first_lines():
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    import scenegraph as sg

    key = jax.random.key(0)
    scene = sg.Scene(
        sg.Group(thing=sg.Volume(sg.fields.MipNerfMLP(width=64, depth=4, key=key))),
        background=sg.Constant([1.0, 1.0, 1.0]),
    )
    camera = sg.PerspectiveCamera.look_at(
        eye=[0.0, -4.0, 1.0],
        target=[0.0, 0.0, 0.0],
        up=[0.0, 0.0, 1.0],
        fov_x=0.7,
        width=64,
        height=48,
    )
    image = sg.render(scene, camera)
    grads = eqx.filter_grad(lambda s: jnp.mean(sg.render(s, camera).rgb ** 2))(scene)

    assert image.rgb.shape == (48, 64, 3)
    assert image.depth.shape == image.alpha.shape == (48, 64)
    assert jax.tree.structure(grads) == jax.tree.structure(scene)
    for leaf in jax.tree.leaves(grads):
        assert np.all(np.isfinite(leaf)) and np.any(leaf)
