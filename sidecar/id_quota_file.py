"""The file with producer id quotas (KIP-936): read at the start, and again whenever it changes.

A wrong file stops the start. One that becomes wrong later is told, and what it said before stays in
force: a typo at night must neither hold a user nor let one go.

Example::

    [default]
    producer_ids_rate = 200

    [users.alice]
    producer_ids_rate = 50
    held_request_percentage = 0.01

    [users.migration]
    producer_ids_rate = "unlimited"
"""

import asyncio
import logging
import math
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
)

from sidecar.errors import SettingsError
from sidecar.quotas.entities import DEFAULT, Default
from sidecar.quotas.id_quotas import ProducerIdQuota, ProducerIdQuotas

_log = logging.getLogger(__name__)

UNLIMITED: Final = "unlimited"
_LOOK_S: Final = 1.0
_LARGEST_BYTES: Final = 4 << 20
_Stamp = tuple[int, int, int]


def _rate(value: object) -> object:
    if value == UNLIMITED:
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    raise ValueError(f'must be a number above 0, or "{UNLIMITED}"')


_Rate = Annotated[
    float | str,
    PlainValidator(_rate),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"const": UNLIMITED}]}),
]


class QuotaForm(BaseModel):
    """What is said of a user, in the file and over HTTP."""

    model_config = ConfigDict(
        strict=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
    )

    producer_ids_rate: _Rate
    """New producer ids in a window, > 0, or "unlimited"."""
    held_request_percentage: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """The request_percentage that the user has in Kafka while they are held, > 0; without it they
    are held by the factor alone."""

    def quota(self) -> ProducerIdQuota:
        """As it counts."""
        rate = None if self.producer_ids_rate == UNLIMITED else float(self.producer_ids_rate)
        return ProducerIdQuota(rate, self.held_request_percentage)


class _FileForm(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", hide_input_in_errors=True)

    default: QuotaForm | None = None
    users: dict[str, QuotaForm] = {}


class IdQuotaFile:
    """A file that is followed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: _Stamp | None = None
        self._problem: str | None = None

    def load(self) -> ProducerIdQuotas:
        """What it says.

        Raises:
            SettingsError: it can't be read, or says what it must not; with the place.
        """
        try:
            # Before the bytes: what is written meanwhile is seen at the next look.
            self._stamp = _stamp(self._path)
            if self._path.stat().st_size > _LARGEST_BYTES:
                raise SettingsError((f"{self._path} has more than {_LARGEST_BYTES:,} bytes",))
            document = tomllib.loads(self._path.read_text(encoding="utf-8"))
        except OSError as error:
            raise SettingsError((f"{self._path} can't be read: {error.strerror}",)) from error
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise SettingsError((f"{self._path} is not TOML: {error}",)) from error
        try:
            form = _FileForm.model_validate(document)
        except ValidationError as error:
            problems = error.errors(include_input=False, include_url=False)
            raise SettingsError(tuple(self._told(dict(each)) for each in problems)) from None
        quotas: dict[str | Default, ProducerIdQuota] = {
            user: each.quota() for user, each in form.users.items()
        }
        return quotas if form.default is None else {**quotas, DEFAULT: form.default.quota()}

    async def run(self, changed: Callable[[ProducerIdQuotas], None]) -> None:
        """Tells what it says whenever that has changed, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            quotas = await asyncio.to_thread(self.look)
            if quotas is not None:
                changed(quotas)

    def look(self) -> ProducerIdQuotas | None:
        """What it says, if that has changed and is right; what is wrong is told once."""
        try:
            if _stamp(self._path) == self._stamp:
                return None
            quotas = self.load()
        except OSError as error:
            self._stay(f"{self._path} can't be read: {error.strerror}")
        except SettingsError as error:
            self._stay("; ".join(error.problems))
        else:
            self._problem = None
            _log.info("read the producer id quotas of %s again", self._path)
            return quotas
        return None

    def _stay(self, problem: str) -> None:
        if problem != self._problem:
            _log.warning("%s; the producer id quotas stay as they were", problem)
        self._problem = problem

    def _told(self, error: dict[str, Any]) -> str:
        where = ".".join(map(str, error["loc"]))
        what = (
            f"is not a key here; there are {', '.join(QuotaForm.model_fields)} under [default] and "
            "[users.NAME]"
            if error["type"] == "extra_forbidden"
            else error["msg"].removeprefix("Value error, ")
        )
        return f"{self._path}: {where}: {what}"


def _stamp(path: Path) -> _Stamp:
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size
