"""Kernels that end the process at look-ups outside of their tables, if they are asked to."""

import os
import subprocess
import sys

import pytest


pytestmark = pytest.mark.slow
PROGRAM = """
import jax, jax.numpy as jnp
from scenegraph.rows import _look_ups, map_rows

if not {clamps}:
    _look_ups._Index.clamped = lambda self, index, last: index
read = lambda table, i: table.at[i].get(mode="promise_in_bounds", wrap_negative_indices=False)
found = jax.jit(lambda table, places: map_rows(read, table, places))(
    jnp.arange(300.0), jnp.full(20, {place}, jnp.int32)
)
print(found[0])
"""


def run(place, *, clamps):
    """Looks a place up in a table of 300, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(place=place, clamps=clamps)],
        env=os.environ | {"SCENEGRAPH_CHECK_LOOK_UPS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("place", [300, -1])
def test_a_look_up_out_of_bounds_ends_the_process(place):
    assert run(place, clamps=False).returncode < 0


@pytest.mark.parametrize("place", [0, 299])
def test_look_ups_within_bounds_pass(place):
    done = run(place, clamps=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == place


def test_kernels_look_up_the_nearest_number_there_is():
    done = run(300, clamps=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == 299
