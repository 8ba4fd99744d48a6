"""``python -m tests.chaos --seed 1 --minutes 10``: real faults on a real cluster, and a table.

The exit code is 0 when every claim held, 1 when one was broken, with the seed and the faults before
it, and 130 when it was interrupted; the table is of what was seen until then. The folder ``--out``
has it too, with all events, samples and logs. It needs a JDK, Maven, 4 GB of memory and two cores
of its own.
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
from tests.chaos.claims import judge
from tests.chaos.course import Course
from tests.chaos.scene import BOUND, BROKERS, LIMIT_BYTES, play
from tests.chaos.schedule import clock, plan
from tests.chaos.table import report

_OUT: Final = Path(".cache/chaos")
_INTERRUPTED: Final = 130
_SHORTEST_MINUTES: Final = 0.5


def main() -> int:
    """Runs what is asked for; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos", description="Real faults on a real cluster."
    )
    parser.add_argument("--seed", type=int, default=1, help="decides the faults; default: 1")
    parser.add_argument("--minutes", type=float, default=10.0, help="default: 10")
    parser.add_argument(
        "--callback-alone", action="store_true", help="brokers have no authorizer of the jar's"
    )
    parser.add_argument("--out", type=Path, default=_OUT, metavar="FOLDER")
    asked = parser.parse_args()
    if asked.minutes < _SHORTEST_MINUTES:
        parser.error(f"--minutes: {_SHORTEST_MINUTES} at least")
    faults = plan(asked.seed, asked.minutes * 60.0, BROKERS)
    course = Course(faults, LIMIT_BYTES, BOUND, refuses=not asked.callback_alone)
    alone = "-callback-alone" if asked.callback_alone else ""
    out: Path = asked.out / f"seed-{asked.seed}{alone}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    failed = interrupted = False
    stolen = Stolen()
    try:
        interrupted = asyncio.run(_play(course, out))
    except (ClusterError, ExceptionGroup):
        # What was seen until then is worth its table.
        traceback.print_exc()
        failed = True
    text = f"{report(course)}\n{stolen}\n"
    (out / "table.txt").write_text(text, encoding="utf-8")
    events = "".join(f"{clock(at_s)}  {words}\n" for at_s, words in course.events)
    (out / "events.txt").write_text(events, encoding="utf-8")
    with (out / "samples.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(asdict(sample))}\n" for sample in course.samples)
    print(text, end="")
    if interrupted:
        return _INTERRUPTED
    return 1 if failed or not all(claim.holds for claim in judge(course)) else 0


async def _play(course: Course, out: Path) -> bool:
    """Whether it was interrupted; everything has ended in either case."""
    playing = asyncio.create_task(play(course, out, _say), name="play")
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, playing.cancel)
    try:
        await playing
    except asyncio.CancelledError:
        return True
    return False


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
