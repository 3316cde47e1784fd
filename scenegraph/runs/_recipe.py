"""The recipe of a fit: from settings and pictures to all that `fit` takes."""

import dataclasses

import jax
import numpy as np
import optax

from .._typing import RandomKey
from ..data import RayBatches, Views
from ..fitting import RenderLoss, split_by_purpose
from ..scene import freeze, Group, Scene
from ._config import FitConfig
from ._method import Corners


@dataclasses.dataclass(frozen=True)
class FitParts:
    """All that a fit needs beside its callbacks.

    **Arguments:**

    - `scene`: the scene to be fitted.
    - `batches`: the random batches of rays.
    - `loss`: the loss.
    - `optimizer`: the optax transformation.
    - `key`: the random key.
    - `box`: the corners of the box that holds the scene, in world units, or `None`.
    """

    scene: Scene
    batches: RayBatches
    loss: RenderLoss
    optimizer: optax.GradientTransformation
    key: RandomKey
    box: Corners | None


def prepare(config: FitConfig, views: Views) -> FitParts:
    """Makes all that `fit` takes from settings and pictures.

    **Arguments:**

    - `config`: the settings.
    - `views`: the pictures.

    **Returns:**

    The parts.

    **Errors:**

    `ValueError` for settings that contradict each other.
    """
    key = jax.random.key(config.seed)
    box = config.data.find_box(views)
    empty = config.method.find_empty(views, box)
    return FitParts(
        make_scene(config, box, empty, key=split_by_purpose(key).weights),
        config.training.make_batches(views, box),
        config.training.make_loss(),
        config.training.make_optimizer(),
        key,
        box,
    )


def make_scene(
    config: FitConfig, box: Corners | None, empty: np.ndarray | None = None, *, key: RandomKey
) -> Scene:
    """Makes the scene to be fitted: one field, in the box if there is one, and the background.

    **Arguments:**

    - `config`: the settings.
    - `box`: the corners of the box that holds the scene, in world units, or `None`.
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
        integrator=config.method.make_integrator(box),
    )
    still = ["background"] + ([] if box is None else ["field.transform", "field.bounds"])
    return freeze(scene, *still)
