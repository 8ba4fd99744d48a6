"""What clients write, by the request log, and when that is not relied on."""

import msgspec
import pytest

from sidecar.client_quotas import written as module
from sidecar.client_quotas.rates import Rates
from sidecar.client_quotas.writers import TopicWriters
from sidecar.client_quotas.written import MOST_BEHIND, SILENT_S, WHOLE_S, Written
from sidecar.quotas.entities import DEFAULT, Entity
from sidecar.requestlog.line import Line
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.peak import PEAK_S
from sidecar.throttle.rules import Rules
from tests.sidecar.client_quotas.build import FakeKafka, Sidecar
from tests.sidecar.requestlog.lines import parsed_line
from tests.sidecar.throttle.build import FakeClock, reading, remembering, whole

POLL = parsed_line(35)
BEGAN = 1000.0
SURE = BEGAN + WHOLE_S
OVERHEAD = 40
"""A request has about so many bytes besides its records."""


def produce(nbytes: int, client_id: str = "etl", user: str = "alice") -> Line:
    partitions = [{"index": 0, "recordsSizeInBytes": nbytes - OVERHEAD}]
    request = {"acks": -1, "topicData": [{"name": "t", "partitionData": partitions}]}
    own = {"principal": f"User:{user}", "request": request, "version": 11}
    return parsed_line(0, client_id=client_id, **own)


def logged(*lines: Line, until: float = SURE + 6.0) -> Written:
    """A log with these lines in each second, and a poll."""
    written = Written()
    at = BEGAN
    while at <= until:
        for line in (POLL, *lines):
            written.count(line, at)
        at += 1.0
    return written


def test_a_quota_gets_the_most_of_those_that_share_it() -> None:
    """Alice writes 5 MB/s with two client-ids, of which bob has one too, and nobody else more."""
    lines = (produce(3 * 10**6), produce(2 * 10**6, "web"), produce(2 * 10**6, "web", "bob"))
    found = logged(*lines).rates(SURE + 6.0)
    assert found is not None
    shapes = (Entity("alice"), Entity(client_id=DEFAULT), Entity(DEFAULT, "etl"))
    assert pytest.approx([5e6, 4e6, 3e6], rel=0.001) == [found.rate_of(each) for each in shapes]


def test_a_refused_request_counts_for_the_rate_and_not_for_the_scope() -> None:
    """Kafka charges it to the quota, but it writes to no topic."""
    written = Written(TopicWriters())
    topic = {"name": "t", "partitionResponses": [{"index": 0, "errorCode": 29}]}
    refused = produce(3 * 10**6)
    body = msgspec.structs.replace(
        refused.body, response=msgspec.Raw(msgspec.json.encode({"responses": [topic]}))
    )
    for second in range(int(WHOLE_S) + 10):
        written.count(POLL, BEGAN + second)
        written.count(msgspec.structs.replace(refused, body=body), BEGAN + second)
    found = written.rates(SURE + 9.0)
    assert found is not None
    assert 3e6 == pytest.approx(found.rate_of(Entity("alice")), rel=0.001)
    assert written.writers is not None
    assert set() == written.writers.known(SURE + 9.0)


def test_a_burst_counts_for_a_quarter_of_an_hour() -> None:
    """30 MB in 10 s, wherever slots begin, are at least 2.25 MB/s."""
    for shift in range(5):
        written, began = logged(), SURE + 7.0 + shift
        for second in range(10):
            written.count(produce(3 * 10**6), began + second)
        found = []
        for second in range(20, int(PEAK_S) + 60, 30):
            written.count(POLL, began + second)
            found.append((written.rates(began + second) or Rates()).client_id)
        assert 2.25e6 <= (found[0] or 0.0) <= 3e6
        assert [found[0]] * 29 == found[:29]
        assert found[-1] is None


@pytest.mark.parametrize(
    ("late_s", "unread", "more", "expected"),
    [
        (WHOLE_S, (0, 0), (), True),
        (WHOLE_S - 1.0, (0, 0), (), False),
        # No poll comes, because the level is not DEBUG any more.
        (WHOLE_S + SILENT_S + 1.0, (0, 0), (), False),
        (WHOLE_S, (1, 0), (), False),
        (WHOLE_S, (0, MOST_BEHIND + 1), (), False),
        (WHOLE_S, (0, 0), [parsed_line(0, request={"topicData": 7})], False),
        # More clients than are counted.
        (WHOLE_S, (0, 0), [produce(100, client_id) for client_id in "abcd"], False),
    ],
)
def test_when_the_log_is_relied_on(
    late_s: float,
    unread: tuple[int, int],
    more: list[Line],
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only when it surely has what all clients wrote in the last minute."""
    monkeypatch.setattr(module, "MOST_CLIENTS", 3)
    now = BEGAN + late_s
    written = logged(produce(100), until=min(now, SURE))
    written.unread = lambda: unread
    for line in more:
        written.count(line, now)
    assert expected == (written.rates(now) is not None)


@pytest.mark.parametrize(
    ("fills", "own", "expected"),
    [
        ({1: 18e6}, None, 3e6),
        ({1: 18e6, 2: 5e6}, 1, 5e6),
        ({1: 18e6, 2: 5e6}, None, 18e6),
    ],
)
async def test_other_brokers_count_by_their_fill_rates(
    fills: dict[int, float], own: int | None, expected: float
) -> None:
    """A client may write all that fills another broker, whose log this sidecar does not read."""
    clock = FakeClock(BEGAN)
    sidecar = Sidecar(FakeKafka(), clock)
    sidecar.throttle.broker_id, sidecar.throttle.written = own, logged(produce(3 * 10**6))
    seen = []
    for _ in range(8):
        clock.now += 1.0
        free = {key: {"/d": 10**12 - int(rate * clock.now)} for key, rate in fills.items()}
        each = [reading(key, clock.now, sizes, total=10**12) for key, sizes in free.items()]
        seen.append(whole(clock.now, each))
        memory = remembering(VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 1.0))(*seen)
        sidecar.throttle.observe(memory)
    clock.now = SURE + 6.0
    found = sidecar.throttle.rates
    assert found.by_log == (1 if len(fills) == 1 else own,)
    assert pytest.approx(expected, rel=0.001) == found.client_id
