"""``python -m benchmarks [NAME ...] [--out FILE]``: measures and prints one table.

These measure and do not judge: a target that is missed is marked, and the exit code is 0 all the
same; it is 1 when something could not be measured. Give the machine to them alone.
"""

import argparse
import sys
import time
import traceback
from pathlib import Path
from typing import Final

from benchmarks.apart import measure_apart
from benchmarks.harness.machine import describe
from benchmarks.rows import Row, as_table

NAMES: Final = (
    "poll",
    "fold",
    "budgets",
    "bytes",
    "daemon",
    "api",
    "reaction",
    "observers",
    "requestlog",
    "request_log_cost",
    "network_time",
    "quotas",
    "throttle_times",
    "replay_skew",
    "bloom",
)


def main() -> int:
    """Runs those that are named, or all; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure the figures of the sidecar."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(NAMES)}")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the table there, too")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(NAMES):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    machine = describe()
    rows: list[Row] = []
    failed = 0
    for name in asked.names or NAMES:
        began = time.monotonic()
        print(f"{name} ...", end="", flush=True, file=sys.stderr)
        try:
            rows += measure_apart(name)
        except KeyboardInterrupt:
            return 130
        except Exception:  # noqa: BLE001 - the others are worth measuring all the same
            failed += 1
            print(" failed", file=sys.stderr)
            traceback.print_exc()
        else:
            print(f" {time.monotonic() - began:.0f} s", file=sys.stderr)
    text = "\n".join((*(f"- {line}" for line in machine), "", as_table(rows)))
    print(text)
    if asked.out is not None:
        asked.out.write_text(text + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
