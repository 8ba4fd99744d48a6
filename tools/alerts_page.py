"""The table of docs/alerts.md, from the rules: ``python -m tools.alerts_page``.

A row for each alert, in the order of the rules: its runbook, and each severity with the time that
it waits. The first paragraph of the runbook says what the alert means.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

_ROOT: Final = Path(__file__).parents[1]
_RULES: Final = _ROOT / "deploy" / "prometheus" / "rules" / "throttle-sidecar.yaml"
_BEGIN: Final = "<!-- alerts: written by python -m tools.alerts_page -->\n"
_END: Final = "<!-- end of alerts -->\n"

PAGE: Final = _ROOT / "docs" / "alerts.md"


def page() -> str:
    """The page with the table as it should be."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    _, _, after = rest.partition(_END)
    table = "\n".join(_rows(yaml.safe_load(_RULES.read_text(encoding="utf-8"))))
    return f"{before}{_BEGIN}\n{table}\n\n{_END}{after}"


def _rows(document: dict[str, Any]) -> Iterator[str]:
    yield "| alert and runbook | fires |"
    yield "|---|---|"
    fires: dict[str, dict[str, None]] = {}
    for group in document["groups"]:
        for rule in group["rules"]:
            if "alert" in rule:
                severity, wait = rule["labels"]["severity"], rule.get("for")
                when = f"{severity} after {wait}" if wait else f"{severity} at once"
                fires.setdefault(rule["alert"], {})[when] = None
    for name, whens in fires.items():
        yield f"| [{name}](runbooks/{name}.md) | {', '.join(whens)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
