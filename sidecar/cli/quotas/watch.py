"""``throttle-sidecar quotas watch``: update the quotas as tenants come and go.

Example: 100 tenants share 6,400 %, 64 % each. 15 tenants come. After the stabilization time all 115
get 55.7 %, in steps no larger than --largest-change.
"""

import asyncio
import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click

from sidecar.cli.kafka_options import KafkaOptions, kafka_options, load_kafka_admin
from sidecar.cli.options import duration
from sidecar.cli.quotas.output import change_documents, print_warnings, quota_text
from sidecar.cli.quotas.plan_options import PlanOptions, plan_options
from sidecar.cli.quotas.planning import read_capacity
from sidecar.client_quotas.plan import without_throttles
from sidecar.errors import BrokersError, PlanError, SettingsError
from sidecar.formats.gathered_options import finite, read_by
from sidecar.quotas.request_time.plan_review import PlanWarning, review_plan
from sidecar.quotas.request_time.plan_upkeep import Watch
from sidecar.quotas.request_time.quota_plan import Change
from sidecar.request_time.cluster_state import read_cluster_id, read_quotas
from sidecar.request_time.quota_changes import Outcome, set_quotas
from sidecar.request_time.tenants import Source

if TYPE_CHECKING:
    # Not at run time: the Kafka client is imported when it is used.
    from sidecar.settings import KafkaAdmin

_MS: Final = 1000
_PERCENT: Final = 100


@click.command(
    "watch",
    epilog="""\b
Examples:
  throttle-sidecar quotas watch --tenants-from scram --dry-run
  throttle-sidecar quotas watch --tenants-from acls --as-default --stabilization 15m
  throttle-sidecar quotas watch --tenants-from tenants.toml --largest-change 10
""",
)
@kafka_options
@plan_options
@click.option(
    "--interval",
    callback=duration(),
    default="30s",
    show_default=True,
    metavar="DURATION",
    help="How often to read the tenants and quotas.",
)
@click.option(
    "--stabilization",
    callback=duration(),
    default="5m",
    show_default=True,
    metavar="DURATION",
    help="A tenant counts after it was present for so long, and no longer after it was absent"
    " for so long.",
)
@click.option(
    "--largest-change",
    type=click.FloatRange(min=0.0, min_open=True, max=100.0),
    callback=read_by(finite, click.BadParameter, ValueError),
    default=20.0,
    show_default=True,
    metavar="PERCENT",
    help="By how much of itself a quota may move in one step.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be set, and set nothing.")
@click.option(
    "--once", is_flag=True, help="Make one step and end; tenants that are present count at once."
)
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each step.")
@click.pass_context
def command(
    context: click.Context,
    *,
    kafka: KafkaOptions,
    options: PlanOptions,
    interval: float,
    stabilization: float,
    largest_change: float,
    dry_run: bool,
    once: bool,
    as_json: bool,
) -> None:
    """Update the planned shares while tenants come and go, until Ctrl-C.

    If somebody else changes a quota, the next step restores the planned one. If the tenants can't
    be read, or there is none, nothing is changed. A tenant that has left loses the quota that this
    command set. A restart forgets these quotas: that of a tenant that leaves meanwhile stays, and a
    warning names it.
    """
    source = options.source
    if source is None:
        raise click.UsageError("no tenants to watch: name their source with --tenants-from")
    if interval <= 0:
        raise click.UsageError("--interval must be longer than 0 s")
    watcher = Watcher(
        load_kafka_admin(kafka),
        options,
        source,
        Watch(round(stabilization * _MS), largest_change / _PERCENT),
        dry_run=dry_run,
        as_json=as_json,
    )
    good = asyncio.run(watcher.run(interval, once=once))
    context.exit(0 if good else 1)


@dataclass(slots=True)
class Watcher:
    """Reads the tenants, plans and sets quotas, in a loop."""

    admin: "KafkaAdmin"
    options: PlanOptions
    source: Source
    watch: Watch
    dry_run: bool
    as_json: bool
    _reported: str = field(default="", init=False)
    _warned: list[str] = field(default_factory=list, init=False)

    async def run(self, interval_s: float, *, once: bool) -> bool:
        """Run a step in each interval.

        Returns:
            Whether the last step succeeded.
        """
        while True:
            good = await self.observe(time.monotonic_ns() // 1_000_000)
            if once:
                return good
            await asyncio.sleep(interval_s)

    async def observe(self, now_ms: int) -> bool:
        """Run one poll and the step that follows from it.

        Returns:
            Whether the step succeeded.
        """
        try:
            tenants, changed, warnings = await self._next(now_ms)
        except (BrokersError, PlanError, SettingsError) as error:
            self._problem(f"nothing is changed: {error}")
            return False
        outcome = Outcome(changed)
        if changed and not self.dry_run:
            outcome = await set_quotas(self.admin, changed, lambda _: None)
        self._report(tenants, outcome, [str(warning) for warning in warnings])
        return outcome.problem is None

    async def _next(self, now_ms: int) -> tuple[int, tuple[Change, ...], tuple[PlanWarning, ...]]:
        if self.admin.cluster_id is None:
            # Later, an address may lead to another cluster, whose quotas are not to be changed.
            cluster_id = await read_cluster_id(self.admin)
            self.admin = self.admin.model_copy(update={"cluster_id": cluster_id})
        quotas = without_throttles(await read_quotas(self.admin))
        found_percent, _ = await read_capacity(self.options, self.admin)
        capacity_percent = self.watch.capacity(found_percent, now_ms)
        there = await self.source.read(self.admin, quotas)
        counted = self.watch.count(there, now_ms)
        plan = self.options.plan(capacity_percent, counted)
        kind = self.options.tenant_kind
        # A step does not read the known users; "plan" and "diff" report unknown ones.
        warnings = review_plan(plan, kind, quotas, None)
        return plan.tenants, self.watch.step(quotas, plan.target(kind)), warnings

    def _report(self, tenants: int, outcome: Outcome, warnings: list[str]) -> None:
        if warnings != self._warned:
            print_warnings(warnings)
        self._warned = warnings
        if self.as_json:
            self._json(tenants, outcome, warnings)
            return
        verb = "would be set" if self.dry_run else "set"
        who = "tenant" if tenants == 1 else "tenants"
        lines = [f"{tenants:,} {who}, {self.watch.unstable:,} not counted yet"]
        lines += [
            f"  {verb}: {change.entity}: {quota_text(change.before)} -> {quota_text(change.after)}"
            for change in outcome.done
        ]
        text = "\n".join(lines)
        # A step without changes prints nothing.
        if text != self._reported:
            click.echo(f"{_now()} {text}")
        self._reported = text
        if outcome.problem is not None:
            self._problem(
                f"{len(outcome.left) + len(outcome.unknown):,} not set: {outcome.problem}"
            )

    def _json(self, tenants: int, outcome: Outcome, warnings: list[str]) -> None:
        document = {
            "time": _now(),
            "tenants": tenants,
            "on_hold": self.watch.unstable,
            "dry_run": self.dry_run,
            "done": change_documents(outcome.done),
            "not_done": change_documents((*outcome.left, *outcome.unknown)),
            "problem": outcome.problem,
            "warnings": warnings,
        }
        click.echo(json.dumps(document))

    def _problem(self, text: str) -> None:
        self._reported = ""
        if self.as_json:
            click.echo(json.dumps({"time": _now(), "problem": text}))
        click.echo(f"{_now()} {text}", err=True)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
