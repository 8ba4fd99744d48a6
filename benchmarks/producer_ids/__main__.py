"""``python -m benchmarks.producer_ids [BROKERS ...]``: measures, and writes a page and pictures.

On clusters of 1 and of 3 brokers by default, which takes 6 minutes together. Results are kept in a
folder, so one can be measured again alone; the page is made at the end of every run, and ``report``
makes it alone. Give the machine to it.
"""

import argparse
import asyncio
import json
import sys
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks.machine import describe
from benchmarks.producer_ids.report import report
from benchmarks.producer_ids.scene import happen
from benchmarks.producer_ids.variants import VARIANTS

_CLUSTERS: Final = ("1", "3")
_REPORT: Final = "report"
_RESULTS: Final = Path(".cache/producer-ids")
_OUT: Final = Path("docs/producer-ids.md")


def main() -> int:
    """Runs what is asked for; 1 if something could not be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.producer_ids", description="A rogue producer, throttled and not."
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(_CLUSTERS)} (brokers), {_REPORT}"
    )
    parser.add_argument("--rounds", type=int, default=1, help="of each cluster; default: 1")
    parser.add_argument("--results", type=Path, default=_RESULTS, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=_OUT, metavar="FILE", help="the page")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - {*_CLUSTERS, _REPORT}:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    folder: Path = asked.results
    folder.mkdir(parents=True, exist_ok=True)
    clusters = [int(part) for part in asked.parts or _CLUSTERS if part != _REPORT]
    if clusters:
        lines = [f"measured on {datetime.now(UTC).date()}", *describe()]
        (folder / "machine.json").write_text(json.dumps(lines), encoding="utf-8")
    failed = sum(
        not _measure(folder, brokers, count)
        for count in range(asked.rounds)
        for brokers in clusters
    )
    print(report(folder, asked.out))
    return 1 if failed else 0


def _measure(folder: Path, brokers: int, count: int) -> bool:
    """One cluster; the others are worth measuring all the same when it fails."""
    began = time.monotonic()
    print(f"brokers: {brokers}, round {count + 1} ...", end="", flush=True, file=sys.stderr)
    try:
        asyncio.run(_courses(folder, brokers, count))
    except Exception:  # noqa: BLE001 - reported, and in the exit code
        print(" failed", file=sys.stderr)
        traceback.print_exc()
        return False
    print(f" {time.monotonic() - began:.0f} s", file=sys.stderr)
    return True


async def _courses(folder: Path, brokers: int, count: int) -> None:
    async for course in happen(brokers, VARIANTS):
        course.save(folder / f"{brokers}.{course.variant}.{count}.json")


if __name__ == "__main__":
    sys.exit(main())
