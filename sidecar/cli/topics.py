"""``throttle-sidecar topics``: create, grow and delete topics, even thousands of them (KIP-599).

A command imports its dependencies when it is called, so that its help is quick.

Example: ``topics create --from names.txt --partitions 4 --retry`` works through a file of 5,000
names at the pace of the user's controller_mutation_rate.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sidecar.cli.kafka_options import KafkaOptions, kafka_options, load_kafka_admin
from sidecar.cli.options import duration
from sidecar.cli.topic_names import MOST_PARTITIONS, NamedTopic, names_options, read_names
from sidecar.errors import SidecarError
from sidecar.formats.gathered_options import gathered, read_by

if TYPE_CHECKING:
    # Not at run time: see above.
    from sidecar.kafka.topic_results import TopicResult

_R = TypeVar("_R")

Call = Callable[..., Coroutine[Any, Any, Sequence["TopicResult"]]]


@dataclass(frozen=True, slots=True)
class TopicOptions:
    """The options that all commands of topics share."""

    kafka: KafkaOptions
    topics: tuple[str, ...]
    names_file: Path | None
    retry: bool
    timeout_s: float
    as_json: bool


def _configs(values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    if not all(key and equals for key, equals, _ in pairs):
        raise ValueError("must be KEY=VALUE")
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
    default="10m",
    show_default=True,
    metavar="DURATION",
    callback=duration("the duration must be longer than 0 s"),
    help="For all of it, such as 30s, 10m or 2h.",
)
_validate = click.option(
    "--validate-only",
    is_flag=True,
    help="Change nothing, only validate it. Brokers in KRaft mode charge the quota for that too,"
    " against KIP-599's text.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print every topic's result as JSON.")


def _topic_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Give a command ``options: TopicOptions``."""
    return gathered(
        function, "options", TopicOptions, kafka_options, names_options, _retry, _timeout, _json
    )


@click.group(
    "topics",
    epilog="""\b
Examples:
  throttle-sidecar topics create orders bills --partitions 12 --bootstrap-server b1:9092
  throttle-sidecar topics create --from names.txt --partitions 4 --retry --timeout 2h
  throttle-sidecar topics grow orders --partitions 24
  throttle-sidecar topics delete --from names.txt --yes --retry
""",
)
def command() -> None:
    """Create, grow or delete topics, even thousands of them.

    The command sends one request at a time, with 50 topics each. The exit code is 0 if all topics
    were done and 1 if some were not. It is 2 if no request could be sent or an option is wrong.
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
@click.option(
    "--partitions",
    type=click.IntRange(1, MOST_PARTITIONS),
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
    callback=read_by(_configs, click.BadParameter, ValueError),
    help="A setting of each topic; may be repeated.",
)
@_validate
@_topic_options
@click.pass_context
def create(
    context: click.Context,
    *,
    options: TopicOptions,
    partitions: int | None,
    replication_factor: int | None,
    configs: dict[str, str],
    validate_only: bool,
) -> None:
    """Create topics."""
    names = read_names(options.topics, options.names_file)
    from sidecar.kafka.topic_changes import create_topics  # noqa: PLC0415 - see above
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
    done = "could be created" if validate_only else "created"
    call = partial(create_topics, validate_only=validate_only)
    _run(context, options, call, new_topics, names, done=done)


@command.command(
    "grow",
    epilog="""\b
Examples:
  throttle-sidecar topics grow orders bills --partitions 24
  throttle-sidecar topics grow --from names-and-partitions.txt --retry
""",
)
@click.option(
    "--partitions",
    type=click.IntRange(1, MOST_PARTITIONS),
    help="How many each topic is to have in all, where the file has no number.",
)
@_validate
@_topic_options
@click.pass_context
def grow(
    context: click.Context, *, options: TopicOptions, partitions: int | None, validate_only: bool
) -> None:
    """Give topics more partitions."""
    names = read_names(options.topics, options.names_file)
    from sidecar.kafka.topic_changes import create_partitions  # noqa: PLC0415 - see above
    from sidecar.kafka.topic_messages import Growth  # noqa: PLC0415 - see above

    growths: list[Growth] = []
    for named in names:
        count = named.partitions or partitions
        if count is None:
            raise click.UsageError(f"--partitions: how many is {named.name} to have?")
        growths.append(Growth(named.name, count))
    done = "could be grown" if validate_only else "grown"
    call = partial(create_partitions, validate_only=validate_only)
    _run(context, options, call, growths, names, done=done)


@command.command(
    "delete",
    epilog="""\b
Examples:
  throttle-sidecar topics delete orders bills
  throttle-sidecar topics delete --from names.txt --yes --retry --timeout 1h
""",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@_topic_options
@click.pass_context
def delete(context: click.Context, *, options: TopicOptions, yes: bool) -> None:
    """Delete topics and their records."""
    names = read_names(options.topics, options.names_file)
    if not yes:
        one = f"the topic {names[0].name} with all that is in it"
        many = f"{len(names):,} topics with all that is in them"
        click.confirm(f"Delete {one if len(names) == 1 else many}?", abort=True, err=True)
    from sidecar.kafka.topic_changes import delete_topics  # noqa: PLC0415 - see above

    _run(context, options, delete_topics, [named.name for named in names], names, done="deleted")


def _run(
    context: click.Context,
    options: TopicOptions,
    call: Call,
    changes: Sequence[object],
    names: Sequence[NamedTopic],
    *,
    done: str,
) -> None:
    from sidecar import logs  # noqa: PLC0415 - see the module's docstring
    from sidecar.cli.topic_report import Results, bar  # noqa: PLC0415 - as above

    admin = load_kafka_admin(options.kafka)
    # The command reports a failure once, below.
    logs.set_up("text", "error")
    results = Results(done, [named.name for named in names])
    try:
        with bar(results) as on_result:
            request = call(
                admin,
                changes,
                timeout_s=options.timeout_s,
                retry_on_quota_violation=options.retry,
                on_result=on_result,
            )
            results.take(asyncio.run(request))
    except BaseException as error:
        # Earlier requests took effect. A SidecarError comes before the first one.
        if not isinstance(error, SidecarError):
            results.print(as_json=options.as_json)
        raise
    results.print(as_json=options.as_json)
    context.exit(results.exit_code)
