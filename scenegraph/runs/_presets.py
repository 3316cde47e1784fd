"""Named settings: the library's own, and every configuration of the published mip-NeRF code."""

import dataclasses
import difflib
from typing import Any

from ._config import FitConfig


_FAST = FitConfig(
    batch_size=2048,
    field="grid",
    width=32,
    learning_rate=2e-2,
    final_learning_rate=1e-3,
    delay_steps=20,
    adam_b2=0.99,
    adam_epsilon=1e-15,
    log_every=250,
    eval_every=2500,
    save_every=5000,
)
_FAST_GPU = dataclasses.replace(
    _FAST,
    batch_size=2**16,
    resolutions=(16, 32, 64, 128, 256, 512),
    capacity=2**19,
    occupancy=128,
    candidates=512,
    width=64,
    precision="bfloat16",
)
# What all published configurations share, the slips of the code included.
_MIPNERF = FitConfig(
    steps=1_000_000,
    batch_size=4096,
    batching="single_image",
    straight_alpha=True,
    published_radii=True,
    bounds="none",
    near=2.0,
    far=6.0,
    width=256,
    depth=8,
    view_width=128,
    max_degree=16,
    samples=(128, 128),
    empty_depth_near=True,
    learning_rate=5e-4,
    final_learning_rate=5e-6,
    delay_steps=2500,
    delay_multiplier=0.01,
    sum_channels=True,
    eval_every=5000,
    save_every=5000,
)
# Near and far are in the data.
_MULTISCALE = dataclasses.replace(_MIPNERF, batching="all_images", near=None, far=None)
_LLFF = dataclasses.replace(
    _MIPNERF,
    batching="all_images",
    background="black",
    downscale=4,
    near=0.0,
    far=1.0,
    ray_shape="cylinder",
    density_noise=1.0,
)


def _without_extras(config: FitConfig) -> FitConfig:
    return dataclasses.replace(config, density_activation="relu", density_bias=0.0, rgb_padding=0.0)


PRESETS = {
    "fast": _FAST,
    "fast-gpu": _FAST_GPU,
    "tiny": FitConfig(),
    "mipnerf": _MIPNERF,
    "mipnerf-noextras": _without_extras(_MIPNERF),
    "mipnerf-noipe": dataclasses.replace(_MIPNERF, integrated=False),
    "mipnerf-llff": _LLFF,
    "mipnerf-multiscale": _MULTISCALE,
    "mipnerf-multiscale-noextras": _without_extras(_MULTISCALE),
    "mipnerf-multiscale-noipe": dataclasses.replace(_MULTISCALE, integrated=False),
    "mipnerf-multiscale-noloss": dataclasses.replace(_MULTISCALE, area_weights=False),
}
# What each preset is best compared with; `tiny` is the defaults.
BASES = {
    "fast": "tiny",
    "fast-gpu": "fast",
    "mipnerf": "tiny",
    "mipnerf-noextras": "mipnerf",
    "mipnerf-noipe": "mipnerf",
    "mipnerf-llff": "mipnerf",
    "mipnerf-multiscale": "mipnerf",
    "mipnerf-multiscale-noextras": "mipnerf-multiscale",
    "mipnerf-multiscale-noipe": "mipnerf-multiscale",
    "mipnerf-multiscale-noloss": "mipnerf-multiscale",
}
PURPOSES = {
    "fast": "a grid; a minute on a CPU",
    "fast-gpu": "a larger grid, for a GPU",
    "tiny": "a small network; minutes on a CPU",
    "mipnerf": "the paper, Blender data",
    "mipnerf-noextras": "ReLU densities, colours not padded",
    "mipnerf-noipe": "points instead of cones",
    "mipnerf-llff": "the paper, forward-facing scenes",
    "mipnerf-multiscale": "the paper, multiscale data",
    "mipnerf-multiscale-noextras": "ReLU densities, colours not padded",
    "mipnerf-multiscale-noipe": "points instead of cones",
    "mipnerf-multiscale-noloss": "pixels count alike at every scale",
}


def preset(name: str) -> FitConfig:
    """The settings of a named method.

    **Arguments:**

    - `name`: `fast` (a grid; a minute on a CPU), `fast-gpu` (larger), `tiny` (a small network;
      minutes), `mipnerf` (the paper's, for Blender data), `mipnerf-llff`, `mipnerf-multiscale`, or
      one of their ablations; `PRESETS` has all.

    **Returns:**

    The settings; change some with `dataclasses.replace`.

    **Errors:**

    `ValueError` for an unknown name, with the nearest.
    """
    if name not in PRESETS:
        near = difflib.get_close_matches(name, PRESETS, n=1, cutoff=0.0)
        raise ValueError(
            f"there is no preset {name!r}; did you mean {near[0]!r}? Known: {', '.join(PRESETS)}."
        )
    return PRESETS[name]


def differences(name: str) -> dict[str, Any]:
    """What a preset has other than the one that it is best compared with, `BASES[name]`.

    **Arguments:**

    - `name`: of the preset.

    **Returns:**

    The settings that differ, with the preset's values; none for `tiny`, which is the defaults.
    """
    own = dataclasses.asdict(preset(name))
    base = dataclasses.asdict(preset(BASES.get(name, name)))
    return {key: value for key, value in own.items() if value != base[key]}
