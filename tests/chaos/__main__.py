"""``python -m tests.chaos --seed 1 --minutes 10``: a scenario on a real cluster, and a table.

- faults: brokers and sidecars are killed, frozen and restarted.
- volumes: the same with two volumes a broker and librdkafka alone; faults come sooner.
- stop-line: a volume fills to the stop line again and again, first with the authorizer, then with
  the quota callback alone.

The exit code is 0 when every claim held, 1 when one was broken, and 130 when it was interrupted;
the table is of what was seen until then. The folder ``--out`` has it too, with all events, samples
and logs. It needs a JDK, Maven, 4 GB of memory and two cores of its own.
"""

import argparse
import asyncio
import json
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.harness.machine import Stolen
from sidecar.errors import ClusterError
from tests.chaos import claims, faults, stop_line, stop_scene, table, volumes
from tests.chaos.course import Course
from tests.chaos.recorded import trace
from tests.chaos.scene import Scene
from tests.chaos.schedule import clock

_OUT: Final = Path(".cache/chaos")
_INTERRUPTED: Final = 130
_SHORTEST_MINUTES: Final = 0.5
_ARMS: Final = {"authorizer": True, "callback": False}
"""Arm -> whether brokers have the jar's authorizer, and not the quota callback alone."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario: its runs, how they are judged and reported, and its defaults."""

    course: Callable[..., Any]
    scene: type[Scene]
    judge: Callable[[Any], Sequence[claims.Claim]]
    report: Callable[[Sequence[Any]], str]
    minutes: float
    arms: Sequence[str]


SCENARIOS: Final = {
    "faults": Scenario(
        faults.course,
        faults.FaultsScene,
        claims.judge,
        lambda courses: "\n".join(map(table.report, courses)),
        10.0,
        ["authorizer"],
    ),
    "volumes": Scenario(
        volumes.course,
        volumes.VolumesScene,
        volumes.judge_volumes,
        lambda courses: "\n".join(table.report(each, volumes.judge_volumes) for each in courses),
        5.0,
        ["authorizer"],
    ),
    "stop-line": Scenario(
        stop_scene.course,
        stop_scene.StopScene,
        stop_line.judge,
        stop_line.report,
        30.0,
        list(_ARMS),
    ),
}


def main() -> int:
    """Runs what is asked for; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos", description="A scenario on a real cluster."
    )
    parser.add_argument("--scenario", choices=list(SCENARIOS), default="faults")
    parser.add_argument("--seed", type=int, default=1, help="decides what happens; default: 1")
    parser.add_argument("--minutes", type=float, help="of each arm; default: 10, 5 or 30")
    parser.add_argument("--arms", nargs="+", choices=list(_ARMS), help="of the brokers' jar")
    parser.add_argument("--out", type=Path, default=_OUT, metavar="FOLDER")
    asked = parser.parse_args()
    scenario = SCENARIOS[asked.scenario]
    minutes = scenario.minutes if asked.minutes is None else asked.minutes
    if minutes < _SHORTEST_MINUTES:
        parser.error(f"--minutes: {_SHORTEST_MINUTES} at least")
    courses: list[Any] = []
    failed = interrupted = False
    stolen = Stolen()
    for arm in asked.arms or scenario.arms:
        course = scenario.course(asked.seed, minutes * 60.0, refuses=_ARMS[arm])
        courses.append(course)
        out: Path = asked.out / f"{asked.scenario}-seed-{asked.seed}-{arm}"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        try:
            interrupted = asyncio.run(_play(scenario.scene(course, _say), out))
        except (ClusterError, ExceptionGroup):
            # What was seen until then is worth its table.
            traceback.print_exc()
            failed = True
        _write(course, out)
        if interrupted:
            break
    text = f"{scenario.report(courses)}\n{stolen}\n"
    (asked.out / "table.txt").write_text(text, encoding="utf-8")
    print(text, end="")
    if interrupted:
        return _INTERRUPTED
    held = all(claim.holds for course in courses for claim in scenario.judge(course))
    return 0 if held and not failed else 1


async def _play(scene: Scene, out: Path) -> bool:
    """Whether it was interrupted; everything has ended in either case."""
    playing = asyncio.create_task(scene.play(out), name="play")
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, playing.cancel)
    try:
        await playing
    except asyncio.CancelledError:
        return True
    return False


def _write(course: Any, out: Path) -> None:
    events = "".join(f"{clock(at_s)}  {words}\n" for at_s, words in course.events)
    (out / "events.txt").write_text(events, encoding="utf-8")
    with (out / "samples.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(asdict(sample))}\n" for sample in course.samples)
    if isinstance(course, Course):
        # For ``python -m tests.auditor``.
        trace(course).write(out / "trace.jsonl")


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
