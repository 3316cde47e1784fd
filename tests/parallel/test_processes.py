"""Processes of one job; `cli/test_distributed.py` has two of them."""

import json
import subprocess
import sys

import numpy as np
import pytest

from scenegraph.parallel import (
    end_if_lost,
    ends_together,
    first_then_others,
    from_first,
    is_first,
    largest,
    own_folder,
)
from support.device_fits import free_port


def test_a_single_process_is_the_first_and_agrees_with_itself(tmp_path):
    calls = []
    assert is_first() and first_then_others(lambda: calls.append(1) or 7) == 7 and calls == [1]
    assert from_first({"a": [1.5, None]}) == {"a": [1.5, None]} and largest(-3) == -3
    with own_folder(tmp_path, "*.sg") as own:
        assert own == tmp_path


def test_errors_of_a_single_process_are_left_alone():
    def broken():
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"), end_if_lost("Try again."):
        broken()
    with pytest.raises(OSError, match="disk full"):
        ends_together(broken)()
    assert ends_together(lambda: 3)() == 3


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        ("RuntimeError('Gloo: connection reset')", 75, "connection reset). Try again."),
        ("KeyboardInterrupt", 130, "interrupted"),
    ],
)
def test_a_process_that_has_lost_another_ends_with_a_code(error, code, words):
    script = f"""
from scenegraph.parallel import end_if_lost
with end_if_lost("Try again."):
    raise {error}
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == code and words in done.stderr


TOGETHER = """
import json, pathlib, sys
import jax
from scenegraph.parallel import _agree, first_then_others, from_first, join, largest, own_folder
from scenegraph.parallel import Agreement, Layout

port, number, folder = int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
join(f"localhost:{port}", 3, number)
done = folder / "done"
found = {"done": first_then_others(lambda: done.exists() or done.touch())}
found["value"] = from_first({"from": number, "long": "x" * number})
found["largest"] = largest(number)
with own_folder(folder, "*.sg") as own:
    found["own"] = [own == folder, sorted(x.name for x in own.iterdir()) if number else []]
# Of three processes, the last two fit something together.
pair = Layout(tuple(d for d in jax.devices() if d.process_index > 0))
if number > 0:
    found["rows"] = _agree._gather([number, 0.5], pair.mesh).tolist()
    agreement = Agreement(pair)
    found["least"] = agreement.least(10.0 + number)
    found["stop"] = agreement.stop(number == 2, 1, 0.0, now=True)
    found["horizon"] = agreement.horizon(100.0 * number, 1, 0.0)
print(json.dumps(found))
"""


@pytest.mark.slow
def test_three_processes_and_two_of_them(tmp_path):
    (tmp_path / "a.sg").touch()
    command, port = [sys.executable, "-c", TOGETHER], str(free_port())
    processes = [
        subprocess.Popen(
            [*command, port, str(number), str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    try:
        said = [process.communicate(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0, 0], said
    first, second, third = (json.loads(out.splitlines()[-1]) for out, _ in said)
    assert [found["done"] for found in (first, second, third)] == [None, True, True]
    for found in (first, second, third):
        assert found["value"] == {"from": 0, "long": ""} and found["largest"] == 2
    assert first["own"] == [True, []] and second["own"] == third["own"] == [False, ["a.sg"]]
    for found in (second, third):
        np.testing.assert_array_equal(found["rows"], [[1.0, 0.5], [2.0, 0.5]])
        assert (found["least"], found["stop"], found["horizon"]) == (11.0, True, 100.0)
