from typing import Any, ClassVar

from ._node import AbstractNode, check_node


# Paths use these names for other things.
_RESERVED = ("background", "integrator", "transform")


class Group(AbstractNode):
    """Named children that share a frame. Overlapping media add their densities.

    A child is `group["ball"]`, what is below it `group["ball.shader"]`.

    **Arguments:**

    - `children`: nodes, lights, cameras, filters and further groups, as keyword arguments. A name
      has no dot, and is not `background`, `integrator` or `transform`. Filters change no picture
      by themselves: `render` and `solve` take them as `filters`.
    """

    children: dict[str, Any]

    unnamed: ClassVar[str] = "children"

    def __init__(self, **children: Any):
        for name, child in children.items():
            _check_name(name)
            if not isinstance(child, AbstractNode):
                check_node(child, f"the child {name!r} of a Group")
        self.children = children


def _check_name(name: str) -> None:
    if not name or "." in name or "*" in name or name in _RESERVED:
        raise ValueError(
            f"a child of a Group needs a name without dots and stars that is none of "
            f"{', '.join(_RESERVED)}; got {name!r}."
        )
