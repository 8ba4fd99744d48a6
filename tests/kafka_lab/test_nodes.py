"""Versions as numbers."""

import pytest

from kafka_lab.nodes import version_tuple


@pytest.mark.parametrize(
    ("text", "expected"), [("4.3.1", (4, 3, 1)), ("3.10.0-rc1", (3, 10, 0)), ("4.0", (4, 0))]
)
def test_a_version_is_compared_by_its_numbers(text: str, expected: tuple[int, ...]) -> None:
    """3.10 comes after 3.9, and a candidate counts as its release."""
    assert expected == version_tuple(text)
