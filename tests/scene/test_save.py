"""Scene files: nothing is lost, nothing of a strange file is run."""

import collections
import json
import zipfile

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.fields import AbstractField, ConstantFog, MipNerfMLP
from scenegraph.io import FileError, write_archive
from scenegraph.numerics import Frozen
from scenegraph.rays import Medium
from scenegraph.scene import versions
from support.contract_table import NODES, SCENE


def same(a, b) -> bool:
    """Same structure (static fields are part of it) and the same bits."""
    if jax.tree.structure(a) != jax.tree.structure(b):
        return False
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(
        x.dtype == y.dtype and np.asarray(x).tobytes() == np.asarray(y).tobytes() for x, y in pairs
    )


def through_file(tree, folder, **options):
    sg.save(tree, folder / "x.sg")
    return sg.load(folder / "x.sg", **options)


# --- What comes back


def test_frozen_wrappers_are_kept(tmp_path):
    leaves = sg.freeze(SCENE, "net.field", "cam.focal")
    whole = sg.Scene(sg.Group(x=Frozen(NODES[0])), background=[0, 0, 0])
    for tree in (SCENE, leaves, whole, sg.freeze(SCENE)):
        assert same(through_file(tree, tmp_path), tree)


def test_the_picture_is_the_same(tmp_path):
    """The scene says how it is integrated, so it looks the same without a word."""
    loaded = through_file(SCENE, tmp_path)
    before, after = sg.render(SCENE, "cam"), sg.render(loaded, "cam")
    assert np.array_equal(before.rgb, after.rgb) and loaded.integrator == SCENE.integrator


@pytest.mark.parametrize("name", ["softplus", "relu", "sigmoid", "silu", "gelu", "elu", "tanh"])
def test_activations(tmp_path, name):
    function = getattr(jax.nn, name) if name != "tanh" else jnp.tanh
    field = MipNerfMLP(4, 1, view_width=4, density_activation=function, key=jax.random.key(0))
    assert through_file(field, tmp_path).output.density_activation is function


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32", "uint8", "bool"])
def test_number_types(tmp_path, dtype):
    tree = {
        "a": jnp.asarray([0, 1, 2], dtype),
        "b": [jnp.zeros((0, 3), dtype), jnp.ones((), dtype)],
    }
    assert same(through_file(tree, tmp_path), tree)


def test_double_precision(tmp_path, x64):
    tree = ConstantFog(1 / 3, [0.1, 0.2, 0.3])
    assert tree.rgb.dtype == jnp.float64
    assert same(through_file(tree, tmp_path), tree)


def test_containers_and_plain_values(tmp_path):
    tree = {"z": (1, 2.5, "x", None, True), "a": [jnp.ones(2), {"b": ()}], "n": float("inf")}
    loaded = through_file(tree, tmp_path)
    assert list(loaded) == ["z", "a", "n"]
    assert loaded["z"] == tree["z"] and loaded["n"] == tree["n"]
    assert same(loaded["a"], tree["a"])


@pytest.mark.parametrize("sizes", [(3,), (2, 3)])
def test_stacks_of_scenes(tmp_path, sizes):
    """What `jax.vmap` makes: every array has more axes, and no invariant knows of them."""

    def make(x):
        light = sg.PointLight([x, 0.0, 1.0], [1.0, 1.0, 1.0])
        ball = sg.Surface(sg.Sphere([0.0, x, 0.0], 1.0 + x), sg.Lambert([x, 0.5, 0.5]))
        camera = sg.PerspectiveCamera.look_at([0, -4, x], [0, 0, 0], [0, 0, 1], 0.7, 4, 3)
        moved = sg.Transformed(ball, sg.Similarity([x, 0, 0], [1.0, 0, 0, 0], 1.0))
        return sg.Scene(sg.Group(ball=moved, lamp=light, cam=camera), background=[x, 0.0, 0.0])

    for _ in sizes:
        make = jax.vmap(make)
    stack = jax.jit(make)(jnp.linspace(0.1, 0.9, np.prod(sizes)).reshape(sizes))
    loaded = through_file(stack, tmp_path)
    assert same(loaded, stack)
    one = jax.tree.map(lambda leaf: leaf[(1,) * len(sizes)], loaded)
    assert np.isfinite(sg.render(one, "cam").rgb).all()


def test_header_tells_versions_and_shapes(tmp_path):
    sg.save({"a": jnp.ones((2, 3)), "b": jnp.zeros((), jnp.int32)}, tmp_path / "x.sg")
    header = sg.io.read_header(tmp_path / "x.sg")
    assert header["scenegraph"] == sg.__version__ and header["jax"] == jax.__version__
    assert header["tree"]["dict"] == {
        "a": {"array": 0, "dtype": "float32", "shape": [2, 3]},
        "b": {"array": 1, "dtype": "int32", "shape": []},
    }


# --- What is refused when saving: what could not be loaded

Pair = collections.namedtuple("Pair", "a b")  # noqa: PYI024


@pytest.mark.parametrize(
    "value",
    [lambda x: x, Pair(1, 2), object(), {1: "x"}, 1 + 2j, jax.random.key(0), b"x"],
    ids=["lambda", "namedtuple", "object", "number as name", "complex", "key", "bytes"],
)
def test_what_cannot_be_saved(tmp_path, value):
    sg.save(SCENE, tmp_path / "x.sg")
    with pytest.raises(TypeError):
        sg.save({"fine": jnp.ones(3), "bad": value}, tmp_path / "x.sg")
    assert same(sg.load(tmp_path / "x.sg"), SCENE)
    assert [path.name for path in tmp_path.iterdir()] == ["x.sg"]


# --- Classes of one's own


class Mist(AbstractField):
    """A user's field."""

    extinction: jax.Array
    steps: int = eqx.field(static=True, default=3)

    def __call__(self, gaussian, view, *, key=None):
        return Medium(self.extinction, view)

    def density(self, gaussian):
        return self.extinction


def test_own_classes_are_named_when_loading(tmp_path):
    scene = sg.Scene(
        sg.Group(mist=sg.Volume(Mist(jnp.asarray(0.5), steps=7))), background=[0, 0, 0]
    )
    with pytest.raises(FileError, match=r"Mist.*pass it in `classes=`"):
        through_file(scene, tmp_path)
    loaded = through_file(scene, tmp_path, classes=(Mist,))
    assert same(loaded, scene) and loaded.root.children["mist"].field.steps == 7


# --- Damaged and strange files


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """The bytes of a small scene file."""
    path = tmp_path_factory.mktemp("scene") / "x.sg"
    sg.save(small_scene(), path)
    return path.read_bytes()


def small_scene():
    return sg.Scene(sg.Group(fog=sg.Volume(ConstantFog(0.5, [1, 0, 0]))), background=[0, 0, 1])


def loads_to_itself_or_not_at_all(path) -> bool:
    try:
        return same(sg.load(path), small_scene())
    except FileError as error:
        return str(path) in str(error)


def test_truncated(content, tmp_path):
    for length in [*range(0, len(content), 37), len(content) - 1]:
        (tmp_path / "x.sg").write_bytes(content[:length])
        with pytest.raises(FileError, match="x.sg"):
            sg.load(tmp_path / "x.sg")


def test_altered(content, tmp_path):
    rng = np.random.default_rng(0)
    for position in rng.choice(len(content), 400, replace=False):
        altered = bytearray(content)
        altered[position] ^= 1 << rng.integers(8)
        (tmp_path / "x.sg").write_bytes(altered)
        assert loads_to_itself_or_not_at_all(tmp_path / "x.sg"), f"byte {position}"


def test_missing(tmp_path):
    with pytest.raises(FileError, match="there is no file"):
        sg.load(tmp_path / "none.sg")


DEEP = "a tree too deep to be written by json"


def nested(levels):
    return '{"list": [' * levels + "1" + "]}" * levels


def write(path, tree, arrays=(), **header):
    """A file with any header; the archive itself is in order."""
    with zipfile.ZipFile(path, "w") as archive:
        text = json.dumps({"format": 1, "tree": tree, **header})
        archive.writestr("header.json", text.replace(json.dumps(DEEP), nested(100_000)))
        for index, array in enumerate(arrays):
            with archive.open(f"{index}.npy", "w") as file:
                np.save(file, array)


STRANGE_CLASSES = [
    "os:system",
    "builtins:eval",
    "subprocess:Popen",
    "scenegraph.io:read_json",
    "scenegraph.io:FileError",
    "scenegraph.numerics:Compaction",
    "scenegraph.nowhere:Group",
    "scenegraph.scene:Nothing",
    "scenegraph.scene:AbstractNode",
    "scenegraph.scene._save:save",
    "scenegraph:Group",
    "equinox:Module",
    "equinox.nn:Identity",
    "",
    3,
    None,
    ["scenegraph.scene", "Group"],
]


@pytest.mark.parametrize("name", STRANGE_CLASSES, ids=str)
def test_strange_classes(name, tmp_path):
    write(tmp_path / "x.sg", {"class": name, "fields": {}})
    with pytest.raises(FileError, match="x.sg"):
        sg.load(tmp_path / "x.sg")


STRANGE_TREES = {
    "unknown function": {"function": "system"},
    "no such array": {"array": 5},
    "array by name": {"array": "0"},
    "no tag": {"nothing": 1},
    "no fields": {"class": "scenegraph.scene:Group"},
    "too few fields": {"class": "scenegraph.scene:Volume", "fields": {"field": None}},
    "too many fields": {"class": "scenegraph.scene:Group", "fields": {"children": {}, "x": 1}},
    "wrong value": {"class": "scenegraph.shaders:Constant", "fields": {"color": "red"}},
    "wrong shape": {"class": "scenegraph.shaders:Constant", "fields": {"color": {"array": 0}}},
    "broken invariant": {
        "class": "scenegraph.scene:Scene",
        "fields": {"root": 1, "background": 2, "integrator": None},
    },
    "very deep": DEEP,
}


@pytest.mark.parametrize("case", STRANGE_TREES)
def test_strange_trees(case, tmp_path):
    write(tmp_path / "x.sg", STRANGE_TREES[case], [np.ones(5)])
    with pytest.raises(FileError, match="x.sg"):
        sg.load(tmp_path / "x.sg")


def test_an_array_that_is_named_again_and_again_is_made_once(tmp_path):
    numbers = np.arange(2**18, dtype=np.float32)  # a MiB, four GiB in four thousand copies
    entry = {"array": 0, "dtype": "float32", "shape": [2**18]}
    header = {**versions(), "tree": {"list": [entry] * 4000}}
    write_archive(tmp_path / "a.sg", header, [numbers])
    first, *others = sg.load(tmp_path / "a.sg")
    assert len(others) == 3999 and all(x is first for x in others)
    assert np.array_equal(first, numbers)


def test_pickles_inside(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.sg", "w") as archive:
        archive.writestr("header.json", json.dumps({"format": 1, "tree": {"array": 0}}))
        with archive.open("0.npy", "w") as file:
            np.save(file, np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(FileError, match="x.sg"):
        sg.load(tmp_path / "x.sg")


@pytest.mark.parametrize("header", [{"format": 2}, {"format": None}, {"format": "1"}])
def test_other_formats(header, tmp_path):
    write(tmp_path / "x.sg", None, scenegraph="9.7", **header)
    told = f"of scenegraph 9.7; this version reads format 1, and is scenegraph {sg.__version__}"
    with pytest.raises(FileError, match=told):
        sg.load(tmp_path / "x.sg")


def test_class_that_has_changed_since_is_refused_with_both_versions(tmp_path):
    tree = {"class": "scenegraph.scene:Group", "fields": {"children": {"dict": {}}, "old": 1}}
    write(tmp_path / "x.sg", tree, scenegraph="0.0.1")
    told = rf"x.sg: Group has fields .*0\.0\.1 wrote it; this is {sg.__version__}"
    with pytest.raises(FileError, match=told):
        sg.load(tmp_path / "x.sg")


def test_settings_that_are_newer_than_the_file_have_their_defaults(tmp_path):
    fields = {
        "candidates": 90,
        "step": 0.5,
        "beam": {"class": "scenegraph.rays:Cone", "fields": {}},
    }
    tree = {"class": "scenegraph.integrators:OccupancyMarch", "fields": fields}
    write(tmp_path / "x.sg", tree)
    assert sg.load(tmp_path / "x.sg") == sg.integrators.OccupancyMarch(90, step=0.5)
    fields.pop("beam")
    write(tmp_path / "x.sg", tree)
    with pytest.raises(FileError, match="OccupancyMarch has fields .*beam"):
        sg.load(tmp_path / "x.sg")
