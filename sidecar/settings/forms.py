"""An entry (a written value with its place), and the form that reads it.

Example: under ``Annotated[float, Form(duration, "duration")]`` an entry of ``30s`` becomes 30.0.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from sidecar.throttle.limits import Limit

Role = Literal["limit", "soft limit", "stop line", "release margin"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One value as it was written.

    Attributes:
        value: text, or a value of TOML. It may be a secret, so it is never in a repr.
        key: the key that it was written under.
        origin: "environment", "properties FILE:LINE", "toml FILE" or "command line".
        file: the file that it was written in, if any.
        referenced: the files that parts of it come from (``sidecar.settings.placeholders``).
    """

    value: object = field(repr=False)
    key: str
    origin: str
    file: Path | None = None
    referenced: tuple[Path, ...] = ()

    def __str__(self) -> str:
        return self.key if self.origin == "environment" else f"{self.key} ({self.origin})"


@dataclass(frozen=True, slots=True)
class Form:
    """Reads an ``Entry``. Any other value was made by code and is taken as it is.

    Attributes:
        read: converts the written value; raises ValueError with a sentence for a person.
        unit: the unit of the value, or its form.
        write: writes a default as a person would.
        is_secret: whether the value is masked wherever it is shown.
    """

    read: Callable[[object], object]
    unit: str
    write: Callable[[Any], str] = str
    is_secret: bool = False

    def __get_pydantic_core_schema__(self, _source: object, _handler: object) -> CoreSchema:
        """Implement pydantic's hook for annotations."""
        return core_schema.no_info_plain_validator_function(
            lambda raw: self.read(raw.value) if isinstance(raw, Entry) else raw
        )


@dataclass(frozen=True, slots=True)
class Default:
    """Describes a default that no fixed value can show."""

    words: str


@dataclass(frozen=True, slots=True)
class Makes:
    """The type of limit that a setting defines, and the role of that limit."""

    role: Role
    kind: type[Limit]


def marks(info: FieldInfo) -> Iterator[object]:
    """The annotations of a field, or of a part of its union."""
    yield from info.metadata
    for part in get_args(info.annotation):
        if get_origin(part) is Annotated:
            yield from part.__metadata__


def fields_of(model: type[BaseModel], role: Role) -> dict[str, type[Limit]]:
    """The fields of this role, each with its type of limit. A type may lack some roles."""
    return {
        name: mark.kind
        for name, info in model.model_fields.items()
        for mark in marks(info)
        if isinstance(mark, Makes) and mark.role == role
    }
