"""``python -m benchmarks.clients [CLIENT ...]``: measures, and writes the tables of a page.

Clients by their keys, all by default; "report" alone makes the tables of what was measured before.
A part of it ("short": two at once, each alone; "long": seven at once) and an arm can be measured
alone: results are kept in a folder, and the tables are of all that is there. Give the machine to it
alone.
"""

import argparse
import asyncio
import json
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks.clients.arms import ARMS, OURS
from benchmarks.clients.clients import CLIENTS, INSTALLED, Client, versions
from benchmarks.clients.parts import PARTS
from benchmarks.clients.report import report
from benchmarks.clients.scene import Case, happen
from benchmarks.machine import Stolen, describe
from sidecar.cli.callback.jar import callback_jar
from sidecar.errors import ClusterError

_OUT: Final = Path("docs/clients.md")
_KEYS: Final = tuple(each.key for each in CLIENTS)
_PARTS: Final = {each.key: each for each in PARTS}


def main() -> int:
    """Runs what is asked for; 1 if something could not be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.clients", description="Throttled clients, as they are."
    )
    parser.add_argument(
        "clients", nargs="*", metavar="CLIENT", help=f"of {', '.join(_KEYS)}, report"
    )
    parser.add_argument("--parts", nargs="+", choices=list(_PARTS), default=list(_PARTS))
    parser.add_argument("--arms", nargs="+", choices=list(ARMS), default=list(OURS))
    parser.add_argument("--seconds", type=float, help="of each throttle; default: the part's")
    parser.add_argument("--partitions", type=int, default=1, help="of each topic")
    parser.add_argument("--abreast", type=int, default=2, help="so many brokers at once, if short")
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
        jar = callback_jar(asked.jar)
        for part in (_PARTS[key] for key in asked.parts):
            machine, stolen = [*describe(), versions()], Stolen()
            if asked.seconds is not None:
                part = replace(part, throttle_s=asked.seconds)  # noqa: PLW2901 - what was asked
            for arm in asked.arms:
                case = Case(part, ARMS[arm], asked.partitions, jar)
                if not case.is_possible:
                    print(f"{jar} has nothing for the arm {arm}: left out", file=sys.stderr)
                    continue
                for placed in part.placed(chosen, asked.abreast):
                    failed += not _try(placed, case, folder)
            file = folder / f"machine.{part.key}.json"
            file.write_text(json.dumps([*machine, str(stolen)]), encoding="utf-8")
    print(report(folder, asked.out))
    return 1 if failed else 0


def _try(placed: Sequence[Sequence[Client]], case: Case, folder: Path) -> bool:
    """Measure some; the others are worth measuring all the same when it fails."""
    began = time.monotonic()
    clients = [client for clients in placed for client in clients]
    keys = ", ".join(each.key for each in clients)
    what = f"{keys}; {case.arm.key}, {case.part.throttle_s:g} s"
    print(f"{what} ...", end="", flush=True, file=sys.stderr)
    for client in clients:
        # What can't be measured again must not look as if it were of this run.
        case.file(client, folder, "json").unlink(missing_ok=True)
    try:
        courses = asyncio.run(happen(placed, case, folder))
    except Exception:  # noqa: BLE001 - reported, and in the exit code
        print(" failed", file=sys.stderr)
        traceback.print_exc()
        return False
    failures = [each for each in courses if isinstance(each, ClusterError)]
    for client, course in zip(clients, courses, strict=True):
        if not isinstance(course, ClusterError):
            course.save(case.file(client, folder, "json"))
    print(f" {time.monotonic() - began:.0f} s", file=sys.stderr)
    for failure in failures:
        print(f"not measured: {failure}", file=sys.stderr)
    return not failures


if __name__ == "__main__":
    sys.exit(main())
