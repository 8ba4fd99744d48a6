"""``throttle-sidecar unread``: what no consumer group has read, by owner.

A command imports its dependencies when it is called, so that its help is quick.

Example: ``unread --owners owners.toml --retention 3d`` prints that etl stores 120.0 GB, that no
group has read 80.0 GB of it, and that a retention of 3 days would free 60.0 GB.
"""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from sidecar.cli.kafka_options import KafkaOptions, kafka_options, load_kafka_admin
from sidecar.cli.options import duration
from sidecar.errors import SidecarError

if TYPE_CHECKING:
    # Not at run time: see above.
    from sidecar.formats.owners import Owners
    from sidecar.kafka.expendable import ExpendableTopics, Look
    from sidecar.settings import KafkaAdmin
    from sidecar.throttle.growth import Partition
    from sidecar.throttle.unread import OwnerUse, Stored, TopicUse

_TIMEOUT_S: Final = 60.0
_MOST_SHOWN: Final = 20
_ZERO: Final = "the duration must be longer than 0 s"
_NOT_SEEN: Final = (
    "Bytes are estimates by offsets, of all replicas. Not seen are consumers that commit no offsets"
    " in Kafka (some jobs of Spark and Flink, MirrorMaker 2), and groups without members whose"
    " offsets Kafka has forgotten (after 7 days by default). Ask the owner before you delete."
)


@dataclass(frozen=True, slots=True)
class _Found:
    """What was read.

    Attributes:
        partitions: the partitions.
        left_out: why topics, or what groups read, could not be read.
        not_counted: topic -> why what a shorter retention would free of it is not counted.
    """

    partitions: "Sequence[Stored]"
    left_out: Sequence[str]
    not_counted: Mapping[str, str]


@click.command(
    "unread",
    epilog="""\b
Examples:
  throttle-sidecar unread --bootstrap-server b1:9092
  throttle-sidecar unread --owners owners.toml --retention 3d
  throttle-sidecar unread --topics 'web.*' --not-read-for 30d --json
""",
)
@click.option(
    "--owners",
    "owners_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="TOML file of the owners of topics, as for `pipeline costs`; by default nobody owns any.",
)
@click.option(
    "--topics",
    "patterns",
    multiple=True,
    default=("*",),
    metavar="PATTERN",
    help="Only topics whose names match; may be repeated. Default: all but Kafka's own.",
)
@click.option(
    "--not-read-for",
    "idle_s",
    default="7d",
    show_default=True,
    metavar="DURATION",
    callback=duration(_ZERO),
    help="List topics of which no group has read anything that was written in this time.",
)
@click.option(
    "--retention",
    "retention_s",
    metavar="DURATION",
    callback=lambda context, option, value: value and duration(_ZERO)(context, option, value),
    help="Also show what this retention would free.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with all topics.")
@kafka_options
@click.pass_context
def command(
    context: click.Context,
    *,
    owners_file: Path | None,
    patterns: tuple[str, ...],
    idle_s: float,
    retention_s: float | None,
    as_json: bool,
    kafka: KafkaOptions,
) -> None:
    """Report what no consumer group has read, by owner.

    It also lists the topics of which no group has read anything new for days. The exit code is 0.
    It is 2 if a topic or a group could not be read, or a file or an option is wrong.
    """
    from sidecar.formats.owners import Owners  # noqa: PLC0415 - see the module's docstring
    from sidecar.logs import printable  # noqa: PLC0415
    from sidecar.throttle.unread import owner_uses, topic_uses  # noqa: PLC0415

    owners = Owners(()) if owners_file is None else _owners(owners_file)
    found = asyncio.run(_read(load_kafka_admin(kafka), patterns, idle_s, retention_s))
    topics = list(topic_uses(found.partitions, owners.of_topic))
    by_owner = owner_uses(topics)
    if as_json:
        document = {
            "owners": [asdict(each) for each in by_owner],
            "topics": [asdict(each) for each in topics],
            "left_out": found.left_out,
            "not_counted": dict(found.not_counted),
        }
        click.echo(json.dumps(document, indent=2))
    else:
        _print(by_owner, topics, idle_s, retention_s)
        if retention_s is not None and found.not_counted:
            topic, why = min(found.not_counted.items())
            count = f"Topics that the last column does not count: {len(found.not_counted):,}"
            click.echo(printable(f"{count}, such as {topic}: {why}"))
    for line in found.left_out:
        click.echo(printable(f"Not read: {line}"), err=True)
    context.exit(2 if found.left_out else 0)


def _owners(path: Path) -> "Owners":
    import tomllib  # noqa: PLC0415 - see the module's docstring

    from sidecar.formats.owners import owners_in  # noqa: PLC0415

    try:
        document = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise SidecarError(f"{path} can't be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise SidecarError(f"{path} is not TOML: {error}") from error
    try:
        return owners_in(document, str(path))
    except ValueError as error:
        raise SidecarError(str(error)) from error


def _print(
    by_owner: "Sequence[OwnerUse]",
    topics: "Sequence[TopicUse]",
    idle_s: float,
    retention_s: float | None,
) -> None:
    from sidecar.cli.tables import print_rows  # noqa: PLC0415 - see the module's docstring
    from sidecar.throttle.sizes import duration_in_words, size  # noqa: PLC0415
    from sidecar.throttle.unread import Reading  # noqa: PLC0415

    idle = duration_in_words(idle_s)
    columns = ["Owner", "Topics", "Stored", "No group has read", f"Not read for {idle}"]
    if retention_s is not None:
        columns.append(f"A retention of {duration_in_words(retention_s)} frees")
    rows = [
        (
            each.owner,
            f"{each.topics:,}",
            size(each.nbytes),
            size(each.unread_bytes),
            size(each.idle_bytes),
            size(each.freed_bytes),
        )[: len(columns)]
        for each in by_owner
    ]
    print_rows(columns, rows, ())
    listed = [each for each in topics if each.reading is not Reading.RECENT]
    if listed:
        click.echo()
        names = {
            Reading.NOT_RECENT: f"written, but not read for {idle}",
            Reading.NO_GROUP: "no group has an offset of it",
            Reading.NOTHING_NEW: f"nothing written for {idle}",
            Reading.UNKNOWN: "not known",
        }
        uses = [
            (each.topic, each.owner, size(each.nbytes), names[each.reading], _groups(each.groups))
            for each in listed[:_MOST_SHOWN]
        ]
        print_rows(("Topic", "Owner", "Stored", "Read", "Groups"), uses, ())
        if len(listed) > _MOST_SHOWN:
            click.echo(f"{len(listed) - _MOST_SHOWN:,} more, which are smaller: see --json")
    click.echo(_NOT_SEEN)


def _groups(names: Sequence[str]) -> str:
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more


async def _read(
    admin: "KafkaAdmin", patterns: tuple[str, ...], idle_s: float, retention_s: float | None
) -> _Found:
    from sidecar.clock import SteadyClock  # noqa: PLC0415 - see the module's docstring
    from sidecar.kafka.expendable import ExpendableTopics  # noqa: PLC0415
    from sidecar.kafka.group_commits import COORDINATED_S  # noqa: PLC0415

    topics = ExpendableTopics(admin, SteadyClock().now)
    try:
        await _look(topics, patterns)
        # Coordinators that were the same for so long have loaded their groups.
        await asyncio.sleep(COORDINATED_S)
        look = await _look(topics, patterns)
        return await _examine(topics, look, patterns, idle_s, retention_s)
    finally:
        await topics.close()


async def _look(topics: "ExpendableTopics", patterns: tuple[str, ...]) -> "Look":
    from sidecar.throttle.relief import ReliefClass  # noqa: PLC0415 - see the module's docstring
    from sidecar.volumes import Failure  # noqa: PLC0415

    look = await topics.look((ReliefClass(patterns),), _TIMEOUT_S)
    if isinstance(look, Failure):
        raise SidecarError(look.message)
    return look


async def _examine(
    topics: "ExpendableTopics",
    look: "Look",
    patterns: tuple[str, ...],
    idle_s: float,
    retention_s: float | None,
) -> _Found:
    from sidecar.throttle.relief import BEYOND, ReliefClass  # noqa: PLC0415 - see above
    from sidecar.throttle.unread import Stored  # noqa: PLC0415
    from sidecar.volumes import Failure  # noqa: PLC0415

    now_ms = time.time_ns() // 1_000_000
    ages: list[Mapping[Partition, int]] = []
    commits: Mapping[Partition, Mapping[str, int]] = {}
    silent: Sequence[str] = ()
    for keep_s in (idle_s, retention_s):
        if keep_s is None:
            ages.append({})
            continue
        classes = (ReliefClass(patterns, keep_s=keep_s),)
        found = await topics.examine(look.partitions, classes, now_ms, _TIMEOUT_S)
        if isinstance(found, Failure):
            raise SidecarError(found.message)
        if found.groups_unknown and not found.silent:
            raise SidecarError(found.groups_unknown)
        ages.append(found.young_from)
        commits, silent = found.commits, found.silent
    recent, kept = ages
    partitions = [
        Stored(
            key[0],
            seen.sight.start,
            seen.sight.end,
            seen.sight.size * max(1, len(seen.homes)),
            commits[key],
            recent.get(key),
            kept.get(key) if key[0] in look.segment_bytes else None,
        )
        for key, seen in look.partitions.items()
    ]
    beyond = sorted(topic for topic, why in look.unsuitable.items() if why == BEYOND)
    too_many = [f"{len(beyond):,} topics, beyond what is read at once: use --topics"] * bool(beyond)
    failed = [f"{topic}: {why}" for topic, why in sorted(look.left_out.items())]
    not_counted = {topic: why for topic, why in look.unsuitable.items() if why != BEYOND}
    return _Found(partitions, [*failed, *silent, *too_many], not_counted)
