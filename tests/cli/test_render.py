"""`scenegraph render`: every path, every file, and what is refused."""

import json
import pathlib
import shutil
from importlib.util import find_spec

import imageio.v3 as iio
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.cli import main
from scenegraph.images import as_bytes, published_suite, visualise
from scenegraph.io import read_json, read_picture
from scenegraph.rendering._film import Film
from scenegraph.runs import open_run, PATHS, summarise_cameras
from support.blender_folder import eyes, look_at, write_ball
from support.command_line import refused
from support.helpers import assert_close


BLOB = sg.Volume(sg.fields.GaussianBlob([0.1, 0.0, 0.1], 0.2, 30.0, [0.9, 0.4, 0.1]))
SCENE = sg.Scene(sg.Group(blob=BLOB), background=[1.0, 1, 1], integrator=sg.Hierarchical((8,)))
ALL = ["rgb", "depth", "median-depth", "opacity", "normals"]
MORE = ["albedo", "uv", "positions", "surfaces"]
needs_exr = pytest.mark.skipif(not find_spec("OpenEXR"), reason="needs the extra `exr`")
needs_video = pytest.mark.skipif(not find_spec("imageio_ffmpeg"), reason="needs the extra `video`")


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> pathlib.Path:
    return write_ball(tmp_path_factory.mktemp("data"), {"train": 6, "test": 3})


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory) -> pathlib.Path:
    """A run folder, as a fit would leave it. Tests that change it take a copy."""
    run = open_run(tmp_path_factory.mktemp("run"))
    config = sg.preset("tiny")
    run.save_config(config, data=str(data), preset="tiny")
    sg.save(SCENE, run.folder / "scene.sg")
    sg.save(summarise_cameras(config.data.load(data)), run.folder / "cameras.sg")
    return run.folder


@pytest.fixture
def run(finished, tmp_path) -> pathlib.Path:
    return pathlib.Path(shutil.copytree(finished, tmp_path / "run"))


def render(*arguments) -> None:
    assert main(["render", *map(str, arguments)]) == 0


def names(folder: pathlib.Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def numbered(name: str, count: int) -> list[str]:
    return [name.format(number) for number in range(count)]


# --- Paths


@pytest.mark.parametrize("path", [path for path in PATHS if path != "data"])
def test_every_path(finished, tmp_path, path):
    render(finished, "--path", path, "--frames", 3, "--out", tmp_path / "film")
    frames = numbered("frame_{:03d}.png", 3)
    assert names(tmp_path / "film") == ["film.json", *frames]
    pictures = [read_picture(tmp_path / "film" / name) for name in frames]
    assert all(picture.shape == (16, 16, 3) for picture in pictures)
    assert not np.array_equal(pictures[0], pictures[1])


def test_views_are_those_of_the_split(finished, data, tmp_path):
    render(finished, "--path", "views", "--split", "train", "--out", tmp_path / "film")
    assert len(names(tmp_path / "film")) == 1 + 6
    views = sg.load_blender(data, "train")
    expected = as_bytes(sg.render(SCENE, views.camera(4)))
    assert np.array_equal(read_picture(tmp_path / "film" / "frame_004.png"), expected)


def test_some_of_the_views(finished, data, tmp_path):
    render(finished, "--path", "views", "--frames", 2, "--out", tmp_path / "film")
    assert len(names(tmp_path / "film")) == 1 + 2
    second = as_bytes(sg.render(SCENE, sg.load_blender(data, "test").camera(1)))
    assert np.array_equal(read_picture(tmp_path / "film" / "frame_001.png"), second)


def written(folder, content):
    path = folder / "path.json"
    path.write_text(json.dumps(content))
    return path


def test_file_of_cameras(finished, tmp_path):
    """A still life: the size and the speed are the file's."""
    cameras = [
        {"camera_to_world": np.ravel(look_at(eye)).tolist(), "fov": 40} for eye in eyes(2, 3.0)
    ]
    size = {"render_width": 12, "render_height": 8}
    path = written(tmp_path, {"camera_path": cameras, "fps": 5} | size)
    render(finished, "--path", path, "--out", tmp_path / "film.gif")
    film = iio.imread(tmp_path / "film.gif")
    assert film.shape == (2, 8, 12, 3)
    assert iio.immeta(tmp_path / "film.gif")["duration"] == 200
    render(finished, "--path", path, "--out", tmp_path / "film.gif", "--fps", 10, "--width", 24)
    assert iio.imread(tmp_path / "film.gif").shape == (2, 16, 24, 3)
    assert iio.immeta(tmp_path / "film.gif")["duration"] == 100


def test_runs_of_earlier_versions_look_at_their_data(run, data, tmp_path, capsys):
    memory = sg.load(run / "cameras.sg")
    del memory["poses"]
    sg.save(memory, run / "cameras.sg")
    render(run, "--path", "ellipse", "--frames", 1, "--out", tmp_path / "still.png")
    render(run, "--frames", 1, "--out", tmp_path / "orbit.png")
    settings = read_json(run / "config.json")
    (run / "config.json").write_text(json.dumps(settings | {"data": str(tmp_path / "gone")}))
    render(run, "--frames", 1, "--out", tmp_path / "orbit.png")
    refused(["render", run, "--path", "ellipse"], capsys, "gone")


# --- What is shown


def test_side_by_side_and_apart(finished, tmp_path):
    flags = ["--path", "views", "--show", *ALL]
    render(finished, *flags, "--out", tmp_path / "row")
    render(finished, *flags, "--out", tmp_path / "apart", "--separate")
    expected = [name for what in ALL for name in numbered(what + "_{:03d}.png", 3)]
    assert names(tmp_path / "apart") == sorted(["film.json", *expected])
    for number in range(3):
        row = read_picture(tmp_path / "row" / f"frame_{number:03d}.png")
        assert row.shape == (16, 5 * 16 + 4 * 2, 3)
        for place, what in enumerate(ALL):
            part = read_picture(tmp_path / "apart" / f"{what}_{number:03d}.png")
            assert np.array_equal(part, row[:, 18 * place : 18 * place + 16])


def test_colours_of_depth_are_those_of_the_whole_film():
    """One camera is twice as far away: alone, its picture would have all colours too."""
    near, far = (
        sg.PerspectiveCamera.look_at([0, y, 0.1], [0, 0, 0.1], [0, 0, 1], 0.3, 16, 16)
        for y in (-2.0, -4.0)
    )
    film = Film(SCENE, [near, far], ("depth",))
    images = [film.render_frame(0), film.render_frame(1)]
    solid = [np.asarray(x.depth)[np.asarray(x.alpha) >= 0.5] for x in images]
    assert film.depths[0] < np.median(solid[0]) < np.median(solid[1]) < film.depths[1]
    assert_close(film.depths, np.percentile(np.concatenate(solid), [1, 99]), 1e-5)
    for image in images:
        expected = visualise(image, "depth", depths=film.depths)
        assert np.array_equal(film.panels(image)[0].rgb, expected.rgb)


@needs_exr
def test_exr_frames_hold_numbers(finished, data, tmp_path):
    import OpenEXR

    flags = ["--path", "views", "--show", *ALL, *MORE, "--format", "exr"]
    render(finished, *flags, "--out", tmp_path / "film")
    assert names(tmp_path / "film") == ["film.json", *numbered("frame_{:03d}.exr", 3)]
    camera = sg.load_blender(data, "test").camera(2)
    outputs = ("normal", "median_depth", "albedo", "uv", "position", "surface")
    image = sg.render(SCENE, camera, outputs=outputs)
    path = str(tmp_path / "film" / "frame_002.exr")
    with OpenEXR.File(path, separate_channels=True) as file:
        found = {name: channel.pixels for name, channel in file.channels().items()}
    light = np.asarray(image.rgb, float)
    light = np.where(light <= 0.04045, light / 12.92, ((light + 0.055) / 1.055) ** 2.4)
    assert_close(np.stack([found[x] for x in "RGB"], axis=-1), light, 1e-4)
    normals = np.stack([found[f"normal.{x}"] for x in "XYZ"], axis=-1)
    positions = np.stack([found[f"position.{x}"] for x in "XYZ"], axis=-1)
    uv = np.stack([found[f"uv.{x}"] for x in "UV"], axis=-1)
    albedo = np.stack([found[f"albedo.{x}"] for x in "RGB"], axis=-1)
    assert_close(albedo, image.space.to_linear(image.albedo), 1e-4)
    for numbers, name in (
        (found["Z"], "depth"),
        (found["median.Z"], "median_depth"),
        (found["opacity.A"], "alpha"),
        (normals, "normal"),
        (positions, "position"),
        (uv, "uv"),
        (found["surface.ID"], "surface"),
    ):
        assert_close(numbers, getattr(image, name), 1e-6)
    assert len(found) == 18


def test_suite(finished, data):
    render(finished, "--suite", "--split", "test")
    folder = finished / "test_preds"
    kinds = ["color", "depth", "depth_mod", "depth_normals"]
    expected = [name for kind in kinds for name in numbered(kind + "_{:03d}.png", 3)]
    expected += [x for kind in ("distance", "acc") for x in numbered(kind + "_{:03d}.tiff", 3)]
    assert names(folder) == sorted(["film.json", *expected])
    image = sg.render(SCENE, sg.load_blender(data, "test").camera(1))
    assert np.array_equal(read_picture(folder / "color_001.png"), as_bytes(image))
    for name, numbers in (("distance", image.depth), ("acc", image.alpha)):
        assert_close(iio.imread(folder / f"{name}_001.tiff", plugin="pillow"), numbers, 1e-6)
    for name, rgb in published_suite(np.asarray(image.depth), np.asarray(image.alpha)).items():
        assert_close(read_picture(folder / f"{name}_001.png"), np.round(255 * rgb), 0, 1)


# --- Files


@needs_video
@pytest.mark.filterwarnings("ignore:os.fork", "ignore:unclosed file:ResourceWarning")
def test_mp4(finished, tmp_path):
    flags = ["--frames", 3, "--separate", "--show", "rgb", "opacity", "--width", 33]
    render(finished, *flags, "--out", tmp_path / "x.mp4")
    assert names(tmp_path) == ["x_opacity.mp4", "x_rgb.mp4"]
    assert iio.imread(tmp_path / "x_rgb.mp4", plugin="FFMPEG").shape == (3, 34, 34, 3)


@pytest.mark.parametrize(
    "flags, size", [("--width 8", 8), ("--height 24", 24), ("--scale 0.5", 8), ("", 16)]
)
def test_sizes(finished, tmp_path, flags, size):
    render(finished, "--frames", 1, *flags.split(), "--out", tmp_path / "x.png")
    assert read_picture(tmp_path / "x.png").shape == (size, size, 3)


def test_chunks_do_not_matter(finished, tmp_path):
    for name, flags in (("a.png", []), ("b.png", ["--chunk", "100"])):
        render(finished, "--frames", 1, *flags, "--out", tmp_path / name)
    assert np.array_equal(read_picture(tmp_path / "a.png"), read_picture(tmp_path / "b.png"))


def test_samples_of_a_pixel(tmp_path):
    """As rendered from Python, which a ball of a few pixels tells from one cone."""
    ball = sg.Surface(sg.Sphere([0.0, 0.0, 0.0], 0.4), [0.9, 0.4, 0.1])
    scene = sg.Scene(sg.Group(ball=ball, cam=CAMERA))
    sg.save(scene, tmp_path / "ball.sg")
    render(tmp_path / "ball.sg", "--samples-per-pixel", 4)
    picture = read_picture(tmp_path / "ball.png")
    assert np.array_equal(picture, as_bytes(sg.render(scene, "cam", samples_per_pixel=4)))
    assert not np.array_equal(picture, as_bytes(sg.render(scene, "cam")))


def test_random_paths(tmp_path, capsys):
    """As rendered from Python, in two passes; light from one wall falls on another."""
    floor = sg.Surface(sg.Plane(), sg.Lambert([0.5, 0.5, 0.5]))
    lamp = sg.PointLight([1.0, -1.0, 2.0], [9.0, 9.0, 9.0])
    scene = sg.Scene(sg.Group(floor=floor, lamp=lamp, cam=CAMERA))
    sg.save(scene, tmp_path / "floor.sg")
    how = "--integrator", "path", "--samples", 20, "--bounces", 1
    render(tmp_path / "floor.sg", *how)
    expected = sg.rendering.render_passes(scene, "cam", sg.Path(samples=20, bounces=1))
    assert np.array_equal(read_picture(tmp_path / "floor.png"), as_bytes(expected))
    assert "passes" in capsys.readouterr().err
    both = ["render", tmp_path / "floor.sg", *how, "--samples-per-pixel", 4]
    refused(both, capsys, "leave --samples-per-pixel out")


def test_frames_that_are_there_are_kept(finished, tmp_path, capsys):
    folder = tmp_path / "film"
    render(finished, "--frames", 3, "--out", folder)
    whole = read_picture(folder / "frame_001.png")
    (folder / "frame_001.png").unlink()
    (folder / "frame_002.png").write_bytes(b"mine")
    render(finished, "--frames", 3, "--out", folder)
    assert "2 of 3 frames are there already" in capsys.readouterr().err
    assert np.array_equal(read_picture(folder / "frame_001.png"), whole)
    assert (folder / "frame_002.png").read_bytes() == b"mine"
    render(finished, "--frames", 3, "--out", folder, "--overwrite")
    assert read_picture(folder / "frame_002.png").shape == (16, 16, 3)


def test_frames_of_another_film_are_not_mixed(finished, tmp_path, capsys):
    folder = tmp_path / "film"
    render(finished, "--frames", 2, "--out", folder)
    before = (folder / "frame_000.png").read_bytes()
    for change in (["--path", "spiral"], ["--show", "depth"], ["--samples-per-pixel", 4]):
        arguments = ["render", finished, "--frames", 2, "--out", folder, *change]
        refused(arguments, capsys, str(folder), "another film", "--overwrite")
    assert (folder / "frame_000.png").read_bytes() == before
    (folder / "film.json").unlink()
    refused(["render", finished, "--frames", 2, "--out", folder], capsys, "another film")
    render(finished, "--frames", 2, "--out", folder, "--width", 8, "--overwrite")
    assert read_picture(folder / "frame_000.png").shape == (8, 8, 3)


# --- Scenes that are no runs


def saved(folder, **cameras):
    scene = sg.Scene(sg.Group(blob=BLOB, **cameras), integrator=sg.Hierarchical((8,)))
    sg.save(scene, folder / "mine.sg")
    return folder / "mine.sg", scene


CAMERA = sg.PerspectiveCamera(sg.Pose(look_at([2.0, 1.0, 1.0])), 20.0, 16, 12, near=1, far=9)


def test_saved_scene(tmp_path):
    path, scene = saved(tmp_path, left=CAMERA, right=sg.Transformed(CAMERA, sg.Similarity()))
    render(path, "--camera", "left")
    expected = as_bytes(sg.render(scene, "left"))
    assert np.array_equal(read_picture(tmp_path / "mine.png"), expected)
    cameras = written(tmp_path, [look_at(eye).tolist() for eye in eyes(2, 3.0)])
    render(path, "--camera", "left", "--path", cameras)
    assert iio.imread(tmp_path / "mine.gif").shape == (2, 12, 16, 3)


def test_the_only_camera_need_not_be_named(tmp_path):
    path, _ = saved(tmp_path, cam=CAMERA)
    render(path, "--out", tmp_path / "x.png", "--scale", 2)
    assert read_picture(tmp_path / "x.png").shape == (24, 32, 3)


def test_which_camera(tmp_path, capsys):
    path, _ = saved(tmp_path, left=CAMERA, right=CAMERA)
    refused(["render", path], capsys, "--camera", "left, right")
    refused(["render", path, "--camera", "middle"], capsys, "'middle'", "left, right")
    refused(["render", path, "--camera", "left", "--path", "orbit"], capsys, ".json")
    path, _ = saved(tmp_path)
    refused(["render", path], capsys, "there is none")


# --- What is refused


@pytest.mark.parametrize(
    "flags, parts",
    [
        ("--path elipse", ["'elipse'", "did you mean 'ellipse'", "views", ".json"]),
        ("--path none.json", ["none.json"]),
        ("--path views --split holdout", ["transforms_holdout.json"]),
        ("--path views --frames 9", ["there are 3 cameras", "9"]),
        ("--path interpolate --keyframes 0", ["keyframe"]),
        ("--frames 0", ["--frames", "between 1 and"]),
        ("--fps 0", ["--fps (`fps`) must be between 0 and 1,000"]),
        ("--width 8 --scale 2", ["--width, --height and --scale", "one of them"]),
        ("--scale -1", ["--scale (`scale`) must be between 0 and"]),
        ("--chunk 0", ["chunk"]),
        ("--samples-per-pixel 8", ["got 8", "4 and 9"]),
        ("--width 0", ["--width (`width`) must be between 1 and 65,536; got 0"]),
        ("--scale nan", ["--scale", "got nan"]),
        ("--out none/film.gif", ["--out", "no folder none"]),
        ("--out film.avi", ["film.avi", ".gif, .mp4, .png, .exr, or be a folder"]),
        ("--show depth --color-map turbbo", ["'turbbo'", "turbo"]),
    ],
)
def test_what_is_refused(finished, tmp_path, monkeypatch, capsys, flags, parts):
    monkeypatch.chdir(tmp_path)
    out = [] if "--out" in flags else ["--out", "x.gif"]
    refused(["render", finished, *flags.split(), *out], capsys, *parts)
    assert not list(tmp_path.iterdir())


def test_films_have_one_size(finished, data, tmp_path, capsys):
    def camera(size):
        return sg.PerspectiveCamera(sg.Pose(look_at([2.0, 1.0, 1.0])), 20.0, size, size)

    from scenegraph.rendering._film_files import write_film

    film = Film(SCENE, [camera(8), camera(16)])
    with pytest.raises(ValueError, match="2 sizes"):
        write_film(film, tmp_path / "x.gif", frames_per_second=20.0, separate=False)


@pytest.mark.parametrize("out, extra", [("x.exr", "OpenEXR"), ("x.mp4", "imageio_ffmpeg")])
def test_missing_extras_are_said_before_anything_is_rendered(
    finished, tmp_path, monkeypatch, capsys, out, extra
):
    monkeypatch.setitem(__import__("sys").modules, extra, None)
    monkeypatch.setattr(Film, "render_frame", lambda *_: pytest.fail("a frame was rendered"))
    refused(["render", finished, "--out", tmp_path / out], capsys, "pip install scenegraph[")
