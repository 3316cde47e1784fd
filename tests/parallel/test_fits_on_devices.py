"""Many devices, and several processes, make the same fits and pictures as one device does."""

import os

import numpy as np
import pytest

from support.device_fits import free_port, once, result, start
from support.helpers import assert_close


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> dict:
    """What one device and eight make in one process."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # Workers share the folder above their own.
        folder = folder.parent
    return once(folder, lambda: result(start(8, task="alone"), seconds=1500))


def assert_same_fit(fit, expected) -> None:
    assert len(fit["loss"]) == 20 and len(np.unique(fit["loss"])) == 20
    assert not np.any(fit["left_out"]) and not np.any(expected["left_out"])
    for name in ("loss", "mse", "asked"):
        np.testing.assert_allclose(fit[name], expected[name], rtol=1e-5, err_msg=name)
    for name in ("weights", "picture"):
        np.testing.assert_allclose(fit[name], expected[name], rtol=1e-3, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("scene", ["network", "grid", "lists"])
def test_eight_devices_fit_as_one_does(alone, scene):
    """The network's batches divide by eight, those of the grid do not."""
    one, eight = alone[scene]
    assert one["devices"] == [1] and eight["devices"] == [8]
    assert_same_fit(eight, one)


@pytest.mark.slow
def test_four_devices_polish_poses_as_one_does():
    """No number of rays divides by four."""
    found = result(start(4, task="poses"))
    one, four = np.array(found["poses"])
    assert found["devices"] == 4 and np.abs(one).max() > 0.1
    assert_close(four, one, 1e-3, 1e-3)
    assert np.isfinite(found["moved"]) and found["moved"] > 1e-3


@pytest.mark.slow
def test_large_arrays_are_cut(alone):
    assert alone["network"][1]["cut"] == 0 < alone["grid"][1]["cut"]


@pytest.mark.slow
def test_two_processes_fit_as_one_device_does(alone):
    """So does the picture that they make together of what they have fitted."""
    port = free_port()
    processes = [start(1, task="together", port=port, process=number) for number in (0, 1)]
    try:
        first, second = (result(process) for process in processes)
    finally:
        for process in processes:
            process.kill()
    assert first == second
    for scene in ("network", "grid"):
        assert first[scene]["devices"] == [2]
        assert_same_fit(first[scene], alone[scene][0])


@pytest.mark.slow
def test_every_device_has_room_of_its_own(alone):
    """Rays without room are counted over all devices; those that only fill up, nowhere."""
    found = alone["room"]
    asked = np.array(found["by_ray"])
    parts = np.split(asked, range(4, 29, 4))
    expected = sum(np.sum((np.cumsum(part) > 4 * 4) & (part > 0)) for part in parts)
    assert found["left_out"] == expected > 4
    assert_close(found["asked"], asked.mean())


@pytest.mark.slow
@pytest.mark.parametrize("scene", ["grid", "ball", "lists"])
def test_eight_devices_render_what_one_does(alone, scene):
    found = alone["pictures"][scene]
    assert found["devices"] == 8 and found["contrast"] > 0.1
    assert found["quick"] < 1e-5 and found["where"] == [1]
    assert len(found["apart"]) >= 3 and max(found["apart"]) < 1e-5
