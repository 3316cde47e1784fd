"""From settings to the parts of a fit: data, scene, batches, loss, optimiser."""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from .._typing import RandomKey
from ..data import (
    AbstractBackdrop,
    AbstractPixelChoice,
    AllImages,
    find_bounds,
    find_empty_cells,
    find_format,
    load_data,
    pixels_through,
    Random,
    RayBatches,
    SingleImage,
    Solid,
    Views,
)
from ..encodings import Grid, IntegratedPositional, Positional
from ..fields import AbstractField, GridField, MipNerfMLP
from ..integrators import AbstractMediaIntegrator, Hierarchical, OccupancyMarch
from ..losses import MultiLevelLoss
from ..rays import ConeBeam, CylinderBeam
from ..samplers import Disparity, Uniform
from ..scene import freeze, Group, Occupancy, Scene, Transformed, Volume
from ..shapes import Box
from ..transforms import Similarity
from ._config import FitConfig
from ..fitting import RenderLoss
from ..fitting import LogLinear, mip_nerf_optimizer


_COLORS = {"white": (1.0, 1.0, 1.0), "black": (0.0, 0.0, 0.0), "random": (1.0, 1.0, 1.0)}
# Samples a ray of a whole picture, of which much is empty. A fit finds what its batches need, and
# `render` takes more where that is too little.
_BUDGET = 8
# Of more pixels, a list would take more memory than it is worth: a gigabyte.
_LISTED = 2**28
_ACTIVATIONS: dict[str, Callable] = {"softplus": jax.nn.softplus, "relu": jax.nn.relu}


def load_views(config: FitConfig, folder: str | os.PathLike, split: str) -> Views:
    """One split of a data set, as the settings ask for it.

    **Arguments:**

    - `config`: downscaling, backdrop, near and far, and what concerns the folder's format.
    - `folder`: a data folder of any format.
    - `split`: `train`, `test`, or another that the folder has.

    **Returns:**

    The pictures with their cameras. Held-out pictures are never put on random colours.

    **Errors:**

    `FileError` for a bad folder; `ValueError` if `config` wants what the folder's format lacks.
    """
    random = config.background == "random" and split == "train"
    backdrop: AbstractBackdrop = Random() if random else Solid(_COLORS[config.background])
    views = load_data(
        folder,
        split,
        **format_options(config, folder),
        downscale=config.downscale,
        near=config.near,
        far=config.far,
        backdrop=backdrop,
        straight_alpha=config.straight_alpha,
        memory_map={"auto": None, "always": True, "never": False}[config.memory_map],
    )
    return views if config.area_weights else replace(views, lossmult=jnp.ones(views.frames))


def format_options(config: FitConfig, folder: str | os.PathLike) -> dict[str, Any]:
    """The settings that only the loader of a folder's format knows.

    **Arguments:**

    - `config`: with settings for all formats.
    - `folder`: the data folder.

    **Returns:**

    Keywords for the loader.

    **Errors:**

    `ValueError` if `config` wants what the format lacks.
    """
    form = find_format(folder)
    for name in ("spherify", "ndc"):
        if name not in form.options and getattr(config, name) != getattr(FitConfig, name):
            raise ValueError(f"`{name}` is for LLFF data; {folder} is {form.name} data.")
    return {name: getattr(config, name) for name in form.options}


def find_box(config: FitConfig, views: Views) -> tuple[np.ndarray, np.ndarray] | None:
    """The box that is worth looking at.

    **Arguments:**

    - `config`: whether there is to be one.
    - `views`: the pictures to find it from.

    **Returns:**

    Two corners in world units, or `None` for all of each ray's near to far.
    """
    return find_bounds(views) if config.bounds == "found" else None


def find_hull(
    config: FitConfig, views: Views, box: tuple[np.ndarray, np.ndarray] | None
) -> np.ndarray | None:
    """Where in the box the pictures say that nothing is.

    **Arguments:**

    - `config`: whether there is to be an occupancy, and of how many cells.
    - `views`: the pictures.
    - `box`: from `find_box`.

    **Returns:**

    A boolean a cell; `None` where nothing is skipped.
    """
    if box is None or config.field != "grid" or config.occupancy < 1:
        return None
    return find_empty_cells(views, *box, config.occupancy)


def make_batches(
    config: FitConfig, views: Views, box: tuple[np.ndarray, np.ndarray] | None
) -> RayBatches:
    """Random batches: only of pixels in which the box appears, if there is one, and unless there
    are very many.

    **Arguments:**

    - `config`: size and kind of the batches.
    - `views`: the pictures.
    - `box`: from `find_box`.

    **Returns:**

    The batches.
    """
    choice: AbstractPixelChoice = AllImages()
    if config.batching == "single_image":
        choice = SingleImage()
    elif box is not None and views.pixels.shape[0] <= _LISTED:
        choice = pixels_through(views, *box)
    return RayBatches(views, config.batch_size, choice)


def make_scene(
    config: FitConfig,
    box: tuple[np.ndarray, np.ndarray] | None,
    empty: np.ndarray | None = None,
    *,
    key: RandomKey,
) -> Scene:
    """The scene to be fitted: one field, in the box if there is one, before the background.

    **Arguments:**

    - `config`: field, background and integrator.
    - `box`: from `find_box`; it is mapped to the unit cube of the field.
    - `empty`: from `find_hull`.
    - `key`: of the weights. Keyword only argument.

    **Returns:**

    The scene; all but the network is frozen.

    **Errors:**

    `ValueError` for a grid without a box.
    """
    if config.field == "grid" and box is None:
        raise ValueError(
            "a grid fills a box, which has to be known: use `--bounds found`, or `--field mlp`."
        )
    # One compiled program instead of one for each layer.
    field = eqx.filter_jit(make_field)(config, key=key)
    volume = Volume(field, bounds=None) if box is None else _boxed(field, empty, *box)
    scene = Scene(
        Group(field=volume),
        background=_COLORS[config.background],
        integrator=make_integrator(config, box),
    )
    still = ["background"] + ([] if box is None else ["field.transform", "field.bounds"])
    return freeze(scene, *still)


def _boxed(
    field: AbstractField, empty: np.ndarray | None, lower: np.ndarray, upper: np.ndarray
) -> Transformed:
    half, centre = (upper - lower) / 2, (upper + lower) / 2
    scale = float(half.max())
    box = Box((-half / scale).astype(np.float32), (half / scale).astype(np.float32))
    where = Similarity(translation=centre.astype(np.float32), scale=scale)
    known = None
    if empty is not None:
        known = Occupancy.everywhere(empty.shape[0]).without(jnp.asarray(empty))
    return Transformed(Volume(field, bounds=box, occupancy=known), where)


def make_field(config: FitConfig, *, key: RandomKey) -> AbstractField:
    """The radiance field.

    **Arguments:**

    - `config`: network, encoding, activations.
    - `key`: of the weights. Keyword only argument.

    **Returns:**

    The field.
    """
    return _grid_field(config, key) if config.field == "grid" else _network_field(config, key)


def _grid_field(config: FitConfig, key: RandomKey) -> GridField:
    grid_key, weights_key = jax.random.split(key)
    grid = Grid(config.resolutions, config.features, config.capacity, key=grid_key)
    return GridField(
        grid,
        config.width,
        view_degree=config.view_degree,
        precision=config.precision,
        key=weights_key,
    )


def _network_field(config: FitConfig, key: RandomKey) -> MipNerfMLP:
    degrees = config.min_degree, config.max_degree
    integrated = IntegratedPositional(*degrees)
    encoding = integrated if config.integrated else Positional(*degrees, identity=False, wrap=True)
    return MipNerfMLP(
        config.width,
        config.depth,
        skip=config.skip,
        view_width=config.view_width,
        view_depth=config.view_depth,
        encoding=encoding,
        view_degree=config.view_degree,
        use_view=config.use_view,
        density_activation=_ACTIVATIONS[config.density_activation],
        density_bias=config.density_bias,
        density_noise=config.density_noise,
        rgb_padding=config.rgb_padding,
        key=key,
    )


def make_integrator(
    config: FitConfig, box: tuple[np.ndarray, np.ndarray] | None = None
) -> AbstractMediaIntegrator:
    """How rays are sampled.

    **Arguments:**

    - `config`: levels, spacing, beam.
    - `box`: from `find_box`; even steps are a part of its diagonal.

    **Returns:**

    The integrator.
    """
    if config.field == "grid":
        across = 0.0 if box is None else float(np.linalg.norm(box[1] - box[0]))
        steps = max(1, config.candidates)  # What is less, the integrator refuses.
        budget = min(_BUDGET, steps)
        return OccupancyMarch(config.candidates, budget, across / steps, rounds=config.rounds)
    return Hierarchical(
        samples=tuple(config.samples),
        beam=ConeBeam() if config.ray_shape == "cone" else CylinderBeam(),
        spacing=Disparity() if config.disparity else Uniform(),
        padding=config.resample_padding,
        stop_gradient=config.stop_level_gradient,
        empty_depth_near=config.empty_depth_near,
    )


def make_loss(config: FitConfig) -> RenderLoss:
    """What is minimised.

    **Arguments:**

    - `config`: weights of the terms.

    **Returns:**

    The loss for `step`.
    """
    loss = MultiLevelLoss(config.coarse_weight, config.sum_channels)
    return RenderLoss(loss, weight_decay=config.weight_decay, jitter=config.jitter)


def make_schedule(config: FitConfig) -> LogLinear:
    """The learning rate of every step.

    **Arguments:**

    - `config`: rates and delay.

    **Returns:**

    The schedule.
    """
    return LogLinear(
        config.learning_rate,
        config.final_learning_rate,
        config.delay_steps,
        config.delay_multiplier,
    )


def make_optimizer(config: FitConfig) -> optax.GradientTransformationExtraArgs:
    """Adam with clipping and the scheduled learning rate.

    **Arguments:**

    - `config`: rates and limits.

    **Returns:**

    The optax transformation.
    """
    return mip_nerf_optimizer(
        make_schedule(config),
        max_value=config.max_gradient_value,
        max_norm=config.max_gradient_norm,
        b2=config.adam_b2,
        epsilon=config.adam_epsilon,
    )
