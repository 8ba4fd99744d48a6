"""Each claim is judged of a run's data; a broken one says when."""

from collections.abc import Sequence
from dataclasses import replace

from kafka_lab.series import Series
from tests.chaos.claims import Claim, judge, longest_wait
from tests.chaos.course import Course, Producer
from tests.chaos.made import (
    BOUND,
    FAULT,
    FREE,
    LOCAL,
    MB,
    SEES,
    THROTTLED,
    THROTTLES,
    course,
    sample,
)
from tests.chaos.samples import CallbackSight, SidecarSight


def broken(run: Course) -> list[Claim]:
    return [claim for claim in judge(run) if not claim.holds]


def texts(run: Course) -> list[str]:
    return [claim.text.split()[0] for claim in broken(run)]


def test_all_claims_hold_of_a_good_run() -> None:
    """With a crossing within the bound and a throttle time within the longest pause."""
    run = course([sample(1.0), sample(2.0, (9, 9, 9)), sample(3.0)])
    run.producers = [Producer("Java", 1e6, Series(), 4.9, 0)]
    assert [] == broken(run)
    assert len(judge(run)) == 9


def test_a_full_volume() -> None:
    """Less than a segment is left of it."""
    run = course([sample(1.0), sample(2.0, (-50, 98, -50)), sample(3.0, (-50, 100, -50))])
    full, past, landed = broken(run)
    assert ("no volume is full", 3.0) == (full.text, full.at_s)
    assert "broker 1" in full.detail
    assert "bound" in past.text
    assert "clients" in landed.text


def test_bytes_past_the_bound() -> None:
    """The worst of those that were not allowed; what a broker fetches that was away is."""
    most = int(BOUND.bytes(2.0) / MB)
    assert most > 15
    assert ["clients"] == texts(course([sample(1.0, (most, -9, -9)), sample(3.0)]))
    beyond = [sample(1.0), sample(8.0, (most + 1, -9, -9)), sample(10.0)]
    past, _ = broken(course(beyond))
    assert (8.0, True) == (past.at_s, "1 of 1 crossings" in past.detail)
    assert f"{most + 1}.0 MB, {BOUND.bytes(2.0) / MB:.1f} MB are allowed" in past.detail
    away = replace(beyond[0], at_s=6.0, steady_s={"sidecar 0": 60.0})
    assert [] == broken(course([beyond[0], away, replace(beyond[1], steady_s={}), beyond[2]]))


def test_what_clients_land_past_the_limit() -> None:
    """Of all crossings the most, 15 MB."""
    assert [] == broken(course([sample(1.0, (15, -9, -9)), sample(3.0)]))
    (claim,) = broken(course([sample(1.0, (16, 2, -9)), sample(3.0)]))
    assert 3.0 == claim.at_s
    assert "16.0 MB, broker 0, in the crossing from 0:01 to 0:03" == claim.detail


def test_a_broker_with_more_room_leads_on_where_no_sidecar_answers() -> None:
    """What it had above its limit counts too, and no more."""

    def landed(past: int, sidecars: Sequence[SidecarSight | None]) -> list[str]:
        callbacks = [LOCAL, FREE, FREE]
        crossing = sample(2.0, (0, -30, -9), sidecars=sidecars, callbacks=callbacks)
        return texts(course([sample(1.0), crossing, sample(8.0, (past, 0, 0)), sample(9.0)]))

    unseen = [None, None, None]
    assert "clients" not in landed(45, unseen)
    assert "clients" in landed(46, unseen)
    assert "clients" in landed(16, [SEES, None, None])
    assert "clients" in landed(16, [THROTTLES, None, None])


def test_a_broker_blind_to_its_own_volume() -> None:
    """It does not throttle, whatever sidecars say."""
    free = [THROTTLED, FREE, THROTTLED]
    samples = [sample(float(at), (-9, 5, -9), callbacks=free) for at in range(6)]
    claim, audited = broken(course([*samples, sample(6.0)]))
    assert (4.0, "broker 1, going by SIDECAR, in 2 samples") == (claim.at_s, claim.detail)
    assert "broker 1 applies 1, but a volume of broker 1 has been for 4 s" in audited.detail


def test_a_settled_sidecar_that_sees_nothing() -> None:
    """It says 1.0 by observation while a volume violates."""
    sidecars = [THROTTLES, SEES, THROTTLES]
    samples = [sample(float(at), (5, -9, -9), sidecars=sidecars) for at in range(9)]
    (claim,) = broken(course([*samples, sample(9.0)]))
    assert 4.0 == claim.at_s
    assert "sidecar 1 does not see the volume of broker 0" in claim.detail


def test_a_throttle_time_too_long() -> None:
    """A producer's is longer than pause.max, and than any pause of an emergency that was seen."""
    run = course([sample(1.0)])
    run.producers = [Producer("Java", 1e6, Series(), 4.0, 0), Producer("C", 1e6, Series(), 5.1, 0)]
    (claim,) = broken(run)
    assert "5.1 s, C" == claim.detail
    urgent = replace(THROTTLED, emergency=True, longest_pause_s=40.0)
    run.samples[:0] = [sample(-1.0), sample(0.0, callbacks=[urgent, FREE, FREE])]
    assert [] == broken(run)
    run.producers[0] = replace(run.producers[0], longest_throttle_s=41.1)
    assert [1.0] == [claim.at_s for claim in broken(run)]


def test_a_pause_too_long_of_a_broker() -> None:
    """It is longer than pause.max without an emergency of that broker, or longer than its own."""

    def judged(*sights: CallbackSight) -> list[tuple[str, float]]:
        samples = [sample(at, callbacks=[each] * 3) for at, each in enumerate(sights)]
        found = broken(course(samples))
        return [(each.detail, each.at_s) for each in found if "throttle time" in each.text]

    usual, too_long = THROTTLED, replace(THROTTLED, longest_pause_s=5.1)
    assert [("5.1 s, broker 0", 1.0)] == judged(usual, too_long)
    # That of an emergency stays the longest since the broker's start.
    calm = replace(THROTTLED, longest_pause_s=40.0)
    urgent = replace(calm, emergency=True)
    assert [] == judged(usual, urgent, urgent, calm, calm)
    longer = replace(calm, longest_pause_s=41.0)
    assert [("41.0 s, broker 0", 3.0)] == judged(usual, urgent, calm, longer)


def test_all_agree_at_the_end() -> None:
    """In some second of the last ten: a factor may change in the very last one."""
    good, apart = sample(1.0), sample(2.0, sidecars=[SEES, SEES, THROTTLES])
    assert [] == broken(course([good, apart]))
    (claim,) = broken(course([good, replace(apart, at_s=12.0)]))
    assert [] == broken(course([good, replace(apart, at_s=12.0)], faults=[FAULT])), "it lasts still"
    assert "factors 0, 1" == claim.detail
    for detail, last in {
        "sidecar 0 does not answer": sample(1.0, sidecars=[None, SEES, SEES]),
        "sidecar 1 goes by fallback": sample(
            1.0, sidecars=[SEES, replace(SEES, source="fallback"), SEES]
        ),
        "callback 2 does not answer": sample(1.0, callbacks=[FREE, FREE, None]),
        "callback 0 goes by FALLBACK": sample(
            1.0, callbacks=[replace(FREE, source="FALLBACK"), FREE, FREE]
        ),
    }.items():
        assert [detail] == [claim.detail for claim in broken(course([last]))]
    assert ["nothing was seen"] == [
        claim.detail for claim in broken(course([])) if claim.text.startswith("after")
    ]


def test_what_ended_by_itself() -> None:
    """Tracebacks of logs, and processes that no fault had ended."""
    run = course([sample(1.0), sample(2.0)])
    run.tracebacks = ["sidecar 1: KeyError: 3"]
    (claim,) = broken(run)
    assert (2.0, "1: sidecar 1: KeyError: 3") == (claim.at_s, claim.detail)
    run.ended = [(1.5, "broker 0 ended with 1")]
    (claim,) = broken(run)
    assert 1.5 == claim.at_s


def test_a_long_wait_in_an_emergency() -> None:
    """In the scenario with two volumes no client waits for more than 10 s, whatever happens."""
    run = course([sample(1.0), sample(9.0)])
    run.producers = [Producer("Java", 1e6, Series(), 9.9, 0), Producer("C", 1e6, Series(), 4.0, 0)]
    assert longest_wait(run).holds
    run.producers.append(Producer("Go", 1e6, Series(), 40.0, 0))
    waited = longest_wait(run)
    assert (False, "40.0 s, Go", 9.0) == (waited.holds, waited.detail, waited.at_s)
