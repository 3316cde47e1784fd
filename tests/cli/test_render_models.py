"""`scenegraph render` of files of meshes."""

import numpy as np
import pytest

from scenegraph.cli import main
from scenegraph.io import read_picture
from support.command_line import refused
from support.model_files import everything, pack_glb


OBJ = "v -1 -1 -1\nv 1 -1 -1\nv 0 1 -1\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.obj"
    path.write_text(OBJ)
    return path


@pytest.mark.slow
def test_a_file_without_camera_and_lights(model):
    assert main(["render", str(model), "--width", "48"]) == 0
    picture = read_picture(model.with_suffix(".png"))
    lit = np.any(picture[..., :3] > 30, axis=-1)
    # It is in the middle, it is lit, and it leaves a margin.
    assert lit[24, 24] and 0.1 < lit.mean() < 0.6
    assert not (lit[0].any() or lit[-1].any() or lit[:, 0].any() or lit[:, -1].any())


@pytest.mark.slow
def test_an_orbit(model, tmp_path):
    out = tmp_path / "frames"
    arguments = ["--path", "orbit", "--frames", "2", "--width", "48", "--out", str(out)]
    assert main(["render", str(model), *arguments]) == 0
    frames = [read_picture(path) for path in sorted(out.glob("*.png"))]
    assert len(frames) == 2 and np.any(frames[0] != frames[1])


def test_refused(model, tmp_path, capsys):
    refused(["render", model, "--path", "ellipse"], capsys, "orbit and spiral", "ellipse")
    refused(["render", model, "--camera", "eye"], capsys, "no camera at 'eye'")
    refused(["render", tmp_path / "gone.glb"], capsys, "there is no file", "gone.glb")
    path = tmp_path / "cut.glb"
    path.write_bytes(pack_glb(*everything())[:-8])
    refused(["render", path], capsys, "cut.glb is damaged")


@pytest.mark.slow
def test_a_model_of_a_simulation(tmp_path, capsys):
    """By its camera, and by the viewer's; a camera that is not there is refused by name."""
    pytest.importorskip("mujoco")
    path = tmp_path / "ball.xml"
    path.write_text(
        '<mujoco><worldbody><camera name="side" pos="0 -2 0" xyaxes="1 0 0 0 0 1"/>'
        '<geom size=".5" rgba="1 0 0 1"/></worldbody></mujoco>'
    )
    out = tmp_path / "side.png"
    flags = ["--camera", "side", "--width", "32", "--out", str(out)]
    assert main(["render", str(path), *flags]) == 0
    picture = read_picture(out)
    assert picture.shape[:2] == (24, 32)
    red = (picture[..., 0] > 50) & (picture[..., 1] < 10)
    # A ball of half a unit at two units, in a picture of 45 degrees upwards.
    half = 0.5 / np.sqrt(2**2 - 0.5**2) / np.tan(np.radians(45) / 2) * 12
    assert abs(np.sum(red) - np.pi * half**2) < 0.12 * np.pi * half**2
    assert main(["render", str(path), "--width", "32"]) == 0
    refused(["render", path, "--camera", "nose"], capsys, "no camera 'nose'", "free", "side")
