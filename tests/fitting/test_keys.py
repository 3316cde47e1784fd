"""No two streams of random numbers in a fit use the same key; fits saved earlier keep theirs."""

import collections
import dataclasses
import pathlib
import sys
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.extend.core import primitives

import scenegraph as sg
from scenegraph.data import RayBatches
from scenegraph.encodings import IntegratedPositional
from scenegraph.fields import GaussianBlob, MipNerfMLP
from scenegraph.fitting import (
    _budget,
    _fit,
    _step,
    Every,
    FitState,
    RenderLoss,
    shared_keys,
    split_by_purpose,
    start_state,
    StepInfo,
)
from scenegraph.integrators import OccupancyMarch
from scenegraph.io import read_archive, write_archive
from scenegraph.runs import load_state, save_state
from scenegraph.scene import Occupancy
from support.toy_fits import Line, Points, squared_error


KEY = jax.random.key(3)
RULE = optax.adam(0.02)
BOX = sg.Box([-1.0] * 3, [1.0] * 3)
LIBRARY = pathlib.Path(sg.__file__).parent
GOLDEN = pathlib.Path(__file__).parents[1] / "golden"


def noise(size: int) -> RayBatches:
    """Batches from a picture of noise, on random colours."""
    pixels = np.random.default_rng(0).integers(0, 256, (64, 4), dtype=np.uint8)
    camera = sg.PerspectiveCamera.look_at([0.0, -3.0, 1.0], [0.0] * 3, [0.0, 0.0, 1.0], 0.7, 8, 8)
    sides, cameras = jnp.full(1, 8), sg.pixels.stack_cameras([camera])
    views = sg.Views(jnp.asarray(pixels), cameras, sides, sides, jnp.ones(1), sg.data.Random())
    return RayBatches(views, size)


# --- Every key is used once


class Uses:
    """Which keys are used: how, by which line of the library, and numbers drawn in which step."""

    def __init__(self, monkeypatch):
        self.found: dict[bytes, set] = collections.defaultdict(set)
        self.step = 0
        for name in ("random_bits", "random_split", "random_fold_in"):
            primitive = getattr(primitives, f"{name}_p")
            monkeypatch.setattr(primitive, "impl", self._watched(name, primitive.impl))

    def _watched(self, name: str, impl: Any) -> Any:
        def watched(keys: Any, *operands: Any, **options: Any) -> Any:
            step = [self.step] if name == "random_bits" else []
            for row in np.asarray(jax.random.key_data(keys)).reshape(-1, 2):
                self.found[row.tobytes()].add((name, innermost_line(), *step))
            return impl(keys, *operands, **options)

        return watched

    def conflicts(self) -> list[set]:
        """The uses of each key that is used in more than one way, or in more than one step."""
        return [uses for uses in self.found.values() if len(uses) > 1]

    def files(self) -> set[str]:
        """The files in which random numbers are drawn."""
        return {
            line.split(":")[0] for uses in self.found.values() for _, line, *step in uses if step
        }


def innermost_line() -> str:
    """The line of the library that is running."""
    frame = sys._getframe()
    while LIBRARY not in pathlib.Path(frame.f_code.co_filename).parents:
        assert frame.f_back
        frame = frame.f_back
    return f"{pathlib.Path(frame.f_code.co_filename).relative_to(LIBRARY)}:{frame.f_lineno}"


def by_keys_alone(function):
    """The function with the arrays of its scene abstract: only what keys decide is computed.

    All else would be compiled operation by operation, which takes minutes.
    """

    def traced(scene: Any, *others: Any, **options: Any) -> Any:
        result = eqx.filter_eval_shape(lambda scene: function(scene, *others, **options), scene)
        return jax.tree.map(
            lambda x: jnp.zeros(x.shape, x.dtype) if isinstance(x, jax.ShapeDtypeStruct) else x,
            result,
        )

    return traced


def step_by_keys_alone(state: FitState, batch: Any, **options: Any) -> tuple[FitState, StepInfo]:
    """A step that changes nothing but the count."""

    def traced(model: Any) -> StepInfo:
        return _step.step(dataclasses.replace(state, model=model), batch, **options)[1]

    info = by_keys_alone(traced)(state.model)
    return dataclasses.replace(state, step=state.step + 1), info


def network(key, integrator) -> sg.Scene:
    """A network with noisy densities, and a blob, in boxes with occupancies."""
    encoding = IntegratedPositional(0, 1)
    field = MipNerfMLP(4, 1, view_width=4, encoding=encoding, density_noise=0.1, key=key)
    blob, known = GaussianBlob([0.0] * 3, 0.4, 4.0, (0.5, 0.4, 0.3)), Occupancy.everywhere(2)
    volumes = [sg.Volume(thing, BOX, occupancy=known) for thing in (field, blob)]
    return sg.Scene(sg.Group(field=volumes[0], blob=volumes[1]), integrator=integrator)


class Untraced:
    """A function, with the shapes of its results, as `filter_closure_convert` has them."""

    def __init__(self, function, *operands):
        self.function, self.out_struct = function, eqx.filter_eval_shape(function, *operands)

    def __call__(self, *operands):
        return self.function(*operands)


def watch_fit(monkeypatch, integrator, make_keys) -> Uses:
    """A whole fit of three steps, weights included, whose occupancies are refreshed after each."""
    uses = Uses(monkeypatch)
    monkeypatch.setattr(_budget, "_REFRESH_EVERY", 1)
    monkeypatch.setattr(_fit, "step", step_by_keys_alone)
    monkeypatch.setattr(_fit, "fit_into_memory", lambda advance, *others, **options: advance)
    refresh, count_requested = _budget.refresh_occupancy, _budget.count_requested
    monkeypatch.setattr(_budget, "refresh_occupancy", by_keys_alone(refresh))
    monkeypatch.setattr(
        _budget,
        "count_requested",
        lambda integrator, scene, *others: by_keys_alone(
            lambda scene: count_requested(integrator, scene, *others)
        )(scene),
    )
    # Not compiled ahead: what is compiled uses no keys that can be watched.
    eager = _budget.OccupancyRefresh(one_device=False)
    monkeypatch.setattr(_fit, "OccupancyRefresh", lambda one_device: eager)
    # Nor traced, to be evaluated elsewhere: draws would then be found in two places.
    monkeypatch.setattr(eqx, "filter_closure_convert", Untraced)
    with jax.disable_jit(), jax.ensure_compile_time_eval():
        keys = make_keys(KEY)
        scene, loss = network(keys.weights, integrator), RenderLoss()
        state = dataclasses.replace(start_state(scene, RULE, key=KEY), keys=keys)
        count = Every(1, lambda progress: setattr(uses, "step", progress.step))
        settings = {"optimizer": RULE, "loss": loss, "key": KEY, "callbacks": [count]}
        sg.fit(scene, noise(3), steps=3, state=state, **settings)
    return uses


HIERARCHICAL, MARCH = sg.Hierarchical((2, 2)), OccupancyMarch(4, 2)
ALWAYS = {
    "fields/_network.py",  # weights
    "fitting/_keys.py",  # the batches' seed
    "pixels/_batches.py",  # pixels
    "pixels/_backdrops.py",
    "scene/_refresh.py",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "integrator, jitter",
    [
        (
            HIERARCHICAL,
            {"samplers/_spacing.py", "samplers/_importance.py", "fields/_radiance_mlp.py"},
        ),
        (MARCH, {"integrators/_occupancy_march.py"}),
    ],
    ids=["hierarchical", "march"],
)
def test_no_key_of_a_fit_is_used_twice(monkeypatch, integrator, jitter):
    """Of weights, batches, backdrops, jitter, noise, refreshed occupancies, the first budget."""
    uses = watch_fit(monkeypatch, integrator, split_by_purpose)
    assert uses.files() == ALWAYS | jitter
    assert not uses.conflicts()


@pytest.mark.slow
def test_a_single_key_for_all_purposes_is_used_twice(monkeypatch):
    """The keys of earlier files: step 2 has that of the occupancy, others those of the rest."""
    conflicts = watch_fit(monkeypatch, HIERARCHICAL, shared_keys).conflicts()
    places = [{line.split(":")[0] for _, line, *_ in uses} for uses in conflicts]
    steps = "rendering/_rays.py"
    for other in ("fields/_network.py", "fitting/_keys.py", "fitting/_budget.py"):
        assert {steps, other} in places


def test_keys_are_those_of_one_split():
    """And of no second one: the seed and a step's key are what the state says."""
    keys, state = split_by_purpose(KEY), start_state(Line.start(), RULE, key=KEY)
    names = [field.name for field in dataclasses.fields(keys)]
    assert names == ["weights", "batches", "steps", "occupancy", "budget"]
    assert bits(state.keys) == bits(keys) == bits(list(jax.random.split(KEY, 5)))
    assert keys.seed() == jax.random.bits(keys.batches, dtype=jnp.uint32)


# --- Fits that were saved when all purposes shared one key


def bits(tree) -> list[tuple]:
    """All that a tree's arrays hold."""
    keys = [jnp.issubdtype(x.dtype, jax.dtypes.prng_key) for x in jax.tree.leaves(tree)]
    arrays = zip(jax.tree.leaves(tree), keys, strict=True)
    data = [np.asarray(jax.random.key_data(x) if is_key else x) for x, is_key in arrays]
    return [(str(x.dtype), x.shape, x.tobytes()) for x in data]


def blobs() -> sg.Scene:
    """Two clouds in boxes whose occupancies are refreshed, and whose samples share a budget."""
    empty = np.random.default_rng(1).uniform(size=(4, 4, 4)) < 0.6
    known = Occupancy.everywhere(4).without(jnp.asarray(empty))
    fields = {
        name: GaussianBlob(place, 0.4, 4.0, (0.5, 0.4, 0.3))
        for name, place in {"left": [-0.3, 0.1, 0.0], "right": [0.4, 0.0, 0.2]}.items()
    }
    volumes = {name: sg.Volume(field, BOX, occupancy=known) for name, field in fields.items()}
    scene = sg.Scene(sg.Group(**volumes), integrator=OccupancyMarch(16, 4))
    return sg.freeze(scene, "background", "*.bounds")


def fit_blobs(steps: int, state: FitState | None = None) -> FitState:
    return sg.fit(blobs(), noise(16), optimizer=RULE, steps=steps, key=KEY, state=state).state


def test_fit_of_the_version_before_goes_on_as_it_would_have_there():
    """That version saved the state after 3 and after 18 steps; new keys lead elsewhere."""
    fresh = fit_blobs(3)
    there = [load_state(GOLDEN / f"shared_key_{step}.sg", fresh) for step in ("03", "18")]
    assert [int(state.step) for state in there] == [3, 18]
    resumed, expected = fit_blobs(18, there[0]), there[1]
    assert bits(resumed.keys) == bits(expected.keys) == bits(shared_keys(KEY))
    arrays = zip(*(jax.tree.leaves((x.model, x.moments)) for x in (resumed, expected)), strict=True)
    for mine, theirs in arrays:
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)
    anew = fit_blobs(18, fresh).model.root.children["left"].field
    theirs = expected.model.root.children["left"].field
    assert np.abs(anew.center - theirs.center).max() > 0.01


def fit_line(steps: int, state: FitState) -> FitState:
    settings = {"optimizer": RULE, "loss": squared_error, "key": KEY}
    return sg.fit(Line.start(), Points(0.1), steps=steps, state=state, **settings).state


def test_file_with_a_single_key_resumes_bit_for_bit(tmp_path):
    """Saved again, it has the keys themselves, and goes on with them just as well."""
    state = start_state(Line.start(), RULE, extra=jnp.array(0), steps=9, key=KEY)
    state = dataclasses.replace(state, keys=shared_keys(KEY))
    whole, half = fit_line(9, state), fit_line(4, state)
    save_state(tmp_path / "new", half)
    header, arrays = read_archive(tmp_path / "new")
    names = [name for name, *_ in header["leaves"]]
    kept = [leaf for leaf in header["leaves"] if not leaf[0].startswith(".keys")]
    single = [".key", *header["leaves"][names.index(".keys.steps")][1:]]
    kept.insert(names.index(".keys.weights"), single)
    write_archive(tmp_path / "old", {**header, "leaves": kept}, arrays)
    for name in ("new", "old"):
        loaded = load_state(tmp_path / name, start_like(state))
        assert bits(loaded) == bits(half)
        assert bits(fit_line(9, loaded)) == bits(whole)


def start_like(state: FitState) -> FitState:
    """A state of the same form with other numbers."""
    return start_state(state.model, RULE, extra=jnp.array(0), key=jax.random.key(99))
