"""`scenegraph convert colmap`."""

import numpy as np
import pytest

from scenegraph.cli import main
from scenegraph.io import read_json, write_picture
from support.colmap_folder import MODEL, write_text
from support.command_line import refused


@pytest.fixture
def folders(tmp_path):
    (tmp_path / "data" / "images").mkdir(parents=True)
    for name in ("a.png", "b c.png"):
        write_picture(tmp_path / "data" / "images" / name, np.zeros((24, 32, 3), np.uint8))
    return write_text(tmp_path / "sparse", *MODEL), tmp_path / "data"


def test_it_writes_a_listing(folders, capsys):
    sparse, data = folders
    assert main(["convert", "colmap", str(sparse), str(data)]) == 0
    assert f"wrote {data / 'transforms.json'}" in capsys.readouterr().err
    assert "applied_transform" in read_json(data / "transforms.json")
    refused(["convert", "colmap", sparse, data], capsys, "transforms.json is there already")
    options = ["--images", str(data / "images"), "--keep-world"]
    assert main(["convert", "colmap", str(sparse), str(data / "other.json"), *options]) == 0
    assert "applied_transform" not in read_json(data / "other.json")


def test_errors_are_said_in_words(folders, capsys):
    sparse, data = folders
    refused(["convert", "colmap", data, data], capsys, "cameras.bin or cameras.txt", "sparse/0")
    (sparse / "images.txt").write_text("1 2 3")
    refused(["convert", "colmap", sparse, data], capsys, "images.txt, line 1")
    refused(["convert", "colmap", sparse, data / "none" / "a.json"], capsys, "images.txt")


def test_help_names_what_there_is(capsys):
    with pytest.raises(SystemExit):
        main(["convert", "--help"])
    shown = capsys.readouterr().out
    assert "colmap" in shown and "multiscale" in shown
