"""The file of storage budgets, which is read at the start and after each change.

``sidecar/budgets/budgets.schema.json`` is its JSON schema, made from the forms below.

Example::

    [owners.etl]
    prefixes = ["etl."]
    soft = "160GB"
    hard = "200GB"

    [owners.web]
    topics = ["clicks", "orders"]
    hard = "1Ti"
    replicas = true
"""

from collections.abc import Iterator
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
from sidecar.formats.quantities import parse_size
from sidecar.quotas.entities import LONGEST_USER, user_name
from sidecar.throttle.budgets import Budget

MOST_OWNERS: Final = 2000
"""Each owner has its metrics, so more of them are a mistake."""

MOST_PRINCIPALS: Final = 100
"""Each may get client quotas of its own."""


def _size(value: object) -> int:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole and not isinstance(value, str):
        raise ValueError('must be a size such as "200GB" or "10Gi"')
    size = parse_size(str(value))
    if size == 0:
        raise ValueError("must be > 0")
    return size


_Size = Annotated[
    int,
    PlainValidator(_size),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1},
                {
                    "type": "string",
                    "pattern": r"^[0-9]+(\.[0-9]+)? ?([kMGTP]B|[KMGTP]i|[KMGTP]iB|B)?$",
                },
            ]
        }
    ),
]
_Name = Annotated[str, Field(min_length=1, max_length=249)]
_User = Annotated[str, Field(min_length=1, max_length=LONGEST_USER), AfterValidator(user_name)]
_FORM: Final = ConfigDict(
    strict=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
)


class OwnerForm(BaseModel):
    """What an owner has, and how much of the disks it may use."""

    model_config = _FORM

    topics: list[_Name] = []
    """Its topics by name. A name counts more than a prefix."""
    prefixes: list[_Name] = []
    """Prefixes of the names of its topics. The longest prefix counts."""
    soft: _Size | None = None
    """From this size on its writers are slowed, the more the less is left. Without it they are only
    paused at the hard size."""
    hard: _Size
    """At this size its writers are paused."""
    replicas: bool = False
    """Whether each replica of a partition counts; otherwise the partition counts once."""
    principals: Annotated[list[_User], Field(max_length=MOST_PRINCIPALS)] = []
    """The users to slow where client quotas enforce, whatever topics they write to. Without any,
    the budget is only shown there. Brokers with the authorizer go by topics instead."""


class BudgetsForm(BaseModel):
    """Storage budgets of throttle-sidecar."""

    model_config = _FORM

    owners: Annotated[dict[_Name, OwnerForm], Field(max_length=MOST_OWNERS)]
    """The owners by name, which is a label of metrics and alerts."""


class BudgetFile(FollowedFile[tuple[Budget, ...]]):
    """A file that is followed."""

    what = "storage budgets"

    def parse(self, document: dict[str, Any]) -> tuple[Budget, ...]:
        """See ``FollowedFile``."""
        try:
            form = BudgetsForm.model_validate(document)
        except ValidationError as error:
            problems = error.errors(include_input=False, include_url=False)
            raise SettingsError(tuple(self._describe(dict(each)) for each in problems)) from None
        if together := tuple(f"{self.path}: {each}" for each in _conflicts(form)):
            raise SettingsError(together)
        return tuple(
            Budget(
                owner,
                each.hard,
                each.hard if each.soft is None else each.soft,
                frozenset(each.topics),
                frozenset(each.prefixes),
                each.replicas,
                tuple(sorted(set(each.principals))),
            )
            for owner, each in form.owners.items()
        )

    def _describe(self, error: dict[str, Any]) -> str:
        where = ".".join(str(each) for each in error["loc"] if each != "[key]")
        if error["type"] == "extra_forbidden":
            known = ", ".join(OwnerForm.model_fields)
            return f"{self.path}: {where}: is not a key here; there are {known} under [owners.NAME]"
        return f"{self.path}: {where}: {str(error['msg']).removeprefix('Value error, ')}"


def _conflicts(form: BudgetsForm) -> Iterator[str]:
    taken: dict[tuple[str, str], str] = {}
    for owner, each in form.owners.items():
        if not each.topics and not each.prefixes:
            yield f"owners.{owner}: has neither topics nor prefixes"
        if each.soft is not None and each.soft > each.hard:
            yield f"owners.{owner}: soft is larger than hard"
        named = [("topic", name) for name in each.topics]
        for key in named + [("prefix", name) for name in each.prefixes]:
            if (other := taken.setdefault(key, owner)) != owner:
                yield f"owners.{owner}: the {key[0]} {key[1]} is also of {other}"
