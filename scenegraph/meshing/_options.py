import dataclasses

import numpy as np

from ..io import import_extra


# Cells along an axis: more than these take gigabytes.
_FINEST = 1024


@dataclasses.dataclass(frozen=True)
class MeshOptions:
    """The settings by which a volume becomes a mesh.

    **Arguments:**

    - `level`: the opacity, between 0 and 1, that a layer as dense as the surface has, if it is 1/64
      of the longest side thick: the density there is `-log(1 - level) * 64 / side`. Of all of
      space, contracted, the layer is 1/50 of the volume's unit thick, whatever the box.
    - `resolution`: the number of cells along the longest side of the bounds; by default twice that
      of the field's finest grid, between 128 and 512, or 256 for other fields.
    - `faces`: the largest number of triangles; `None` keeps all.
    - `texture`: the number of texels along the longer side of the texture; `None` for colours of
      vertices instead.
    - `min_part`: the share of the largest part's cells below which a part that touches no other is
      left out; 0 keeps all.
    - `box`: the smallest and the largest corner, `x y z x y z`, of what is searched, in the
      volume's frame; by default the volume's bounds.
    - `view_bands`: the bands, 1 to 4, of the spherical harmonics by which the colours of texels
      change with the view, where viewpoints are known; 1 for colours that do not.

    **Errors:**

    `ValueError` for numbers outside of these ranges.
    """

    level: float = 0.6
    resolution: int | None = None
    faces: int | None = 50_000
    texture: int | None = 1024
    min_part: float = 0.01
    box: tuple[float, float, float, float, float, float] | None = None
    view_bands: int = 3

    def __post_init__(self):
        _require(0 < self.level < 1, "level", "between 0 and 1, an opacity", self.level)
        _require(0 <= self.min_part <= 1, "min_part", "between 0 and 1, a share", self.min_part)
        _require(self.faces is None or self.faces >= 4, "faces", "at least 4", self.faces)
        sizes = {"resolution": (2, _FINEST), "texture": (16, 16384), "view_bands": (1, 4)}
        for name, (least, most) in sizes.items():
            value = getattr(self, name)
            inside = value is None or least <= value <= most
            _require(inside, name, f"between {least} and {most}", value)
        corners = np.reshape(self.box or (0, 0, 0, 1, 1, 1), (2, 3))
        _require(
            bool(np.all(np.isfinite(corners)) and np.all(corners[0] < corners[1])),
            "box",
            "two corners x y z x y z, the first below the second",
            self.box,
        )

    def require_packages(self) -> None:
        """Raises `MissingExtra` if a package that these settings need is not installed."""
        needed = {"skimage.measure": "marching cubes"}
        needed |= {} if self.faces is None else {"fast_simplification": "a mesh of fewer faces"}
        needed |= {} if self.texture is None else {"xatlas": "a texture"}
        for name, what in needed.items():
            import_extra(name, "mesh", what)


def _require(holds: bool, name: str, rule: str, value: object) -> None:
    if not holds:
        raise ValueError(f"`MeshOptions.{name}` must be {rule}; got {value}.")
