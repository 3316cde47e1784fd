"""`scenegraph poses`, and `scenegraph fit` of photographs."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image as PillowImage

from scenegraph.cli import main
from support.command_line import refused
from support.photographs import around, write_photographs


pytest.importorskip("pycolmap", reason="finding poses needs the extra photos")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Ten photographs of boxes on a table."""
    folder = tmp_path_factory.mktemp("photos")
    write_photographs(folder, around(10, turns=0.35), width=320, height=240)
    return folder


def test_poses_says_what_is_found(photos, tmp_path, capsys):
    assert main(["poses", str(photos), "--out", str(tmp_path / "out"), "--lens", "pinhole"]) == 0
    said = capsys.readouterr().err
    assert "10 of 10 pictures have a pose" in said and "SIMPLE_PINHOLE" in said
    assert f"scenegraph fit {tmp_path / 'out'}" in said


def test_messages(photos, tmp_path, capsys):
    refused(["poses", tmp_path / "no", "--out", tmp_path / "out"], capsys, "there is no")
    refused(["poses", photos, "--out", photos / "out"], capsys, "beside photographs")
    refused(["poses", photos, "--out", tmp_path / "out", "--size", 5], capsys, "--size")
    single = tmp_path / "single"
    single.mkdir()
    PillowImage.fromarray(np.zeros((40, 60, 3), np.uint8)).save(single / "a.png")
    refused(["fit", single, "--out", tmp_path / "run"], capsys, "1 usable picture")
    refused(["fit", photos, "--out", tmp_path / "run", "--max-time", "1s"], capsys, "poses alone")
    assert not (tmp_path / "run").exists() and not (tmp_path / "out").exists()


def _start(*arguments: object) -> subprocess.Popen:
    command = [sys.executable, "-m", "scenegraph", *map(str, arguments)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def _engines(capture: pathlib.Path) -> list[str]:
    """The programs that have a file of the capture open."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            files = [os.readlink(file) for file in (process / "fd").iterdir()]
        except OSError:
            continue
        if any(file.startswith(str(capture)) for file in files):
            found.append(process.name)
    return found


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("how, code", [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_an_end_in_the_middle_of_the_engine(photos, tmp_path, how, code):
    out = tmp_path / "out"
    process = _start("poses", photos, "--out", out)
    database = out / "work" / "features.db"
    while not database.exists():
        time.sleep(0.05)
        assert process.poll() is None
    process.send_signal(how)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code and "Traceback" not in said
    time.sleep(1)
    assert not _engines(out)
    assert not (out / "poses.json").exists() and not (out / "images").exists()
    assert main(["poses", str(photos), "--out", str(out)]) == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit of a file's size")
def test_a_full_disk(photos, tmp_path):
    # Files of at most 100 kB, which the database exceeds.
    script = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)); "
        "from scenegraph.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, "poses", str(photos), "--out", str(tmp_path / "out")]
    environment = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "false"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("scenegraph: ")
    assert not (tmp_path / "out" / "poses.json").exists()


@pytest.mark.slow
def test_fit_photographs(photos, tmp_path, capsys):
    run = tmp_path / "run"
    flags = ["--steps", "20", "--film", "none", "--downscale", "4", "--eval-every", "0"]
    assert main(["fit", str(photos), "--out", str(run), *flags]) == 0
    said = capsys.readouterr().err
    assert "has no poses: finding them" in said and "10 of 10 pictures have a pose" in said
    assert (run / "metrics.md").exists() and (run / "capture" / "poses.json").exists()
    # The run knows its capture, without the photographs.
    flags = ["--resume", "--steps", "21", "--film", "none"]
    assert main(["fit", "--out", str(run), *flags]) == 0
    assert "finding them" not in capsys.readouterr().err
