"""`scenegraph check`."""

import pathlib

import pytest

from scenegraph.cli import main
from support.command_line import refused


CHECKED = """
import jax, jax.numpy as jnp, scenegraph as sg

def make():
    fog = sg.Volume(sg.fields.ConstantFog(0.7, [0.1, 0.6, 0.9]))
    view = sg.PerspectiveCamera.look_at([0, -4, 1], [0, 0, 0], [0, 0, 1], 0.5, 4, 3)
    return sg.Scene(sg.Group(fog=fog, cam=view), integrator=sg.Hierarchical((4,)))

class Stopped(sg.fields.AbstractField):
    number: jax.Array

    def __call__(self, gaussian, view, *, key=None):
        return sg.rays.Medium(self.density(gaussian), jnp.ones(3))

    def density(self, gaussian):
        return jax.lax.stop_gradient(self.number)

def wrong():
    fog = sg.Volume(Stopped(jnp.array(0.5)))
    return sg.Scene(sg.Group(fog=fog)), make().root.children["cam"]

def alone():
    return wrong()[0]

def slid():
    # A floor of one colour, moved within itself, and a lamp of unknown colour.
    floor = sg.Surface(sg.Plane([0.0, 0.0, 0.0], [0.0, 0.0, 1.0]), sg.Lambert([0.5, 0.5, 0.5]))
    lamp = sg.PointLight([0.0, 0.0, 2.0], [5.0, 5.0, 5.0])
    eye = sg.PerspectiveCamera.look_at([0, -3, 2], [0, 0, 0], [0, 0, 1], 0.7, 8, 6)
    return sg.Scene(sg.Group(floor=floor, lamp=lamp)), eye

number = 3
"""


@pytest.fixture
def checked(tmp_path) -> pathlib.Path:
    (tmp_path / "scene.py").write_text(CHECKED)
    return tmp_path / "scene.py"


def test_check_prints_a_table(checked, capsys):
    assert main(["check", f"{checked}:make"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["leaf", "automatic", "difference", "error", "verdict"]
    assert {line.split()[-1] for line in lines[1:]} <= {"right", "zero"}
    assert any(line.startswith("cam.focal") for line in lines)


@pytest.mark.slow
def test_fisher_names_what_pictures_do_not_determine(checked, capsys):
    """The plane's point moves in its plane unseen; a darker floor looks like a dimmer lamp."""
    where = ["--where", "floor.shape.point", "floor.shader.albedo.color", "lamp.intensity"]
    assert main(["check", f"{checked}:slid", "--fisher", *where]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["leaf", "standard", "error"]
    # Three numbers each; two directions of the plane and one for each colour are not determined.
    assert any("4 of 9 unknowns" in line for line in lines)
    unseen = [line for line in lines if line.startswith("not determined")]
    assert len(unseen) == 5 and sum("floor.shape.point" in line for line in unseen) == 2


@pytest.mark.slow
def test_check_of_a_wrong_gradient_exits_with_one(checked, capsys):
    assert main(["check", f"{checked}:wrong", "--where", "fog.field"]) == 1
    out, err = capsys.readouterr()
    assert "fog.field.number" in out and "wrong" in out
    assert "leaves" in err  # how far it is
    assert err.splitlines()[-1] == "scenegraph: 1 of 1 gradients: fog.field.number"


@pytest.mark.parametrize(
    "place, reason",
    [
        ("make", "SCENE.py:make"),
        ("none.py:make", "no file"),
        ("scene.py:nothing", "no function 'nothing'"),
        ("scene.py:number", "no function 'number'"),
        ("scene.py:alone", "no camera"),
    ],
)
def test_check_of_what_is_not_there(checked, capsys, monkeypatch, place, reason):
    monkeypatch.chdir(checked.parent)
    refused(["check", place], capsys, reason)
