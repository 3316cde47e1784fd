"""The share of a time limit that goes to the report."""

import time

import pytest

from scenegraph.runs._evaluate import spread
from scenegraph.runs._time_plan import TimePlan


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_without_a_limit_there_is_time_for_all(clock):
    plan = TimePlan()
    plan.measure(100, 1e6)
    assert not plan.limited and plan.allows(10**9) and plan.steps_end() == float("inf")


def test_a_quarter_is_left_to_the_report_while_nothing_is_known(clock):
    assert TimePlan(end=160.0, limit=60.0, rays=10**6).steps_end() == 160.0 - 15.0


def test_steps_go_on_for_as_long_as_the_report_lets_them(clock):
    plan = TimePlan(end=160.0, limit=60.0, rays=1000)
    plan.measure(500, 1.0)
    # Six seconds beside the pictures, and 1000 rays of 2 ms.
    assert plan.steps_end() == pytest.approx(160.0 - 6.0 - 2.0)
    plan.measure(500, 100.0)  # The machine has become busy.
    assert plan.steps_end() == 160.0 - 15.0


def test_pictures_that_would_be_late_are_not_begun(clock):
    plan = TimePlan(end=120.0, limit=60.0, rays=1000)
    assert plan.allows(10**9)  # Nothing is known yet.
    plan.measure(1000, 1.0)
    # 17.5 seconds, and 1.3 for each picture of a thousand rays.
    assert plan.affordable(1000) == 13
    clock[0] = 116.4
    assert plan.affordable(1000) == 0 and plan.affordable(500) == 1
    clock[0] = 121.0
    assert not plan.allows(1)


def test_processes_agree(clock):
    plan = TimePlan(end=120.0, limit=60.0, agree=lambda value: 7)
    assert plan.affordable(1000) == 7


@pytest.mark.parametrize("count", [1, 2, 3, 7, 100])
def test_spread_orders_all_and_any_few_are_spread_over_them(count):
    order = spread(range(count))
    assert sorted(order) == list(range(count))
    few = sorted(order[: max(1, count // 5)])
    gaps = [b - a for a, b in zip([few[-1] - count, *few], [*few], strict=False)]
    # Three-distance theorem: the largest gap is at most 2.7 times the mean one.
    assert max(gaps) <= 2.7 * count / len(few) + 1


def test_pictures_on_the_way_take_a_share_of_the_limit(clock):
    plan = TimePlan(end=400.0, limit=300.0, rays=1000)
    assert plan.count_within(0.01, 1000) > 10**6  # Nothing is known yet.
    plan.measure(1000, 1.0)
    assert plan.count_within(0.01, 1000) == 3
    assert plan.count_within(0.01, 10_000) == 0
    assert TimePlan().count_within(0.01, 10**9) > 10**6
