"""Small fits and pictures, made by processes of their own that have several devices.

`python device_fits.py '{"task": "fits", ...}'` prints what came out as JSON. It is no test itself.
"""

import fcntl
import json
import os
import pathlib
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any


def start(devices: int, **task) -> subprocess.Popen:
    """A process with so many virtual devices."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    command = [sys.executable, __file__, json.dumps(task)]
    paths = [str(pathlib.Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "XLA_FLAGS": flags.strip(), "JAX_PLATFORMS": "cpu"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def result(process: subprocess.Popen, seconds: float = 400):
    """What a process printed last; it is ended if it takes too long."""
    try:
        out, error = process.communicate(timeout=seconds)
    finally:
        process.kill()
    assert process.returncode == 0, error[-3000:]
    return json.loads(out.splitlines()[-1])


def free_port() -> int:
    """One that nobody listens at."""
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        return taken.getsockname()[1]


def once(folder: pathlib.Path, compute: Callable[[], Any]) -> Any:
    """What was computed by the first of several workers that ask."""
    with (folder / "devices.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = folder / "devices.json"
        if not known.exists():
            known.write_text(json.dumps(compute()))
        return json.loads(known.read_text())


# --- In the other process, which alone needs JAX


def views():
    """Two pictures of noise, one of which counts four times."""
    import jax.numpy as jnp
    import numpy as np

    import scenegraph as sg

    pixels = np.random.default_rng(0).integers(0, 256, (128, 4), dtype=np.uint8)
    eyes = [[0.0, -3.0, 1.0], [2.0, 2.0, 1.0]]
    looks = [[eye, [0.0] * 3, [0.0, 0.0, 1.0], 0.7, 8, 8] for eye in eyes]
    cameras = [sg.PerspectiveCamera.look_at(*look) for look in looks]
    sizes, weights = jnp.full(2, 8), jnp.array([1.0, 4.0])
    return sg.Views(
        jnp.asarray(pixels),
        sg.pixels.stack_cameras(cameras),
        sizes,
        sizes,
        weights,
        sg.data.Random(),
    )


def network_scene():
    import jax

    import scenegraph as sg

    encoding = sg.encodings.IntegratedPositional(0, 3)
    field = sg.fields.MipNerfMLP(
        8, 1, view_width=8, encoding=encoding, density_noise=0.1, key=jax.random.key(5)
    )
    volume = sg.Volume(field, bounds=None)
    scene = sg.Scene(sg.Group(cloud=volume), integrator=sg.Hierarchical((4, 4)))
    return sg.freeze(scene, "background")


def grid_scene():
    import jax
    import jax.numpy as jnp
    import numpy as np

    import scenegraph as sg

    key = jax.random.key(0)
    grid = sg.encodings.Grid((4, 7), 2, 2**8, key=key)
    field = sg.fields.GridField(grid, 8, 4, density_bias=-1.0, key=key)
    empty = np.random.default_rng(0).uniform(size=(4, 4, 4)) < 0.1
    known = sg.scene.Occupancy.everywhere(4).without(jnp.asarray(empty))
    volume = sg.Volume(field, sg.Box([-1.0] * 3, [1.0] * 3), occupancy=known)
    # Rays ask for nearly all of their 12 steps: the least budget that serves is for all 12.
    march = sg.integrators.OccupancyMarch(12, 4)
    scene = sg.Scene(sg.Group(cloud=volume), background=(1.0, 1.0, 1.0), integrator=march)
    return sg.freeze(scene, "background", "cloud.bounds")


def ball_scene():
    import scenegraph as sg

    ball = sg.Surface(sg.Sphere(), sg.Checker())
    return sg.Scene(sg.Group(ball=ball), background=(0.0, 0.0, 1.0))


def listed_scene():
    """So many things that they are found through candidate lists."""
    import numpy as np

    import scenegraph as sg

    draw = np.random.default_rng(0)
    ball = lambda: sg.Sphere(draw.uniform(-1.5, 1.5, 3), draw.uniform(0.1, 0.3))
    balls = {f"b{i}": sg.Surface(ball(), sg.Lambert(draw.uniform(0.2, 0.9, 3))) for i in range(40)}
    floor = sg.Surface(sg.Plane([0.0, 0.0, -2.0]), sg.Lambert([0.7] * 3))
    lamp = sg.PointLight([0.0, 0.0, 5.0], [20.0] * 3)
    # As many layers as random rays request, so that a fit is compiled once.
    surfaces = sg.Surfaces(24, lists=True)
    scene = sg.Scene(sg.Group(**balls, floor=floor, lamp=lamp), integrator=surfaces)
    return sg.freeze(scene, "background")


SCENES = {"network": network_scene, "grid": grid_scene, "ball": ball_scene, "lists": listed_scene}


def fit(scene: str, size: int, devices=None, steps: int = 20) -> dict:
    """How a fit went: losses, all else that it says, and what came out."""
    import jax
    import numpy as np
    import optax

    import scenegraph as sg
    from scenegraph.data import RayBatches

    fitted = sg.fit(
        SCENES[scene](),
        RayBatches(views(), size),
        optimizer=optax.adam(0.01),
        steps=steps,
        key=jax.random.key(0),
        devices=devices,
    )
    terms, whole = fitted.history.extra, sg.parallel.gather_whole(fitted.scene)
    # Only the network, to save time: the other scene takes long to compile.
    look = [[0.0, -3.0, 1.0], [0.0] * 3, [0.0, 0.0, 1.0], 0.7, 3, 3]
    camera = sg.PerspectiveCamera.look_at(*look)
    shown = sg.render(fitted.scene, camera).rgb if scene == "network" else 0.0
    return {
        "picture": np.asarray(shown).reshape(-1).tolist(),
        "weights": [float(np.sum(np.abs(x))) for x in jax.tree.leaves(whole)],
        "loss": fitted.history.loss.tolist(),
        "mse": terms.mse.tolist(),
        "left_out": terms.left_out.tolist(),
        "asked": terms.requested.tolist(),
        "cut": sum(not x.is_fully_replicated for x in jax.tree.leaves(fitted.state)),
        "devices": sorted({len(x.sharding.device_set) for x in jax.tree.leaves(fitted.state)}),
    }


def alone() -> dict:
    """Fits and pictures by one device and by all; arrays of the grid's fit are cut."""
    import jax

    from scenegraph.parallel import Layout

    one, cut = jax.devices()[:1], Layout(cut_from=64)
    return {
        "network": [fit("network", 24, one), fit("network", 24)],
        "grid": [fit("grid", 29, one), fit("grid", 29, cut)],
        "lists": [fit("lists", 24, one), fit("lists", 24)],
        "room": room(29),
        "pictures": {
            name: pictures(name, chunk)
            for name, chunk in [("grid", 7), ("ball", "auto"), ("lists", "auto")]
        },
    }


def together(port: int, process: int) -> dict:
    """The same fits by two processes."""
    import jax

    from scenegraph.parallel import Layout

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"localhost:{port}", 2, process)
    return {"network": fit("network", 24), "grid": fit("grid", 29, Layout(cut_from=64))}


def room(size: int) -> dict:
    """How many rays find no room, each device having its own."""
    import equinox as eqx
    import jax

    import scenegraph as sg
    from scenegraph.data import RayBatches
    from scenegraph.fitting import RenderLoss
    from scenegraph.parallel import device_mesh
    from support.helpers import requested

    scene, batch = grid_scene(), RayBatches(views(), size).batch(0, 0)
    march = sg.integrators.OccupancyMarch(12, 4)
    mesh = device_mesh(jax.devices())
    loss = RenderLoss(integrator=march, jitter=False, chunk=None, mesh=mesh)
    terms = eqx.filter_jit(loss)(scene, None, batch, jax.random.key(0))[1]
    asked = requested(march, scene, batch.rays).tolist()
    return {"left_out": float(terms.left_out), "asked": float(terms.requested), "by_ray": asked}


def poses() -> dict:
    """Poses that one device and all have polished, and have aligned with a fitted scene."""
    import dataclasses

    import jax
    import numpy as np
    import optax

    import scenegraph as sg
    from scenegraph import fitting
    from scenegraph.data import RayBatches

    given = dataclasses.replace(views(), backdrop=sg.data.Solid((1.0, 1.0, 1.0)))
    scene, seen = fitting.with_corrections(grid_scene(), given)

    def polished(devices) -> list[float]:
        fitted = sg.fit(
            scene,
            RayBatches(seen, 23),
            optimizer=optax.adam(0.01),
            steps=4,
            key=jax.random.key(0),
            polish=fitting.PosePolish(rays=23),
            devices=devices,
        )
        found = sg.parallel.gather_whole(fitted.scene)["capture"].poses
        return np.asarray(found).reshape(-1).tolist()

    alone, together = polished(jax.devices()[:1]), polished(None)
    aligned = fitting.align_cameras(scene, given, steps=3, rays=11)
    before, after = (fitting.poses_of(x.cameras) for x in (given, aligned))
    return {
        "poses": [alone, together],
        "moved": float(
            np.abs(fitting.poses_of(aligned.cameras) - fitting.poses_of(given.cameras)).max()
        ),
        "devices": len(jax.devices()),
    }


def pictures(scene: str, chunk) -> dict:
    """How far a picture by all devices is from one by a single device."""
    import jax
    import numpy as np

    import scenegraph as sg

    look = [[0.0, -3.0, 1.0], [0.0] * 3, [0.0, 0.0, 1.0], 0.7, 13, 11]
    camera, made = sg.PerspectiveCamera.look_at(*look), SCENES[scene]()
    settings = {"chunk": chunk, "key": jax.random.key(3)}
    one = sg.render(made, camera, devices=jax.devices()[:1], **settings)
    other = sg.render(made, camera, **settings)
    apart = jax.tree.map(lambda a, b: float(np.abs(np.subtract(a, b)).max()), one, other)
    # On a device that is not the first.
    quick = sg.render(made, camera, devices=jax.devices()[1:2], **settings)
    return {
        "apart": jax.tree.leaves(apart),
        "quick": float(np.abs(np.subtract(one.rgb, quick.rgb)).max()),
        "where": [device.id for device in quick.rgb.devices()],
        "contrast": float(np.ptp(one.rgb)),
        "devices": len(other.rgb.sharding.device_set),
    }


if __name__ == "__main__":
    asked_for = json.loads(sys.argv[1])
    sys.stdout.write(json.dumps(globals()[asked_for.pop("task")](**asked_for)) + "\n")
