"""The rules about docstrings and API pages, as functions of the sources and of the documentation.

As in `architecture.py`, a rule gives its findings as `file:line: text`.
"""

import ast
import pathlib
import re
from collections.abc import Iterator

from support.architecture import (
    finding,
    Function,
    is_docstring,
    public_definitions,
    Source,
)


BARE = "of|for|from|to|in|on|at|by|with|as|it|that|what|where|how|which|so"
QUESTIONS = "What|Where|Which|How|Whether"
_Definition = ast.ClassDef | Function


# --- Docstrings


def long_internal_docstrings(sources: list[Source]) -> list[str]:
    """Names that no package exports as `X as X`, documented with Arguments or Returns."""
    public = {id(node) for _, _, node in public_definitions(sources)}
    return [
        finding(source, node, f"`{node.name}` is not public and has {block}")
        for source in sources
        for node in _internal(source.tree, public)
        for block in ("**Arguments:**", "**Returns:**")
        if block in (ast.get_docstring(node) or "")
    ]


def _internal(parent: ast.AST, public: set[int]) -> Iterator[_Definition]:
    """Definitions below `parent` that are neither public nor methods of a public class."""
    for node in ast.iter_child_nodes(parent):
        if not isinstance(node, _Definition):
            yield from _internal(node, public)
        elif id(node) not in public:
            yield node
            yield from _internal(node, public)
        else:
            yield from _internal(node, public | _public_methods(node))


def _public_methods(node: ast.AST) -> set[int]:
    """Also such as `__call__`; what is defined within a public function is not public."""
    methods = node.body if isinstance(node, ast.ClassDef) else []
    return {
        id(method)
        for method in methods
        if isinstance(method, _Definition)
        and (not method.name.startswith("_") or method.name.endswith("__"))
    }


def argument_lines(sources: list[Source]) -> list[tuple[str, str]]:
    """Where an argument or a returned value is documented, and the words after its name."""
    return [
        (f"{source.path}:{number}", match[1])
        for source in sources
        for number, line in enumerate(source.text.splitlines(), 1)
        if (match := re.match(r"\s*- `[^:]*`: (.*)", line))
    ]


def bare_arguments(sources: list[Source]) -> list[str]:
    """Arguments explained by half a sentence, "of the surface", where a noun phrase would stand."""
    return [
        f"{place}: {text}"
        for place, text in argument_lines(sources)
        if re.match(rf"({BARE})\b", text)
    ]


def questions_for_titles(sources: list[Source]) -> list[str]:
    """Docstrings that begin as a question does, not with a verb or a noun."""
    return [
        finding(source, node, text.splitlines()[0])
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Module | _Definition) and node.body and is_docstring(node.body[0])
        if re.match(rf"({QUESTIONS})\b", text := ast.get_docstring(node) or "")
    ]


# --- API pages


def internal_on_pages(sources: list[Source], docs: pathlib.Path) -> list[str]:
    """Names on API pages that no package exports as `X as X`."""
    public = _public_names(sources)
    return [
        f"{where}: `{name}` is not public"
        for where, shown, members in _directives(docs)
        for name in [shown, *(f"{shown}.{member}" for member in members or ())]
        if not _is_public(name, public)
    ]


def public_on_no_page(sources: list[Source], docs: pathlib.Path) -> list[str]:
    """Names that a package exports as `X as X` and that no API page shows."""
    public, shown = _public_names(sources), set()
    for _, name, members in _directives(docs):
        everything = members is None and name in public
        shown |= {f"{name}.{x}" for x in (public[name] if everything else members or ())} | {name}
    names = [f"{package}.{name}" for package, exported in public.items() for name in exported]
    return [f"docs/api: no page shows `{name}`" for name in names if name not in shown]


def _public_names(sources: list[Source]) -> dict[str, list[str]]:
    """The public names of every package, by the package's absolute name."""
    return {
        ".".join(source.module): [
            alias.name
            for node in source.tree.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if alias.asname == alias.name
        ]
        for source in sources
        if source.is_init and len(source.module) > 1
    }


def _is_public(name: str, public: dict[str, list[str]]) -> bool:
    """True for a package, a public name of one, and what has a public name within that."""
    library, package, *rest = [*name.split("."), "", ""][: max(name.count(".") + 1, 2)]
    exported = public.get(f"{library}.{package}")
    return exported is not None and rest[:1] in ([], *([x] for x in exported)) and "._" not in name


def _directives(docs: pathlib.Path) -> Iterator[tuple[str, str, list[str] | None]]:
    """Where a page shows what, and the members that it lists; None where all of them are shown."""
    for page in sorted((docs / "api").glob("*.md")):
        text = page.read_text()
        for match in re.finditer(r"^::: (\S+)\n((?: .*\n)*)", text + "\n", re.MULTILINE):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{page}:{line}", match[1], _members(match[2])


def _members(options: str) -> list[str] | None:
    """Of `members: [A, B]`, `members: false`, or a list of lines; None where there is none."""
    block = re.search(r"^ *members:(.*)\n((?: *- .*\n)*)", options, re.MULTILINE)
    inline = re.findall(r"\w+", block[1]) if block else []
    listed = re.findall(r"- (\w+)", block[2]) if block else []
    return [name for name in inline if name != "false"] + listed if block else None
