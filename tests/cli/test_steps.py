"""The progress of steps: a bar on a terminal, lines elsewhere."""

import io
import sys

import jax
import optax
import pytest
from rich.console import Console

import scenegraph as sg
from scenegraph.cli._steps import show_steps
from support.toy_fits import Line, Points, squared_error


def run(callbacks):
    return sg.fit(
        Line.start(),
        Points(),
        optimizer=optax.sgd(0.1),
        loss=squared_error,
        steps=10,
        key=jax.random.key(0),
        callbacks=callbacks,
    )


def test_a_terminal_shows_a_bar_and_keeps_the_last_step(capsys):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120)
    with show_steps(5, 0, console) as callbacks:
        run(callbacks)
        sys.stdout.write("said on the way\n")
    assert "━" in screen.getvalue() and "/10 loss" in screen.getvalue()
    assert "said on the way" in screen.getvalue()  # Above the bar, not through it.
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("step      10/10")


def test_elsewhere_there_are_lines(capsys):
    with show_steps(5, 0, Console(file=io.StringIO())) as callbacks:
        run(callbacks)
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_a_fit_that_fails_at_once_leaves_no_bar(capsys):
    screen = io.StringIO()
    with (
        pytest.raises(RuntimeError, match="no step"),
        show_steps(5, 0, Console(file=screen, force_terminal=True)),
    ):
        raise RuntimeError("no step was taken")
    assert not capsys.readouterr().err and "step" not in screen.getvalue()
