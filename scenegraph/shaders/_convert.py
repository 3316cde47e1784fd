from typing import Any

from ..numerics import is_frozen
from ._base import AbstractShader
from ._constant import Constant


def as_shader(value: Any) -> Any:
    """Converts a colour (three numbers) to a `Constant`; shaders stay as they are."""
    shader = value.value if is_frozen(value) else value
    return value if isinstance(shader, AbstractShader) else Constant(value)
