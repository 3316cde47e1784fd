"""The choice of the pairs of pictures that are matched."""

# So many pictures are all matched with each other.
_ALL = 200
# In a sequence: neighbours up to so many places away, then those 2^k places away; and the pictures
# of which all pairs are matched, so that a loop closes, are as many.
_NEIGHBOURS, _CLOSING = 10, 60
# Photographs of a large folder jump about more than the frames of a video.
_WIDER = 25


def choose_pairs(count: int, *, sequence: bool) -> list[tuple[int, int]]:
    """Returns the pairs to match of `count` pictures, by their numbers in the order of names."""
    if count <= (_NEIGHBOURS + 1 if sequence else _ALL):
        return [(a, b) for a in range(count) for b in range(a + 1, count)]
    near = _NEIGHBOURS if sequence else _WIDER
    steps = [*range(1, near + 1)]
    while 2 * steps[-1] < count:
        steps.append(2 * steps[-1])
    pairs = {(a, a + step) for step in steps for a in range(count - step)}
    closing = range(0, count, -(-count // _CLOSING))
    pairs |= {(a, b) for a in closing for b in closing if a < b}
    return sorted(pairs)
