"""Replaces the references ``${provider:path:key}`` in properties, as Kafka's config providers do.

Three providers of Kafka's are known: FileConfigProvider (a key of a properties file),
DirectoryConfigProvider (a file of a folder, such as a mounted Secret) and EnvVarConfigProvider. A
provider has the name that ``config.providers.NAME.class`` gives it; without such a line, Kafka's
usual names and Strimzi's apply. Strimzi's providers that ask Kubernetes are refused with the mount
that takes their place: the sidecar has no access to Secrets. A reference that leads nowhere is a
problem, where Kafka would take the reference itself for the password. What is found is not
searched for more references, as in Kafka.

Example: ``${file:/etc/kafka/login.properties:password}`` is the value of ``password`` in that file.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from sidecar.formats.java_properties import parse_properties
from sidecar.settings.forms import Entry
from sidecar.settings.sources import without_line_end

PROVIDERS: Final = "config.providers"

_REFERENCE: Final = re.compile(r"\$\{([^}:]+):(?:([^}]*):)?([^}:]*)\}")
_CLASS: Final = re.compile(rf"(?:.+\.)?{re.escape(PROVIDERS)}\.([^.]+)\.class")
_KINDS: Final = {
    "FileConfigProvider": "file",
    "DirectoryConfigProvider": "dir",
    "EnvVarConfigProvider": "env",
    "KubernetesSecretConfigProvider": "secrets",
    "KubernetesConfigMapConfigProvider": "configmaps",
}
_USUAL: Final = {
    **{kind: kind for kind in _KINDS.values()},
    "directory": "dir",
    "strimzifile": "file",
    "strimzidir": "dir",
    "strimzienv": "env",
    "strimzisecrets": "secrets",
}


class Providers:
    """The providers that a properties file names.

    Args:
        pairs: key and value of each line of the file.
        environ: the environment variables.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]], environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._kinds = dict(_USUAL)
        for key, value in pairs:
            if name := _CLASS.fullmatch(key):
                self._kinds[name[1]] = _KINDS.get(value.rpartition(".")[2], "")

    def resolved(self, entry: Entry) -> Entry:
        """Return an entry of text with its references replaced, and the files that they name.

        Raises:
            ValueError: with a sentence for the first reference that can't be replaced.
        """
        files: list[Path] = []
        value = _REFERENCE.sub(lambda found: self._value(found, files), str(entry.value))
        return replace(entry, value=value, referenced=tuple(files))

    def _value(self, found: re.Match[str], files: list[Path]) -> str:
        name, path, key = found[1], found[2] or "", found[3]
        kind = self._kinds.get(name)
        if kind in {"secrets", "configmaps"}:
            resource = path.rpartition("/")[2] or "NAME"
            is_folder = key == "*.crt"
            instead = f"/mnt/{resource}" if is_folder else f"${{dir:/mnt/{resource}:{key}}}"
            of_truststore = " to ssl.truststore.location" if is_folder else ""
            raise ValueError(
                f"{found[0]} would need access to Kubernetes, which the sidecar does not have;"
                f" mount {resource} into its container, and write {instead}{of_truststore}"
            )
        if kind == "env":
            if (value := self._environ.get(key)) is None:
                raise ValueError(f"{found[0]}: the variable {key} is not set")
            return without_line_end(value)
        if not kind:
            raise ValueError(
                f"{found[0]} has an unknown config provider; these are known: file, dir, env"
            )
        if not Path(path).is_absolute():
            raise ValueError(f"{found[0]} must name an absolute path and a key")
        file = Path(path) / key if kind == "dir" else Path(path)
        files.append(file)
        try:
            if kind == "dir":
                return without_line_end(file.read_text(encoding="utf-8"))
            # Unlike a client's own properties, FileConfigProvider reads this file in UTF-8.
            pairs = parse_properties(file.read_bytes().decode())
            return {name: value for name, value, _ in pairs}[key]
        except OSError as error:
            raise ValueError(f"{found[0]}: {file} can't be read: {error.strerror}") from error
        except (KeyError, ValueError) as error:
            # A text of these exceptions could contain a secret, so they are not chained.
            is_other = isinstance(error, UnicodeDecodeError)
            what = "is not UTF-8 text" if is_other else f"has no key {key}"
            raise ValueError(f"{found[0]}: {file} {what}") from None
