"""The report of ``replay-decisions``: the throttles, and where readings are missing.

Example: of four days, two have no readings, and one throttle lasted for a day. The report lists the
throttle and the two days, and a share of 50 % of the time with readings.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import click

from sidecar.cli.tables import print_rows
from sidecar.history.coverage import Coverage
from sidecar.history.reader import HistoryReader
from sidecar.status.moments import span
from sidecar.throttle.replay import Episode, Replay
from sidecar.throttle.sizes import size
from sidecar.volumes import LogDir

_MOST_SHOWN: Final = 10
"""The most times that are listed, and the most brokers of each."""
_MOST_LOG_DIRS: Final = 3


def print_report(replay: Replay, coverage: Coverage, reader: HistoryReader) -> None:
    """Print a table of the throttles and a summary."""
    episodes = replay.episodes()
    if episodes:
        rows = [
            (
                clock(each.began_at),
                _lasted(each, replay),
                f"{each.factor:g}",
                span(each.stop_line_s) if each.stop_line_s else "",
                _cause(each),
            )
            for each in episodes
        ]
        print_rows(("From (UTC)", "For", "Factor", "At stop line", "By"), rows, ())
    for line in (*_summary(replay, coverage), *_missing_lines(coverage)):
        click.echo(line)
    if reader.damaged_lines:
        click.echo(
            f"{reader.damaged_lines:,} lines could not be read and were skipped, the first because"
            f" of {reader.first_damage}."
        )


def as_document(replay: Replay, coverage: Coverage, reader: HistoryReader) -> str:
    """Return the report as JSON."""
    import json  # noqa: PLC0415 - for this form alone

    from sidecar.api.answers import timestamp  # noqa: PLC0415

    def moment(at: float | None) -> str | None:
        return timestamp(float, at)

    def named(log_dir: LogDir) -> dict[str, object]:
        return {"broker_id": log_dir[0], "log_dir": log_dir[1]}

    document = {
        "observations": replay.observations,
        "from": moment(replay.first_at),
        "until": moment(replay.last_at),
        "seconds_with_readings": round(replay.known_s, 3),
        "missing": [
            {
                "from": moment(gap.began_at),
                "until": moment(gap.ended_at),
                "log_dirs": [named(each) for each in gap.log_dirs],
            }
            for gap in coverage.gaps
        ],
        "partial": [
            {**named(log_dir), "from": moment(first), "until": moment(last)}
            for log_dir, first, last in coverage.partial()
        ],
        "damaged_lines": reader.damaged_lines,
        "first_damage": reader.first_damage or None,
        "throttles": [
            {
                "from": moment(each.began_at),
                "until": moment(each.ended_at),
                "seconds": round(each.lasted_s, 3),
                "stop_line_seconds": round(each.stop_line_s, 3),
                "factor": each.factor,
                "source": each.source.value,
                "reason": each.reason,
                "broker_id": each.worst.volume.broker_id if each.worst else None,
                "log_dir": each.worst.volume.log_dir if each.worst else None,
                "least_available_bytes": each.worst.volume.available_bytes if each.worst else None,
            }
            for each in replay.episodes()
        ],
    }
    return json.dumps(document, indent=2)


def clock(at: float) -> str:
    """Write epoch seconds as date and time in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def longest(times: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the longest times, in their order; as many as a person reads."""
    return sorted(sorted(times, key=lambda each: each[0] - each[1])[:_MOST_SHOWN])


def _summary(replay: Replay, coverage: Coverage) -> list[str]:
    first_at = replay.first_at or 0.0
    throttled_s = sum(each.lasted_s for each in replay.episodes())
    share = f"{throttled_s / replay.known_s:.2%}" if replay.known_s else "0.00%"
    of_what = "the time with readings" if coverage.gaps else "the time"
    count = len(replay.episodes())
    return [
        f"{replay.observations:,} observations from {clock(first_at)} to {clock(replay.last_at)}"
        f" UTC: {count} throttle{'' if count == 1 else 's'}, {span(throttled_s)} together"
        f" ({share} of {of_what}).",
        "Open loop: volumes fill as they did. With a throttle they would have filled more slowly.",
    ]


def _missing_lines(coverage: Coverage) -> list[str]:
    lines = []
    times = {(gap.began_at, gap.ended_at): gap.log_dirs for gap in coverage.gaps}
    if times:
        missing_s = sum(ended_at - began_at for began_at, ended_at in coverage.missing())
        lines.append(
            f"Readings are missing for {span(missing_s)}, which are left out of all durations and"
            " of the share:"
        )
        lines += [
            f"  {clock(began_at)} to {clock(ended_at)}: {_names(times[began_at, ended_at])}"
            for began_at, ended_at in longest(list(times))
        ]
        if len(times) > _MOST_SHOWN:
            lines.append(f"  and {len(times) - _MOST_SHOWN:,} other times (--json has all)")
    partial = list(coverage.partial())
    lines += [
        f"Broker {broker} {log_dir} has readings only from {clock(first)} to {clock(last)}:"
        " before and after, it counts as not there."
        for (broker, log_dir), first, last in partial[:_MOST_SHOWN]
    ]
    if len(partial) > _MOST_SHOWN:
        lines.append(f"This is also so for {len(partial) - _MOST_SHOWN:,} other log dirs.")
    return lines


def _names(log_dirs: Sequence[LogDir]) -> str:
    if len(log_dirs) <= _MOST_LOG_DIRS:
        return ", ".join(f"broker {broker} {log_dir}" for broker, log_dir in log_dirs)
    brokers = sorted({broker for broker, _ in log_dirs})
    shown = ", ".join(map(str, brokers[:_MOST_SHOWN]))
    more = len(brokers) - _MOST_SHOWN
    return f"{len(log_dirs):,} log dirs of brokers {shown}" + (f" and {more:,} more" * (more > 0))


def _cause(each: Episode) -> str:
    if each.worst is None:
        return f"{each.source.value}: {each.reason}"
    volume = each.worst.volume
    left = size(volume.available_bytes)
    return f"broker {volume.broker_id} {volume.log_dir}, {left} left at least"


def _lasted(each: Episode, replay: Replay) -> str:
    whole_s = (replay.last_at if each.ended_at is None else each.ended_at) - each.began_at
    gaps = ", with gaps" if whole_s - each.lasted_s >= 1 else ""
    return f"{span(each.lasted_s)}{gaps}{', to the end' if each.ended_at is None else ''}"
