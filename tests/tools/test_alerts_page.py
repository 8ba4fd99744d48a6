"""The table of docs/alerts.md is the one that the rules make."""

from tests.deploy.prometheus.rules import alerts
from tools.alerts_page import PAGE, page


def test_the_committed_table_is_current() -> None:
    """If it is not: python -m tools.alerts_page."""
    assert page() == PAGE.read_text(encoding="utf-8")


def test_every_alert_has_a_row() -> None:
    """The rows are in the order of the rules, with each severity and how long it waits."""
    rows = [
        line.removesuffix(" |").split(" | ")
        for line in page().splitlines()
        if line.startswith("| [Kafka")
    ]
    expected: dict[str, list[str]] = {}
    for rule in alerts():
        wait = f"after {rule['for']}" if "for" in rule else "at once"
        fires = expected.setdefault(f"| [{rule['alert']}](runbooks/{rule['alert']}.md)", [])
        if (when := f"{rule['labels']['severity']} {wait}") not in fires:
            fires.append(when)
    assert list(expected.items()) == [(row[0], row[1].split(", ")) for row in rows]
