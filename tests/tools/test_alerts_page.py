"""The table of docs/alerts.md is the one that rules and runbooks make."""

from tests.deploy.prometheus.rules import alerts
from tools.alerts_page import PAGE, page


def test_the_committed_table_is_current() -> None:
    """If it is not: python -m tools.alerts_page."""
    assert page() == PAGE.read_text(encoding="utf-8")


def test_every_alert_has_a_row() -> None:
    """The rows are in the order of the rules, with severity and how long each waits."""
    rows = [line.split(" | ") for line in page().splitlines() if line.startswith("| [Kafka")]
    expected = [
        (
            f"| [{rule['alert']}](runbooks/{rule['alert']}.md)",
            rule["labels"]["severity"],
            rule.get("for", "at once"),
        )
        for rule in alerts()
    ]
    assert expected == [(row[0], row[1], row[2]) for row in rows]
    assert all(row[3].endswith(". |") for row in rows)
