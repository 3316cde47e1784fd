"""Soft shadows tell where a window is, and how large: `python find_window.py`."""

import jax
import jax.numpy as jnp
import optax
import tyro

import scenegraph as sg


def make(numbers: jax.Array) -> sg.Scene:
    """A pole, a bar and a ball over a floor; the window is a lamp that the camera does not see."""
    x, y, low, high, half = numbers
    center = jnp.stack([x, y, (low + high) / 2])
    edges = half * jnp.eye(3)[0], (high - low) / 2 * jnp.eye(3)[2]
    window = sg.RectangleLight(center, *edges, radiance=[20.0, 20.0, 20.0])
    grey = sg.Lambert([0.7, 0.7, 0.7])
    return sg.Scene(
        sg.Group(
            window=window,
            floor=sg.Surface(sg.Plane(), grey),
            pole=sg.Surface(sg.Capsule([-0.6, 0.0, 0.0], [-0.6, 0.0, 0.7], 0.07), grey),
            bar=sg.Surface(sg.Capsule([-0.6, 0.0, 0.6], [0.3, -0.1, 0.8], 0.05), grey),
            ball=sg.Surface(sg.Sphere([0.4, 0.1, 0.3], 0.3), grey),
        )
    )


def main(steps: int = 800, size: int = 48, out: str = "find_window.png") -> float:
    """Fits five numbers by Adam; returns the largest error of one."""
    camera = sg.PerspectiveCamera.look_at(
        [0.0, -2.2, 3.2], [0.0, -0.2, 0.0], [0.0, 0.0, 1.0], 0.9, size, size
    )
    # Place across and away, lower and upper edge, half the width. The lower edge is known best.
    true = jnp.array([0.3, 1.5, 0.5, 1.9, 0.5])
    start = jnp.array([-0.2, 2.0, 0.3, 1.5, 0.8])
    draw = jax.jit(lambda numbers: sg.render(make(numbers), camera))
    target = draw(true)
    optimizer = optax.adam(optax.cosine_decay_schedule(5e-2, steps))

    @jax.jit
    def advance(numbers: jax.Array, state: tuple) -> tuple[jax.Array, tuple, jax.Array]:
        error = lambda numbers: jnp.mean((draw(numbers).rgb - target.rgb) ** 2)
        loss, gradient = jax.value_and_grad(error)(numbers)
        change, state = optimizer.update(gradient, state)
        return optax.apply_updates(numbers, change), state, loss

    numbers, state = start, optimizer.init(start)
    for step in range(steps):
        numbers, state, loss = advance(numbers, state)
        if step % 200 == 0:
            print(f"step {step}: {loss:.2e}")
    sg.io.write_picture(out, sg.images.side_by_side([target, draw(start), draw(numbers)]))
    print("            x      y    low   high   half")
    for name, row in (("true", true), ("start", start), ("found", numbers)):
        print(f"{name:6}" + "".join(f"{x:7.3f}" for x in row))
    return float(jnp.max(jnp.abs(numbers - true)))


if __name__ == "__main__":
    tyro.cli(main)
