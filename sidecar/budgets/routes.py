"""GET /v1/budgets: what owners use of their storage budgets, and when they are full.

Example: etl uses 120 GB of 200 GB, which is 60 %, and grows by 0.2 MB/s, so it is full in 4.6 days.
"""

from typing import Annotated

from fastapi import FastAPI
from pydantic import Field
from starlette.responses import Response

from sidecar.api.answers import Wall, answer_listing, rounded, timestamp
from sidecar.api.documents import Factor, Time, described
from sidecar.budgets.watch import BudgetWatch
from sidecar.throttle.budgets import State, Usage, sentence

Bytes = Annotated[int, Field(ge=0)]


@described
class BudgetDocument:
    """An owner with a storage budget, and what it uses."""

    owner: str
    """The owner's name in the file of budgets."""
    used_bytes: Bytes
    """The size of its topics; the least it can be while brokers are not seen."""
    soft_bytes: Bytes
    """From this size on its writers are slowed."""
    hard_bytes: Bytes
    """At this size its writers are paused."""
    replicas: bool
    """Whether each replica of a partition counts; otherwise the partition counts once."""
    state: State
    """What its budget does to its writers. Without the authorizer, brokers do nothing to them. With
    client quotas, those of principals fall to `SIDECAR_CLIENT_QUOTA_FLOOR` instead of a pause."""
    factor: Factor
    """The factor of its writers by its budget."""
    principals: list[str]
    """The users that are slowed where client quotas enforce."""
    is_enforced: bool
    """Whether the factor applies. It does not in observe mode, with `SIDECAR_ENFORCEMENT=none`, and
    with `client-quotas` for an owner without principals, or if they would need more than 2,000 new
    quotas."""
    topics: Annotated[int, Field(ge=0)]
    """The number of its topics."""
    bytes_per_second: float | None
    """Its growth in the last minutes; null before a second reading."""
    full_at: Time | None
    """When it reaches the hard size at this growth; null if not within ten years."""
    unseen_brokers: list[int]
    """The brokers with a log dir whose sizes are not known for longer than the validity. The
    replicas there are missing in used_bytes."""
    is_left_out: bool
    """Whether brokers do not get its factor, because the throttled topics are too many."""
    read_at: Time
    """When its topics were last read."""
    sentence: str
    """The used part, in words."""


@described
class BudgetsDocument:
    """The storage budgets, in the order of the file. Sidecars that follow observers show none."""

    budgets: list[BudgetDocument]
    """The owners."""


def add_budgets(app: FastAPI, watch: BudgetWatch | None, wall: Wall) -> None:
    """Add the route."""

    @app.get(
        "/v1/budgets",
        summary="Storage budgets, and what their owners use",
        responses={200: {"model": BudgetsDocument}},
    )
    async def budgets() -> Response:
        """The budgets of `SIDECAR_BUDGETS_FILE`; an empty list without it."""
        if watch is None:
            return answer_listing({}, "budgets", ())
        documents = (_document(each, wall, watch) for each in [*watch.usages.values()])
        return answer_listing({}, "budgets", documents)


def _document(usage: Usage, wall: Wall, watch: BudgetWatch) -> BudgetDocument:
    budget, seconds = usage.budget, usage.seconds_to_hard
    return BudgetDocument(
        owner=budget.owner,
        used_bytes=usage.used_bytes,
        soft_bytes=budget.soft_bytes,
        hard_bytes=budget.hard_bytes,
        replicas=budget.counts_replicas,
        state=usage.state,
        factor=usage.factor,
        principals=list(budget.principals),
        is_enforced=watch.rules.enforces(budget),
        topics=len(usage.topics),
        bytes_per_second=rounded(usage.bytes_per_second, 1),
        full_at=None if seconds is None else timestamp(wall, usage.at + seconds),
        unseen_brokers=list(usage.unseen),
        is_left_out=budget.owner in watch.left_out,
        read_at=timestamp(wall, usage.at) or "",
        sentence=sentence(usage),
    )
