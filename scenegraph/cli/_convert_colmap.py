import dataclasses
import pathlib
from typing import Annotated

import tyro

from ..data import convert_colmap
from ._console import say


@dataclasses.dataclass(frozen=True)
class ConvertColmap:
    """Write a transforms.json for the pictures of a COLMAP reconstruction, as nerfstudio does."""

    sparse: Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="SPARSE")]
    """Folder with cameras.bin and images.bin, or .txt; COLMAP calls it sparse/0."""

    out: Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]
    """A JSON file to write, or the folder for transforms.json; the pictures lie below it."""

    images: pathlib.Path | None = None
    """Folder of the pictures; by default images, beside the file that is written."""

    keep_world: bool = False
    """Leave COLMAP's world as it is; by default its +y, mostly downwards, becomes -z."""

    def main(self) -> None:
        """Converts."""
        path = convert_colmap(self.sparse, self.out, images=self.images, keep_world=self.keep_world)
        named = self.out.suffix == ".json"
        say(f"wrote {path}" + ("" if named else f"; fit it with `scenegraph fit {self.out}`"))
