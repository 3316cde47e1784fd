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
