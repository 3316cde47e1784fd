"""The recipe of a fit: from settings and pictures to all that `fit` takes."""

import contextlib
import dataclasses

import jax
import numpy as np
import optax

from .._typing import RandomKey
from ..data import Ball, probe_views, RayBatches, Views
from ..fitting import PosePolish, RenderLoss, split_by_purpose
from ..scene import freeze, Group, Scene
from ._config import FitConfig
from ._data_settings import scale_box
from ._space import choose_space
from ._volumes import Corners, Space


# The share of a picture that may lie outside of the box in silence, and how many are named.
_MISSED, _WORST = 0.01, 3
# The larger boxes that are tried.
_SCALES = (1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0)


@dataclasses.dataclass(frozen=True)
class FitParts:
    """All that a fit needs beside its callbacks.

    `box` is the box that holds the scene, in world units, or a ball; `views` have the cameras that
    they were given; `polish` solves for poses on the way.
    """

    scene: Scene
    batches: RayBatches
    loss: RenderLoss
    optimizer: optax.GradientTransformation
    key: RandomKey
    box: Space
    views: Views
    polish: PosePolish | None = None


def prepare(config: FitConfig, views: Views) -> FitParts:
    """Makes all that `fit` takes from settings and pictures.

    **Arguments:**

    - `config`: the settings.
    - `views`: the pictures.

    **Returns:**

    The parts: `scene`, `batches`, `loss`, `optimizer`, `key`, `box` (that which holds the scene),
    `views` (with the cameras that they were given) and `polish`.

    **Errors:**

    `ValueError` for settings that contradict each other.
    """
    config, views, _ = choose_space(config, views)
    key = jax.random.key(config.seed)
    box = config.data.find_box(views, spare=config.corrections.spare)
    config = dataclasses.replace(config, method=config.method.adapt(views, box))
    empty = config.method.find_empty(views, box, spare=config.corrections.spare)
    scene = make_scene(config, box, empty, key=split_by_purpose(key).weights)
    corrections = config.corrections.choose(views)
    batches = config.training.make_batches(views, box)
    if corrections.refines:
        wide = corrections.annealing(config.count_steps())
        batches = dataclasses.replace(batches, annealing=wide)
    polish = corrections.make_polish(batches)
    codes = config.method.appearance_size
    scene, pictures = corrections.apply(scene, views, codes)
    return FitParts(
        scene,
        dataclasses.replace(batches, views=pictures),
        config.training.make_loss(views),
        corrections.make_optimizer(config.training.make_optimizer(), codes),
        key,
        box,
        views,
        polish,
    )


def warm_up(config: FitConfig) -> None:
    """Compiles what draws the weights, which needs no pictures, while these are read."""
    box = None if config.data.bounds == "none" else (-np.ones(3), np.ones(3))
    with contextlib.suppress(ValueError):  # `prepare` refuses settings, with all that is known.
        config.method.make_volume(box, None, key=jax.random.key(config.seed))


def describe_cut(views: Views, box: Corners, scale: float) -> str | None:
    """Says how much of the pictures lies outside of a box, and what to do; `None` if next to none.

    `scale` is the box's `box_scale`.
    """
    probe = probe_views(views)
    shares = probe.missed(*box)
    worst = np.argsort(-shares, kind="stable")[:_WORST]
    if shares[worst[0]] < _MISSED:
        return None
    listed = ", ".join(
        f"{views.names[probe.frames[index]]} {100 * shares[index]:.0f} %"
        for index in worst
        if shares[index] >= _MISSED
    )
    kind = "opaque pixels" if views.pixels.shape[1] == 4 else "pixels"
    enough = next(
        (x for x in _SCALES if probe.missed(*scale_box(box, x)).max() < _MISSED), _SCALES[-1]
    )
    return (
        f"{100 * shares.mean():.1f} % of the {kind} of the pictures look past that box, where "
        f"nothing is fitted; most in {listed}. `--box-scale {enough * scale:g}` enlarges "
        "the box (its cells too: a grid may want finer --resolutions), and `--field grid --bounds "
        "contracted` does without one."
    )


def make_scene(
    config: FitConfig, box: Space, empty: np.ndarray | None = None, *, key: RandomKey
) -> Scene:
    """Makes the scene to be fitted: one field, in the box if there is one, and the background.

    **Arguments:**

    - `config`: the settings.
    - `box`: the corners of the box that holds the scene, in world units, or a ball, or `None`.
    - `empty`: a boolean for each cell of the box that is known to be empty, or `None`.
    - `key`: the random key of the weights. Keyword only argument.

    **Returns:**

    The scene; all but the field is frozen.

    **Errors:**

    `ValueError` for a grid without a box.
    """
    scene = Scene(
        Group(field=config.method.make_volume(box, empty, key=key)),
        background=config.data.background_color,
    )
    still = ["background"] + ([] if box is None else ["field.transform"])
    still += ["field.bounds"] * (box is not None and not isinstance(box, Ball))
    return freeze(scene, *still)
