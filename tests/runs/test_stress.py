"""A little of every stress test (`nox -s stress` runs them whole)."""

import pytest

from stress.damage import cut_and_altered
from stress.models import strange_models
from stress.strangers import KINDS, strange_files


@pytest.mark.parametrize("name, stride", [("scene", 31), ("checkpoint", 83)])
def test_files_that_are_cut_or_altered(name, stride):
    found = cut_and_altered(name, 120, stride)
    assert found["altered"]["refused"] > 90


@pytest.mark.parametrize("kind", KINDS)
def test_strange_files(kind):
    found = strange_files(kind, 40)
    assert found.get("refused", 0) + found.get("right", 0) >= 10


def test_strange_models():
    found = strange_models(60)
    assert min(found[what] for what in ("refused", "noted", "loaded")) > 20


@pytest.mark.slow
def test_killed_again_and_again():
    from stress import kills

    assert kills.main(kills=5, steps=300, others=4)["kills"] == 5


@pytest.mark.slow
def test_a_long_fit():
    from stress import endurance

    long = endurance.long_fit(3000)
    assert long["growth_mib"] < 8 and long["growth_of_arrays"] < 100
    assert long["compilations_when_warm"] == 0
    assert endurance.traces(600) == 2
    assert endurance.outside(30, 64, 2)["outside_percent"] < 100
