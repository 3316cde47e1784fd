from typing import Any

import equinox as eqx


class Tied(eqx.Module):
    """The place of a leaf that has the value of another one, as `tie` leaves it.

    It holds no array: it does not appear among leaves, and has no gradient of its own. `render` and
    `fit` put the value there themselves; call `open_scene` before using a tied node by hand.
    """

    path: str = eqx.field(static=True)

    def __jax_array__(self) -> Any:
        """Refuses to be computed with: the value is known in the whole scene alone."""
        raise TypeError(
            f"this leaf is tied to {self.path!r}, and has its value in the whole scene alone: take "
            f"the node from `sg.scene.open_scene(scene)`; a camera is named by its path."
        )


def is_tied(node: Any) -> bool:
    """Returns true for the place of a tied leaf."""
    return isinstance(node, Tied)
