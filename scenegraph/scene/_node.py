from typing import Any, ClassVar

from .._words import describe
from ..cameras import AbstractCamera
from ..filters import AbstractFilter
from ..lights import AbstractLight
from ..numerics import AbstractModule, is_frozen
from ._paths import find_part, has_part


class AbstractNode(AbstractModule, is_abstract=True):
    """A part of the scene tree that is no light, camera or filter.

    `node["table.ball"]` is the part at a path; `"table.ball" in node` is true if there is one.
    `unnamed` is the field that holds further nodes, which paths omit.
    """

    unnamed: ClassVar[str | None] = None

    def __getitem__(self, path: str) -> Any:
        return find_part(self, path)

    def __contains__(self, path: str) -> bool:
        return has_part(self, path)


_KINDS = (AbstractNode, AbstractCamera, AbstractLight, AbstractFilter)


def check_node(value: Any, place: str) -> None:
    """Refuses an object that no picture would show; a frozen node is a node too."""
    value = value.value if is_frozen(value) else value
    if not isinstance(value, _KINDS):
        raise TypeError(
            f"{place} must be a node (such as a Group, a Surface or a Volume), a light, a camera "
            f"or a filter; got {describe(value)}. A field becomes a node in a `Volume`, a shape "
            f"in a `Surface`."
        )
