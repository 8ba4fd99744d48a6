"""Sets many quotas: validates all of them first, and stops at the first error.

A request has many entities, and the broker accepts or rejects each of them. If the connection
breaks before the answer, the current quotas show which changes were made.

Example: entity 101 of 250 is rejected. The first 100 are set, and so are the accepted entities of
the same request. The rest is not tried.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sidecar.quotas.request_time.quota_plan import Change, by_entity, changes

if TYPE_CHECKING:
    # Not at run time: the Kafka client is imported when brokers are asked.
    from sidecar.settings import KafkaAdmin

CTRL_C: Final = "Ctrl-C"
"""The problem of an outcome that the operator interrupted."""

_ENTITIES_AT_ONCE: Final = 100
_SETTLED_AFTER_S: Final = 1.0
"""How long to wait, because brokers show a change of quotas a little later than the controller."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of changes.

    Attributes:
        done: the changes that were made.
        left: the changes that were rejected or not tried.
        unknown: the changes whose result is not known.
        problem: why the command stopped; None if all changes were made.
    """

    done: tuple[Change, ...]
    left: tuple[Change, ...] = ()
    unknown: tuple[Change, ...] = ()
    problem: str | None = None


async def validate(
    admin: "KafkaAdmin", changed: Sequence[Change], progress: Callable[[int], None]
) -> str | None:
    """Validate all changes; return why the brokers reject them, or None.

    ``progress`` is called with the number of further validated changes.
    """
    from sidecar.kafka.client_quotas import alter_client_quotas  # noqa: PLC0415 - see above

    for batch in _batches(changed):
        failure = await alter_client_quotas(admin, by_entity(batch), validate_only=True)
        if failure is not None:
            return failure.message
        progress(len(batch))
    return None


async def set_quotas(
    admin: "KafkaAdmin", changed: Sequence[Change], progress: Callable[[int], None]
) -> Outcome:
    """Make the changes in their order; stop at the first request with an error.

    ``progress`` is called with the number of further changes.
    """
    from sidecar.kafka.client_quotas import alter_each  # noqa: PLC0415 - see above
    from sidecar.volumes import Failure  # noqa: PLC0415 - see above

    done: list[Change] = []
    batches = _batches(changed)
    for number, batch in enumerate(batches):
        outcomes = await alter_each(admin, by_entity(batch))
        rest = [change for later in batches[number + 1 :] for change in later]
        if isinstance(outcomes, Failure):
            return await _verified(admin, outcomes.message, done, batch, rest)
        entities = dict(zip(dict.fromkeys(each.entity for each in batch), outcomes, strict=True))
        good = [change for change in batch if entities[change.entity] is None]
        done += good
        progress(len(good))
        problem = next((failure for failure in outcomes if failure is not None), None)
        if problem is not None:
            bad = [change for change in batch if entities[change.entity] is not None]
            return Outcome(tuple(done), (*bad, *rest), (), problem.message)
    return Outcome(tuple(done))


def set_or_exit(
    admin: "KafkaAdmin", changed: Sequence[Change], progress: Callable[[int], None]
) -> Outcome:
    """Do the same as ``set_quotas`` in a new event loop; after Ctrl-C, read the current quotas."""
    try:
        return asyncio.run(set_quotas(admin, changed, progress))
    except KeyboardInterrupt:
        return asyncio.run(_verified(admin, CTRL_C, (), changed, ()))


async def _verified(
    admin: "KafkaAdmin",
    problem: str,
    done: Sequence[Change],
    batch: Sequence[Change],
    rest: Sequence[Change],
) -> Outcome:
    """Find out from the current quotas which changes of an unanswered request were made."""
    from sidecar.kafka.client_quotas import describe_client_quotas  # noqa: PLC0415 - see above
    from sidecar.volumes import Failure  # noqa: PLC0415 - see above

    await asyncio.sleep(_SETTLED_AFTER_S)
    quotas = await describe_client_quotas(admin)
    if isinstance(quotas, Failure):
        return Outcome(tuple(done), tuple(rest), tuple(batch), problem)
    missing = {
        change for change in batch if changes(quotas, {change.entity: {change.key: change.after}})
    }
    good = [change for change in batch if change not in missing]
    bad = [change for change in batch if change in missing]
    return Outcome((*done, *good), (*bad, *rest), (), problem)


def _batches(changed: Sequence[Change]) -> list[list[Change]]:
    """Split changes into requests; all changes of an entity stay in one request."""
    grouped: dict[object, list[Change]] = {}
    for change in changed:
        grouped.setdefault(change.entity, []).append(change)
    groups = list(grouped.values())
    return [
        [change for group in groups[start : start + _ENTITIES_AT_ONCE] for change in group]
        for start in range(0, len(groups), _ENTITIES_AT_ONCE)
    ]
