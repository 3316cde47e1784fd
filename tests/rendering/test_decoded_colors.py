"""Colours that were decoded from sRGB, in scenes whose colours are sRGB numbers."""

import warnings

import numpy as np
import pytest

import scenegraph as sg
from scenegraph.rendering import _warnings
from support.helpers import assert_close


CAMERA = sg.PerspectiveCamera.look_at([0, -4, 1], [0, 0, 0], [0, 0, 1], 0.5, 2, 2)
BYTES = np.full((2, 2, 3), 128, np.uint8)


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(_warnings, "_said", set())


def render(shader, background="black", **more):
    scene = sg.Scene(sg.Group(card=sg.Surface(sg.Sphere(), shader), **more), background=background)
    return sg.render(scene, CAMERA)


@pytest.mark.parametrize("dark", ["gray", sg.ImageTexture(BYTES), sg.Checker(1, "white", "gray")])
def test_what_looks_dark_without_lights_is_said_once(dark):
    with pytest.warns(UserWarning, match="the scene has no light"):
        render(dark)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        render(dark)


def test_a_background_by_name():
    with pytest.warns(UserWarning, match="the scene has no light"):
        render([0.5] * 3, "gray")


def test_numbers_and_scenes_with_lights_are_drawn_without_a_word():
    for shader in ([0.5] * 3, "white", sg.ImageTexture(sg.Image(BYTES).rgb)):
        render(shader)
    gray = sg.images.linear_to_srgb(sg.images.as_color("gray"))
    assert_close(render(gray).rgb, render([128 / 255] * 3).rgb, 1e-5)
    render(sg.Lambert("gray"), lamp=sg.AmbientLight())
