"""How a command reaches the brokers: as Kafka's own tools do, or by the daemon's settings.

Kafka's tools take ``--bootstrap-server`` and ``--command-config``, a Java properties file with the
admin client's keys and no prefix. With either of the two the daemon's settings are not read, so
that no credentials of one cluster are sent to another. Such files are shared with producers and
consumers: keys that mean nothing here are named in one notice, as Kafka's tools warn of them.

Example: a file with ``security.protocol=SSL`` and ``acks=all``, and ``--bootstrap-server b:9093``,
are an admin of one address and TLS, and the notice that ``acks`` has no effect.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sidecar.errors import SettingsError
from sidecar.settings import keys
from sidecar.settings.foreign import ADMIN_KEYS, admin_verdict
from sidecar.settings.java_properties import PLACEHOLDER, parse_properties
from sidecar.settings.kafka_admin import resolve_kafka_admin
from sidecar.settings.loader import check_each, in_force, read_all, settings_source
from sidecar.settings.problem_list import Problems, one_line
from sidecar.settings.raw_values import Entry, Reading
from sidecar.settings.values import KafkaAdmin, Place

_FIELD_PREFIX = "kafka_admin_"
_SERVERS = f"{_FIELD_PREFIX}bootstrap_servers"


@dataclass(frozen=True, slots=True)
class LoadedAdmin:
    """How to reach the brokers.

    Attributes:
        admin: addresses, TLS and credentials.
        notices: one line each: what was set and has no effect.
    """

    admin: KafkaAdmin
    notices: tuple[str, ...] = ()


def read_command_config(bootstrap_server: str | None, command_config: Path | None) -> LoadedAdmin:
    """As Kafka's tools take it.

    Args:
        bootstrap_server: "host:port,host:port"; wins over the file's bootstrap.servers.
        command_config: a Java properties file.

    Raises:
        SettingsError: with every problem found, one line each and no secret in any.
    """
    reading = _read_file(command_config) if command_config is not None else Reading({})
    if bootstrap_server is not None:
        raw = Entry(bootstrap_server, "--bootstrap-server", "command line")
        entries = {**reading.entries, _SERVERS: raw}
        reading = Reading(entries, reading.problems, reading.notices, reading.readable)
    return _resolve([reading], "command config")


def read_daemon_admin(
    environ: Mapping[str, str], config: Path | None, properties: Path | None
) -> LoadedAdmin:
    """Those of the daemon's own settings that are Kafka's; arguments and errors as of ``load``."""
    readings = read_all(environ, config, properties)
    # Notices of the daemon's other settings are logged when it starts.
    return LoadedAdmin(_resolve(readings, settings_source(config, properties)).admin)


def _resolve(readings: list[Reading], place: Place) -> LoadedAdmin:
    problems = Problems(in_force(readings), place)
    for reading in readings:
        for problem in reading.problems:
            problems.add_general(problem)
    raw = check_each(readings, problems)
    admin = None
    # What an unreadable file may contain can't be called missing.
    if all(reading.readable for reading in readings):
        admin = resolve_kafka_admin(raw, required=True, problems=problems)
    lines = problems.lines()
    if lines or admin is None:
        raise SettingsError(lines)
    notices = [notice for reading in readings for notice in reading.notices]
    return LoadedAdmin(admin, tuple(map(one_line, notices)))


def _read_file(path: Path) -> Reading:
    """A file of the Java admin client's keys; one that can't be read is a problem."""
    written: dict[str, Entry] = {}
    try:
        for entry in parse_properties(path):
            written[entry.key] = entry
    except OSError as error:
        return _unreadable(path, error.strerror or "the reason is unknown")
    except ValueError as error:
        return _unreadable(path, str(error))
    entries: dict[str, Entry] = {}
    problems: list[str] = []
    unused: list[str] = []
    for key, entry in written.items():
        field = _FIELD_PREFIX + key.replace(".", "_")
        known = field in keys.FIELDS and key == keys.dotted(field).removeprefix(keys.ADMIN_PREFIX)
        if known and PLACEHOLDER.search(str(entry.value)):
            problems.append(f"{entry}: config providers aren't supported; set the value itself")
        elif known:
            entries[field] = entry
        elif key not in ADMIN_KEYS:
            unused.append(key)
        elif (verdict := admin_verdict(key, entry.value)).refused:
            problems.append(f"{entry} {verdict.sentence}")
    notices = (f"{path}: no effect here: {', '.join(unused)}",) if unused else ()
    return Reading(entries, tuple(problems), notices)


def _unreadable(path: Path, why: str) -> Reading:
    return Reading({}, (f"the command config {path} can't be read: {why}",), readable=False)
