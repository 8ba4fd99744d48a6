"""How a setting is written: a value with where it was written, and the form that reads it.

Example: under ``Annotated[float, Form(duration, "duration")]`` an entry of ``30s`` becomes 30.0.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
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
        value: text, or what TOML has; maybe a secret, so never in a repr.
        key: the key it was written under.
        origin: "environment", "properties FILE:LINE", "toml FILE" or "command line".
    """

    value: object = field(repr=False)
    key: str
    origin: str

    def __str__(self) -> str:
        return self.key if self.origin == "environment" else f"{self.key} ({self.origin})"


@dataclass(frozen=True, slots=True)
class Form:
    """Reads an ``Entry``; another value was made by code and is taken as it is.

    Attributes:
        read: the value of what was written; raises ValueError with a sentence for a person.
        unit: what the value is counted in, or its form.
        write: a default as a person would write it.
        is_secret: whether the value is masked wherever it is shown.
    """

    read: Callable[[object], object]
    unit: str
    write: Callable[[Any], str] = str
    is_secret: bool = False

    def __get_pydantic_core_schema__(self, _source: object, _handler: object) -> CoreSchema:
        """Pydantic's hook for an annotation."""
        return core_schema.no_info_plain_validator_function(
            lambda raw: self.read(raw.value) if isinstance(raw, Entry) else raw
        )


@dataclass(frozen=True, slots=True)
class Default:
    """The words for a default that a value does not show."""

    words: str


@dataclass(frozen=True, slots=True)
class Makes:
    """Which type of limit a setting makes of its value, and what it is for."""

    role: Role
    kind: type[Limit]


def marks(info: FieldInfo) -> Iterator[object]:
    """What a field, or a part of its union, is annotated with."""
    yield from info.metadata
    for part in get_args(info.annotation):
        if get_origin(part) is Annotated:
            yield from part.__metadata__


def fields_of(model: type[BaseModel], role: Role) -> dict[str, type[Limit]]:
    """The fields of this role, each with its type of limit; a type need not have all roles."""
    return {
        name: mark.kind
        for name, info in model.model_fields.items()
        for mark in marks(info)
        if isinstance(mark, Makes) and mark.role == role
    }
