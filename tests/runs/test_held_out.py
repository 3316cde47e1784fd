"""Held-out pictures that are training pictures, too."""

import pytest

from scenegraph.runs._held_out import read_held_out
from scenegraph.settings import DataSettings
from support.capture_folders import arc, F, listing, pictures


@pytest.mark.parametrize(
    ("place", "turned", "word"),
    [
        ("images", 0.0, "4 of 4 test pictures, such as images/0.png, are training pictures"),
        ("copies", 0.0, "all 4 test pictures have the cameras of the training pictures"),
        ("copies", 1.0, None),
    ],
)
def test_a_test_set_that_equals_the_training_set_is_said(tmp_path, place, turned, word):
    for folder in {"images", place}:
        pictures(tmp_path, 4, folder)
    listing(tmp_path, "transforms_train.json", {"fl_x": F}, arc(4))
    path = place + "/{}.png"
    listing(tmp_path, "transforms_test.json", {"fl_x": F}, arc(4, height=1 + turned), path)
    settings = DataSettings()
    found = read_held_out(settings, tmp_path, "test", settings.load(tmp_path))
    assert [word in note for note in found.views.notes] == ([] if word is None else [True])
