"""A shiny ball in a cloud over a floor, fitted together: `python ball_in_fog.py`.

Surfaces, lights and a medium in one picture, and a shader of one's own (`Rings`).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import tyro

import scenegraph as sg
from scenegraph.numerics import as_float_leaf, filtered_square_wave


class Rings(sg.shaders.AbstractShader):
    """Rings about the origin of `uv`, averaged over each pixel's footprint."""

    width: jax.Array = eqx.field(converter=as_float_leaf)

    def __call__(self, hit, view, lights):
        radius = jnp.linalg.norm(hit.uv) + 1e-6
        gradient = hit.duv @ (hit.uv / radius)
        wave = filtered_square_wave(radius / self.width, gradient / self.width)
        return jnp.stack([0.5 + 0.3 * wave, 0.5, 0.5 - 0.3 * wave])


def make(center: list[float], extinction: float, width: float) -> sg.Scene:
    """A ball in a cloud, over rings."""
    cloud = sg.fields.GaussianBlob([0.2, -0.3, 0.6], 0.45, extinction, [0.85, 0.87, 0.9])
    return sg.Scene(
        sg.Group(
            floor=sg.Surface(sg.Plane(), sg.Lambert(Rings(width))),
            ball=sg.Surface(
                sg.Sphere(center, 0.4), sg.GGX([0.9, 0.6, 0.2], metallic=0.6, roughness=0.35)
            ),
            cloud=sg.Volume(cloud, sg.Box([-2.0, -2.0, 0.0], [2.0, 2.0, 2.0])),
            lamp=sg.PointLight([1.5, -2.5, 3.5], [25.0, 25.0, 25.0]),
            sky=sg.AmbientLight([0.25, 0.28, 0.33]),
        ),
        background=[0.5, 0.6, 0.8],
        integrator=sg.Integrator(sg.Hierarchical(samples=(96,))),
    )


def falling(rate: float, steps: int) -> optax.GradientTransformation:
    """Adam with a learning rate that falls to zero."""
    return optax.adam(optax.cosine_decay_schedule(rate, steps))


def main(steps: int = 500, out: str = "ball_in_fog.png") -> None:
    """Fits place, cloud and pattern, and writes truth, start and result side by side."""
    camera = sg.PerspectiveCamera.look_at(
        eye=[0.0, -3.5, 1.5],
        target=[0.0, 0.0, 0.4],
        up=[0.0, 0.0, 1.0],
        fov_x=0.75,
        width=128,
        height=96,
        near=0.5,
        far=30.0,
    )
    truth = sg.render(make([0.1, 0.1, 0.5], 1.5, 0.35), camera)
    start = make([-0.15, 0.3, 0.6], 0.7, 0.31)
    result = sg.fit(
        start,
        sg.views(camera, truth),
        trainable=["ball.shape.center", "cloud.field.extinction", "floor.shader.albedo.width"],
        optimizer=optax.chain(
            sg.optimizers.by_path({"cloud.**": falling(1e-1, steps), "**": falling(3e-2, steps)}),
            sg.optimizers.within({"cloud.field.extinction": (0.0, None)}),
        ),
        steps=steps,
        key=jax.random.key(0),
        annealing=sg.data.Annealing(start=4.0, steps=max(1, steps // 2)),
        callbacks=[sg.Console(every=50)],
    )
    pictures = [truth, sg.render(start, camera), sg.render(result.scene, camera)]
    sg.io.write_picture(out, sg.images.side_by_side(pictures))
    children = result.scene.root.children
    print(f"ball at {children['ball'].shape.center}")
    print(f"extinction {children['cloud'].field.extinction:.3f}")
    print(f"rings {children['floor'].shader.albedo.width:.4f} wide")


if __name__ == "__main__":
    tyro.cli(main)
