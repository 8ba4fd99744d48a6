"""``throttle-sidecar quotas plan``: share the brokers' threads among tenants.

Example: 120 tenants on 8 I/O and 3 network threads get 9.2 % each, as the article's script
computes.
"""

from typing import Final

import click

from sidecar.cli.kafka_options import KafkaOptions, kafka_options
from sidecar.cli.quotas.capacity import block, label
from sidecar.cli.quotas.capacity import document as capacity_document
from sidecar.cli.quotas.output import (
    change_documents,
    echo_json,
    print_changes,
    print_warnings,
)
from sidecar.cli.quotas.plan_options import PlanOptions, plan_options
from sidecar.cli.quotas.planning import Planned, planned
from sidecar.quotas.commands import kafka_configs, number
from sidecar.quotas.entities import DEFAULT
from sidecar.quotas.quota_file import quota_documents
from sidecar.quotas.request_time.quota_plan import TenantKind

_NOWHERE: Final = "HOST:PORT"


@click.command(
    "plan",
    epilog="""\b
Examples:
  throttle-sidecar quotas plan --tenants 120 --bootstrap-server localhost:9092
  throttle-sidecar quotas plan --tenants 50 --capacity 6400
  throttle-sidecar quotas plan --tenants-from scram --reserve 200 --internal mirror
  throttle-sidecar quotas plan --tenants-from tenants.toml --default 10 --json > plan.json
""",
)
@kafka_options
@plan_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(kafka: KafkaOptions, options: PlanOptions, as_json: bool) -> None:
    """Share the brokers' threads among tenants, and print the changes and the commands for them.

    Shares are equal; with weights, minimums and maximums in a file they are max-min fair. This
    command sets nothing: see "quotas apply". With --capacity it reads no broker's capacity, and
    without a broker's address it contacts no broker.
    """
    found = planned(options, kafka)
    kinds = list(TenantKind) if options.kind is None else [options.kind]
    if as_json:
        echo_json(_document(found, _commands(found, kafka, kinds)))
    else:
        _print(found, _commands(found, kafka, kinds))
    print_warnings(found.warnings)


def _print(found: Planned, commands: dict[TenantKind, list[str]]) -> None:
    plan = found.plan
    if found.found is not None:
        click.echo("\n\n".join(block(broker) for broker in found.found.brokers) + "\n")
    click.echo(label("total capacity", number(plan.terms.capacity_percent)))
    if plan.terms.reserve_percent:
        click.echo(label("reserve", number(plan.terms.reserve_percent)))
    click.echo(label("tenants", plan.tenants))
    if DEFAULT in plan.shares and plan.terms.default_percent is None:
        click.echo("\n" + label("request_percentage, each", number(plan.shares[DEFAULT])))
    if found.quotas is not None:
        click.echo()
        print_changes(found.changes)
    for kind, lines in commands.items():
        click.echo(f"\nTo set it for {kind}:")
        for line in lines:
            click.echo(f"  {line}")


def _document(found: Planned, commands: dict[TenantKind, list[str]]) -> dict[str, object]:
    plan = found.plan
    known = found.quotas is not None
    return {
        "capacity_percent": plan.terms.capacity_percent,
        "capacity": None if found.found is None else capacity_document(found.found),
        "reserve_percent": plan.terms.reserve_percent,
        "tenants": plan.tenants,
        "default_percent": plan.terms.default_percent,
        "quotas": quota_documents(plan.target(found.kind)),
        "changes": change_documents(found.changes) if known else None,
        "commands": {kind.value: lines for kind, lines in commands.items()},
        "warnings": found.warnings,
    }


def _commands(
    found: Planned, kafka: KafkaOptions, kinds: list[TenantKind]
) -> dict[TenantKind, list[str]]:
    connection = ["--bootstrap-server", kafka.bootstrap_server or _NOWHERE]
    if kafka.command_config is not None:
        connection += ["--command-config", str(kafka.command_config)]
    return {
        kind: [
            kafka_configs(connection, entity, values)
            for entity, values in found.plan.target(kind).items()
        ]
        for kind in kinds
    }
