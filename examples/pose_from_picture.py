"""A camera finds where it stood when a picture was taken: `python pose_from_picture.py`."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import tyro

import scenegraph as sg


def make(camera: sg.PerspectiveCamera) -> sg.Scene:
    """Some things on a floor, and the camera among them."""
    wood = sg.Lambert(sg.Noise(0.3, [0.5, 0.3, 0.1], [0.8, 0.6, 0.3]))
    return sg.Scene(
        sg.Group(
            camera=camera,
            floor=sg.Surface(sg.Plane(), sg.Lambert(sg.Checker(0.5))),
            box=sg.Surface(sg.Box([-0.9, -0.3, 0.0], [-0.3, 0.3, 0.7]), wood),
            ball=sg.Surface(sg.Sphere([0.5, 0.1, 0.4], 0.4), sg.Lambert([0.2, 0.5, 0.8])),
            lamp=sg.PointLight([1.5, -2.5, 4.0], [40.0, 40.0, 40.0]),
            sky=sg.AmbientLight([0.2, 0.2, 0.25]),
        ),
        background=[0.6, 0.7, 0.9],
    )


def main(steps: int = 500, out: str = "pose_from_picture.png") -> None:
    """Fits the pose alone and writes truth, start and result side by side."""
    camera = sg.PerspectiveCamera.look_at(
        eye=[0.3, -3.5, 1.6],
        target=[0.0, 0.0, 0.3],
        up=[0.0, 0.0, 1.0],
        fov_x=0.7,
        width=128,
        height=96,
    )
    truth = sg.render(make(camera), "camera")
    lost = jnp.asarray([0.08, -0.05, 0.06, 0.03, -0.04, 0.05])
    start = make(eqx.tree_at(lambda c: c.pose.delta, camera, lost))
    result = sg.fit(
        start,
        sg.views("camera", truth),
        trainable="camera.pose.delta",
        optimizer=optax.adam(optax.cosine_decay_schedule(5e-3, steps)),
        steps=steps,
        key=jax.random.key(0),
        annealing=sg.data.Annealing(start=6.0, steps=max(1, steps // 2)),
        callbacks=[sg.Console(every=100)],
    )
    pictures = [truth, sg.render(start, "camera"), sg.render(result.scene, "camera")]
    sg.io.write_picture(out, sg.images.side_by_side(pictures))
    print(f"left of the error: {result.scene['camera.pose.delta']}")


if __name__ == "__main__":
    tyro.cli(main)
