from ..images import Image
from ..numerics import AbstractModule
from ._base import AbstractFilter
from ._chain import Chain


class Picture(AbstractModule):
    """A picture whose pixels are leaves, shown through filters: both can be optimised.

    **Arguments:**

    - `image`: the source.
    - `filter`: what it is shown through; nothing by default.

    Example: the negative whose positive is known.

    ```python
    target = jnp.full((4, 6, 3), 0.25)
    picture = sg.Picture(sg.Image(jnp.zeros((4, 6, 3))), sg.Invert())
    slope = eqx.filter_grad(lambda p: jnp.mean((p().rgb - target) ** 2))(picture)
    ```
    """

    image: Image
    filter: AbstractFilter = Chain(())

    def __call__(self) -> Image:
        """Shows the picture.

        **Returns:**

        The source after the filter.
        """
        return self.filter(self.image)
