"""``throttle-sidecar topics``: create, grow and delete topics, thousands if need be (KIP-599).

What a command needs is imported when it is called, so that its help is quick.

Example: ``topics create --from names.txt --partitions 4 --retry`` works through a file of 5,000
names at the pace of the user's controller_mutation_rate.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sidecar.cli.kafka_options import KafkaOptions, kafka_options, load_kafka_admin
from sidecar.cli.topic_names import NamedTopic, names_options, read_names

if TYPE_CHECKING:
    # Not at run time: see above.
    from sidecar.kafka.mutation_batches import ResultCallback
    from sidecar.kafka.topic_results import TopicResult
    from sidecar.settings import KafkaAdmin

Call = Callable[["KafkaAdmin", "ResultCallback"], Coroutine[Any, Any, Sequence["TopicResult"]]]


def _duration(_context: click.Context, _parameter: click.Parameter, value: str) -> float:
    from sidecar.settings.durations import parse_duration  # noqa: PLC0415 - slow to import

    try:
        seconds = parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    if seconds == 0:
        raise click.BadParameter("it must be more than nothing")
    return seconds


def _configs(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    if not all(key and equals for key, equals, _ in pairs):
        raise click.BadParameter("must be KEY=VALUE")
    return {key: value for key, _, value in pairs}


_retry = click.option(
    "--retry",
    is_flag=True,
    help="Send again what the quota rejects, when the wait that the controller states is over,"
    " until --timeout. Without it a rejection ends the command, as in Kafka's tools.",
)
_timeout = click.option(
    "--timeout",
    "timeout_s",
    default="PT10M",
    show_default=True,
    metavar="DURATION",
    callback=_duration,
    help="For all of it, as ISO 8601 has it: PT30S, PT2H.",
)
_validate = click.option(
    "--validate-only",
    is_flag=True,
    help="Change nothing, only validate it. Brokers in KRaft mode charge the quota for that too,"
    " against KIP-599's text.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print every topic's result as JSON.")


@click.group(
    "topics",
    epilog="""\b
Examples:
  throttle-sidecar topics create orders bills --partitions 12 --bootstrap-server b1:9092
  throttle-sidecar topics create --from names.txt --partitions 4 --retry --timeout PT2H
  throttle-sidecar topics grow orders --partitions 24
  throttle-sidecar topics delete --from names.txt --yes --retry
""",
)
def command() -> None:
    """Create, grow or delete topics, thousands of them if need be.

    Topics are sent 50 in a request, and one request at a time. The exit code is 0 if all was done,
    1 if something was not, and 2 if nothing could be sent or an option is wrong.
    """


@command.command(
    "create",
    epilog="""\b
Examples:
  throttle-sidecar topics create orders --partitions 12 --replication-factor 3
  throttle-sidecar topics create audit --topic-config retention.ms=86400000
  seq -f 'load-%05g' 5000 | throttle-sidecar topics create --from - --partitions 4 --retry
""",
)
@kafka_options
@names_options
@click.option(
    "--partitions",
    type=click.IntRange(1),
    help="Of each topic for which the file has no number; by default the brokers' num.partitions.",
)
@click.option(
    "--replication-factor",
    type=click.IntRange(1, 2**15 - 1),
    help="By default the brokers' default.replication.factor.",
)
@click.option(
    "--topic-config",
    "configs",
    multiple=True,
    metavar="KEY=VALUE",
    callback=_configs,
    help="A setting of each topic; may be repeated.",
)
@_validate
@_retry
@_timeout
@_json
@click.pass_context
def create(
    context: click.Context,
    *,
    kafka: KafkaOptions,
    topics: tuple[str, ...],
    names_file: Path | None,
    partitions: int | None,
    replication_factor: int | None,
    configs: dict[str, str],
    validate_only: bool,
    retry: bool,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Create topics."""
    names = read_names(topics, names_file)
    from sidecar.kafka.topic_changes import create_topics  # noqa: PLC0415 - as above
    from sidecar.kafka.topic_messages import BROKERS_CHOICE, NewTopic  # noqa: PLC0415 - see above

    new_topics = [
        NewTopic(
            name=named.name,
            partitions=named.partitions or partitions or BROKERS_CHOICE,
            replication=replication_factor or BROKERS_CHOICE,
            configs=configs,
        )
        for named in names
    ]

    async def call(admin: "KafkaAdmin", text: "ResultCallback") -> "Sequence[TopicResult]":
        return await create_topics(
            admin,
            new_topics,
            timeout_s=timeout_s,
            retry_on_quota_violation=retry,
            validate_only=validate_only,
            on_result=text,
        )

    done = "could be created" if validate_only else "created"
    _run(context, kafka, call, names, done=done, as_json=as_json)


@command.command(
    "grow",
    epilog="""\b
Examples:
  throttle-sidecar topics grow orders bills --partitions 24
  throttle-sidecar topics grow --from names-and-partitions.txt --retry
""",
)
@kafka_options
@names_options
@click.option(
    "--partitions",
    type=click.IntRange(1),
    help="How many each topic is to have in all, where the file has no number.",
)
@_validate
@_retry
@_timeout
@_json
@click.pass_context
def grow(
    context: click.Context,
    *,
    kafka: KafkaOptions,
    topics: tuple[str, ...],
    names_file: Path | None,
    partitions: int | None,
    validate_only: bool,
    retry: bool,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Give topics more partitions."""
    names = read_names(topics, names_file)
    from sidecar.kafka.topic_changes import create_partitions  # noqa: PLC0415 - as above
    from sidecar.kafka.topic_messages import Growth  # noqa: PLC0415 - see above

    growths: list[Growth] = []
    for named in names:
        count = named.partitions or partitions
        if count is None:
            raise click.UsageError(f"--partitions: how many is {named.name} to have?")
        growths.append(Growth(named.name, count))

    async def call(admin: "KafkaAdmin", text: "ResultCallback") -> "Sequence[TopicResult]":
        return await create_partitions(
            admin,
            growths,
            timeout_s=timeout_s,
            retry_on_quota_violation=retry,
            validate_only=validate_only,
            on_result=text,
        )

    done = "could be grown" if validate_only else "grown"
    _run(context, kafka, call, names, done=done, as_json=as_json)


@command.command(
    "delete",
    epilog="""\b
Examples:
  throttle-sidecar topics delete orders bills
  throttle-sidecar topics delete --from names.txt --yes --retry --timeout PT1H
""",
)
@kafka_options
@names_options
@click.option("--yes", is_flag=True, help="Do not ask whether it is meant.")
@_retry
@_timeout
@_json
@click.pass_context
def delete(
    context: click.Context,
    *,
    kafka: KafkaOptions,
    topics: tuple[str, ...],
    names_file: Path | None,
    yes: bool,
    retry: bool,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Delete topics, and all that is in them."""
    names = read_names(topics, names_file)
    if not yes:
        one = f"the topic {names[0].name} with all that is in it"
        many = f"{len(names):,} topics with all that is in them"
        click.confirm(f"Delete {one if len(names) == 1 else many}?", abort=True, err=True)
    from sidecar.kafka.topic_changes import delete_topics  # noqa: PLC0415 - see above

    async def call(admin: "KafkaAdmin", text: "ResultCallback") -> "Sequence[TopicResult]":
        return await delete_topics(
            admin,
            [named.name for named in names],
            timeout_s=timeout_s,
            retry_on_quota_violation=retry,
            on_result=text,
        )

    _run(context, kafka, call, names, done="deleted", as_json=as_json)


def _run(
    context: click.Context,
    kafka: KafkaOptions,
    call: Call,
    names: Sequence[NamedTopic],
    *,
    done: str,
    as_json: bool,
) -> None:
    from sidecar import logs  # noqa: PLC0415 - see the module's docstring
    from sidecar.cli.topic_report import Results, bar  # noqa: PLC0415 - as above

    admin = load_kafka_admin(kafka)
    # A failure is reported below, once.
    logs.set_up("text", "error")
    results = Results(done, [named.name for named in names])
    try:
        with bar(results) as text:
            results.take(asyncio.run(call(admin, text)))
    finally:
        # Also after Ctrl-C: what was done by then is done.
        results.print(as_json=as_json)
    context.exit(results.exit_code)
