"""Each architecture rule finds what it is for in a tiny package, and nothing else."""

import pathlib
import re
import textwrap

import pytest

import support.architecture as arch
import support.architecture_classes as arch_classes
import support.architecture_words as words


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
        from ..side import D
        import numpy
        x = 1
    '''
    sources = toy(tmp_path, {"low/__init__.py": text, "__init__.py": "x = 1", "low/_a.py": "x = 1"})
    lines = [finding.split(":")[1] for finding in arch.busy_inits(sources)]
    assert lines == ["6", "7", "8"]


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


# --- Words


def documented(name: str, block: str = "Arguments", indent: str = "") -> str:
    return f'{indent}def {name}(a):\n{indent}    """A.\n\n{indent}    **{block}:** a."""\n'


@pytest.mark.parametrize("block", ["Arguments", "Returns"])
@pytest.mark.parametrize(
    ("name", "definition"),
    [
        ("_f", "{_f}"),
        ("f", "{f}"),
        ("_g", "class Public:\n    b = 1\n{    _g}"),
        ("g", "def public():\n    b = 1\n{    g}"),
        ("g", "if True:\n{    g}"),
        ("__call__", "class Hidden:\n{    __call__}"),
    ],
)
def test_long_internal_docstring(tmp_path, block, name, definition):
    pattern = re.compile(r"\{( *)(\w+)\}")
    text = pattern.sub(lambda match: documented(match[2], block, match[1]), definition)
    files = {
        "low/__init__.py": "from ._a import Public as Public, public as public, f, g, Hidden",
        "low/_a.py": text,
    }
    (found,) = words.long_internal_docstrings(toy(tmp_path, files))
    assert found.endswith(f": `{name}` is not public and has **{block}:**")


def test_long_public_docstrings(tmp_path):
    methods = [documented(name, indent="    ") for name in ("f", "__init__", "__call__")]
    files = {
        "low/__init__.py": "from ._a import f as f, Public as Public",
        "low/_a.py": "\n".join([documented("f"), "class Public:", *methods, "def _g():\n    'G.'"]),
    }
    assert words.long_internal_docstrings(toy(tmp_path, files)) == []


def test_bare_arguments(tmp_path):
    text = """
        def f(a, b, c):
            '''F.

            - `a`: of the surface
            - `b`, `c`: the normals, of length 1
            - `d`: it.
            - `e`: offsets of the pixels
            - not `f`: of an argument
            '''
    """
    sources = toy(tmp_path, {"low/_a.py": text})
    assert words.bare_arguments(sources) == [
        "toy/low/_a.py:5: of the surface",
        "toy/low/_a.py:7: it.",
    ]
    assert len(words.argument_lines(sources)) == 4


def test_questions_for_titles(tmp_path):
    text = """
        '''Where things are.'''

        class A:
            "How a thing looks."

            def f(self):
                "Whether it is true, and more."

            def g(self):
                "Whatever is there; what it is."

            async def h(self):
                return "What is returned."
    """
    found = words.questions_for_titles(toy(tmp_path, {"low/_a.py": text}))
    assert found == [
        "toy/low/_a.py:1: Where things are.",
        "toy/low/_a.py:4: How a thing looks.",
        "toy/low/_a.py:7: Whether it is true, and more.",
    ]


# --- Packages and their pages


def test_large_packages(tmp_path):
    def package(name, files, doc):
        return {f"{name}/__init__.py": f'"{doc}"', **{f"{name}/_{i}.py": "" for i in range(files)}}

    files = {
        **package("fair", arch.MANY_FILES, "Few files."),
        **package("many", arch.MANY_FILES + 1, "Many files. Reading takes long."),
        **package("told", 2 * arch.MANY_FILES, "Many files. Read `_1.py`, then the rest."),
    }
    assert arch.large_packages(toy(tmp_path, files)) == [
        "toy/many/__init__.py:1: 15 files, and no word of their order (`Read ...`)",
    ]


PAGED = {
    "__init__.py": "from . import low as low\nfrom .low import B as B\nfrom ._x import D as D",
    "low/__init__.py": "from ._a import A as A, B as B, C",
    "side/__init__.py": "from ._a import D as D",
    "high/__init__.py": "from ._a import e",
}


def pages(folder: pathlib.Path, **texts: str) -> pathlib.Path:
    (folder / "api").mkdir()
    for name, text in texts.items():
        (folder / "api" / f"{name}.md").write_text(textwrap.dedent(text))
    return folder


def test_internal_names_on_pages(tmp_path):
    low = """
        # Low

        ::: toy.low.A
            options:
              members: [method]

        ::: toy.B

        ::: toy.low.C
        ::: toy.low.B
        ::: toy.low
    """
    side = "::: toy.side.D\n::: toy.low.A.method\n::: toy.high.e\n::: toy.D\n::: toy\n"
    found = words.internal_on_pages(toy(tmp_path, PAGED), pages(tmp_path, low=low, side=side))
    assert [finding.split("api/")[1] for finding in found] == [
        "low.md:10: `toy.low.C` is not public",
        "low.md:11: `toy.low.B` is not public; users type `toy.B`",
        "low.md:12: `toy.low` is not public",
        "side.md:2: `toy.low.A.method` is not public",
        "side.md:3: `toy.high.e` is not public",
        "side.md:4: `toy.D` is not public",
        "side.md:5: `toy` is not public",
    ]


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("::: toy.low.A\n::: toy.B\n::: toy.side.D", []),
        ("::: toy.B\n    options:\n      heading_level: 3\n\n::: toy.side.D", ["toy.low.A"]),
        ("::: toy.low\n::: toy.low.B\n", ["toy.low.A", "toy.B", "toy.side.D"]),
        ("toy.low.A", ["toy.low.A", "toy.B", "toy.side.D"]),
    ],
)
def test_public_names_on_no_page(tmp_path, text, missing):
    docs = pages(tmp_path, page=text)
    found = words.public_on_no_page(toy(tmp_path, PAGED), docs)
    assert found == [f"docs/api: no page shows `{name}`" for name in missing]


def test_names_shown_again(tmp_path):
    docs = pages(tmp_path, one="::: toy.B\n\n::: toy.low.A\n", two="::: toy.low.A\n::: toy.B.f\n")
    (found,) = words.shown_again(docs)
    assert found.endswith(f"two.md:1: `toy.low.A` stands already at {docs}/api/one.md:3")


def test_internal_names_in_a_text(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "`sg.low.A`, sg.low.B(1), `sg.fit.x`, `toy.low.C`\n\n`sg.low.C.f` and sg.low._a\n"
    )
    assert words.internal_in_text(toy(tmp_path, PAGED), [page]) == [
        f"{page}:3: `sg.low.C` is not public",
        f"{page}:3: `sg.low._a` is not public",
    ]


def test_packages_that_are_imported_alone(tmp_path):
    files = {
        "low/__init__.py": "from ._a import x\n\n\nfinish_import(__name__)",
        "high/__init__.py": "from ._a import x",
        "io/__init__.py": "from ._a import x",
        "high/_a.py": "def f():\n    from .. import low",
    }
    assert arch.imported_alone(toy(tmp_path, files)) == [
        "toy/high/__init__.py:1: `finish_import(__name__)` is missing",
        "toy/high/_a.py:2: asks the root for `low`; import names from it",
    ]
