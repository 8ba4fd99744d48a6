"""What clients write by the metrics of brokers: names, failures, and when they count."""

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.client_quotas import broker_metrics as module
from sidecar.client_quotas.broker_metrics import (
    FRESH_S,
    MOST_BYTES,
    RETRY_S,
    WHOLE_S,
    BrokerMetrics,
    highest,
    read,
)
from sidecar.client_quotas.platform import KafkaQuotas
from sidecar.client_quotas.rates import Rates, of_cluster
from sidecar.http import AnswerTooLongError, Response, request
from sidecar.kafka.quota_messages import Alteration
from sidecar.quotas.entities import DEFAULT, Entity
from sidecar.volumes import Failure
from tests.sidecar.client_quotas.build import FakeKafka, Sidecar
from tests.sidecar.throttle.build import FakeClock
from tests.support.raw_server import raw_server
from tests.support.virtual_time import VIRTUAL_TIME

URL = "http://broker-1:11001/metrics"
REST = Entity(client_id=DEFAULT)


@dataclass
class Exporter:
    """The metrics of a broker.

    Attributes:
        rate: the byte-rate of a client-id; None shows nothing.
        of_user: that of a user.
        error: why nothing is answered.
        hangs: whether it does not answer.
        reads: how often they were asked for.
    """

    rate: float | None = None
    of_user: float = 0.0
    error: Exception | None = None
    hangs: bool = False
    reads: int = 0
    status: int = 200

    async def send(
        self, method: str, url: str, *, headers: dict[str, str], longest_answer: int
    ) -> Response:
        assert ("GET", {}, MOST_BYTES) == (method, headers, longest_answer)
        self.reads += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error
        name = "kafka_server_Produce_byte_rate"
        lines = f'{name}{{client_id="etl"}} {self.rate}\n{name}{{user="a"}} {self.of_user}\n'
        return Response(self.status, "", b"" if self.rate is None else lines.encode())


OF_USER, OF_CLIENT, OF_BOTH, NONE = (3.0, 0.0, 0.0), (0.0, 3.0, 0.0), (0.0, 0.0, 3.0), (0.0,) * 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Without rules, as Amazon MSK has it.
        ('Produce_byte_rate{client_id="etl",} 3.0E0', OF_CLIENT),
        ('Produce_byte_rate{client_id="\\"web.x:2\\""} 3.0', OF_CLIENT),
        ('Produce_byte_rate{user="alice",} 3.0', OF_USER),
        ('Produce_byte_rate{user="a",client_id="b"} 3.0', OF_BOTH),
        ('Produce_byte_rate{user="",client_id="b"} 3.0', OF_CLIENT),
        # With lower-case names and labels.
        ('produce_byte_rate{user="a\\"}b",clientid="c"} 3.0 17000', OF_BOTH),
        # The exporter's example for Kafka 2, and its order of rules before 2023.
        ('quota_byte_rate{resource="Produce",clientId="b",} 3.0', OF_CLIENT),
        ('quota_byte_rate{resource="Produce",user="a",} 3.0', OF_USER),
        ('quota_byte_rate{clientId="b",resource="Produce, user=a",} 3.0', OF_BOTH),
        ('quota_byte_rate{resource="Fetch",clientId="Produce",} 3.0', NONE),
        # A rule like those of the example, with the type in the name.
        ('quota_Produce_byte_rate{user="a",client="b",} 3.0', OF_BOTH),
        ('quota_fetch_byte_rate{user="a",client="Produce",} 3.0', NONE),
        # Its example for KRaft, where an earlier rule takes these samples.
        ("produce_client_id_web_x:2_byte_rate 3.0", OF_CLIENT),
        ("produce_client_id_my_user_app_byte_rate 3.0", OF_CLIENT),
        ("produce_user_anonymous_byte_rate 3.0", OF_USER),
        ("produce_user_anonymous_client_id_etl_1_byte_rate 3.0", OF_BOTH),
        # The highest counts; what is no number, or is of something else, does not.
        (
            'Produce_byte_rate{client_id="a"} 2\n'
            'kafka_server_Produce_byte_rate{client_id="b"} 3\n'
            'kafka_server_Produce_byte_rate{client_id="c"} NaN\n'
            'kafka_server_Produce_byte_rate{client_id="d"} +Inf\n'
            'kafka_server_Produce_byte_rate{client_id="e"} 1',
            OF_CLIENT,
        ),
        ('Produce_throttle_time{client_id="etl"} 3.0', NONE),
        ('producer_topic_metrics_byte_rate{client_id="a",topic="b"} 3.0', NONE),
        ('Fetch_byte_rate{client_id="etl"} 3.0', NONE),
        ("forwarding_metrics_incoming_byte_rate 3.0", NONE),
        ('other 1.0\nbroken{ 3"', NONE),
    ],
)
def test_samples_are_recognised_by_the_names_that_exporters_give(
    text: str, expected: tuple[float, ...]
) -> None:
    """The highest of a user, of a client-id, and of both."""
    assert expected == highest(f"jvm_threads_current 7.0\nkafka_server_{text}\n")


@given(st.text(), st.sampled_from(["{", " ", '{user="', '{client_id="x"} ']))
def test_no_answer_is_more_than_a_failure(text: str, begin: str) -> None:
    """Whatever an exporter, or another program at its port, sends."""
    found = module._parsed(f"kafka_server_Produce_byte_rate{begin}{text}".encode())
    assert isinstance(found, tuple) or found == "its samples can't be parsed"


@pytest.mark.parametrize(
    ("exporter", "expected"),
    [
        (Exporter(error=OSError(111, "Connection refused")), "Connection refused"),
        (Exporter(error=AnswerTooLongError("the answer is too long")), "the answer is too long"),
        (Exporter(status=401), "it answers 401"),
        (Exporter(hangs=True), "no answer within 0.01 s"),
    ],
)
async def test_a_failure_is_a_phrase(
    exporter: Exporter, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every read has a deadline."""
    monkeypatch.setattr(module, "DEADLINE_S", 0.01)
    assert expected == await read(URL, exporter.send)


async def test_an_answer_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endless one is not read on."""
    monkeypatch.setattr(module, "MOST_BYTES", 1000)

    async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 999 + b"\n")
            await writer.drain()

    async def send(*words: str, headers: dict[str, str], longest_answer: int) -> Response:
        return await request(
            *words, headers=headers, longest_answer=longest_answer, ssl_context=None
        )

    async with raw_server(endless) as at:
        assert "the answer is too long" == await read(f"http://{at}/metrics", send)


class Inline:
    """Runs a call at once."""

    async def call(self, fn: Callable[[bytes], object], body: bytes) -> object:
        return fn(body)


class Scene:
    """Brokers with an exporter each; brokers fill at 9 MB/s."""

    def __init__(self, *exporters: Exporter) -> None:
        self.clock = FakeClock(1000.0)
        self.exporters = exporters
        urls = {number: f"http://{number}" for number in range(len(exporters))}

        async def send(method: str, url: str, **more: object) -> Response:
            exporter = exporters[int(url.removeprefix("http://"))]
            return await exporter.send(method, url, **more)  # type: ignore[arg-type]

        self.metrics = BrokerMetrics(urls, self.clock, send)

    async def run(self, seconds: float) -> None:
        """Read every 2 s, or after an answer that takes longer."""
        until = self.clock.now + seconds
        await self.metrics.refresh()
        while self.clock.now < until:
            await asyncio.sleep(0.0)
            self.clock.now += 2.0
            await self.metrics.refresh()

    def rates(self, own: int | None = None, logged: Rates | None = None) -> Rates:
        fills = dict.fromkeys(range(len(self.exporters)), 9e6)
        return of_cluster(fills, {} if logged is None else {own: logged}, self.metrics.rates())


async def test_samples_count_after_a_window() -> None:
    """A new one rises meanwhile; none is unknown, and so is one whose rate is 0."""
    exporter = Exporter()
    scene = Scene(exporter)
    for nothing in (None, 0.0):
        exporter.rate = nothing
        await scene.run(30.0)
        assert (9e6, None) == (scene.rates().rate_of(REST), scene.rates().later(REST))
        assert [0] == scene.metrics.unseen
    exporter.rate = 3e6
    await scene.run(WHOLE_S - 2.0)
    assert 9e6 == scene.rates().rate_of(REST)
    await scene.run(4.0)
    assert (3e6, 3e6) == (scene.rates().rate_of(REST), scene.rates().later(REST))
    assert ((0,), ()) == (scene.rates().by_metrics, scene.rates().by_fill)
    exporter.rate = 1e6
    await scene.run(60.0)
    assert 3e6 == scene.rates().rate_of(REST)


async def test_a_user_may_write_what_any_client_writes() -> None:
    """Its clients may have been measured by their client-ids. Not all exporters show users."""
    scene = Scene(Exporter(3e6, of_user=1e6))
    await scene.run(20.0)
    expected = [(3e6, 3e6), (3e6, 3e6), (9e6, None)]
    found = scene.rates()
    kinds = (REST, Entity("a"), Entity("a", DEFAULT))
    assert expected == [(found.rate_of(each), found.later(each)) for each in kinds]


@VIRTUAL_TIME
@pytest.mark.parametrize("fault", ["refuses", "hangs"])
async def test_a_broker_without_metrics_counts_with_its_fill_rate(
    fault: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One failure is one line; it is tried rarely, and after it samples count anew."""
    caplog.set_level(logging.INFO)
    # Virtual time does not wait for threads.
    monkeypatch.setattr(module, "_THREADS", Inline())
    first, second = Exporter(3e6), Exporter(2e6)
    scene = Scene(first, second)
    await scene.run(20.0)
    assert 3e6 == scene.rates().rate_of(REST)
    second.error, second.hangs = OSError(111, "Connection refused"), fault == "hangs"
    reads = second.reads
    await scene.run(40.0)
    found = scene.rates()
    assert (9e6, (0,), (1,)) == (found.rate_of(REST), found.by_metrics, found.by_fill)
    why = "no answer within 10 s" if fault == "hangs" else "Connection refused"
    assert {1: why} == scene.metrics.failures
    assert 2 == second.reads - reads
    second.error, second.hangs = None, False
    until = scene.clock.now + module.DEADLINE_S + RETRY_S
    while scene.metrics.failures and scene.clock.now <= until:
        await scene.run(2.0)
    assert {} == scene.metrics.failures
    assert 9e6 == scene.rates().rate_of(REST)
    await scene.run(WHOLE_S + 2.0)
    assert 3e6 == scene.rates().rate_of(REST)
    text = f"the metrics of broker 1 can't be read (SIDECAR_BROKER_METRICS_URLS): {why}"
    expected = [text, "the metrics of broker 1 can be read again"]
    assert expected == [record.getMessage() for record in caplog.records]


async def test_an_old_answer_does_not_count() -> None:
    """A client may have begun to write much meanwhile; a person sees it for longer."""
    scene = Scene(Exporter(3e6))
    await scene.run(20.0)
    scene.clock.now += FRESH_S
    assert 3e6 == scene.rates().rate_of(REST)
    scene.clock.now += 0.1
    assert 9e6 == scene.rates().rate_of(REST)
    assert [0] == list(scene.metrics.rates(60.0))


def test_each_broker_has_its_best_source() -> None:
    """The log of the own broker, metrics of another, and the fill rate of the third."""
    metrics = {0: Rates(7.0, 7.0, 7.0), 1: Rates(None, None, None), 2: Rates(4.0, None, 4.0)}
    logged = Rates(5.0, 2.0, 1.0)
    found = of_cluster({0: 9.0, 1: 3.0, 2: 6.0}, {0: logged}, metrics)
    assert (5.0, 6.0, 4.0) == (found.user, found.client_id, found.both)
    assert ((0,), (2,), (1,)) == (found.by_log, found.by_metrics, found.by_fill)
    assert found.later(REST) == 6.0
    alone = of_cluster({1: 3.0, 2: 6.0}, {}, metrics)
    assert (4.0, 6.0, 4.0) == (alone.user, alone.client_id, alone.both)
    assert (4.0, None) == (alone.later(Entity("a")), alone.later(REST))


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2])
async def test_a_lowered_quota_falls_to_what_samples_show_later(count: int) -> None:
    """They appear after the first quota is set. Two sidecars at once are as one."""
    clock, cluster, exporter = FakeClock(1000.0), FakeKafka(), Exporter()
    sidecars = [Sidecar(cluster, clock) for _ in range(count)]
    for each in sidecars:
        each.throttle.metrics = BrokerMetrics({1: URL}, clock, exporter.send)
        each.fills({1: 18e6})
    first, *others = sidecars
    await first.run(1.0, 10.0, *others)
    await first.run(0.0, 2.0, *others)
    assert pytest.approx(36e6, rel=0.011) == cluster.produce(REST)
    exporter.rate = 3e6
    await first.run(0.0, WHOLE_S, *others)
    assert 20e6 < (cluster.produce(REST) or 0.0)
    lowest = math.inf
    for _ in range(5):
        await first.run(0.0, 2.0, *others)
        lowest = min(lowest, cluster.produce(REST) or math.inf)
    assert pytest.approx(6e6, rel=0.2) == lowest
    await first.run(1.0, 120.0, *others)
    assert {} == cluster.quotas


async def test_the_lower_bound_is_reached_although_another_sidecar_sets_a_higher_one() -> None:
    """Both read the quotas before either sets one, and the one that knows less sets it last."""
    clock, cluster = FakeClock(1000.0), FakeKafka()

    async def set_late(alterations: Sequence[Alteration]) -> list[Failure | None] | Failure:
        await asyncio.sleep(1.0)
        return await cluster.alter(alterations)

    informed, other = (Sidecar(cluster, clock) for _ in range(2))
    other.throttle.platform = KafkaQuotas(cluster.describe, set_late)
    informed.throttle.metrics = BrokerMetrics({1: URL}, clock, Exporter(3e6).send)
    for each, fill in ((informed, 3e6), (other, 300e6)):
        each.fills({1: fill})
    for factor, seconds in ((1.0, 20), (0.0, 30)):
        for _ in range(seconds // 2):
            await asyncio.gather(*(each.settle(factor) for each in (informed, other)))
            clock.now += 2.0
    assert (cluster.produce(REST) or math.inf) < 6.1e6
