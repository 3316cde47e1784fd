"""Small things to fit: a straight line in closed form, and one cloud seen by one camera."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import scenegraph as sg
from scenegraph.fields import GaussianBlob
from scenegraph.fitting import AbstractCallback


class Line(eqx.Module):
    """`slope * x + offset`."""

    slope: jax.Array
    offset: jax.Array
    count: jax.Array

    @staticmethod
    def start() -> "Line":
        return Line(jnp.array(0.0), jnp.array(0.0), jnp.array(3))


class Points(eqx.Module):
    """Eight points a batch, on `y = 2 x + 1` but for some noise."""

    noise: float = 0.0

    def batch(self, seed, step):
        x_key, noise_key = jax.random.split(jax.random.fold_in(jax.random.key(seed), step))
        x = jax.random.uniform(x_key, (8,), minval=-1.0)
        return x, 2 * x + 1 + self.noise * jax.random.normal(noise_key, (8,))


class AllPoints(eqx.Module):
    """The same points in every batch."""

    x: jax.Array
    y: jax.Array

    def batch(self, seed, step):
        del seed, step
        return self.x, self.y


def squared_error(line: Line, calls, batch, key):
    """A loss whose state counts its calls."""
    del key
    x, y = batch
    value = jnp.mean((line.slope * x + line.offset - y) ** 2)
    return value, (jnp.array(0) if calls is None else calls) + 1


def closed_form(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Slope and offset of the best line."""
    return np.linalg.lstsq(np.stack([x, np.ones_like(x)], axis=1), y, rcond=None)[0]


class StopAt(AbstractCallback):
    """Ends a fit early."""

    every = 1

    def __init__(self, step: int):
        self.step = step

    def __call__(self, progress) -> bool:
        return progress.step >= self.step


def cloud(rgb=(0.8, 0.3, 0.1)) -> sg.Scene:
    volume = sg.Volume(GaussianBlob([0.1, 0.0, 0.0], 0.4, 4.0, rgb))
    white, integrator = (1.0, 1.0, 1.0), sg.Hierarchical((16,))
    return sg.Scene(sg.Group(blob=volume), background=white, integrator=integrator)


def cloud_views() -> sg.Views:
    """The cloud's own picture, 8x8 pixels."""
    eye, up = [0.0, -3.0, 1.0], [0.0, 0.0, 1.0]
    camera = sg.PerspectiveCamera.look_at(eye, [0.0] * 3, up, 0.7, 8, 8)
    return sg.views(camera, sg.render(cloud(), camera))
