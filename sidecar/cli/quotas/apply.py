"""``throttle-sidecar quotas apply``: set the planned quotas.

Example: the shares of 3,000 tenants change. The brokers validate all changes, and the command asks
for one confirmation. A bar shows the progress. At the first error the command stops and prints
which quotas are set.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from sidecar.cli.kafka_options import KafkaOptions, kafka_options, load_kafka_admin
from sidecar.cli.quotas.counts import are_done, quota_counts, to_do
from sidecar.cli.quotas.output import change_documents, echo_json, print_changes, print_warnings
from sidecar.cli.quotas.plan_options import PlanOptions
from sidecar.cli.quotas.target_quotas import read_planned_changes, target_options
from sidecar.errors import BrokersError
from sidecar.quotas.request_time.quota_plan import Change
from sidecar.request_time.quota_changes import CTRL_C, Outcome, set_or_exit, validate

_EXIT_CODES: Final = {None: 0, CTRL_C: 130}
"""The exit code for each problem; any other problem has 1."""


@click.command(
    "apply",
    epilog="""\b
Examples:
  throttle-sidecar quotas apply --tenants 50 --bootstrap-server localhost:9092
  throttle-sidecar quotas apply --tenants-from tenants.toml --default 10 --yes
  throttle-sidecar quotas apply --plan plan.json
  throttle-sidecar quotas apply --plan before.json --exact
""",
)
@kafka_options
@target_options
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.pass_context
def command(
    context: click.Context,
    *,
    kafka: KafkaOptions,
    options: PlanOptions,
    plan_file: Path | None,
    exact: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Set the quotas of a plan, made now or from a file. Other quotas stay as they are.

    The brokers first validate all changes. If they reject any change, nothing is set. The command
    stops at the first error (exit code 1) or at Ctrl-C (exit code 130), and prints which quotas
    are set.
    """
    admin = load_kafka_admin(kafka)
    aim = read_planned_changes(options, plan_file, exact, admin)
    if not as_json:
        print_changes(aim.changes)
    print_warnings(aim.warnings)
    outcome = Outcome(())
    if aim.changes:
        with _bar("Validating", len(aim.changes)) as progress:
            refused = asyncio.run(validate(admin, aim.changes, progress))
        if refused is not None:
            raise BrokersError(f"nothing was set: {refused}")
        no = None if yes else _no(aim.changes)
        if no is not None:
            outcome = Outcome((), aim.changes, (), no)
        else:
            with _bar("Setting", len(aim.changes)) as progress:
                outcome = set_or_exit(admin, aim.changes, progress)
    _report(outcome, as_json, aim.warnings)
    context.exit(_EXIT_CODES.get(outcome.problem, 1))


def _no(changed: Sequence[Change]) -> str | None:
    """Ask the operator; return why nothing may be set, or None after a yes."""
    try:
        options = f"{to_do(changed)}?"
        return None if click.confirm(options, err=True) else "the answer was no"
    except click.Abort as aborted:
        # Any other end is Ctrl-C.
        if not isinstance(aborted.__context__, EOFError):
            raise
        click.echo(err=True)
        return "nobody answered the question; --yes skips it"


def _report(outcome: Outcome, as_json: bool, warnings: Sequence[str]) -> None:
    if as_json:
        echo_json(
            {
                "done": change_documents(outcome.done),
                "not_done": change_documents(outcome.left),
                "unknown": change_documents(outcome.unknown),
                "problem": outcome.problem,
                "warnings": warnings,
            }
        )
    if outcome.problem is None:
        if not as_json and outcome.done:
            click.echo(f"Done: {are_done(outcome.done)}.")
        return
    texts = [are_done(outcome.done) or "Nothing is changed"]
    if outcome.left:
        texts.append(are_done(outcome.left, "not "))
    if outcome.unknown:
        texts.append(f"of {quota_counts(len(outcome.unknown))} it is not known")
    click.echo(f"Stopped: {outcome.problem}\n{'; '.join(texts)}.", err=True)
    if not as_json and outcome.done:
        click.echo("Done before it stopped:")
        print_changes(outcome.done)


@contextmanager
def _bar(what: str, length: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error if that is a terminal; yield the function that moves it."""
    from rich.console import Console  # noqa: PLC0415 - slow to import
    from rich.progress import Progress  # noqa: PLC0415 - slow to import

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = bars.add_task(what, total=length)
        yield lambda more: bars.advance(bar, more)
