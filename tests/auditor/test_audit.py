"""Each claim of the auditor: it holds on a made-up run, and is broken once the run is doctored."""

import ast
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.auditor import BrokerSight, Moment, Setup, Trace, VolumeSight, audit
from tests.auditor.bounds import leaked_bytes, reaction_s, recovery_s
from tests.auditor.trace import read

pytestmark = pytest.mark.slow

MB = 1_000_000
SETUP = Setup(
    limit_bytes=100 * MB,
    margin_bytes=10 * MB,
    stop_bytes=50 * MB,
    interval_s=10.0,
    most_bytes_per_s=10 * MB,
    once_bytes=3 * MB,
)
FULL_S, BACK_S, END_S = 100, 200, 700
"""From when until when the volume of broker 1 is at its limit, and the end of the run."""

Doctored = Callable[[int, int, BrokerSight], BrokerSight]


def made(
    doctored: Doctored = lambda _, __, sight: sight,
    setup: Setup = SETUP,
    *,
    full_bytes: int = 90 * MB,
    appends: Callable[[int], float] = lambda _: 0.0,
    quiet_s: float = 1000.0,
) -> Trace:
    """A run in which the volume of broker 1 is full for a while, and all throttle within a second.

    Args:
        doctored: second, broker and its sight -> the sight that is recorded.
        setup: the settings.
        full_bytes: what the full volume has available.
        appends: second -> the bytes that clients have appended since the run began.
        quiet_s: for how long no fault has touched sidecars.
    """
    trace = Trace(setup)
    for second in range(END_S):
        throttles = FULL_S < second <= BACK_S
        stops = throttles and full_bytes <= (setup.stop_bytes or 0)
        brokers = {}
        for number in range(3):
            is_full = number == 1 and FULL_S <= second < BACK_S
            volume = VolumeSight(full_bytes if is_full else 500 * MB, 1000.0 + second)
            sight = BrokerSight(
                volumes={"/d0": volume, "/d1": VolumeSight(500 * MB, 1000.0)},
                up_s=1000.0 + second,
                quiet_s=1000.0 + second,
                factor=0.0 if throttles else 1.0,
                stops=stops,
                longest_pause_s=4.0,
            )
            brokers[number] = doctored(second, number, sight)
        sidecars = dict.fromkeys(range(3), quiet_s)
        trace.moments.append(Moment(float(second), brokers, sidecars, appends(second)))
    return trace


def broken(trace: Trace) -> list[tuple[float, str]]:
    """When each claim was broken."""
    return [(each.at_s, each.claim) for each in audit(trace)]


THROTTLES = "a violation that a callback can know of throttles"
CAUSE = "nothing is throttled without a cause"


def between(begin: int, end: int, number: int, **changes: object) -> Doctored:
    """Changes what a broker shows in some seconds."""

    def doctored(second: int, of: int, sight: BrokerSight) -> BrokerSight:
        is_meant = of == number and begin <= second < end
        return replace(sight, **changes) if is_meant else sight  # type: ignore[arg-type] # by name

    return doctored


@pytest.mark.parametrize("full_bytes", [90 * MB, 40 * MB])
def test_a_run_without_a_fault_breaks_nothing(full_bytes: int) -> None:
    """A throttle, and a stop."""
    assert broken(made(full_bytes=full_bytes)) == []


def test_a_broker_that_ignores_its_own_volume() -> None:
    """It has a second, and a second more since moments are a second apart."""
    assert broken(made(between(0, 150, 1, factor=1.0))) == [(104.0, THROTTLES)]


def test_a_broker_that_does_not_hear_of_another_volume() -> None:
    """It has 29 s."""
    assert broken(made(between(0, 150, 2, factor=1.0))) == [(132.0, THROTTLES)]
    assert broken(made(between(0, 130, 2, factor=1.0))) == []


@pytest.mark.parametrize(
    "changes", [{"overridden": True}, {"quiet_s": None}, {"up_s": None}, {"factor": None}]
)
def test_a_broker_with_an_excuse(changes: dict[str, object]) -> None:
    """An override, a fault, or no report."""
    assert broken(made(between(0, 200, 2, **({"factor": 1.0} | changes)))) == []


def test_an_excuse_of_all_sidecars() -> None:
    """They were in a fault; a broker's own volume needs none of them."""
    assert broken(made(between(0, 150, 2, factor=1.0), quiet_s=20.0)) == []
    assert broken(made(between(0, 150, 1, factor=1.0), quiet_s=20.0)) == [(104.0, THROTTLES)]


def test_a_release_while_the_broker_of_the_full_volume_is_away() -> None:
    """Its volume was full when it was last read."""
    away = between(150, 400, 1, up_s=None, quiet_s=None, factor=None)

    def doctored(factor: float) -> Doctored:
        throttles = between(150, 450, 2, factor=factor)
        return lambda second, number, sight: throttles(second, number, away(second, number, sight))

    def others(second: int, number: int, sight: BrokerSight) -> BrokerSight:
        return between(150, 450, 0, factor=0.0)(
            second, number, doctored(1.0)(second, number, sight)
        )

    assert broken(made(others)) == [(151.0, THROTTLES)]


def test_a_release_within_the_margin() -> None:
    """At 105 MB the volume has not the margin of 10 MB yet."""
    near = between(BACK_S, BACK_S + 60, 1, volumes={"/d0": VolumeSight(105 * MB, 1000.0)})
    assert (BACK_S + 2.0, THROTTLES) in broken(made(near))
    assert broken(made(near, replace(SETUP, margin_bytes=0))) == []


@pytest.mark.parametrize("most", [None, 111 * MB])
def test_room_between_two_moments(most: int | None) -> None:
    """All release for it, and throttle again a few seconds later."""

    def shown(second: int, number: int, sight: BrokerSight) -> BrokerSight:
        is_released = 150 <= second < 155
        if number == 1 and second == 150:
            full = replace(sight.volumes["/d0"], most=most)
            sight = replace(sight, volumes={**sight.volumes, "/d0": full})
        return replace(sight, factor=0.05) if number != 1 and is_released else sight

    assert broken(made(shown)) == ([(151.0, THROTTLES)] * 2 if most is None else [])


def test_a_stop_that_admits() -> None:
    """The own volume is at the stop line."""
    trace = made(between(0, 200, 1, stops=False), full_bytes=40 * MB)
    assert broken(trace) == [(104.0, "the stop line refuses")]


def test_a_throttle_without_a_cause() -> None:
    """By 89 s after the last one the cluster has recovered."""
    assert broken(made(between(200, 500, 2, factor=0.0))) == [(290.0, CAUSE)]
    assert broken(made(between(200, 280, 2, factor=0.0))) == []


@pytest.mark.parametrize(
    ("sight", "available"), [({"factor": 0.0}, 90 * MB), ({"stops": True}, 20 * MB)]
)
def test_a_node_id_that_is_unregistered(sight: dict[str, object], available: int) -> None:
    """What it showed last counts until the validity after it is no longer listed."""
    trace = made(between(200, 700, 2, **sight))
    for second in range(300):
        trace.moments[second] = replace(trace.moments[second], gone=(available,))
    assert broken(trace) == []
    for second in range(100):
        trace.moments[second] = replace(trace.moments[second], gone=())
    trace.moments[200:] = [replace(each, gone=()) for each in trace.moments[200:]]
    trace.moments += [replace(trace.moments[-1], at_s=700.0 + second) for second in range(30)]
    assert broken(trace) == [(620.0, CAUSE)]


@pytest.mark.parametrize("has_left", [False, True])
def test_a_volume_that_is_hidden_after_its_broker_was_away(*, has_left: bool) -> None:
    """What a broker showed before it was away counts until it is seen, and else for the validity.

    Space is freed while a fault hides the volume, from before until the end.
    """

    def hidden(second: int, number: int, sight: BrokerSight) -> BrokerSight:
        sight = replace(sight, factor=0.0 if second > FULL_S else sight.factor)
        if number != 1 or second < BACK_S - 10:
            return sight
        is_away = has_left and BACK_S + 20 <= second < BACK_S + 40
        return replace(sight, quiet_s=None, up_s=None if is_away else sight.up_s)

    assert broken(made(hidden)) == ([] if has_left else [(590.0, CAUSE)] * 3)


@pytest.mark.parametrize(
    "then",
    [None, VolumeSight(None, None), VolumeSight(500 * MB, None, is_unreadable=True)],
    ids=["seen", "offline", "unreadable"],
)
def test_a_log_dir_that_is_lost_before_its_space_is_seen(then: VolumeSight | None) -> None:
    """A sidecar that did not see it meanwhile remembers the volume as full until it is back."""

    def hidden(second: int, number: int, sight: BrokerSight) -> BrokerSight:
        sight = replace(sight, factor=0.0 if second > FULL_S else sight.factor)
        since_s = second - BACK_S
        if number != 1 or since_s < -10:
            return sight
        if since_s < 10:
            return replace(sight, quiet_s=None)
        if then is not None and since_s >= 20:
            return replace(sight, volumes={"/d0": then})
        return replace(sight, quiet_s=since_s - 10.0)

    assert broken(made(hidden)) == ([(344.0, CAUSE)] * 3 if then is None else [])


def test_a_throttle_without_a_cause_after_faults() -> None:
    """With a sidecar in a fault, the validity counts too."""
    trace = made(between(200, 700, 2, factor=0.0), quiet_s=20.0)
    assert broken(trace) == [(590.0, CAUSE)]


@pytest.mark.parametrize(
    ("available", "is_cause"), [(400 * MB, True), (2_000 * MB, False)], ids=["near", "far"]
)
def test_a_throttle_by_a_forecast(*, available: int, is_cause: bool) -> None:
    """With no sidecar in reach for 60 s, clients may have filled 400 MB since, but not 2 GB.

    Space was made meanwhile, so no volume was ever at its limit.
    """

    def shown(second: int, number: int, sight: BrokerSight) -> BrokerSight:
        room = available if 450 <= second < 460 else 3_000 * MB
        volumes = dict.fromkeys(sight.volumes, VolumeSight(room, 1000.0))
        is_cut = number == 2 and 450 <= second < 510
        return replace(
            sight,
            volumes=volumes,
            factor=0.0 if number == 2 and 495 <= second < 530 else 1.0,
            quiet_s=None if is_cut else sight.quiet_s,
        )

    assert broken(made(shown)) == ([] if is_cause else [(496.0, CAUSE)])


@pytest.mark.parametrize("is_seen", [False, True], ids=["not seen", "seen"])
def test_a_forecast_counts_from_the_last_reading(*, is_seen: bool) -> None:
    """Broker 1 is not read for 60 s, and the last answer before a callback lost it was as old."""

    def shown(second: int, number: int, sight: BrokerSight) -> BrokerSight:
        room = 400 * MB if 450 <= second < 460 else 3_000 * MB
        is_unseen = number == 1 and not is_seen and 450 <= second < 510
        is_cut = number == 2 and 494 <= second < 510
        return replace(
            sight,
            volumes=dict.fromkeys(sight.volumes, VolumeSight(room, 1000.0)),
            factor=0.0 if number == 2 and 495 <= second < 530 else 1.0,
            quiet_s=None if is_unseen or is_cut else sight.quiet_s,
        )

    assert broken(made(shown)) == ([(496.0, CAUSE)] if is_seen else [])


def test_a_stop_without_a_cause() -> None:
    """No volume has been near the line since the beginning."""
    assert broken(made(between(199, 500, 2, stops=True))) == [(200.0, CAUSE)]


def test_a_client_that_waits_longer() -> None:
    """More than the 4 s of a pause, unless in an emergency."""
    longer = between(150, 700, 2, longest_pause_s=9.0)
    assert broken(made(longer)) == [(150.0, "no client waits longer")]
    emergency = between(149, 700, 2, emergency=True)

    def both(second: int, number: int, sight: BrokerSight) -> BrokerSight:
        return emergency(second, number, longer(second, number, sight))

    assert broken(made(both)) == []
    assert broken(made(both, replace(SETUP, emergency_pause_s=6.0))) != []


def test_appends_while_all_throttle() -> None:
    """6 MB at once, 3 MB in each 4 s and 1 % of 10 MB/s."""
    assert broken(made(appends=lambda second: second * 0.8 * MB)) == []
    trace = made(appends=lambda second: second * 2.0 * MB)
    assert [claim for _, claim in broken(trace)] == ["little is appended while all throttle"]
    assert broken(replace(trace, setup=replace(SETUP, is_bounded=False))) == []


def test_the_numbers_of_the_page() -> None:
    """docs/reliability.md has 29 and 31 s, and a leak of 1 % and a request in each pause."""
    assert reaction_s(SETUP, 3) == 29.0
    assert reaction_s(replace(SETUP, asks_all=True), 3) == 31.0
    assert recovery_s(SETUP, 3) == 89.0
    assert recovery_s(replace(SETUP, soft_bytes=200 * MB), 3) == 159.0
    assert leaked_bytes(SETUP, 8.0) == 4 * 3 * MB + 0.8 * MB


def test_a_trace_is_read_as_written(tmp_path: Path) -> None:
    """By lines of JSON."""
    trace = made()
    trace.moments[3] = replace(trace.moments[3], gone=(7,))
    trace.write(tmp_path / "trace.jsonl")
    with (tmp_path / "trace.jsonl").open(encoding="utf-8") as file:
        assert read(file) == trace


def test_it_imports_nothing_of_the_sidecar() -> None:
    """Only itself and the standard library; so it shares no mistake with the program."""
    for path in Path(__file__).parent.glob("*.py"):
        if path.name.startswith("test_"):
            continue
        imported = [
            name
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            for name in (
                [each.name for each in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        ]
        others = [
            name
            for name in imported
            if not name.startswith("tests.auditor")
            and name.split(".")[0] not in sys.stdlib_module_names
        ]
        assert others == [], path.name


@pytest.mark.slow
def test_a_file_is_judged_by_the_command(tmp_path: Path) -> None:
    """It prints what is broken, and ends with 1."""
    made(between(0, 150, 1, factor=1.0)).write(tmp_path / "trace.jsonl")
    done = subprocess.run(
        [sys.executable, "-m", "tests.auditor", tmp_path / "trace.jsonl"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "104.0 s: a violation" in done.stdout) == (1, True), done
