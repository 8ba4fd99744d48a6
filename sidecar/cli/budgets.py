"""``throttle-sidecar budgets``: check a file of storage budgets before it is used.

A command imports its dependencies when it is called, so that its help is quick.

Example: ``budgets check budgets.toml`` prints that etl would use 120.0 GB of 200.0 GB, and be full
in 4 days at the growth of the last 10 seconds.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from sidecar.cli.kafka_options import KafkaOptions, kafka_options, load_kafka_admin
from sidecar.cli.options import duration

if TYPE_CHECKING:
    # Not at run time: see above.
    from sidecar.settings import KafkaAdmin
    from sidecar.throttle.budgets import Owners, Usage
    from sidecar.throttle.topic_sizes import TopicSizes
    from sidecar.volumes import Failure

_TIMEOUT_S: Final = 30.0
_VALIDITY_S: Final = 1e9
"""This command keeps no earlier reading, so none can be too old."""


@click.group(
    "budgets",
    epilog="""\b
Examples:
  throttle-sidecar budgets check budgets.toml --bootstrap-server b1:9092
""",
)
def command() -> None:
    """Check a file of storage budgets."""


@command.command(
    "check",
    epilog="""\b
Examples:
  throttle-sidecar budgets check budgets.toml
  throttle-sidecar budgets check budgets.toml --for 10m --bootstrap-server b1:9092
""",
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--for",
    "for_s",
    default="10s",
    show_default=True,
    metavar="DURATION",
    callback=duration("the duration must be longer than 0 s"),
    help="The time between two readings of all topics, by which their growth is forecast.",
)
@kafka_options
@click.pass_context
def check(context: click.Context, file: Path, for_s: float, kafka: KafkaOptions) -> None:
    """Print who would be past a budget today, and who when by the forecast.

    The exit code is 0 if no owner has reached its hard size, and 1 if one has. It is 2 if a broker
    could not be read, or the file or an option is wrong.
    """
    from sidecar.budgets.file import BudgetFile  # noqa: PLC0415 - see the module's docstring
    from sidecar.cli.tables import print_rows  # noqa: PLC0415
    from sidecar.logs import printable  # noqa: PLC0415
    from sidecar.throttle.budgets import Owners  # noqa: PLC0415
    from sidecar.throttle.sizes import duration_in_words, size  # noqa: PLC0415

    owners = Owners(BudgetFile(file).load())
    admin = load_kafka_admin(kafka)
    usages, failures = asyncio.run(_usages(admin, owners, for_s))
    fullest = sorted(usages.values(), key=lambda each: -each.ratio)
    rows = [
        (
            each.budget.owner,
            f"{size(each.used_bytes)} ({100 * each.ratio:.0f} %)",
            size(each.budget.soft_bytes),
            size(each.budget.hard_bytes),
            str(len(each.topics)),
            each.state,
            duration_in_words(each.seconds_to_hard),
        )
        for each in fullest
    ]
    past = [at for at, each in enumerate(fullest) if each.used_bytes >= each.budget.soft_bytes]
    print_rows(("Owner", "Used", "Soft", "Hard", "Topics", "Writers", "Full in"), rows, past)
    for failure in failures:
        click.echo(printable(f"Not read, so owners may use more: {failure.message}"), err=True)
    is_full = any(each.state == "paused" for each in usages.values())
    context.exit(2 if failures else 1 if is_full else 0)


async def _usages(
    admin: "KafkaAdmin", owners: "Owners", for_s: float
) -> "tuple[Mapping[str, Usage], list[Failure]]":
    from sidecar.clock import SteadyClock  # noqa: PLC0415
    from sidecar.throttle.budgets import BudgetRules, Seen, next_usages  # noqa: PLC0415
    from sidecar.throttle.limits import MinAvailableBytes  # noqa: PLC0415
    from sidecar.throttle.slope import SlopeRules  # noqa: PLC0415
    from sidecar.throttle.topic_sizes import TopicSizes  # noqa: PLC0415

    now = SteadyClock().now
    slope = SlopeRules(MinAvailableBytes(1))
    rules = BudgetRules(slope, _VALIDITY_S, is_enforced=False)
    sizes = TopicSizes()
    usages: Mapping[str, Usage] = {}
    failures: list[Failure] = []
    for pause_s in (0.0, for_s):
        await asyncio.sleep(pause_s)
        read_at = now()
        failures = await _read(admin, sizes, read_at)
        unseen = () if not failures else (-1,)
        usages = next_usages(owners, usages, Seen(sizes.sizes, unseen, read_at), rules)
    return usages, failures


async def _read(admin: "KafkaAdmin", sizes: "TopicSizes", read_at: float) -> "list[Failure]":
    from sidecar.kafka.largest_topics import sizes_of  # noqa: PLC0415
    from sidecar.throttle.topic_sizes import broker_topics  # noqa: PLC0415
    from sidecar.volumes import Failure  # noqa: PLC0415

    answers = await sizes_of(admin, _TIMEOUT_S)
    if isinstance(answers, Failure):
        return [answers]
    failures = []
    for broker_id, answer in answers.items():
        if isinstance(answer, Failure):
            failures.append(answer)
        else:
            sizes.take(broker_id, broker_topics(read_at, answer))
    return failures
