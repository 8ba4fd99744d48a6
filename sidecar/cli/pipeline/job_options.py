"""What the pipeline's commands share: where tables are, which days, what is read.

Example::

    @click.command("silver")
    @input_options
    @job_options
    def command(job: JobOptions, inputs: InputOptions) -> None:
        run_job(job, inputs, ["silver"])
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import click

_R = TypeVar("_R")


class _Utc(click.DateTime):
    """A time, UTC: "2026-11-20" or "2026-11-20T10:30"."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """With its time zone; refuses what is not a time."""
        found: datetime = super().convert(value, param, ctx)
        return found.replace(tzinfo=UTC)


UTC_TIME: Final = _Utc(["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"])
"""For options that are a time."""


@dataclass(frozen=True, slots=True)
class JobOptions:
    """How the job is run, as it was given.

    Attributes:
        out: the folder of the tables.
        master: of Spark; None: what spark-submit says, or this machine.
        since: UTC; None for no bound.
        until: UTC; None for no bound.
        as_of: UTC; None for now.
        allow_fewer: whether a day may be replaced by fewer requests than it has.
        as_json: whether the summary is JSON.
    """

    out: str
    master: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    allow_fewer: bool = False
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class InputOptions:
    """What is read, as it was given.

    Attributes:
        request_logs: a file, a folder or a glob.
        volumes: the same, of the volume history.
        quotas: what ``quotas show --json`` printed.
        zone: "Europe/Berlin" or "3=UTC".
        broker_pattern: with a group named ``broker``.
    """

    request_logs: str | None = None
    volumes: str | None = None
    quotas: Path | None = None
    zone: tuple[str, ...] = ()
    broker_pattern: str | None = None


def job_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Give a command ``job: JobOptions``."""
    return _with(
        function,
        "job",
        JobOptions,
        click.option("--out", required=True, metavar="DIR", help="The folder of the tables."),
        click.option(
            "--master",
            metavar="URL",
            help="Spark's, spark://host:7077; by default what spark-submit says, or all cores of"
            " this machine.",
        ),
        click.option("--since", type=UTC_TIME, help="Leave out what was before; UTC."),
        click.option("--until", type=UTC_TIME, help="Leave out what was then or later; UTC."),
        click.option("--as-of", type=UTC_TIME, help="Now, UTC; by default it is."),
        click.option(
            "--allow-fewer",
            is_flag=True,
            help="Replace a day even by fewer requests than it has.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON."),
    )


def input_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Give a command ``inputs: InputOptions``."""
    return _with(
        function,
        "inputs",
        InputOptions,
        click.option(
            "--request-logs",
            metavar="PATH",
            help="Files of the brokers' request logs, plain or gzip: a file, a folder or a glob;"
            " s3://, gs:// and hdfs:// too.",
        ),
        click.option(
            "--volumes",
            metavar="PATH",
            help="The volume history that sidecars keep: a file, a folder or a glob.",
        ),
        click.option(
            "--quotas",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help='What "quotas show --json" printed.',
        ),
        click.option(
            "--zone",
            multiple=True,
            metavar="ZONE|BROKER=ZONE",
            help="The time zone of the brokers' clocks, Europe/Berlin, or of one, 3=UTC; may be"
            " repeated. By default UTC.",
        ),
        click.option(
            "--broker-pattern",
            metavar="REGEX",
            help="Finds the broker's id in a file's path, with a group named broker; by default"
            " broker-3, kafka-3, or a folder 3.",
        ),
    )


def _with(
    function: Callable[..., _R],
    name: str,
    kind: Callable[..., Any],
    *options: Callable[[Callable[..., _R]], Callable[..., _R]],
) -> Callable[..., _R]:
    """Give a command options, gathered in one value."""
    names = [each.name for each in fields(kind)]  # type: ignore[arg-type]  # a dataclass's class

    @functools.wraps(function)
    def gathered(*args: Any, **given: Any) -> _R:  # noqa: ANN401 - the command's own arguments
        mine = {each: given.pop(each) for each in names}
        return function(*args, **{name: kind(**mine)}, **given)

    for option in reversed(options):
        gathered = option(gathered)
    return gathered
