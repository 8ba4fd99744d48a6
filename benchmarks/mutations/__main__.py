"""``python -m benchmarks.mutations [PART ...]``: measures, and writes a table and a picture.

Parts are the contenders' keys and "report"; all by default, which takes some four minutes. Results
are kept in a folder, so a contender can be measured again alone; "report" is made at the end of
every run. Give the machine to it alone.
"""

import argparse
import asyncio
import json
import logging
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from benchmarks.machine import describe
from benchmarks.mutations.report import report
from benchmarks.mutations.scene import CONTENDERS, Contender, happen
from benchmarks.mutations.storm import Load

_RESULTS: Final = Path(".cache/mutations")
_OUT: Final = Path("docs/mutations.md")
_PARTS: Final = tuple(each.key for each in CONTENDERS)


def main() -> int:
    """Runs what is asked for; 1 if something could not be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mutations", description="Others' waits during a storm of topics."
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(_PARTS)}, report")
    parser.add_argument("--rounds", type=int, default=1, help="of each; default: 1")
    parser.add_argument("--requests", type=int, default=Load().requests, help="of 50 topics each")
    parser.add_argument("--seconds", type=float, default=Load().seconds, help="of the storm")
    parser.add_argument("--results", type=Path, default=_RESULTS, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=_OUT, metavar="FILE", help="the page")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - {*_PARTS, "report"}:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    folder: Path = asked.results
    folder.mkdir(parents=True, exist_ok=True)
    parts = asked.parts or _PARTS
    load = Load(seconds=asked.seconds, requests=asked.requests)
    chosen = [each for each in CONTENDERS if each.key in parts]
    if chosen and not _clear(folder, chosen, load):
        parser.error(f"{folder} has results of another load: take another folder, or all parts")
    done = [_try(folder, each, load, count) for count in range(asked.rounds) for each in chosen]
    print(report(folder, asked.out))
    return 0 if all(done) else 1


def _clear(folder: Path, chosen: Sequence[Contender], load: Load) -> bool:
    """Make room for new results; False if what would be left is not of this load."""
    others = [each for each in CONTENDERS if each not in chosen]
    if any(_courses(folder, each) for each in others) and _load_of(folder) != load:
        return False
    for each in chosen:
        for file in _courses(folder, each):
            # What can't be measured again must not look as if it were of this run.
            file.unlink()
    (folder / "machine.json").write_text(json.dumps(describe()), encoding="utf-8")
    (folder / "load.json").write_text(json.dumps(asdict(load)), encoding="utf-8")
    return True


def _courses(folder: Path, contender: Contender) -> list[Path]:
    return list(folder.glob(f"{contender.key}.*.json"))


def _load_of(folder: Path) -> Load | None:
    """What a folder's results are of; None: nobody knows."""
    file = folder / "load.json"
    return Load(**json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else None


def _try(folder: Path, contender: Contender, load: Load, count: int) -> bool:
    """Measure one; the others are worth measuring all the same when it fails."""
    began = time.monotonic()
    what = f"{contender.name}, round {count + 1}"
    print(f"{what} ...", end="", flush=True, file=sys.stderr)
    try:
        course = asyncio.run(happen(contender, load))
        course.save(folder / f"{contender.key}.{count}.json")
    except Exception:  # noqa: BLE001 - reported, and in the exit code
        print(" failed", file=sys.stderr)
        traceback.print_exc()
        return False
    print(f" {time.monotonic() - began:.0f} s", file=sys.stderr)
    return True


if __name__ == "__main__":
    sys.exit(main())
