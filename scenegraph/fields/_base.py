import abc

from .._typing import PyTree, RandomKey, Scalar, Vector
from ..numerics import AbstractModule
from ..rays import AbstractGaussian, Medium


class AbstractField(AbstractModule):
    """Density and colour everywhere in a node's own frame."""

    @abc.abstractmethod
    def __call__(
        self, gaussian: AbstractGaussian, view: Vector, *, key: RandomKey | None = None
    ) -> Medium:
        """The medium that one sample sees.

        **Arguments:**

        - `gaussian`: where the sample looks.
        - `view`: the direction of the ray.
        - `key`: of any noise; `None` for none. Keyword only argument.

        **Returns:**

        Density (per unit length of the field's frame) and colour.
        """

    @abc.abstractmethod
    def density(self, gaussian: AbstractGaussian) -> Scalar:
        """The density alone, without noise.

        **Arguments:**

        - `gaussian`: where the sample looks.

        **Returns:**

        Per unit length of the field's frame.
        """


class AbstractConditionedField(AbstractField):
    """A field that works out part of its answer once a ray, for all samples of that ray."""

    @abc.abstractmethod
    def condition(self, view: Vector) -> PyTree:
        """What depends on the view alone.

        **Arguments:**

        - `view`: the direction of the ray.

        **Returns:**

        Arrays that `medium` takes.
        """

    @abc.abstractmethod
    def medium(
        self, gaussian: AbstractGaussian, condition: PyTree, *, key: RandomKey | None = None
    ) -> Medium:
        """The medium that one sample sees.

        **Arguments:**

        - `gaussian`: where the sample looks.
        - `condition`: what `condition` returned for the ray.
        - `key`: of any noise; `None` for none. Keyword only argument.

        **Returns:**

        Density and colour.
        """

    def __call__(
        self, gaussian: AbstractGaussian, view: Vector, *, key: RandomKey | None = None
    ) -> Medium:
        return self.medium(gaussian, self.condition(view), key=key)
