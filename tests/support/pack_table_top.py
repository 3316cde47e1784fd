"""Renders the data set that the library brings along: `python tests/support/pack_table_top.py`.

To be run whenever `table_top` or the pictures of surfaces change; a slow test says when.
"""

import pathlib
import tempfile
import zipfile

import scenegraph as sg
from scenegraph.diagnostics import make_dataset, table_top


PACKED = pathlib.Path(sg.diagnostics.__file__).with_name("table_top.zip")


def pack(folder: pathlib.Path) -> None:
    """Packs a folder; pictures are compressed already."""
    with zipfile.ZipFile(PACKED, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(x for x in folder.rglob("*") if x.is_file()):
            # A fixed date, so that the same pictures make the same file.
            packed.writestr(zipfile.ZipInfo(str(path.relative_to(folder))), path.read_bytes())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        pack(make_dataset(pathlib.Path(name) / "set", scene=table_top(), progress=print))
