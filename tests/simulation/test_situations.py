"""Which situations a moment reaches, what is said about them, and that none is lost."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sidecar.volumes import FailureKind
from tests.simulation import recorded
from tests.simulation.faults import Fault, Kind, kinds_of
from tests.simulation.moments import (
    BrokerMoment,
    CallbackMoment,
    Moment,
    Origin,
    Role,
    SidecarMoment,
)
from tests.simulation.recorded import Record, chosen, promising
from tests.simulation.refusals import Refusal
from tests.simulation.situations import ALL, SITUATIONS, decided, reached
from tests.simulation.summary import summary
from tests.simulation.throttles import Source
from tests.simulation.world import Plan

WELL = Moment(
    0.0,
    sidecars=tuple(
        SidecarMoment(
            number,
            1,
            runs=True,
            origin=Origin.OBSERVATION,
            origins=frozenset({Origin.OBSERVATION}),
            active=frozenset({0, 1, 2}),
        )
        for number in range(3)
    ),
    callbacks=tuple(CallbackMoment(number, Source.SIDECAR) for number in range(3)),
    brokers=tuple(BrokerMoment(number, number) for number in range(3)),
)


def fault(kind: Kind, target: int = 0) -> Fault:
    return Fault(0.0, 10.0, kind, target)


def sidecar(number: int, moment: Moment = WELL, **changes: Any) -> Moment:
    """A moment in which one sidecar is otherwise."""
    if "origin" in changes:
        changes["origins"] = frozenset({changes["origin"]})
    sidecars = [*moment.sidecars]
    sidecars[number] = replace(sidecars[number], **changes)
    return replace(moment, sidecars=tuple(sidecars))


def callback(number: int, moment: Moment = WELL, **changes: Any) -> Moment:
    callbacks = [*moment.callbacks]
    callbacks[number] = replace(callbacks[number], **changes)
    return replace(moment, callbacks=tuple(callbacks))


def broker(number: int, moment: Moment = WELL, **changes: Any) -> Moment:
    brokers = [*moment.brokers]
    brokers[number] = replace(brokers[number], **changes)
    return replace(moment, brokers=tuple(brokers))


THROTTLED = broker(1, violates=True)
for _number in range(3):
    THROTTLED = sidecar(_number, THROTTLED, factor=0.0, violating=frozenset({1}))
    THROTTLED = callback(_number, THROTTLED, factor=0.0)
CUT = replace(WELL, faults=(fault(Kind.CUT_FROM_PEER),))


def test_nothing_is_reached_while_all_is_well() -> None:
    """Three sidecars see three brokers that have room."""
    assert set() == reached(WELL, WELL)


def test_a_name_is_of_one_situation() -> None:
    """The list of all has each once."""
    assert len(set(ALL)) == len(ALL)


@pytest.mark.parametrize(
    ("kind", "own", "others"),
    [
        (Kind.BROKER_KILLED, True, True),
        (Kind.CONTROLLER_LOST, True, True),
        (Kind.DISK_FULL, True, False),
    ],
)
def test_a_fault_counts_for_the_decisions_that_it_concerns(
    kind: Kind, own: bool, others: bool
) -> None:
    """A full disk beside sidecar 0 is none of sidecar 1's business; a broker's fault is."""
    moment = replace(WELL, faults=(fault(kind),))
    name = decided(Origin.FALLBACK, kind)
    assert own is (name in reached(WELL, sidecar(0, moment, origin=Origin.FALLBACK)))
    assert others is (name in reached(WELL, sidecar(1, moment, origin=Origin.FALLBACK)))


def test_a_fault_that_takes_a_sidecar_away_counts_for_the_others() -> None:
    """It decides nothing itself."""
    moment = replace(WELL, faults=(fault(Kind.SIDECAR_KILLED),))
    moment = sidecar(0, moment, runs=False, origin=Origin.OVERRIDE)
    assert {decided(Origin.OBSERVATION, Kind.SIDECAR_KILLED)} == reached(moment, moment)


EXAMPLES: Sequence[tuple[str, Moment, Moment]] = [
    ("a throttle begins", WELL, THROTTLED),
    ("a throttle begins during a partition", WELL, replace(THROTTLED, faults=CUT.faults)),
    (
        "a throttle begins by a part of the brokers",
        WELL,
        sidecar(0, THROTTLED, silent=frozenset({2})),
    ),
    ("a release", THROTTLED, WELL),
    ("a release during a partition", THROTTLED, CUT),
    ("a release while a broker is fenced", THROTTLED, broker(2, is_fenced=True)),
    ("the release margin holds a throttle", THROTTLED, sidecar(0, THROTTLED, is_held=True)),
    ("a release after the margin held the throttle", sidecar(0, THROTTLED, is_held=True), WELL),
    (
        "a sidecar sees nobody in a throttle",
        WELL,
        sidecar(0, THROTTLED, silent=frozenset({0, 1, 2})),
    ),
    ("a sidecar restarts in a throttle", THROTTLED, sidecar(0, THROTTLED, starts=2)),
    ("no sidecar runs in a throttle", WELL, replace(THROTTLED, sidecars=())),
    (
        "a sidecar throttles by the state of a former process",
        WELL,
        sidecar(0, THROTTLED, origin=Origin.DISK),
    ),
    (
        "the state can't be written in a throttle",
        THROTTLED,
        replace(THROTTLED, faults=(fault(Kind.DISK_FULL),)),
    ),
    (
        "a fenced broker's volume holds a throttle",
        WELL,
        sidecar(0, THROTTLED, retained=frozenset({1})),
    ),
    (
        "a former node id's volume holds a throttle",
        WELL,
        replace(sidecar(0, THROTTLED, retained=frozenset({1})), former=frozenset({1})),
    ),
    ("a full broker is back from its fencing", broker(1, is_fenced=True), THROTTLED),
    ("a stop begins", THROTTLED, sidecar(0, THROTTLED, stops=True)),
    ("a stop ends in a throttle", sidecar(0, THROTTLED, stops=True), THROTTLED),
    (
        "the fallback inside a stop",
        WELL,
        sidecar(0, callback(1, THROTTLED, stops=True), origin=Origin.FALLBACK),
    ),
    (
        "an override inside a stop",
        WELL,
        sidecar(0, sidecar(1, THROTTLED, stops=True), origin=Origin.OVERRIDE),
    ),
    (
        "on the slope while a broker is fenced",
        WELL,
        sidecar(0, broker(1, is_fenced=True), factor=0.5, is_sloped=True),
    ),
    ("the slope ends with room", sidecar(0, factor=0.5, is_sloped=True), WELL),
    ("the slope ends at the limit", sidecar(0, factor=0.5, is_sloped=True), THROTTLED),
    (
        "the validity ends in a throttle",
        THROTTLED,
        sidecar(0, THROTTLED, origin=Origin.FALLBACK, factor=1.0, violating=frozenset()),
    ),
    ("an observation ends the fallback", sidecar(0, origin=Origin.FALLBACK), WELL),
    (
        "an override ends a throttle",
        THROTTLED,
        sidecar(0, THROTTLED, origin=Origin.OVERRIDE, factor=1.0),
    ),
    (
        "an override while nothing is seen",
        WELL,
        sidecar(0, origin=Origin.OVERRIDE, silent=frozenset({0, 1, 2})),
    ),
    (
        "an override shuts a broker's eyes on a full volume",
        WELL,
        callback(1, THROTTLED, is_lifted=True, factor=1.0),
    ),
    (
        "a forget while a broker is fenced",
        WELL,
        sidecar(0, broker(2, is_fenced=True), did=("forgot broker 2",)),
    ),
    ("a forget ends a throttle", THROTTLED, sidecar(0, did=("forgot broker 1",))),
    ("two sidecars disagree", WELL, sidecar(0, THROTTLED, factor=1.0, violating=frozenset())),
    (
        "an observer sees a part of the brokers",
        WELL,
        sidecar(0, role=Role.OBSERVER, silent=frozenset({2})),
    ),
    (
        "a volume violates, and some sidecars do not see its broker",
        WELL,
        sidecar(0, THROTTLED, silent=frozenset({1})),
    ),
    (
        "a poll fails: other_cluster",
        WELL,
        sidecar(0, failures=frozenset({FailureKind.OTHER_CLUSTER})),
    ),
    ("a follower alone", WELL, sidecar(0, role=Role.ALONE)),
    (
        "an observer dies while a follower throttles",
        sidecar(0, THROTTLED, role=Role.OBSERVER),
        sidecar(0, sidecar(1, THROTTLED, role=Role.FOLLOWER), runs=False),
    ),
    ("a broker throttles by its own eyes", WELL, callback(0, source=Source.LOCAL, factor=0.0)),
    (
        "a broker throttles by its own eyes, and no sidecar answers",
        WELL,
        callback(0, source=Source.LOCAL, factor=0.0, own_answers=False),
    ),
    ("a broker's throttle outlives its sidecar", WELL, callback(0, THROTTLED, own_answers=False)),
    (
        "another sidecar's throttle applies",
        WELL,
        callback(0, THROTTLED, own_answers=False, others_answer=True),
    ),
    ("a broker restarts in a throttle", broker(1, THROTTLED, runs=False), THROTTLED),
    ("a throttle begins within a ramp", callback(0, ramps=True), THROTTLED),
    (
        "a refusal at the stop line",
        WELL,
        replace(THROTTLED, refusals=frozenset({Refusal.STOP_LINE})),
    ),
]


@pytest.mark.parametrize(("name", "last", "now"), EXAMPLES, ids=[each[0] for each in EXAMPLES])
def test_a_moment_reaches_a_situation(name: str, last: Moment, now: Moment) -> None:
    """Only by what has happened: it is not reached while all is well."""
    assert name in SITUATIONS
    assert name in reached(last, now)


def test_a_sidecar_that_restarts_has_not_released() -> None:
    """Its new process had no throttle: that is another situation."""
    restarted = sidecar(0, sidecar(1, sidecar(2, starts=2), starts=2), starts=2)
    assert "a release" not in reached(THROTTLED, restarted)


def test_the_summary_ends_with_what_was_not_reached() -> None:
    """Sums come first."""
    lines = [*summary(2, {"a release": 3, decided(Origin.DISK, Kind.FORGET): 1}, ())]
    assert "       3  a release" in lines
    assert f"  {Kind.FORGET:40}" + "".join(f"{text:>12}" for text in "----1") in lines
    never = lines[
        1
        + lines.index(
            f"2 of {len(ALL)} situations were reached in 2 seeds. Never reached (other seeds may):"
        ) :
    ]
    assert "  a throttle begins" in never
    assert "  a release" not in never


def test_few_seeds_reach_what_is_wanted_and_most_others() -> None:
    """What is wanted whatever it takes, and the rest within the budget."""
    runs = {
        1: (frozenset("abc"), 10.0),
        2: (frozenset("ab"), 5.0),
        3: (frozenset("c"), 5.0),
        4: (frozenset("abcd"), 50.0),
    }
    assert [2, 3] == chosen(runs, (), 20.0)
    assert [3, 2] == chosen(runs, ["c"], 20.0)
    assert [3] == chosen(runs, ["c"], 9.0)
    assert [4] == chosen(runs, ["d"], 9.0)


@pytest.mark.slow
def test_worlds_that_promise_most_are_run() -> None:
    """Those whose volumes fill soon, with kinds and traits that no other has."""
    plans = [Plan(seed, 600.0, spacing_s=8.0) for seed in range(60)]
    few = promising(plans, 3)
    assert few == promising(plans, 30)[:3]
    assert {kind for plan in few for kind in kinds_of(plan.seed)} > set(kinds_of(few[0].seed))


def test_a_name_that_no_seed_reaches_stays_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Until somebody deletes it."""
    monkeypatch.setattr(recorded, "FILE", tmp_path / "reached.toml")
    old = Record(0.1, 10.0, 3, [7], ["a release", "on the slope"])
    assert 1 == recorded.write(old, "1-1", {1: (frozenset({"on the slope", "a forget"}), 3.0)})
    assert Record(0.1, 10.0, 3, [1], ["a release", "on the slope", "a forget"]) == Record.read()
    assert "a release (seeds none)" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_was_reached_is_reached_again() -> None:
    """By the seeds of reached.toml: a situation that is lost is no longer tried by anything."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation.recorded"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stdout + done.stderr
