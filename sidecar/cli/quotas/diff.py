"""``throttle-sidecar quotas diff``: how the current quotas differ from a plan.

Example: the command prints a row for each quota that would change and exits with 1. It exits with 0
if all quotas are as planned.
"""

from pathlib import Path

import click

from sidecar.cli.kafka_options import KafkaOptions, kafka_options, load_kafka_admin
from sidecar.cli.quotas.output import change_documents, echo_json, print_changes, print_warnings
from sidecar.cli.quotas.plan_options import PlanOptions
from sidecar.cli.quotas.target_quotas import read_planned_changes, target_options


@click.command(
    "diff",
    epilog="""\b
Examples:
  throttle-sidecar quotas diff --tenants 50 --bootstrap-server localhost:9092
  throttle-sidecar quotas diff --tenants-from tenants.toml || echo "not as planned"
  throttle-sidecar quotas diff --plan before.json --exact
""",
)
@kafka_options
@target_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.pass_context
def command(
    context: click.Context,
    *,
    kafka: KafkaOptions,
    options: PlanOptions,
    plan_file: Path | None,
    exact: bool,
    as_json: bool,
) -> None:
    """Compare a plan, made now or from a file, with the quotas that are set.

    The exit code is 0 if the quotas are as planned, 1 if they differ, and 2 if that is unknown.
    """
    aim = read_planned_changes(options, plan_file, exact, load_kafka_admin(kafka))
    if as_json:
        echo_json({"changes": change_documents(aim.changes), "warnings": aim.warnings})
    else:
        print_changes(aim.changes)
    print_warnings(aim.warnings)
    context.exit(1 if aim.changes else 0)
