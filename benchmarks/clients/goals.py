"""What each client's run is to come to, and whether it did: the goals' table of docs/clients.md.

1. In the throttle a client lands no more than it may. One that waits: **max(1 %, r / pause.max)**
   of its one connection, r being the bytes of a request. With the authorizer, one that dials anew:
   the leak budget, 1 %, in any minute.
2. After the release it is back to 90 % within 10 s, where its own time-outs allow it.
3. No second of the first 10 s after the release has more than 1.2 times of before, and a request:
   a broker stamps all of it at once. Then the callback's ramp is steeper.
4. Nothing that was acknowledged is lost.
5. Nothing is in the log twice that is not without us: under Kafka's own quota.

Example: 2 MB/s before, requests of 1 MB: one that waits may land 250 kB/s, one that dials anew
20 kB/s. So 1 MB in a minute is 17 kB/s, and 2 MB are too much.
"""

from dataclasses import dataclass
from typing import Final

from benchmarks.clients.clients import Client
from benchmarks.clients.figures import MINUTE_S, Figures
from benchmarks.enforcement.contenders import LEAK_RATIO, PAUSE_MAX_S

BACK_S: Final = 10.0
PEAK: Final = 1.2
NAMES: Final = (
    "lands no more than it may",
    f"back to 90 % within {BACK_S:.0f} s",
    f"no second of 10 s after the release above {PEAK} x and a request",
    "nothing acknowledged is lost",
    "nothing twice that is not without us",
)


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
    """One for each of ``NAMES``.

    Args:
        client: whose run it was.
        arm: who throttled it.
        found: what its run came to.
        without: what it came to under Kafka's own quota; None: that was not measured.
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
    rates = f"{_kb(found.mean)} of {_kb(waits)} kB/s"
    if not found.dialed or (found.refused == 0 and arm == "authorizer"):
        return Verdict(is_within, f"waits, {rates}")
    dialed = f"dialed {found.dialed:,} times"
    if arm != "authorizer":
        why = rates if is_within else f"{dialed}, which no pause stops, {rates}"
        return Verdict(is_within, why)
    if found.minute is None:
        late = f"{dialed}, less than a minute before the release, {rates}"
        return Verdict(None if is_within else False, late)
    minute = f"{_kb(found.minute)} of {_kb(budget)} kB/s in a minute"
    if found.minute <= budget:
        return Verdict(True, minute)
    if found.minute <= budget + found.request / MINUTE_S:
        return Verdict(False, f"{minute}, by less than one request of {_kb(found.request)} kB")
    # It may have landed this by connections that waited, and been refused on others.
    why = f"{dialed}, {minute}; if by connections that wait, {rates}"
    return Verdict(None if is_within else False, why)


def _back(client: Client, found: Figures) -> Verdict:
    if found.back_s is not None and found.back_s <= BACK_S:
        return Verdict(True)
    late = f"> {found.watched_s:.0f} s" if found.back_s is None else f"{found.back_s:.1f} s"
    if client.longest_wait_s is not None and client.longest_wait_s > BACK_S:
        own = f"it tries again after up to {client.longest_wait_s:.0f} s ({client.wait})"
        return Verdict(None, f"{late}; {own}")
    return Verdict(False, late)


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
    if found.twice <= without.twice:
        return Verdict(True, f"{found.twice:,}, and {without.twice:,} without us")
    return Verdict(False, f"{found.twice:,}, and {without.twice:,} without us")


def _kb(rate: float) -> str:
    return f"{rate / 1000:,.0f}"
