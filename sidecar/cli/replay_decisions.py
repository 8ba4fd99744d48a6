"""``throttle-sidecar replay-decisions``: what other settings would have decided.

It answers the questions that an operator has before switching the throttle on: when would it have
throttled, for how long, and because of which volume?
"""

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from sidecar.cli.options import settings_options

if TYPE_CHECKING:
    # Not at run time: a command's help needs no settings.
    from sidecar.throttle.replay import Episode, Replay

_HOUR_S: Final = 3600.0
_PREFIX: Final = "SIDECAR_"
_GROUPS: Final = (
    "SIDECAR_STORAGE_PER_VOLUME_LIMIT_",
    "SIDECAR_STORAGE_PER_VOLUME_SOFT_LIMIT_",
    "SIDECAR_STORAGE_PER_VOLUME_STOP_",
)
"""Of each only one can be set."""
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
    help="The folder of SIDECAR_HISTORY_DIR.",
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting by its name in the environment, in place of the current value. A limit"
    " replaces a limit of the other type. May be repeated.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw factor and headroom over time into an SVG file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def command(
    *,
    config: Path | None,
    properties: Path | None,
    history: Path,
    changes: Sequence[str],
    plot: Path | None,
    as_json: bool,
) -> None:
    """Report when producers would have been throttled, from the recorded volume history.

    The settings are those of "run"; --set replaces some of them. The replay is open loop: volumes
    fill as they did. With a throttle they would have filled more slowly, so every throttle of a
    volume after its first one is an upper bound.
    """
    from sidecar.errors import SettingsError  # noqa: PLC0415 - see the module's docstring
    from sidecar.history.reader import HistoryReader  # noqa: PLC0415
    from sidecar.settings import load  # noqa: PLC0415
    from sidecar.throttle.decision import VolumeLimit  # noqa: PLC0415
    from sidecar.throttle.replay import Replay  # noqa: PLC0415

    settings = load(
        environ=_changed(os.environ, changes), config=config, properties=properties
    ).settings
    if settings.limit is None:
        raise SettingsError(("nothing to decide: no limit is set",))
    factors = VolumeLimit(settings.rules, settings.fallback, is_enforced=False)
    reader, replay = HistoryReader(history, settings.validity_s), Replay(factors)
    for observation in reader.observations():
        replay.see(observation)
    if replay.first_at is None:
        raise SettingsError((f"{history} has no observation: is it the folder of a history?",))
    if plot is not None:
        plot.write_text(_picture(replay), encoding="utf-8")
    if as_json:
        click.echo(_as_json(replay, reader.damaged_lines))
    else:
        _print(replay, reader.damaged_lines)


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


def _print(replay: "Replay", damaged_lines: int) -> None:
    from sidecar.cli.tables import print_rows  # noqa: PLC0415 - needs rich
    from sidecar.status.moments import span  # noqa: PLC0415

    episodes = replay.episodes()
    if episodes:
        rows = [
            (
                _clock(each.began_at),
                _span(each, replay),
                f"{each.factor:g}",
                span(each.stop_line_s) if each.stop_line_s else "",
                _cause(each),
            )
            for each in episodes
        ]
        print_rows(("From (UTC)", "For", "Factor", "At stop line", "By"), rows, ())
    for line in _summary(replay, damaged_lines):
        click.echo(line)


def _summary(replay: "Replay", damaged_lines: int) -> list[str]:
    from sidecar.status.moments import span  # noqa: PLC0415

    first_at = replay.first_at or 0.0
    lasted_s = replay.last_at - first_at
    throttled_s = sum(_seconds(each, replay) for each in replay.episodes())
    share = throttled_s / lasted_s if lasted_s else 0.0
    count = len(replay.episodes())
    lines = [
        f"{replay.observations:,} observations from {_clock(first_at)} to {_clock(replay.last_at)}"
        f" UTC: {count} throttle{'' if count == 1 else 's'}, {span(throttled_s)} together"
        f" ({share:.2%} of the time).",
        "Open loop: volumes fill as they did. With a throttle they would have filled more slowly.",
    ]
    if damaged_lines:
        lines.append(f"{damaged_lines:,} lines could not be read and were skipped.")
    return lines


def _as_json(replay: "Replay", damaged_lines: int) -> str:
    import json  # noqa: PLC0415 - for this form alone

    from sidecar.api.answers import timestamp  # noqa: PLC0415

    def moment(at: float | None) -> str | None:
        return timestamp(float, at)

    document = {
        "observations": replay.observations,
        "from": moment(replay.first_at),
        "until": moment(replay.last_at),
        "damaged_lines": damaged_lines,
        "throttles": [
            {
                "from": moment(each.began_at),
                "until": moment(each.ended_at),
                "seconds": round(_seconds(each, replay), 3),
                "stop_line_seconds": round(each.stop_line_s, 3),
                "factor": each.factor,
                "source": each.source.value,
                "reason": each.reason,
                "broker_id": each.worst.volume.broker_id if each.worst else None,
                "log_dir": each.worst.volume.log_dir if each.worst else None,
                "least_available_bytes": each.worst.volume.available_bytes if each.worst else None,
            }
            for each in replay.episodes()
        ],
    }
    return json.dumps(document, indent=2)


def _picture(replay: "Replay") -> str:
    from sidecar.cli.chart import Line, Mark, Panel, svg  # noqa: PLC0415 - for --plot alone

    begin = replay.first_at or 0.0
    at = [(point.at - begin) / _HOUR_S for point in replay.points]
    headroom = [
        (x, point.headroom_bytes / 1e9)
        for x, point in zip(at, replay.points, strict=True)
        if point.headroom_bytes is not None
    ]
    factor = [(x, point.factor) for x, point in zip(at, replay.points, strict=True)]
    panels = [Panel("throttle factor", [Line("that would have applied", _steps(factor))])]
    if headroom:
        line = Line("the volume that is nearest its limit", headroom)
        panels.append(Panel("available beyond the limit, GB", [line], heights=[Mark("limit", 0.0)]))
    title = f"Decisions on the history from {_clock(begin)} UTC on, open loop"
    return svg(title, "hours", panels)


def _steps(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same as a line that is level from one point to the next."""
    steps = list(points[:1])
    for (_, before), (x, value) in pairwise(points):
        steps += [(x, before), (x, value)]
    return steps


def _cause(each: "Episode") -> str:
    from sidecar.throttle.sizes import size  # noqa: PLC0415

    if each.worst is None:
        return f"{each.source.value}: {each.reason}"
    volume = each.worst.volume
    left = size(volume.available_bytes)
    return f"broker {volume.broker_id} {volume.log_dir}, {left} left at least"


def _seconds(each: "Episode", replay: "Replay") -> float:
    return (replay.last_at if each.ended_at is None else each.ended_at) - each.began_at


def _span(each: "Episode", replay: "Replay") -> str:
    from sidecar.status.moments import span  # noqa: PLC0415

    lasted = span(_seconds(each, replay))
    return f"{lasted}, to the end" if each.ended_at is None else lasted


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
