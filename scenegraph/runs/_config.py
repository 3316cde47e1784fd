import dataclasses
from typing import Literal


@dataclasses.dataclass(frozen=True)
class FitConfig:
    """Everything that decides how a radiance field is fitted; every field is a flag.

    **Arguments:**

    - all: see the comments beside the fields.
    """

    steps: int = 20_000  # training steps
    seed: int = 0  # of all randomness: weights, batches, jitter
    downscale: int = 1  # average pictures over blocks of this many pixels a side
    batch_size: int = 512  # rays a step
    batching: Literal["all_images", "single_image"] = "all_images"  # where a batch is drawn from
    background: Literal["white", "black", "random"] = "white"  # what RGBA pictures are put on
    memory_map: Literal["auto", "always", "never"] = "auto"  # leave pixels in a file, if many
    straight_alpha: bool = False  # downscale colours without weighting them by opacity

    area_weights: bool = True  # pixels of small pictures count for all that they stand for
    hold_every: int = 8  # LLFF, nerfstudio: every so many pictures are held out
    ndc: bool = True  # LLFF: bend space so that all in front of the cameras fits into a cube
    spherify: bool = False  # LLFF: cameras look inwards; their unit sphere instead of a cube
    published_radii: bool = False  # LLFF: radii and views of rays in NDC as published, or exact

    bounds: Literal["found", "none"] = "found"  # box from cameras and opacities, or near to far
    near: float | None = None  # where rays begin; by default close to the camera
    far: float | None = None  # where rays end; by default behind everything

    field: Literal["mlp", "grid"] = "mlp"  # a network over sines, or a small one over a grid
    resolutions: tuple[int, ...] = (16, 32, 64, 128)  # cells of the grid's levels
    features: int = 4  # numbers a point of the grid
    capacity: int = 2**17  # most points of a level that have numbers of their own
    occupancy: int = 64  # cells along an axis of where the grid field may be empty
    candidates: int = 128  # steps along a ray, of which the occupied ones are asked
    rounds: int = 1  # of asking them, from front to back; rays that are opaque drop out

    precision: Literal["float32", "bfloat16"] = "float32"  # of the grid field's matrix products

    width: int = 64  # of the network's trunk
    depth: int = 4  # of the network's trunk
    skip: int = 4  # the encoding enters the trunk again after so many layers
    view_width: int = 32  # of the colour head
    view_depth: int = 1  # of the colour head
    min_degree: int = 0  # lowest frequency of the encoding is 2 ** min_degree
    max_degree: int = 8  # the highest is 2 ** (max_degree - 1)
    view_degree: int = 4  # frequencies of the direction's encoding
    use_view: bool = True  # whether colour depends on the direction
    integrated: bool = True  # encode cones (mip-NeRF) or points (NeRF)
    density_activation: Literal["softplus", "relu"] = "softplus"
    density_bias: float = -1.0  # added before the activation
    density_noise: float = 0.0  # standard deviation, while training
    rgb_padding: float = 0.001  # how far colours reach beyond 0 and 1

    samples: tuple[int, ...] = (32, 32)  # intervals a ray, level by level
    ray_shape: Literal["cone", "cylinder"] = "cone"
    disparity: bool = False  # spread the first samples evenly in 1 / t
    resample_padding: float = 0.01  # added to weights before resampling
    stop_level_gradient: bool = True  # take the positions of finer samples as constants
    empty_depth_near: bool = False  # depth of empty rays: near end (as published) or far end

    learning_rate: float = 1e-2  # at the start
    final_learning_rate: float = 2e-4  # at the end
    delay_steps: int = 100  # soft start: so many steps ...
    delay_multiplier: float = 0.1  # ... from this share of the learning rate
    adam_b2: float = 0.999  # how slowly Adam forgets squared gradients
    adam_epsilon: float = 1e-8  # added to their root
    max_gradient_value: float = 0.0  # clip entries of the gradient; 0 for no limit
    max_gradient_norm: float = 0.0  # then clip its length; 0 for no limit
    weight_decay: float = 0.0  # times the mean square of all network weights
    coarse_weight: float = 0.1  # of every level's loss but the last
    sum_channels: bool = False  # add squared errors of the channels (as published), or average
    jitter: bool = True  # random sample positions while training

    log_every: int = 50  # steps between lines of the log
    eval_every: int = 500  # steps between PSNRs on a few held-out pictures; 0 for never
    save_every: int = 1000  # steps between checkpoints; 0 for only at the end
    keep: int = 3  # so many of the newest checkpoints stay, and the best on held-out pictures
