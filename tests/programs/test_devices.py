"""Programs that are compiled soon run where their arguments lie."""

import numpy as np

from support.device_fits import result, start
from support.helpers import assert_close


def test_results_lie_where_the_arguments_do():
    found = result(start(2, task="tiers"))
    where = {name: devices for name, (devices, _) in found.items()}
    assert where == {
        "all": [0, 1],
        "second": [1],
        "none": [0],
        "first picture": [0],
        "second picture": [1],
    }
    for name in ("all", "second", "none"):
        assert_close(found[name][1], np.arange(16.0))
    first, second = found["first picture"][1], found["second picture"][1]
    assert_close(second, first)
    assert np.ptp(first) > 0.1
