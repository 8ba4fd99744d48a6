"""The volumes as rows, the worst first, each with what its bar shows.

A bar is the whole volume: what is used of it, and where the limits are. Worst are those at or below
the limit, then those that are offline, then those that reach it soonest, then those with
the least left above it.

Example: 91 of 100 GB used under a limit of 10 GB: 91 % of the bar, and the limit at 90 %.
"""

import math
import shlex
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final

from sidecar.api.documents import BrokerStateName
from sidecar.api.views import broker_state
from sidecar.control.board import Snapshot
from sidecar.status.moments import Now, span
from sidecar.throttle.limits import Limit
from sidecar.throttle.memory import VolumeState
from sidecar.throttle.rules import Rules
from sidecar.throttle.sizes import size
from sidecar.throttle.throttled_fill import throttled_rate, throttled_since
from sidecar.volumes import OfflineLogDir

WORST: Final = 20
"""So many are on the page itself; the rest is on pages of their own."""


@dataclass(frozen=True, slots=True)
class Row:
    """A volume.

    Attributes:
        broker_id: the broker's node id.
        log_dir: the log dir's path on the broker.
        state: what is the matter with it, in words; "" when nothing is.
        is_bad: whether it is at or below the limit.
        left: available bytes, "" when they were never read.
        total: the whole volume.
        used: share of the bar, 0 to 100; None when it was never read.
        limit_at: where on the bar the limit is, 0 to 100.
        stop_line_at: where on the bar the stop line is; None while there is none.
        soft_limit_at: where on the bar the soft limit is; None while there is none.
        fills: how fast; "" when that is not known.
        to_limit: when the limit is reached at that rate, "" when it is not.
        read: how old the reading is, when it is not of the last poll or that failed; else "".
        forget: the command by which it no longer counts, while it violates and is offline; else "".
    """

    broker_id: int
    log_dir: str
    state: str
    is_bad: bool
    left: str
    total: str
    used: float | None
    limit_at: float
    fills: str
    to_limit: str
    read: str
    forget: str = ""
    stop_line_at: float | None = None
    soft_limit_at: float | None = None


@dataclass(frozen=True, slots=True)
class _ListedVolume:
    broker_id: int
    log_dir: str
    known: VolumeState | None
    offline: OfflineLogDir | None
    rank: tuple[float, ...]


def volume_rows(snapshot: Snapshot, now: Now, first: int, count: int) -> tuple[list[Row], int]:
    """Some of the volumes, the worst first.

    Returns:
        The rows, and how many volumes there are.
    """
    listed = _found(snapshot, now.now)
    taken = nsmallest(first + count, listed, key=lambda each: (each.rank, each.broker_id))
    return [_row(each, snapshot, now) for each in taken[first:]], len(listed)


def lines_in_bars(rules: Rules) -> str:
    """The meaning of the lines in the bars; "" when there is no limit."""
    limit = rules.limit
    if limit is None:
        return ""
    lines = {"soft limit": rules.soft_limit, "limit": limit, "stop line": rules.stop_line}
    *others, last = (f"the {name}, {at.describe()}" for name, at in lines.items() if at is not None)
    if not others:
        return f"The line in each bar is the limit: {limit.describe()}."
    return f"The lines in each bar are {', '.join(others)}, and {last}."


def rate(bytes_per_second: float | None) -> str:
    """How fast a volume fills, in words; "" when that is not known."""
    if bytes_per_second is None:
        return ""
    if abs(bytes_per_second) < 1.0:
        return "steady"
    verb = "fills" if bytes_per_second > 0 else "empties"
    return f"{verb} by {size(abs(bytes_per_second))}/s"


def _found(snapshot: Snapshot, now: float) -> list[_ListedVolume]:
    listed = []
    for broker_id, broker in snapshot.memory.brokers.items():
        offline_dirs = {offline.log_dir: offline for offline in broker.offline}
        for known in broker.volumes:
            log_dir = known.volume.log_dir
            rank = _rank(known, now)
            listed.append(
                _ListedVolume(broker_id, log_dir, known, offline_dirs.pop(log_dir, None), rank)
            )
        for log_dir, offline in offline_dirs.items():
            listed.append(_ListedVolume(broker_id, log_dir, None, offline, (1.0, 0.0, 0.0)))
    return listed


def _rank(known: VolumeState, now: float) -> tuple[float, ...]:
    total = known.volume.total_bytes
    share = known.headroom_bytes / total if total else -1.0
    if known.violates:
        return (0.0, share, 0.0)
    if not known.online:
        return (1.0, share, 0.0)
    left_s = known.seconds_left
    return (2.0, math.inf if left_s is None else known.read_at + left_s - now, share)


def _row(listed: _ListedVolume, snapshot: Snapshot, now: Now) -> Row:
    known = listed.known
    state = broker_state(snapshot.memory, listed.broker_id)
    if known is None:
        reason = listed.offline.reason if listed.offline else ""
        return Row(listed.broker_id, listed.log_dir, reason, False, "", "", None, 0.0, "", "", "")
    volume = known.volume
    total = volume.total_bytes or 1
    return Row(
        broker_id=listed.broker_id,
        log_dir=listed.log_dir,
        state=_state(known, listed.offline, state),
        is_bad=known.violates,
        left=size(volume.available_bytes),
        total=size(volume.total_bytes),
        used=_percent(volume.used_bytes / total),
        limit_at=_percent(1.0 - known.verdict.threshold_bytes / total),
        fills=rate(_fill_rate(known, snapshot)),
        to_limit=_to_limit(known, now.now),
        read=_read(known, snapshot, now),
        forget=""
        if known.online or not known.violates
        else f"throttle-sidecar forget {listed.broker_id} --log-dir {shlex.quote(listed.log_dir)}",
        stop_line_at=_stop_line_at(known),
        soft_limit_at=_soft_limit_at(known, snapshot.rules.soft_limit),
    )


def _stop_line_at(known: VolumeState) -> float | None:
    line_bytes = known.stop_line_bytes
    return (
        None if line_bytes is None else _percent(1.0 - line_bytes / (known.volume.total_bytes or 1))
    )


def _soft_limit_at(known: VolumeState, soft_limit: Limit | None) -> float | None:
    """None too on a volume whose limit is as high: there it counts for nothing."""
    if soft_limit is None:
        return None
    soft_bytes = soft_limit.judge(known.volume).threshold_bytes
    if soft_bytes <= known.verdict.threshold_bytes:
        return None
    return _percent(1.0 - soft_bytes / (known.volume.total_bytes or 1))


def _state(known: VolumeState, offline: OfflineLogDir | None, broker: BrokerStateName) -> str:
    line = "stop line" if known.is_at_stop_line else "limit"
    states = [f"at or below the {line}"] if known.violates else []
    if offline is not None:
        states.append(offline.reason)
    if broker != "active":
        states.append(
            "the broker is fenced" if broker == "fenced" else "the broker has left the cluster"
        )
    return "; ".join(states)


def _fill_rate(known: VolumeState, snapshot: Snapshot) -> float | None:
    """While producers are throttled, over several of their pauses: 5 s show a spike or nothing."""
    since = throttled_since(snapshot.decision.factor, snapshot.since)
    throttled = None if since is None else throttled_rate(known, since)
    if throttled is not None:
        return throttled
    return known.fill.bytes_per_second if known.online else None


def _to_limit(known: VolumeState, now: float) -> str:
    if known.violates:
        return "reached"
    if known.seconds_left is None or not known.online:
        return ""
    return f"in {span(max(0.0, known.read_at + known.seconds_left - now))}"


def _read(known: VolumeState, snapshot: Snapshot, now: Now) -> str:
    newest = snapshot.memory.membership_at
    # Answers of one poll come within its deadline of 10 s at most.
    of_last_poll = newest is not None and known.read_at >= newest - 10.0
    if of_last_poll and not snapshot.memory.failed_polls:
        return ""
    return now.moment(known.read_at).relative


def _percent(share: float) -> float:
    return round(100 * min(1.0, max(0.0, share)), 2)
