"""What is to be tried in a replay: the quotas in force, multiples of them, and others.

Example: ``scenario("x2")`` doubles every quota; ``scenario("produce:user=alice:=1000000")`` gives
those who share alice's produce quota 1 MB/s. ``candidates(1000.0, 3)`` are 50, 229 and 1050.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sidecar.errors import SidecarError
from usage_pipeline.tables.schemas import QUOTA_TYPES

_LOWEST: Final = 0.05
"""Of the highest rate, the smallest candidate: what holds a client nearly all the time."""
_HIGHEST: Final = 1.05
"""Of it, the largest, which holds nobody."""
_DIGITS: Final = 3


class ScenarioError(SidecarError):
    """A scenario that can't be understood."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Quotas to replay.

    Attributes:
        name: as in the table.
        factor: of what is in force; None: ``quota`` is set.
        quota: instead of what is in force, in its unit; None: ``factor`` is set.
        quota_type: that it is about; None: all.
        entity: whose quota, or who shares it, "user=alice"; None: everybody's.

    Raises:
        ScenarioError: none or both of the first two, or not above 0 and finite; an unknown quota
            type; an entity without one.
    """

    name: str
    factor: float | None = None
    quota: float | None = None
    quota_type: str | None = None
    entity: str | None = None

    def __post_init__(self) -> None:
        value = self.quota if self.factor is None else self.factor
        if value is None or (self.factor is not None and self.quota is not None):
            raise ScenarioError(f"{self.name}: give either a factor or a quota")
        if not 0 < value < math.inf:
            raise ScenarioError(f"{self.name}: {value} is not above 0 and finite")
        if self.quota_type is not None and self.quota_type not in QUOTA_TYPES:
            raise ScenarioError(
                f"{self.name}: {self.quota_type} is none of {', '.join(QUOTA_TYPES)}"
            )
        if self.entity is not None and self.quota_type is None:
            raise ScenarioError(f"{self.name}: say for which quota type {self.entity} is")


IN_FORCE: Final = Scenario("in force", factor=1.0)
"""The quotas as they were."""


def scenario(text: str) -> Scenario:
    """A scenario as a person writes it.

    Args:
        text: "x2" or "=1000", after "produce:" or "produce:user=alice:" if it isn't for all.

    Raises:
        ScenarioError: it can't be understood.
    """
    about, _, change = text.rpartition(":")
    quota_type, _, entity = about.partition(":")
    try:
        number = float(change[1:])
    except ValueError:
        number = math.nan
    if change[:1] not in ("x", "=") or math.isnan(number):
        raise ScenarioError(f'{text} is not like "x2", "=1000" or "produce:user=alice:=1000"')
    if entity and not entity.startswith(("user=", "client-id=")):
        raise ScenarioError(f'{text}: {entity} is no entity, such as "user=alice,client-id=etl"')
    return Scenario(
        change,
        factor=number if change[0] == "x" else None,
        quota=number if change[0] == "=" else None,
        quota_type=quota_type or None,
        entity=entity or None,
    )


def candidates(peak: float, count: int) -> tuple[float, ...]:
    """Quotas to try for somebody, from one that holds them to one that doesn't.

    Args:
        peak: the highest rate, in the quota's unit, above 0.
        count: how many, at least 2.

    Returns:
        In rising order, each as many times the one before, to three digits; fewer where these are
        the same.

    Raises:
        ValueError: a number out of its range.
    """
    if not 0 < peak < math.inf or count < 2:
        raise ValueError(f"{count} candidates up to {peak} can't be made")
    step = (_HIGHEST / _LOWEST) ** (1 / (count - 1))
    found = (float(f"{peak * _LOWEST * step**at:.{_DIGITS}g}") for at in range(count))
    return tuple(sorted(set(found)))


def sweep(peaks: Iterable[tuple[str, str, float]], count: int) -> tuple[Scenario, ...]:
    """The candidates of many.

    Args:
        peaks: quota type, who shares it ("user=alice"), their highest rate; those of 0 are left
            out.
        count: how many for each.
    """
    return tuple(
        Scenario(f"={quota:g}", quota=quota, quota_type=quota_type, entity=shared_by)
        for quota_type, shared_by, peak in peaks
        if peak > 0
        for quota in candidates(peak, count)
    )
