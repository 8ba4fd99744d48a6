"""By turns, with a backoff: one that hangs keeps none that answers from being asked."""

from collections import Counter

from tests.simulation.turns import Turns


def _asked(seconds: float, hangs: dict[int, float]) -> Counter[int]:
    """How often each of three is asked; one that hangs until some second fails after 2 s."""
    turns, now = Turns(3, 0.0), 0.0
    asked: Counter[int] = Counter()
    while (now := max(now, turns.due_s)) < seconds:
        number = turns.next
        asked[number] += 1
        failed = now < hangs.get(number, 0.0)
        now += 2.0 if failed else 0.0
        turns.ended(number, failed=failed, now=now)
    return asked


def test_those_that_answer_are_asked_in_turn() -> None:
    """One a second, whoever."""
    assert {0: 20, 1: 20, 2: 20} == _asked(60.0, {})


def test_one_that_hangs_costs_others_little() -> None:
    """Of 60 s it takes 2 of each 6 or so; without a backoff each other would be asked 12 times."""
    asked = _asked(60.0, {0: 60.0})
    assert min(asked[1], asked[2]) >= 16
    assert 8 <= asked[0] <= 10


def test_one_that_is_back_counts_soon() -> None:
    """It waits for 4 s at most, and is asked like the others from then on."""
    back = _asked(60.0, {0: 30.0})[0] - _asked(30.0, {0: 30.0})[0]
    assert 8 <= back <= 10
