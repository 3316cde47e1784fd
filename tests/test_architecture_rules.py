"""Each architecture rule finds what it is for in a tiny package, and nothing else."""

import pathlib
import textwrap

import pytest

import support.architecture as arch
import support.architecture_classes as arch_classes


LAYERS = {"_typing": 0, "low": 1, "side": 1, "high": 2}


def toy(folder: pathlib.Path, files: dict[str, str], name: str = "toy") -> list[arch.Source]:
    """Writes a package and reads it."""
    for path, text in {"__init__.py": "", **files}.items():
        (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / name / path).write_text(textwrap.dedent(text))
    return arch.read_sources(folder / name)


# --- Layers


@pytest.mark.parametrize(
    ("path", "text", "line", "finding"),
    [
        ("low/_a.py", "from ..high import B", 1, "`low` (layer 1) imports `high` (2)"),
        ("low/_a.py", "from ..side import B", 1, "`low` (layer 1) imports `side` (1)"),
        ("low/_a.py", "import toy.high", 1, "imports `high`"),
        ("low/_a.py", "from .. import high", 1, "imports `high`"),
        ("low/_a.py", "def f():\n    from toy.high import B", 2, "imports `high`"),
        ("low/__init__.py", "from ..high import B as B", 1, "imports `high`"),
        ("_typing.py", "from .low import B", 1, "`_typing` (layer 0) imports `low` (1)"),
        ("low/_a.py", "from toy import Scene", 1, "imports the root package"),
        ("low/_a.py", "from .. import Scene", 1, "imports the root package"),
        ("low/_a.py", "import numpy\nimport toy as t", 2, "imports the root package"),
        ("high/_a.py", "from ..low._a import B", 1, "private to `low`"),
    ],
)
def test_forbidden_import(tmp_path, path, text, line, finding):
    (found,) = arch.forbidden_imports(toy(tmp_path, {path: text}), LAYERS)
    assert found.startswith(f"toy/{path}:{line}: ") and finding in found


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("high/_a.py", "from ..low import A\nfrom .._typing import B\nfrom ._b import C"),
        ("high/_a.py", "import toy.low\nfrom .. import low, _typing\nimport toyota, jax"),
        ("low/__init__.py", "from ._a import A as A\nfrom . import _a"),
        ("__init__.py", "from . import high as high\nfrom .low import A as A"),
        ("__main__.py", "from .high import main"),
    ],
)
def test_allowed_import(tmp_path, path, text):
    assert arch.forbidden_imports(toy(tmp_path, {path: text}), LAYERS) == []


def test_unknown_packages(tmp_path):
    files = dict.fromkeys(["cupboard/_a.py", "utils.py", "_typing.py", "__main__.py"], "")
    found = arch.unknown_packages(toy(tmp_path, {**files, "low/_a.py": ""}), LAYERS)
    assert found == [
        "toy/cupboard/_a.py:1: `cupboard` is not in layers.toml",
        "toy/utils.py:1: `utils` is not in layers.toml",
    ]


# --- What is not written


def test_unwanted_calls(tmp_path):
    text = """
        class A:
            def f(self):
                super().f()
                self.printer.print(hasattr)
                return hasattr(self, "x")
    """
    sources = toy(tmp_path, {"low/_a.py": text})
    assert arch.unwanted_calls(sources, ("super", "hasattr", "print")) == [
        "toy/low/_a.py:6: calls `hasattr`",
        "toy/low/_a.py:4: calls `super`",
    ]


def test_mutable_defaults(tmp_path):
    text = """
        def f(a=[], *, b=dict(), c=None, d=(), e=int("1")):
            return lambda x={1}: x
    """
    found = arch.mutable_defaults(toy(tmp_path, {"low/_a.py": text}))
    assert [line.split("`")[1] for line in found] == ["[]", "dict()", "{1}"]
    assert found[2].startswith("toy/low/_a.py:3: ")


def test_postponed_annotations(tmp_path):
    text = "from __future__ import annotations, division\n"
    found = arch.postponed_annotations(toy(tmp_path, {"low/_a.py": text}))
    assert found == ["toy/low/_a.py:1: postpones annotations"]
    sources = toy(tmp_path, {"low/_a.py": "from __future__ import division\n"})
    assert arch.postponed_annotations(sources) == []


def test_busy_inits(tmp_path):
    text = '''
        """A package."""
        from ._a import A as A
        from ._a import B
        from ..side import C as C
        import numpy
        x = 1
    '''
    sources = toy(tmp_path, {"low/__init__.py": text, "__init__.py": "x = 1", "low/_a.py": "x = 1"})
    lines = [finding.split(":")[1] for finding in arch.busy_inits(sources)]
    assert lines == ["5", "6", "7"]


# --- Sizes


def function(lines: int, name: str = "f") -> str:
    return f'def {name}():\n    """Not\n    counted."""\n' + "    x = 1\n" * lines


def test_long_functions_and_files(tmp_path):
    files = {
        "low/_a.py": function(arch.MAX_FUNCTION) + "\n" + function(arch.MAX_FUNCTION + 1, "g"),
        "low/_b.py": "\n" * arch.MAX_FILE,
        "low/_c.py": "\n" * (arch.MAX_FILE + 1),
    }
    assert arch.too_long(toy(tmp_path, files)) == [
        "toy/low/_a.py:45: g: 41 lines, at most 40",
        "toy/low/_c.py:1: 401 lines, at most 400",
    ]


def test_typical_lengths(tmp_path):
    text = "\n".join(function(lines, f"f{lines}") for lines in range(1, 12))
    median, tenth = arch.typical_lengths(toy(tmp_path, {"low/_a.py": text}))
    assert median == 6 and tenth == pytest.approx(10.8)


def test_lengths_count_nested_functions_and_methods(tmp_path):
    text = """
        class A:
            def f(self):
                def g():
                    return 1

                return g

            def stub(self):
                "Only a docstring."
    """
    lengths = arch.function_lengths(toy(tmp_path, {"low/_a.py": text}))
    assert {where.split()[-1]: n for n, where in lengths} == {"f": 4, "g": 1, "stub": 0}


# --- Docstrings


@pytest.mark.parametrize(
    ("definition", "lack"),
    [
        ("def x(): ...", "has no docstring"),
        ("class x: ...", "has no docstring"),
        ('def x(a) -> None:\n    "A."', "has no **Arguments:**"),
        ('def x(*, a) -> None:\n    "A."', "has no **Arguments:**"),
        ('def x() -> int:\n    "A."', "has no **Returns:**"),
        ('def x():\n    "A."', "has no **Returns:**"),
        ('class x:\n    "A."\n    a: int', "has fields and no **Arguments:**"),
        (
            'class x:\n    "A."\n    def __init__(self, a): ...',
            "has fields and no **Arguments:**",
        ),
    ],
)
def test_poor_docstring(tmp_path, definition, lack):
    files = {
        "__init__.py": "from .low import x as x",
        "low/__init__.py": '"A package."\nfrom ._a import x as x',
        "low/_a.py": definition,
    }
    assert arch.poor_docstrings(toy(tmp_path, files)) == [f"toy/low/_a.py:1: `x` {lack}"]


@pytest.mark.parametrize(
    "definition",
    [
        'def x() -> None:\n    "A."',
        'def x(a) -> int:\n    "A. **Arguments:** a. **Returns:** b."',
        'class x:\n    "A."\n    def __init__(self): ...',
        'class x:\n    "A."\n    def __init__(self, a):\n        "**Arguments:** a."',
        'class x:\n    "A."\n    a: int\nx.__init__.__doc__ = "**Arguments:** a."',
        'class x:\n    "A. **Arguments:** a."\n    a: int',
        'class x:\n    "A."\n    a: ClassVar[int] = 1',
        'class x:\n    "A."\n    ONE = 1',
        "x = 1",
        "def _private(a): ...",
    ],
)
def test_good_docstring(tmp_path, definition):
    files = {"low/__init__.py": "from ._a import x as x", "low/_a.py": definition}
    assert arch.poor_docstrings(toy(tmp_path, files)) == []


def test_packages_and_abstract_classes_have_docstrings(tmp_path):
    files = {
        "__init__.py": "from . import low as low\nfrom .low import AbstractX as AbstractX",
        "low/__init__.py": "from ._a import AbstractX as AbstractX",
        "low/_a.py": 'class AbstractX:\n    "Abstract."\n    a: AbstractVar[int]',
    }
    found = arch.poor_docstrings(toy(tmp_path, files))
    assert found == ["toy/low/__init__.py:1: `low` has no docstring"]


# --- Classes


CLASSES = """
    import abc

    import equinox as eqx


    class AbstractGood(eqx.Module):
        size: eqx.AbstractVar[int]

        @abc.abstractmethod
        def area(self): ...

        @property
        @abc.abstractmethod
        def name(self): ...

        def twice(self):
            return 2 * self.area()


    class Good(AbstractGood):
        size: int = 1

        def area(self):
            return 1

        @property
        def name(self):
            return "good"


    class AbstractMarker(eqx.Module, is_abstract=True):
        pass


    class AbstractMade(eqx.Module):
        size: int


    class Unfinished(AbstractGood):
        size: int = 1


    class Heir(Good):
        def __check_init__(self):
            pass

        def area(self):
            return 2


    class Rewriter(AbstractGood):
        size: int = 1

        def area(self):
            return 1

        @property
        def name(self):
            return "rewriter"

        def twice(self):
            return 3
"""


@pytest.fixture(scope="module")
def classes(tmp_path_factory) -> list[type]:
    folder = tmp_path_factory.mktemp("classes")
    toy(folder, {"low/__init__.py": "", "low/_a.py": CLASSES}, name="toy_classes")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        return arch_classes.find_modules("toy_classes")


def said(findings: list[str]) -> list[str]:
    """Findings without the place, which is checked to be a line of the toy."""
    assert all("toy_classes/low/_a.py:" in finding for finding in findings)
    return [finding.split(": ", 1)[1] for finding in findings]


def test_neither_abstract_nor_final(classes):
    assert said(arch_classes.neither_abstract_nor_final(classes)) == [
        "Good is final, but Heir inherit from it",
        "Unfinished is abstract, so its name begins with Abstract",
        "AbstractMade is not abstract; is_abstract=True makes it so",
    ]


def test_overridden_concrete(classes):
    assert said(arch_classes.overridden_concrete(classes)) == [
        "Heir overrides the concrete `Good.area`",
        "Rewriter overrides the concrete `AbstractGood.twice`",
    ]


# --- Documentation


def test_undocumented_packages(tmp_path):
    sources = toy(tmp_path, {"low/_a.py": "", "side/_a.py": "", "high/_a.py": ""})
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "low.md").write_text("# Low\n\n::: toy.low\n")
    (tmp_path / "api" / "side.md").write_text("# Side\n")
    found = [finding.split("api/")[1] for finding in arch.undocumented_packages(sources, tmp_path)]
    assert found == [
        "high.md:1: has no line `::: toy.high`",
        "side.md:1: has no line `::: toy.side`",
    ]
