"""The list of slow tests names tests that there are."""

import re

import pytest

from conftest import slow_tests, TESTS


@pytest.mark.parametrize("line", slow_tests())
def test_there_is_such_a_test(line):
    file, name = line.split("::")
    function = re.match(r"test_\w+", name)
    assert function and f"def {function[0]}(" in (TESTS / file).read_text()
