"""The package keeps the rules of `architecture.py` and `architecture_classes.py`."""

import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap
import tomllib

import jax.numpy as jnp
import jaxtyping
import pytest

import support.architecture as arch
import support.architecture_classes as arch_classes
import support.architecture_words as words


ROOT = pathlib.Path(__file__).parent.parent
LAYERS = tomllib.loads((ROOT / "tests" / "layers.toml").read_text())["layers"]
OPTIONAL = [
    "flip_evaluator",
    "OpenEXR",
    "fast_simplification",
    "imageio_ffmpeg",
    "lpips",
    "matplotlib",
    "tensorboardX",
    "skimage",
    "torch",
    "trimesh",
    "tyro",
    "viser",
    "xatlas",
]


@pytest.fixture(scope="module")
def sources() -> list[arch.Source]:
    return arch.read_sources(ROOT / "scenegraph")


@pytest.fixture(scope="module")
def classes() -> list[type]:
    return arch_classes.find_modules("scenegraph")


def none(findings: list[str]) -> None:
    """Fails with one finding a line."""
    if findings:
        pytest.fail("\n".join(findings), pytrace=False)


# --- The package


def test_every_folder_is_in_the_table(sources):
    none(arch.unknown_packages(sources, LAYERS))


def test_imports_go_down(sources):
    none(arch.forbidden_imports(sources, LAYERS))


def test_inits_only_reexport(sources):
    none(arch.busy_inits(sources))


def test_all_packages_are_imported_together(sources):
    """Those that need JAX; the checks of calls are put into all of them at once."""
    none(arch.imported_alone(sources))


def test_no_super_and_no_hasattr(sources):
    none(arch.unwanted_calls(sources, ("super", "hasattr")))


def test_only_the_command_line_prints(sources):
    none(arch.unwanted_calls([s for s in sources if s.package != "cli"], ("print",)))


def test_no_mutable_defaults(sources):
    none(arch.mutable_defaults(sources))


def test_annotations_are_not_postponed(sources):
    none(arch.postponed_annotations(sources))


def test_large_packages_say_what_to_read_first(sources):
    none(arch.large_packages(sources))


def test_public_names_are_documented(sources):
    none(arch.poor_docstrings(sources))


def test_internal_docstrings_are_short(sources):
    none(words.long_internal_docstrings(sources))


def test_arguments_are_noun_phrases(sources):
    bare = words.bare_arguments(sources)
    none(bare if len(bare) > 0.05 * len(words.argument_lines(sources)) else [])


def test_first_lines_are_no_questions(sources):
    none(words.questions_for_titles(sources))


def test_api_pages_show_all_public_names(sources):
    none(words.public_on_no_page(sources, ROOT / "docs"))


def test_api_pages_show_no_internal_names(sources):
    none(words.internal_on_pages(sources, ROOT / "docs"))


def test_api_pages_show_no_name_twice():
    none(words.shown_again(ROOT / "docs"))


def test_texts_have_no_internal_names(sources):
    pages = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
    none(words.internal_in_text(sources, [page for page in pages if page.name != "CHANGELOG.md"]))


def test_contributing_shows_the_table():
    rows = re.findall(r"^\| (\d+) \| `(\w+)", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert {package: int(layer) for layer, package in rows} == LAYERS


def test_contributing_shows_the_sessions():
    sessions = re.findall(r"@nox.session.*\ndef (\w+)", (ROOT / "noxfile.py").read_text())
    shown = re.findall(r"^\| `nox -s (\w+)", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert sorted(shown) == sorted(sessions)


def test_modules_are_abstract_or_final(classes):
    assert classes
    none(arch_classes.neither_abstract_nor_final(classes))


def test_no_concrete_method_is_overridden(classes):
    none(arch_classes.overridden_concrete(classes))


# --- The import, and the check of shapes


def run(script: str, **environment: str) -> str:
    """What a fresh interpreter prints."""
    command = [sys.executable, "-c", textwrap.dedent(script)]
    env = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_is_light():
    script = """
        import json, logging, sys
        made = []
        record = logging.Handler()
        record.emit = lambda x: made.append(x.getMessage())
        logger = logging.getLogger("jax._src.xla_bridge")
        logger.addHandler(record)
        logger.setLevel(logging.DEBUG)
        import scenegraph
        started = [x for x in made if "Initializing backend" in x]
        import jax
        jax.devices()
        assert any("Initializing backend" in x for x in made), made
        print(json.dumps([sorted(sys.modules), started]))
    """
    loaded, started = json.loads(run(script))
    assert not set(OPTIONAL) & set(loaded)
    assert not started, "importing scenegraph makes an array, which starts a JAX backend"


def test_wrong_shape_names_the_argument():
    import scenegraph as sg

    with pytest.raises(jaxtyping.TypeCheckError, match="target"):
        sg.psnr(jnp.zeros((4, 4, 3)), jnp.zeros((4, 5, 3)))


@pytest.mark.parametrize(("switch", "checked"), [("1", True), ("0", False)])
def test_shape_check_has_a_switch(switch, checked):
    script = """
        import jax.numpy as jnp, scenegraph as sg
        try:
            sg.psnr(jnp.zeros((4, 4, 3)), jnp.zeros((4, 5, 3)))
        except Exception as error:
            print(type(error).__name__)
    """
    name = run(script, SCENEGRAPH_TYPECHECK=switch)
    assert (name == "TypeCheckError") is checked, name


SUMS = """
    import scenegraph, jax, jax.numpy as jnp
    numbers = jnp.arange(32_769.0)
    rows = jnp.stack([numbers, 0 * numbers, 0 * numbers], axis=1)
    squares = jax.vmap(lambda row: jnp.sum((jnp.eye(3) @ row) ** 2))
    print(float(jax.jit(squares)(rows)[-1]) == 32_768.0**2)
"""


def test_compiler_sums_rightly():
    """Some versions of jaxlib do not; `_versions` excludes them."""
    assert json.loads(run(SUMS).lower())


def test_importing_changes_nothing_in_the_environment():
    script = """
        import os
        before = dict(os.environ)
        import scenegraph
        print(dict(os.environ) == before)
    """
    assert run(script) == "True"
