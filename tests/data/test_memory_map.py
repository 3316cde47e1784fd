"""Pictures in a file: the same batches as in memory, made once, and made again when they change."""

import dataclasses
import os
import pathlib
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg
from scenegraph.data import (
    AllImages,
    Annealing,
    find_bounds,
    find_empty_cells,
    Random,
    RayBatches,
    Sightings,
    SingleImage,
    Solid,
)
from scenegraph.io import FileError, MappedArray
from scenegraph.pixels import gather_pixels, PixelReader, pixels_through, Prefetcher
from scenegraph.pixels._pixel_store import free_memory
from support.blender_folder import write_ball


KEY = jax.random.key(0)
CORNERS = np.full(3, -0.5), np.full(3, 0.5)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> pathlib.Path:
    monkeypatch.setenv("SCENEGRAPH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "pixels"


@pytest.fixture
def folder(tmp_path) -> pathlib.Path:
    return write_ball(tmp_path / "data", {"train": 3}, size=12)


def both(folder, **settings) -> list[sg.Views]:
    return [sg.load_blender(folder, memory_map=mapped, **settings) for mapped in (False, True)]


def files(cache) -> set[str]:
    return {path.name for path in cache.glob("*.bin")}


def same(first, second) -> bool:
    return bool(eqx.tree_equal(first, second))


# --- The same pixels, and the same batches


@pytest.mark.parametrize("settings", [{}, {"downscale": 2}])
def test_file_holds_what_memory_holds(folder, settings):
    in_memory, in_file = both(folder, **settings)
    assert isinstance(in_file.pixels, MappedArray)
    assert in_file.pixels.dtype == in_memory.pixels.dtype
    np.testing.assert_array_equal(in_file.pixels[:], in_memory.pixels)
    some = jnp.array([5, 200, 3])[: len(in_memory.pixels)] % len(in_memory.pixels)
    assert same(in_file.rgba(some), in_memory.rgba(some))
    assert same(in_file.image(1), in_memory.image(1)) and same(
        in_file.camera(2), in_memory.camera(2)
    )
    np.testing.assert_array_equal(find_bounds(in_file), find_bounds(in_memory))
    box = find_bounds(in_memory)
    assert np.array_equal(find_empty_cells(in_file, *box, 8), find_empty_cells(in_memory, *box, 8))


@eqx.filter_jit
def make(batches, seed, step):
    return batches.batch(seed, step)


@eqx.filter_jit
def assemble(batches, drawn, seed, step):
    return batches.assemble(drawn, seed, step)


@pytest.mark.parametrize(
    ("choice", "annealing", "backdrop"),
    [
        ("all", None, Solid()),
        ("all", Annealing(5.0, 10), Random()),
        ("single", None, Random()),
        ("listed", None, Solid()),
        ("sighted", Annealing(5.0, 10), Solid()),
    ],
)
def test_batches_are_the_same_bit_for_bit(folder, choice, annealing, backdrop):
    batches = []
    for views in both(folder, backdrop=backdrop):
        listed = {"all": AllImages(), "single": SingleImage()}.get(choice)
        chosen = listed or pixels_through(views, *CORNERS)
        if choice == "sighted":
            known = Sightings(jnp.arange(0, 400, 7), jax.random.normal(KEY, (58, 3)))
            views, chosen = dataclasses.replace(views, sightings=known), AllImages()
        sighted = 15 if choice == "sighted" else 0
        batches.append(RayBatches(views, 40, chosen, annealing, sighted=sighted))
    in_memory, in_file = batches
    for seed, step in [(0, 0), (2**32 - 1, 7)]:
        numbers = jnp.uint32(seed), jnp.int32(step)
        found = assemble(in_file, in_file.draw(seed, step), *numbers)
        assert same(found, make(in_memory, *numbers))
    assert not same(in_file.draw(0, 0), in_file.draw(0, 1))


class Tint(eqx.Module):
    color: jax.Array


def fitted(views, **changes) -> tuple[sg.FitResult, list]:
    """A short fit of a colour, with every batch that it saw."""
    seen = []

    def loss(tint, state, batch, key):
        jax.debug.callback(lambda *x: seen.append(x), *jax.tree.leaves(batch), ordered=True)
        return jnp.mean((tint.color - batch.rgb) ** 2), None

    settings = {"optimizer": optax.adam(0.01), "steps": 6, "key": KEY, **changes}
    result = sg.fit(Tint(jnp.zeros(3)), RayBatches(views, 40), loss=loss, **settings)
    jax.effects_barrier()
    return result, seen


@pytest.mark.slow
def test_fit_from_a_file_is_that_from_memory(folder):
    (in_memory, one), (in_file, other) = map(fitted, both(folder))
    assert len(one) == len(other) == 6
    for batch, expected in zip(one, other, strict=True):
        for a, b in zip(batch, expected, strict=True):
            np.testing.assert_array_equal(a, b)
    assert same(in_memory.scene, in_file.scene)


@pytest.mark.slow
def test_fit_goes_on_in_the_middle(folder):
    _, views = both(folder)
    _, whole = fitted(views)
    part, _ = fitted(views, steps=3)
    _, rest = fitted(views, state=part.state)
    for batch, expected in zip(rest, whole[3:], strict=True):
        for a, b in zip(batch, expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_more_pixels_than_32_bits_can_count(tmp_path):
    """A file with a hole in it, which takes no room on the disk: 2**31 + 100 pixels."""
    size, count = 2**15, 2**16
    path = tmp_path / "hole.bin"
    with path.open("wb") as file:
        file.truncate(3 * (2 * size * count))
    camera = sg.PerspectiveCamera.look_at([0.0, -3.0, 1.0], [0.0] * 3, [0.0, 0.0, 1.0], 0.7, 4, 3)
    views = sg.Views(
        MappedArray(path, (2 * size * count, 3), np.dtype(np.uint8)),
        sg.pixels.stack_cameras([camera, camera]),
        jnp.full(2, size),
        jnp.full(2, count),
        jnp.ones(2),
    )
    places = PixelReader(RayBatches(views, 64)).draw(0, 0)
    assert places.rows.max() > 2**31 and set(places.frame) == {0, 1}
    expected = (places.frame * np.int64(count) + places.place[:, 1]) * size + places.place[:, 0]
    np.testing.assert_array_equal(places.rows, expected)
    assert views.part(1) == slice(size * count, 2 * size * count)
    assert RayBatches(views, 64).draw(0, 0).values.shape == (64, 3)


# --- The file is made once


def test_file_is_made_once(folder, cache):
    both(folder)
    before = {path: path.stat().st_mtime_ns for path in cache.glob("*.bin*")}
    assert len(before) == 2
    both(folder)
    assert {path: path.stat().st_mtime_ns for path in cache.glob("*.bin*")} == before


def test_file_is_made_again_when_a_picture_changes(folder, cache):
    both(folder)
    before = files(cache)
    picture = folder / "train" / "r_1.png"
    later = picture.stat().st_mtime_ns + 10**9
    os.utime(picture, ns=(later, later))
    both(folder)
    # The old one would never be read again.
    assert len(files(cache)) == 1 and files(cache) != before


def test_other_settings_have_another_file(folder, cache):
    both(folder)
    both(folder, downscale=2)
    assert len(files(cache)) == 2


@pytest.mark.parametrize("part", [".bin", ".bin.json"])
def test_damaged_file_is_made_again(folder, cache, part):
    expected, _ = both(folder)
    (path,) = cache.glob(f"*{part}")
    path.write_bytes(path.read_bytes()[:10])
    again = sg.load_blender(folder, memory_map=True)
    np.testing.assert_array_equal(again.pixels[:], expected.pixels)


def test_nothing_half_made_is_left(folder, cache):
    picture = folder / "train" / "r_2.png"
    picture.write_bytes(picture.read_bytes()[:40])
    with pytest.raises(FileError, match=r"r_2.png.*damaged"):
        sg.load_blender(folder, memory_map=True)
    assert not list(cache.glob("*.part")) and not files(cache)


def test_pictures_of_different_sizes_are_named(folder):
    sg.io.write_picture(folder / "train" / "r_1.png", np.zeros((5, 12, 4), np.uint8))
    for mapped in (False, True):
        with pytest.raises(FileError, match=r"r_1.png has shape \(5, 12, 4\)"):
            sg.load_blender(folder, memory_map=mapped)


def test_disk_without_room_is_said_before(folder, monkeypatch):
    import shutil

    usage = shutil.disk_usage(folder)._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(FileError, match="Free some space there, or name another folder"):
        sg.load_blender(folder, memory_map=True)


# --- When it is made


@pytest.mark.parametrize(("free", "mapped"), [(6911.0, True), (6913.0, False)])
def test_large_pictures_are_left_in_the_file(folder, monkeypatch, free, mapped):
    """Three pictures of 12 x 12 RGBA pixels are 1728 bytes, a quarter of 6912."""
    monkeypatch.setattr("scenegraph.pixels._pixel_store.free_memory", lambda: free)
    assert isinstance(sg.load_blender(folder).pixels, MappedArray) is mapped


def test_free_memory_is_what_the_system_says():
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < free_memory() < total


def test_pictures_of_different_sizes_may_share_a_file(tmp_path):
    sizes, pictures = [(3, 4), (5, 2)], []
    for index, size in enumerate(sizes):
        picture = np.full((*size, 3), index, np.uint8)
        sg.io.write_picture(tmp_path / f"{index}.png", picture)
        pictures.append(picture)
    paths = [tmp_path / "0.png", tmp_path / "1.png"]
    for mapped in (False, True):
        read = pictures.__getitem__
        flat, shapes = gather_pixels(paths, read, memory_map=mapped, one_size=False)
        assert shapes == [(3, 4, 3), (5, 2, 3)]
        np.testing.assert_array_equal(flat[:, 0], [0] * 12 + [1] * 10)


# --- The thread


def test_loader_is_some_steps_ahead():
    made = []
    loader = Prefetcher(lambda number: made.append(number) or -number, ahead=2)
    assert [loader(number) for number in (5, 6)] == [-5, -6]
    loader._pool.submit(lambda: None).result(5)
    assert made == [5, 6, 7, 8]
    loader.close()


def test_loader_passes_errors_on():
    def prepare(number):
        if number == 1:
            raise FileError("gone")

    loader = Prefetcher(prepare)
    loader(0)
    with pytest.raises(FileError, match="gone"):
        loader(1)
    loader.close()


def test_loader_works_while_the_caller_does():
    loader = Prefetcher(lambda number: time.sleep(0.05) or number)
    loader(0)
    time.sleep(0.4)
    begin = time.monotonic()
    assert [loader(number) for number in (1, 2, 3)] == [1, 2, 3]
    assert time.monotonic() - begin < 0.05
    loader.close()


def test_compiled_functions_cannot_read_files(folder):
    _, views = both(folder)
    with pytest.raises(TypeError, match="pixels are in a file"):
        jax.jit(lambda step: RayBatches(views, 4).batch(0, step).rgb)(0)


def test_many_rows_are_read_by_several_threads(tmp_path):
    values = np.arange(60_000, dtype=np.uint8).reshape(20_000, 3)
    array = sg.io.write_mapped(tmp_path / "rows.bin", [values[:5], values[5:]], {})
    rows = np.random.default_rng(0).integers(0, 20_000, (130, 100))
    np.testing.assert_array_equal(array.take(rows), values[rows])
