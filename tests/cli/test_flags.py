"""The flags of `scenegraph fit`: sections, methods, and what the documentation names."""

import pathlib
import re

import pytest

from scenegraph.cli import main
from scenegraph.cli._fit import Fit
from scenegraph.settings import Grid, METHODS, MipNerf, PARTS, preset, PRESETS, setting_names
from support.command_line import refused


ROOT = pathlib.Path(__file__).parents[2]
COMMANDS = (
    "fit",
    "eval",
    "table",
    "render",
    "export",
    "convert colmap",
    "convert multiscale",
    "check",
    "data",
)
# Flags of other programs.
FOREIGN = """--xla --torch --requeue --ntasks-per-node --nodes --logdir --kill-on-bad-exit
    --gpus-per-node --cpus-per-task --time --help --index-url --mesh --runs
    --counts --name""".split()


@pytest.fixture
def shown(capsys, monkeypatch):
    """Shows what `--help` prints."""
    monkeypatch.setenv("COLUMNS", "200")

    def show(*arguments: str) -> str:
        with pytest.raises(SystemExit) as caught:
            main([*arguments, "--help"])
        assert caught.value.code == 0
        return capsys.readouterr().out

    return show


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def flags_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text))


@pytest.mark.parametrize("name", PRESETS)
def test_help_shows_the_settings_of_the_preset(shown, name):
    flags, method = flags_in(shown("fit", "--preset", name)), preset(name).method
    assert flags >= {flag(setting) for setting in preset(name).flat()}
    lacking = {x for kind in METHODS.values() for x in setting_names(kind)} - {*preset(name).flat()}
    assert lacking and not flags & {flag(setting) for setting in lacking}
    assert isinstance(method, Grid) == ("--candidates" in flags)


def test_help_has_sections(shown):
    for name, title in (("fast", "Grid"), ("mipnerf", "MipNerf")):
        text = shown("fit", "--preset", name)
        for part in (title, *PARTS[1:]):
            assert f"{part} options" in text
    assert "(default: 128 128)" in text and "The number of intervals along a ray" in text


def test_flags_that_the_documentation_names(shown):
    known = {x for name in ("fast", "mipnerf") for x in flags_in(shown("fit", "--preset", name))}
    known |= {x for command in COMMANDS[1:] for x in flags_in(shown(*command.split()))}
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        assert flags_in(page.read_text()) <= {*known, *FOREIGN}, page


@pytest.fixture
def parsed(monkeypatch):
    def parse(*arguments: str) -> Fit:
        seen = []
        monkeypatch.setattr(Fit, "main", lambda command: seen.append(command))
        assert main(["fit", *arguments]) == 0
        return seen[0]

    return parse


def test_field_switches_the_method(parsed):
    assert parsed("--preset", "tiny", "--field", "grid").config == preset("tiny", method=Grid())
    flags = "--preset=fast --field=mlp --depth 3 --batch-size 8".split()
    assert parsed(*flags).config == preset("fast", method=MipNerf(depth=3), batch_size=8)
    assert parsed("--preset", "mipnerf", "--field", "mlp").config == preset("mipnerf")


@pytest.mark.parametrize("name", PRESETS)
def test_parsed_settings_are_those_of_the_preset(parsed, name):
    command = parsed("--preset", name)
    assert command.config == preset(name) and type(command.config) is type(preset(name))
    assert type(command.config.method) is type(preset(name).method)


@pytest.mark.parametrize(
    "flags, parts",
    [
        (
            "--preset tiny --candidates 3",
            ["--candidates is not a setting of MipNerf (preset tiny), which has --width, --depth,"]
            + ["--empty-depth-near; Grid has it: --preset fast."],
        ),
        ("--depth=3", ["--depth is not", "Grid (preset fast)", "MipNerf has it: --preset tiny."]),
        ("--no-use-view", ["--no-use-view is not a setting of Grid"]),
        ("--preset fast --field mlp --capacity 8", ["--capacity is not a setting of MipNerf"]),
    ],
)
def test_settings_that_the_method_lacks(capsys, tmp_path, flags, parts):
    refused(["fit", "--out", tmp_path / "run", *flags.split()], capsys, *parts)
    assert not (tmp_path / "run").exists()


def test_rounds_are_accepted_and_do_nothing(parsed):
    assert parsed("--rounds", "2").config == preset("fast")
