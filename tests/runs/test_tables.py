"""Tables of runs, and how they are written."""

import dataclasses

import pytest

from scenegraph.io import FileError, write_json
from scenegraph.runs import (
    cautions,
    latex,
    markdown,
    metric_table,
    open_run,
    paper_tables,
    read_result,
    report,
    Run,
    Scores,
    summary,
    Table,
)
from scenegraph.settings import FitConfig


ONE = Scores("./test/r_0", 20.0, 0.5, 19.0, 0.4, 0.1, 0.3, 0.2, 0.4, (800, 800))


def evaluated(folder, scene: str, scores, preset="mipnerf", missing=None, **protocol) -> Run:
    """A run folder as `eval` leaves it."""
    run = open_run(folder)
    run.save_config(FitConfig(), data=f"/data/{scene}", preset=preset)
    count = len(scores)
    said = {"split": "test", "pictures": count, "of": count, "downscale": 1, "background": "white"}
    metrics = summary(scores, {**said, **protocol}, missing)
    run.save_metrics(metrics, report(metrics))
    return run


def scores(psnr: float, count: int = 1, scales: int = 1) -> list[Scores]:
    """Of pictures alike; smaller ones are two decibels better."""
    return [
        dataclasses.replace(ONE, psnr=psnr + 2 * k, size=(800 >> k, 800 >> k))
        for _ in range(count)
        for k in range(scales)
    ]


def cells(table: Table, *columns: int) -> list[tuple[str, ...]]:
    return [tuple(row[i] for i in columns) for row in table.rows]


# --- As text


TABLE = Table(["a_b", "x ↑"], [["50% | one", "1.0 ± 2"], ["two", "–"]], 1, frozenset({(0, 1)}))


def test_markdown():
    assert markdown(TABLE).splitlines() == [
        "| a_b        |         x ↑ |",
        "| ---------- | ----------: |",
        "| 50% \\| one | **1.0 ± 2** |",
        "| two        |           – |",
    ]


def test_latex():
    table = dataclasses.replace(TABLE, rules=frozenset({1}), caption="What it is.")
    assert latex(table).splitlines() == [
        "% What it is.",
        "\\begin{tabular}{lr}",
        "\\toprule",
        "a\\_b & x $\\uparrow$ \\\\",
        "\\midrule",
        "50\\% | one & \\textbf{1.0 $\\pm$ 2} \\\\",
        "\\midrule",
        "two & -- \\\\",
        "\\bottomrule",
        "\\end{tabular}",
    ]


# --- Of one size


def test_scenes_by_metrics(tmp_path):
    """The mean of the average errors is not the average error of the means, which is published."""
    runs = [
        evaluated(tmp_path / "a", "chair", scores(30.0)),
        evaluated(tmp_path / "b", "lego", scores(34.0)),
    ]
    (table,) = paper_tables([read_result(run) for run in runs])
    assert list(table.columns) == ["scene", "PSNR ↑", "SSIM ↑", "FLIP ↓", "LPIPS ↓", "avg. ↓"]
    assert cells(table, 0, 1) == [("chair", "30.00"), ("lego", "34.00"), ("mean", "32.00")]
    assert cells(table, 2, 3, 4)[0] == ("0.5000", "0.1000", "0.3000")
    average = (10**-3.2 * 0.5**0.5 * 0.3) ** (1 / 3)
    assert table.rows[2][5] == f"{average:.4f}"


def test_numbers_of_rounded_pictures(tmp_path):
    result = read_result(evaluated(tmp_path / "a", "chair", scores(30.0)))
    (table,) = paper_tables([result], eight_bit=True)
    assert cells(table, 1, 2) == [("19.00", "0.4000")] and "8 bits" in table.caption


def test_metrics_that_no_run_has_are_left_out(tmp_path):
    plain = [dataclasses.replace(x, lpips=None) for x in scores(30.0)]
    results = [read_result(evaluated(tmp_path / "a", "chair", plain))]
    assert list(paper_tables(results)[0].columns) == ["scene", "PSNR ↑", "SSIM ↑", "FLIP ↓"]
    results.append(read_result(evaluated(tmp_path / "b", "lego", scores(31.0))))
    (table,) = paper_tables(results)
    assert cells(table, 4, 5)[0] == ("–", "–") and cells(table, 4, 5)[2] == ("–", "–")


def test_methods_are_told_apart_and_the_best_is_bold(tmp_path):
    runs = [
        evaluated(tmp_path / name, scene, scores(psnr), preset)
        for name, scene, preset, psnr in [
            ("a", "chair", "fast", 30.0),
            ("b", "chair", "mipnerf", 35.0),
            ("c", "lego", "fast", 31.0),
            ("d", "lego", "mipnerf", 29.0),
        ]
    ]
    (table,) = paper_tables([read_result(run) for run in runs], bold=True)
    assert cells(table, 0, 1, 2)[4:] == [("mean", "fast", "30.50"), ("mean", "mipnerf", "32.00")]
    assert {place for place in table.bold if place[1] == 2} == {(1, 2), (2, 2), (5, 2)}
    # What is equal is equally good.
    assert {place for place in table.bold if place[1] == 3} == {(row, 3) for row in range(6)}
    assert table.rules == {4}


def test_less_is_better_of_errors(tmp_path):
    better = [dataclasses.replace(x, flip=0.05) for x in scores(30.0)]
    runs = [
        evaluated(tmp_path / "a", "chair", scores(30.0)),
        evaluated(tmp_path / "b", "chair", better),
    ]
    (table,) = paper_tables([read_result(run) for run in runs], bold=True)
    assert cells(table, 0, 1) == [("chair", "a"), ("chair", "b")]
    assert {row for row, column in table.bold if column == 4} == {1}


def test_nothing_is_bold_without_a_rival(tmp_path):
    runs = [
        evaluated(tmp_path / "a", "chair", scores(30.0)),
        evaluated(tmp_path / "b", "lego", scores(34.0)),
    ]
    (table,) = paper_tables([read_result(run) for run in runs], bold=True)
    assert table.bold == frozenset()


# --- Of several sizes


def test_scales_by_metrics(tmp_path):
    run = evaluated(tmp_path / "a", "chair", scores(30.0, count=3, scales=4))
    (table,) = paper_tables([read_result(run)])
    assert list(table.columns)[:3] == ["scene", "scale", "PSNR ↑"]
    assert cells(table, 1, 2) == [
        ("full", "30.00"),
        ("1/2", "32.00"),
        ("1/4", "34.00"),
        ("1/8", "36.00"),
        ("mean", "33.00"),
    ]


def test_scales_over_scenes(tmp_path):
    runs = [
        evaluated(tmp_path / "a", "chair", scores(30.0, scales=2)),
        evaluated(tmp_path / "b", "lego", scores(34.0, scales=2)),
    ]
    (table,) = paper_tables([read_result(run) for run in runs])
    assert cells(table, 0, 1, 2)[6:] == [
        ("mean", "full", "32.00"),
        ("mean", "1/2", "34.00"),
        ("mean", "mean", "33.00"),
    ]
    assert table.rules == {3, 6}


def test_runs_of_both_kinds_make_two_tables(tmp_path):
    runs = [
        evaluated(tmp_path / "a", "chair", scores(30.0)),
        evaluated(tmp_path / "b", "chair", scores(34.0, scales=2), preset="other"),
    ]
    single, several = paper_tables([read_result(run) for run in runs])
    assert len(single.rows) == 1 and len(several.rows) == 3


# --- Of one run


def test_report_of_one_run(tmp_path):
    run = evaluated(
        tmp_path / "a", "chair", [*scores(30.0, scales=2), *scores(32.0, scales=2)], speed="slow"
    )
    metrics = read_result(run).metrics
    table = metric_table(metrics)
    assert cells(table, 0, 2, 3)[:3] == [
        ("800x800", "float", "31.00 ± 1.00"),
        ("400x400", "float", "33.00 ± 1.00"),
        ("all", "float", "32.00 ± 1.41"),
    ]
    text = run.report.read_text()
    assert "4 of 4 test pictures" in text and "- speed: slow" in text
    assert text.count("./test/r_0") == 4 and "31.00 ± 1.00" in text


# --- Reading


def test_folder_that_is_no_run(tmp_path):
    with pytest.raises(FileError, match="not a run folder"):
        read_result(open_run(tmp_path))


def test_run_that_was_never_evaluated(tmp_path):
    run = open_run(tmp_path / "run")
    run.save_config(FitConfig(), data="/data/chair")
    with pytest.raises(FileError, match="was not evaluated; `scenegraph eval .*run` does that"):
        read_result(run)


def test_split_that_was_not_evaluated(tmp_path):
    run = evaluated(tmp_path / "run", "chair", scores(30.0))
    with pytest.raises(FileError, match="on the val pictures; `scenegraph eval .*run --split val`"):
        read_result(run, "val")


def test_splits_do_not_overwrite_each_other(tmp_path):
    run = evaluated(tmp_path / "run", "chair", scores(30.0))
    evaluated(tmp_path / "run", "chair", scores(40.0), split="train")
    assert read_result(run, "test").metrics["psnr"] == 30.0
    assert read_result(run).metrics["psnr"] == read_result(run, "train").metrics["psnr"] == 40.0


def test_metrics_of_an_earlier_version(tmp_path):
    run = evaluated(tmp_path / "run", "chair", scores(30.0))
    write_json(run.metrics, {"psnr": 30.0, "protocol": {}})
    with pytest.raises(FileError, match="metrics.json lacks .* `scenegraph eval .*run` writes it"):
        read_result(run)


def test_data_set_made_on_the_spot_is_named_after_its_run(tmp_path):
    run = evaluated(tmp_path / "first", "chair", scores(30.0), data=str(tmp_path / "first/data"))
    assert read_result(run).scene == "first"


def test_what_to_know_before_numbers_are_compared(tmp_path):
    runs = [
        evaluated(tmp_path / "a", "chair", scores(30.0), missing={"lpips": "no weights"}),
        evaluated(tmp_path / "b", "lego", scores(30.0), of=25, downscale=4),
    ]
    assert cautions([read_result(run) for run in runs]) == [
        "the runs differ in downscale (a: 1, b: 4): their numbers cannot be compared",
        "b: 1 of 25 pictures; `scenegraph eval` scores them all",
        "a: no LPIPS (no weights)",
    ]
