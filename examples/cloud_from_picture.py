"""A cloud finds its place, size and colour from pictures of it: `python cloud_from_picture.py`."""

import jax
import optax
import tyro

import scenegraph as sg


def make(center: list[float], radius: float, rgb: list[float]) -> sg.Scene:
    """A cloud over a slab of fog: two media that overlap."""
    fog = sg.fields.ConstantFog(2.0, [0.6, 0.7, 0.9])
    return sg.Scene(
        sg.Group(
            cloud=sg.Volume(sg.fields.GaussianBlob(center, radius, 6.0, rgb)),
            fog=sg.Volume(fog, sg.Box([-1.0, -1.0, -0.6], [1.0, 1.0, -0.2])),
        ),
        background=[1.0, 1.0, 1.0],
    )


def main(steps: int = 300, out: str = "cloud.png") -> None:
    """Fits one picture and writes truth, start and result side by side."""
    camera = sg.PerspectiveCamera.look_at(
        eye=[0.0, -3.0, 1.0],
        target=[0.0, 0.0, 0.0],
        up=[0.0, 0.0, 1.0],
        fov_x=0.8,
        width=64,
        height=48,
    )
    truth = sg.render(make([0.3, 0.0, 0.2], 0.35, [0.9, 0.3, 0.1]), camera)
    start = make([-0.2, 0.0, 0.0], 0.25, [0.5, 0.5, 0.5])
    result = sg.fit(
        start,
        sg.views(camera, truth),
        trainable=["cloud.field.center", "cloud.field.radius", "cloud.field.rgb"],
        optimizer=optax.adam(2e-2),
        steps=steps,
        key=jax.random.key(0),
        callbacks=[sg.Console(every=100)],
    )
    pictures = [truth, sg.render(start, camera), sg.render(result.scene, camera)]
    sg.io.write_picture(out, sg.images.side_by_side(pictures))
    cloud = result.scene["cloud.field"]
    print(f"centre {cloud.center}, radius {cloud.radius:.3f}, colour {cloud.rgb}")


if __name__ == "__main__":
    tyro.cli(main)
