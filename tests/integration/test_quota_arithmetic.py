"""Our quota arithmetic beside Kafka's own classes: every number of every trace is the same.

The floats are equal to the last bit, which Java and Python both can: the same additions and
divisions of doubles in the same order.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from itertools import cycle, islice

import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.quotas.admission import Admission
from sidecar.quotas.rate import QuotaWindow, Rate
from sidecar.quotas.rate_quota import RateQuota
from sidecar.quotas.request_time.request_percentage import percent
from sidecar.quotas.throttle_time import bounded_ms, unbounded_ms
from sidecar.quotas.token_bucket import TokenBucket
from tests.support.quota_traces import Event, KafkaQuotas, Trace

START_MS = 1_700_000_000_000
SEGMENTS = 12
REPEATS = 8
EXAMPLES = 350
EVENTS = SEGMENTS * REPEATS * EXAMPLES
"""Compared by each of the three tests, at least: more than 100,000 in all."""

Answer = float | int | str | Admission | None

limits = st.one_of(
    st.sampled_from([5.0, 0.1, 1.0, 100.0, 1e-3]),
    st.floats(1e-3, 1e9, allow_nan=False),
)
values = st.one_of(
    st.sampled_from([0.0, 1.0, 0.1, 560.0, -1.0]),
    st.floats(-1e6, 1e9, allow_nan=False),
)
nanoseconds = st.integers(0, 10**11).map(float)
any_windows = st.builds(
    QuotaWindow, st.sampled_from([11, 1, 2, 3, 100]), st.sampled_from([1000, 1, 7, 30_000])
)
whole_seconds = st.builds(
    QuotaWindow, st.sampled_from([11, 1, 3, 100]), st.sampled_from([1000, 30_000])
)


@st.composite
def traces(
    draw: st.DrawFn,
    kind: str,
    words: list[str],
    windows: st.SearchStrategy[QuotaWindow],
    amounts: st.SearchStrategy[float],
) -> Trace:
    """Segments of events with even gaps; time may stand still, go back, or leave hours out."""
    window = draw(windows)
    steps_ms = (0, 1, window.window_ms - 1, window.window_ms, window.window_ms + 1)
    spans_ms = (window.span_ms - 1, window.span_ms, window.span_ms + 1, 36_000_000)
    gaps_ms = st.one_of(
        st.sampled_from((*steps_ms, *spans_ms, -1, -window.window_ms, -window.span_ms)),
        st.integers(0, 3 * window.window_ms),
    )
    segments = st.lists(
        st.tuples(
            st.lists(st.sampled_from(words), min_size=1, max_size=4),
            amounts,
            gaps_ms,
            st.integers(REPEATS, 4 * REPEATS),
        ),
        min_size=SEGMENTS,
        max_size=2 * SEGMENTS,
    )
    now_ms = START_MS + draw(st.integers(0, 1000))
    events: list[Event] = []
    for pattern, amount, gap_ms, repeats in draw(segments):
        for word in islice(cycle(pattern), repeats):
            now_ms += gap_ms
            events.append((word, amount, now_ms))
        events.append(("limit", draw(limits), now_ms))
    return Trace(kind, window, draw(limits), events)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kafka_quotas() -> AsyncIterator[KafkaQuotas]:
    with await KafkaQuotas.start() as running:
        yield running


def _compare(
    kafka_quotas: KafkaQuotas,
    strategy: st.SearchStrategy[Trace],
    ours: Callable[[Trace], Iterator[Answer]],
) -> None:
    """Runs many traces, and fails on the first answer of ours that is not Kafka's."""
    compared = 0

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(strategy)
    def compare(trace: Trace) -> None:
        nonlocal compared
        answers = zip(trace.events, kafka_quotas.run(trace), ours(trace), strict=True)
        for number, (event, theirs, our) in enumerate(answers):
            assert _read(theirs, our) == our, f"event {number}: {event}"
        compared += len(trace.events)

    compare()
    assert compared >= EVENTS


def _read(theirs: str, like: Answer) -> Answer:
    """Kafka's answer as the type of ours."""
    match like:
        case None:
            return theirs or None
        case Admission():
            word, throttle_ms = theirs.split(" ")
            return Admission(word == "accepted", int(throttle_ms))
        case float():
            return float(theirs)
        case _:
            return type(like)(theirs)


def test_rate_and_throttle_times(kafka_quotas: KafkaQuotas) -> None:
    """Rate, windowSize and the waits of QuotaUtils agree, with limits that change in between."""

    def ours(trace: Trace) -> Iterator[Answer]:
        rate = Rate(trace.window)
        limit = trace.limit

        def wait_ms(now_ms: int) -> int:
            measured = rate.measure(now_ms)
            # Only one that is exceeded is asked for its window, which may move its samples.
            return 0 if measured <= limit else unbounded_ms(measured, limit, rate.window_ms(now_ms))

        for word, amount, now_ms in trace.events:
            match word:
                case "record":
                    rate.record(amount, now_ms)
                    yield None
                case "checked":
                    rate.record(amount, now_ms)
                    yield wait_ms(now_ms)
                case "measure":
                    yield rate.measure(now_ms)
                case "window":
                    yield rate.window_ms(now_ms)
                case "throttle":
                    yield wait_ms(now_ms)
                case "bounded":
                    measured, window_ms = rate.measure(now_ms), rate.window_ms(now_ms)
                    yield bounded_ms(measured, limit, window_ms, trace.window.window_ms)
                case _:
                    limit = amount
                    yield None

    words = ["record", "checked", "measure", "window", "throttle", "bounded"]
    _compare(kafka_quotas, traces("rate", words, any_windows, values), ours)


def test_controller_mutations(kafka_quotas: KafkaQuotas) -> None:
    """Tokens, refusals and waits of Kafka's token bucket agree, strict and permissive."""

    def ours(trace: Trace) -> Iterator[Answer]:
        bucket = TokenBucket.over(trace.window, trace.limit, trace.events[0][2])
        for word, amount, now_ms in trace.events:
            match word:
                case "strict" | "permissive":
                    yield _cast(bucket.admit(amount, now_ms, strict=word == "strict"))
                case "measure":
                    yield bucket.tokens(now_ms)
                case _:
                    bucket.set_rate(amount)
                    yield None

    words = ["strict", "permissive", "measure"]
    _compare(kafka_quotas, traces("mutations", words, whole_seconds, values), ours)


def test_request_time(kafka_quotas: KafkaQuotas) -> None:
    """Thread time and throttle times are those of Kafka's request quota manager."""

    def ours(trace: Trace) -> Iterator[Answer]:
        quota = RateQuota(trace.limit, trace.window, most_ms=trace.window.window_ms)
        for word, amount, now_ms in trace.events:
            match word:
                case "percent":
                    yield percent(int(amount))
                case "record":
                    quota.record_unchecked(percent(int(amount)), now_ms)
                    yield None
                case "checked":
                    yield quota.record(percent(int(amount)), now_ms)
                case _:
                    quota.set_rate(amount)
                    yield None

    words = ["percent", "record", "checked"]
    _compare(kafka_quotas, traces("request", words, whole_seconds, nanoseconds), ours)


def _cast(admission: Admission) -> Admission:
    """The wait is as brokers have it: its lower 32 bits, which are negative from 24.8 days on.

    The throttle time of an admitted request is 0 then.
    """
    low = admission.throttle_ms & 0xFFFF_FFFF
    throttle_ms = low - (1 << 32) if low >= 1 << 31 else low
    return Admission(admission.accepted, max(throttle_ms, 0) if admission.accepted else throttle_ms)
