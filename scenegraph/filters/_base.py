import abc

from ..images import Image
from ..numerics import AbstractModule


class AbstractFilter(AbstractModule):
    """A differentiable function from picture to picture, whose fields can be optimised.

    Example: a picture in shades of one colour.

    ```python
    class Tint(sg.filters.AbstractFilter):
        color: jax.Array = eqx.field(converter=jnp.asarray)

        def __call__(self, image):
            grey = jnp.mean(image.rgb, axis=-1, keepdims=True)
            return eqx.tree_at(lambda i: i.rgb, image, grey * self.color)


    sepia = Tint([1.0, 0.8, 0.6])
    ```
    """

    @abc.abstractmethod
    def __call__(self, image: Image) -> Image:
        """Filters a picture.

        **Arguments:**

        - `image`: the picture; its numbers are linear or sRGB, as `image.space` says.

        **Returns:**

        The new picture; fields that the filter does not change, such as `alpha`, are kept.
        """
