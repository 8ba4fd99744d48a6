"""Our quota arithmetic beside Kafka's own classes: every number of every trace is the same.

Doubles are equal to the last bit, which Java and Python both can: the same additions and divisions
in the same order. Traces are random by a seed; ``make arithmetic`` compares 10 million events.
"""

import os
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from itertools import accumulate, cycle, islice
from random import Random

import pytest
import pytest_asyncio

from sidecar.quotas.admission import Admission
from sidecar.quotas.rate import QuotaWindow, Rate
from sidecar.quotas.throttle_time import bounded_ms, unbounded_ms
from sidecar.quotas.token_bucket import TokenBucket
from tests.support.quota_traces import Answers, KafkaQuotas, Trace, shortened
from usage_pipeline.replay.rate_quota import RateQuota
from usage_pipeline.replay.request_percentage import percent

EVENTS = int(os.environ.get("QUOTA_EVENTS", "400000"))
"""All tests together compare as many, at least."""
SEED = int(os.environ.get("QUOTA_SEED") or secrets.randbelow(1 << 32))

START_MS = 1_700_000_000_000
MOST_SEGMENTS = 20
MOST_REPEATS = 60
LONGEST_STEP_MS = 10**13
"""The clock steps by 317 years at most, either way."""


def _rate(trace: Trace) -> Answers:
    """Rate, windowSize, and the waits of QuotaUtils."""
    rate, limit = Rate(trace.window), trace.limit
    doubles: list[float] = []
    longs: list[int] = []
    for word, amount, now_ms in zip(trace.words, trace.amounts, trace.times_ms, strict=True):
        match word:
            case "record":
                rate.record(amount, now_ms)
            case "measure":
                doubles.append(rate.measure(now_ms))
            case "window":
                longs.append(rate.window_ms(now_ms))
            case "throttle":
                longs.append(unbounded_ms(rate.measure(now_ms), limit, rate.window_ms(now_ms)))
            case "bounded":
                measured, window_ms = rate.observe(now_ms)
                longs.append(bounded_ms(measured, limit, window_ms, trace.window.window_ms))
            case _:
                limit = amount
    return Answers.of(doubles, longs)


def _rate_quota(trace: Trace) -> Answers:
    """RateQuota, which is how produce and fetch quotas use them."""
    quota = RateQuota(trace.limit, trace.window)
    doubles: list[float] = []
    longs: list[int] = []
    for word, amount, now_ms in zip(trace.words, trace.amounts, trace.times_ms, strict=True):
        match word:
            case "record":
                quota.record_unchecked(amount, now_ms)
            case "checked":
                longs.append(quota.record(amount, now_ms))
            case "throttle":
                longs.append(quota.throttle_ms(now_ms))
            case "measure":
                doubles.append(quota.rate(now_ms))
            case _:
                quota.set_rate(amount)
    return Answers.of(doubles, longs)


def _tokens(trace: Trace) -> Answers:
    """TokenBucket alone, and the waits of Kafka's manager."""
    bucket = TokenBucket(trace.limit, trace.window, trace.times_ms[0])
    doubles: list[float] = []
    longs: list[int] = []
    for word, amount, now_ms in zip(trace.words, trace.amounts, trace.times_ms, strict=True):
        match word:
            case "record":
                bucket.take(amount, now_ms)
            case "checked":
                bucket.take(amount, now_ms)
                longs.append(bucket.throttle_ms(now_ms))
            case "throttle":
                longs.append(bucket.throttle_ms(now_ms))
            case "measure":
                doubles.append(bucket.tokens(now_ms))
            case _:
                bucket.set_rate(amount)
    return Answers.of(doubles, longs)


def _mutations(trace: Trace) -> Answers:
    """The token bucket in Kafka's manager, strict and permissive: tokens, refusals and waits."""
    bucket = TokenBucket(trace.limit, trace.window, trace.times_ms[0])
    doubles: list[float] = []
    longs: list[int] = []
    for word, amount, now_ms in zip(trace.words, trace.amounts, trace.times_ms, strict=True):
        match word:
            case "strict" | "permissive":
                admission = bucket.admit(amount, now_ms, strict=word == "strict")
                longs += (admission.accepted, _cast_ms(admission))
            case "measure":
                doubles.append(bucket.tokens(now_ms))
            case _:
                bucket.set_rate(amount)
    return Answers.of(doubles, longs)


def _cast_ms(admission: Admission) -> int:
    """The wait as brokers keep it: its lower 32 bits, which are negative from 24.8 days on.

    Who was let in is then told 0.
    """
    low = admission.throttle_ms & 0xFFFF_FFFF
    throttle_ms = low - (1 << 32) if low >= 1 << 31 else low
    return max(throttle_ms, 0) if admission.accepted else throttle_ms


def _request(trace: Trace) -> Answers:
    """Thread time, in ns, as Kafka's request quota manager counts it, and the waits it gives."""
    quota = RateQuota(trace.limit, trace.window, most_ms=trace.window.window_ms)
    doubles: list[float] = []
    longs: list[int] = []
    for word, amount, now_ms in zip(trace.words, trace.amounts, trace.times_ms, strict=True):
        match word:
            case "percent":
                doubles.append(percent(int(amount)))
            case "record":
                quota.record_unchecked(percent(int(amount)), now_ms)
            case "checked":
                longs.append(quota.record(percent(int(amount)), now_ms))
            case _:
                quota.set_rate(amount)
    return Answers.of(doubles, longs)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is compared.

    Attributes:
        kind: of its traces.
        words: what happens to it; the first one touches it, whatever it is.
        ours: our answers to a trace.
        managed: in one of Kafka's managers, which want whole seconds and are not many.
        per_unit: amounts that one of the limit's unit is; above 1 they are integers.
    """

    kind: str
    words: tuple[str, ...]
    ours: Callable[[Trace], Answers]
    managed: bool = False
    per_unit: float = 1.0

    def trace(self, random: Random) -> Trace:
        """Segments of events, even or not; time may stand still, go back, or leave years out."""
        window = self._window(random)
        limit = first_limit = _limit(random)
        words = [self.words[0]]
        amounts = [0.0]
        gaps_ms = [START_MS + random.randrange(1000)]
        for _ in range(random.randint(1, MOST_SEGMENTS)):
            repeats = random.randint(1, MOST_REPEATS)
            words += islice(cycle(random.choices(self.words, k=random.randint(1, 4))), repeats)
            amounts += self._amounts(random, limit * window.window_ms / 1000, repeats)
            gaps_ms += _gaps_ms(random, window, repeats)
            if random.random() < 0.2:
                gaps_ms[-1] += _step_ms(random)
            if random.random() < 0.5:
                limit = _limit(random) if random.random() < 0.5 else limit * random.uniform(0.5, 2)
                words.append("limit")
                amounts.append(limit)
                gaps_ms.append(0)
        return Trace(self.kind, window, first_limit, words, amounts, [*accumulate(gaps_ms)])

    def _window(self, random: Random) -> QuotaWindow:
        if self.managed:
            return QuotaWindow(random.choice((11, 11, 1, 3, 100)), random.choice((1000, 30_000)))
        samples = random.choice((11, 11, 1, 2, 3, random.randint(1, 100)))
        return QuotaWindow(samples, random.choice((1000, 1, 7, 30_000, random.randint(1, 60_000))))

    def _amounts(self, random: Random, per_window: float, repeats: int) -> list[float]:
        """Mostly about as much as the limit allows in one window."""
        match random.randrange(6):
            case 0:
                amounts = [random.choice((0.0, -0.0, 1.0, 0.1, 560.0, -1.0))] * repeats
            case 1:
                amounts = [10 ** random.uniform(-6, 15) for _ in range(repeats)]
            case 2:
                amounts = [per_window * random.uniform(-1, 2) for _ in range(repeats)]
            case 3:
                amounts = [per_window * random.uniform(0, 2)] * repeats
            case _:
                most = per_window * 10 ** random.uniform(-2, 1)
                amounts = [most * random.random() for _ in range(repeats)]
        if self.per_unit == 1.0:
            return amounts
        return [min(abs(float(round(amount * self.per_unit))), 2.0**62) for amount in amounts]


def _limit(random: Random) -> float:
    match random.randrange(8):
        case 0:
            return random.choice((5.0, 0.1, 1.0, 100.0, 1e-3, 1e-300, 2.0**63))
        case 1:
            return 10 ** random.uniform(-12, 18)
        case _:
            return 10 ** random.uniform(-1, 9)


def _gaps_ms(random: Random, window: QuotaWindow, repeats: int) -> list[int]:
    """Even ones, at the edges of windows too, or any; of a fraction of a window or many."""
    window_ms, span_ms = window.window_ms, window.span_ms
    if random.random() < 0.3:
        edges_ms = [at + by for at in (window_ms, span_ms) for by in (-1, 0, 1)]
        return [random.choice((0, 1, *edges_ms, -1, -window_ms, -span_ms, 36_000_000))] * repeats
    most_ms = random.choice((2, window_ms // 10 + 1, window_ms, 3 * window_ms, 2 * span_ms))
    least_ms = random.choice((0, 0, 0, -most_ms // 4, -most_ms))
    width_ms = most_ms - least_ms + 1
    return [least_ms + int(random.random() * width_ms) for _ in range(repeats)]


def _step_ms(random: Random) -> int:
    """A step of the clock, either way: a millisecond, centuries, or any between."""
    return random.choice((-1, 1)) * int(LONGEST_STEP_MS ** random.random())


SUBJECTS = {
    "rate": Subject(
        "rate", ("measure", "record", "record", "window", "throttle", "bounded"), _rate
    ),
    "rate quota": Subject(
        "rate", ("measure", "checked", "checked", "record", "throttle"), _rate_quota
    ),
    "tokens": Subject("tokens", ("measure", "checked", "checked", "record", "throttle"), _tokens),
    "mutations": Subject(
        "mutations", ("measure", "strict", "permissive"), _mutations, managed=True
    ),
    "request": Subject(
        "request", ("checked", "record", "percent"), _request, managed=True, per_unit=1e7
    ),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kafka_quotas() -> AsyncIterator[KafkaQuotas]:
    with await KafkaQuotas.start() as running:
        yield running


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_number_is_kafka_s(kafka_quotas: KafkaQuotas, name: str) -> None:
    """Random traces agree bit for bit; the first one that does not is shortened."""
    subject = SUBJECTS[name]

    def answers(trace: Trace) -> tuple[Answers, Answers]:
        # Both compute at the same time.
        kafka_quotas.send(trace)
        our = subject.ours(trace)
        return kafka_quotas.receive(), our

    def differs(trace: Trace) -> bool:
        theirs, our = answers(trace)
        return theirs != our

    random = Random(f"{SEED} {name}")
    compared = 0
    while compared < EVENTS / len(SUBJECTS):
        trace = subject.trace(random)
        if differs(trace):
            part = shortened(trace, differs)
            theirs, our = answers(part)
            pytest.fail(
                f"make arithmetic SEED={SEED} EVENTS={EVENTS}, after {compared} events of {name}:\n"
                f"{part}\nKafka's: {theirs}\nours: {our}",
                pytrace=False,
            )
        compared += len(trace.words)
