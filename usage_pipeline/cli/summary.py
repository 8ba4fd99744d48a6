"""The summary of a run, as text and as JSON.

Example: ``1 request log, 0.3 MB``, ``brokers: 3 by the folder kafka-3 (1 file)``,
``silver_request: 210 rows``, ``1 line was not read: see the table quarantine``.
"""

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from difflib import get_close_matches
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from usage_pipeline.recommend.terms import UNCLEAR_NAME, below_confidence

if TYPE_CHECKING:
    # Not at run time: a command's help needs no Spark.
    from usage_pipeline.batch.job import Outcome
    from usage_pipeline.replay.scenarios import Scenario

_BROKERS: Final = 20
"""The largest number of brokers in a line."""
_NAMES: Final = 3
"""The largest number of names in a message."""
_LISTED: Final = 20
"""The largest number of names that a plan leaves out in a message."""


def counted(count: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun: "1 row" or "2,000 rows".

    Args:
        count: the number.
        noun: the singular.
        nouns: the plural; "" for the singular with an s.
    """
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"


def document(outcome: "Outcome") -> dict[str, object]:
    """For programs."""
    return {
        "clusters": list(outcome.clusters),
        "left_out": outcome.left_out,
        "days": [day.isoformat() for day in outcome.days],
        "rows": outcome.rows,
        "files": outcome.files,
        "bytes": outcome.bytes,
        "brokers": [
            {**name._asdict(), "files": files} for name, files in sorted(outcome.brokers.items())
        ],
        "quarantined": outcome.quarantined,
        "volume_faults": outcome.volume_faults,
        "unknown": outcome.unknown,
        "entities": outcome.entities,
        "dropped": outcome.dropped,
        "costs": [
            {"owner": owner, "currency": currency, "cost": str(cost)}
            for (owner, currency), cost in _by_owner(outcome).items()
        ],
        "costs_left_out": [
            {"kind": kind, "reason": why, "days": days}
            for (kind, why), days in _costs_left_out(outcome).items()
        ],
        "rolled_forward": outcome.rolled_forward,
    }


def text(outcome: "Outcome") -> str:
    """The summary as text."""
    lines = []
    if outcome.rolled_forward:
        lines.append("completed the commit of an earlier run that was killed")
    if len(outcome.clusters) > 1:
        lines.append(f"clusters: {', '.join(outcome.clusters)}")
    lines += [f"skipped: {cluster}: {why}" for cluster, why in outcome.left_out.items()]
    if outcome.files:
        lines.append(f"{counted(outcome.files, 'request log')}, {outcome.bytes / 1e6:,.1f} MB")
        lines += _brokers(outcome)
    lines += [f"{name}: {counted(count, 'row')}" for name, count in outcome.rows.items()]
    lines += [f"{name}: dropped {counted(n, 'old day')}" for name, n in outcome.dropped.items()]
    if outcome.quarantined:
        read = counted(outcome.quarantined, "line")
        verb = "was" if outcome.quarantined == 1 else "were"
        lines.append(f"{read} {verb} not read: see the table quarantine")
    for what, count in sorted(outcome.volume_faults.items()):
        lines.append(f"left out of the volume history: {what}: {count:,}")
    if outcome.unknown:
        requests = counted(outcome.unknown, "request")
        lines.append(f"{requests} of unknown size (no line has the bytes or partitions)")
    for whom in sorted(set(outcome.entities.values())):
        kinds = [kind for kind, each in outcome.entities.items() if each == whom]
        lines.append(f"quotas for {whom}: {', '.join(kinds)}")
    lines += [
        f"costs of {owner}: {cost:,.2f} {currency}"
        for (owner, currency), cost in _by_owner(outcome).items()
    ]
    lines += [
        f"costs leave out {kind} on {counted(days, 'day')}: {why}"
        for (kind, why), days in _costs_left_out(outcome).items()
    ]
    return "\n".join(lines)


def _by_owner(outcome: "Outcome") -> dict[tuple[str, str], Decimal]:
    """Return the cost of each owner, with its currency; the largest first."""
    sums: dict[tuple[str, str], Decimal] = {}
    for row in outcome.costs:
        if row.owner is not None and row.cost is not None:
            key = (row.owner, row.currency)
            sums[key] = sums.get(key, Decimal(0)) + row.cost
    return dict(sorted(sums.items(), key=lambda each: -each[1]))


def _costs_left_out(outcome: "Outcome") -> Counter[tuple[str, str]]:
    """Return the number of days of each kind that is left out, with its reason."""
    return Counter((row.kind, row.left_out) for row in outcome.costs if row.left_out is not None)


def _brokers(outcome: "Outcome") -> Iterator[str]:
    """Yield a line for each cluster; a broker's id may be taken from a wrong part of a path."""
    by_cluster = groupby(sorted(outcome.brokers.items()), key=lambda item: item[0].cluster)
    for cluster, items in by_cluster:
        brokers = [
            f"{name.broker} by {name.named_by} ({counted(files, 'file')})" for name, files in items
        ]
        more = len(brokers) - _BROKERS
        brokers[_BROKERS:] = [f"and {more:,} more"] if more > 0 else []
        of = f" of {cluster}" if len(outcome.clusters) > 1 else ""
        yield f"brokers{of}: {', '.join(brokers)}"


def scenarios_of_nobody(
    scenarios: Iterable["Scenario"], replayed: Collection[tuple[str, str]]
) -> list[str]:
    """Return a line for each scenario that matched no charges, with the nearest names.

    Args:
        scenarios: the scenarios of the command line.
        replayed: the entities and the sharing clients, by type of quota.
    """
    lines = []
    for each in scenarios:
        quota_type, entity = each.quota_type, each.entity
        names = {name for kind, name in replayed if kind == quota_type}
        if quota_type is None or entity in names or (entity is None and names):
            continue
        about = f"{quota_type}:" if entity is None else f"{quota_type}:{entity}:"
        prefix = f"--scenario {about}{each.name}: "
        if entity is None or not names:
            lines.append(f"{prefix}no charges for {quota_type}")
            continue
        lines.append(f"{prefix}no charges to {entity} for {quota_type}; {_near(entity, names)}")
    return lines


def _near(entity: str, names: Collection[str]) -> str:
    # Compares the names without their common beginning.
    told_apart = {name.partition("=")[2]: name for name in sorted(names)}
    near = get_close_matches(entity.partition("=")[2], told_apart, n=_NAMES, cutoff=0.5)
    if near:
        return f"nearest: {', '.join(told_apart[each] for each in near)}"
    more = ", ..." if len(names) > _NAMES else ""
    return f"known: {', '.join(sorted(names)[:_NAMES])}{more}"


def left_out_of_plan(
    recommended: Iterable[Mapping[str, object]], least_confidence: str
) -> list[str]:
    """Return a line for each reason for which the plan leaves out recommended quotas.

    Args:
        recommended: rows of GOLD_RECOMMENDATION.
        least_confidence: the confidence that a quota needs for the plan.
    """
    rows = list(recommended)
    lines = []
    if below := below_confidence(rows, least_confidence):
        lines.append(
            f"the plan leaves out {counted(below, 'quota')} of a confidence below"
            f" {least_confidence}; the option --least-confidence includes such quotas, and the"
            " table gold_recommendation has them"
        )
    names = sorted({str(row["entity"]) for row in rows if row["refused"] == UNCLEAR_NAME})
    if names:
        more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
        lines.append(
            f"the plan leaves out {counted(len(names), 'entity', 'entities')}, because Kafka would"
            f" take a name for another entity: {', '.join(names[:_LISTED])}{more}"
        )
    return lines


def plan_line(path: Path, entities: int) -> str:
    """Return the line about the plan."""
    if not entities:
        return f"plan: {path} has no quotas; the table gold_recommendation has the reasons"
    whose = counted(entities, "entity", "entities")
    diff = shlex.join(["throttle-sidecar", "quotas", "diff", "--plan", str(path)])
    return f"plan: {path} has quotas of {whose}; compare: {diff} --bootstrap-server HOST:PORT"
