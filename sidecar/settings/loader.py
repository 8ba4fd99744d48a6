"""From environment and files to settings, or to all that is wrong with them.

The environment wins over the properties file, which wins over TOML; a value that is overridden is
not read. Values are checked one by one first, then together (``sidecar.settings.rules``). A rule
whose values are wrong already is not tried, so that one mistake is one line.

Example: ``SIDECAR_STORAGE_CHECK_INTERVAL=P5M`` and no limit are two lines: the question whether
PT5M was meant, and the two keys of which one is needed.
"""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from sidecar.errors import SettingsError
from sidecar.settings.forms import Entry
from sidecar.settings.kafka_admin import check_admin
from sidecar.settings.model import KafkaAdmin, Settings
from sidecar.settings.properties import read_broker_properties, read_client_properties
from sidecar.settings.report import Loaded, Problems, one_line, rows
from sidecar.settings.rules import check_together, remarks
from sidecar.settings.sources import PasswordFile, Source, read_environment, read_toml
from sidecar.settings.values import Place


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
    loaded = examine(environ=environ, config=config, properties=properties)
    _ = loaded.settings
    return loaded


def examine(
    *, environ: Mapping[str, str], config: Path | None = None, properties: Path | None = None
) -> Loaded:
    """As ``load``, but something missing or wrong is in the result."""
    found = _Reading(*_places(environ, config, properties))
    settings = check_together(found.each, found.problems) if found.is_readable else None
    notices = found.notices
    if settings is not None:
        notices += map(one_line, remarks(settings, found.problems))
    shown = rows(settings, found.problems)
    return Loaded(settings, shown, found.problems.lines(), tuple(notices))


def read_command_config(
    bootstrap_server: str | None, command_config: Path | None
) -> tuple[KafkaAdmin, tuple[str, ...]]:
    """How to reach the brokers as Kafka's own tools take it, and a line for what has no effect.

    The daemon's settings are not read, so that no credentials of one cluster go to another.

    Args:
        bootstrap_server: "host:port,host:port"; wins over the file's bootstrap.servers.
        command_config: a Java properties file with the admin client's keys.

    Raises:
        SettingsError: as of ``load``.
    """
    sources: list[Source] = []
    if bootstrap_server is not None:
        option = Source()
        entry = Entry(bootstrap_server, "--bootstrap-server", "command line")
        option.entries["kafka_admin_bootstrap_servers"] = entry
        sources.append(option)
    if command_config is not None:
        sources.append(read_client_properties(command_config))
    found = _Reading(sources, "command config")
    return found.admin(), tuple(found.notices)


def read_daemon_admin(
    environ: Mapping[str, str], config: Path | None, properties: Path | None
) -> KafkaAdmin:
    """Those of the daemon's own settings that are Kafka's; arguments and errors as of ``load``."""
    return _Reading(*_places(environ, config, properties)).admin()


def _places(
    environ: Mapping[str, str], config: Path | None, properties: Path | None
) -> tuple[list[Source], Place]:
    """The daemon's sources, the one that wins first, and where a setting would be added."""
    sources: list[Source] = [read_environment(environ)]
    sources += [read_broker_properties(path) for path in (properties,) if path is not None]
    sources += [read_toml(path) for path in (config,) if path is not None]
    return sources, "properties" if properties else "toml" if config else "environment"


class _Reading:
    """What the sources have, each value checked by itself.

    Attributes:
        each: the values; those that are wrong are problems and have their defaults.
        problems: what was found so far.
        is_readable: whether all sources were read; else what they may contain can't be missing.
        notices: what was set and has no effect.
    """

    def __init__(self, sources: Sequence[Source], place: Place) -> None:
        entries = ChainMap(*(dict(source.entries) for source in sources))
        self.problems = Problems(entries, place)
        self.problems.add_general(line for source in sources for line in source.problems)
        self.is_readable = all(source.readable for source in sources)
        self.notices = [one_line(notice) for source in sources for notice in source.notices]
        password = PasswordFile()
        self.each = self._validated([*sources, password])
        if password.failure:
            self.problems.add("kafka_admin_sasl_password_file", password.failure)

    def _validated(self, sources: Sequence[Source]) -> Settings:
        try:
            return Settings(_build_sources=(tuple(sources), {}))
        except ValidationError as error:
            details = error.errors(include_input=False, include_url=False)
        # The one place where pydantic's errors become ours: each is a form's own sentence.
        for detail in details:
            name = "_".join(map(str, detail["loc"]))
            self.problems.wrong.add(name)
            self.problems.add(name, str(detail["ctx"]["error"]))
            for source in sources:
                source.entries.pop(name, None)
        return Settings(_build_sources=(tuple(sources), {}))

    def admin(self) -> KafkaAdmin:
        """How to reach the brokers, where nothing else is needed; raises SettingsError."""
        admin = None
        if self.is_readable:
            admin = check_admin(self.each.kafka_admin, self.problems, is_required=True)
        if admin is None or self.problems.lines():
            raise SettingsError(self.problems.lines())
        return admin
