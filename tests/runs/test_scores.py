"""What the scores of pictures come to."""

import dataclasses
import json
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.io import FileError, MissingExtra
from scenegraph.runs import compare, find_measures, mean_of_means, Measures, Scores, summary
from scenegraph.runs._report import report
from support.helpers import assert_close


ONE = Scores("a", 20.0, 0.5, 19.0, 0.4, 0.1, 0.3, 0.2, 0.4, (8, 6))
OTHER = Scores("b", 30.0, 0.7, 29.0, 0.6, 0.3, 0.1, 0.4, 0.2, (8, 6))


def halved(scores: Scores) -> Scores:
    width, height = scores.size
    return dataclasses.replace(scores, psnr=scores.psnr + 4, size=(width // 2, height // 2))


def average(psnr: float, ssim: float, lpips: float) -> float:
    """The geometric mean of three errors, by a cube root."""
    return (10 ** (-psnr / 10) * (1 - ssim) ** 0.5 * lpips) ** (1 / 3)


def test_summary_has_means_deviations_and_every_picture():
    metrics = summary([ONE, OTHER], {"split": "test"}, {"speed": "no clock"})
    means = {"psnr": 25.0, "ssim": 0.6, "psnr_8bit": 24.0, "ssim_8bit": 0.5}
    means |= {"flip": 0.2, "lpips": 0.2, "flip_8bit": 0.3, "lpips_8bit": 0.3}
    assert {name: metrics[name] for name in means} == pytest.approx(means)
    deviations = {"psnr": 5.0, "ssim": 0.1, "flip": 0.1, "lpips_8bit": 0.1}
    assert {name: metrics["std"][name] for name in deviations} == pytest.approx(deviations)
    for image, score in zip(metrics["per_image"], [ONE, OTHER], strict=True):
        assert {name: image[name] for name in means} == {n: getattr(score, n) for n in means}
        assert image["name"] == score.name and image["size"] == [8, 6]
    assert json.loads(json.dumps(metrics)) == metrics
    assert metrics["protocol"] == {"split": "test"} and metrics["missing"] == {"speed": "no clock"}


def test_average_error_is_that_of_the_means():
    metrics = summary([ONE, OTHER], {})
    assert metrics["average"] == pytest.approx(average(25.0, 0.6, 0.2), rel=1e-5)
    assert metrics["average_8bit"] == pytest.approx(average(24.0, 0.5, 0.3), rel=1e-5)
    assert metrics["per_image"][0]["average"] == pytest.approx(average(20.0, 0.5, 0.3), rel=1e-5)
    of_images = [image["average"] for image in metrics["per_image"]]
    assert metrics["std"]["average"] == pytest.approx(np.std(of_images))


def test_published_average_of_published_means():
    """Of the notebook that the published code prints its tables with."""
    single = {"psnr": 33.085, "ssim": 0.9605, "lpips": 0.0425, "flip": None}
    assert round(mean_of_means([single])["average"], 4) == 0.0161
    psnr, ssim = [32.634, 34.350, 35.505, 35.636], [0.9578, 0.9703, 0.9786, 0.9834]
    lpips = [0.0469, 0.0260, 0.0168, 0.0120]
    scales = [
        {"psnr": p, "ssim": s, "lpips": x, "flip": None}
        for p, s, x in zip(psnr, ssim, lpips, strict=True)
    ]
    assert round(mean_of_means(scales)["average"], 4) == 0.0114


def test_every_size_has_its_own_means():
    pictures = [halved(ONE), ONE, halved(OTHER), OTHER]
    metrics = summary(pictures, {})
    full, half = metrics["scales"]
    assert [full["scale"], half["scale"]] == ["full", "1/2"]
    assert [full["size"], half["size"]] == [[8, 6], [4, 3]]
    assert full["pictures"] == half["pictures"] == 2
    assert full["mean"]["psnr"] == 25.0 and half["mean"]["psnr"] == 29.0 and metrics["psnr"] == 27.0
    assert half["std"]["psnr"] == 5.0
    assert half["mean"]["average"] == pytest.approx(average(29.0, 0.6, 0.2), rel=1e-5)


@pytest.mark.parametrize(
    ("sizes", "labels"),
    [
        ([(801, 600), (400, 300), (200, 150), (100, 75)], ["full", "1/2", "1/4", "1/8"]),
        ([(80, 60), (60, 80)], ["80x60", "60x80"]),
        ([(80, 60), (56, 42)], ["80x60", "56x42"]),
        ([(80, 60)], ["full"]),
    ],
)
def test_names_of_sizes(sizes, labels):
    pictures = [dataclasses.replace(ONE, size=size) for size in sizes]
    assert [scale["scale"] for scale in summary(pictures, {})["scales"]] == labels


def test_what_some_pictures_lack_has_no_mean():
    lacking = dataclasses.replace(OTHER, flip=None, ssim=float("nan"))
    metrics = summary([ONE, lacking], {})
    assert metrics["psnr"] == 25.0
    assert metrics["flip"] is metrics["ssim"] is metrics["average"] is None
    assert metrics["std"]["flip"] is metrics["std"]["ssim"] is None
    assert metrics["per_image"][1]["ssim"] is None and metrics["average_8bit"] is not None


def test_perfect_pictures():
    perfect = Scores("a", np.inf, 1.0000001, np.inf, 1.0, 0.0, 0.0, 0.0, 0.0, (8, 6))
    metrics = summary([perfect, perfect], {})
    assert metrics["psnr"] == np.inf and metrics["average"] == 0
    assert metrics["std"]["psnr"] is None


# --- What is measured


def test_measures_see_the_floating_and_the_rounded_picture():
    def difference(image, truth):
        return float(jnp.max(jnp.abs(image - truth)))

    image, truth = sg.Image(jnp.full((20, 16, 3), 1.101)), sg.Image(jnp.ones((20, 16, 3)))
    scores = compare("name", image, truth, Measures(flip=difference, lpips=difference))
    assert scores.flip == scores.lpips == pytest.approx(0.101, rel=1e-4)
    assert scores.flip_8bit == scores.lpips_8bit == 0
    assert scores.size == (16, 20)


def test_measures_see_srgb_numbers():
    linear = sg.Image(jnp.full((12, 12, 3), 0.214), space=sg.images.Linear())
    encoded = sg.Image(jnp.full((12, 12, 3), 0.5))
    seen = []
    measure = Measures(flip=lambda image, truth: seen.append((image, truth)) or 0.0)
    compare("name", linear, encoded, measure)
    np.testing.assert_allclose(seen[0][0], seen[0][1], atol=1e-3)


def test_lpips_of_pictures_that_are_too_small_is_not_a_number():
    tiny = sg.Image(jnp.ones((15, 40, 3)))
    scores = compare("name", tiny, tiny, Measures(lpips=lambda *_: 0.0))
    assert np.isnan(scores.lpips) and scores.record()["lpips"] is None


def test_photographs_have_a_figure_with_corrected_colours():
    """Those with an opacity are rendered pictures, and have none."""
    colors = jnp.asarray(np.random.default_rng(0).uniform(size=(14, 12, 3)), jnp.float32)
    image, truth = sg.Image(colors), sg.Image(0.5 * colors + 0.1)
    score = compare("name", image, truth)
    assert score.psnr < 20 < 60 < score.psnr_corrected
    assert compare("name", image, sg.Image(colors, alpha=colors[..., 0])).psnr_corrected is None
    metrics = summary([score, score], {"split": "test", "pictures": 2, "of": 2})
    assert_close(metrics["psnr_corrected"], score.psnr_corrected)
    assert "| colour-corrected |" in report(metrics)


def test_measures_that_cannot_be_had_are_named_with_the_reason(monkeypatch):
    monkeypatch.setitem(sys.modules, "flip_evaluator", None)
    monkeypatch.setitem(sys.modules, "lpips", None)
    found = find_measures()
    assert found.flip is None and found.lpips is None
    assert "pip install scenegraph[metrics]" in found.missing["flip"]
    assert "pip install scenegraph[lpips]" in found.missing["lpips"]
    assert "LPIPS" in found.missing["average"]


def test_lpips_may_be_left_out():
    found = find_measures(lpips=False)
    assert found.lpips is None and found.missing["lpips"] == "LPIPS was not requested"


def test_weights_that_are_named_have_to_be_there(tmp_path):
    """Without the packages it is these that are missing."""
    with pytest.raises(
        (FileError, MissingExtra), match=r"none.pth|pip install scenegraph\[lpips\]"
    ):
        find_measures(lpips_weights=tmp_path / "none.pth")
