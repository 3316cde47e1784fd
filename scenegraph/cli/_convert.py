import dataclasses
import pathlib
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import Progress

from ..settings import check_ranges, ranged
from ._console import say
from ._flags import OptionalPath


@dataclasses.dataclass(frozen=True)
class ConvertColmap:
    """Write a transforms.json for the pictures of a COLMAP reconstruction, as nerfstudio does."""

    # The folder with cameras.bin and images.bin, or .txt; COLMAP calls it sparse/0.
    sparse: Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="SPARSE")]

    # The JSON file to write, or the folder of transforms.json; the pictures must lie below it.
    out: Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]

    # The folder of the pictures; by default images, beside the file that is written.
    images: OptionalPath = None

    # Keep the axes of COLMAP's world; by default its +y, mostly downwards, becomes -z.
    keep_world: bool = False

    def main(self) -> None:
        """Converts."""
        from ..data import convert_colmap

        path = convert_colmap(self.sparse, self.out, images=self.images, keep_world=self.keep_world)
        named = self.out.suffix == ".json"
        say(f"wrote {path}" + ("" if named else f"; fit it with `scenegraph fit {self.out}`"))


@dataclasses.dataclass(frozen=True)
class ConvertMultiscale:
    """Write Blender data at several sizes, like the multiscale data of the mip-NeRF paper."""

    # The folder with transforms_train.json, ... and pictures.
    source: Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]

    # The folder for metadata.json and pictures; it must be new or empty.
    out: Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]

    # The number of sizes, each half of the one before; the full size is the first.
    levels: int = ranged(4, 1, 32)

    # Average colours without weighting them by opacity, and truncate instead of rounding, bit for
    # bit like the published converter.
    straight_alpha: bool = False

    # The distance at which rays begin, for metadata.json.
    near: float = ranged(2.0, 0)

    # The distance at which rays end, for metadata.json.
    far: float = ranged(6.0, 0)

    def check(self) -> None:
        """Refuses wrong settings before anything is loaded."""
        check_ranges(self)

    def main(self) -> None:
        """Converts, and shows the progress."""
        from ..data import convert_multiscale

        with Progress(console=Console(stderr=True)) as progress:
            task = progress.add_task("converting", total=None)
            convert_multiscale(
                self.source,
                self.out,
                self.levels,
                straight_alpha=self.straight_alpha,
                near=self.near,
                far=self.far,
                progress=lambda done, total: progress.update(task, completed=done, total=total),
            )
        say(f"wrote {self.out}; fit it with `scenegraph fit {self.out}`")


_What = (
    Annotated[ConvertColmap, tyro.conf.subcommand("colmap")]
    | Annotated[ConvertMultiscale, tyro.conf.subcommand("multiscale")]
)


@dataclasses.dataclass(frozen=True)
class Convert:
    """Convert data from one format to another."""

    what: Annotated[_What, tyro.conf.arg(name="")]

    def check(self) -> None:
        """Refuses wrong settings before anything is loaded."""
        if isinstance(self.what, ConvertMultiscale):
            self.what.check()

    def main(self) -> None:
        """Converts."""
        self.what.main()
