"""``python -m tests.stop_line --minutes 30``: a volume fills to the stop line, again and again.

First with the authorizer, then with the quota callback alone, or one of them (``--arms``). The exit
code is 0 when every claim held, 1 when one was broken, and 130 when it was interrupted; the table
is of what was seen until then. The folder ``--out`` has it too, with all looks and logs. It needs a
JDK, Maven, 4 GB of memory and two cores of its own.
"""

import argparse
import asyncio
import json
import shutil
import signal
import sys
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Final

from benchmarks.harness.machine import Stolen
from sidecar.errors import ClusterError
from tests.chaos.schedule import clock
from tests.stop_line.cleaner import Cleaning, cleanings
from tests.stop_line.course import Arm, Course, judge
from tests.stop_line.scene import BOUND, LIMIT_BYTES, LINE_BYTES, play
from tests.stop_line.table import report

_OUT: Final = Path(".cache/stop-line")
_INTERRUPTED: Final = 130


def main() -> int:
    """Runs what is asked for; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.stop_line",
        description="Producers that fill a volume to the stop line.",
    )
    parser.add_argument("--seed", type=int, default=1, help="decides the cleanings; default: 1")
    parser.add_argument("--minutes", type=float, default=30.0, help="of each arm; default: 30")
    parser.add_argument("--arms", nargs="+", type=Arm, choices=list(Arm), default=list(Arm))
    parser.add_argument("--out", type=Path, default=_OUT, metavar="FOLDER")
    asked = parser.parse_args()
    duration_s = asked.minutes * 60.0
    plan = cleanings(asked.seed, duration_s, LIMIT_BYTES, LINE_BYTES)
    courses: list[Course] = []
    failed = interrupted = False
    stolen = Stolen()
    for arm in asked.arms:
        course = Course(arm, duration_s, LIMIT_BYTES, LINE_BYTES, BOUND)
        courses.append(course)
        out: Path = asked.out / arm
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        try:
            interrupted = asyncio.run(_play(course, plan, out))
        except (ClusterError, ExceptionGroup):
            # What was seen until then is worth its table.
            traceback.print_exc()
            failed = True
        _write(course, out)
        if interrupted:
            break
    text = f"{report(courses)}\n{stolen}\n"
    (asked.out / "table.txt").write_text(text, encoding="utf-8")
    print(text, end="")
    if interrupted:
        return _INTERRUPTED
    held = all(claim.holds for course in courses for claim in judge(course))
    return 0 if held and not failed else 1


async def _play(course: Course, plan: list[Cleaning], out: Path) -> bool:
    """Whether it was interrupted; everything has ended in either case."""
    playing = asyncio.create_task(play(course, plan, out, _say), name="play")
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, playing.cancel)
    try:
        await playing
    except asyncio.CancelledError:
        return True
    return False


def _write(course: Course, out: Path) -> None:
    events = "".join(f"{clock(at_s)}  {words}\n" for at_s, words in course.events)
    (out / "events.txt").write_text(events, encoding="utf-8")
    for name, seen in (("looks", course.looks), ("figures", course.figures)):
        with (out / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(asdict(each))}\n" for each in seen)


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
