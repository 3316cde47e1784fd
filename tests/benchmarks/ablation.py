"""What cones are good for: one small network on pictures of four sizes, with and without them."""

import dataclasses
import json
import os
import pathlib
import tempfile
import time
from typing import Any

import jax
import numpy as np
from measure import report

import scenegraph as sg
from scenegraph.data import convert_multiscale
from scenegraph.fitting import fit
from scenegraph.io import read_json, write_json, write_picture
from scenegraph.runs import evaluate
from scenegraph.settings import FitConfig, prepare, preset


MARKS = "<!-- ablation: begin -->\n", "<!-- ablation: end -->\n"
NAMES = {
    (True, True): "cones, area weights",
    (True, False): "cones",
    (False, True): "points, area weights",
    (False, False): "points",
}


def main(
    steps: int = 1000,
    batch: int = 1024,
    size: int = 80,
    levels: int = 4,
    views: int = 25,
    degrees: int = 16,
    scene: str = "chair",
    out: pathlib.Path = pathlib.Path("docs/benchmarks/ablation.json"),
    page: pathlib.Path = pathlib.Path("docs/mipnerf.md"),
) -> None:
    """Fits the same pixels four times, scores every size apart, and writes the page's table."""
    source = pathlib.Path(os.environ["SCENEGRAPH_DATA"]) / scene
    base = preset("tiny", steps=steps, batch_size=batch, max_degree=degrees, delay_steps=50)
    figures: dict[str, Any] = {"scene": scene, "test_views": views, "fits": []}
    figures["settings"] = dataclasses.asdict(base)
    with tempfile.TemporaryDirectory() as folder:
        data = _convert(source, pathlib.Path(folder), size, levels)
        for (integrated, area_weights), name in NAMES.items():
            config = base.replace(integrated=integrated, area_weights=area_weights)
            row = {"name": name, "integrated": integrated, "area_weights": area_weights}
            row |= _fit(config, data, levels, views)
            figures["fits"].append(row)
            print(json.dumps(row), flush=True)
    report(out, figures)
    _write_table(page, figures["fits"])


def _convert(source: pathlib.Path, folder: pathlib.Path, size: int, levels: int) -> pathlib.Path:
    """A smaller Blender data set, and a multiscale one made of that."""
    for split in ("train", "test"):
        listing = read_json(source / f"transforms_{split}.json")
        full = sg.load_blender(source, split)
        small = sg.load_blender(source, split, downscale=int(full.widths[0]) // size)
        (folder / "blender" / split).mkdir(parents=True)
        rgba = np.round(255 * np.asarray(small.pixels)).astype(np.uint8)
        pictures = rgba.reshape(small.frames, int(small.heights[0]), int(small.widths[0]), -1)
        for index, frame in enumerate(listing["frames"]):
            frame["file_path"] = f"{split}/r_{index}"
            write_picture(folder / "blender" / split / f"r_{index}.png", pictures[index])
        write_json(folder / "blender" / f"transforms_{split}.json", listing)
    convert_multiscale(folder / "blender", folder / "multiscale", levels)
    return folder / "multiscale"


def _fit(config: FitConfig, data: pathlib.Path, levels: int, views: int) -> dict[str, Any]:
    """PSNR and SSIM at every size, and how long it took."""
    train, test = (config.data.load(data, split) for split in ("train", "test"))
    begin = time.monotonic()
    parts = prepare(config, train)
    result = fit(
        parts.scene,
        parts.batches,
        optimizer=parts.optimizer,
        loss=parts.loss,
        steps=config.steps,
        key=parts.key,
    )
    jax.block_until_ready(result.scene)
    fitted = time.monotonic()
    chosen = np.unique(np.linspace(0, test.frames // levels - 1, views).round().astype(int))
    frames = (chosen[:, None] * levels + np.arange(levels)).reshape(-1)
    scores = evaluate(result.scene, test, frames=frames.tolist())
    each = {name: [getattr(score, name) for score in scores] for name in ("psnr", "ssim")}
    means = {name: np.reshape(x, (-1, levels)).mean(axis=0) for name, x in each.items()}
    # SSIM has no value for pictures that are smaller than its window.
    known = {name: [x if np.isfinite(x) else None for x in row] for name, row in means.items()}
    widths = test.widths[:levels].tolist()
    return {
        "widths": widths,
        **known,
        "fit_seconds": fitted - begin,
        "score_seconds": time.monotonic() - fitted,
    }


def _write_table(page: pathlib.Path, fits: list[dict[str, Any]]) -> None:
    """Replaces the table between the marks in a page."""
    widths = [f"{width} px" for width in fits[0]["widths"]]
    lines = [["PSNR in dB", *widths], ["---"] * (1 + len(widths))]
    lines += [[row["name"], *(f"{x:.2f}" for x in row["psnr"])] for row in fits]
    table = "".join("| " + " | ".join(line) + " |\n" for line in lines)
    text, (begin, end) = page.read_text(), MARKS
    head, rest = text.split(begin)
    page.write_text(head + begin + "\n" + table + "\n" + end + rest.split(end)[1])


if __name__ == "__main__":
    import tyro

    tyro.cli(main)
