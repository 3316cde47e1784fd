"""Interfaces of JAX that may change: the register, and what stands in for those that are gone."""

import ast
import functools
import importlib
import json
import pathlib
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterator

import jax
import pytest
from packaging.version import Version


ROOT = pathlib.Path(__file__).parent.parent
REGISTER = tomllib.loads((ROOT / "tests" / "jax_interfaces.toml").read_text())["interface"]
NAMES = {name: entry for entry in REGISTER for name in entry["names"]}
PREFIXES = "jax._src", "jax.extend", "jax.interpreters", "jax.core"
# Modules that sources import by these names.
MODULES = {name: f"jax.interpreters.{name}" for name in ("ad", "batching", "mlir")}


def dotted(node: ast.AST) -> str:
    """The name that an expression spells, or nothing."""
    if isinstance(node, ast.Name):
        return MODULES.get(node.id, node.id)
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def used_names(tree: ast.AST) -> Iterator[str]:
    """All names of JAX's that may change, as a source imports, spells or looks them up."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and dotted(node.func) == "_find":
            names = [".".join(x.value for x in node.args[:2] if isinstance(x, ast.Constant))]
        else:
            names = [dotted(node)] if isinstance(node, ast.Attribute) else []
        yield from (shorten(x) for x in names if x.startswith(tuple(f"{y}." for y in PREFIXES)))


def shorten(name: str) -> str:
    """A name without what is asked of it: a module, or one name within it."""
    parts = name.split(".")
    size = max(i for i in range(len(parts) + 1) if i < 2 or ".".join(parts[:i]) in sys.modules)
    return ".".join(parts[: size + 1])


def uses(*folders: str) -> dict[str, list[str]]:
    """The files that use each name."""
    found: dict[str, list[str]] = {}
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for name in used_names(ast.parse(path.read_text())):
                found.setdefault(name, []).append(str(path.relative_to(ROOT)))
    # What leads to a longer name, as `jax.extend.core` does, is none.
    return {x: files for x, files in found.items() if not any(f"{x}." in other for other in found)}


def test_all_uses_are_in_the_register_and_nothing_else_is():
    found = uses("scenegraph", "tests", "examples")
    parts = {name for name in NAMES if any(f"{name}." in other for other in NAMES)}
    assert set(NAMES) - parts == set(found)


def test_only_one_file_of_the_library_uses_them():
    """All but `jax.core`, which JAX documents."""
    imports = re.compile(r"^ *(?:from|import) jax\.(?:_src|extend|interpreters)", re.MULTILINE)
    paths = (ROOT / "scenegraph").rglob("*.py")
    assert [path.name for path in paths if imports.search(path.read_text())] == ["_jax.py"]


def test_a_source_is_searched_for_all_ways_to_use_one():
    text = """
        import jax.extend.core, jax._src.api
        from jax.core import Tracer
        from jax.interpreters import ad
        ad.Zero.x, ad.primitive_jvps.get(1), jax.extend.core.Jaxpr, jax.numpy.ones
        _find("jax._src.util", "safe_map")
    """
    assert set(used_names(ast.parse(textwrap.dedent(text)))) == {
        "jax.extend.core",
        "jax._src.api",
        "jax.core.Tracer",
        "jax.interpreters.ad",
        "jax.interpreters.ad.Zero",
        "jax.interpreters.ad.primitive_jvps",
        "jax.extend.core.Jaxpr",
        "jax._src.util.safe_map",
    }


@pytest.mark.parametrize("name", sorted(NAMES))
def test_this_version_has_what_the_register_says(name):
    entry = NAMES[name]
    assert entry["reason"]
    assert entry["without"]
    version = Version(jax.__version__)
    if version > max(map(Version, entry["versions"])):
        pytest.skip(f"JAX {version} is newer than any that was tried")
    assert jax.__version__ in entry["versions"]
    module, _, own = name.rpartition(".")
    assert own in vars(importlib.import_module(module))


SCENE = """
    import importlib, json, sys, types, warnings

    names, hidden, load = sys.argv[1].split(), set(sys.argv[2:]), importlib.import_module
    def without(module, *others, **more):
        found = load(module, *others, **more)
        if not any(name.startswith(f"{module}.") for name in hidden):
            return found
        kept = {x for x in vars(found) if f"{module}.{x}" not in hidden}
        return types.SimpleNamespace(**{x: getattr(found, x) for x in kept})

    importlib.import_module = without
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        import scenegraph as sg
        sg.render  # all is imported with what is used first
    importlib.import_module = load

    import equinox as eqx, jax, jax.numpy as jnp
    egg = lambda x: jnp.linalg.norm(x * jnp.array([1.0, 1.0, 0.8])) - 0.4
    corners = [[-0.9, 0, 0.9], [0, 0, 1.2], [-0.4, 0.8, 0.9], [-0.9, 0.9, 1.0]]
    shapes = {
        "floor": sg.Rectangle([0, 0, -0.5], [4, 4]),
        "ball": sg.Sphere([0.5, 0.1, 0.1], 0.4),
        "egg": sg.SignedDistance(egg, sg.Box([-1, -1, -1], [1, 1, 1])),
        "roof": sg.TriangleMesh(corners, [[0, 1, 2], [0, 2, 3]]),
    }
    shader = sg.Lambert([0.6, 0.5, 0.4])
    surfaces = {name: sg.Surface(shapes[name], shader) for name in names}
    scene = sg.Scene(sg.Group(**surfaces, lamp=sg.PointLight([1, -2, 4], [20, 20, 20])))
    camera = sg.PerspectiveCamera.look_at([0, -4, 1.5], [0, 0, 0.2], [0, 0, 1], 0.7, 12, 8)

    @eqx.filter_jit
    @eqx.filter_value_and_grad(has_aux=True)
    def draw(scene):
        picture = sg.render(scene, camera).rgb
        return jnp.mean(picture**2), picture

    (_, picture), gradient = draw(scene)
    messages = [str(x.message) for x in said if issubclass(x.category, UserWarning)]
    leaves = jax.tree.leaves((picture, gradient))
    print(json.dumps([messages, *(x.tolist() for x in leaves)]))
"""


def draw(shapes: str, *hidden: str) -> list:
    """What a process says, draws and differentiates whose JAX lacks some names."""
    command = [sys.executable, "-c", textwrap.dedent(SCENE), shapes, *hidden]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def complete() -> Callable[[str], list]:
    return functools.cache(draw)


@pytest.mark.parametrize(
    "shapes", ["floor ball", pytest.param("floor egg roof", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "hidden",
    [
        ("jax.interpreters.ad.primitive_jvps", "jax.interpreters.mlir.lower_fun"),
        ("jax._src.core.trace_state_clean", "jax._src.checkify.error_checks"),
    ],
    ids=["rules", "private"],
)
def test_without_some_a_warning_says_why_all_is_slower_and_the_same(hidden, shapes, complete):
    no_messages, *expected = complete(shapes)
    messages, *results = draw(shapes, *hidden)
    assert no_messages == []
    assert len(messages) == 1
    assert all(name in messages[0] for name in hidden)
    expected = pytest.approx(jax.tree.leaves(expected), rel=2e-4, abs=2e-6)
    assert jax.tree.leaves(results) == expected
