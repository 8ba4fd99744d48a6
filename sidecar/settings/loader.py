"""Loads the settings from environment and files, or reports all problems with them.

The environment takes precedence over the properties file, which takes precedence over TOML. A value
that is overridden is not read. Values are first checked one by one, then together
(``sidecar.settings.rules``). A rule is not checked if one of its values is wrong already, so each
mistake is one line.

Example: ``SIDECAR_STORAGE_CHECK_INTERVAL=P5M`` without a limit gives two lines: one asks whether
PT5M was meant, the other names the two keys of which one is required.
"""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from sidecar.errors import SettingsError
from sidecar.logs import printable
from sidecar.settings.forms import Entry
from sidecar.settings.kafka_admin import check_admin
from sidecar.settings.model import KafkaAdmin, Settings
from sidecar.settings.properties import read_broker_properties, read_client_properties
from sidecar.settings.report import Loaded, Problems, rows
from sidecar.settings.rules import check_together, remarks
from sidecar.settings.sources import PasswordFile, Source, read_environment, read_toml
from sidecar.settings.values import Place


def load(
    *,
    environ: Mapping[str, str],
    config: Path | None = None,
    properties: Path | None = None,
    replaced: tuple[str, ...] = (),
) -> Loaded:
    """Load the settings, or all problems with them.

    Args:
        environ: the environment variables; only ``SIDECAR_*`` is read.
        config: a TOML file.
        properties: a Java properties file.
        replaced: how the settings begin that the environment replaces, so that files' do not count.
    """
    sources, place = _places(environ, config, properties)
    for source in sources[1:]:
        for name in [each for each in source.entries if each.startswith(replaced)]:
            del source.entries[name]
    reading = _Reading(sources, place)
    problems, notices = reading.problems, reading.notices
    settings = check_together(reading.values, problems) if reading.is_readable else None
    if settings is not None:
        notices += map(printable, remarks(settings, problems))
    return Loaded(settings, rows(settings, problems), problems.lines(), tuple(notices))


def read_command_config(
    bootstrap_server: str | None, command_config: Path | None, environ: Mapping[str, str]
) -> tuple[KafkaAdmin, tuple[str, ...]]:
    """Read the options that Kafka's own tools have, and return notices for keys without effect.

    The daemon's settings are not read, so that the credentials of one cluster are never sent to
    another.

    Args:
        bootstrap_server: "host:port,host:port"; overrides the file's bootstrap.servers.
        command_config: a Java properties file with the admin client's keys.
        environ: the environment variables, for references of the file to them.

    Raises:
        SettingsError: with one line for each problem, none with a secret.
    """
    sources: list[Source] = []
    if bootstrap_server is not None:
        option = Source()
        entry = Entry(bootstrap_server, "--bootstrap-server", "command line")
        option.entries["kafka_admin_bootstrap_servers"] = entry
        sources.append(option)
    if command_config is not None:
        sources.append(read_client_properties(command_config, environ))
    reading = _Reading(sources, "command config")
    return reading.admin(), tuple(reading.notices)


def read_daemon_admin(
    environ: Mapping[str, str], config: Path | None, properties: Path | None
) -> KafkaAdmin:
    """Read only the daemon's ``kafka.admin`` settings; raises as ``read_command_config``."""
    return _Reading(*_places(environ, config, properties)).admin()


def read_daemon_values(
    environ: Mapping[str, str], config: Path | None, properties: Path | None
) -> Settings:
    """Read the daemon's settings; one that can't be used has its default."""
    return _Reading(*_places(environ, config, properties)).values


def _places(
    environ: Mapping[str, str], config: Path | None, properties: Path | None
) -> tuple[list[Source], Place]:
    """Return the daemon's sources by precedence, and the place where an operator adds settings."""
    sources: list[Source] = [read_environment(environ)]
    sources += [read_broker_properties(each, environ) for each in (properties,) if each is not None]
    sources += [read_toml(path) for path in (config,) if path is not None]
    return sources, "properties" if properties else "toml" if config else "environment"


class _Reading:
    """The content of the sources, each value checked by itself.

    Attributes:
        values: the values; a wrong value is a problem and is replaced by its default.
        problems: the problems so far.
        is_readable: whether all sources were read; otherwise no setting can be called missing.
        notices: one line for each setting that has no effect.
    """

    def __init__(self, sources: Sequence[Source], place: Place) -> None:
        entries = ChainMap(*(dict(source.entries) for source in sources))
        self.problems = Problems(entries, place)
        self.problems.add_general(line for source in sources for line in source.problems)
        self.is_readable = all(source.readable for source in sources)
        self.notices = [printable(notice) for source in sources for notice in source.notices]
        password = PasswordFile()
        self.values = self._validated([*sources, password])
        if password.failure:
            self.problems.add("kafka_admin_sasl_password_file", password.failure)

    def _validated(self, sources: Sequence[Source]) -> Settings:
        try:
            return Settings(_build_sources=(tuple(sources), {}))
        except ValidationError as error:
            details = error.errors(include_input=False, include_url=False)
        # Each of pydantic's errors contains the sentence of a form.
        for detail in details:
            name = "_".join(map(str, detail["loc"]))
            self.problems.wrong.add(name)
            self.problems.add(name, str(detail["ctx"]["error"]))
            for source in sources:
                source.entries.pop(name, None)
        return Settings(_build_sources=(tuple(sources), {}))

    def admin(self) -> KafkaAdmin:
        """Return how to reach the brokers, or raise SettingsError. No other setting is needed."""
        admin = None
        if self.is_readable:
            admin = check_admin(self.values.kafka_admin, self.problems, is_required=True)
        if admin is None or self.problems.lines():
            raise SettingsError(self.problems.lines())
        return admin
