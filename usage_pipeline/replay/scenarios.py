"""The scenarios of a replay: the current quotas, multiples of them, and other quotas.

Example: ``scenario("x2")`` doubles every quota; ``scenario("produce:user=alice:=1000000")`` sets
the shared produce quota of alice to 1 MB/s. ``candidates(1000.0, 3)`` are 21, 96.2, 441 and 2020.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sidecar.errors import SidecarError
from usage_pipeline.tables.schemas import QUOTA_TYPES

_LOWEST: Final = 0.05
"""The smallest candidate relative to the highest rate, which nearly always throttles."""
_HIGHEST: Final = 1.05
"""The largest candidate relative to the highest rate, which never throttles."""
_DIGITS: Final = 3


class ScenarioError(SidecarError):
    """A scenario is invalid."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Quotas to replay.

    Attributes:
        name: the name in the table.
        factor: the multiple of the current quota; None if ``quota`` is set.
        quota: the new quota in its unit; None if ``factor`` is set.
        quota_type: the type of quota; None for all types.
        entity: the entity or the sharing clients, such as "user=alice"; None for all.

    Raises:
        ScenarioError: neither or both of factor and quota are set, one is not above 0 and finite,
            the quota type is unknown, or an entity has no quota type.
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
            raise ScenarioError(f"{self.name}: {value} must be above 0 and finite")
        if self.quota_type is not None and self.quota_type not in QUOTA_TYPES:
            raise ScenarioError(
                f"{self.name}: {self.quota_type} is not one of {', '.join(QUOTA_TYPES)}"
            )
        if self.entity is not None and self.quota_type is None:
            raise ScenarioError(f"{self.name}: name the quota type of {self.entity}")


IN_FORCE: Final = Scenario("in force", factor=1.0)
"""The current quotas."""


def scenario(text: str) -> Scenario:
    """Parse a scenario.

    Args:
        text: "x2" or "=1000", optionally after "produce:" or "produce:user=alice:".

    Raises:
        ScenarioError: the text is no scenario.
    """
    about, _, change = text.rpartition(":")
    quota_type, _, entity = about.partition(":")
    try:
        number = float(change[1:])
    except ValueError:
        number = math.nan
    if change[:1] not in ("x", "=") or math.isnan(number):
        raise ScenarioError(f'{text}: write "x2", "=1000" or "produce:user=alice:=1000"')
    if entity and not entity.startswith(("user=", "client-id=")):
        raise ScenarioError(f'{text}: {entity} is not an entity such as "user=alice,client-id=etl"')
    return Scenario(
        change,
        factor=number if change[0] == "x" else None,
        quota=number if change[0] == "=" else None,
        quota_type=quota_type or None,
        entity=entity or None,
    )


def candidates(peak: float, count: int) -> tuple[float, ...]:
    """Return candidate quotas from one that nearly always throttles to one that never does.

    All runs choose from the same series of values, whatever their peaks are, so that a value can be
    judged by the replays of many days.

    Args:
        peak: the highest rate, in the quota's unit, above 0.
        count: about how many candidates, at least 2.

    Returns:
        Consecutive values of a geometric series, rounded to three digits.

    Raises:
        ValueError: a number is out of its range.
    """
    if not 0 < peak < math.inf or count < 2:
        raise ValueError(f"{count} candidates up to {peak} are impossible")
    step = math.log(_HIGHEST / _LOWEST) / (count - 1)
    first = math.floor(math.log(peak * _LOWEST) / step)
    last = math.ceil(math.log(peak * _HIGHEST) / step)
    quotas = (float(f"{math.exp(at * step):.{_DIGITS}g}") for at in range(first, last + 1))
    return tuple(sorted(set(quotas)))


def sweep(peaks: Iterable[tuple[str, str, float]], count: int) -> tuple[Scenario, ...]:
    """Return the candidates of many groups.

    Args:
        peaks: the quota type, the sharing clients ("user=alice") and their highest rate. Rates of 0
            are omitted.
        count: about how many candidates each group has.
    """
    return tuple(
        Scenario(f"={quota:g}", quota=quota, quota_type=quota_type, entity=shared_by)
        for quota_type, shared_by, peak in peaks
        if peak > 0
        for quota in candidates(peak, count)
    )
