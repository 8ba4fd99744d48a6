"""Reads the places of settings: the environment, settings files, and a file with a password.

Each place is a source of pydantic-settings, which merges them. If two sources have a setting, the
first source takes precedence. A source collects its problems instead of raising, so that the
problems of all places are shown together. An unknown key in a namespace of the sidecar is a
mistake.

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
from sidecar.settings.foreign import ADMIN_FIELDS, admin_verdict
from sidecar.settings.forms import Entry
from sidecar.settings.model import Settings


class Source(PydanticBaseSettingsSource):
    """One place of settings.

    Attributes:
        entries: setting name -> its entry.
        problems: one line for each unknown key, and for a file that can't be read.
        notices: one line for each key that is accepted and has no effect.
        readable: False when the place could not be read, so that no setting can be called missing.
    """

    def __init__(self) -> None:
        super().__init__(Settings)
        self.entries: dict[str, Entry] = {}
        self.problems: list[str] = []
        self.notices: list[str] = []
        self.readable = True

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Not used, because ``__call__`` returns all values at once."""
        raise NotImplementedError

    def __call__(self) -> dict[str, Any]:
        """Return the entries as ``Settings`` takes them."""
        values: dict[str, Any] = {}
        for name, entry in self.entries.items():
            *tables, key = keys.FIELDS[name].path
            table = values
            for each in tables:
                table = table.setdefault(each, {})
            table[key] = entry
        return values

    def unreadable(self, problem: str) -> None:
        """Add a problem because of which the place was not read."""
        self.problems.append(problem)
        self.readable = False

    def take(self, field: str, entry: Entry, known: Iterable[str], prefix: str = "") -> None:
        """Add a key as a setting, as a key of the Java admin client, or as unknown.

        Args:
            field: the name of the setting that the key would set.
            entry: its value, which is not shown in a refusal.
            known: the keys of this place, without the prefix, to suggest the nearest one.
            prefix: the prefix of the key.
        """
        if field in keys.FIELDS:
            self.entries[field] = entry
        elif field in ADMIN_FIELDS:
            is_refused, sentence = admin_verdict(ADMIN_FIELDS[field], entry.value)
            (self.problems if is_refused else self.notices).append(f"{entry} {sentence}")
        else:
            nearest = prefix + keys.nearest(entry.key.removeprefix(prefix), known)
            self.problems.append(f"{entry} is not a setting; the nearest is {nearest}")


def read_environment(environ: Mapping[str, str]) -> Source:
    """Read variables ``SIDECAR_*``, except those that Kubernetes injects for Services.

    A line end at the end of a value is removed, as in a password file: ``echo`` adds it to Secrets,
    no setting needs it, and brokers refuse a user or password with it.
    """
    source = Source()
    known = list(map(keys.environment_key, (*keys.FIELDS, *ADMIN_FIELDS)))
    for variable, value in sorted(environ.items()):
        if not variable.startswith(keys.ENVIRONMENT_PREFIX) or keys.is_injected(variable, value):
            continue
        field = variable.removeprefix(keys.ENVIRONMENT_PREFIX).lower()
        entry = Entry(without_line_end(value), variable, "environment")
        source.take(field if variable in known else variable, entry, known)
        if variable not in known and keys.looks_injected(variable):
            hint = "if Kubernetes injects it, set enableServiceLinks: false in the pod"
            source.problems[-1] += f" ({hint})"
    return source


def read_toml(path: Path) -> Source:
    """Read a TOML file, whose tables may be grouped in any way."""
    source = Source()
    document: Mapping[str, Any] = {}
    try:
        document = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        source.unreadable(f"the TOML file {path} can't be read: {error.strerror}")
    except UnicodeDecodeError as error:
        source.unreadable(f"the TOML file {path} is not UTF-8 at byte {error.start}")
    except (ValueError, RecursionError) as error:
        # tomllib raises other errors for numbers of thousands of digits and for deep nesting.
        source.unreadable(f"the TOML file {path} can't be read: {error}")
    known = list(map(keys.toml_key, keys.FIELDS))
    for key, value in _leaves(document, ""):
        entry, field = Entry(value, key, f"toml {path}", path), key.replace(".", "_")
        if value == {} and any(name.startswith(f"{field}_") for name in keys.FIELDS):
            continue  # a table in which nothing is set
        if other := source.entries.get(field):
            source.problems.append(f"{other} and {entry} are one setting, set twice")
        else:
            source.take(field, entry, known)
    return source


def _leaves(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield every value and every empty table with its dotted path."""
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def without_line_end(text: str) -> str:
    """Return a value without the line end that ``echo`` and editors add."""
    return text.removesuffix("\n").removesuffix("\r")


def read_password(path: str) -> str:
    """Read a file with a password, without the line end and the byte order mark that editors add.

    Raises:
        ValueError: the file can't be read or is empty; the message contains nothing of it.
    """
    try:
        text = without_line_end(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ValueError(f"{path!r} can't be read: {error.strerror}") from error
    except ValueError:
        # The exception contains the file's bytes, which are the secret, so it is not chained.
        raise ValueError(f"{path!r} is not UTF-8 text") from None
    if not text:
        raise ValueError(f"{path!r} is empty")
    return text


class PasswordFile(Source):
    """The password in the file that ``kafka.admin.sasl.password.file`` names.

    It is the last source, because the other sources decide whether the file is read: it is not read
    for another mechanism, nor if credentials are set elsewhere.

    Attributes:
        failure: why the file gave no password, to follow the setting's name; "" without a failure.
    """

    failure = ""

    def __call__(self) -> dict[str, Any]:
        """Return the password, if it has to be read and can be read."""
        admin: Mapping[str, Entry] = self.current_state.get("kafka_admin", {})
        written = {name: str(entry.value).upper() for name, entry in admin.items()}
        is_used = (
            written.get("security_protocol") in {"SASL_PLAINTEXT", "SASL_SSL"}
            and written.get("sasl_mechanism") in {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}
            and not admin.keys() & {"sasl_password", "sasl_jaas_config"}
        )
        file = admin.get("sasl_password_file")
        # A value that is not a path is reported already.
        if is_used and file and isinstance(path := file.value, str) and path.strip("\0"):
            try:
                password = read_password(path)
            except ValueError as error:
                self.failure = str(error)
            else:
                self.failure = ""
                self.entries["kafka_admin_sasl_password"] = Entry(password, file.key, file.origin)
        return {} if self.failure else super().__call__()
