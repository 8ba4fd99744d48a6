"""The forms of the status page, and the check of their origin.

The token guards a change: an operator types it each time, and it is stored nowhere. In addition, a
form from a page of another site is refused, by the headers in which a browser reports its origin.

Example: a browser sends "Sec-Fetch-Site: cross-site" for a page of another site, and over plain
HTTP "Origin: http://elsewhere". curl sends neither, but needs the token too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request

from sidecar.api.changes import OverrideRequest

FACTORS: Final = (
    ("1", "1: throttle nobody"),
    ("0.5", "0.5: half of each quota"),
    ("0.25", "0.25: a quarter of each quota"),
    ("0.1", "0.1: a tenth of each quota"),
    ("0", "0: throttle producers"),
)
DURATIONS: Final = (
    ("PT15M", "15 minutes"),
    ("PT1H", "1 hour"),
    ("PT4H", "4 hours"),
    ("PT8H", "8 hours"),
    ("P1D", "1 day"),
    ("P7D", "7 days"),
)

_MOST_FIELDS: Final = 10


@dataclass(frozen=True, slots=True)
class OverrideForm:
    """The fields as an operator typed them."""

    factor: str = "1"
    duration: str = "PT1H"
    reason: str = ""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> "OverrideForm":
        """Take the fields from a form."""
        return cls(*(fields.get(name, "") for name in ("factor", "duration", "reason")))

    def checked(self) -> OverrideRequest | list[str]:
        """Return the request to the API, or a sentence for each wrong field."""
        try:
            factor = float(self.factor)
        except ValueError:
            return ["The factor must be a number from 0 to 1."]
        try:
            return OverrideRequest(factor=factor, reason=self.reason, duration=self.duration)
        except ValidationError as error:
            return [
                f"{str(each['loc'][0]).capitalize()}: {each['msg'].removeprefix('Value error, ')}."
                for each in error.errors(include_input=False)
            ]

    def fields(self) -> tuple[tuple[str, str], ...]:
        """Return the fields as a form has them."""
        return ("factor", self.factor), ("duration", self.duration), ("reason", self.reason)


async def form_fields(request: Request) -> dict[str, str]:
    """Read the fields of a form from the sidecar's own page.

    Raises:
        HTTPException: 403 when another site sent the form, 415 or 422 when the body is not a form.
    """
    if not is_own(request):
        raise HTTPException(403, "This form was sent by another site.")
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/x-www-form-urlencoded":
        raise HTTPException(415, "This must be a form.")
    try:
        text = (await request.body()).decode("ascii")
        pairs = parse_qsl(
            text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
        )
    except ValueError:
        raise HTTPException(422, "This form can't be read.") from None
    return dict(pairs)


def is_own(request: Request) -> bool:
    """Whether a request comes from a page of this sidecar, or from no page at all."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in {"same-origin", "none"}
    origin = request.headers.get("origin")
    # The scheme is not compared, because a proxy may use TLS for the browser.
    return origin is None or origin.partition("://")[2] == request.headers.get("host", "")
