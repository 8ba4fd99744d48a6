"""Sidecars tell each other of producer ids."""

import pytest

from sidecar.peers import KEPT, PIECE, Given, IdGiven


def given(count: int, start_id: str = "a1") -> Given:
    made = Given(start_id)
    for number in range(count):
        made.add("bob", number)
    return made


def ids(*numbers: int) -> list[IdGiven]:
    return [IdGiven("bob", number) for number in numbers]


def test_who_begins_gets_what_comes_from_then_on() -> None:
    """What was given before is counted already, by who was there."""
    made = given(3)
    page = made.page(None)
    assert [] == page.ids
    made.add("bob", 3)
    page = made.page(page.next)
    assert ids(3) == page.ids
    assert [] == made.page(page.next).ids


def test_a_restart_is_read_from_its_first_id() -> None:
    """What the one before had given was read, or is lost with it."""
    before = given(50, "a1").page(None)
    page = given(2, "b2").page(before.next)
    assert (ids(0, 1), 0) == (page.ids, page.lost)


def test_pieces_follow_each_other_without_a_gap() -> None:
    """Each is bounded, and the next begins where it ended."""
    made = given(0)
    begin = made.page(None).next
    for number in range(PIECE + 5):
        made.add("bob", number)
    first = made.page(begin)
    second = made.page(first.next)
    assert ids(*range(PIECE + 5)) == first.ids + second.ids
    assert PIECE == len(first.ids)


def test_what_is_asked_for_too_late_is_counted_as_lost() -> None:
    """The oldest make room."""
    made = given(0)
    begin = made.page(None).next
    for number in range(KEPT + 7):
        made.add("bob", number)
    page = made.page(begin)
    assert (7, 7) == (page.lost, page.ids[0].producer_id)


@pytest.mark.parametrize(
    "after", ["", "-", "a1-", "a1--5", "a1-x", "x-3", "a1-²", "a1-" + "9" * 30]
)
def test_a_place_that_is_none_is_the_beginning(after: str) -> None:
    """Whatever is asked, the answer is bounded and whole."""
    assert ids(0, 1) == given(2).page(after).ids


def test_a_place_that_lies_ahead_has_nothing() -> None:
    """And goes on from the end."""
    page = given(2).page("a1-7")
    assert ([], "a1-2") == (page.ids, page.next)
