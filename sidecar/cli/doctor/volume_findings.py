"""The findings about volumes: free bytes against the lines, an interval's writing, and retention.

Example: a limit of 5 GB, and a volume that fills by 100 MB/s. In an interval of 60 s it takes 6 GB,
so it can be full before the next poll: "fail".
"""

from collections.abc import Iterator, Mapping
from typing import Final

from sidecar.cli.doctor.facts import Facts, NotKnown, Volume
from sidecar.cli.doctor.verdicts import Finding, named
from sidecar.throttle.sizes import size

RETENTION: Final = (
    "log.retention.ms",
    "log.retention.minutes",
    "log.retention.hours",
    "log.retention.bytes",
    "log.retention.check.interval.ms",
    "log.segment.delete.delay.ms",
    "log.segment.bytes",
)
"""The configurations of brokers that ``retention`` reads."""

SLOW_S: Final = 600.0
"""Kafka's defaults free space within 6 min of a lower retention."""

_NAMES_MOST: Final = 5


def volumes(facts: Facts) -> Iterator[Finding]:
    """Compares the free bytes with limit and stop line, and the limit with the rates."""
    if not facts.volumes:
        yield Finding("volumes", "not known", "no volume was read", "mend the brokers first")
        return
    full = [each for each in facts.volumes if each.available_bytes <= each.limit_bytes]
    for volume in full[:_NAMES_MOST]:
        line = volume.stop_line_bytes
        at_line = line is not None and volume.available_bytes <= line
        which = f"stop line of {size(line or 0)}" if at_line else f"limit of {_limit(volume)}"
        what = f"{volume} has {size(volume.available_bytes)} available, at or below the {which}"
        page = "KafkaStopLineReached" if at_line else "KafkaProducersThrottled"
        yield Finding("volumes", "fail", what, f"docs/runbooks/{page}.md")
    if len(full) > _NAMES_MOST:
        yield Finding("volumes", "fail", f"{len(full) - _NAMES_MOST} more are at their limit")
    if not full:
        yield _nearest(min(facts.volumes, key=_room))
    yield _interval(facts)
    if facts.history is not None:
        what = f"the fill rates of the last 7 days: {facts.history.why}"
        yield Finding("history", "not known", what, "mend that, or use --prometheus")


def _nearest(volume: Volume) -> Finding:
    what = (
        f"the least room above the limit is on {volume}: {size(volume.available_bytes)} available,"
        f" a limit of {_limit(volume)}"
    )
    if volume.rate is None or volume.rate <= 0:
        return Finding("volumes", "ok", what)
    hours = _room(volume) / volume.rate / 3600
    what += f", {hours:.1f} h at {size(volume.rate)}/s"
    if hours < 1:
        to_do = "free space: docs/runbooks/KafkaVolumeLimitWithinHour.md"
        return Finding("volumes", "warn", what, to_do)
    return Finding("volumes", "ok", what)


def _interval(facts: Facts) -> Finding:
    name, timing = "interval", facts.timing
    if all(each.rate is None for each in facts.volumes):
        return Finding(name, "not known", "no fill rate is known", "run it again beside a sidecar")
    if not facts.filling:
        what = "no volume fills now, so nothing shows whether the limit leaves room for an interval"
        return Finding(name, "not known", what, "run it again at the busiest time")
    # A limit that is a ratio leaves more room on a larger volume.
    volume, rate = max(facts.filling, key=lambda each: each[1] / max(1.0, each[0].limit_bytes))
    what = (
        f"{volume} takes {size(rate)}/s by {volume.rate_by}: {size(rate * timing.interval_s)} in an"
        f" interval of {timing.interval_s:g} s, {size(rate * timing.reaction_s)} in the"
        f" {timing.reaction_s:.0f} s until brokers act; its limit is {_limit(volume)}"
    )
    to_do = "raise the limit as recommended below, or shorten SIDECAR_STORAGE_CHECK_INTERVAL"
    if rate * timing.interval_s >= volume.limit_bytes:
        return Finding(name, "fail", what, to_do)
    if rate * timing.reaction_s >= volume.limit_bytes:
        return Finding(name, "warn", what, to_do)
    return Finding(name, "ok", what)


def retention(facts: Facts) -> Iterator[Finding]:
    """How soon brokers' own settings free space; topics may have others."""
    alike: dict[tuple[str | None, ...], list[int]] = {}
    for broker in facts.active:
        if isinstance(broker.configs, NotKnown):
            what = f"the retention of {named([broker.id])}: {broker.configs.why}"
            yield Finding("retention", "not known", what, "grant DescribeConfigs on the cluster")
        else:
            values = tuple(broker.configs.get(key) for key in RETENTION)
            alike.setdefault(values, []).append(broker.id)
    for values, ids in alike.items():
        yield _retention(dict(zip(RETENTION, values, strict=True)), ids)
    yield from _segments(facts)


def _retention(configs: Mapping[str, str | None], ids: list[int]) -> Finding:
    late_s = sum(_number(configs, key) or 0 for key in RETENTION[4:6]) / 1000
    kept = {key: value for key in RETENTION[:4] if (value := configs[key]) is not None}
    in_force = next(iter(kept), "")
    what = f"{named(ids)}: deleted segments free space up to {late_s:.0f} s later"
    if late_s > SLOW_S:
        to_do = "lower log.retention.check.interval.ms or log.segment.delete.delay.ms"
        return Finding("retention", "warn", what, to_do)
    if kept.get(in_force) == "-1" and configs["log.retention.bytes"] in {None, "-1"}:
        what = f"{named(ids)}: nothing is ever deleted, unless topics have their own retention"
        return Finding("retention", "warn", what, "set log.retention.ms or log.retention.bytes")
    return Finding("retention", "ok", what)


def _segments(facts: Facts) -> Iterator[Finding]:
    """Whether the segments that retention never deletes can fill a volume by themselves."""
    if isinstance(facts.partitions, NotKnown):
        what = f"the number of partitions: {facts.partitions.why}"
        yield Finding("segments", "not known", what, "mend the brokers first")
        return
    configs = {each.id: each.configs for each in facts.brokers}
    for volume in facts.volumes:
        count = facts.partitions.get((volume.broker_id, volume.log_dir))
        mine = configs.get(volume.broker_id, NotKnown(""))
        if count is None or isinstance(mine, NotKnown):
            continue
        segment = _number(mine, "log.segment.bytes")
        if segment is None:
            continue
        partitions = "1 partition" if count == 1 else f"{count} partitions"
        what = (
            f"{volume} has {partitions} with segments of up to {size(segment)}; retention"
            f" never deletes the active ones, together up to {size(count * segment)} of"
            f" {size(volume.total_bytes)}"
        )
        if count * segment > max(0.0, volume.total_bytes - volume.limit_bytes):
            to_do = "lower log.segment.bytes, so that a lower retention frees enough"
            yield Finding("segments", "warn", what, to_do)
        else:
            yield Finding("segments", "ok", what)


def _number(configs: Mapping[str, str | None], key: str) -> int | None:
    value = configs.get(key)
    return int(value) if value is not None and value.lstrip("-").isdigit() else None


def _limit(volume: Volume) -> str:
    return size(volume.limit_bytes)


def _room(volume: Volume) -> float:
    return volume.available_bytes - volume.limit_bytes
