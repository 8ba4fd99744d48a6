"""The records that capabilities keep over a restart: plain JSON under the capability's name.

A capability passes its record to ``Board.retain``, and the state file stores it. At a start, the
capability checks its record itself. A damaged record is logged and affects nothing else. It stays
in the file until the capability has a new one.

Example: ``{"producer_ids": {"quotas": [], "enforced_request_percentages": {"bob": "much"}}}`` is
refused because of one number. The override and the volumes of the same file are used.
"""

import logging
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from sidecar.throttle.memory import Memory

_log = logging.getLogger(__name__)


class Record(BaseModel):
    """The base of records: no unknown key, no infinite number, and no value in an error's text."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)


_Form = TypeVar("_Form", bound=Record)


def restored(memory: Memory, capability: str, form: type[_Form]) -> _Form | None:
    """Return a capability's record; None without one. Log a damaged record and return None."""
    part = memory.retained.get(capability)
    if part is None:
        return None
    try:
        return form.model_validate(part)
    except ValidationError as error:
        _log.error(
            "the part of %s in the state file is damaged (%s); starting without it",
            capability,
            problem_of(error),
        )
        return None


def problem_of(error: ValidationError) -> str:
    """Describe the first error and its place, without the value."""
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]
