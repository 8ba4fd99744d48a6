"""The volumes as rows, the worst first, each with a bar.

A bar shows the whole volume, its used part, and the limits. Volumes that violate the limit
come first, then volumes without new sizes, then the volumes that reach the limit soonest, then the
volumes with the least room to it.

Example: 91 of 100 GB used under a limit of 10 GB: 91 % of the bar, and the limit at 90 %.
"""

import math
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final

from sidecar.api.documents import BrokerStateName
from sidecar.api.views import broker_state, log_dir_state
from sidecar.control.board import Snapshot
from sidecar.status.moments import Now, span
from sidecar.throttle.fold import is_low
from sidecar.throttle.limits import Limit
from sidecar.throttle.memory import VolumeState
from sidecar.throttle.rules import Rules
from sidecar.throttle.sizes import size
from sidecar.throttle.throttled_fill import throttled_rate, throttled_since
from sidecar.volumes import OfflineLogDir

WORST: Final = 20
"""The most volumes on the main page; the list of all volumes has the rest."""


@dataclass(frozen=True, slots=True)
class Row:
    """A volume.

    Attributes:
        broker_id: the broker's node id.
        log_dir: the log dir's path on the broker.
        state: the problems of the volume, in words; "" without a problem.
        is_bad: whether the volume violates the limit.
        left: the available bytes; "" when they were never read.
        total: the size of the volume.
        used: the used part of the bar, 0 to 100; None when the volume was never read.
        lines: the limit, the soft limit and the stop line, as far as they are set: each with its
            name and its place on the bar, 0 to 100.
        fills: the fill rate; "" when it is not known.
        to_limit: when the volume reaches the limit at that rate; "" if never.
        read: the age of the reading, if the last poll did not bring it or failed; else "".
        forget: the command to forget the volume, while it counts and is not read; else "".
    """

    broker_id: int
    log_dir: str
    state: str
    is_bad: bool
    left: str
    total: str
    used: float | None
    lines: tuple[tuple[str, float], ...]
    fills: str
    to_limit: str
    read: str
    forget: str = ""


@dataclass(frozen=True, slots=True)
class _ListedVolume:
    broker_id: int
    log_dir: str
    volume_state: VolumeState | None
    unread: OfflineLogDir | None
    rank: tuple[float, ...]


def volume_rows(snapshot: Snapshot, now: Now, first: int, count: int) -> tuple[list[Row], int]:
    """Return some of the volumes, the worst first.

    Returns:
        The rows, and the number of all volumes.
    """
    listed = _listed(snapshot, now.now)
    taken = nsmallest(first + count, listed, key=lambda each: (each.rank, each.broker_id))
    return [_row(each, snapshot, now) for each in taken[first:]], len(listed)


def lines_in_bars(rules: Rules) -> str:
    """Explain the lines in the bars; "" without a limit."""
    limit = rules.limit
    if limit is None:
        return ""
    lines = {"soft limit": rules.soft_limit, "limit": limit, "stop line": rules.stop_line}
    *others, last = (f"the {name}, {at.describe()}" for name, at in lines.items() if at is not None)
    if not others:
        return f"The line in each bar is the limit: {limit.describe()}."
    return f"The lines in each bar are {', '.join(others)}, and {last}."


def rate(bytes_per_second: float | None) -> str:
    """Describe the fill rate of a volume; "" when it is not known."""
    if bytes_per_second is None:
        return ""
    if abs(bytes_per_second) < 1.0:
        return "steady"
    verb = "fills" if bytes_per_second > 0 else "empties"
    return f"{verb} by {size(abs(bytes_per_second))}/s"


def _listed(snapshot: Snapshot, now: float) -> list[_ListedVolume]:
    listed = []
    for broker_id, broker in snapshot.memory.brokers.items():
        unread_dirs = {unread.log_dir: unread for unread in broker.offline}
        for volume_state in broker.volumes:
            log_dir = volume_state.volume.log_dir
            rank = _rank(volume_state, now)
            listed.append(
                _ListedVolume(
                    broker_id, log_dir, volume_state, unread_dirs.pop(log_dir, None), rank
                )
            )
        for log_dir, unread in unread_dirs.items():
            listed.append(_ListedVolume(broker_id, log_dir, None, unread, (1.0, 0.0, 0.0)))
    return listed


def _rank(volume_state: VolumeState, now: float) -> tuple[float, ...]:
    total = volume_state.volume.total_bytes
    share = volume_state.headroom_bytes / total if total else -1.0
    if volume_state.violates:
        return (0.0, share, 0.0)
    if not volume_state.online:
        return (1.0, share, 0.0)
    left_s = volume_state.seconds_left
    return (2.0, math.inf if left_s is None else volume_state.read_at + left_s - now, share)


def _row(listed: _ListedVolume, snapshot: Snapshot, now: Now) -> Row:
    volume_state = listed.volume_state
    state = broker_state(snapshot.memory, listed.broker_id)
    if volume_state is None:
        why = _why_unread(listed.unread)
        return Row(listed.broker_id, listed.log_dir, why, False, "", "", None, (), "", "", "")
    volume = volume_state.volume
    total = volume.total_bytes or 1
    lines = _lines(volume_state, snapshot.rules.soft_limit)
    return Row(
        broker_id=listed.broker_id,
        log_dir=listed.log_dir,
        state=_state(volume_state, listed.unread, state),
        is_bad=volume_state.violates,
        left=size(volume.available_bytes),
        total=size(volume.total_bytes),
        used=_percent(volume.used_bytes / total),
        lines=tuple((name, _percent(1.0 - at_bytes / total)) for name, at_bytes in lines),
        fills=rate(_fill_rate(volume_state, snapshot)),
        to_limit=_to_limit(volume_state, now.now),
        read=_read(volume_state, snapshot, now),
        forget=""
        if volume_state.online or not is_low(volume_state, snapshot.rules)
        else f"throttle-sidecar forget {listed.broker_id} --log-dir {shlex.quote(listed.log_dir)}",
    )


def _lines(volume_state: VolumeState, soft_limit: Limit | None) -> Iterator[tuple[str, float]]:
    """Yield the lines in available bytes; the soft limit only if it is above the limit."""
    limit_bytes = volume_state.verdict.threshold_bytes
    yield "limit", limit_bytes
    if soft_limit is not None:
        soft_bytes = soft_limit.judge(volume_state.volume).threshold_bytes
        if soft_bytes > limit_bytes:
            yield "soft limit", soft_bytes
    if volume_state.stop_line_bytes is not None:
        yield "stop line", volume_state.stop_line_bytes


def _state(volume_state: VolumeState, unread: OfflineLogDir | None, broker: BrokerStateName) -> str:
    line = "stop line" if volume_state.is_at_stop_line else "limit"
    states = [f"violates the {line}"] if volume_state.violates else []
    if unread is not None:
        states.append(_why_unread(unread))
    if broker != "active":
        states.append(
            "the broker is fenced" if broker == "fenced" else "the broker has left the cluster"
        )
    return "; ".join(states)


def _why_unread(unread: OfflineLogDir | None) -> str:
    if unread is None:
        return ""
    is_offline = log_dir_state(unread) == "offline"
    return unread.reason if is_offline else f"sizes unreadable: {unread.reason}"


def _fill_rate(volume_state: VolumeState, snapshot: Snapshot) -> float | None:
    """Return the fill rate. While producers are throttled, it spans several of their pauses."""
    since = throttled_since(snapshot.decision.factor, snapshot.since)
    throttled = None if since is None else throttled_rate(volume_state, since)
    if throttled is not None:
        return throttled
    return volume_state.fill.bytes_per_second if volume_state.online else None


def _to_limit(volume_state: VolumeState, now: float) -> str:
    if volume_state.violates:
        return "reached"
    if volume_state.seconds_left is None or not volume_state.online:
        return ""
    return f"in {span(max(0.0, volume_state.read_at + volume_state.seconds_left - now))}"


def _read(volume_state: VolumeState, snapshot: Snapshot, now: Now) -> str:
    newest = snapshot.memory.membership_at
    # Answers of one poll come within its deadline of 10 s at most.
    of_last_poll = newest is not None and volume_state.read_at >= newest - 10.0
    if of_last_poll and not snapshot.memory.failed_polls:
        return ""
    return now.moment(volume_state.read_at).relative


def _percent(share: float) -> float:
    return round(100 * min(1.0, max(0.0, share)), 2)
