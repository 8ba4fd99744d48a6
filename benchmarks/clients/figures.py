"""The figures of a client's run, and whether it reached its goals; nothing here measures.

Example: 2 MB/s land until the throttle at 20.0 s, then one record of 10 kB in each second: that is
10 kB/s, least and most, from 21.0 s on. The first second is the callback's time to read the factor,
and has what was under way.

The goals:

1. In the throttle a client lands no more than it may. One that waits: **max(1 %, r / pause.max)**
   of its one connection, r being the bytes of a request. One that dials anew, with the authorizer:
   the leak budget, 1 %, in any minute.
2. After the release it is back to 90 % within 10 s, where its own time-outs allow it.
3. No second of the first 10 s after the release has more than 1.2 times the earlier rate, and a
   request: a broker stamps all of it at once. Later the callback's ramp is steeper.
4. Nothing that was acknowledged is lost.
5. Nothing is in the log twice that is not without this project: under Kafka's own quota.
"""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from typing import Final

from benchmarks.clients.clients import Client
from benchmarks.clients.run import Run
from benchmarks.harness.tables import whole
from benchmarks.harness.throttles import LEAK_RATIO, PAUSE_MAX_S

RECORD_BYTES: Final = 10_000
BEFORE_S: Final = 8.0
"""The earlier rate is that of so many seconds before the throttle."""
SETTLE_S: Final = 1.0
"""What lands in the throttle counts from so long after its beginning on."""
SLOT_S: Final = 10.0
BACK_SHARE: Final = 0.9
BACK_WINDOW_S: Final = 2.0
"""A client is back when so many seconds bring that share of the earlier rate."""
MINUTE_S: Final = 60.0
PEAK_S: Final = 10.0
BACK_S: Final = 10.0
PEAK: Final = 1.2
GOALS: Final = (
    "lands no more than it may",
    f"back to 90 % within {BACK_S:.0f} s",
    f"no second of 10 s after the release above {PEAK} x and a request",
    "nothing acknowledged is lost",
    "nothing twice that is not without us",
)


@dataclass(frozen=True, slots=True)
class Loss:
    """Records of which nothing is in the log.

    Attributes:
        records: how many.
        acknowledged: how many of them the client reported as written.
        first_s: when the client first reported on one of them, seconds after the throttle began.
    """

    records: int
    acknowledged: int
    first_s: float


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one run; rates are of landed bytes/s.

    Attributes:
        before: before the throttle.
        least: in the 10 s of the throttle with the least.
        most: likewise, with the most.
        mean: over the throttle.
        counted_s: how long that was, seconds.
        minute: in the minute of the throttle with the most, from when the client dialed anew, if it
            did; None: less than a minute was left.
        request: bytes of values in the largest request that landed in the throttle.
        first_error_s: the first failure reported to the application, seconds after the throttle
            began; None: there was none.
        first_error: its text.
        lost: what it lost; None: nothing.
        failed_but_landed: records that were reported failed, and are in the log.
        unreported: records sent, neither reported on nor in the log at the end.
        twice: records in the log beyond the first of their number.
        disordered: records, the first of their number, behind one of the same partition that was
            sent after them.
        for_nothing: bytes that the broker read beyond those of records in the log, once each.
        connections: how many the client made.
        dialed: how many of those in the throttle, from its first second or two on.
        refused: produce requests of it that its broker refused; None: nothing counted them.
        back_s: from the release to 90 % of the earlier rate; None: not seen.
        watched_s: how long after the release that was watched.
        peak: in the second with the most, of the first 10 s after the release.
        peak_s: when that began, seconds after the release.
    """

    before: float
    least: float
    most: float
    mean: float
    counted_s: float
    minute: float | None
    request: int
    first_error_s: float | None
    first_error: str
    lost: Loss | None
    failed_but_landed: int
    unreported: int
    twice: int
    disordered: int
    for_nothing: int
    connections: int
    dialed: int
    refused: int | None
    back_s: float | None
    watched_s: float
    peak: float
    peak_s: float


def figures(run: Run) -> Figures:
    """All of them."""
    times = sorted(at for at, _, _ in run.landed)
    began, released = run.throttled_at, run.released_at
    before = _rate(times, began - BEFORE_S, began)
    settled = began + SETTLE_S
    slots = slot_rates(times, settled, released)
    dialed, dialed_at = _dialed(run)
    counted = max(settled, dialed_at)
    minute = most(times, counted, released, MINUTE_S)[0] if released - counted >= MINUTE_S else None
    peak, peak_at = most(times, released, min(released + PEAK_S, run.ended_at), 1.0)
    copies = Counter(number for _, _, number in run.landed)
    failed = {number for _, number, _ in run.failed}
    reported = failed | {number for _, number in run.acknowledged}
    error = min(run.failed, default=None)
    return Figures(
        before=before,
        least=min(slots),
        most=max(slots),
        mean=_rate(times, settled, released),
        counted_s=released - settled,
        minute=minute,
        request=largest_request(run, settled),
        first_error_s=None if error is None else error[0] - began,
        first_error="" if error is None else error[2],
        lost=_loss(run, copies),
        failed_but_landed=len(failed & copies.keys()),
        unreported=len({number for _, number in run.sent} - reported - copies.keys()),
        twice=copies.total() - len(copies),
        disordered=disordered(run),
        for_nothing=run.received - RECORD_BYTES * len(copies),
        connections=run.connections,
        dialed=dialed,
        refused=run.refused,
        back_s=_back_s(run, times, before),
        watched_s=run.ended_at - released,
        peak=peak,
        peak_s=peak_at - released,
    )


def slot_rates(times: list[float], begin: float, end: float) -> list[float]:
    """Bytes/s of each whole 10 s; of all the time, where that is shorter."""
    count = int((end - begin) / SLOT_S)
    if count == 0:
        return [_rate(times, begin, end)]
    starts = [begin + SLOT_S * index for index in range(count)]
    return [_rate(times, start, start + SLOT_S) for start in starts]


def most(times: list[float], begin: float, end: float, window_s: float) -> tuple[float, float]:
    """The highest rate of a window that begins between two times, and when that one began.

    A window ends at the second time at the latest, and is divided by its whole length all the same.
    So the most is in one that begins with a record. Nothing at all is a rate of 0.0 from the first.

    Example: records at 0.1, 0.9, 1.0 and 1.5 s, and windows of 1 s: 3 records from 0.1 s on, and
    three from 0.9 s; the first counts: 30 kB/s at 0.1 s.

    Args:
        times: of records, sorted, seconds.
        begin: the first time.
        end: the second.
        window_s: seconds.
    """
    found, at = 0, begin
    stop = bisect_left(times, end)
    for index in range(bisect_left(times, begin), stop):
        count = min(bisect_left(times, times[index] + window_s), stop) - index
        if count > found:
            found, at = count, times[index]
    return RECORD_BYTES * found / window_s, at


def largest_request(run: Run, settled: float) -> int:
    """Bytes of values in the largest request that landed from a moment of the throttle on.

    The broker stamps a batch as a whole, and a request has one batch of each partition. In a
    throttle two requests of a client are further apart than the stamps' 1 ms.
    """
    stamps = Counter(at for at, _, _ in run.landed if settled <= at < run.released_at)
    return RECORD_BYTES * max(stamps.values(), default=0)


def _dialed(run: Run) -> tuple[int, float]:
    """How many connections were made in the throttle, and when the first of them was seen."""
    if not run.dialed:
        return 0, run.throttled_at
    first = run.dialed[0][1]
    seen = (at for at, count in run.dialed if count > first)
    return run.dialed[-1][1] - first, next(seen, run.throttled_at)


def disordered(run: Run) -> int:
    """Records behind one of the same partition that was sent after them; copies don't count.

    Example: 1, 2, 4, 3, 4, 5 has one: the 3.
    """
    found = 0
    highest: dict[int, int] = {}
    seen: set[int] = set()
    for _, partition, number in run.landed:
        if number in seen:
            continue
        seen.add(number)
        found += number < highest.get(partition, -1)
        highest[partition] = max(number, highest.get(partition, -1))
    return found


def _loss(run: Run, landed: Counter[int]) -> Loss | None:
    """Reported failed or written, and not there."""
    acknowledged = {number: at for at, number in run.acknowledged if number not in landed}
    failed = {number: at for at, number, _ in run.failed if number not in landed}
    lost = failed | acknowledged
    if not lost:
        return None
    return Loss(len(lost), len(acknowledged), min(lost.values()) - run.throttled_at)


def _back_s(run: Run, times: list[float], before: float) -> float | None:
    steps = int((run.ended_at - BACK_WINDOW_S - run.released_at) / 0.05 + 1e-9)
    for step in range(steps + 1):
        at = run.released_at + step * 0.05
        if _rate(times, at, at + BACK_WINDOW_S) >= BACK_SHARE * before:
            return at - run.released_at
    return None


def _rate(times: list[float], begin: float, end: float) -> float:
    """Bytes/s of the records of so many sorted times that lie in it."""
    return RECORD_BYTES * (bisect_left(times, end) - bisect_left(times, begin)) / (end - begin)


def returned(run: Run) -> tuple[float, list[float], int | None]:
    """By acknowledgements: the rate before, that of each second after the release, and the return.

    The return is the first of three seconds in a row with 90 % of the rate before, in whole seconds
    after the release; None: not seen, or nothing was acknowledged before.

    Example: 2 MB/s before, then 2.0, 0.0, 1.9, 1.8, 2.0 MB in a second each: 2 s.
    """
    times = sorted(at for at, _ in run.acknowledged)
    before = _rate(times, run.throttled_at - BEFORE_S, run.throttled_at)
    starts = [run.released_at + at for at in range(int(run.ended_at - run.released_at))]
    seconds = [_rate(times, start, start + 1.0) for start in starts]
    least = BACK_SHARE * before
    back_s = (at for at in range(len(seconds) - 2) if min(seconds[at : at + 3]) >= least > 0.0)
    return before, seconds, next(back_s, None)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a goal was met.

    Attributes:
        met: None: it can't be, or can't be told.
        why: what was found instead; with a goal that was met, what shows it, or nothing.
    """

    met: bool | None
    why: str = ""

    def __str__(self) -> str:
        """For a table."""
        word = {True: "yes", False: "no", None: "-"}[self.met]
        return f"{word}: {self.why}" if self.why else word


def verdicts(client: Client, arm: str, found: Figures, without: Figures | None) -> list[Verdict]:
    """One for each of ``GOALS``.

    Args:
        client: whose run it was.
        arm: what throttled it.
        found: the figures of its run.
        without: those under Kafka's own quota; None: that was not measured.
    """
    return [
        _lands(arm, found),
        _back(client, found),
        _peak(found),
        _lost(client, found),
        _twice(found, without),
    ]


def _lands(arm: str, found: Figures) -> Verdict:
    budget = LEAK_RATIO * found.before
    # A request more or less, by when the count begins.
    waits = max(budget, found.request / PAUSE_MAX_S) + found.request / found.counted_s
    is_within = found.mean <= waits
    rates = f"{kb(found.mean)} of {kb(waits)} kB/s"
    if not found.dialed or (found.refused == 0 and arm == "authorizer"):
        return Verdict(is_within, f"waits, {rates}")
    dialed = f"dialed {found.dialed:,} times"
    if arm != "authorizer":
        return Verdict(
            is_within, rates if is_within else f"{dialed}, which no pause stops, {rates}"
        )
    if found.minute is None:
        late = f"{dialed}, less than a minute before the release, {rates}"
        return Verdict(None if is_within else False, late)
    minute = f"{kb(found.minute)} of {kb(budget)} kB/s in a minute"
    if found.minute <= budget:
        return Verdict(True, minute)
    if found.minute <= budget + found.request / MINUTE_S:
        return Verdict(False, f"{minute}, by less than one request of {kb(found.request)} kB")
    # It may have landed this by connections that waited, and been refused on others.
    why = f"{dialed}, {minute}; if by connections that wait, {rates}"
    return Verdict(None if is_within else False, why)


def _back(client: Client, found: Figures) -> Verdict:
    if found.back_s is not None and found.back_s <= BACK_S:
        return Verdict(True)
    if client.longest_wait_s is not None and client.longest_wait_s > BACK_S:
        own = f"it tries again after up to {client.longest_wait_s:.0f} s ({client.wait})"
        return Verdict(None, f"{back(found)}; {own}")
    return Verdict(False, back(found))


def _peak(found: Figures) -> Verdict:
    if found.before <= 0.0:
        return Verdict(None, "nothing landed before")
    met = found.peak <= PEAK * found.before + found.request
    return Verdict(True) if met else Verdict(False, f"{found.peak / found.before:.1f} x")


def _lost(client: Client, found: Figures) -> Verdict:
    lost = 0 if found.lost is None else found.lost.acknowledged
    if not lost:
        return Verdict(True)
    if not client.is_acknowledged:
        return Verdict(None, f"{lost:,}, with acks=0, which no broker acknowledges")
    return Verdict(False, f"{lost:,}")


def _twice(found: Figures, without: Figures | None) -> Verdict:
    if not found.twice:
        return Verdict(True)
    if without is None:
        return Verdict(None, f"{found.twice:,}; without us it was not measured")
    is_met = found.twice <= without.twice
    return Verdict(is_met, f"{found.twice:,}, and {without.twice:,} without us")


def back(found: Figures) -> str:
    """How long the return took, or for how long it was watched in vain."""
    return f"> {found.watched_s:.0f} s" if found.back_s is None else f"{found.back_s:.1f} s"


def kb(rate: float) -> str:
    """In kilobytes."""
    return whole(rate / 1000)
