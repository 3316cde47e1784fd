"""A picture is found through its negative: `python invert_picture.py`, `--torch` with PyTorch.

The source picture is a leaf like any other. It is shown through a filter, compared with the
negative of a picture that nobody shows it, and becomes that picture.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import tyro

import scenegraph as sg


def photograph() -> sg.Image:
    """Something to look at."""
    camera = sg.PerspectiveCamera.look_at(
        eye=[0.0, -4.0, 1.0],
        target=[0.0, 0.0, 0.0],
        up=[0.0, 0.0, 1.0],
        fov_x=0.6,
        width=96,
        height=72,
    )
    return sg.render(sg.diagnostics.toy_scene(), camera)


def fit_with_optax(negative: jax.Array, steps: int) -> sg.Picture:
    """Gradient descent on the pixels of the source."""

    def loss(picture: sg.Picture) -> jax.Array:
        return jnp.mean((picture().rgb - negative) ** 2)

    picture = sg.Picture(sg.Image(jnp.full(negative.shape, 0.5)), sg.Invert())
    optimizer = optax.adam(2e-2)
    moments = optimizer.init(eqx.filter(picture, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(picture: sg.Picture, moments: optax.OptState) -> tuple[sg.Picture, optax.OptState]:
        slope = eqx.filter_grad(loss)(picture)
        updates, moments = optimizer.update(slope, moments)
        return eqx.apply_updates(picture, updates), moments

    for _ in range(steps):
        picture, moments = step(picture, moments)
    return picture


def fit_with_torch(negative: jax.Array, steps: int) -> sg.Picture:
    """The same with a `torch.nn.Module` and an optimiser of PyTorch's."""
    import numpy as np
    import torch  # pyright: ignore[reportMissingImports]

    picture = sg.Picture(sg.Image(jnp.full(negative.shape, 0.5)), sg.Invert())
    module = sg.as_torch_module(picture)
    target = torch.tensor(np.asarray(negative))
    optimizer = torch.optim.Adam(module.parameters(), lr=2e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(module(), target).backward()
        optimizer.step()
    return module.model()


def main(steps: int = 200, out: str = "invert_picture.png", torch: bool = False) -> None:
    """Writes the negative and what was found behind it side by side."""
    negative = sg.Invert()(photograph())
    fit = fit_with_torch if torch else fit_with_optax
    picture = fit(negative.rgb, steps)
    sg.io.write_picture(out, sg.images.side_by_side([negative, picture.image]))
    error = jnp.max(jnp.abs(picture.image.rgb - photograph().rgb))
    print(f"largest error of the picture found: {error:.4f}")


if __name__ == "__main__":
    tyro.cli(main)
