import dataclasses
import pathlib
from typing import Annotated

import tyro

from ..data import convert_colmap
from ._console import say


@dataclasses.dataclass(frozen=True)
class ConvertColmap:
    """Write a transforms.json for the pictures of a COLMAP reconstruction, as nerfstudio does."""

    # The folder with cameras.bin and images.bin, or .txt; COLMAP calls it sparse/0.
    sparse: Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="SPARSE")]

    # The JSON file to write, or the folder of transforms.json; the pictures must lie below it.
    out: Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]

    # The folder of the pictures; by default images, beside the file that is written.
    images: pathlib.Path | None = None

    # Keep the axes of COLMAP's world; by default its +y, mostly downwards, becomes -z.
    keep_world: bool = False

    def main(self) -> None:
        """Converts."""
        path = convert_colmap(self.sparse, self.out, images=self.images, keep_world=self.keep_world)
        named = self.out.suffix == ".json"
        say(f"wrote {path}" + ("" if named else f"; fit it with `scenegraph fit {self.out}`"))
