"""Named settings: the library's own, and every configuration of the published mip-NeRF code."""

import difflib
from typing import Any

from ._config import field_name, FitConfig
from ._grid import Grid


_FAST = FitConfig(Grid()).replace(
    batch_size=None,
    start_width=4.0,
    learning_rate=3e-2,
    final_learning_rate=1e-4,
    rate_decay="linear",
    delay_steps=20,
    adam_b2=0.99,
    adam_epsilon=1e-15,
    log_every=250,
    eval_every=2500,
    save_every=5000,
)
_FAST_GPU = _FAST.replace(
    batch_size=2**16,
    resolutions=(16, 32, 64, 128, 256, 512),
    capacity=2**19,
    occupancy=128,
    candidates=512,
    width=64,
    precision="bfloat16",
)
# The settings that all published configurations share, the slips of the code included.
_MIPNERF = FitConfig().replace(
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
_MULTISCALE = _MIPNERF.replace(batching="all_images", near=None, far=None)
_LLFF = _MIPNERF.replace(
    batching="all_images",
    background="black",
    downscale=4,
    near=0.0,
    far=1.0,
    ray_shape="cylinder",
    density_noise=1.0,
)
_NO_EXTRAS = {"density_activation": "relu", "density_bias": 0.0, "rgb_padding": 0.0}

PRESETS = {
    "fast": _FAST,
    "fast-gpu": _FAST_GPU,
    "tiny": FitConfig(),
    "mipnerf": _MIPNERF,
    "mipnerf-noextras": _MIPNERF.replace(**_NO_EXTRAS),
    "mipnerf-noipe": _MIPNERF.replace(integrated=False),
    "mipnerf-llff": _LLFF,
    "mipnerf-multiscale": _MULTISCALE,
    "mipnerf-multiscale-noextras": _MULTISCALE.replace(**_NO_EXTRAS),
    "mipnerf-multiscale-noipe": _MULTISCALE.replace(integrated=False),
    "mipnerf-multiscale-noloss": _MULTISCALE.replace(area_weights=False),
}
# For each preset the one with which it is best compared, and its purpose.
NOTES = {
    "fast": ("tiny", "a grid; a minute on a CPU"),
    "fast-gpu": ("fast", "a larger grid, for a GPU"),
    "tiny": (None, "a small network; minutes on a CPU"),
    "mipnerf": ("tiny", "the paper, Blender data"),
    "mipnerf-noextras": ("mipnerf", "ReLU densities, colours not padded"),
    "mipnerf-noipe": ("mipnerf", "points instead of cones"),
    "mipnerf-llff": ("mipnerf", "the paper, forward-facing scenes"),
    "mipnerf-multiscale": ("mipnerf", "the paper, multiscale data"),
    "mipnerf-multiscale-noextras": ("mipnerf-multiscale", "ReLU densities, colours not padded"),
    "mipnerf-multiscale-noipe": ("mipnerf-multiscale", "points instead of cones"),
    "mipnerf-multiscale-noloss": ("mipnerf-multiscale", "pixels count alike at every scale"),
}


def preset(name: str, **changes: Any) -> FitConfig:
    """Returns the settings of a named preset.

    **Arguments:**

    - `name`: the preset: `fast` (a grid; a minute on a CPU), `fast-gpu` (larger), `tiny` (a small
      network; minutes), `mipnerf` (the paper's, for Blender data), `mipnerf-llff`,
      `mipnerf-multiscale`, or one of their ablations; `PRESETS` has all.
    - `changes`: settings to change, by name, as in `FitConfig.replace`.

    **Returns:**

    The settings.

    **Errors:**

    `ValueError` for an unknown name, with the nearest.
    """
    if name not in PRESETS:
        near = difflib.get_close_matches(name, PRESETS, n=1, cutoff=0.0)
        raise ValueError(
            f"there is no preset {name!r}; did you mean {near[0]!r}? Known: {', '.join(PRESETS)}."
        )
    return PRESETS[name].replace(**changes)


def differences(name: str, base: str | None) -> dict[str, Any]:
    """Lists the settings of a preset that differ from those of another, with its own values."""
    own, other = preset(name), preset(base or name)
    found: dict[str, Any] = {}
    if type(own.method) is not type(other.method):
        found["field"] = field_name(own.method)
        other = other.replace(method=type(own.method)())
    return found | {key: value for key, value in own.flat().items() if value != other.flat()[key]}
