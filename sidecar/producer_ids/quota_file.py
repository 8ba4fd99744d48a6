"""The file with producer id quotas (KIP-936), which is read at the start and after each change.

An invalid file prevents the start. If the file becomes invalid later, the sidecar logs that and
keeps the previous quotas: a typo must neither throttle a user nor release one.

Example::

    [default]
    producer_ids_rate = 200

    [users.alice]
    producer_ids_rate = 50
    throttled_request_percentage = 0.01

    [users.migration]
    producer_ids_rate = "unlimited"
"""

import asyncio
import logging
import os
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
)

from sidecar.errors import SettingsError
from sidecar.quotas.entities import DEFAULT, Default, user_name
from sidecar.quotas.producer_ids.id_quotas import (
    LARGEST_PERCENTAGE,
    LARGEST_RATE,
    SMALLEST_PERCENTAGE,
    SMALLEST_RATE,
    ProducerIdQuota,
    ProducerIdQuotas,
)
from sidecar.threads import OwnThreads

_log = logging.getLogger(__name__)

UNLIMITED: Final = "unlimited"
_CHECK_S: Final = 1.0
_LARGEST_BYTES: Final = 4 << 20
_Stamp = tuple[int, int, int, int]


def _rate(value: object) -> object:
    if value == UNLIMITED:
        return value
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else 0
    if SMALLEST_RATE <= number <= LARGEST_RATE:
        return float(number)
    raise ValueError(f'must be a number of {SMALLEST_RATE:g} to {LARGEST_RATE:g}, or "{UNLIMITED}"')


_Rate = Annotated[
    float | str,
    PlainValidator(_rate),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": SMALLEST_RATE, "maximum": LARGEST_RATE},
                {"const": UNLIMITED},
            ]
        }
    ),
]


class QuotaForm(BaseModel):
    """A user's quota in the file and over HTTP."""

    model_config = ConfigDict(
        strict=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
    )

    producer_ids_rate: _Rate
    """New producer ids per window, or "unlimited"."""
    throttled_request_percentage: (
        Annotated[float, Field(ge=SMALLEST_PERCENTAGE, le=LARGEST_PERCENTAGE)] | None
    ) = None
    """The request_percentage that the sidecar sets in Kafka while the user is throttled. Without
    it, only the factor throttles the user."""

    def quota(self) -> ProducerIdQuota:
        """Return the quota."""
        rate = None if self.producer_ids_rate == UNLIMITED else float(self.producer_ids_rate)
        return ProducerIdQuota(rate, self.throttled_request_percentage)


class _FileForm(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", hide_input_in_errors=True)

    default: QuotaForm | None = None
    users: dict[Annotated[str, AfterValidator(user_name)], QuotaForm] = {}


class IdQuotaFile:
    """A file that is followed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: _Stamp | None = None
        self._changing: _Stamp | None = None
        self._problem: str | None = None

    def load(self) -> ProducerIdQuotas:
        """Read the file.

        Raises:
            SettingsError: the file can't be read or is invalid; it names the place.
        """
        try:
            text, self._read = _contents(self._path)
            document = tomllib.loads(text.decode())
        except OSError as error:
            raise SettingsError((f"{self._path} can't be read: {error.strerror}",)) from error
        except (ValueError, RecursionError) as error:
            # tomllib raises other errors for numbers of thousands of digits and for deep nesting.
            raise SettingsError((f"{self._path} is not TOML: {error}",)) from error
        try:
            form = _FileForm.model_validate(document)
        except ValidationError as error:
            problems = error.errors(include_input=False, include_url=False)
            raise SettingsError(tuple(self._describe(dict(each)) for each in problems)) from None
        quotas: dict[str | Default, ProducerIdQuota] = {
            user: each.quota() for user, each in form.users.items()
        }
        return quotas if form.default is None else {**quotas, DEFAULT: form.default.quota()}

    async def run(self, changed: Callable[[ProducerIdQuotas], None]) -> None:
        """Call ``changed`` after each change of the file, until cancelled."""
        threads = OwnThreads("producer id quotas")
        while True:
            await asyncio.sleep(_CHECK_S)
            quotas = await threads.call(self.read_change)
            if quotas is not None:
                changed(quotas)

    def read_change(self) -> ProducerIdQuotas | None:
        """Return the contents after a change, once two checks in a row see the same file.

        A problem is logged once.
        """
        try:
            now = _stamp(self._path.stat())
            if now == self._read:
                return None
            before, self._changing = self._changing, now
            if now != before:
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

    def _describe(self, error: dict[str, Any]) -> str:
        # pydantic appends this to the place of a wrong key.
        where = ".".join(str(each) for each in error["loc"] if each != "[key]")
        return f"{self._path}: {where}: {_problem(error)}"


def _problem(error: dict[str, Any]) -> str:
    match error["type"]:
        case "extra_forbidden":
            return (
                f"is not a key here; there are {', '.join(QuotaForm.model_fields)} under [default] "
                "and [users.NAME]"
            )
        case "model_type":
            return "must be a table with producer_ids_rate in it"
        case "dict_type":
            return "must be a table with one for each user in it: [users.NAME]"
        case _:
            return str(error["msg"]).removeprefix("Value error, ")


def _contents(path: Path) -> tuple[bytes, _Stamp]:
    # Without O_NONBLOCK, opening a named pipe would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "it is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            contents = file.read(_LARGEST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(contents) > _LARGEST_BYTES:
        raise OSError(0, f"it has more than {_LARGEST_BYTES:,} bytes")
    # The state before the read, so that the next check sees a later write.
    return contents, _stamp(status)


def _stamp(status: os.stat_result) -> _Stamp:
    # A change of owner or mode counts too, because the file may be readable now.
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size
