"""What one place has: the environment, a properties file or a TOML file.

A reading is complete even when something in it is wrong: its problems are beside it, so that those
of all places can be shown together.

Example: an environment with ``SIDECAR_LOG_LEVEL=debug`` reads as one entry for ``log_level`` with
origin "environment".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Entry:
    """One value as it was written.

    Attributes:
        value: text, or what TOML has; maybe a secret, so never in a repr.
        key: the key it was written under.
        origin: "environment", "properties FILE:LINE" or "toml FILE".
    """

    value: object = field(repr=False)
    key: str
    origin: str

    def __str__(self) -> str:
        return self.key if self.origin == "environment" else f"{self.key} ({self.origin})"


@dataclass(frozen=True, slots=True)
class Reading:
    """All that one place has.

    Attributes:
        entries: by the setting's field name.
        problems: one line each: keys that nobody knows, and files that can't be read.
        notices: one line each: keys that are accepted and have no effect.
        readable: False when the place could not be read, so that nothing can be said to be missing.
    """

    entries: Mapping[str, Entry]
    problems: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    readable: bool = True
