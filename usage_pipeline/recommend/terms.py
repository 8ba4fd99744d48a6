"""The terms of recommendations, and the plan of recommended quotas for ``quotas apply``.

This module needs no Spark, because the commands and the report use it too.

Example: the recommendation of 2,500,000 bytes a second for ``user=alice`` is
``{"entity": {"user": "alice"}, "quotas": {"producer_byte_rate": 2500000.0}}``, which
``throttle-sidecar quotas diff --plan FILE`` compares with the current quotas.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sidecar.errors import SidecarError
from usage_pipeline.usage.quota_types import ANONYMOUS, KEYS

FLOORS: Final[Mapping[str, float]] = {
    "produce": 100_000.0,
    "fetch": 100_000.0,
    "request": 1.0,
    "controller_mutation": 1.0,
    "producer_ids": 10.0,
}
"""The smallest recommended quota of each type, below which a single request of usual size would
wait. The units are bytes per second, percent of a thread, partitions per second, ids per hour."""

_CLIENT_MARK: Final = ",client-id="
_DEFAULT: Final = "<default>"
CONFIDENCES: Final = ("low", "medium", "high")
"""The values of the column ``confidence``, in order."""
LEAST_CONFIDENCE: Final = "medium"
"""The confidence that a quota needs for the plan: an hour of logs has no nightly job."""
UNCLEAR_NAME: Final = (
    "Kafka would take its name for another entity (a default, or a user with a client-id): set a"
    " quota by hand, or change the name"
)
"""Why a quota is refused to clients with such a name."""


class TermsError(SidecarError):
    """The terms are invalid."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of recommendations.

    Attributes:
        target: the share of charges, and of their amount, that the quota may throttle, 0 to 1.
        longest_wait_s: the longest throttle time that the quota may cause, seconds. Kafka's own
            clients give a record up after 120 s (delivery.timeout.ms).
        percentile: the percentile of a tenant's rates below the quota, 0 to 1.
        half_life_days: the days in which the weight of a rate halves.
        margin: a share on top of the percentile.
        floors: the smallest quota of each type.
        least_coverage: the share of the time that the logs must cover.
        cluster_users: the brokers' own principals, which must not be throttled.
        cluster_clients: likewise, the users and client-ids of requests that only brokers send.
        unread: for each broker, the share of the requests in its logs that could not be read.
        whole_seconds: the brokers whose logs have whole seconds.

    Raises:
        TermsError: a number is out of its range.
    """

    target: float = 0.01
    longest_wait_s: float = 30.0
    percentile: float = 0.99
    half_life_days: float = 7.0
    margin: float = 0.15
    floors: Mapping[str, float] = field(default_factory=lambda: dict(FLOORS))
    least_coverage: float = 0.5
    cluster_users: frozenset[str] = frozenset()
    cluster_clients: frozenset[tuple[str, str]] = frozenset()
    unread: Mapping[int, float] = field(default_factory=dict)
    whole_seconds: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        for name in ("target", "percentile", "least_coverage"):
            if not 0 <= getattr(self, name) <= 1:
                raise TermsError(f"{name} must be from 0 to 1, not {getattr(self, name)}")
        if self.half_life_days <= 0 or self.margin < 0 or not self.longest_wait_s >= 0:
            raise TermsError(
                "a half-life must be above 0 days, and a margin and the longest wait at least 0"
            )
        if unknown := set(self.floors) - set(KEYS):
            raise TermsError(f"unknown quota type: {', '.join(sorted(unknown))}")
        if not all(0 <= least < math.inf for least in self.floors.values()):
            raise TermsError("a floor must be at least 0")


def entities_of_brokers(terms: Terms) -> tuple[list[str], list[str]]:
    """Return the entities that brokers are among, so that no quota may throttle them.

    Without a login, everybody is ANONYMOUS, so brokers are told apart by their client-ids there.

    Returns:
        The entities, and what the others of them begin with.
    """
    client_ids = {client_id for _, client_id in terms.cluster_clients}
    users = terms.cluster_users | {user for user, _ in terms.cluster_clients}
    with_login = sorted(users - {ANONYMOUS})
    entities = [f"user={user}" for user in sorted(users)]
    for client_id in sorted(client_ids - {""}):
        entities += [f"client-id={client_id}", f"user={ANONYMOUS},client-id={client_id}"]
    return entities, [f"user={user}{_CLIENT_MARK}" for user in with_login]


def floor(text: str) -> tuple[str, float]:
    """Parse a floor: "produce=100000" is ``("produce", 100000.0)``.

    Raises:
        TermsError: the text is no floor.
    """
    quota_type, _, number = text.partition("=")
    try:
        least = float(number)
    except ValueError:
        least = math.nan
    if quota_type not in KEYS or not 0 <= least < math.inf:
        raise TermsError(
            f'{text}: write a floor like "produce=100000", with one of {", ".join(KEYS)}, and'
            " a number from 0"
        )
    return quota_type, least


def capacity_of(
    document: Mapping[str, object] | None,
    network_bytes_per_s: float | None = None,
    disk_bytes_per_s: float | None = None,
) -> dict[str, float]:
    """Return the capacity of the smallest broker, for each quota type with a known capacity.

    Args:
        document: the output of ``quotas capacity --json``; None if unknown.
        network_bytes_per_s: a broker's network, in each direction; None if unknown.
        disk_bytes_per_s: the rate at which a broker's disks can write; None if unknown.

    Raises:
        TermsError: the document is no such output.
    """
    capacity: dict[str, float] = {}
    if document is not None:
        percent = document.get("smallest_capacity_percent")
        if not isinstance(percent, int | float) or percent <= 0:
            raise TermsError('capacity is not an output of "quotas capacity --json"')
        capacity["request"] = float(percent)
    written = [rate for rate in (network_bytes_per_s, disk_bytes_per_s) if rate is not None]
    if written:
        capacity["produce"] = min(written)
    if network_bytes_per_s is not None:
        capacity["fetch"] = network_bytes_per_s
    return capacity


def recommended_quotas(
    rows: Iterable[Mapping[str, object]], *, least_confidence: str = LEAST_CONFIDENCE
) -> dict[str, list[dict[str, object]]]:
    """Return the document for ``quotas diff --plan`` and ``quotas apply --plan``.

    Args:
        rows: rows of GOLD_RECOMMENDATION. The plan omits refused ones, so that current quotas stay.
            It also omits producer ids, for which Kafka has no quota, and ambiguous names.
        least_confidence: the plan omits quotas of a lower confidence.
    """
    quotas_by_entity: dict[tuple[tuple[str, str], ...], dict[str, float]] = {}
    for row in rows:
        quota = row["quota"]
        if not isinstance(quota, int | float) or row["quota_type"] == "producer_ids":
            continue
        if _is_below(row, least_confidence):
            continue
        parts = entity_parts(str(row["entity"]))
        if parts is not None:
            quotas_by_entity.setdefault(tuple(parts.items()), {})[str(row["key"])] = float(quota)
    return {
        "quotas": [
            {"entity": dict(parts), "quotas": dict(sorted(quotas.items()))}
            for parts, quotas in sorted(quotas_by_entity.items(), key=lambda each: str(each[0]))
        ]
    }


def below_confidence(rows: Iterable[Mapping[str, object]], least_confidence: str) -> int:
    """Count the recommended quotas that a plan omits for their confidence."""
    return sum(row["quota"] is not None and _is_below(row, least_confidence) for row in rows)


def _is_below(row: Mapping[str, object], least_confidence: str) -> bool:
    return CONFIDENCES.index(str(row["confidence"])) < CONFIDENCES.index(least_confidence)


def entity_parts(entity: str) -> dict[str, str] | None:
    """Split the name of a group of clients into Kafka's parts; None if the names are ambiguous.

    A group has names of clients. A client with the name "<default>" is not Kafka's default.

    Example: "user=alice,client-id=etl" is ``{"user": "alice", "client-id": "etl"}``.
    """
    if entity.startswith("client-id="):
        parts = {"client-id": entity.removeprefix("client-id=")}
    elif entity.startswith("user=") and entity.count(_CLIENT_MARK) <= 1:
        user, mark, client_id = entity.removeprefix("user=").partition(_CLIENT_MARK)
        parts = {"user": user, "client-id": client_id} if mark else {"user": user}
    else:
        return None
    return None if _DEFAULT in parts.values() else parts


def is_clear(entity: str, user: str, client_id: str) -> bool:
    """Return whether the name of a client's group is read as that client's own names.

    Example: the group "user=team,client-id=etl" of the user "team,client-id=etl" is not clear.
    """
    parts = entity_parts(entity)
    own = {"user": user, "client-id": client_id}
    return parts is not None and all(own[kind] == name for kind, name in parts.items())
