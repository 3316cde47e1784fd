"""The rules of the code base that its sources tell, as functions of them.

A rule gives its findings as `file:line: text`, and an empty list when there is nothing to say.
"""

import ast
import dataclasses
import pathlib
import re
from collections import Counter
from collections.abc import Iterator


ROOT_FILES = ("__init__", "__main__", "_checks", "_jax", "_typing", "_versions")
# Packages that can be imported without JAX, and the last line of all others.
LIGHT = ("cli", "io", "settings")
FINISH = "finish_import(__name__)"
MANY_FILES = 14
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclasses.dataclass(frozen=True)
class Source:
    """One file: its path below the library's parent folder, its text, and what it says."""

    path: pathlib.Path
    text: str
    tree: ast.Module

    @property
    def module(self) -> tuple[str, ...]:
        parts = self.path.with_suffix("").parts
        return parts[:-1] if self.is_init else parts

    @property
    def is_init(self) -> bool:
        return self.path.name == "__init__.py" or self.path.parts[1:] == ("_everything.py",)

    @property
    def package(self) -> str:
        """The package of the file, or the file's own name where it is in the root folder."""
        return self.path.parts[1] if len(self.path.parts) > 2 else self.path.stem


def read_sources(library: pathlib.Path) -> list[Source]:
    """All Python files of the library, parsed."""
    return [
        Source(path.relative_to(library.parent), text := path.read_text(), ast.parse(text))
        for path in sorted(library.rglob("*.py"))
    ]


def finding(source: Source, node: ast.AST, text: str) -> str:
    return f"{source.path}:{getattr(node, 'lineno', 1)}: {text}"


# --- Layers


def unknown_packages(sources: list[Source], layers: dict[str, int]) -> list[str]:
    """Folders that are not in the table, and files in the root folder that belong in a package."""
    return [
        finding(source, source.tree, f"`{source.package}` is not in layers.toml")
        for source in sources
        if source.package not in (*layers, *ROOT_FILES)
    ]


def forbidden_imports(sources: list[Source], layers: dict[str, int]) -> list[str]:
    """Imports, at any depth, of the root, of packages not below, and of private files of others."""
    return [
        finding(source, node, reason)
        for source in sources
        for node, target in _imports(source)
        if (reason := _why_forbidden(source, target, layers))
    ]


def _why_forbidden(source: Source, target: tuple[str, ...], layers: dict[str, int]) -> str:
    if len(target) < 2 or target[1] not in layers:
        return "imports the root package"
    package, own = target[1], source.package
    private = len(target) > 2 and target[2].startswith("_")
    if package == own:
        return ""
    if own in layers and layers[package] >= layers[own]:
        return f"`{own}` (layer {layers[own]}) imports `{package}` ({layers[package]})"
    return f"imports `{'.'.join(target)}`, which is private to `{package}`" if private else ""


def _imports(source: Source) -> Iterator[tuple[ast.AST, tuple[str, ...]]]:
    """What a file imports of its own library, as the parts of absolute names."""
    library = source.path.parts[0]
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            targets = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = import_origin(source, node)
            # `from .. import rays` names a package; of `from ..rays import Ray` the base is enough.
            targets = [(*base, a.name) for a in node.names] if len(base) == 1 else [base]
        else:
            continue
        yield from ((node, target) for target in targets if target[0] == library)


def import_origin(source: Source, node: ast.ImportFrom) -> tuple[str, ...]:
    """The absolute name of the module from which something is imported."""
    named = tuple(node.module.split(".")) if node.module else ()
    if node.level == 0:
        return named
    folder = source.path.parent.parts
    return folder[: len(folder) - node.level + 1] + named


# --- What is not written


def unwanted_calls(sources: list[Source], names: tuple[str, ...]) -> list[str]:
    """Calls of functions with one of these names."""
    return [
        finding(source, node, f"calls `{node.func.id}`")
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
    ]


def mutable_defaults(sources: list[Source]) -> list[str]:
    """Lists, dictionaries and sets as default arguments."""
    return [
        finding(source, default, f"`{ast.unparse(default)}` as default argument is shared")
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, Function | ast.Lambda)
        for default in [*node.args.defaults, *node.args.kw_defaults]
        if default is not None and _is_mutable(default)
    ]


def _is_mutable(node: ast.expr) -> bool:
    displays = ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp
    makers = ("list", "dict", "set", "defaultdict", "bytearray")
    made = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in makers
    return made or isinstance(node, displays)


def postponed_annotations(sources: list[Source]) -> list[str]:
    """`from __future__ import annotations`, which would hide the shapes from the run-time check."""
    return [
        finding(source, node, "postpones annotations")
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and "annotations" in [alias.name for alias in node.names]
    ]


def busy_inits(sources: list[Source]) -> list[str]:
    """Anything in a package's `__init__` but a docstring and imports of its own files.

    `from ._x import Y as Y` makes a name public; without `as`, it is internal to the library. A
    package may also make internal names of a lower one public, `from ..low import Y as Y`. The last
    line loads the other packages too, or gives names that need these on their first use.
    """
    return [
        finding(source, node, f"`{ast.unparse(node).splitlines()[0]}` does not just re-export")
        for source in sources
        if source.is_init and len(source.path.parts) > 2
        for node in source.tree.body
        if not (is_docstring(node) or _is_reexport(node) or _is_first_use(node))
    ]


def imported_alone(sources: list[Source]) -> list[str]:
    """Packages whose last line does not import the others, but for those that need no JAX.

    And imports from the root, whose names are there only when all packages are.
    """
    return [
        finding(source, source.tree.body[-1], f"`{FINISH}` is missing")
        for source in sources
        if source.is_init and len(source.path.parts) > 2 and source.package not in LIGHT
        if ast.unparse(source.tree.body[-1]) != FINISH
    ] + [
        finding(source, node, f"asks the root for `{node.names[0].name}`; import names from it")
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ImportFrom) and node.level > 1 and node.module is None
    ]


def _is_first_use(node: ast.stmt) -> bool:
    """Returns true for what makes names appear on their first use, or where they were."""
    if ast.unparse(node).startswith("__getattr__ = moved_names(__name__, "):
        return True
    if isinstance(node, ast.ImportFrom):
        return node.module in ("_first_use", "typing")
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        names = "__getattr__, __dir__ = names_on_first_use(__name__)"
        return all(map(_is_reexport, node.body)) and "".join(map(ast.unparse, node.orelse)) == names
    return ast.unparse(node) == FINISH


def is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_reexport(node: ast.stmt) -> bool:
    if not isinstance(node, ast.ImportFrom):
        return False
    own, names = (node.module or "").startswith("_"), node.names
    if node.level == 1 and own:
        return all(alias.asname in (None, alias.name) for alias in names)
    return node.level == 2 and not own and all(alias.asname == alias.name for alias in names)


# --- Sizes


def large_packages(sources: list[Source]) -> list[str]:
    """Packages with many files, and no order in which to read them."""
    inits = [source for source in sources if source.is_init and len(source.path.parts) > 2]
    files = Counter(source.path.parent for source in sources if not source.is_init)
    return [
        finding(source, source.tree, f"{count} files, and no word of their order (`Read ...`)")
        for source in inits
        if (count := files[source.path.parent]) > MANY_FILES
        and not re.search(r"\bRead\b", ast.get_docstring(source.tree) or "")
    ]


# --- Docstrings


def poor_docstrings(sources: list[Source]) -> list[str]:
    """Public names without a docstring, or whose docstring lacks Arguments or Returns."""
    found = dict.fromkeys(
        finding(source, node, f"`{name}` {lack}")
        for name, source, node in public_definitions(sources)
        for lack in _lacks(source, node)
    )
    return list(found)


def public_definitions(sources: list[Source]) -> Iterator[tuple[str, Source, ast.AST]]:
    """The modules, classes and functions that an `__init__` exports as `X as X`."""
    modules = {source.module: source for source in sources}
    for source in [source for source in sources if source.is_init]:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if alias.asname == alias.name:
                        yield from _resolve(modules, import_origin(source, node), alias.name)


def _resolve(
    modules: dict[tuple[str, ...], Source], module: tuple[str, ...], name: str
) -> Iterator[tuple[str, Source, ast.AST]]:
    """Follows a re-export to the module, class or function that it stands for."""
    source = modules.get(module)
    for node in source.tree.body if source else ():
        if isinstance(node, Function | ast.ClassDef) and node.name == name:
            yield name, source, node
        elif isinstance(node, ast.ImportFrom):
            origin = import_origin(source, node)
            for alias in node.names:
                if (alias.asname or alias.name) == name and origin != module:
                    yield from _resolve(modules, origin, alias.name)
    if package := modules.get((*module, name)):
        yield name, package, package.tree


def _lacks(source: Source, node: ast.AST) -> list[str]:
    doc = ast.get_docstring(node)
    if doc is None:
        return ["has no docstring"]
    if isinstance(node, ast.ClassDef):
        # The fields of a command are its flags; tyro takes their help from beside them.
        needed = source.package != "cli" and _takes_arguments(node)
        documented = "**Arguments:**" in doc + _init_docstring(source, node)
        return [] if documented or not needed else ["has fields and no **Arguments:**"]
    return _function_lacks(node, doc) if isinstance(node, Function) else []


def _function_lacks(node: Function, doc: str) -> list[str]:
    lacks = []
    if any(isinstance(child, ast.arg) for child in ast.walk(node.args)):
        lacks += [] if "**Arguments:**" in doc else ["has no **Arguments:**"]
    if node.returns is None or ast.unparse(node.returns) not in ("None", "NoReturn"):
        lacks += [] if "**Returns:**" in doc else ["has no **Returns:**"]
    return lacks


def _takes_arguments(node: ast.ClassDef) -> bool:
    if node.name.startswith("Abstract"):
        return False
    if init := _init(node):
        return len([child for child in ast.walk(init.args) if isinstance(child, ast.arg)]) > 1
    fields = [field for field in node.body if isinstance(field, ast.AnnAssign)]
    return any("ClassVar" not in ast.unparse(field.annotation) for field in fields)


def _init(node: ast.ClassDef) -> ast.FunctionDef | None:
    methods = [method for method in node.body if isinstance(method, ast.FunctionDef)]
    return next((method for method in methods if method.name == "__init__"), None)


def _init_docstring(source: Source, node: ast.ClassDef) -> str:
    """Also where it is `Name.__init__.__doc__ = ...` after the class."""
    late = [
        ast.unparse(statement.value)
        for statement in source.tree.body
        if isinstance(statement, ast.Assign)
        and ast.unparse(statement.targets[0]) == f"{node.name}.__init__.__doc__"
    ]
    init = _init(node)
    return "".join([(init and ast.get_docstring(init)) or "", *late])
