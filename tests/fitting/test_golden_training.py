"""The published training step, through `step` and the optimiser of the `mipnerf` preset."""

import functools

import equinox as eqx
import jax
import numpy as np
import optax
import pytest

import scenegraph as sg
from scenegraph.data import Batch
from scenegraph.fitting import RenderLoss, start_state
from scenegraph.losses import mse_to_psnr, MultiLevelLoss
from scenegraph.optimizers import LogLinear, mip_nerf_optimizer
from scenegraph.scene import count_parameters, mean_square_weight
from scenegraph.settings import make_scene, preset
from support.golden_scene import (
    golden_leaves,
    golden_rays,
    golden_scene,
    golden_weights,
    with_golden_weights,
)
from support.helpers import assert_close, golden


PUBLISHED = preset("mipnerf", jitter=False)
RATE = 5e-4
one_step = eqx.filter_jit(sg.step)


def narrow_start(tag: str):
    """The narrow golden scene, pixels and loss of one of the published configurations."""
    data = golden("mipnerf_forward")
    scene = golden_scene(data, stop_gradient=tag != "train_throughlevels")
    lossmult = data["rays.lossmult"][:, 0]
    if tag == "train_nomask":
        lossmult = np.ones_like(lossmult)
    decay = 1e-3 if tag == "train_weightdecay" else 0.0
    loss = RenderLoss(MultiLevelLoss(0.1, sum_channels=True), weight_decay=decay, jitter=False)
    return sg.freeze(scene, "background"), Batch(golden_rays(data), data["pixels"], lossmult), loss


def full_start():
    """The published size, from the preset itself, with the golden weights."""
    data = golden("mipnerf_forward_full")
    made = make_scene(PUBLISHED, None, key=jax.random.key(0))
    thing = made.root.children["field"]
    scene = sg.Scene(sg.Group(thing=thing), background=made.background, integrator=made.integrator)
    batch = Batch(golden_rays(data), data["pixels"], data["rays.lossmult"][:, 0])
    return with_golden_weights(scene, golden_weights(data)), batch, PUBLISHED.training.make_loss()


@functools.cache
def optimizer(**limits):
    return mip_nerf_optimizer(LogLinear(RATE, RATE), **limits)


def take(start, rule, steps: int = 1):
    """`(state, info)` after every step."""
    scene, batch, loss = start
    state = start_state(scene, rule, steps=steps, key=jax.random.key(0))
    taken = []
    for _ in range(steps):
        taken.append(one_step(state, batch, loss=loss, optimizer=rule))
        state = taken[-1][0]
    return taken


@functools.cache
def ten_narrow_steps():
    return take(narrow_start("train"), optimizer(), steps=10)


def gradients(state) -> dict[str, np.ndarray]:
    """What Adam was given in the first step: its first moment is a tenth of it."""
    moment = golden_leaves(optax.tree.get(state.moments, "mu"))
    return {name: 10 * np.asarray(leaf) for name, leaf in moment.items()}


def norm(arrays) -> np.ndarray:
    return np.sqrt(sum(np.sum(array**2) for array in arrays))


def assert_scalars(state, info, data, tag: str) -> None:
    losses = state.extra.losses
    assert_close(info.loss, data[f"{tag}.loss"], 1e-5)
    assert_close(losses, data[f"{tag}.losses"], 1e-5)
    # The published PSNR is of the sum over channels; `state.extra.psnr` is of their mean.
    assert_close(mse_to_psnr(losses), data[f"{tag}.psnrs"], 1e-5)
    assert_close(info.gradient_norm, data[f"{tag}.grad_norm"], 1e-4)
    assert_close(info.gradient_max, data[f"{tag}.grad_abs_max"], 1e-3)


def assert_summaries(found, data, tag: str, tolerance: float, entries: float) -> None:
    for name, gradient in found.items():
        prefix, size = f"{tag}.grad.{name}", data[f"{tag}.grad.{name}.absmax"]
        assert_close(norm([gradient]), data[f"{prefix}.norm"], tolerance)
        assert_close(np.abs(gradient).max(), size, entries)
        assert_close(gradient.reshape(-1)[:8], data[f"{prefix}.first8"], 0, entries * size)


def assert_adam(taken, data) -> None:
    steps = [np.stack([info.loss, *state.extra.losses]) for state, info in taken]
    assert_close(np.stack(steps), data["adam.loss_per_step"], 1e-4)
    for name, weight in golden_leaves(taken[-1][0].model).items():
        if name.endswith(".kernel"):
            size, first = data[f"adam.final.{name}_norm"], data[f"adam.final.{name}_first8"]
            assert_close(norm([weight]), size, 1e-5)
            assert_close(np.asarray(weight).reshape(-1)[:8], first, 0, 5e-5)


def test_step_of_the_narrow_model():
    data = golden("mipnerf_forward")
    state, info = ten_narrow_steps()[0]
    assert_scalars(state, info, data, "train")
    # Rounding of finer samples switches a unit on or off here and there, hence not 1e-5.
    for name, gradient in gradients(state).items():
        assert_close(gradient, data[f"train.grad.{name}"], 2e-3)


def test_step_in_double_precision(x64):
    data = golden("mipnerf_forward")
    scene, batch, loss = narrow_start("train")
    scene, batch = jax.tree.map(as_double, (scene, batch))
    state, _ = take((scene, batch, loss), optimizer())[0]
    for name, gradient in gradients(state).items():
        assert gradient.dtype == np.float64
        assert_close(gradient, data[f"train.grad.{name}"], 3e-5)


def as_double(leaf):
    return leaf.astype("float64") if eqx.is_inexact_array(leaf) else leaf


def test_ten_steps_of_adam():
    taken = ten_narrow_steps()
    assert int(taken[-1][0].step) == 10
    assert_adam(taken, golden("mipnerf_forward"))


@pytest.mark.parametrize(
    "tag",
    [
        "train_nomask",
        pytest.param("train_weightdecay", marks=pytest.mark.slow),
        pytest.param("train_throughlevels", marks=pytest.mark.slow),
    ],
)
def test_variants_of_the_step(tag):
    data, (scene, batch, loss) = golden("mipnerf_forward"), narrow_start(tag)
    state, info = take((scene, batch, loss), optimizer())[0]
    assert_scalars(state, info, data, tag)
    assert_summaries(gradients(state), data, tag, 1e-3, 1e-3)
    decay = loss.weight_decay * mean_square_weight(scene)
    assert_close(decay, data[f"{tag}.weight_l2"], 1e-6)


@pytest.mark.slow
def test_clipping_by_value_and_then_by_norm():
    data = golden("mipnerf_forward")
    state, info = take(narrow_start("train"), optimizer(max_value=1e-3, max_norm=1e-2))[0]
    # Clipping cuts the large entries down, so the rounding of the small ones weighs more.
    assert_summaries(gradients(state), data, "train_clipped", 1e-3, 1e-2)
    assert_close(norm(gradients(state).values()), data["train_clipped.grad_norm_clipped"], 1e-5)
    # What `step` tells is of the gradient before any clipping.
    assert_close(info.gradient_norm, data["train.grad_norm"], 1e-4)
    assert_close(info.loss, data["train_clipped.loss"], 1e-5)


@pytest.mark.slow
def test_clipping_by_value_alone():
    data, rule = golden("mipnerf_forward"), optimizer(max_value=1e-3)
    gradient = jax.tree.map(
        lambda m: 10 * m, optax.tree.get(ten_narrow_steps()[0][0].moments, "mu")
    )
    _, moments = rule.update(gradient, rule.init(gradient), step=1, horizon=1.0)
    found = [10 * np.asarray(m) for m in jax.tree.leaves(optax.tree.get(moments, "mu"))]
    assert_close(norm(found), data["train_clipped.grad_norm"], 1e-3)
    assert_close(max(np.abs(g).max() for g in found), data["train_clipped.grad_abs_max"], 1e-5)


@pytest.mark.slow
def test_preset_at_its_full_size():
    data, start = golden("mipnerf_forward_full"), full_start()
    assert count_parameters(start[0]) == 612_740
    constant = PUBLISHED.replace(learning_rate=RATE, final_learning_rate=RATE, delay_steps=0)
    taken = take(start, constant.training.make_optimizer(), steps=3)
    assert_scalars(*taken[0], data, "train")
    assert_summaries(gradients(taken[0][0]), data, "train", 1e-3, 3e-3)
    assert_adam(taken, data)
