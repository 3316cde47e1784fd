"""A modular, differentiable scene-graph renderer: a scene is a pytree, every ray is a cone.

Subpackages are reached by name (`scenegraph.fields`); what is used every day is here.
"""

import importlib.metadata
from typing import TYPE_CHECKING

from ._first_use import names_on_first_use
from ._versions import check_versions


check_versions()
__version__ = importlib.metadata.version("scenegraph")

if TYPE_CHECKING:
    from ._everything import *  # noqa: F403
else:
    __getattr__, __dir__ = names_on_first_use(__name__, "_everything")
