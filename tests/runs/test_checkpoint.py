"""Going on with a fit: exact, and only with the same scene."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg
from scenegraph.data import RayBatches
from scenegraph.fitting import start_state
from scenegraph.io import FileError, read_archive, write_archive
from scenegraph.optimizers import LogLinear, mip_nerf_optimizer
from scenegraph.runs import load_state, save_state
from support.toy_fits import cloud, cloud_views, Line, Points, squared_error, StopAt


KEY = jax.random.key(7)
RULE = mip_nerf_optimizer(LogLinear(0.1, 0.01, 5, 0.1))


def fit_line(**others):
    return sg.fit(
        Line.start(), Points(0.1), optimizer=RULE, loss=squared_error, steps=9, key=KEY, **others
    )


def assert_same(first, second):
    assert jax.tree.structure(first) == jax.tree.structure(second)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_array_equal(a, b)


def test_stopped_saved_and_resumed_is_the_same_as_never_stopped(tmp_path):
    whole = fit_line()
    half = fit_line(callbacks=[StopAt(4)])
    save_state(tmp_path / "state", half.state)
    template = start_state(Line.start(), RULE, extra=jnp.array(0), key=jax.random.key(0))
    loaded = load_state(tmp_path / "state", template)
    assert_same(loaded, half.state)
    resumed = fit_line(state=loaded)
    assert_same(resumed.state, whole.state)
    assert resumed.history.steps.tolist() == [5, 6, 7, 8, 9]


@pytest.mark.slow
def test_resuming_is_exact_for_a_scene_with_random_samples(tmp_path):
    batches, rule = RayBatches(cloud_views(), 16), optax.adam(0.01)

    def go_on(steps, state=None):
        start = cloud(rgb=(0.5, 0.5, 0.5))
        return sg.fit(start, batches, optimizer=rule, steps=steps, key=KEY, state=state).state

    whole, half = go_on(5), go_on(2)
    save_state(tmp_path / "state", half)
    resumed = go_on(5, load_state(tmp_path / "state", whole))
    assert_same(resumed, whole)


def test_finished_fit_is_left_as_it_is():
    whole = fit_line()
    again = fit_line(state=whole.state)
    assert_same(again.state, whole.state)
    assert again.history.loss.shape == (0,)


def line_state(model=None):
    return start_state(model or Line.start(), RULE, extra=jnp.array(0), key=KEY)


@pytest.mark.parametrize(
    "other, message",
    [
        (
            Line(jnp.zeros(2), jnp.array(0.0), jnp.array(3)),
            r"another scene: slope is float32\[2\] there and float32\[\] here\.",
        ),
        (
            Line(jnp.array(0), jnp.array(0.0), jnp.array(3)),
            r"another scene: slope is int32\[\] there and float32\[\] here\.",
        ),
        (
            eqx.nn.MLP(1, 1, 2, 1, key=KEY),
            r"layers\.0\.weight is float32\[2, 1\] there and nothing here;.*"
            r"slope is nothing there and float32\[\] here; .*; and 1 more\.",
        ),
    ],
)
def test_state_of_another_model_is_refused_with_the_leaf(tmp_path, other, message):
    path = tmp_path / "state"
    state = line_state()
    save_state(path, eqx.tree_at(lambda s: s.model, state, other))
    with pytest.raises(FileError, match=message):
        load_state(path, state)


def test_state_of_another_optimiser_is_refused(tmp_path):
    save_state(tmp_path / "state", line_state())
    other = start_state(Line.start(), optax.sgd(0.1), extra=jnp.array(0), key=KEY)
    with pytest.raises(FileError, match=r"belongs to another optimiser.*: \.moments\S* is"):
        load_state(tmp_path / "state", other)


def test_cut_checkpoint_is_refused(tmp_path):
    path = tmp_path / "state"
    save_state(path, line_state())
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(FileError, match="state is damaged"):
        load_state(path, line_state())


# --- Versions


def test_state_of_another_version_loads_if_nothing_has_changed(tmp_path):
    path = tmp_path / "state"
    save_state(path, line_state())
    header, arrays = read_archive(path)
    write_archive(path, {**header, "scenegraph": "0.0.9"}, arrays)
    assert_same(load_state(path, line_state()), line_state())


def test_state_of_another_version_that_differs_is_refused_with_both(tmp_path):
    path = tmp_path / "state"
    save_state(path, eqx.tree_at(lambda s: s.model.slope, line_state(), jnp.zeros(2)))
    header, arrays = read_archive(path)
    write_archive(path, {**header, "scenegraph": "0.0.9"}, arrays)
    told = rf"slope is float32.*Scenegraph 0\.0\.9 wrote it; this is {sg.__version__}"
    with pytest.raises(FileError, match=told):
        load_state(path, line_state())


@pytest.mark.parametrize("changes", [{"format": 7, "scenegraph": "9.8"}, {"format": None}])
def test_state_of_another_format_is_refused_with_both_versions(tmp_path, changes):
    path = tmp_path / "state"
    write_archive(path, {"leaves": [], **changes}, [])
    theirs = changes.get("scenegraph", "which")
    told = rf"{changes['format']}.*{theirs}.*is scenegraph {sg.__version__}"
    with pytest.raises(FileError, match=told):
        load_state(path, line_state())


# --- Files that are in order, but not what they say


@pytest.mark.parametrize(
    "leaves",
    [None, [], [["model: slope", "float32", []]], [["a", "b", [], 99]], [["a", "b", [], -1]]],
)
def test_listing_that_makes_no_sense(tmp_path, leaves):
    path = tmp_path / "state"
    save_state(path, line_state())
    header, arrays = read_archive(path)
    write_archive(path, {**header, "leaves": leaves}, arrays)
    with pytest.raises(FileError, match="state"):
        load_state(path, line_state())


def test_arrays_that_are_not_those_listed(tmp_path):
    path = tmp_path / "state"
    save_state(path, line_state())
    header, arrays = read_archive(path)
    write_archive(path, header, [np.zeros(5) for _ in arrays])
    with pytest.raises(FileError, match="not those that its header lists"):
        load_state(path, line_state())


# --- Leaves of all kinds


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_keys_and_small_floats_come_back(tmp_path, impl):
    extra = {"half": jnp.array([1.5, -2.0], jnp.bfloat16), "key": jax.random.key(5, impl=impl)}
    key = jax.random.key(7, impl=impl)
    state = start_state(Line.start(), RULE, extra=extra, key=key)
    save_state(tmp_path / "state", state)
    other = start_state(
        Line.start(), RULE, extra={**extra, "half": jnp.zeros(2, jnp.bfloat16)}, key=key
    )
    assert_same(load_state(tmp_path / "state", other), state)


def test_scene_of_a_checkpoint_loads_alone(tmp_path):
    state = start_state(sg.freeze(cloud(), "background"), optax.adam(0.1), key=KEY)
    save_state(tmp_path / "state", state)
    assert_same(sg.load(tmp_path / "state"), state.model)


@pytest.mark.parametrize(
    "model", [lambda: {"f": lambda x: x, "x": jnp.ones(2)}, lambda: {"x": jax.random.key(1)}]
)
def test_checkpoint_of_what_is_no_scene(tmp_path, model):
    """It can be gone on from; it just cannot be loaded alone."""
    state = start_state(model(), optax.set_to_zero(), key=KEY)
    save_state(tmp_path / "state", state)
    loaded = load_state(tmp_path / "state", state)
    assert_same(eqx.filter(loaded, eqx.is_array), eqx.filter(state, eqx.is_array))
    with pytest.raises(FileError, match="holds no scene"):
        sg.load(tmp_path / "state")
