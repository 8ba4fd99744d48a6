"""``throttle-sidecar replay-decisions``: what other settings would have decided.

It answers the questions that an operator has before switching the throttle on: when would it have
throttled, for how long, and because of which volume?
"""

import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

import click

from sidecar.cli.options import settings_options
from sidecar.formats.quantities import format_duration

if TYPE_CHECKING:
    # Not at run time: a command's help needs no settings.
    from sidecar.history.coverage import Coverage
    from sidecar.history.reader import HistoryReader
    from sidecar.throttle.replay import Replay

_HOUR_S: Final = 3600.0
_PREFIX: Final = "SIDECAR_"
_GROUPS: Final = (
    "SIDECAR_STORAGE_PER_VOLUME_LIMIT_",
    "SIDECAR_STORAGE_PER_VOLUME_SOFT_LIMIT_",
    "SIDECAR_STORAGE_PER_VOLUME_STOP_",
    "SIDECAR_STORAGE_RELEASE_MARGIN_",
)
"""Of each only one can be set."""
_VALIDITY: Final = "SIDECAR_THROTTLE_FACTOR_VALIDITY_DURATION"
_SERVERS: Final = "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS"


@click.command(
    "replay-decisions",
    epilog="""\b
Examples:
  throttle-sidecar replay-decisions --history /var/lib/throttle-sidecar/history
  throttle-sidecar replay-decisions --history DIR \\
      --set SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_RATIO=0.2 --plot throttles.svg
  throttle-sidecar replay-decisions --history DIR --json | jq '.throttles | length'
""",
)
@settings_options
@click.option(
    "--history",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    required=True,
    metavar="DIR",
    help='The folder of SIDECAR_HISTORY_DIR, or of "history import".',
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting by its name in the environment, in place of the current value. A limit"
    " replaces a limit of the other type, and a release margin one of the other unit. May be"
    " repeated.",
)
@click.option(
    "--plot",
    type=click.File("w", encoding="utf-8", lazy=True, atomic=True),
    metavar="FILE",
    help="Draw factor and headroom over time into an SVG file.",
)
@click.option(
    "--long-steps",
    is_flag=True,
    help="Also accept readings that are usually further apart than the validity. The rest of each"
    " step is then without a valid reading, and is left out.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def command(
    *,
    config: Path | None,
    properties: Path | None,
    history: Path,
    changes: Sequence[str],
    plot: TextIO | None,
    long_steps: bool,
    as_json: bool,
) -> None:
    """Report when producers would have been throttled, from the recorded volume history.

    The settings are those of "run"; --set replaces some of them. The replay is open loop: volumes
    fill as they did. With a throttle they would have filled more slowly, so every throttle of a
    volume after its first one is an upper bound.

    Times in which a volume has no reading for longer than the validity are listed, and are left out
    of all durations and shares.
    """
    from sidecar.cli.replay_report import as_document, print_report  # noqa: PLC0415 - for the help
    from sidecar.errors import SettingsError  # noqa: PLC0415
    from sidecar.history.coverage import Coverage  # noqa: PLC0415
    from sidecar.history.reader import HistoryReader  # noqa: PLC0415
    from sidecar.settings import load  # noqa: PLC0415
    from sidecar.throttle.decision import VolumeLimit  # noqa: PLC0415
    from sidecar.throttle.replay import Replay  # noqa: PLC0415

    settings = load(
        environ=_changed(os.environ, changes),
        config=config,
        properties=properties,
        replaced=tuple(
            group.removeprefix(_PREFIX).lower()
            for group in _GROUPS
            if any(change.startswith(group) for change in changes)
        ),
    ).settings
    if settings.limit is None:
        raise SettingsError(("nothing to decide: no limit is set",))
    factors = VolumeLimit(settings.rules, settings.fallback, is_enforced=False)
    coverage = Coverage(settings.validity_s)
    reader = HistoryReader(history, settings.validity_s)
    for observation in reader.observations():
        coverage.see(observation)
    if not long_steps:
        _refuse_long_steps(coverage, settings.validity_s)
    replay = Replay(factors, coverage.missing())
    for observation in HistoryReader(history, settings.validity_s).observations():
        replay.see(observation)
    if replay.first_at is None:
        raise SettingsError((_why_empty(reader),))
    if plot is not None:
        plot.write(_picture(replay, coverage))
    if as_json:
        click.echo(as_document(replay, coverage, reader))
    else:
        print_report(replay, coverage, reader)


def _refuse_long_steps(coverage: "Coverage", validity_s: float) -> None:
    """Refuse a history that has no valid reading at the end of each step.

    Raises:
        SidecarError: the usual step of a broker's readings exceeds the validity.
    """
    from sidecar.errors import SidecarError  # noqa: PLC0415

    long_steps = coverage.long_steps()
    if not long_steps:
        return
    broker, step_s = max(long_steps.items(), key=itemgetter(1))
    others = f" (and of {len(long_steps) - 1} other brokers)" if len(long_steps) > 1 else ""
    step, validity = format_duration(step_s), format_duration(validity_s)
    raise SidecarError(
        f"the readings of broker {broker}{others} are usually {step} apart, but a reading is valid"
        f" for {validity}: after that, the decision is unknown.\nUse readings with shorter"
        f" steps, replay a longer validity (--set {_VALIDITY}={step}), or give --long-steps to"
        " report only the times with valid readings."
    )


def _why_empty(reader: "HistoryReader") -> str:
    if reader.damaged_lines:
        return (
            f"{reader.folder} has no observation: {reader.damaged_lines:,} lines could not be read,"
            f" the first because of {reader.first_damage}"
        )
    return (
        f"{reader.folder} has no observation: is it the folder of a history? Other readings of the"
        ' disks become a history by "throttle-sidecar history import"'
    )


def _changed(environ: Mapping[str, str], changes: Sequence[str]) -> dict[str, str]:
    """Return the environment with the settings of --set, and an address that is never used."""
    changed = {_SERVERS: "localhost:9092", **environ}
    for change in changes:
        key, separator, value = change.partition("=")
        if not separator or not key.startswith(_PREFIX):
            raise click.UsageError(
                f"--set {change}: KEY=VALUE is needed, with a KEY such as {_GROUPS[0]}..."
            )
        for group in _GROUPS:
            if key.startswith(group):
                changed = {
                    name: other for name, other in changed.items() if not name.startswith(group)
                }
        changed[key] = value
    return changed


def _picture(replay: "Replay", coverage: "Coverage") -> str:
    from sidecar.cli.chart import Line, Mark, Panel, svg  # noqa: PLC0415 - for --plot alone
    from sidecar.cli.replay_report import clock, longest  # noqa: PLC0415

    begin = replay.first_at or 0.0
    at = [(point.at - begin) / _HOUR_S for point in replay.points]
    headroom = [
        (x, point.headroom_bytes / 1e9)
        for x, point in zip(at, replay.points, strict=True)
        if point.headroom_bytes is not None
    ]
    factor = [(x, point.factor) for x, point in zip(at, replay.points, strict=True)]
    marks = [
        Mark(name, (moment - begin) / _HOUR_S)
        for times in longest(coverage.missing())
        for name, moment in zip(("no readings", ""), times, strict=True)
    ]
    panels = [Panel("throttle factor", [Line("that would have applied", _steps(factor))], marks)]
    if headroom:
        line = Line("the volume that is nearest its limit", headroom)
        panels.append(Panel("available beyond the limit, GB", [line], heights=[Mark("limit", 0.0)]))
    title = f"Decisions on the history from {clock(begin)} UTC on, open loop"
    return svg(title, "hours", panels)


def _steps(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same as a line that is level from one point to the next."""
    steps = list(points[:1])
    for (_, before), (x, value) in pairwise(points):
        steps += [(x, before), (x, value)]
    return steps
