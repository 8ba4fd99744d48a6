"""The limit, soft limit and stop line to set, from the fastest volume's rate, with the arithmetic.

- limit: what is written in an interval, and 1 % of the rate until somebody frees space; and at
  least twice what is written in the reaction time, so that a stop line fits below it.
- stop line: half of the limit, or what 1.25 GB/s write in the reaction time, if that is less.
- soft limit: above the limit by what is written in the horizon. If a volume lacks that room now, by
  what is written in two minutes, or none.

Values are rounded up to two digits, so they never leave less room than the arithmetic says. Rules
and reasons are in docs/production.md and ``sidecar.throttle.recommended_stop_line``.

Example: 100 MB/s, an interval of 60 s and 8 h until somebody comes: 6 GB + 1 MB/s x 28,800 s =
34.8 GB, so the limit is 35 GB, the stop line 17 GB and the soft limit 220 GB.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_UP, Context
from typing import Final

from sidecar.cli.doctor.facts import Facts
from sidecar.throttle.limits.limit import two_digits
from sidecar.throttle.recommended_stop_line import ENOUGH_BYTES_PER_SECOND
from sidecar.throttle.sizes import size

LEAK: Final = 0.01
"""The part of the rate that brokers let through at the limit, with few connections."""

_SHORTEST_SOFT_S: Final = 120.0
_LESS: Final = (
    "come sooner (--away), poll more often (SIDECAR_STORAGE_CHECK_INTERVAL), or use larger volumes"
)


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to set.

    Attributes:
        settings: the variable of each setting -> its value.
        lines: the arithmetic, a line for each setting.
    """

    settings: Mapping[str, str]
    lines: tuple[str, ...]


def recommendation(facts: Facts) -> Recommendation | None:
    """The values for the rates that are known; None if none is, or a throttle has lowered it."""
    if not facts.filling:
        return None
    is_ratio = facts.rules.limit is not None and facts.rules.limit.name == "min_available_ratio"
    # A ratio is fewer bytes on a smaller volume.
    volume, rate = max(
        facts.filling, key=lambda each: each[1] / (each[0].total_bytes if is_ratio else 1)
    )
    if facts.throttled and not volume.rate_is_recorded:
        return None
    interval_s, reaction_s = facts.timing.interval_s, facts.timing.reaction_s
    written, trickle, until_acts = rate * interval_s, LEAK * rate * facts.away_s, rate * reaction_s
    limit = max(written + trickle, 2 * until_acts)
    stop = min(limit / 2, ENOUGH_BYTES_PER_SECOND * reaction_s)
    settings: dict[str, str] = {}

    whole = volume.total_bytes if is_ratio else 1

    def line(name: str, count: float, how: str, least: float = math.inf) -> str:
        value = two_digits(count / whole)
        if value * whole < least:
            value = _rounded_up(count / whole)
        key = f"SIDECAR_STORAGE_PER_VOLUME_{name}_MIN_AVAILABLE_{'RATIO' if is_ratio else 'BYTES'}"
        settings[key] = f"{value:g}" if is_ratio else f"{value:.0f}"
        return f"{key}={settings[key]}: {how}"

    per_s, share = f"{size(rate)}/s", limit / volume.total_bytes
    again = "" if volume.rate_is_recorded else " Also run this command again at the busiest time."
    lines = [
        f"By the volume that fills fastest, {volume}: {per_s} by {volume.rate_by}.{again}",
        line(
            "LIMIT",
            limit,
            f"{per_s} x {interval_s:.0f} s until the next poll + {LEAK:.0%} of it x"
            f" {facts.away_s / 3600:g} h until somebody frees space = {size(written)} +"
            f" {size(trickle)} = {size(written + trickle)}; at least 2 x {per_s} x"
            f" {reaction_s:.0f} s until brokers act = {size(2 * until_acts)}. Each connection may"
            " let 250 kB/s through in place of that 1% (docs/production.md).",
        ),
        line(
            "STOP",
            stop,
            f"half of the limit, or 1.25 GB/s x {reaction_s:.0f} s if that is less. It needs"
            f" {per_s} x {reaction_s:.0f} s = {size(until_acts)}, and the authorizer in brokers.",
            # Rounded down it might leave too little room.
            until_acts,
        ),
    ]
    # A limit in bytes is for the smallest volume too. A ratio of 1.0, rounded up, is no setting.
    smallest = volume if is_ratio else min(facts.volumes, key=lambda each: each.total_bytes)
    if limit >= 0.99 * smallest.total_bytes:
        none = (
            f"No limit fits: {smallest} has {size(smallest.total_bytes)}, and {size(limit)} are"
            f" needed: {_LESS}. The arithmetic: {lines[1].partition(': ')[2]}"
        )
        return Recommendation({}, (lines[0], none))
    room = min(each.available_bytes for each in facts.volumes) - limit
    horizons = (facts.horizon_s, min(facts.horizon_s, _SHORTEST_SOFT_S))
    horizon_s = next((each for each in horizons if rate * each < room), None)
    if horizon_s is not None:
        how = f"the limit + {per_s} x {horizon_s:.0f} s = {size(limit + rate * horizon_s)}, so that"
        how += " the factor falls step by step in that time. It is optional."
        lines.append(line("SOFT_LIMIT", limit + rate * horizon_s, how))
    if share > 0.5:
        lines.append(f"That limit is {share:.0%} of the volume: {_LESS}.")
    return Recommendation(settings, tuple(lines))


def _rounded_up(value: float) -> float:
    return float(Context(prec=2, rounding=ROUND_UP).create_decimal(repr(value)))
