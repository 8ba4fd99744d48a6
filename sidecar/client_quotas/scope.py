"""The users that a throttle of some topics is for: a function of what request logs tell.

Client quotas know users, but no topics. A user is in scope if it wrote to one of the topics in the
last 15 minutes, on any broker. Every active broker's log must tell that, for each log has only the
requests to its own broker. Otherwise the throttle is for all clients: nobody is released because a
log can't be seen.

A log tells everything once it has been read for a minute without a gap. A user that writes less
often may be missing then, and comes into scope with its next request. A topic's id that can't be
resolved counts as one of the topics.

Example: a volume with "orders" is full. alice wrote to "orders" on broker 1, and bob only to
"clicks". Both brokers' logs tell: the quotas of alice fall, and bob's stay as they are.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sidecar.client_quotas.plan import has_own, sources_of_copies
from sidecar.client_quotas.writers import BrokerWriters
from sidecar.quotas.entities import Entity
from sidecar.throttle.validity import is_valid

FRESH_S: Final = 15.0
"""How long an answer of another sidecar counts."""

MOST_QUOTAS: Final = 2000
"""The most quotas that fall for users in scope, each with a record of its original. For more, all
clients are throttled by the quotas that there are. It is also the most copies for storage budgets
(``sidecar.client_quotas.budget_users``)."""

_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Told:
    """What a sidecar told.

    Attributes:
        writers: its answer.
        at: when it was asked, steady seconds.
    """

    writers: BrokerWriters
    at: float


@dataclass(frozen=True, slots=True)
class Scoped:
    """The users in scope.

    Attributes:
        why: why all clients are in scope; "" if only ``users`` are.
        sure: the users that wrote to one of the topics.
        unsure: the users that may have done so, since ids of topics could not be resolved.
    """

    why: str = ""
    sure: frozenset[str] = frozenset()
    unsure: frozenset[str] = frozenset()

    @property
    def users(self) -> frozenset[str] | None:
        """The users; None for all clients."""
        return None if self.why else self.sure | self.unsure

    @property
    def sentence(self) -> str:
        """Whom the throttle is for, and why."""
        if self.why:
            return f"The throttle is for all clients, since {self.why}."
        users = sorted(self.sure | self.unsure)
        if not users:
            return "By request logs, nobody is known to write to topics on the full volumes."
        more = f" and {len(users) - _NAMED:,} more" if len(users) > _NAMED else ""
        counted = (
            f" {len(self.unsure):,} of them count because ids of topics can't be resolved, which "
            "needs DESCRIBE on topics."
        )
        return (
            "By request logs, the throttle is for the users that write to topics on the full "
            f"volumes: {', '.join(users[:_NAMED])}{more}.{counted if self.unsure else ''}"
        )


def scoped(
    topics: Collection[str],
    active: Collection[int],
    told: Iterable[Told],
    names: Mapping[str, str],
    now: float,
) -> Scoped:
    """Return the users in scope.

    Args:
        topics: the topics; empty while nobody is in scope yet.
        active: the brokers that clients can write to.
        told: what the sidecars told.
        names: the id of a topic -> its name; "" if there is no such topic.
        now: steady seconds.
    """
    if not topics:
        return Scoped()
    fresh = [each.writers for each in told if is_valid(each.at, FRESH_S, now)]
    if why := _unknown(active, fresh):
        return Scoped(why)
    sure: set[str] = set()
    unsure: set[str] = set()
    for each in fresh:
        for writer in each.writers:
            name = writer.topic or names.get(writer.topic_id)
            if name is None:
                unsure.add(writer.user)
            elif name in topics:
                sure.add(writer.user)
    if "" in sure | unsure:
        # Kafka has no quota for it alone.
        return Scoped("a user without a name writes there")
    return Scoped("", frozenset(sure), frozenset(unsure - sure))


def _unknown(active: Collection[int], fresh: Collection[BrokerWriters]) -> str:
    """Return why not all writers are known; "" if they are."""
    for broker_id in sorted(active):
        whole = [each.is_whole for each in fresh if each.broker_id == broker_id]
        if not whole:
            return f"no sidecar tells who writes to broker {broker_id}"
        if not all(whole):
            log = f"the request log of broker {broker_id}"
            return f"{log} has not been read for a minute without a gap"
    return "" if active else "the brokers are not known"


def quotas_for(users: Iterable[str], quotas: Collection[Entity]) -> int:
    """Return how many quotas fall at most for these users alone (``sidecar.client_quotas.plan``).

    Args:
        users: the users.
        quotas: the entities that have a produce quota.
    """
    copies = copies_for_user(quotas)
    return sum(1 if has_own(user, quotas) else copies for user in users)


def copies_for_user(quotas: Collection[Entity]) -> int:
    """Return how many quotas a user without one of its own gets at most."""
    return 1 + len(sources_of_copies(quotas))
