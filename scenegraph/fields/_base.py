import abc

from .._typing import Array, Float, PyTree, RandomKey, Scalar, Vector
from ..numerics import AbstractModule
from ..rays import AbstractGaussian, Medium
from ..shapes import Box


class AbstractField(AbstractModule):
    """Density and colour everywhere in a node's own frame.

    A sample is a Gaussian; the field returns its mean over the sample as well as it can, or its
    value at `gaussian.mean`.

    Example: fog that thins out upwards.

    ```python
    class Haze(sg.fields.AbstractField):
        height: jax.Array = eqx.field(converter=jnp.asarray)
        rgb: jax.Array = eqx.field(converter=jnp.asarray)

        def __call__(self, gaussian, view, *, key=None):
            return sg.rays.Medium(self.density(gaussian), self.rgb)

        def density(self, gaussian):
            # The mean of exp(-z / h) over a Gaussian: exp(-mean / h + variance / (2 h^2)).
            z, variance = gaussian.mean[2], gaussian.variance()[2]
            return jnp.exp(-z / self.height + variance / (2 * self.height**2))


    haze = sg.Volume(Haze(0.5, [0.8, 0.8, 0.9]))
    ```
    """

    @abc.abstractmethod
    def __call__(
        self, gaussian: AbstractGaussian, view: Vector, *, key: RandomKey | None = None
    ) -> Medium:
        """Evaluates the field at one sample.

        **Arguments:**

        - `gaussian`: the sample, in the field's frame.
        - `view`: the direction of the ray.
        - `key`: random key of any noise; `None` for none. Keyword only argument.

        **Returns:**

        Density (per unit length of the field's frame, at least zero) and colour.
        """

    @abc.abstractmethod
    def density(self, gaussian: AbstractGaussian) -> Scalar:
        """Evaluates the density alone, without noise.

        **Arguments:**

        - `gaussian`: the sample, in the field's frame.

        **Returns:**

        The density, per unit length of the field's frame; at least zero.
        """

    def reach(self) -> Box | None:
        """Returns a box outside of which there is next to nothing of the field, in its frame.

        **Returns:**

        The box, for a field that derives from `AbstractBoundedField`; else `None`: there is no
        telling.
        """
        return self.bounding_box() if isinstance(self, AbstractBoundedField) else None


class AbstractBoundedField(AbstractField):
    """A field that says where it ends, so that its `Volume` goes with it."""

    @abc.abstractmethod
    def bounding_box(self) -> Box:
        """Computes a box outside of which there is next to nothing of the field.

        **Returns:**

        The box, in the field's frame.
        """


class AbstractConditionedField(AbstractField):
    """A field that computes what depends on the direction alone once per ray."""

    @abc.abstractmethod
    def condition(self, view: Vector) -> PyTree:
        """Computes the part that depends on the direction alone.

        **Arguments:**

        - `view`: the direction of the ray.

        **Returns:**

        A tree of arrays, which `medium` takes.
        """

    @abc.abstractmethod
    def medium(
        self, gaussian: AbstractGaussian, condition: PyTree, *, key: RandomKey | None = None
    ) -> Medium:
        """Evaluates the field at one sample.

        **Arguments:**

        - `gaussian`: the sample, in the field's frame.
        - `condition`: the result of `condition` for the ray.
        - `key`: random key of any noise; `None` for none. Keyword only argument.

        **Returns:**

        Density (per unit length of the field's frame, at least zero) and colour.
        """

    def __call__(
        self, gaussian: AbstractGaussian, view: Vector, *, key: RandomKey | None = None
    ) -> Medium:
        return self.medium(gaussian, self.condition(view), key=key)


class AbstractAppearanceField(AbstractConditionedField):
    """A field whose colours, but not densities, also depend on the picture's appearance code."""

    @abc.abstractmethod
    def condition_on(self, view: Vector, appearance: Float[Array, " codes"] | None) -> PyTree:
        """Computes the part that depends on the direction, and on the picture's appearance code.

        **Arguments:**

        - `view`: the direction of the ray.
        - `appearance`: the code of the ray's picture, `codes`; `None` for the mean picture, for
          which the result is that of `condition`.

        **Returns:**

        A tree of arrays, which `medium` takes.
        """
