"""Scenarios as people write them, and the candidates of a sweep."""

import pytest

from usage_pipeline.replay.scenarios import Scenario, ScenarioError, candidates, scenario, sweep


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x2", Scenario("x2", factor=2.0)),
        ("=1000", Scenario("=1000", quota=1000.0)),
        ("fetch:x0.5", Scenario("x0.5", factor=0.5, quota_type="fetch")),
        (
            "produce:user=a:b,client-id=c:=5e6",
            Scenario("=5e6", quota=5e6, quota_type="produce", entity="user=a:b,client-id=c"),
        ),
    ],
)
def test_scenarios_are_read(text: str, expected: Scenario) -> None:
    """They are for all, a kind or an entity, whose name may have colons."""
    assert expected == scenario(text)


@pytest.mark.parametrize(
    "text", ["", "2", "x", "x0", "=-1", "=inf", "ip:=3", ":user=a:=3", "produce:usr=a:=3"]
)
def test_what_makes_no_sense_is_refused(text: str) -> None:
    """The message has what to write instead, or what is wrong."""
    refused = (
        ': write "x2"|must be above 0|is not one of|name the quota type of|is not an entity such as'
    )
    with pytest.raises(ScenarioError, match=refused):
        scenario(text)


def test_a_scenario_is_a_factor_or_a_quota() -> None:
    """One without either is refused, as is one with both."""
    for factor, quota in ((None, None), (2.0, 5.0)):
        with pytest.raises(ScenarioError, match="either a factor or a quota"):
            Scenario("?", factor, quota)


def test_candidates_rise_by_the_same_factor() -> None:
    """They are from one that nearly always throttles to one that never does."""
    assert (21.0, 96.2, 441.0, 2020.0) == candidates(1000.0, 3)
    found = candidates(1234567.0, 20)
    assert len(found) in {20, 21}
    assert found[0] <= 0.05 * 1234567.0 < found[1]
    assert found[-2] < 1.05 * 1234567.0 <= found[-1]
    for peak, count in ((0.0, 3), (1.0, 1), (float("inf"), 3)):
        with pytest.raises(ValueError, match="are impossible"):
            candidates(peak, count)


def test_runs_with_other_peaks_try_the_same_values() -> None:
    """Else a value would be judged by the days of one run alone."""
    quiet, busy = candidates(1000.0, 20), candidates(4567.0, 20)
    both = {*quiet} & {*busy}
    assert [each for each in quiet if each >= busy[0]] == sorted(both)
    assert len(both) > 5


def test_a_sweep_leaves_out_those_who_used_nothing() -> None:
    """Each of the others has candidates."""
    found = sweep([("produce", "user=alice", 1000.0), ("fetch", "user=bob", 0.0)], 2)
    assert (
        Scenario("=21", quota=21.0, quota_type="produce", entity="user=alice"),
        Scenario("=441", quota=441.0, quota_type="produce", entity="user=alice"),
        Scenario("=9260", quota=9260.0, quota_type="produce", entity="user=alice"),
    ) == found
