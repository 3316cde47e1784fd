"""The pure step drives any Module and any loss that hands on a state."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg
from support.helpers import assert_close


RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(2.0, 3.0, (32, 3)), jnp.float32)
Y = X @ jnp.array([1.0, -2.0, 0.5]) + 0.3


def mean_square(linear, inputs):
    return jnp.mean((jax.vmap(linear)(inputs)[:, 0] - Y) ** 2)


def run(model, loss, extra, steps, optimizer=None):
    """Jitted steps, with a loss that may be traced only once."""
    optimizer = optimizer or optax.sgd(1e-2)
    once = eqx.debug.assert_max_traces(max_traces=1)(loss)
    state = sg.start_state(model, optimizer, extra=extra, steps=steps, key=jax.random.key(2))
    advance = eqx.filter_jit(lambda s: sg.step(s, (X, Y), loss=once, optimizer=optimizer))
    for _ in range(steps):
        state, _ = advance(state)
    return state


def test_a_counter():
    """No array is optimised but one that the loss ignores."""

    def count(model, seen, batch, key):
        return 0.0 * model["unused"], seen + jnp.array([1, 2])

    state = run({"unused": jnp.ones(())}, count, jnp.array([0, 10]), 7)
    assert state.extra.tolist() == [7, 24] and state.model["unused"] == 1


def test_linear_regression_reaches_the_closed_form():
    def loss(linear, seen, batch, key):
        return mean_square(linear, batch[0]), seen + 1

    linear = eqx.nn.Linear(3, 1, key=jax.random.key(1))
    state = run(linear, loss, jnp.array(0), 1000, optax.sgd(0.03))
    expected = np.linalg.lstsq(np.c_[X, np.ones(32)], Y, rcond=None)[0]
    assert_close(np.append(state.model.weight, state.model.bias), expected, 1e-4)


def test_running_statistics():
    """After n steps they are the batch's, but for what is left of where they began."""
    make = eqx.nn.make_with_state(eqx.nn.BatchNorm)
    norm, statistics = make(3, axis_name="batch", mode="batch", momentum=0.9)

    def loss(model, statistics, batch, key):
        linear, norm = model
        normalise = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
        inputs, statistics = normalise(batch[0], statistics)
        return mean_square(linear, inputs), statistics

    linear = eqx.nn.Linear(3, 1, key=jax.random.key(1))
    state = run((linear, norm), loss, statistics, 40)
    mean, variance = state.extra.get(norm.batch_state_index)
    left = 0.9**40
    assert_close(mean, (1 - left) * X.mean(axis=0), 1e-4)
    assert_close(variance, (1 - left) * X.var(axis=0) + left, 1e-4)


def test_the_same_seed_gives_the_same_bits():
    def noisy(linear, seen, batch, key):
        return mean_square(linear, batch[0] + jax.random.normal(key, X.shape)), seen

    linear = eqx.nn.Linear(3, 1, key=jax.random.key(1))
    one, other = (run(linear, noisy, None, 20).model for _ in range(2))
    assert np.array_equal(one.weight, other.weight) and np.array_equal(one.bias, other.bias)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["thing.transform.rotation", "cam.pose.delta"])
def test_rotations_stay_rotations(path):
    """A thousand steps of Adam, with a rate that throws the numbers about."""
    turn = sg.Similarity([0, 0, 0], [1, 0.1, 0.2, 0.3])
    camera = sg.PerspectiveCamera.look_at([0, -4, 1], [0, 0, 0], [0, 0, 1], 0.7, 4, 3)
    blob = sg.Volume(sg.fields.GaussianBlob([0.3, 0.1, 0], 0.5, 3.0, [1, 0.5, 0.2]), None)
    tree = sg.Group(thing=sg.Transformed(blob, turn), cam=camera)
    scene = sg.Scene(tree, background=[0, 0, 0], integrator=sg.Hierarchical((8,)))
    optimizer, chosen = optax.adam(0.1), sg.select(scene, path)

    def loss(scene, state, batch, key):
        return jnp.mean((sg.render(scene, "cam").rgb - 0.4) ** 2), state

    state = sg.start_state(scene, optimizer, trainable=chosen, key=jax.random.key(0))
    advance = eqx.filter_jit(
        lambda s: sg.step(s, None, loss=loss, optimizer=optimizer, trainable=chosen)
    )
    for _ in range(1000):
        state, info = advance(state)
    children = state.model.root.children
    pose = children["cam"].pose if path.startswith("cam") else children["thing"].transform
    before = camera.pose if path.startswith("cam") else turn
    matrix = np.asarray(pose.linear(), np.float64)
    assert jnp.isfinite(info.loss) and not np.allclose(matrix, before.linear(), atol=1e-2)
    assert_close(matrix @ matrix.T, np.eye(3), 1e-5)
    assert np.linalg.det(matrix) > 0


def test_an_optimiser_may_read_the_leaves_that_it_starts_with():
    def init(leaves):
        largest = max(float(jnp.max(x)) for x in jax.tree.leaves(leaves))
        return jnp.asarray(largest)

    reader = optax.GradientTransformation(init, lambda grads, state, leaves: (grads, state))
    state = sg.start_state({"x": jnp.array([1.0, 3.0])}, reader, key=jax.random.key(0))
    assert state.moments == 3


def test_large_steps_check_their_mesh_under_jit():
    edges = sg.losses.mesh_edges(jnp.array([[0, 1, 4]]))
    steps = sg.optimizers.large_steps(edges, 0.1)
    with pytest.raises(ValueError, match="edges of vertex 4, but the mesh has 3"):
        sg.start_state({"x": jnp.zeros((3, 3))}, steps, key=jax.random.key(0))
