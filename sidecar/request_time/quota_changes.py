"""Setting many quotas: validated first, then entity by entity, up to the first error.

Brokers take many entities in one request, and set each of them or not. What they did not answer
for, since the connection broke, is read from the quotas.

Example: of 250 entities the 101st is refused. 100 are done and those of its request that were
accepted with it; the rest is not tried.
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
"""The problem of an outcome that a person has cut short."""

_ENTITIES_AT_ONCE: Final = 100
_SETTLED_AFTER_S: Final = 1.0
"""A broker may show quotas some records later than the controller has them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of changes.

    Attributes:
        done: those in force now.
        left: those that are not, or that were not tried.
        unknown: those of which that is not known.
        problem: why it stopped; None: all is done.
    """

    done: tuple[Change, ...]
    left: tuple[Change, ...] = ()
    unknown: tuple[Change, ...] = ()
    problem: str | None = None


async def validate(
    admin: "KafkaAdmin", changed: Sequence[Change], progress: Callable[[int], None]
) -> str | None:
    """Why the brokers would not set all of it; None: they would.

    ``progress`` is called with how many changes more were validated.
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
    """Sets them in their order, and stops at the first request that was not done wholly.

    ``progress`` is called with how many changes more are done.
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
    """As ``set_quotas``, in a loop of its own; after Ctrl-C what is in force is read."""
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
    """There was no answer: the quotas show whether it was done."""
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
    """So many entities at once; what changes for one of them stays together."""
    grouped: dict[object, list[Change]] = {}
    for change in changed:
        grouped.setdefault(change.entity, []).append(change)
    groups = list(grouped.values())
    return [
        [change for group in groups[start : start + _ENTITIES_AT_ONCE] for change in group]
        for start in range(0, len(groups), _ENTITIES_AT_ONCE)
    ]
