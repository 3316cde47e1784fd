from typing import Any

from ..numerics import is_frozen
from ._base import AbstractShader
from ._constant import Constant


def as_shader(value: Any) -> Any:
    """A shader from what a user writes.

    **Arguments:**

    - `value`: a shader, or a colour (three numbers).

    **Returns:**

    The shader.
    """
    shader = value.value if is_frozen(value) else value
    return value if isinstance(shader, AbstractShader) else Constant(value)
