import abc
from typing import Any

from .._typing import Array, Bool, PyTree, RandomKey, Scalar
from ..cameras import AbstractCamera
from ..lights import AbstractLight
from ..numerics import AbstractModule, is_frozen
from ..rays import Medium, Ray, Section, Span
from ._surface import Surface


class AbstractNode(AbstractModule):
    """A part of the scene that fills space. Nodes answer for one ray or one sample."""

    @abc.abstractmethod
    def span(self, ray: Ray) -> Span:
        """Where along a ray anything may be.

        **Arguments:**

        - `ray`: one ray, in the frame around the node.

        **Returns:**

        A stretch of the ray's own `near` to `far`; empty if it misses.
        """

    @abc.abstractmethod
    def prepare(self, ray: Ray) -> PyTree:
        """What the node works out once for all samples of a ray.

        **Arguments:**

        - `ray`: one ray, in the frame around the node.

        **Returns:**

        Arrays that `medium` takes.
        """

    @abc.abstractmethod
    def medium(self, section: Section, prepared: PyTree, *, key: RandomKey | None = None) -> Medium:
        """What fills space at one sample.

        **Arguments:**

        - `section`: the sample, in the frame around the node.
        - `prepared`: what `prepare` returned for its ray.
        - `key`: of any noise; `None` for none. Keyword only argument.

        **Returns:**

        The medium; its density is per unit length of the frame around the node.
        """

    @abc.abstractmethod
    def propose(self, section: Section, prepared: PyTree) -> Scalar:
        """About how dense one sample is: cheaper to ask than `medium`, to find where to look.

        **Arguments:**

        - `section`: the sample, in the frame around the node.
        - `prepared`: what `prepare` returned for its ray.

        **Returns:**

        A density, per unit length of the frame around the node.
        """

    @abc.abstractmethod
    def occupied(self, ray: Ray, part: Span) -> Bool[Array, ""]:
        """Whether there may be anything in a short part of a ray.

        **Arguments:**

        - `ray`: one ray, in the frame around the node.
        - `part`: of it.

        **Returns:**

        False only where nothing is known to be.
        """


def check_node(value: Any, place: str) -> None:
    """Refuses what would otherwise be left out of the picture without a word.

    **Arguments:**

    - `value`: what is to be part of a scene; a frozen node is one too.
    - `place`: for the message.

    **Errors:**

    `TypeError` for what is neither a node nor a light nor a camera.
    """
    value = value.value if is_frozen(value) else value
    if not isinstance(value, AbstractNode | AbstractCamera | AbstractLight | Surface):
        raise TypeError(
            f"{place} must be a node (such as a Group, a Surface or a Volume), a light or a "
            f"camera; got a {type(value).__name__}. A field becomes a node in a `Volume`, a shape "
            f"in a `Surface`."
        )
