"""Persisted state comes back as it was, with no wall-clock time ahead of the reader."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.control.board import PersistedState
from sidecar.state.form import StateRecord, from_record, to_record
from sidecar.throttle.decision import Source
from sidecar.throttle.fill import first_fill
from sidecar.throttle.leak import LEAST
from sidecar.throttle.limits import (
    LIMIT_TYPES,
    Limit,
    MinAvailableBytes,
    MinAvailableRatio,
    Verdict,
)
from sidecar.throttle.memory import (
    BrokerState,
    Computed,
    Contents,
    Learned,
    Memory,
    Override,
    Slope,
    VolumeState,
)
from sidecar.throttle.rules import Rules
from sidecar.throttle.stop_line import volumes_at_stop_line
from sidecar.throttle.user_throttles import UserThrottle
from sidecar.volumes import Membership, OfflineLogDir, Volume

NOW = 2_000_000_000.0
"""Epoch seconds of the restart."""

LIMIT = MinAvailableBytes(100)
RULES = Rules(LIMIT, 300.0)

sizes = st.integers(0, 2**63 - 1)
times = st.floats(0, NOW)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
broker_ids = st.integers(0, 2**31 - 1)
parts = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)
"""What a capability may retain: any JSON."""
values = st.integers(1, 2**63 - 1) | st.floats(0.001, 0.999)
limits: st.SearchStrategy[Limit] = st.one_of([st.builds(each, values) for each in LIMIT_TYPES])


def volume_state(
    volume: Volume, read_at: float, online: bool, limit: Limit, stop_line: Limit | None = None
) -> VolumeState:
    """A volume with nothing but its last reading."""
    fill = first_fill(read_at, volume.used_bytes)
    stop = None if stop_line is None else stop_line.judge(volume)
    return VolumeState(volume, read_at, limit.judge(volume), online, fill, stop)


def volume_states(limit: Limit, stop_line: Limit | None) -> st.SearchStrategy[VolumeState]:
    volumes = st.builds(Volume, broker_ids, names, sizes, sizes)
    limits = st.just(limit), st.just(stop_line)
    return st.builds(volume_state, volumes, times, st.booleans(), *limits)


def computed(
    factor: float, computed_at: float, violations: tuple[VolumeState, ...], stopped: bool
) -> Computed:
    """A computed factor, with the volumes because of which nothing is admitted then."""
    return Computed(
        factor, computed_at, violations, volumes_at_stop_line(violations, was_reached=stopped)
    )


@st.composite
def slopes(draw: st.DrawFn) -> Slope:
    factors, rates = st.floats(0, 1), st.floats(-1e12, 1e12)
    learned = st.dictionaries(
        st.tuples(broker_ids, names), st.builds(Learned, rates, rates), max_size=2
    )
    fell_at, at = sorted([draw(times), draw(times)])
    steps = st.floats(0.05, 1)
    return Slope(
        draw(steps), draw(factors), draw(factors), at, fell_at, draw(st.booleans()), draw(learned)
    )


@st.composite
def states(draw: st.DrawFn, limit: Limit, stop_line: Limit | None = None) -> PersistedState:
    volumes = st.lists(volume_states(limit, stop_line), max_size=3).map(tuple)
    addresses = st.dictionaries(broker_ids, names, max_size=3)
    known_at = draw(st.none() | times)
    membership = st.builds(Membership, st.none() | names, addresses, st.none() | addresses)
    offline = st.lists(st.builds(OfflineLogDir, names, names, st.booleans()), max_size=2)
    states = st.builds(
        BrokerState,
        st.none() | times,
        volumes,
        offline.map(tuple),
        retained=st.booleans(),
        missing_since=st.none() | times,
    )
    factors = st.floats(0, 1)
    memory = Memory(
        membership=None if known_at is None else draw(membership),
        membership_at=known_at,
        brokers=draw(st.dictionaries(broker_ids, states, max_size=3)),
        computed=draw(st.none() | st.builds(computed, factors, times, volumes, st.booleans())),
        slope=draw(st.none() | slopes()),
        contents=draw(
            st.dictionaries(
                st.tuples(broker_ids, names),
                st.builds(Contents, st.frozensets(names), times),
                max_size=2,
            )
        ),
        override=draw(st.none() | st.builds(Override, factors, names, times, times, names)),
        user_throttles={
            (user, each.enforcer): each
            for user, each in draw(
                st.dictionaries(
                    names, st.builds(UserThrottle, times, times, names, names), max_size=3
                )
            ).items()
        },
        retained=draw(st.dictionaries(names, parts, max_size=2)),
    )
    shares = draw(st.dictionaries(broker_ids, st.floats(LEAST, 0.999), max_size=3))
    source = draw(st.sampled_from(Source))
    return PersistedState(memory, draw(factors), source, draw(times), shares)


def stops(memory: Memory) -> set[str]:
    """The log dirs because of which nothing is admitted."""
    assert memory.computed is not None
    return {state.volume.log_dir for state in memory.computed.at_stop_line}


def unmoved(steady_s: float) -> float:
    return steady_s


def again(
    what: PersistedState,
    limit: Limit = LIMIT,
    now: float = NOW,
    stop_line: Limit | None = None,
) -> PersistedState:
    """The state after a restart, through the very bytes of the form."""
    written = to_record(what, Rules(limit, 300.0, stop_line), unmoved).model_dump_json()
    return from_record(
        StateRecord.model_validate_json(written), Rules(limit, 300.0, stop_line), now
    )


class TestRoundTrip:
    @pytest.mark.slow
    @given(st.data(), limits, st.none() | limits)
    def test_everything_that_is_persisted_comes_back_as_it_was(
        self, data: st.DataObject, limit: Limit, stop_line: Limit | None
    ) -> None:
        """Every field comes back, to the last bit of every time and size."""
        before = data.draw(states(limit, stop_line))
        assert before == again(before, limit, stop_line=stop_line)

    def test_what_polls_find_out_again_is_not_persisted(self) -> None:
        """Failures, their count and fill rates are as at a start."""
        failing = Memory(failed_polls=3)
        assert Memory() == again(PersistedState(failing, 1.0, Source.FALLBACK, 0)).memory

    def test_a_time_is_written_by_the_wall_clock(self) -> None:
        """Steady 1,000 s is 61,000 by the wall: that is what the next start can compare with."""
        steady = PersistedState(Memory(), 1.0, Source.FALLBACK, 1_000)
        assert 61_000 == to_record(steady, RULES, lambda s: s + 60_000).since


def test_a_log_dir_that_was_unreadable_is_not_seen_after_a_restart() -> None:
    """The broker answered at 5 s without its sizes, which were last read at 1 s."""
    state = volume_state(Volume(1, "/d", 1000, 900), 1.0, online=False, limit=LIMIT)
    unreadable = OfflineLogDir("/d", "sizes of -1", is_written=True)
    memory = Memory(brokers={1: BrokerState(5.0, (state,), (unreadable,))})
    restarted = again(PersistedState(memory, 1.0, Source.OBSERVATION, 5.0)).memory
    assert 1.0 == restarted.brokers[1].seen_at


def test_a_file_of_an_older_version_is_read() -> None:
    """It has no log dirs without sizes, no missing broker and no author."""
    memory = Memory(brokers={1: BrokerState(5.0)}, override=Override(0.5, "x", 1.0, 9.0))
    before = PersistedState(memory, 0.5, Source.OVERRIDE, 5.0)
    older = to_record(before, RULES, unmoved).model_dump(mode="json")
    for key in ("offline", "missing_since"):
        del older["brokers"][0][key]
    del older["override"]["by"]
    assert before == from_record(StateRecord.model_validate(older), RULES, NOW)


def test_under_the_same_limit_a_verdict_stays_that_its_sizes_do_not_show() -> None:
    """900 bytes available violated within the release margin: they do until the next reading."""
    verdict = Verdict(True, 100)
    state = VolumeState(Volume(1, "/d", 1000, 900), 5.0, verdict, True, first_fill(5.0, 100))
    memory = Memory(brokers={1: BrokerState(5.0, (state,))})
    before = PersistedState(memory, 0.0, Source.OBSERVATION, 5.0)
    assert before == again(before)


class TestAnotherLimit:
    def test_volumes_are_restored_and_judged_by_the_new_limit(self) -> None:
        """200 bytes available are enough for a limit of 100 and not for one of 300."""
        state = volume_state(Volume(1, "/d", 1000, 200), 5.0, online=True, limit=LIMIT)
        memory = Memory(brokers={1: BrokerState(5.0, (state,))})
        form = to_record(PersistedState(memory, 1.0, Source.OBSERVATION, 5.0), RULES, unmoved)
        after = (
            from_record(form, Rules(MinAvailableBytes(300), 300.0), NOW)
            .memory.brokers[1]
            .volumes[0]
        )
        assert (False, True) == (state.violates, after.violates)
        assert 0.0 == after.seconds_left
        assert state.volume == after.volume

    def test_a_factor_computed_under_the_old_one_is_not_taken_over(self) -> None:
        """It answers another question than the one that is asked now."""
        memory = Memory(computed=Computed(0.0, 5.0, ()), override=Override(0.5, "x", 1.0, 9.0))
        form = to_record(PersistedState(memory, 0.0, Source.OBSERVATION, 5.0), RULES, unmoved)
        for other in (MinAvailableBytes(101), MinAvailableRatio(0.1)):
            after = from_record(form, Rules(other, 300.0), NOW).memory
            assert after.computed is None
            assert memory.override == after.override


class TestAStop:
    """Volumes of 1,000 bytes under a limit of 100 bytes and a stop line of 50."""

    LINE = MinAvailableBytes(50)

    def stopped(self, *available: int) -> PersistedState:
        """A stop that is in force because of volumes with these bytes available."""
        volumes = tuple(
            volume_state(Volume(1, f"/{left}", 1000, left), 5.0, True, LIMIT, self.LINE)
            for left in available
        )
        memory = Memory(
            brokers={1: BrokerState(5.0, volumes)}, computed=computed(0.0, 5.0, volumes, True)
        )
        assert {f"/{left}" for left in available} == stops(memory)
        return PersistedState(memory, 0.0, Source.OBSERVATION, 5.0)

    def test_it_goes_on_over_a_restart(self) -> None:
        """Also where every volume is within the margin by now."""
        assert {"/50", "/55"} == stops(again(self.stopped(50, 55), stop_line=self.LINE).memory)
        assert {"/55"} == stops(again(self.stopped(55), stop_line=self.LINE).memory)

    def test_another_line_is_compared_with_the_volumes_anew(self) -> None:
        """Its stop begins at the line, whatever was in force; without a line there is none."""
        form = to_record(self.stopped(50, 55), Rules(LIMIT, 300.0, self.LINE), unmoved)
        lines = (None, MinAvailableBytes(49), MinAvailableBytes(51), MinAvailableRatio(0.05))
        found = [stops(from_record(form, Rules(LIMIT, 300.0, line), NOW).memory) for line in lines]
        assert [set(), set(), {"/50", "/55"}, {"/50", "/55"}] == found


class TestAClockThatWasSetBack:
    """The machine's clock showed more at the write than it does at the start."""

    AHEAD_S = 3600.0

    def written_ahead(self) -> PersistedState:
        at = NOW + self.AHEAD_S
        state = volume_state(Volume(1, "/d", 1000, 200), at, online=True, limit=LIMIT)
        memory = Memory(
            membership=Membership("c", {1: "b1:9092"}, {}),
            membership_at=at,
            brokers={1: BrokerState(at, (state,))},
            computed=Computed(0.0, at, (state,)),
            override=Override(0.5, "a migration", at, at + 60),
        )
        return PersistedState(memory, 0.5, Source.OVERRIDE, at)

    def test_no_time_of_an_observation_lies_ahead(self) -> None:
        """Nothing is valid for longer than its validity after the start."""
        after = again(self.written_ahead())
        memory = after.memory
        assert memory.computed is not None
        volumes = (*memory.brokers[1].volumes, *memory.computed.violations)
        assert {NOW} == {
            after.since,
            memory.membership_at,
            memory.brokers[1].read_at,
            memory.computed.computed_at,
            *(state.read_at for state in volumes),
            *(mark.read_at for state in volumes for mark in state.fill.trail),
        }

    def test_an_override_lasts_no_longer_than_it_was_set_for(self) -> None:
        """It lasts 60 s from the start, not an hour and 60 s."""
        override = again(self.written_ahead()).memory.override
        assert Override(0.5, "a migration", NOW, NOW + 60) == override

    def test_an_override_that_was_set_before_keeps_its_end(self) -> None:
        """Only what is impossible is changed."""
        memory = Memory(override=Override(0.5, "a migration", NOW - 10, NOW + 60))
        before = PersistedState(memory, 0.5, Source.OVERRIDE, NOW - 10)
        assert before == again(before)
