"""Each goal of a client's run, by figures that are made by hand."""

from dataclasses import replace

import pytest

from benchmarks.clients.clients import Client
from benchmarks.clients.figures import Figures, Loss
from benchmarks.clients.goals import NAMES, Verdict, verdicts

CLIENT = Client("a", "A", "go", "a")
WAITED = Figures(
    before=2_000_000,
    least=18_000,
    most=19_000,
    mean=18_000,
    counted_s=74.0,
    minute=18_500,
    request=10_000,
    first_error_s=None,
    first_error="",
    lost=None,
    failed_but_landed=0,
    unreported=0,
    twice=0,
    disordered=0,
    for_nothing=0,
    connections=3,
    dialed=0,
    refused=0,
    back_s=2.0,
    watched_s=40.0,
    peak=2_400_000,
    peak_s=3.0,
)
DIALED = replace(WAITED, dialed=7, refused=40, request=1_000_000)


def _of(
    name: str,
    found: Figures,
    arm: str = "authorizer",
    client: Client = CLIENT,
    without: Figures | None = None,
) -> Verdict:
    (verdict,) = [
        each
        for each, of in zip(verdicts(client, arm, found, without), NAMES, strict=True)
        if of.startswith(name)
    ]
    return verdict


def test_a_client_that_does_well_reaches_each_goal() -> None:
    """A peak of 1.2 times of before is one of them, and so is a return after 10 s."""
    for found in (WAITED, replace(WAITED, back_s=10.0)):
        assert [True] * 5 == [each.met for each in verdicts(CLIENT, "authorizer", found, None)]


@pytest.mark.parametrize("arm", ["callback", "authorizer"])
def test_who_waits_may_land_a_request_in_each_pause(arm: str) -> None:
    """1 MB in 4 s are 250 kB/s, and 14 more by a request in 74 s; small ones have the budget."""
    large = replace(WAITED, request=1_000_000, mean=263_000)
    assert (True, "waits, 263 of 264 kB/s") == (
        _of("lands", large, arm).met,
        _of("lands", large, arm).why,
    )
    assert False is _of("lands", replace(large, mean=265_000), arm).met
    small = replace(WAITED, mean=20_000)
    assert True is _of("lands", small, arm).met
    assert False is _of("lands", replace(small, mean=20_200), arm).met


def test_who_dials_anew_may_land_the_budget_in_each_minute() -> None:
    """The reason says when one request is too large, and what connections that wait may land."""
    assert Verdict(True, "18 of 20 kB/s in a minute") == _of("lands", DIALED)
    once = _of("lands", replace(DIALED, minute=33_000))
    assert Verdict(False, "33 of 20 kB/s in a minute, by less than one request of 1,000 kB") == once
    much = "dialed 7 times, 50 of 20 kB/s in a minute; if by connections that wait, {} of 264 kB/s"
    assert Verdict(None, much.format(18)) == _of("lands", replace(DIALED, minute=50_000))
    more = replace(DIALED, minute=50_000, mean=300_000)
    assert Verdict(False, much.format(300)) == _of("lands", more)


def test_connections_that_nobody_refused_are_no_matter() -> None:
    """Some clients dial for metadata: by the count of refusals they have waited."""
    found = replace(DIALED, refused=0, mean=240_000, minute=250_000)
    assert Verdict(True, "waits, 240 of 264 kB/s") == _of("lands", found)


def test_less_than_a_minute_is_not_judged_as_one() -> None:
    """Who dialed late can't be told from one that waited; who landed more than that has not."""
    found = replace(DIALED, mean=240_000, minute=None)
    late = "dialed 7 times, less than a minute before the release, 240 of 264 kB/s"
    assert Verdict(None, late) == _of("lands", found)
    assert False is _of("lands", replace(found, mean=300_000)).met


def test_pauses_alone_stop_nobody_who_dials_anew() -> None:
    """That is why they do not reach the goal; it is no fault of the client's."""
    found = replace(DIALED, mean=900_000, minute=1_000_000)
    assert Verdict(False, "dialed 7 times, which no pause stops, 900 of 264 kB/s") == _of(
        "lands", found, "callback"
    )
    assert True is _of("lands", replace(found, mean=200_000), "callback").met


def test_a_return_is_not_to_be_had_of_who_sleeps_longer() -> None:
    """A client whose own wait is longer than 10 s can't; another one did not."""
    late, never = replace(WAITED, back_s=10.1), replace(WAITED, back_s=None)
    sleeper = replace(CLIENT, longest_wait_s=30.0, wait="`x`")
    assert Verdict(False, "10.1 s") == _of("back", late)
    assert Verdict(False, "> 40 s") == _of("back", never)
    assert Verdict(None, "> 40 s; it tries again after up to 30 s (`x`)") == _of(
        "back", never, client=sleeper
    )
    assert Verdict(True) == _of("back", WAITED, client=sleeper)


def test_a_flood_is_none_below_a_fifth_more() -> None:
    """Of who had no rate before nothing can be told."""
    assert Verdict(False, "1.3 x") == _of("no second", replace(WAITED, peak=2_600_000))
    assert Verdict(True) == _of("no second", replace(WAITED, peak=2_600_000, request=200_000))
    assert None is _of("no second", replace(WAITED, before=0.0)).met


def test_what_was_not_acknowledged_may_be_lost() -> None:
    """With acks=0 no broker acknowledges what the client calls written."""
    failed, lost = replace(WAITED, lost=Loss(7, 0, 3.0)), replace(WAITED, lost=Loss(7, 2, 3.0))
    assert Verdict(True) == _of("nothing ack", failed)
    assert Verdict(False, "2") == _of("nothing ack", lost)
    blind = replace(CLIENT, is_acknowledged=False)
    assert None is _of("nothing ack", lost, client=blind).met


def test_what_is_twice_without_us_may_be_twice() -> None:
    """No more than under Kafka's own quota; where that was not measured it can't be told."""
    found = replace(WAITED, twice=4)
    assert Verdict(None, "4; without us it was not measured") == _of("nothing twice", found)
    for count, met in ((3, False), (4, True)):
        without = replace(WAITED, twice=count)
        assert Verdict(met, f"4, and {count} without us") == _of(
            "nothing twice", found, without=without
        )


def test_a_verdict_is_a_word_and_its_reason() -> None:
    """What has no reason is the word alone."""
    cells = [str(each) for each in (Verdict(True), Verdict(False, "7"), Verdict(None, "7"))]
    assert ["yes", "no: 7", "-: 7"] == cells
