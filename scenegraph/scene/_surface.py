from typing import Any

import equinox as eqx

from .._typing import Scalar
from ..numerics import as_float_leaf, Frozen, is_frozen, unfreeze
from ..shaders import AbstractShader, as_shader, NormalMap, OnSurface, require_fraction_inputs
from ..shapes import AbstractShape
from ._node import AbstractNode


def _as_opacity(value: Any) -> Any:
    """Converts a number, frozen or not, to a leaf; shaders stay as they are."""
    if has_pattern(value):
        return value
    return Frozen(as_float_leaf(value.value)) if is_frozen(value) else as_float_leaf(value)


def has_pattern(opacity: Any) -> bool:
    """Returns true if an opacity is a shader, which differs from place to place."""
    return isinstance(unfreeze(opacity), AbstractShader)


class Surface(AbstractNode):
    """A shape and its shader.

    **Arguments:**

    - `shape`: the shape, in the node's own frame.
    - `shader`: a shader, or a constant colour, which does not depend on lights.
    - `opacity`: the fraction of the light that it stops where it covers a pixel: a number, or a
      shader of which red counts, such as an `ImageTexture` of one channel. By default it is one,
      and frozen: a picture seldom determines both opacity and colour.
    """

    shape: AbstractShape
    shader: AbstractShader = eqx.field(converter=as_shader)
    opacity: Scalar | AbstractShader = eqx.field(
        converter=_as_opacity, default_factory=lambda: Frozen(1.0)
    )

    def __check_init__(self):
        require_fraction_inputs(self, "opacity")
        shape = unfreeze(self.shape)
        if not isinstance(shape, AbstractShape):
            raise TypeError(f"a Surface needs a shape; got a {type(shape).__name__}.")
        used = map(unfreeze, (self.shader, self.opacity))
        pattern = next(filter(None, map(_pattern_in_uv, used)), None)
        if not shape.has_uv and pattern:
            raise ValueError(
                f"{pattern} is a pattern in `uv`, which a {type(shape).__name__} does not have; "
                f"give it `coordinates=InSpace()`, or use another shape."
            )


def _pattern_in_uv(node: Any) -> str | None:
    """Returns the name of a Module, at or below a node, that uses surface coordinates."""
    if not isinstance(node, eqx.Module):
        return None
    parts = [getattr(node, name) for name in node.__dataclass_fields__]
    for part in parts:
        if isinstance(part, OnSurface | NormalMap):
            return type(node if isinstance(part, OnSurface) else part).__name__
    return next(filter(None, map(_pattern_in_uv, parts)), None)
