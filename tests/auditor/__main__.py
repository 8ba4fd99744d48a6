"""``python -m tests.auditor TRACE.jsonl``: prints each broken claim; 1 if there is one."""

import sys
from pathlib import Path

from tests.auditor.audit import audit
from tests.auditor.trace import read


def main() -> int:
    """Judges each file that is named."""
    found = 0
    for name in sys.argv[1:]:
        with Path(name).open(encoding="utf-8") as file:
            trace = read(file)
        findings = audit(trace)
        found += len(findings)
        print(f"{name}: {len(trace.moments)} moments, {len(findings)} broken claims")
        print(*(f"  {each}" for each in findings), sep="\n", end="\n" if findings else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
