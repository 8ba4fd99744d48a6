"""``python -m benchmarks.clients [CLIENT ...]``: measures, and writes the tables of a page.

Clients by their keys, all by default; "report" alone makes the tables of what was measured before.
Results are kept in a folder, so one client can be measured again alone. A run takes its throttle
and a minute and a half. Give the machine to it alone.
"""

import argparse
import asyncio
import json
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.clients.clients import CLIENTS, INSTALLED, Client, versions
from benchmarks.clients.report import report
from benchmarks.clients.scene import ARMS, Case, happen
from benchmarks.machine import describe
from sidecar.cli.callback.jar import callback_jar

_OUT: Final = Path("docs/clients.md")
_KEYS: Final = tuple(each.key for each in CLIENTS)
_MINUTES: Final = (1.25, 10.0)


def main() -> int:
    """Runs what is asked for; 1 if something could not be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.clients", description="Throttled clients, as they are."
    )
    parser.add_argument(
        "clients", nargs="*", metavar="CLIENT", help=f"of {', '.join(_KEYS)}, report"
    )
    parser.add_argument("--arms", nargs="+", choices=list(ARMS), default=list(ARMS))
    parser.add_argument("--minutes", nargs="+", type=float, default=_MINUTES, help="of throttles")
    parser.add_argument("--partitions", type=int, default=1, help="of each topic")
    parser.add_argument("--abreast", type=int, default=2, help="so many at once, a broker each")
    parser.add_argument("--jar", type=Path, help="the quota callback's; default: that of make jar")
    parser.add_argument("--results", type=Path, default=INSTALLED / "results", metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=_OUT, metavar="FILE", help="the page")
    asked = parser.parse_args()
    if unknown := set(asked.clients) - {*_KEYS, "report"}:
        parser.error(f"no such client: {', '.join(sorted(unknown))}")
    folder: Path = asked.results
    folder.mkdir(parents=True, exist_ok=True)
    names = asked.clients or _KEYS
    chosen = [each for each in CLIENTS if each.key in names]
    failed = 0
    if chosen:
        (folder / "machine.json").write_text(
            json.dumps([*describe(), versions()]), encoding="utf-8"
        )
        jar = callback_jar(asked.jar)
        for arm in asked.arms:
            for minutes in asked.minutes:
                case = Case(arm, 60 * minutes, asked.partitions, jar)
                if not case.is_possible:
                    print(f"{jar} has nothing for the arm {arm}: left out", file=sys.stderr)
                    continue
                for start in range(0, len(chosen), asked.abreast):
                    failed += not _try(chosen[start : start + asked.abreast], case, folder)
    print(report(folder, asked.out))
    return 1 if failed else 0


def _try(clients: Sequence[Client], case: Case, folder: Path) -> bool:
    """Measure some; the others are worth measuring all the same when it fails."""
    began = time.monotonic()
    keys = ", ".join(each.key for each in clients)
    print(f"{keys}; {case.arm}, {case.throttle_s:g} s ...", end="", flush=True, file=sys.stderr)
    for client in clients:
        # What can't be measured again must not look as if it were of this run.
        case.file(client, folder, "json").unlink(missing_ok=True)
    try:
        courses = asyncio.run(happen(clients, case, folder))
    except Exception:  # noqa: BLE001 - reported, and in the exit code
        print(" failed", file=sys.stderr)
        traceback.print_exc()
        return False
    for client, course in zip(clients, courses, strict=True):
        course.save(case.file(client, folder, "json"))
    print(f" {time.monotonic() - began:.0f} s", file=sys.stderr)
    return True


if __name__ == "__main__":
    sys.exit(main())
