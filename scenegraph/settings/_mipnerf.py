"""mip-NeRF and NeRF: a large network over sines of the position, sampled in levels."""

import dataclasses
from typing import Literal, TYPE_CHECKING

import numpy as np

from ._method import AbstractMethod
from ._ranges import check_ranges, ranged


if TYPE_CHECKING:
    from .._typing import RandomKey
    from ..data import Views
    from ..fields import MipNerfMLP
    from ..integrators import Hierarchical
    from ..scene import Transformed, Volume
    from ._volumes import Space


@dataclasses.dataclass(frozen=True)
class MipNerf(AbstractMethod):
    """A network over sines of the position, sampled coarse to fine (mip-NeRF, NeRF).

    **Arguments:**

    - `width`: the number of neurons in each layer of the trunk.
    - `depth`: the number of layers of the trunk.
    - `skip`: the number of layers after which the encoding enters the trunk again.
    - `view_width`: the number of neurons in each layer of the colour head.
    - `view_depth`: the number of layers of the colour head.
    - `min_degree`: the exponent of the encoding's lowest frequency, 2 ** min_degree.
    - `max_degree`: the upper limit of exponents; the highest frequency is 2 ** (max_degree - 1).
    - `view_degree`: the number of frequencies in the encoding of the direction.
    - `use_view`: if true, colour depends on the direction.
    - `integrated`: if true, cones are encoded (mip-NeRF); otherwise points (NeRF).
    - `density_activation`: the function that makes densities positive.
    - `density_bias`: the number added before that function.
    - `density_noise`: the standard deviation of the noise added to densities while training.
    - `rgb_padding`: the margin by which colours can exceed the range from 0 to 1.
    - `samples`: the number of intervals along a ray, level by level.
    - `ray_shape`: the solid that stands for a ray and its width.
    - `disparity`: if true, the first samples are spread evenly in 1 / t instead of t.
    - `resample_padding`: the number added to weights before finer samples are drawn from them.
    - `stop_level_gradient`: if true, positions of finer samples are constants to the gradient.
    - `empty_depth_near`: if true, the depth of an empty ray is its near end, as published;
      otherwise its far end.

    **Source:** Barron et al. 2021, "Mip-NeRF: a multiscale representation for anti-aliasing neural
    radiance fields".
    """

    width: int = ranged(64, 1, 2**14)
    depth: int = ranged(4, 1, 256)
    skip: int = ranged(4, 1, 256)
    view_width: int = ranged(32, 1, 2**14)
    view_depth: int = ranged(1, 0, 256)
    min_degree: int = ranged(0, -64, 64)
    max_degree: int = ranged(8, -64, 64)
    view_degree: int = ranged(4, 0, 64)
    use_view: bool = True
    integrated: bool = True
    density_activation: Literal["softplus", "relu"] = "softplus"
    density_bias: float = ranged(-1.0)
    density_noise: float = ranged(0.0, 0)
    rgb_padding: float = ranged(0.001, 0, 1)
    samples: tuple[int, ...] = ranged((32, 32), 1, 2**14)
    ray_shape: Literal["cone", "cylinder"] = "cone"
    disparity: bool = False
    resample_padding: float = ranged(0.01, 0)
    stop_level_gradient: bool = True
    empty_depth_near: bool = False

    def __post_init__(self):
        check_ranges(self)

    @property
    def contracts(self) -> bool:
        return False

    @property
    def appearance_size(self) -> int:
        return 0

    def adapt(self, views: "Views", box: "Space") -> "MipNerf":
        del views, box
        return self

    def choose_by_time(self, limit: float | None) -> "MipNerf":
        del limit
        return self

    def make_field(self, *, key: "RandomKey") -> "MipNerfMLP":
        import jax

        from ..encodings import IntegratedPositional, Positional
        from ..fields import MipNerfMLP

        activations = {"softplus": jax.nn.softplus, "relu": jax.nn.relu}
        degrees = self.min_degree, self.max_degree
        cones = IntegratedPositional(*degrees)
        return MipNerfMLP(
            self.width,
            self.depth,
            skip=self.skip,
            view_width=self.view_width,
            view_depth=self.view_depth,
            encoding=cones if self.integrated else Positional(*degrees, identity=False, wrap=True),
            view_degree=self.view_degree,
            use_view=self.use_view,
            density_activation=activations[self.density_activation],
            density_bias=self.density_bias,
            density_noise=self.density_noise,
            rgb_padding=self.rgb_padding,
            key=key,
        )

    def make_volume(
        self, box: "Space", empty: np.ndarray | None, *, key: "RandomKey"
    ) -> "Volume | Transformed":
        from ..data import Ball
        from ..scene import Volume
        from ._volumes import build_field, in_box

        if isinstance(box, Ball):
            raise ValueError("this method fills a box or rays: use `--bounds found`, or `none`.")
        field, integrator = build_field(self, key), self.make_integrator(box)
        if box is None:
            return Volume(field, bounds=None, integrator=integrator)
        return in_box(field, box, integrator)

    def make_integrator(self, box: "Space") -> "Hierarchical":
        from ..integrators import Hierarchical
        from ..rays import ConeBeam, CylinderBeam
        from ..samplers import Disparity, Uniform

        return Hierarchical(
            samples=self.samples,
            beam=ConeBeam() if self.ray_shape == "cone" else CylinderBeam(),
            spacing=Disparity() if self.disparity else Uniform(),
            padding=self.resample_padding,
            stop_gradient=self.stop_level_gradient,
            empty_depth_near=self.empty_depth_near,
        )

    def find_empty(self, views: "Views", box: "Space", *, spare: float = 0.0) -> None:
        return None
