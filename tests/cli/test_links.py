"""Nothing is written through links in a run folder that came from others."""

import pathlib
import shutil

import numpy as np
import pytest

from scenegraph.cli import main
from scenegraph.diagnostics import make_dataset
from scenegraph.io import atomic_write, FileError, PART, write_exr, write_hdr, write_picture
from scenegraph.io._json import append_json
from scenegraph.io._mapped import write_mapped
from scenegraph.runs import open_run
from support.blender_folder import write_ball
from support.command_line import fit_pictures, refused


SMALL = ["--preset", "tiny", "--bounds", "none", "--near", "2", "--far", "6", "--width", "8"]
SMALL += ["--depth", "2", "--view-width", "4", "--samples", "4", "4", "--batch-size", "8"]
SMALL += ["--film", "none", "--eval-every", "0"]
FILES = ["metrics.json", "metrics_test.json", "metrics.md", "config.json", "scene.sg", "curve.png"]
FILES += ["cameras.sg", "orbit.gif", *(f"{x}.part.json" for x in ("config", "metrics"))]
FILES += ["metrics.part.md", "scene.part.sg", "pictures/test_000.png", "pictures/test_000.part.png"]
FOLDERS = ["pictures", "checkpoints", "other-data", "test_preds", "tensorboard", "profile"]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory) -> pathlib.Path:
    data = write_ball(tmp_path_factory.mktemp("data"), {"train": 2, "val": 1, "test": 1})
    return fit_pictures(tmp_path_factory.mktemp("runs"), data, 2, SMALL)


@pytest.fixture
def run(fitted, tmp_path) -> pathlib.Path:
    return pathlib.Path(shutil.copytree(fitted, tmp_path / "run"))


@pytest.fixture
def outside(tmp_path) -> pathlib.Path:
    """A folder with files of its own, which must not change."""
    folder = tmp_path / "outside"
    folder.mkdir()
    return folder


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files_that_are_links_are_replaced(run, outside):
    """Of those that are read, the link's file is read."""
    for number, name in enumerate(FILES):
        file, path = outside / f"{number}", run / name
        file.write_bytes(path.read_bytes() if path.exists() else b"mine")
        path.unlink(missing_ok=True)
        path.symlink_to(file)
    before = contents(outside)
    assert main(["eval", str(run)]) == 0
    assert main(["fit", "--out", str(run), "--resume", "--steps", "4", *SMALL]) == 0
    assert main(["render", str(run), "--path", "orbit", "--frames", "2", "--width", "8"]) == 0
    assert contents(outside) == before
    written = [x for x in FILES if PART not in x and x != "cameras.sg"]
    assert [name for name in written if (run / name).is_symlink()] == []


def test_files_with_names_elsewhere_are_replaced(run, outside):
    """Unpacked archives may hold hard links, too."""
    for number, name in enumerate([*FILES, "lock", "metrics.jsonl"]):
        path = run / name
        path.write_bytes(path.read_bytes() if path.exists() else b"mine")
        (outside / f"{number}").hardlink_to(path)
    for checkpoint in (run / "checkpoints").rglob("*.sg"):
        (outside / checkpoint.name).hardlink_to(checkpoint)
    before = contents(outside)
    assert main(["eval", str(run)]) == 0
    assert main(["fit", "--out", str(run), "--resume", "--steps", "4", *SMALL]) == 0
    assert main(["render", str(run), "--path", "orbit", "--frames", "2", "--width", "8"]) == 0
    assert contents(outside) == before


def test_a_log_or_a_lock_with_another_name_goes_on_in_a_file_of_its_own(run, outside):
    log, lock = run / "log.jsonl", run / "lock"
    append_json(log, 1)
    lock.write_bytes(b"mine")
    (outside / "log").hardlink_to(log)
    (outside / "lock").hardlink_to(lock)
    before = contents(outside)
    append_json(log, 2)
    append_json(log, 3)
    assert log.read_text() == "1\n2\n3\n"
    with open_run(run).locked():
        assert lock.read_bytes() != b"mine"
        with pytest.raises(FileError, match="in use"), open_run(run).locked():
            pass
    assert contents(outside) == before


@pytest.mark.parametrize("name", ["lock", "metrics.jsonl"])
def test_files_that_are_written_in_place_are_refused_as_links(run, outside, capsys, name):
    (outside / "mine").write_bytes((run / name).read_bytes() if (run / name).exists() else b"mine")
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(outside / "mine")
    before = contents(outside)
    arguments = ["fit", "--out", run, "--resume", "--steps", "4", *SMALL]
    if name == "lock":
        refused(arguments, capsys, f"{name} is a link")
    else:  # It is cut where the fit goes on, and thereby replaced.
        assert main([str(x) for x in arguments]) == 0
    assert contents(outside) == before


def test_a_lock_or_a_log_that_dangles_makes_nothing(tmp_path):
    for name in ("lock", "metrics.jsonl"):
        (tmp_path / name).symlink_to(tmp_path / "made")
    with pytest.raises(FileError, match="lock is a link"), open_run(tmp_path).locked():
        pass
    with pytest.raises(FileError, match="metrics.jsonl is a link"):
        append_json(tmp_path / "metrics.jsonl", {})
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("name", FOLDERS)
def test_folders_that_are_links_are_refused(run, outside, capsys, name):
    if (run / name).exists():
        shutil.copytree(run / name, outside, dirs_exist_ok=True)
        shutil.rmtree(run / name)
    (outside / "test_999.png").write_bytes(b"mine")
    (run / name).symlink_to(outside)
    before = contents(outside)
    resume = ["fit", "--out", run, "--resume", "--steps", "4", *SMALL]
    (run.parent / "others").mkdir()
    other = write_ball(run.parent / "others", {"train": 3, "val": 1, "test": 2})
    arguments = {
        "pictures": ["eval", run],
        "checkpoints": resume,
        "other-data": ["eval", run, "--data", other, "--other-data"],
        "test_preds": ["render", run, "--suite"],
        "tensorboard": [*resume, "--tensorboard"],
        "profile": [*resume, "--profile"],
    }[name]
    refused(arguments, capsys, f"{name} is a link")
    assert contents(outside) == before


def test_a_folder_in_a_folder_of_the_run_is_no_link_either(run, outside):
    (run / "other-data").mkdir()
    (run / "other-data" / "ball").symlink_to(outside)
    with pytest.raises(FileError, match="ball is a link"):
        open_run(run).subfolder("other-data", "ball", "pictures")
    (run / "checkpoints" / "deeper").symlink_to(outside)
    with pytest.raises(FileError, match="deeper is a link"):
        open_run(run).checkpoints()


def test_a_run_folder_may_be_reached_by_a_link(run, tmp_path):
    (tmp_path / "latest").symlink_to(run)
    (run / "metrics.md").unlink()
    assert main(["eval", str(tmp_path / "latest")]) == 0
    assert (run / "metrics.md").exists()


def test_pictures_that_come_with_the_library_are_not_unpacked_through_links(run, outside):
    (outside / "mine").write_bytes(b"mine")
    folder = run / "data"
    folder.mkdir()
    (folder / "transforms_train.json").symlink_to(outside / "mine")
    make_dataset(folder)
    assert contents(outside) == {"mine": b"mine"}
    folder.joinpath("more").symlink_to(outside)
    with pytest.raises(FileError, match="more is a link"):
        open_run(run).subfolder("data")


WRITERS = {
    "a.json": lambda path: append_json(path.with_name("log"), {}),
    "a.png": lambda path: write_picture(path, np.zeros((2, 2, 3), np.uint8)),
    "a.hdr": lambda path: write_hdr(path, np.zeros((2, 2, 3), np.float32)),
    "a.exr": lambda path: write_exr(path, {"R": np.zeros((2, 2), np.float32)}),
    "a.rows": lambda path: write_mapped(path, [np.zeros((2, 2))], {}),
}


@pytest.mark.parametrize("name", WRITERS)
def test_writers_replace_links(tmp_path, outside, name):
    (outside / "mine").write_bytes(b"mine")
    (tmp_path / name).symlink_to(outside / "mine")
    WRITERS[name](tmp_path / name)
    assert contents(outside) == {"mine": b"mine"}


def test_temporary_names_cannot_be_foreseen(tmp_path):
    names = set()
    for _ in range(3):
        with atomic_write(tmp_path / "a.png") as beside:
            names.add(beside.name)
            assert PART in beside.name and beside.suffix == ".png"
    assert len(names) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
