"""Whom a throttle of some topics is for: only what all brokers' logs tell releases anybody."""

import pytest

from sidecar.client_quotas.scope import FRESH_S, MOST_QUOTAS, Scoped, Told, quotas_for, scoped
from sidecar.client_quotas.writers import BrokerWriters, Writer
from sidecar.quotas.entities import DEFAULT, Entity

NOW = 1000.0
ALICE, BOB = Writer("alice", "full", ""), Writer("bob", "free", "")


def told(broker_id: int | None, *writers: Writer, is_whole: bool = True, at: float = NOW) -> Told:
    return Told(BrokerWriters(broker_id, "A", is_whole, list(writers)), at)


def test_the_writers_at_any_broker_are_in_scope() -> None:
    """Also at one that is no longer active. A user with several topics is in scope by one."""
    also = Writer("bob", "full-too", "")
    all_told = [told(1, ALICE), told(2, BOB), told(3, Writer("carol", "full", ""))]
    found = scoped({"full", "full-too"}, [1, 2], all_told, {}, NOW)
    assert frozenset({"alice", "carol"}) == found.users
    found = scoped({"full", "full-too"}, [1, 2], [*all_told, told(2, also)], {}, NOW)
    assert frozenset({"alice", "bob", "carol"}) == found.users


NOT_WHOLE = "the request log of broker 2 has not been read for a minute without a gap"
UNTOLD = "no sidecar tells who writes to broker 2"


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (told(2, BOB, at=NOW - FRESH_S), ""),
        (told(2, BOB, at=NOW - FRESH_S - 0.1), UNTOLD),
        (told(None, BOB), UNTOLD),
        (told(3, BOB), UNTOLD),
        (told(2, BOB, is_whole=False), NOT_WHOLE),
        (told(2, BOB, Writer("", "full", "")), "a user without a name writes there"),
    ],
)
def test_one_broker_that_is_not_known_puts_all_in_scope(second: Told, why: str) -> None:
    """Nobody is released because a log can't be seen."""
    found = scoped({"full"}, [1, 2], [told(1, ALICE), second], {}, NOW)
    assert (None if why else {"alice"}, why) == (found.users, found.why)


def test_two_answers_for_a_broker_must_both_be_whole() -> None:
    """A second sidecar with the same broker's id may read another log."""
    found = scoped({"full"}, [2], [told(2, ALICE), told(2, is_whole=False)], {}, NOW)
    assert (None, NOT_WHOLE) == (found.users, found.why)


def test_without_known_brokers_all_are_in_scope() -> None:
    """No broker is missing there, but nothing is known either."""
    assert scoped({"full"}, [], [], {}, NOW).users is None


def test_no_topics_are_nobody() -> None:
    """The contents of the volume are still being read."""
    assert Scoped() == scoped((), [1, 2], [], {}, NOW)


def test_an_id_that_nobody_can_resolve_counts_as_one_of_the_topics() -> None:
    """But that user is not surely in scope. One of a deleted topic is not in scope."""
    by_id = [Writer(f"user-{id_}", "", id_) for id_ in ("full", "free", "gone", "other")]
    names = {"full": "full", "free": "free", "gone": ""}
    found = scoped({"full"}, [1], [told(1, *by_id)], names, NOW)
    assert Scoped("", frozenset({"user-full"}), frozenset({"user-other"})) == found
    assert frozenset({"user-full", "user-other"}) == found.users


def test_the_page_names_some_users() -> None:
    """And how many more there are; or that there are none."""
    users = frozenset(f"user-{number}" for number in range(7))
    assert Scoped("", users, frozenset()).sentence.endswith(
        ": user-0, user-1, user-2, user-3, user-4 and 2 more."
    )
    nobody = "By request logs, nobody is known to write to topics on the full volumes."
    assert nobody == Scoped().sentence


def test_a_user_without_a_quota_takes_a_copy_of_each_that_it_shares() -> None:
    """And one more, for its other clients. A user's own quotas need none.

    A quota of all users applies in place of those of client-ids.
    """
    of_clients = [Entity(client_id="a"), Entity(client_id=DEFAULT)]
    quotas = [*of_clients, Entity("alice"), Entity("bob", DEFAULT), Entity("carol", "a")]
    users = {"alice", "bob", "carol", "dave"}
    assert 1 + 1 + 3 + 3 == quotas_for(users, quotas)
    assert 1 + 1 + 2 + 2 == quotas_for(users, [*quotas, Entity(DEFAULT)])
    assert MOST_QUOTAS >= quotas_for({str(each) for each in range(MOST_QUOTAS)}, [])
