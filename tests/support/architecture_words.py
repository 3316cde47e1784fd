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
    import_origin,
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
    """Directives that show something else than one public name, as short as users type it."""
    public = _public_names(sources)
    return [
        f"{where}: `{name}` is not public" + (f"; users type `{short}`" if short else "")
        for where, name in _directives(docs)
        if name not in public.values()
        for short in [public.get(name)]
    ]


def public_on_no_page(sources: list[Source], docs: pathlib.Path) -> list[str]:
    """Names that a package exports as `X as X` and that no API page shows."""
    shown = {name for _, name in _directives(docs)}
    names = _public_names(sources).values()
    return [f"docs/api: no page shows `{name}`" for name in names if name not in shown]


def shown_again(docs: pathlib.Path) -> list[str]:
    """Directives that show what another one before them shows."""
    seen: dict[str, str] = {}
    return [
        f"{where}: `{name}` stands already at {first}"
        for where, name in _directives(docs)
        if (first := seen.setdefault(name, where)) != where
    ]


def internal_in_text(sources: list[Source], pages: list[pathlib.Path]) -> list[str]:
    """Names such as `sg.package.X` in a text that the package does not export as `X as X`."""
    public = {name.split(".", 1)[1] for name in _public_names(sources)}
    packages = {name.split(".")[0] for name in public}
    # Subpackages have public names.
    public |= {name.rsplit(".", 1)[0] for name in public if name.count(".") > 1}
    return [
        f"{page}:{number}: `sg.{package}.{name}` is not public"
        for page in pages
        for number, line in enumerate(page.read_text().splitlines(), 1)
        for package, name in re.findall(r"\bsg\.(\w+)\.(\w+)", line)
        if package in packages and f"{package}.{name}" not in public
    ]


def _public_names(sources: list[Source]) -> dict[str, str]:
    """The names that packages export as `X as X`, and how users type them: as `lib.X` where the
    root exports them too, else as `lib.package.X`."""
    names, at_root = [], set()
    for source in [source for source in sources if source.is_init]:
        for node in [node for node in ast.walk(source.tree) if isinstance(node, ast.ImportFrom)]:
            exported = [alias.name for alias in node.names if alias.asname == alias.name]
            if len(source.module) == 1:
                at_root |= {(*import_origin(source, node), name) for name in exported}
            else:
                names += [(*source.module, name) for name in exported]
    short = {name: (name[0], name[-1]) if name in at_root else name for name in names}
    return {".".join(name): ".".join(typed) for name, typed in short.items()}


def _directives(docs: pathlib.Path) -> Iterator[tuple[str, str]]:
    """Where a page shows something, and its name."""
    for page in sorted((docs / "api").glob("*.md")):
        for number, line in enumerate(page.read_text().splitlines(), 1):
            if line.startswith("::: "):
                yield f"{page}:{number}", line.split()[1]
