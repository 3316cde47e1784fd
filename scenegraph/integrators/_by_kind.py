"""Functions of the instances of surfaces, which may be of any kind."""

from collections.abc import Callable, Sequence

from .._typing import Array, Bool, Int, PyTree
from ..flat import Instance, InstanceStack, of_member, Places, split_large
from ..rows import map_rows


def map_by_kind(
    function: Callable[[Instance, PyTree], PyTree],
    stacks: Sequence[InstanceStack],
    at: Places | None,
    numbers: Int[Array, " rows"],
    used: Bool[Array, " rows"],
    rows: PyTree,
) -> PyTree:
    """Applies a function to every row and the instance of its number, whatever its kind.

    Rows that are not used get zeros. See `of_surface` for the stacks and their places.
    """

    def of_row(shared: tuple, row: tuple[Array, PyTree]) -> PyTree:
        (stacks, at), (number, own) = shared, row
        return of_surface(lambda instance: function(instance, own), stacks, at, number)

    return map_rows(of_row, (tuple(stacks), at), (numbers, rows), used=used)


def of_surface(
    function: Callable[[Instance], PyTree],
    stacks: Sequence[InstanceStack],
    at: Places | None,
    number: Int[Array, ""],
) -> PyTree:
    """Computes a function of the instance of a surface.

    `at` has the places of all instances in the stacks, the large ones split.
    """
    assert at is not None
    return of_member(function, split_large(stacks), at.kinds[number], at.places[number])
