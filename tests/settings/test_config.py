"""Settings: flat names, the methods' own lists, and what `config.json` holds."""

import dataclasses
import json
import pathlib

import numpy as np
import pytest

from scenegraph.io import FileError
from scenegraph.runs import open_run
from scenegraph.settings import (
    DataSettings,
    FitConfig,
    Grid,
    METHODS,
    MipNerf,
    OutputSettings,
    PARTS,
    preset,
    PRESETS,
    setting_names,
    TrainingSettings,
)


FLAT = pathlib.Path(__file__).with_name("flat_config.json")  # written by the version before


def test_names_are_found_in_the_right_part():
    changed = preset("fast", width=48, batch_size=128, near=1.0, keep=7, seed=3)
    assert changed.method == Grid(width=48) and changed.seed == 3
    assert (changed.data.near, changed.training.batch_size, changed.output.keep) == (1.0, 128, 7)
    assert changed.replace(width=None, batch_size=None, near=None, keep=3, seed=0) == preset("fast")


def test_short_fits_take_more_and_smaller_steps():
    chosen = preset("fast").training
    assert [chosen.rays(limit) for limit in (None, 20.0, 60.0, 61.0)] == [2048, 1024, 1024, 2048]
    assert [chosen.rays(limit) for limit in (299.0, 300.0, 1200.0)] == [2048, 4096, 8192]
    assert [chosen.rays(limit, space=True) for limit in (300.0, 301.0, 1200.0)] == [
        1024,
        2048,
        2048,
    ]
    assert preset("fast", batch_size=7).training.rays(20.0) == 7


def test_long_fits_have_larger_tables_and_end_by_the_clock():
    grid = preset("fast").method
    capacities = [grid.choose_by_time(limit).capacity for limit in (None, 600.0, 1200.0)]
    assert capacities == [None, 2**17, 2**19]
    # Their steps may be half as long.
    box = (np.zeros(3), np.ones(3))
    fine = dataclasses.replace(grid, resolutions=(512,))
    short, long = (fine.choose_by_time(limit).make_integrator(box) for limit in (600.0, 1200.0))
    assert (short.candidates, long.candidates) == (256, 512)
    own = preset("fast", capacity=2**10).method
    assert own.choose_by_time(3600.0) is own
    mlp = preset("mipnerf").method
    assert mlp.choose_by_time(3600.0) is mlp
    assert preset("fast").count_steps() == 20_000
    assert preset("fast").count_steps(3600.0) > 10**6
    assert preset("fast", steps=7).count_steps(3600.0) == 7


def test_a_method_can_change_together_with_its_settings():
    config = preset("tiny").replace(method=Grid(), candidates=16, batch_size=8)
    assert config.method == Grid(candidates=16) and config.training.batch_size == 8


def test_names_are_unique():
    kinds = (FitConfig, DataSettings, TrainingSettings, OutputSettings)
    shared = [name for kind in kinds for name in setting_names(kind)]
    for method in METHODS.values():
        names = [*shared, *setting_names(method)]
        assert len(set(names)) == len(names)


def test_setting_of_another_method_is_refused_with_the_list():
    with pytest.raises(
        ValueError, match="`candidates` is not a setting of MipNerf, which has width, .*; Grid has"
    ):
        preset("tiny", candidates=3)
    with pytest.raises(ValueError, match="`depth` is not a setting of Grid, which has res.* MipNe"):
        preset("fast").replace(depth=3, width=8)


def test_unknown_setting_names_the_nearest():
    with pytest.raises(ValueError, match="no setting `batch_sise`; did you mean `batch_size`"):
        preset("tiny", batch_sise=3)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_there_and_back(name, tmp_path):
    run = open_run(tmp_path / "run")
    run.save_config(preset(name))
    assert run.load_config() == (preset(name), {})
    saved = json.loads((run.folder / "config.json").read_text())["fit"]
    assert set(saved) == {"field", *PARTS, "steps", "seed"}


@pytest.mark.parametrize("field", METHODS)
def test_flat_settings_of_the_version_before(tmp_path, field):
    """Settings of the other method, and `rounds`, are dropped."""
    record = json.loads(FLAT.read_text())
    record["fit"]["field"] = field
    (tmp_path / "config.json").write_text(json.dumps(record))
    config, others = open_run(tmp_path).load_config()
    assert others == {"data": "data", "preset": "fast"}
    grid = Grid((16, 32, 64, 128), capacity=2**17, occupancy=32, candidates=128, width=16)
    assert config.method == (grid if field == "grid" else MipNerf(width=16))
    assert config.data == DataSettings(downscale=2, bounds="found", near=1.5, ndc=True)
    rates = {"learning_rate": 2e-2, "final_learning_rate": 1e-3, "rate_decay": "exponential"}
    # Points lead no rays of runs that were saved before they could, nor are these wide.
    changes = {"batch_size": 512, "batching": "single_image", "point_weight": 0.0, **rates}
    assert config.training == preset("fast", start_width=1.0, **changes).training
    assert config.output == OutputSettings(250, 0, 30) and (config.steps, config.seed) == (60, 0)


def test_settings_of_a_wrong_type_are_refused(tmp_path):
    run = open_run(tmp_path)
    run.save_config(preset("fast"))
    text = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").write_text(text.replace('"width": null', '"width": "wide"'))
    with pytest.raises(FileError, match="does not hold the settings of a fit"):
        run.load_config()
