"""Garbage is searched for seldom while there is much to trace, and as before afterwards."""

import gc
import subprocess
import sys

import pytest

import scenegraph as sg
from scenegraph import _garbage
from scenegraph._garbage import defer_garbage_collection, keep_new_objects


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


@pytest.fixture
def young():
    """A young object among others, which nothing searches."""
    # Other tests may have left some out of searches.
    gc.unfreeze()
    gc.collect()
    gc.disable()
    yield [[] for _ in range(2000)]
    gc.enable()


def is_old(item):
    return any(x is item for x in gc.get_objects(generation=2))


def test_many_new_objects_grow_old_without_a_search(young, monkeypatch):
    searches = [x["collections"] for x in gc.get_stats()]
    keep_new_objects()
    assert not is_old(young)
    monkeypatch.setattr(_garbage, "_MANY", 1000)
    keep_new_objects()
    assert is_old(young) and gc.get_freeze_count() == 0
    assert [x["collections"] for x in gc.get_stats()] == searches


def test_objects_that_are_never_searched_stay_so(young, monkeypatch):
    monkeypatch.setattr(_garbage, "_MANY", 1000)
    gc.freeze()
    try:
        count, later = gc.get_freeze_count(), [[] for _ in range(2000)]
        keep_new_objects()
        assert gc.get_freeze_count() == count and not is_old(later)
    finally:
        gc.unfreeze()


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
