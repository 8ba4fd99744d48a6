"""The file with producer id quotas (KIP-936), which is read at the start and after each change.

An invalid file prevents the start. If the file becomes invalid later, the sidecar logs that and
keeps the previous quotas: a typo must neither throttle a user nor release one. A file that had
quotas and has no table any more is invalid too, because a full disk or a crash leaves such a file.
An empty ``[users]`` removes all quotas.

Example::

    [default]
    producer_ids_rate = 200

    [users.alice]
    producer_ids_rate = 50
    throttled_request_percentage = 0.01

    [users.migration]
    producer_ids_rate = "unlimited"
"""

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

from sidecar.control.followed_file import FollowedFile
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

UNLIMITED: Final = "unlimited"


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


class IdQuotaFile(FollowedFile[ProducerIdQuotas]):
    """A file that is followed."""

    what = "producer id quotas"

    def parse(self, document: dict[str, Any]) -> ProducerIdQuotas:
        """See ``FollowedFile``."""
        if not document and getattr(self, "contents", None):
            raise SettingsError(
                (f"{self.path} has no quotas any more (to remove all, write an empty [users])",)
            )
        try:
            form = _FileForm.model_validate(document)
        except ValidationError as error:
            problems = error.errors(include_input=False, include_url=False)
            raise SettingsError(tuple(self._describe(dict(each)) for each in problems)) from None
        quotas: dict[str | Default, ProducerIdQuota] = {
            user: each.quota() for user, each in form.users.items()
        }
        return quotas if form.default is None else {**quotas, DEFAULT: form.default.quota()}

    def _describe(self, error: dict[str, Any]) -> str:
        # pydantic appends this to the place of a wrong key.
        where = ".".join(str(each) for each in error["loc"] if each != "[key]")
        return f"{self.path}: {where}: {_problem(error)}"


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
