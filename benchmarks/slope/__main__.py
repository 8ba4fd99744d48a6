"""``python -m benchmarks.slope [ARM ...]``: measures both arms, prints a table, draws a picture.

Arms are "slope" and "cliff", both by default, which takes 35 minutes and 8 GB of memory for the
volume; "report" measures nothing. Results are kept in a folder, so an arm can be measured again
alone. The exit code is 1 where something could not be measured, and where the slope did not keep
the volume above its limit for ten minutes. Give the machine to it alone.
"""

import argparse
import asyncio
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Final

from benchmarks.machine import Stolen, describe
from benchmarks.slope.course import Course
from benchmarks.slope.report import holds, picture, table
from benchmarks.slope.scene import ARMS, Arm, happen

_RESULTS: Final = Path(".cache/slope")
_OUT: Final = Path("docs/slope.svg")
_NAMES: Final = {each.key: each.name for each in ARMS}


def main() -> int:
    """Runs what is asked for; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.slope", description="A volume that fills beside a cleaner."
    )
    parser.add_argument("arms", nargs="*", metavar="ARM", help=f"of {', '.join(_NAMES)}, report")
    parser.add_argument(
        "--minutes", type=float, default=15.0, help="from the soft limit on; default: 15"
    )
    parser.add_argument("--results", type=Path, default=_RESULTS, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=_OUT, metavar="FILE", help="the picture")
    asked = parser.parse_args()
    if unknown := set(asked.arms) - {*_NAMES, "report"}:
        parser.error(f"no such arm: {', '.join(sorted(unknown))}")
    folder: Path = asked.results
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [each for each in ARMS if not asked.arms or each.key in asked.arms]
    machine, stolen = describe(), Stolen()
    done = [_try(folder, each, asked.minutes * 60.0) for each in chosen]
    file = folder / "machine.json"
    if chosen:
        file.write_text(json.dumps([*machine, str(stolen)]), encoding="utf-8")
    files = [folder / f"{each.key}.json" for each in ARMS]
    courses = [Course.load(each) for each in files if each.is_file()]
    if not courses:
        return 1
    asked.out.write_text(picture(courses, _NAMES), encoding="utf-8")
    print(table(courses, _NAMES))
    lines = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    print("".join(f"\n- {line}" for line in lines))
    held = all(holds(each) for each in courses if each.arm == "slope")
    return 0 if held and all(done) else 1


def _try(folder: Path, arm: Arm, watched_s: float) -> bool:
    """Measure one; the other is worth measuring all the same when it fails."""
    began = time.monotonic()

    def say(words: str) -> None:
        print(f"{arm.key}, {time.monotonic() - began:.0f} s: {words}", file=sys.stderr, flush=True)

    try:
        asyncio.run(happen(arm, watched_s, say)).save(folder / f"{arm.key}.json")
    except Exception:  # noqa: BLE001 - reported, and in the exit code
        traceback.print_exc()
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
