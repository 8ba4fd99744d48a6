"""Who follows the factor: readers are remembered for a time, a thousand at most."""

from dataclasses import replace

import pytest

from sidecar.throttle.readers import (
    MOMENT_S,
    MOST,
    NO_READERS,
    REMEMBERED_S,
    Enforcement,
    ReaderCounts,
    Readers,
    RefusalRates,
    Refusals,
    RefusedClient,
    Report,
    Reserve,
    ScopedClient,
)


def report(broker_id: int, *, emergency: bool = False, throttled_clients: int = 0) -> Report:
    return Report(broker_id, emergency, throttled_clients)


def known(readers: Readers, now: float) -> list[int]:
    """The ids of those remembered."""
    return [reader.report.broker_id for reader in readers.recent(now)]


def test_the_last_report_counts() -> None:
    """Each broker has one entry, by id, with its last report."""
    readers = Readers()
    readers.record(report(3), None, 0.0)
    readers.record(report(1, throttled_clients=7), None, 1.0)
    readers.record(report(3, emergency=True, throttled_clients=2), None, 2.0)
    assert [
        (report(1, throttled_clients=7), 1.0),
        (report(3, emergency=True, throttled_clients=2), 2.0),
    ] == [(reader.report, reader.seen_at) for reader in readers.recent(2.0)]


def test_the_reserves_of_a_broker() -> None:
    """Each log dir has its own, and a broker that started from one has no new one yet."""
    found = Report(1, False, 0, reserves=(Reserve("/a", 500), Reserve("/b", 0)))
    assert [500, 0, 0] == [found.reserve_bytes(log_dir) for log_dir in ("/a", "/b", "/c")]
    assert ("/b",) == found.released


def test_an_earlier_report_has_no_reserves() -> None:
    """No rate needs them, and a thousand readers may each send a hundred."""
    readers = Readers()
    full = replace(report(1), reserves=(Reserve("/a", 8),))
    readers.record(full, None, 0.0)
    reader = readers.record(full, None, 20.0)
    assert [(), ()] == [each.reserves for _, each in reader.earlier]


@pytest.mark.parametrize(
    ("enforcement", "why", "otherwise"),
    [
        ("callback", "No broker reads this sidecar, so", "With a reader,"),
        ("client-quotas", "No client quota is lowered now, so", "Once quotas are lowered,"),
        ("none", "SIDECAR_ENFORCEMENT=none: this sidecar", "With an enforcement,"),
    ],
)
def test_why_nobody_is_throttled(enforcement: Enforcement, why: str, otherwise: str) -> None:
    """Each enforcement has its own reason."""
    sentence, before = replace(NO_READERS, enforcement=enforcement).unenforced
    assert sentence.startswith(why)
    assert otherwise == before


def test_client_quotas_throttle_no_single_user() -> None:
    """Quotas that are lowered for all do not enforce a throttle of one user."""
    lowered = replace(NO_READERS, enforcement="client-quotas", lowered=3)
    assert replace(lowered, lowered=0) == lowered.of_users


def test_forgotten_after_ten_minutes_of_silence() -> None:
    """It is exact to the second, counted from the last report."""
    readers = Readers()
    readers.record(report(1), None, 0.0)
    readers.record(report(2), None, 0.0)
    readers.record(report(2), None, 50.0)
    assert [1, 2] == known(readers, REMEMBERED_S)
    assert [2] == known(readers, REMEMBERED_S + 0.1)
    assert [] == known(readers, REMEMBERED_S + 50.1)


def test_the_thousand_and_first() -> None:
    """It takes the place of the one that was silent for longest."""
    readers = Readers()
    for broker_id in range(MOST):
        readers.record(report(broker_id), None, float(broker_id) / 100)
    readers.record(report(0), None, 11.0)
    readers.record(report(MOST), None, 12.0)
    assert [0, *range(2, MOST + 1)] == known(readers, 12.0)


def test_the_generation_that_a_broker_has() -> None:
    """The newest that it reported stays, while it asks without having the present one."""
    readers = Readers()
    assert readers.record(report(1), None, 0.0).generation is None
    assert 4 == readers.record(report(1), 4, 1.0).generation
    assert 4 == readers.record(report(1), None, 2.0).generation
    assert 5 == readers.record(report(1), 5, 3.0).generation


def test_a_broker_that_waits_still_waits_when_it_is_heard_again() -> None:
    """A second request does not end the first."""
    readers = Readers()
    readers.record(report(1), 1, 0.0).waiting += 1
    assert 1 == readers.record(report(1), None, 1.0).waiting


def test_who_follows() -> None:
    """It is whoever has the present generation, and waits or asked a moment ago."""
    readers = Readers()
    reader = readers.record(report(1), 4, 0.0)
    assert reader.is_up_to_date(4, MOMENT_S)
    assert not reader.is_up_to_date(4, MOMENT_S + 0.1)
    assert not reader.is_up_to_date(5, 0.0)
    reader.waiting += 1
    assert reader.is_up_to_date(4, 300.0)
    assert not reader.is_up_to_date(5, 300.0)
    assert not readers.record(report(2), None, 0.0).is_up_to_date(1, 0.0)


def _rates(*reports: tuple[float, int, int]) -> RefusalRates:
    """After reports of (seconds, refused of new connections, of the client etl)."""
    readers = Readers()
    for at, count, etl in reports:
        refusals = Refusals(new_connection=count, clients=(RefusedClient("etl", "", etl),))
        readers.record(Report(1, False, 0, refusals=refusals), None, at)
    (reader,) = readers.recent(reports[-1][0])
    return reader.refusal_rates()


def test_what_is_refused_a_second() -> None:
    """Over the last 10 to 20 s, by reason and by client; of one report nothing is known."""
    assert 0.0 == _rates((0.0, 70, 7)).total
    assert RefusalRates(7.0, 0.0, 0.0, {("etl", ""): 2.0}) == _rates((0.0, 70, 7), (1.0, 77, 9))
    each_second = [(float(at), 100 * min(at, 30), 0) for at in range(60)]
    assert 100.0 == _rates(*each_second[:30]).total
    assert 1000 / 15 == pytest.approx(_rates(*each_second[:36]).total), "of the 15 s from 20 s on"
    assert 0.0 == _rates(*each_second[:41]).total, "nothing was refused for 10 s"


def test_refusals_a_second_by_reason() -> None:
    """Each reason has its own rate, and begins at 0."""
    assert 0 == Refusals().total
    readers = Readers()
    readers.record(Report(1, False, 0, refusals=Refusals(1, 1, 1)), None, 1.0)
    reader = readers.record(Report(1, False, 0, refusals=Refusals(3, 5, 7)), None, 3.0)
    assert RefusalRates(1.0, 2.0, 3.0) == reader.refusal_rates()


def test_refusals_are_counted_anew() -> None:
    """All by a broker that restarted, a client's when a throttle begins: no rate is below 0."""
    assert 0.0 == _rates((0.0, 70, 7), (1.0, 0, 0)).total
    assert 5.0 == _rates((0.0, 70, 7), (1.0, 0, 0), (2.0, 5, 5)).total
    assert {("etl", ""): 3.0} == _rates((0.0, 70, 7), (1.0, 73, 3)).clients


def test_a_broker_without_an_authorizer_has_no_rates() -> None:
    """Nor has one that lost it."""
    readers = Readers()
    readers.record(Report(1, False, 0, refusals=Refusals(70)), None, 0.0)
    assert RefusalRates() == readers.record(Report(1, False, 0), None, 1.0).refusal_rates()


def test_the_bytes_per_second_of_a_client_in_scope() -> None:
    """Since the report before; 0.0 after the first, and from 0 where the count began again."""
    readers = Readers()
    rates = []
    for at, nbytes in ((1.0, 70), (3.0, 76), (5.0, 8)):
        scoped = (ScopedClient("etl", "", nbytes),)
        reader = readers.record(Report(1, False, 0, in_scope=scoped), None, at)
        rates.append(reader.scope_rates())
    assert [{("etl", ""): 0.0}, {("etl", ""): 3.0}, {("etl", ""): 2.0}] == rates


def test_counts_of_readers_and_authorizers() -> None:
    """A reader without an authorizer reports no refusals."""
    readers = Readers()
    readers.record(Report(1, False, 0, refusals=Refusals()), None, 0.0)
    readers.record(report(2), None, 0.0)
    assert ReaderCounts(2, 1) == readers.counts(0.0)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (ReaderCounts(0, 0), "producers would be refused"),
        (ReaderCounts(1, 0), "producers are throttled, not refused"),
        (ReaderCounts(2, 1), "producers are refused"),
    ],
)
def test_the_effect_of_the_stop_line(counts: ReaderCounts, expected: str) -> None:
    """Only an authorizer can refuse."""
    assert expected == counts.stopped
