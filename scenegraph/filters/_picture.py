from ..images import Image
from ..numerics import AbstractModule
from ._base import AbstractFilter
from ._chain import Chain


class Picture(AbstractModule):
    """A picture whose pixels are leaves, with a filter: both can be optimised.

    **Arguments:**

    - `image`: the picture before the filter.
    - `filter`: the filter; by default none.

    Example: the gradient by the pixels of a negative whose positive is known.

    ```python
    target = jnp.full((4, 6, 3), 0.25)
    picture = sg.Picture(sg.Image(jnp.zeros((4, 6, 3))), sg.Invert())
    gradient = eqx.filter_grad(lambda p: jnp.mean((p().rgb - target) ** 2))(picture)
    ```
    """

    image: Image
    filter: AbstractFilter = Chain(())

    def __call__(self) -> Image:
        """Returns the filtered picture."""
        return self.filter(self.image)
