"""The capability for storage budgets (SIDECAR_BUDGETS_FILE)."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from fastapi import FastAPI
from prometheus_client.metrics_core import Metric

from sidecar.budgets.file import BudgetFile
from sidecar.budgets.followers import follow_by_http
from sidecar.budgets.metrics import budget_metrics
from sidecar.budgets.routes import add_budgets
from sidecar.budgets.watch import NAME, BudgetWatch
from sidecar.control.capability import Block, Build, Capability, Services, Table, Task
from sidecar.settings import Settings
from sidecar.throttle.budgets import Budget, BudgetRules, Owners, Usage
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.sizes import duration_in_words, size
from sidecar.throttle.slope import SlopeRules

_log = logging.getLogger(__name__)

_NAMED: Final = 5
SHOWN: Final = 10
"""The owners that the page shows, those that use the largest part of their budget first."""


def prepare(settings: Settings) -> Build:
    """Read the file of budgets, and return the function that builds the capability.

    Raises:
        SettingsError: the file can't be read, or its contents are invalid.
    """
    path = settings.budgets_file
    file = None if path is None else BudgetFile(path)
    budgets = () if file is None else file.load()

    def build(services: Services) -> Capability:
        contents, fetch = services.contents, services.fetch_sizes
        if file is None or contents is None or fetch is None:
            if file is not None:
                _log.warning("%s has no effect: this sidecar reads no brokers", file.path)
            return BudgetCapability(None, None, services.wall)
        rules = rules_of(settings)
        shortest_s = settings.check_interval_minimum_s
        owners = Owners(budgets)
        follow = follow_by_http(services.trust, services.followed)
        watch = BudgetWatch(
            services.board,
            contents,
            fetch,
            rules,
            shortest_s,
            services.is_observer,
            follow,
            owners,
        )
        watch.resume()
        return BudgetCapability(file, watch, services.wall)

    return build


def rules_of(settings: Settings) -> BudgetRules:
    """The rules for all budgets: horizon and pace are those of a volume's slope."""
    rise_per_s = settings.throttle_rise_per_minute / 60.0
    return BudgetRules(
        SlopeRules(MinAvailableBytes(1), settings.throttle_horizon, rise_per_s),
        settings.validity_s,
        is_enforced=settings.mode == "enforce" and settings.enforcement != "none",
        by_quotas=settings.enforcement == "client-quotas",
    )


class BudgetCapability(Capability):
    """Counts what owners use; without a file or brokers it does nothing.

    Attributes:
        watch: the usages of owners; None without budgets.
    """

    name = NAME

    def __init__(
        self, file: BudgetFile | None, watch: BudgetWatch | None, wall: Callable[[float], float]
    ) -> None:
        self.watch = watch
        self._file = file
        self._wall = wall

    def tasks(self) -> Mapping[str, Task]:
        """Reads brokers, and follows the file."""
        watch, file = self.watch, self._file
        if watch is None or file is None:
            return {}
        return {"storage budgets": watch.run, "budgets file": lambda: file.run(watch.change)}

    def add_routes(self, app: FastAPI) -> None:
        """The route; without budgets its list is empty."""
        add_budgets(app, self.watch, self._wall)

    def metrics(self) -> Iterator[Metric]:
        """The metrics of owners."""
        return budget_metrics(self.watch)

    def block(self) -> Block | None:
        """A table of the owners that use the largest part of their budget; None without budgets."""
        if self.watch is None or not self.watch.owners.budgets:
            return None
        usages = sorted(self.watch.usages.values(), key=lambda each: -each.ratio)
        rows = tuple(_row(each) for each in usages[:SHOWN])
        table = Table(("Owner", "Used", "Budget", "Full in", "Writers"), rows)
        return Block("Storage budgets", tuple(self._sentences(usages)), "/v1/budgets", table)

    def _sentences(self, usages: list[Usage]) -> Iterable[str]:
        if self.watch is not None and not self.watch.is_observer():
            yield "This sidecar follows observers, whose pages show the owners."
        elif not usages:
            yield "The sizes of topics are not known yet."
        elif len(usages) > SHOWN:
            yield f"The {SHOWN} of {len(usages):,} owners that use the largest part."
        unseen = sorted({broker_id for each in usages for broker_id in each.unseen})
        if unseen:
            brokers = ", ".join(map(str, unseen))
            yield f"Not seen, so that owners may use more: brokers {brokers}."
        if self.watch is not None:
            yield from _enforced(self.watch.rules, self.watch.owners.budgets)


def _enforced(rules: BudgetRules, budgets: Sequence[Budget]) -> Iterator[str]:
    if not any(rules.enforces(each) for each in budgets):
        yield "These budgets are only shown: nobody is slowed by them."
    elif rules.by_quotas:
        yield "Client quotas slow the principals of owners past their soft size."
    if rules.is_enforced and rules.by_quotas:
        if without := [each.owner for each in budgets if not each.principals]:
            yield (
                "Only shown, because SIDECAR_ENFORCEMENT=client-quotas slows no owner without "
                f"principals in the file of budgets: {_named(without)}."
            )
        if rules.unslowed:
            yield (
                "Not slowed, because their principals would need too many client quotas: "
                f"{_named(sorted(rules.unslowed))}. Give each principal a produce quota of its "
                "own."
            )


def _named(owners: Sequence[str]) -> str:
    return ", ".join(owners[:_NAMED]) + (", ..." if len(owners) > _NAMED else "")


def _row(usage: Usage) -> tuple[str, ...]:
    budget = usage.budget
    return (
        budget.owner,
        f"{size(usage.used_bytes)} ({100 * usage.ratio:.0f} %)",
        size(budget.hard_bytes),
        duration_in_words(usage.seconds_to_hard),
        usage.state,
    )
