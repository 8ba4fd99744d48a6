"""From environment and files to settings, or to all that is wrong with them.

The environment wins over the properties file, which wins over TOML; a value that is overridden is
not read. Values are checked one by one first, then together: exactly one limit, a minimum within
the interval, credentials that fit. A rule whose values are wrong already is not tried, so that one
mistake is one line.

Example: ``SIDECAR_STORAGE_CHECK_INTERVAL=P5M`` and no limit are two lines: the question whether
PT5M was meant, and the two keys of which one is needed.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from sidecar.errors import SettingsError
from sidecar.quotas.producer_ids.id_counts import ProducerIdSettings
from sidecar.quotas.rate import QuotaWindow
from sidecar.settings.durations import format_duration
from sidecar.settings.environment import read_environment
from sidecar.settings.fields import RawSettings
from sidecar.settings.java_properties import read_properties
from sidecar.settings.kafka_admin import resolve_kafka_admin
from sidecar.settings.loaded import Examined, Loaded
from sidecar.settings.problem_list import Problems, one_line
from sidecar.settings.raw_values import Entry, Reading
from sidecar.settings.report import rows
from sidecar.settings.tls import unused_tls
from sidecar.settings.toml import read_toml
from sidecar.settings.values import (
    HistorySection,
    HostPort,
    MutationSection,
    Place,
    ProducerIdSection,
    Settings,
)
from sidecar.throttle.leak import LeakRules
from sidecar.throttle.limits import LIMIT_TYPES, Limit, MinAvailableBytes, MinAvailableRatio
from sidecar.throttle.slope import SlopeRules

SAFE_VALIDITY_S = 5.0
"""The shortest validity that outlasts an answer which is lost: 3 s until its request is sent anew
(sidecar/kafka/source.py), a pause and a dial."""

_INTERVAL = "storage_check_interval"
_MINIMUM = "storage_check_interval_minimum"


def _fields(prefix: str) -> dict[str, type[Limit]]:
    """The fields with a prefix; a type of limit need not have one of each."""
    fields = {f"{prefix}_{each.name}": each for each in LIMIT_TYPES}
    return {field: each for field, each in fields.items() if field in RawSettings.model_fields}


_LIMITS = _fields("storage_per_volume_limit")
_SOFT_LIMITS = _fields("storage_per_volume_soft_limit")
_STOPS = _fields("storage_per_volume_stop")
_MARGINS = {
    MinAvailableBytes.name: "storage_release_margin_bytes",
    MinAvailableRatio.name: "storage_release_margin_ratio",
}
_SERVERS = "kafka_admin_bootstrap_servers"


def load(
    *, environ: Mapping[str, str], config: Path | None = None, properties: Path | None = None
) -> Loaded:
    """Loads the settings.

    Args:
        environ: the environment variables; only ``SIDECAR_*`` is read.
        config: a TOML file.
        properties: a Java properties file.

    Raises:
        SettingsError: with every problem found, one line each and no secret in any.
    """
    found = examine(environ=environ, config=config, properties=properties)
    if found.settings is None:
        raise SettingsError(found.problems)
    return Loaded(found.settings, found.rows, found.notices)


def examine(
    *, environ: Mapping[str, str], config: Path | None = None, properties: Path | None = None
) -> Examined:
    """As ``load``, but something missing or wrong is in the result."""
    readings = read_all(environ, config, properties)
    entries = in_force(readings)
    problems = Problems(entries, settings_source(config, properties))
    for reading in readings:
        for problem in reading.problems:
            problems.add_general(problem)
    raw = check_each(readings, problems)
    settings = None
    # What an unreadable file may contain can't be called missing.
    if all(reading.readable for reading in readings):
        settings = _check_together(raw, problems)
    notices = [notice for reading in readings for notice in reading.notices]
    if settings is not None:
        notices += [*unused_tls(raw, problems), *_short_validity(settings, problems)]
    shown = rows(entries, settings, understood=raw.model_fields_set, problems=problems)
    return Examined(settings, shown, problems.lines(), tuple(map(one_line, notices)))


def read_all(
    environ: Mapping[str, str], config: Path | None, properties: Path | None
) -> list[Reading]:
    """Each place's reading, the one that wins first."""
    readings = [read_environment(environ)]
    if properties is not None:
        readings.append(read_properties(properties))
    if config is not None:
        readings.append(read_toml(config))
    return readings


def settings_source(config: Path | None, properties: Path | None) -> Place:
    """Where a setting would be added: in the file that there is, the one that wins first."""
    if properties is not None:
        return "properties"
    return "toml" if config is not None else "environment"


def in_force(readings: list[Reading]) -> dict[str, Entry]:
    """For each setting that was set, the entry that wins."""
    return {
        field: entry for reading in reversed(readings) for field, entry in reading.entries.items()
    }


def check_each(readings: list[Reading], problems: Problems) -> RawSettings:
    """The values; those that are wrong by themselves are problems and have their defaults."""
    values = {field: entry.value for field, entry in in_force(readings).items()}
    try:
        return RawSettings.model_validate(values)
    except ValidationError as error:
        wrong = {
            str(detail["loc"][0]): str(detail["ctx"]["error"])
            for detail in error.errors(include_input=False, include_url=False)
        }
    for field, sentence in wrong.items():
        problems.add(field, sentence)
    return RawSettings.model_validate(
        {field: value for field, value in values.items() if field not in wrong}
    )


def _check_together(raw: RawSettings, problems: Problems) -> Settings | None:
    """The settings as the daemon uses them; None when a problem leaves nothing to use."""
    interval_known = _was_right(_INTERVAL, raw, problems)
    enabled = raw.storage_check_interval > 0.0
    limit = _limit(raw, required=interval_known and enabled, problems=problems)
    stop_line = _stop_line(raw, limit, problems)
    slope = _slope(raw, limit, problems)
    minimum = _minimum(raw, check=interval_known and enabled, problems=problems)
    kafka_admin = resolve_kafka_admin(raw, required=enabled, problems=problems)
    producer_ids = _producer_ids(raw, problems)
    if raw.observers is not None and not raw.peers:
        problems.add("observers", f"needs {problems.name('peers')}: the addresses of all sidecars")
    if problems.lines() or producer_ids is None:
        return None
    return Settings(
        check_interval_s=raw.storage_check_interval,
        check_interval_minimum_s=minimum,
        kafka_admin=kafka_admin,
        fallback=raw.throttle_factor_fallback,
        validity_s=raw.throttle_factor_validity_duration,
        leak_rules=LeakRules(
            horizon_s=raw.throttle_emergency_horizon,
            pause_max_s=raw.throttle_emergency_pause_max,
        ),
        mode=raw.mode,
        scope=raw.throttle_scope,
        limit=limit,
        stop_line=stop_line,
        slope=slope,
        http_listen=raw.http_listen,
        metrics_listen=_own_address(raw),
        state_file=raw.state_file,
        token_file=raw.token_file,
        request_log_file=raw.request_log_file,
        peers=raw.peers or (),
        observers=raw.observers,
        producer_ids=producer_ids,
        mutations=MutationSection(
            raw.controller_mutations_algorithm,
            QuotaWindow(
                raw.controller_quota_window_num, raw.controller_quota_window_size_seconds * 1000
            ),
        ),
        history=HistorySection(raw.history_dir, raw.history_max_bytes),
        log_format=raw.log_format,
        log_level=raw.log_level,
    )


def _was_right(field: str, raw: RawSettings, problems: Problems) -> bool:
    """Whether a setting has its value because it was meant, not because another was wrong."""
    return field in raw.model_fields_set or not problems.is_set(field)


def _limit(raw: RawSettings, *, required: bool, problems: Problems) -> Limit | None:
    count = sum(map(problems.is_set, _LIMITS))
    if count > 1 or (count == 0 and required):
        first, *others = _LIMITS
        names = " and ".join(map(problems.name, others))
        are_set = f"{count} are" if count else "none is"
        problems.add(first, f"exactly one of this and {names} is needed; {are_set} set")
    limit = _first(_LIMITS, raw)
    return limit if limit is None or count > 1 else _with_margin(limit, raw, problems)


def _with_margin(limit: Limit, raw: RawSettings, problems: Problems) -> Limit:
    for name, field in _MARGINS.items():
        margin: float | None = getattr(raw, field)
        if margin is None:
            continue
        if limit.name != name:
            where = _limit_name(limit, problems)
            problems.add(field, f"the limit, {where}, is in another unit: the margin needs that")
        elif name == MinAvailableRatio.name and limit.value + margin >= 1.0:
            problems.add(
                field,
                f"{limit.value} and {margin} of a volume are all of it: nothing would release",
            )
        else:
            limit = replace(limit, release_margin=margin)
    return limit


def _stop_line(raw: RawSettings, limit: Limit | None, problems: Problems) -> Limit | None:
    field, line = _one_at_most(_STOPS, raw, problems)
    if limit is not None and line is not None and _is_comparable(line, limit, problems):
        where = _where(line.value, limit.value)
        if where != "below":
            problems.add(
                field,
                f"{line.value} is {where} the limit, {limit.value} in "
                f"{_limit_name(limit, problems)}: the stop line must be below it",
            )
    return line


def _slope(raw: RawSettings, limit: Limit | None, problems: Problems) -> SlopeRules | None:
    field, soft = _one_at_most(_SOFT_LIMITS, raw, problems)
    if soft is None:
        return None
    if limit is not None and _is_comparable(soft, limit, problems):
        where = _where(soft.value, limit.value + limit.release_margin)
        if where != "above":
            and_margin = " and its release margin" if limit.release_margin else ""
            problems.add(
                field,
                f"{soft.value} is {where} the limit{and_margin}, {limit.value} in "
                f"{_limit_name(limit, problems)}: the soft limit must be above it",
            )
    return SlopeRules(soft, raw.throttle_horizon, raw.throttle_rise_per_minute / 60.0)


def _one_at_most(
    kinds: Mapping[str, type[Limit]], raw: RawSettings, problems: Problems
) -> tuple[str, Limit | None]:
    """The field of the one that is set, and its limit; None where none is, or several are."""
    first, *others = kinds
    are_set = [field for field in kinds if problems.is_set(field)]
    if len(are_set) > 1:
        names = " and ".join(map(problems.name, others))
        problems.add(first, f"only one of this and {names} can be set; {len(are_set)} are")
        return first, None
    return next(iter(are_set), first), _first(kinds, raw)


def _is_comparable(line: Limit, limit: Limit, problems: Problems) -> bool:
    # Bytes and ratios can be compared on a volume alone; and of two limits one is a mistake.
    return type(line) is type(limit) and sum(map(problems.is_set, _LIMITS)) == 1


def _where(value: float, limit: float) -> str:
    if value == limit:
        return "at"
    return "above" if value > limit else "below"


def _limit_name(limit: Limit, problems: Problems) -> str:
    return problems.name(f"storage_per_volume_limit_{limit.name}")


def _first(kinds: Mapping[str, type[Limit]], raw: RawSettings) -> Limit | None:
    """The limit of the first of these fields that is set."""
    values = ((kind, getattr(raw, field)) for field, kind in kinds.items())
    return next((kind(value) for kind, value in values if value is not None), None)


def _minimum(raw: RawSettings, *, check: bool, problems: Problems) -> float:
    interval = raw.storage_check_interval
    minimum = raw.storage_check_interval_minimum
    if minimum is None:
        return min(1.0, interval)
    if check and minimum > interval:
        problems.add(
            _MINIMUM,
            f"{format_duration(minimum)} is longer than the interval,"
            f" {format_duration(interval)} in {problems.name(_INTERVAL)}",
        )
    return minimum


def _producer_ids(raw: RawSettings, problems: Problems) -> ProducerIdSection | None:
    longest_s = raw.producer_id_quota_longest_hold
    window_s = raw.producer_id_quota_window_size_seconds
    try:
        counting = ProducerIdSettings(
            window_num=raw.producer_id_quota_window_num,
            window_size_s=window_s,
            false_positive_rate=raw.producer_id_quota_false_positive_rate,
            most_bytes=raw.producer_id_quota_memory_bytes,
            most_throttle_s=float(window_s) if longest_s is None else longest_s,
        )
    except ValueError as error:
        # Each by itself is right: what is left is memory too small for one filter.
        problems.add("producer_id_quota_memory_bytes", str(error))
        return None
    return ProducerIdSection(
        rate=raw.producer_ids_rate,
        quota_file=raw.producer_id_quota_file,
        counting=counting,
        ids_count=raw.producer_id_quota_counts,
        active_interval_s=raw.producer_id_quota_active_interval,
        broker_id=raw.broker_id,
        cleanup_s=raw.producer_id_quota_cache_cleanup_scheduler_interval_ms / 1000,
    )


def _own_address(raw: RawSettings) -> HostPort | None:
    """The metrics' own address; None when it is the HTTP API's."""
    # Port 0 is another free port each time.
    same = raw.metrics_listen == raw.http_listen and raw.http_listen.port != 0
    return None if same else raw.metrics_listen


def _short_validity(settings: Settings, problems: Problems) -> tuple[str, ...]:
    longest = max(settings.check_interval_s, SAFE_VALIDITY_S)
    if settings.check_interval_s == 0.0 or settings.validity_s >= longest:
        return ()
    name = problems.name("throttle_factor_validity_duration")
    message = (
        f"the check interval {format_duration(longest)}: the fallback may apply between two polls"
        if longest > SAFE_VALIDITY_S
        else f"{format_duration(longest)}: a lost answer of one broker may bring the fallback"
    )
    return (f"{name}: {format_duration(settings.validity_s)} is shorter than {message}",)
