"""Before the first step, it is known whether there is the memory for it."""

import dataclasses
import pathlib
import resource
import subprocess
import sys
import textwrap
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg
from scenegraph.data import RayBatches
from scenegraph.fitting import _fit, _memory, free_memory, RenderLoss, split_by_purpose, TooLarge
from scenegraph.fitting._feed import Feed
from scenegraph.fitting._flat import flatten
from scenegraph.fitting._memory import check_address_space, fit_into_memory, Needs
from scenegraph.parallel._layout import Layout
from support.helpers import assert_close
from support.toy_fits import cloud, cloud_views, Line, Points, squared_error


MIB = 2**20
KEY = jax.random.key(0)
SEED = split_by_purpose(KEY).seed()


# --- How much there is


def test_free_memory_is_no_more_than_the_machine_has():
    free, where = free_memory()
    total = int(pathlib.Path("/proc/meminfo").read_text().split()[1]) * 1024
    assert MIB < free <= total and where in ("the system", "the container's limit (cgroup)")


def test_free_memory_of_a_device_is_what_the_device_says(monkeypatch):
    class Gpu:
        def memory_stats(self):
            return {"bytes_limit": 1000, "bytes_in_use": 300, "peak_bytes_in_use": 900}

    monkeypatch.setattr(jax, "local_devices", lambda: [Gpu()])
    assert free_memory() == (700, "the device")


@pytest.fixture
def address_space():
    """Sets how much address space is left, in MiB."""
    before = resource.getrlimit(resource.RLIMIT_AS)

    def leave(mib: int) -> None:
        used = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
        size = used * resource.getpagesize() + mib * MIB
        resource.setrlimit(resource.RLIMIT_AS, (size, before[1]))

    yield leave
    resource.setrlimit(resource.RLIMIT_AS, before)


def test_limits_of_the_shell_count(address_space):
    address_space(700)
    free, where = free_memory()
    assert where == "`ulimit -v`" and 690 * MIB < free <= 700 * MIB
    check_address_space(600 * MIB)
    with pytest.raises(
        TooLarge, match=r"leaves \d+\.\d MiB.*needs about 800.0 MiB.*Raise the limit"
    ):
        check_address_space(800 * MIB)


@pytest.mark.parametrize(
    "files, left",
    [
        ({"memory.max": "1000", "memory.current": "900", "memory.stat": "inactive_file 50"}, 150),
        ({"memory.max": "max", "memory.current": "900"}, _memory._UNLIMITED),
        ({"memory.limit_in_bytes": "1000", "memory.usage_in_bytes": "400"}, 600),
        (
            {
                "memory.limit_in_bytes": "1000",
                "memory.usage_in_bytes": "990",
                "memory.stat": "cache 5\ninactive_file 1\ntotal_inactive_file 30",
            },
            40,
        ),
        ({"memory.max": "1000", "memory.current": "1500"}, 0),
        ({}, _memory._UNLIMITED),
    ],
)
def test_limits_of_control_groups(tmp_path, monkeypatch, files, left):
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")
    monkeypatch.setattr(_memory, "_groups", lambda: [tmp_path, tmp_path / "none"])
    assert _memory._group_memory() == left


# --- What a step needs


def test_the_compiler_says_what_a_step_needs():
    """State and batch can be counted."""
    state = sg.start_state(Line.start(), optax.adam(0.1), extra=jnp.array(0), key=KEY)
    advance = _fit._Advance(
        Feed(Points(), Layout(), SEED), squared_error, optax.adam(0.1), Line(True, True, False)
    )
    needs = advance.needs(flatten(state))
    assert needs is not None and needs.batch == 2 * 8 * 4
    arrays = [x for x in flatten(state).arrays]
    told = 4 * 2 + 4 + 2 * 4 + 1  # loss, gradient's norm and largest entry, counts, what is finite
    counted = sum(np.asarray(x).nbytes for x in arrays) + told
    # And the pointers to them.
    assert counted <= needs.state <= counted + 16 * (len(arrays) + 6)
    assert needs.total() == 2 * needs.state + 2 * needs.batch + needs.temporary


@pytest.mark.slow
def test_smaller_blocks_take_less_and_give_the_same_numbers():
    batches = RayBatches(cloud_views(), 256)
    state = sg.start_state(cloud(), optax.adam(0.1), key=KEY)
    trainable = sg.scene.trainable_leaves(cloud())
    advance = _fit._Advance(Feed(batches, Layout(), SEED), RenderLoss(), optax.adam(0.1), trainable)
    smaller = advance.in_smaller_blocks(32)
    assert smaller is not None
    much, little = (x.needs(flatten(state)) for x in (advance, smaller))
    assert much is not None and little is not None
    assert little.temporary < 0.7 * much.temporary and little.batch == much.batch
    one, other = (x(flatten(state), 0, 1.0)[0].tree.model for x in (advance, smaller))
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert_close(a, b, 1e-5)


@pytest.mark.parametrize("loss", [RenderLoss(chunk=8), RenderLoss(chunk=None)])
def test_blocks_that_the_user_has_chosen_are_left_alone(loss):
    assert loss.in_smaller_blocks(4) is None
    assert RenderLoss().in_smaller_blocks(4) == dataclasses.replace(RenderLoss(), divisor=4)


# --- What is done about it


class Step:
    """A step that needs so much, and less in smaller blocks."""

    def __init__(self, needs, smaller=None):
        self.asked, self.smaller = needs, smaller or {}

    def needs(self, state):
        return self.asked

    def in_smaller_blocks(self, times):
        return Step(self.smaller[times]) if times in self.smaller else None


@pytest.fixture
def free(monkeypatch):
    monkeypatch.setattr(_memory, "free_memory", lambda: (100 * MIB, "the test"))


def needs(state=1, batch=1, temporary=1):
    return Needs(state * MIB, batch * MIB, temporary * MIB)


def test_what_fits_is_left_alone(free):
    for step in (Step(needs(30, 15, 10)), Step(None)):
        assert fit_into_memory(step, None) is step


@pytest.mark.parametrize("times", [4, 32])
def test_what_fits_in_smaller_blocks_is_done_so_and_said(free, times):
    first = needs(temporary=90 if times == 4 else 200)
    step = Step(needs(temporary=400), {4: first, 32: needs(temporary=12)})
    told = f"needs 404.0 MiB, and the test leaves 100.0 MiB.*{times} times smaller"
    with pytest.warns(UserWarning, match=told):
        smaller = fit_into_memory(step, None)
    assert smaller.needs(None) == (first if times == 4 else needs(temporary=12))


@pytest.mark.parametrize(
    "asked, smaller, flags",
    [
        (needs(batch=60), {}, "--batch-size"),
        (needs(state=60), {4: needs(state=60), 32: needs(state=60)}, "--width.*--capacity"),
        (needs(temporary=600), {4: needs(temporary=500), 32: needs(temporary=400)}, "--samples"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_to_lower(free, asked, smaller, flags):
    told = rf"needs .*the test leaves only 100.0 MiB\. Lower {flags}"
    with warnings.catch_warnings(), pytest.raises(TooLarge, match=told):
        warnings.simplefilter("error")
        fit_into_memory(Step(asked, smaller), None)


def test_fit_asks_before_its_first_step(monkeypatch):
    steps = []
    callbacks = [sg.fitting.Every(1, lambda progress: steps.append(progress.step))]
    monkeypatch.setattr(_memory, "free_memory", lambda: (100, "the test"))
    with pytest.raises(TooLarge, match="the test leaves only 0.0 MiB"):
        sg.fit(
            Line.start(),
            Points(),
            optimizer=optax.adam(0.1),
            loss=squared_error,
            steps=2,
            key=KEY,
            callbacks=callbacks,
        )
    assert not steps


@pytest.mark.slow
@pytest.mark.parametrize("command", [True, False])
def test_ulimit_below_the_need_is_refused_before_the_first_step(tmp_path, command):
    """In a process of its own, because what is refused here would end it."""
    script = f"""
        import os, pathlib, resource, sys
        import jax, optax, scenegraph as sg
        from scenegraph.cli import main
        from scenegraph.data import RayBatches
        from support.toy_fits import cloud, cloud_views

        jax.devices()
        used = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
        left = {1000 if command else 1500} * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (used * os.sysconf("SC_PAGE_SIZE") + left, -1))
        if {command}:
            sys.exit(main(["fit", "--out", {str(tmp_path / "run")!r}]))
        rule, batches = optax.adam(0.01), RayBatches(cloud_views(), 10**7)
        sg.fit(cloud(), batches, optimizer=rule, steps=2, key=jax.random.key(0))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        cwd=pathlib.Path(__file__).parents[1],
    )
    last = done.stderr.splitlines()[-1]
    assert "`ulimit -v` leaves" in last
    if command:
        assert (
            done.returncode == 2 and last.startswith("scenegraph: ") and "Raise the limit" in last
        )
    else:
        assert "TooLarge: a step needs" in last and last.endswith("Lower --batch-size.")
    assert not (tmp_path / "run").exists()
