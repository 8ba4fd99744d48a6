"""Helpers of the settings' tests: good settings, and the problems of bad ones."""

from pathlib import Path

from sidecar.settings import KafkaAdmin, Loaded, load

STATIC = "client.quota.callback.static."
ADMIN = "SIDECAR_KAFKA_ADMIN_"
BYTES = "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES"
STOP_BYTES = "SIDECAR_STORAGE_PER_VOLUME_STOP_MIN_AVAILABLE_BYTES"
STOP_RATIO = "SIDECAR_STORAGE_PER_VOLUME_STOP_MIN_AVAILABLE_RATIO"
RATIO = "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_RATIO"

GOOD = {f"{ADMIN}BOOTSTRAP_SERVERS": "broker-0:9092", RATIO: "0.05"}
"""The fewest settings that a sidecar starts with."""


def loaded(
    environ: dict[str, str] | None = None,
    *,
    config: Path | None = None,
    properties: Path | None = None,
) -> Loaded:
    """The good settings with some more in the environment; raises if they are refused."""
    found = load(environ={**GOOD, **(environ or {})}, config=config, properties=properties)
    _ = found.settings
    return found


def admin(environ: dict[str, str]) -> KafkaAdmin:
    """The good settings' way to reach Kafka, with these besides."""
    kafka_admin = loaded(environ).settings.kafka_admin
    assert kafka_admin is not None
    return kafka_admin


def problems(
    environ: dict[str, str],
    *,
    config: Path | None = None,
    properties: Path | None = None,
) -> tuple[str, ...]:
    """The exact problems with this environment and these files; () when it is accepted."""
    return load(environ=environ, config=config, properties=properties).problems


def problem(environ: dict[str, str]) -> str:
    """The one problem that the good settings have with these in the environment besides."""
    (line,) = problems({**GOOD, **environ})
    return line
