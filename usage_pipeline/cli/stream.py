"""``throttle-sidecar pipeline stream``: tables from a Kafka topic or from rotated logs.

Example: ``throttle-sidecar pipeline stream --topic request-log --bootstrap-server b1:9092 --out
live`` writes new rows every 10 s until Ctrl-C. The next call resumes there.
"""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from sidecar.errors import SettingsError
from usage_pipeline.cli.before_spark import check_master, check_stream
from usage_pipeline.cli.job_options import BROKER_PATTERN, CLUSTER_ID, LAYOUT, RETAINED_DAYS, ZONE
from usage_pipeline.cli.options import Duration, Size, shown
from usage_pipeline.cli.spark_log import spark_log
from usage_pipeline.cli.spark_options import CONF, JARS, spark_settings
from usage_pipeline.cli.summary import counted
from usage_pipeline.cli.topic_client import client_properties
from usage_pipeline.tables.schemas import UNNAMED

if TYPE_CHECKING:
    # Not at run time, because the help of a command needs no Spark.
    from pyspark.sql import SparkSession

    from usage_pipeline.ingest.request_logs import RequestLogs
    from usage_pipeline.streaming.stream import Progress, Source, StreamSettings

_TABLES: Final = ("gold_usage_1s", "silver_request")


@click.command(
    "stream",
    epilog="""\b
Examples:
  throttle-sidecar pipeline stream --topic request-log --bootstrap-server b1:9092 \\
      --kafka-jars deploy/spark/kafka-connector/target/jars --out live
  throttle-sidecar pipeline stream --request-logs '/logs/*/kafka-request.log.*' --out live
""",
)
@click.option(
    "--request-logs",
    metavar="PATH",
    help="Rotated request logs of the brokers, plain or gzip: a glob that matches every rotated"
    " file, but not the growing one.",
)
@click.option(
    "--topic",
    metavar="NAME[,...]",
    help="Topics with one log line per message. With FILE:OFFSET:LINE, lines that a shipper repeats"
    " are skipped.",
)
@click.option(
    "--bootstrap-server", metavar="HOST:PORT[,...]", help="Brokers of the topics' cluster."
)
@click.option(
    "--command-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Properties file for the client that reads topics, as for Kafka's tools.",
)
@click.option(
    "--broker-header",
    metavar="NAME",
    help="Header that ends with the broker's id. Default: the message's key.",
)
@click.option(
    "--kafka-jars",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder target/jars, which `mvn -f deploy/spark/kafka-connector/pom.xml package` creates."
    " Not needed if spark-submit has the jars.",
)
@click.option("--out", required=True, metavar="DIR", help="Folder of the tables.")
@click.option(
    "--checkpoint",
    metavar="DIR",
    help="Folder of the positions. Default: _checkpoint in the folder of the tables.",
)
@click.option(
    "--table",
    "tables",
    type=click.Choice(_TABLES),
    multiple=True,
    default=("gold_usage_1s",),
    show_default=True,
    help="Table to write besides quarantine. May be repeated.",
)
@click.option(
    "--trigger",
    "trigger_s",
    type=Duration(),
    default="10s",
    show_default=True,
    help="Time between batches.",
)
@shown("--max-bytes", Size(), "1Gi", "Largest size of the files in a batch.")
@shown("--max-messages", click.IntRange(1), 1_000_000, "Largest number of messages in a batch.")
@click.option("--from-now", is_flag=True, help="At the first start, skip existing messages.")
@click.option(
    "--until-read", is_flag=True, help="End after the existing files or messages are read."
)
@RETAINED_DAYS
@ZONE
@BROKER_PATTERN
@LAYOUT
@CLUSTER_ID
@click.option("--master", metavar="URL", help="Spark master. Default: all cores of this machine.")
@JARS
@CONF
def command(
    *,
    request_logs: str | None,
    topic: str | None,
    bootstrap_server: str | None,
    command_config: Path | None,
    broker_header: str | None,
    kafka_jars: Path | None,
    out: str,
    checkpoint: str | None,
    tables: tuple[str, ...],
    trigger_s: float,
    max_bytes: int,
    max_messages: int,
    from_now: bool,
    until_read: bool,
    retained_days: float,
    zone: tuple[str, ...],
    broker_pattern: str | None,
    layout: str | None,
    cluster_id: str | None,
    master: str | None,
    jars: tuple[str, ...],
    conf: tuple[tuple[str, str], ...],
) -> None:
    """Write usage and requests continuously, until Ctrl-C.

    The usage of a second may have several rows; sum them. After a restart the stream resumes
    without losses or duplicates. Use a separate folder, because a batch run replaces whole days.
    """
    if (request_logs is None) == (topic is None):
        raise click.UsageError("use either --request-logs or --topic")
    if (topic is None) != (bootstrap_server is None):
        raise click.UsageError("use --topic and --bootstrap-server together")
    check_master(master)
    check_stream(out)
    kafka = [] if kafka_jars is None else _jars(kafka_jars)
    source_of: Callable[[SparkSession], Source]
    failures: AbstractContextManager[None] = nullcontext()
    if request_logs is not None:
        logs = _logs(request_logs, zone, broker_pattern, layout, cluster_id)
        source_of = functools.partial(_files, logs, cluster_id, max_bytes)
    else:
        source_of, failures = _topics(
            bootstrap_servers=bootstrap_server or "",
            topics=topic or "",
            header=broker_header,
            zone=zone,
            layout=layout,
            max_messages=max_messages,
            from_start=not from_now,
            client={} if command_config is None else client_properties(command_config),
        )
    from usage_pipeline.runtime.session import session  # noqa: PLC0415 - the extra, and slow
    from usage_pipeline.streaming.kafka_source import REDACTED  # noqa: PLC0415 - as above
    from usage_pipeline.streaming.stream import StreamSettings  # noqa: PLC0415 - as above

    checkpoint = checkpoint or f"{out.rstrip('/')}/_checkpoint"
    settings = StreamSettings(
        out,
        checkpoint,
        trigger_s,
        until_read,
        cluster_id or UNNAMED,
        timedelta(days=retained_days),
    )
    click.echo("Starting Spark", err=True)
    with spark_log() as log:
        options = {**REDACTED, **spark_settings([*kafka, *jars], conf)}
        spark = session(master, options, log)
        end = "until all is read" if until_read else "until Ctrl-C"
        click.echo(f"{request_logs or topic} to {out}, {end}", err=True)
        with failures:
            _run(source_of(spark), tables, settings, "message" if topic else "file")


def _jars(folder: Path) -> list[str]:
    jars = sorted(str(jar) for jar in folder.glob("*.jar"))
    if not jars:
        raise SettingsError(
            (
                f"{folder} has no jars; `mvn -f deploy/spark/kafka-connector/pom.xml package`"
                " creates them in target/jars beside pom.xml",
            )
        )
    return jars


def _logs(
    path: str,
    zone: tuple[str, ...],
    broker_pattern: str | None,
    layout: str | None,
    cluster: str | None,
) -> "RequestLogs":
    """Return the logs, and check path and pattern with the existing files before Spark starts."""
    from usage_pipeline.ingest.paths import Zones, patterns_of  # noqa: PLC0415 - as above
    from usage_pipeline.ingest.request_logs import RequestLogs  # noqa: PLC0415 - as above
    from usage_pipeline.streaming.file_source import broker_in_stream  # noqa: PLC0415 - as above

    logs = RequestLogs(path, Zones.parse(zone), broker_pattern, layout)
    for file in logs.files(cluster):
        broker_in_stream(file.path, patterns_of(broker_pattern), cluster)
    return logs


def _files(
    logs: "RequestLogs", cluster: str | None, max_bytes: int, spark: "SparkSession"
) -> "Source":
    from usage_pipeline.streaming.file_source import closed_files, parsed_files  # noqa: PLC0415 - as above
    from usage_pipeline.streaming.stream import Source  # noqa: PLC0415 - as above

    files = closed_files(spark, logs.path, max_bytes)
    return Source(files, functools.partial(parsed_files, logs=logs, cluster=cluster))


def _topics(
    *,
    zone: tuple[str, ...],
    layout: str | None,
    **own_options: Any,  # noqa: ANN401 - the fields of TopicOptions
) -> "tuple[Callable[[SparkSession], Source], AbstractContextManager[None]]":
    """Return the source, and the context that reports why it has ended."""
    from usage_pipeline.ingest.paths import Zones  # noqa: PLC0415 - as above
    from usage_pipeline.streaming.kafka_source import (  # noqa: PLC0415 - as above
        TopicOptions,
        parsed_messages,
        topic_messages,
    )
    from usage_pipeline.streaming.stream import Source  # noqa: PLC0415 - as above
    from usage_pipeline.streaming.topic_failures import topic_failures  # noqa: PLC0415 - as above

    options = TopicOptions(zones=Zones.parse(zone), **own_options)
    parse = functools.partial(parsed_messages, zones=options.zones, layout=layout)

    def source(spark: "SparkSession") -> "Source":
        return Source(topic_messages(spark, options), parse)

    return source, topic_failures(options)


def _run(source: "Source", tables: tuple[str, ...], settings: "StreamSettings", unit: str) -> None:
    from usage_pipeline.streaming.stream import STREAMED, stream  # noqa: PLC0415 - as above

    chosen = [table for table in STREAMED if table.name in tables]
    reporter = Reporter(unit)
    try:
        stream(source, chosen, settings, reporter)
    except KeyboardInterrupt:
        click.echo("Stopped; the next call resumes here.", err=True)
        return
    if not reporter.read:
        click.echo("There are no new lines.", err=True)


@dataclass(slots=True)
class Reporter:
    """Prints a line for each batch, and counts its messages or files."""

    unit: str
    read: int = 0

    def __call__(self, progress: "Progress") -> None:
        """Print a line for the batch, unless it is empty."""
        if not progress.rows:
            return
        self.read += progress.rows
        resent = f" ({progress.resent:,} repeated, skipped)" if progress.resent else ""
        unread = f" ({progress.unread:,} unreadable, in quarantine)" if progress.unread else ""
        click.echo(
            f"batch {progress.batch}: {counted(progress.rows, self.unit)}{resent}{unread},"
            f" {progress.rows_per_s:,.1f} a second",
            err=True,
        )
