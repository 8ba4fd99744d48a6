"""What each place has: the environment, a TOML file, a Java properties file, a password's file.

Each is a source of pydantic-settings, which merges them: of a setting that two have, the first
source's entry wins. A source is complete even when something in it is wrong: its problems are
beside it, so that those of all places can be shown together. Every unknown key in a namespace that
is ours is a mistake.

Example: an environment with ``SIDECAR_LOG_LEVEL=debug`` is one entry for ``log_level`` with origin
"environment".
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import PydanticBaseSettingsSource

from sidecar.settings import keys
from sidecar.settings.foreign import ADMIN_KEYS, admin_verdict
from sidecar.settings.forms import Entry
from sidecar.settings.model import Settings


class Source(PydanticBaseSettingsSource):
    """One place.

    Attributes:
        entries: by the setting's name.
        problems: one line each: keys that nobody knows, and files that can't be read.
        notices: one line each: keys that are accepted and have no effect.
        readable: False when the place could not be read, so that nothing can be said to be missing.
    """

    def __init__(self) -> None:
        super().__init__(Settings)
        self.entries: dict[str, Entry] = {}
        self.problems: list[str] = []
        self.notices: list[str] = []
        self.readable = True

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Not used: ``__call__`` gives all values at once."""
        raise NotImplementedError

    def __call__(self) -> dict[str, Any]:
        """The entries as ``Settings`` takes them."""
        values: dict[str, Any] = {}
        for name, entry in self.entries.items():
            *tables, key = keys.FIELDS[name].path
            table = values
            for each in tables:
                table = table.setdefault(each, {})
            table[key] = entry
        return values

    def unreadable(self, problem: str) -> None:
        """What is missing from this place may be in the part that was not read."""
        self.problems.append(problem)
        self.readable = False

    def take_admin_key(self, key: str, entry: Entry) -> None:
        """One of ``ADMIN_KEYS``: it has no effect here, or is refused."""
        is_refused, sentence = admin_verdict(key, entry.value)
        (self.problems if is_refused else self.notices).append(f"{entry} {sentence}")

    def refuse_unknown(self, entry: Entry, known: Iterable[str], prefix: str = "") -> None:
        """A key that nobody knows; its value is not shown."""
        nearest = prefix + keys.nearest(entry.key.removeprefix(prefix), known)
        self.problems.append(f"{entry} is not a setting; the nearest is {nearest}")


class Environment(Source):
    """Variables ``SIDECAR_*``, but for those that Kubernetes injects for a Service called sidecar."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__()
        fields = {keys.environment_key(field): field for field in keys.FIELDS}
        foreign = {
            keys.environment_key(keys.ADMIN_PREFIX + key).replace(".", "_"): key
            for key in ADMIN_KEYS
        }
        for variable, value in sorted(environ.items()):
            if not variable.startswith(keys.ENVIRONMENT_PREFIX) or keys.is_injected(variable):
                continue
            entry = Entry(value, variable, "environment")
            if variable in fields:
                self.entries[fields[variable]] = entry
            elif variable in foreign:
                self.take_admin_key(foreign[variable], entry)
            else:
                self.refuse_unknown(entry, [*fields, *foreign])
                if keys.looks_injected(variable):
                    self.problems[-1] += (
                        " (if Kubernetes injects it, set enableServiceLinks: false in the pod)"
                    )


class TomlFile(Source):
    """A TOML file, whose words may be grouped in tables in any way."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        try:
            document = tomllib.loads(path.read_bytes().decode())
        except OSError as error:
            self.unreadable(f"the TOML file {path} can't be read: {error.strerror}")
        except UnicodeDecodeError as error:
            self.unreadable(f"the TOML file {path} is not UTF-8 at byte {error.start}")
        except tomllib.TOMLDecodeError as error:
            self.unreadable(f"the TOML file {path} can't be read: {error}")
        else:
            self._sort(document, f"toml {path}")

    def _sort(self, document: Mapping[str, Any], origin: str) -> None:
        foreign = {(keys.ADMIN_PREFIX + key).replace(".", "_"): key for key in ADMIN_KEYS}
        for key, value in _leaves(document, ""):
            entry, field = Entry(value, key, origin), key.replace(".", "_")
            if value == {} and any(known.startswith(f"{field}_") for known in keys.FIELDS):
                continue  # a table in which nothing is set
            if field in self.entries:
                self.problems.append(
                    f"{self.entries[field]} and {entry} are one setting, set twice"
                )
            elif field in keys.FIELDS:
                self.entries[field] = entry
            elif field in foreign:
                self.take_admin_key(foreign[field], entry)
            else:
                self.refuse_unknown(entry, map(keys.toml_key, keys.FIELDS))


def _leaves(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Every value and every empty table with its dotted path."""
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


class PasswordFile(Source):
    """The password in the file that ``kafka.admin.sasl.password.file`` names.

    It is the last source, since what the others have decides whether the file is read: not for
    another mechanism, nor besides credentials that are set. Its text counts without the line end
    that editors and ``echo`` add.

    Attributes:
        failure: why there is none, as it follows the setting's name; "" if there is, or no file.
    """

    failure = ""

    def __call__(self) -> dict[str, Any]:
        """The password, if it is to be read and can be."""
        admin: Mapping[str, Entry] = self.current_state.get("kafka_admin", {})
        written = {name: str(entry.value).upper() for name, entry in admin.items()}
        file = admin.get("sasl_password_file")
        is_used = (
            written.get("security_protocol") in {"SASL_PLAINTEXT", "SASL_SSL"}
            and written.get("sasl_mechanism") in {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}
            and not admin.keys() & {"sasl_password", "sasl_jaas_config"}
        )
        if file is not None and is_used:
            try:
                self._read(file)
            except OSError as error:
                self.failure = f"{file.value!r} can't be read: {error.strerror}"
        return super().__call__()

    def _read(self, file: Entry) -> None:
        if not isinstance(file.value, str) or not file.value or "\0" in file.value:
            return  # no path, which is a problem already
        try:
            text = Path(file.value).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            # Without the exception, which has the file's bytes, and they are the secret.
            self.failure = f"{file.value!r} is not UTF-8 text"
            return
        if password := text.removesuffix("\n").removesuffix("\r"):
            self.entries["kafka_admin_sasl_password"] = Entry(password, file.key, file.origin)
        else:
            self.failure = f"{file.value!r} is empty"
