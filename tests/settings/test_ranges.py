"""The ranges of settings: one rule beside each field, by whose flag a message begins."""

import dataclasses
import math

import pytest

from scenegraph.settings import (
    CorrectionSettings,
    DataSettings,
    FitConfig,
    Grid,
    MipNerf,
    OutputSettings,
    preset,
    PRESETS,
    TrainingSettings,
)
from scenegraph.settings._ranges import check_ranges, Range, ranged
from support.command_line import refused


KINDS = (FitConfig, MipNerf, Grid, DataSettings, TrainingSettings, CorrectionSettings)
KINDS = (*KINDS, OutputSettings)


def numbers(kind: type) -> list[str]:
    """The settings that are numbers, or may be."""
    words = ("int", "float")
    kinds = {x.name: str(x.type) for x in dataclasses.fields(kind)}
    return [x for x, of in kinds.items() if any(w in of for w in words) and "Literal" not in of]


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_has_a_range(kind):
    ranges = {x.name for x in dataclasses.fields(kind) if "range" in x.metadata}
    # A method prints as its class, whose name has no number.
    assert ranges == {name for name in numbers(kind) if name not in ("method", "training")}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_finite_is_refused(kind):
    for field in (x for x in dataclasses.fields(kind) if "float" in str(x.type)):
        for value in (math.nan, math.inf, -math.inf) if "range" in field.metadata else ():
            with pytest.raises(ValueError, match=f"^--{field.name.replace('_', '-')} "):
                dataclasses.replace(kind(), **{field.name: value})


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_in_range(name):
    assert preset(name).replace(seed=2**32 - 1).seed == 2**32 - 1


@pytest.mark.parametrize(
    ("range_", "inside", "outside", "text"),
    [
        (Range(1, 8), (1, 8), (0, 9), "between 1 and 8"),
        (Range(0), (0, 1e30), (-1e-9,), "at least 0, and finite"),
        (Range(0, open=True), (1e-9,), (0,), "above 0, and finite"),
        (Range(0, 1, open=True), (0.5,), (0, 1), "between 0 and 1, ends excluded"),
        (Range(), (-1e30, 0), (), "finite"),
    ],
)
def test_ends(range_, inside, outside, text):
    assert all(map(range_.holds, inside)) and str(range_) == text
    assert not any(map(range_.holds, (*outside, math.nan, math.inf, -math.inf)))


def test_a_class_that_repeats_a_field_keeps_the_range():
    """As the classes do by which flags are shown."""

    @dataclasses.dataclass
    class Base:
        count: int = ranged(1, 1, 8)

    kind = dataclasses.make_dataclass("Kind", [("count", int)], bases=(Base,))
    check_ranges(kind(8))
    with pytest.raises(ValueError, match=r"--count \(`count`\) must be between 1 and 8; got 9"):
        check_ranges(kind(9))


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        ("--width 0", ["--width", "between 1 and 16,384; got 0"]),
        ("--width 1000000000", ["--width", "got 1000000000"]),
        ("--log-every 0", ["--log-every", "got 0"]),
        ("--seed 4294967296", ["--seed", "4,294,967,295", "got 4294967296"]),
        ("--seed -1", ["--seed", "got -1"]),
        ("--near 5 --far 1", ["--near", "less than --far"]),
        ("--near nan", ["--near", "got nan"]),
        ("--adam-b2 2", ["--adam-b2", "between 0 and 1, ends excluded"]),
        ("--learning-rate inf", ["--learning-rate", "got inf"]),
        ("--keep 0", ["--keep", "got 0"]),
        ("--steps -1", ["--steps", "got -1"]),
        ("--downscale 0", ["--downscale", "got 0"]),
        ("--box-scale 0", ["--box-scale", "above 0"]),
        ("--hold-every 1", ["--hold-every", "got 1"]),
        ("--max-time 99999999999h", ["--max-time", "ten years"]),
        ("--max-time 0s", ["--max-time"]),
    ],
)
def test_flags_of_a_fit(tmp_path, monkeypatch, capsys, flags, parts):
    """Before a folder is made, or data are read: there are none."""
    monkeypatch.chdir(tmp_path)
    refused(["fit", "nowhere", "--out", "run", *flags.split()], capsys, *parts)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("flags", ["--size 1000000", "--size 0", "--views 0", "--seed -1"])
def test_flags_of_data(tmp_path, monkeypatch, capsys, flags):
    monkeypatch.chdir(tmp_path)
    refused(["data", "make", "out", *flags.split()], capsys, flags.split()[0], "got")
    assert not list(tmp_path.iterdir())


def test_switches_that_may_be_unset(tmp_path, monkeypatch, capsys):
    """`--ndc` and `--no-ndc` need no value; without them the data decide."""
    from scenegraph.cli._flags import with_values

    assert with_values(["fit", "--ndc", "--guided", "False"]) == [
        "fit",
        "--ndc",
        "True",
        "--guided",
        "False",
    ]
    assert with_values(["--no-ndc", "--masks", "--no-jitter"]) == [
        "--ndc",
        "False",
        "--masks",
        "--no-jitter",
    ]
    assert DataSettings().ndc is None
    monkeypatch.chdir(tmp_path)
    refused(["fit", "nowhere", "--no-ndc"], capsys, "nowhere")
