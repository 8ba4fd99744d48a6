"""``python -m benchmarks.enforcement [PART ...]``: measures, and writes tables and pictures.

Parts are the scenarios' keys, "scope", "overhead", "polls" and "report"; all of them by default,
which takes about two hours and 16 GB of memory for volumes. Results are kept in a folder, so parts
can be measured again alone; "report" is made at the end of every run. Give the machine to it alone.
"""

import argparse
import asyncio
import json
import sys
import time
import traceback
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.enforcement import overhead, polls, scope
from benchmarks.enforcement.contenders import NOTHING, OURS, PEER, Contender
from benchmarks.enforcement.report import report
from benchmarks.enforcement.scenarios import SCENARIOS
from benchmarks.enforcement.scene import Scenario, happen
from benchmarks.machine import Stolen, describe

_CONTENDERS: Final[dict[str, Contender]] = {each.key: each for each in (PEER, OURS)}
_RESULTS: Final = Path(".cache/enforcement")
_OUT: Final = Path("docs/enforcement.md")
_Measure = Callable[[Sequence[Contender]], Coroutine[Any, Any, dict[str, object]]]
_PARTS: Final = (*(each.key for each in SCENARIOS), "scope", "overhead", "polls")


def main() -> int:
    """Runs what is asked for; 1 if something could not be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.enforcement", description="Ours and the plugin side by side."
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(_PARTS)}, report")
    parser.add_argument("--only", choices=list(_CONTENDERS), help="measure one of the two")
    parser.add_argument(
        "--rounds", type=int, default=3, help="of each scenario; default: 3, 1 of long ones"
    )
    parser.add_argument("--seconds", type=float, help="of a long throttle; default: 600")
    parser.add_argument("--results", type=Path, default=_RESULTS, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=_OUT, metavar="FILE", help="the page")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - {*_PARTS, "report"}:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    folder: Path = asked.results
    folder.mkdir(parents=True, exist_ok=True)
    machine, stolen = describe(), Stolen()
    runs = list(_runs(asked, folder))
    failed = sum(not _try(what, run) for what, run in runs)
    if runs:
        (folder / "machine.json").write_text(json.dumps([*machine, str(stolen)]), encoding="utf-8")
    print(report(folder, asked.out))
    return 1 if failed else 0


def _runs(asked: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """What is to be measured, by what it is called."""
    contenders = [_CONTENDERS[asked.only]] if asked.only else list(_CONTENDERS.values())
    parts = asked.parts or _PARTS
    for scenario in SCENARIOS:
        if scenario.key not in parts:
            continue
        if scenario.is_long and asked.seconds is not None:
            scenario = replace(scenario, throttled_s=asked.seconds)  # noqa: PLW2901 - as asked
        rounds = min(asked.rounds, scenario.rounds or asked.rounds)
        for count in range(rounds):
            for each in contenders:
                what = f"{scenario.key}, {each.name}, round {count + 1}"
                yield what, partial(_course, folder, scenario, each, count, count / rounds)
    if "scope" in parts:
        for each in contenders:
            yield f"scope, {each.name}", partial(_tenants, folder, each)
    for name, measure in (("overhead", overhead.measure), ("polls", polls.measure)):
        if name in parts:
            yield name, partial(_cost, folder / f"{name}.json", measure, contenders)


def _try(what: str, run: Callable[[], None]) -> bool:
    """Measure one thing; the others are worth measuring all the same when it fails."""
    began = time.monotonic()
    print(f"{what} ...", end="", flush=True, file=sys.stderr)
    try:
        run()
    except Exception:  # noqa: BLE001 - reported, and in the exit code
        print(" failed", file=sys.stderr)
        traceback.print_exc()
        return False
    print(f" {time.monotonic() - began:.0f} s", file=sys.stderr)
    return True


def _course(
    folder: Path, scenario: Scenario, contender: Contender, count: int, phase: float
) -> None:
    if count > 0 and contender is PEER:
        # That it takes minutes or for ever needs no second round; when it throttles varies.
        scenario = replace(scenario, back_timeout_s=0.0)
    course = asyncio.run(happen(scenario, contender, phase))
    course.save(folder / f"{scenario.key}.{contender.key}.{count}.json")


def _tenants(folder: Path, contender: Contender) -> None:
    asyncio.run(scope.measure(contender)).save(folder / f"scope.{contender.key}.json")


def _cost(file: Path, measure: _Measure, contenders: Sequence[Contender]) -> None:
    file.write_text(json.dumps(asyncio.run(measure((NOTHING, *contenders)))), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
