"""Garbage is searched for seldom while there is much to trace, and as before afterwards."""

import gc
import subprocess
import sys

import pytest

import scenegraph as sg
from scenegraph._garbage import defer_garbage_collection


CAMERA = sg.PerspectiveCamera.look_at([0, -3, 0], [0, 0, 0], [0, 0, 1], 0.7, 5, 4)


def test_nothing_is_searched_for_in_between():
    with defer_garbage_collection():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_ends_it():
    with pytest.raises(KeyError), defer_garbage_collection():
        raise KeyError
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    try:
        with defer_garbage_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_picture_is_traced_without_collections():
    counts = []

    class Watched(sg.shaders.AbstractShader):
        def __call__(self, hit, view, lit):
            counts.append(gc.isenabled())
            return hit.point

    sphere = sg.Sphere([0.0, 0.0, 0.0], 1.0)
    sg.render(sg.Scene(sg.Group(ball=sg.Surface(sphere, Watched()))), CAMERA)
    assert counts and not any(counts) and gc.isenabled()


def test_the_command_line_collects_seldom():
    program = (
        "import gc, sys, scenegraph.cli\n"
        "try: scenegraph.cli.main(['presets'])\n"
        "finally: print(gc.get_threshold()[0] > 10_000, gc.get_freeze_count() > 10_000)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "True True", done.stderr
