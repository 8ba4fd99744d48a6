"""Checks rules for several settings: one limit, lines in order, a minimum within the interval.

Example: a stop line of 5,000 bytes under a limit of 5,000 is one problem, which names both.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, get_args

from sidecar.formats.quantities import format_duration
from sidecar.settings.forms import Role, fields_of
from sidecar.settings.kafka_admin import check_admin, unused_tls
from sidecar.settings.model import Settings
from sidecar.settings.report import Problems
from sidecar.throttle.limits import Limit, MinAvailableRatio

SAFE_VALIDITY_S: Final = 5.0
"""The shortest validity that outlasts a lost answer: 3 s until its request is sent again
(sidecar/kafka/source.py), a pause and a new connection."""

_OBSERVERS: Final = 3
"""How many sidecars poll all brokers where all sidecars know each other."""
_INTERVAL: Final = "storage_check_interval"
_MINIMUM: Final = "storage_check_interval_minimum"

_SAFE_FOR_TOKENS: Final = ("https://", "http://127.0.0.1:", "http://localhost:")


def check_together(values: Settings, problems: Problems) -> Settings | None:
    """Return the settings as the daemon uses them; None when there are problems.

    Args:
        values: the values, each valid by itself.
        problems: gets each conflict between settings.
    """
    interval_s, minimum_s = values.check_interval_s, values.check_interval_minimum_s
    polls = interval_s > 0.0 and _INTERVAL not in problems.wrong
    from_source = problems.are_set("factor_source") > 0
    if from_source:
        _check_no_limits(values, problems)
    else:
        _check_limits(values, problems, is_required=polls)
    if not problems.are_set(_MINIMUM):
        minimum_s = min(minimum_s, interval_s)
    elif polls and minimum_s > interval_s:
        longer = f"{format_duration(minimum_s)} is longer than the interval"
        where = f"{format_duration(interval_s)} in {problems.name(_INTERVAL)}"
        problems.add(_MINIMUM, f"{longer}, {where}")
    admin = check_admin(
        values.kafka_admin, problems, is_required=interval_s > 0.0 and not from_source
    )
    try:
        _ = values.id_counting
    except ValueError as error:
        # Each value is valid by itself, so the memory must be too small for one filter.
        problems.add("producer_id_quota_memory_bytes", str(error))
    _check_quotas(values, problems, has_brokers=admin is not None)
    if values.observers is not None and not values.peers:
        problems.add("observers", f"needs {problems.name('peers')}: the addresses of all sidecars")
    _check_needs(values, problems)
    if problems.lines():
        return None
    update = {"check_interval_minimum_s": minimum_s, "kafka_admin": admin}
    if values.observers is None and values.peers:
        update["observers"] = _OBSERVERS
    if values.metrics_listen == values.http_listen and values.http_listen.port != 0:
        # The HTTP API serves the metrics then. Port 0 is a different port for each address.
        update["metrics_listen"] = None
    return values.model_copy(update=update)


def remarks(settings: Settings, problems: Problems) -> Iterator[str]:
    """Yield a notice for each valid setting that may surprise the operator."""
    yield from unused_tls(settings.kafka_admin, problems)
    interval_s, validity_s = settings.check_interval_s, settings.validity_s
    if interval_s > 0.0 and validity_s < max(interval_s, SAFE_VALIDITY_S):
        name = problems.name("throttle_factor_validity_duration")
        if interval_s > SAFE_VALIDITY_S:
            interval = format_duration(interval_s)
            than = f"the check interval {interval}: the fallback may apply between two polls"
        else:
            safe = format_duration(SAFE_VALIDITY_S)
            than = f"{safe}: a lost answer of one broker may bring the fallback"
        yield f"{name}: {format_duration(validity_s)} is shorter than {than}"


def _check_needs(values: Settings, problems: Problems) -> None:
    for name, needed in (
        ("http_ssl_key_file", "http_ssl_certificate_file"),
        ("http_ssl_client_ca_file", "http_ssl_certificate_file"),
        ("aiven_project", "aiven_service"),
        ("aiven_service", "aiven_token_file"),
        ("aiven_token_file", "aiven_project"),
    ):
        if getattr(values, name) is not None and getattr(values, needed) is None:
            problems.add(name, f"needs {problems.name(needed)}")
    for name in ("aiven_url", "kubernetes_url"):
        if not getattr(values, name).startswith(_SAFE_FOR_TOKENS):
            problems.add(name, "needs https, since the token would be sent unencrypted")
    url, file = "webhook_url", "webhook_url_file"
    are_set = sum(getattr(values, name) is not None for name in (url, file))
    if are_set == 2:
        problems.add(file, f"remove it, or {problems.name(url)}")
    if values.webhook_secret_file is not None and not are_set:
        problems.add("webhook_secret_file", f"needs {problems.name(url)}")
    if values.relief_mode == "delete":
        for needed in ("relief_file", "state_file"):
            if getattr(values, needed) is None:
                problems.add("relief_mode", f"delete needs {problems.name(needed)}")


def _check_no_limits(values: Settings, problems: Problems) -> None:
    name = problems.name("factor_source")
    for role in get_args(Role):
        for field in fields_of(type(values), role):
            if problems.are_set(field):
                problems.add(field, f"has no effect with {name}, which decides without volumes")
    if values.scope == "volume":
        problems.add("throttle_scope", f"can't be volume with {name}, which decides for all")


def _check_quotas(values: Settings, problems: Problems, *, has_brokers: bool) -> None:
    """Check what sets client quotas in Kafka."""
    needed = f"needs {problems.name('kafka_admin_bootstrap_servers')}"
    if values.quota_source is not None and not has_brokers:
        problems.add("quota_source", needed)
    name = problems.name("enforcement")
    if values.enforcement != "client-quotas":
        for field in ("aiven_project", "broker_metrics_urls"):
            if getattr(values, field):
                problems.add(field, f"has no effect without client-quotas in {name}")
        return
    if not has_brokers and values.check_interval_s > 0.0:
        problems.add("enforcement", f"client-quotas {needed}")
    if values.scope == "volume" and values.request_log_file is None:
        needed = f"needs {problems.name('request_log_file')}"
        problems.add("throttle_scope", f"volume {needed} with client-quotas in {name}")
    if values.quota_source is not None:
        text = f"can't be set with client-quotas in {name}: both would set the same quotas"
        problems.add("quota_source", text)


def _check_limits(values: Settings, problems: Problems, *, is_required: bool) -> None:
    fields = list(fields_of(type(values), "limit"))
    count = problems.are_set(*fields)
    if count > 1 or (count == 0 and is_required):
        are_set = f"{count} are" if count else "none is"
        others = " and ".join(map(problems.name, fields[1:]))
        problems.add(fields[0], f"exactly one of this and {others} is needed; {are_set} set")
    stop_lines = _one_at_most("stop line", values, problems)
    soft_limits = _one_at_most("soft limit", values, problems)
    limits = values.made("limit")
    if count != 1 or not limits:
        return  # without exactly one valid limit, nothing can be compared
    (field, limit), *_ = limits.items()
    name = problems.name(field)
    for field, margin in values.made("release margin").items():
        if type(margin) is not type(limit):
            problems.add(field, f"must have the unit of the limit, {name}")
        elif isinstance(limit, MinAvailableRatio) and limit.value + margin.value >= 1.0:
            both = f"{margin.value} and the limit, {limit.value}, are a whole volume or more"
            problems.add(field, f"{both}: producers would never be released")
        else:
            limit = replace(limit, release_margin=margin.value)
    released = limit.value + limit.release_margin
    margin_too = " and its release margin" if limit.release_margin else ""
    # Bytes and ratios can only be compared for a given volume, so lines of two types are not.
    for field, line in stop_lines.items():
        if type(line) is type(limit) and line.value >= limit.value:
            where = f"{_where(line.value, limit.value)} the limit, {limit.value} in {name}"
            problems.add(field, f"{line.value} is {where}: the stop line must be below it")
    for field, soft in soft_limits.items():
        if type(soft) is type(limit) and soft.value <= released:
            where = f"{_where(soft.value, released)} the limit{margin_too}, {limit.value} in {name}"
            problems.add(field, f"{soft.value} is {where}: the soft limit must be above it")


def _one_at_most(role: Role, values: Settings, problems: Problems) -> dict[str, Limit]:
    """Return the limit of this role by its field; empty if none or several are set."""
    fields = list(fields_of(type(values), role))
    if (count := problems.are_set(*fields)) <= 1:
        return values.made(role)
    names = " and ".join(map(problems.name, fields[1:]))
    problems.add(fields[0], f"only one of this and {names} can be set; {count} are")
    return {}


def _where(value: float, limit: float) -> str:
    return "at" if value == limit else "above" if value > limit else "below"
