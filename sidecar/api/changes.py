"""The changes of an operator: setting an override, and forgetting a dead broker or log dir.

A change needs the bearer token. It is checked completely before it is made, and the board publishes
it in one step. The answer comes within two seconds, whatever the disk does. It states whether the
change is on disk.

Example: ``{"factor": 1.0, "reason": "disk is being replaced", "duration": "PT8H"}`` applies for
eight hours, whatever the volumes have, and then ends by itself.
"""

import contextlib
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Final, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from starlette.exceptions import HTTPException
from starlette.requests import Request

from sidecar.api.answers import Wall
from sidecar.api.documents import (
    BrokerForgotten,
    OverrideCleared,
    OverrideDocument,
    OverrideSet,
)
from sidecar.api.views import override_document
from sidecar.control.board import Board
from sidecar.control.operation import Operation
from sidecar.control.persistence import Persistence
from sidecar.formats.quantities import parse_duration
from sidecar.throttle.decision import Source
from sidecar.throttle.memory import Override

_NO_EFFECT: Final = {
    Source.DISABLED: "The check interval is PT0S: nothing is polled and nothing is throttled.",
    Source.SHADOW: "This sidecar is in observe mode, so an override would have no effect: start it "
    "with SIDECAR_MODE=enforce.",
}
"""Source of the factor -> the reason why an override would have no effect."""

LONGEST_OVERRIDE_S: Final = timedelta(days=30).total_seconds()
"""Longer than any repair, but an override that everybody forgot must not apply for years."""

_LONGEST_USER: Final = 200

_Form = TypeVar("_Form", bound=BaseModel)
_CONTROLS: Final = re.compile("[\\x00-\\x1f\\x7f-\\x9f\u2028\u2029]")


def line(text: str) -> str:
    """Check that a reason is one line.

    Raises:
        ValueError: it is blank or has control characters.
    """
    if not text.strip() or _CONTROLS.search(text):
        raise ValueError("must be one line that is not blank, without control characters")
    return text


class OverrideRequest(BaseModel):
    """An override to set."""

    model_config = ConfigDict(
        strict=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
    )

    factor: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    """Produce quotas are multiplied by it; 0 throttles producers, 1 releases them."""
    reason: Annotated[
        str, Field(min_length=1, max_length=500, json_schema_extra={"format": "line"})
    ]
    """The reason, for people who see the factor: one line, not blank, no control characters."""
    duration: Annotated[str, Field(json_schema_extra={"format": "duration"})]
    """The duration: 30m, 1h30m, 2d or ISO 8601 (PT30M); more than 0 and at most 30d."""

    @field_validator("reason")
    @classmethod
    def _is_line(cls, text: str) -> str:
        return line(text)

    @field_validator("duration")
    @classmethod
    def _is_duration(cls, text: str) -> str:
        # The parser's message quotes the input, which an answer must not do.
        try:
            seconds = parse_duration(text)
        except ValueError:
            raise ValueError(
                "not a duration such as 30m, 8h, 1d or PT30M;"
                " minutes come after a T: P5M is five months, PT5M five minutes"
            ) from None
        if not 0 < seconds <= LONGEST_OVERRIDE_S:
            raise ValueError("must be more than 0 and at most 30d")
        return text

    @property
    def duration_s(self) -> float:
        """The duration, seconds."""
        return parse_duration(self.duration)


@dataclass(frozen=True, slots=True)
class Changes:
    """Publishes an operator's changes on the board.

    Attributes:
        board: the board that is changed.
        wall: steady seconds -> epoch seconds.
        persist: writes the state now, and returns within about a second whether it is on disk.
        user_header: the request header in which a proxy names the user; None to read none.
    """

    board: Board
    wall: Wall
    persist: Callable[[], Awaitable[Persistence]]
    user_header: str | None = None

    def operation(self, request: Request, what: str, reason: str = "") -> Operation:
        """Describe a change with the user and the address of its request."""
        user = request.headers.get(self.user_header, "") if self.user_header else ""
        with contextlib.suppress(UnicodeDecodeError):
            # Starlette reads headers as Latin-1, but proxies send UTF-8.
            user = user.encode("latin-1").decode()
        # Others write the header's text, so it must stay one line of the log.
        by = f"user {user[:_LONGEST_USER]}" if user.isprintable() and user else "the bearer token"
        address = request.client.host if request.client is not None else ""
        return Operation(what, by, address, reason)

    def shown(self) -> OverrideDocument | None:
        """Return the current override."""
        override = self.board.snapshot.decision.override
        return override_document(override, self.wall) if override else None

    async def set_override(self, requested: OverrideRequest, request: Request) -> OverrideSet:
        """Set or replace the override.

        Raises:
            HTTPException: 409 when the sidecar is disabled or in observe mode.
        """
        if (why := _NO_EFFECT.get(self.board.snapshot.decision.source)) is not None:
            raise HTTPException(409, why)
        now = self.board.now()
        # JSON has -0.0; adding 0.0 makes it 0.0.
        factor, reason = requested.factor + 0.0, requested.reason
        what = f"set an override to {factor:.15g} for {requested.duration}"
        operation = self.operation(request, what, reason)
        override = Override(factor, reason, now, now + requested.duration_s, operation.author)
        self.board.set_override(override, operation)
        stored = await self.persist()
        document = override_document(override, self.wall)
        return OverrideSet(document, stored is Persistence.WRITTEN, stored.value)

    async def clear_override(self, request: Request) -> OverrideCleared:
        """End the override, if there is one."""
        unread = bool(self.board.unread)
        # A state that is not read yet may have an override, which must not come back.
        cleared = unread or self.board.snapshot.decision.override is not None
        if unread or self.board.snapshot.memory.override is not None:
            ended = self.operation(request, "ended the override") if cleared else None
            self.board.set_override(None, ended)
        stored = await self.persist()
        return OverrideCleared(
            cleared,
            stored is Persistence.WRITTEN,
            stored.value,
            self.board.snapshot.decision.factor,
        )

    async def forget(
        self, request: Request, broker_id: int, log_dir: str | None = None, reason: str = ""
    ) -> BrokerForgotten:
        """Forget the last reading of a broker, or of one log dir, and decide again at once.

        Raises:
            HTTPException: 404 when the sidecar remembers no such reading, unless the state of an
                earlier run, which may have one, is not read yet. 409 when the broker is
                active and answers, because the next poll would bring the reading back. An offline
                log dir of such a broker can be forgotten.
        """
        memory = self.board.snapshot.memory
        broker = memory.brokers.get(broker_id)
        volumes = broker.volumes if broker is not None else ()
        known = [each for each in volumes if log_dir in {None, each.volume.log_dir}]
        is_known = broker is not None and (log_dir is None or bool(known))
        if not is_known and not self.board.unread:
            raise HTTPException(404, "This sidecar remembers no reading of it.")
        answers = broker is not None and broker_id in memory.active and not broker.is_silent
        if answers and (log_dir is None or any(each.online for each in known)):
            raise HTTPException(
                409,
                "This broker is active and answers: the next poll would read it again. A log dir"
                " that is offline is forgotten by its path.",
            )
        what = f"forgot {'' if log_dir is None else f'{log_dir} of '}broker {broker_id}"
        self.board.forget(broker_id, log_dir, self.operation(request, what, reason))
        stored = await self.persist()
        return BrokerForgotten(
            broker_id,
            [each.volume.log_dir for each in known],
            stored is Persistence.WRITTEN,
            stored.value,
            self.board.snapshot.decision.factor,
        )


def documented_body(schema: Mapping[str, object]) -> dict[str, object]:
    """Describe the body of a request for the OpenAPI document."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


async def json_body(request: Request, form: type[_Form]) -> _Form:
    """Read the body of a request for a change.

    Raises:
        HTTPException: 415 when its Content-Type is not JSON, 413 when it is too large.
        RequestValidationError: the body is not valid.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise HTTPException(415, "The body must be application/json.")
    try:
        return form.model_validate_json(await request.body())
    except ValidationError as error:
        fields = [*form.model_fields]
        problems = [_problem(dict(each), fields) for each in error.errors()]
        raise RequestValidationError(problems) from None


def _problem(error: dict[str, Any], fields: list[str]) -> dict[str, Any]:
    if error["type"] == "extra_forbidden":
        # The name of an unknown field is input too, so it is not quoted.
        known = f"{', '.join(fields[:-1])} and {fields[-1]}"
        return {"loc": ("body",), "msg": f"a field is not one of {known}"}
    return {
        "loc": ("body", *error["loc"]),
        "msg": error["msg"].removeprefix("Value error, "),
    }
