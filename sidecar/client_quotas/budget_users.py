"""The users that storage budgets slow, as far as their quotas are few enough: a function.

A user without a produce quota of its own gets a copy of each quota that limits its clients
(``sidecar.client_quotas.plan``). With thousands of client-ids, Kafka's answer with all quotas would
become too long to read, and nothing could be restored. So an owner whose principals need more new
quotas than ``MOST_QUOTAS`` leaves is not slowed. Copies that are still there count, those of users
in scope too, so an owner that is slowed stays slowed.

Example: a cluster has 500 quotas of client-ids. "etl" has 3 principals, which need 1,503 copies.
"web" has one, which would need 501 more, so "web" is not slowed.
"""

from collections.abc import Collection, Mapping

from sidecar.client_quotas.plan import has_own
from sidecar.client_quotas.scope import MOST_QUOTAS, copies_for_user
from sidecar.quotas.entities import Entity, Name
from sidecar.throttle.memory import BudgetThrottle


def users_of_budgets(
    budgets: Mapping[str, BudgetThrottle], quotas: Collection[Entity], copies: Collection[Entity]
) -> tuple[dict[Name, float], frozenset[str]]:
    """Return the factors of the users that are slowed, and the owners for which nobody is.

    Args:
        budgets: the owners past their soft bytes; the first ones take precedence.
        quotas: the entities that have a produce quota.
        copies: those that the sidecar made.
    """
    users: dict[Name, float] = {}
    unslowed: set[str] = set()
    provided = {each.user for each in copies}
    count, of_user = len(copies), copies_for_user(quotas)
    for owner, throttle in budgets.items():
        new = {
            user
            for user in throttle.principals
            if user not in provided and not has_own(user, quotas)
        }
        if new and count + of_user * len(new) > MOST_QUOTAS:
            unslowed.add(owner)
            continue
        count += of_user * len(new)
        provided |= new
        users |= {user: min(throttle.factor, users.get(user, 1.0)) for user in throttle.principals}
    return users, frozenset(unslowed)
