"""What the capability retains comes back from the state file, or is refused without the rest."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.control.board import Board, PersistedState
from sidecar.producer_ids.retained import NAME, Retained
from sidecar.quotas.entities import DEFAULT, Default
from sidecar.quotas.producer_ids.id_quotas import ProducerIdQuota
from sidecar.state import StateFile
from sidecar.throttle.decision import Disabled, Source, VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Memory, Override
from sidecar.throttle.rules import Rules
from tests.sidecar.throttle.build import FakeClock

NOW = 2_000_000_000.0

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
quotas = st.builds(
    ProducerIdQuota, st.none() | st.floats(1e-6, 1e12), st.none() | st.floats(1e-5, 1e5)
)
percentages = st.dictionaries(names, st.floats(0, 1e18, exclude_min=True), max_size=3)


def board(restored: PersistedState | None = None) -> Board:
    return Board(Disabled(), FakeClock(NOW), restored=restored)


def restarted(path: Path, memory: Memory) -> PersistedState:
    """What the next start takes over, through the file."""
    file = StateFile(path / "state.json", Rules(MinAvailableBytes(10), 300.0))
    file.save(PersistedState(memory, 1.0, Source.FALLBACK, NOW), lambda steady_s: steady_s)
    loaded = file.load(NOW)
    assert isinstance(loaded, PersistedState)
    return loaded


@given(st.dictionaries(names | st.just(DEFAULT), quotas, max_size=3), percentages)
def test_all_of_it_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory,
    put: dict[str | Default, ProducerIdQuota],
    enforced: dict[str, float],
) -> None:
    """Quotas by user, the default's among them, and percentages come back, to the last bit."""
    first = board()
    before = Retained(first)
    before.set_quotas(put)
    before.set_enforced_request_percentages(enforced)
    restored = restarted(tmp_path_factory.getbasetemp(), first.snapshot.memory)
    after = Retained(board(restored))
    assert (put, enforced) == (after.quotas, after.enforced_request_percentages)


def quotas_part(rate: float) -> dict[str, object]:
    quota = {"user": "bob", "producer_ids_rate": rate, "throttled_request_percentage": None}
    return {"quotas": [quota], "enforced_request_percentages": {}}


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        ([], "Input should be"),
        ({"quotas": [], "enforced_request_percentages": {}, "mood": 1}, "mood: Extra inputs"),
        ({"quotas": [], "enforced_request_percentages": {"bob": "hunter2"}}, "bob: Input should"),
        # A quota that can't be counted by would end the capability with the first id.
        (quotas_part(0.0), "quotas.0.producer_ids_rate: Input should be"),
        (quotas_part(1e-300), "quotas.0.producer_ids_rate: Input should be"),
        (quotas_part(1e300), "quotas.0.producer_ids_rate: Input should be"),
    ],
)
def test_a_damaged_part_is_refused_and_costs_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, part: object, problem: str
) -> None:
    """The override is taken over; the part stays in the file until there is another."""
    override = Override(0.5, "x", NOW, NOW + 60)
    restored = restarted(tmp_path, Memory(override=override, retained={NAME: part, "other": 1}))
    published = board(restored)
    retained = Retained(published)
    assert ({}, {}) == (retained.quotas, retained.enforced_request_percentages)
    (line,) = caplog.messages
    assert line.startswith("the part of producer_ids in the state file is damaged (")
    assert problem in line
    assert "hunter2" not in line
    assert (override, part) == (restored.memory.override, published.snapshot.memory.retained[NAME])
    retained.set_quotas({"bob": ProducerIdQuota(1e-6, 1e-5)})
    assert 1 == published.snapshot.memory.retained["other"]
    assert retained.quotas == Retained(published).quotas


def test_a_record_that_is_read_late_is_added_to_the_changes_since() -> None:
    """A quota that an operator has set since the start is newer, and others stay."""
    old, new = ProducerIdQuota(1.0, None), ProducerIdQuota(2.0, None)
    first = Retained(before := board())
    first.set_quotas({"bob": old, "eve": old})
    first.set_enforced_request_percentages({"bob": 0.01, "eve": 0.01})
    state = PersistedState(before.snapshot.memory, 1.0, Source.FALLBACK, NOW)
    rules = Rules(MinAvailableBytes(10), 300.0)
    late = Board(VolumeLimit(rules, 1.0), FakeClock(NOW), unread="the disk hangs")
    retained = Retained(late)
    retained.set_quotas({"bob": new})
    retained.set_enforced_request_percentages({"bob": 0.02})
    late.take_over(state)
    assert {"bob": new, "eve": old} == retained.quotas
    assert {"bob": 0.02, "eve": 0.01} == retained.enforced_request_percentages
    assert {"bob": new, "eve": old} == Retained(late).quotas
