"""A command ends when its time is over, whatever it is doing."""

import os
import threading

import pytest

from scenegraph.cli._watchdog import Watchdog
from scenegraph.runs import Milestones


@pytest.fixture
def ended(monkeypatch):
    """Notes exit codes instead of ending the process of the tests."""
    codes, event = [], threading.Event()

    def end(code):
        codes.append(code)
        event.set()

    monkeypatch.setattr(os, "_exit", end)
    return codes, event


def test_before_the_first_step_nothing_is_waited_for(ended, capsys):
    codes, event = ended
    with Watchdog(60.0, elapsed=100.0, milestones=Milestones()).watching():
        assert event.wait(10)
    assert codes[0] == 3 and "before the first step" in capsys.readouterr().err


@pytest.mark.parametrize("code", [0, 3])
def test_the_state_is_waited_for_and_the_report_is_not(ended, capsys, code):
    codes, event = ended
    milestones = Milestones()
    milestones.stepped.set()
    with Watchdog(60.0, elapsed=100.0, milestones=milestones).watching():
        assert not event.wait(0.1)
        milestones.code = code
        milestones.saved.set()
        assert event.wait(10)
    assert codes == [code] and "the fit is saved" in capsys.readouterr().err


@pytest.mark.parametrize("limit, elapsed", [(None, 1e9), (59.0, 1e9), (60.0, 1.0)])
def test_nothing_ends_in_time_or_without_a_long_limit(ended, limit, elapsed):
    codes, event = ended
    with Watchdog(limit, elapsed, Milestones()).watching():
        assert not event.wait(0.1)
    assert not codes
