"""A long fit: its memory stays flat, nothing is compiled again, and little time is lost."""

import gc
import pathlib
import resource
import time
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax

import scenegraph as sg
from scenegraph.data import RayBatches
from scenegraph.encodings import Grid
from scenegraph.fields import GridField
from scenegraph.fitting import _fit, AbstractCallback, RenderLoss
from scenegraph.fitting._budget import OccupancyRefresh
from scenegraph.fitting._flat import Flat
from scenegraph.integrators import OccupancyMarch
from scenegraph.losses import MultiLevelLoss
from scenegraph.scene import Occupancy
from support.toy_fits import cloud, cloud_views


KEY = jax.random.key(0)
MIB = 2**20
# When a fit is warmed up, and memory may grow no more.
WARM = 500


class Watch(AbstractCallback):
    """Looks at memory, arrays and Python's objects every so many steps."""

    def __init__(self, every: int):
        self.every = every
        self.steps: list[int] = []
        self.resident: list[float] = []
        self.arrays: list[int] = []
        self.objects: list[int] = []

    def __call__(self, progress) -> bool:
        gc.collect()
        pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
        self.steps.append(progress.step)
        self.resident.append(pages * resource.getpagesize() / MIB)
        self.arrays.append(len(jax.live_arrays()))
        self.objects.append(len(gc.get_objects()))
        return False

    def growth(self, what: list) -> float:
        """From the end of the warming up to the end."""
        warm = next(value for step, value in zip(self.steps, what, strict=True) if step >= WARM)
        return what[-1] - warm


def scene() -> sg.Scene:
    """A small grid that is empty in places: everything that the fast preset has."""
    grid_key, key = jax.random.split(KEY)
    field = GridField(Grid((4, 8), 2, 2**9, key=grid_key), 8, 4, density_bias=-1.0, key=key)
    box = sg.Box([-1.0] * 3, [1.0] * 3)
    volume = sg.Volume(field, box, occupancy=Occupancy.everywhere(8))
    march = OccupancyMarch(16, 8)
    tree = sg.Scene(sg.Group(grid=volume), background=(1.0, 1.0, 1.0), integrator=march)
    return sg.freeze(tree, "background", "grid.bounds")


def fit(steps: int, rays: int, loss: Any, *callbacks: AbstractCallback) -> sg.FitResult:
    return sg.fit(
        scene(),
        RayBatches(cloud_views(), rays),
        optimizer=optax.adam(1e-3),
        loss=loss,
        steps=steps,
        key=KEY,
        callbacks=callbacks,
    )


def compiled_after(begin: float) -> list[float]:
    """A list that is filled with the times of compilations, in seconds since `begin`."""
    times: list[float] = []

    def listen(event: str, seconds: float, **about: Any) -> None:
        if event.endswith("backend_compile_duration"):
            times.append(time.monotonic() - begin)

    jax.monitoring.register_event_duration_secs_listener(listen)
    return times


class Stamp(AbstractCallback):
    """When the fit was warmed up, and when its last step was done."""

    every = 1

    def __init__(self):
        self.warm = self.last = 0.0

    def __call__(self, progress) -> bool:
        self.last = time.monotonic()
        if progress.step == WARM:
            self.warm = self.last
        return False


def long_fit(steps: int, rays: int = 64) -> dict[str, Any]:
    """Fits for long, and looks at what grows."""
    begin = time.monotonic()
    times, stamp, watch = compiled_after(begin), Stamp(), Watch(max(1, min(WARM, steps // 8)))
    fit(steps, rays, RenderLoss(), watch, stamp)
    late = [moment for moment in times if stamp.warm < begin + moment < stamp.last]
    return {
        "steps": steps,
        "seconds": round(time.monotonic() - begin, 1),
        "resident_mib": [round(x, 1) for x in watch.resident],
        "growth_mib": round(watch.growth(watch.resident), 2),
        "growth_of_arrays": watch.growth(watch.arrays),
        "growth_of_objects": watch.growth(watch.objects),
        "compilations": len(times),
        "compilations_when_warm": len(late),
    }


def traces(steps: int, rays: int = 64) -> int:
    """A fit whose loss may be traced only twice: for the shape of what it returns, and compiled."""
    loss = eqx.debug.assert_max_traces(max_traces=2)(RenderLoss(MultiLevelLoss()))
    batches, rule = RayBatches(cloud_views(), rays), optax.adam(1e-3)
    sg.fit(cloud(), batches, optimizer=rule, loss=loss, steps=steps, key=KEY)
    return 2


def outside(steps: int, rays: int, turns: int) -> dict[str, Any]:
    """How much longer steps of `fit` take than the same programs called in a bare loop.

    In turns, because other work comes and goes; the quickest of each counts.
    """
    kept = {}
    plain = _fit._Advance

    class Keep(plain):
        def __call__(self, state: Flat, number: int, horizon: float) -> Any:
            kept.update(advance=self, state=state)
            return plain.__call__(self, state, number, horizon)

    _fit._Advance = Keep
    fit(20, rays, RenderLoss())
    _fit._Advance = plain
    advance, state = kept["advance"], kept["state"]
    bare, driven = [], []
    for _ in range(turns):
        bare.append(_bare(advance, state, steps))
        driven.append(_driven(rays, steps))
    share = 1 - min(bare) / min(driven)
    return {
        "steps": steps,
        "turns": turns,
        "bare_ms": round(1e3 * min(bare), 3),
        "fit_ms": round(1e3 * min(driven), 3),
        "medians_ms": [round(1e3 * float(np.median(x)), 3) for x in (bare, driven)],
        "outside_percent": round(100 * share, 2),
    }


def _bare(advance: Any, state: Flat, steps: int) -> float:
    """Seconds a step: what is compiled, and no more; the next begun while one is under way."""
    horizon, refresh = np.float32(steps), OccupancyRefresh()

    def once(state: Flat, number: int) -> Flat:
        batch = advance._feed(state, number)
        state = _fit._step(advance._others, state, batch, horizon)[0]
        return refresh(state, number)

    for number in range(20):
        state = once(state, number)
    begin = time.perf_counter()
    for number in range(steps):
        before, state = state, once(state, number)
        before.arrays[0].block_until_ready()
    state.arrays[0].block_until_ready()
    return (time.perf_counter() - begin) / steps


class Times(AbstractCallback):
    """When every step was done."""

    every = 1

    def __init__(self):
        self.at: list[float] = []

    def __call__(self, progress) -> bool:
        self.at.append(progress.seconds)
        return False


def _driven(rays: int, steps: int) -> float:
    times = Times()
    fit(steps + 20, rays, RenderLoss(), times)
    return (times.at[-1] - times.at[19]) / steps


def main(steps: int = 20_000, rays: int = 64) -> dict[str, Any]:
    """Memory, compilations, and the driver's share."""
    long = long_fit(steps, rays)
    assert long["growth_mib"] < 8 and long["growth_of_arrays"] < 100, long
    assert long["compilations_when_warm"] == 0, long
    share = outside(300, 1024, 8)
    assert share["outside_percent"] < 2, share
    return {"long": long, "most_traces": traces(1000), "driver": share}
