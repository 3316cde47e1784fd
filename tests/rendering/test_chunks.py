"""How many rays are worked on at a time."""

import pytest

from scenegraph.rendering._chunks import choose_share


@pytest.mark.parametrize("rays", [1, 4096, 4097, 40_000, 64_000, 65_536, 10**6, 10**8])
@pytest.mark.parametrize("threads", [1, 2, 3, 16])
@pytest.mark.parametrize(("things", "most"), [(1000, 2**15), (1001, 2**14)])
def test_shares_are_whole_and_enough_for_all_threads(rays, threads, things, most):
    share = choose_share(rays, threads, things)
    assert share % 4096 == 0 and 4096 <= share <= most
    # As many shares as threads, unless they would be too small.
    assert share == 4096 or -(-rays // share) >= threads - 1
    assert share * threads >= rays or -(-rays // share) == -(-rays // most)
