"""The dashboard that is committed is the one that the code makes, and Grafana can lay it out."""

import itertools
import json
import re
from typing import Any

import pytest

from tests.deploy.prometheus.rules import METRIC, alerts, documented, rules
from tools.dashboard.document import FILE, document
from tools.dashboard.rows import ROWS

pytestmark = pytest.mark.slow


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(document())["panels"]
    return found


def cells(panel: dict[str, Any]) -> set[tuple[int, int]]:
    """The cells of the grid that a panel takes."""
    at = panel["gridPos"]
    return set(
        itertools.product(range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"]))
    )


def test_the_committed_dashboard_is_current() -> None:
    """If it is not: python -m tools.dashboard."""
    assert document() == FILE.read_text(encoding="utf-8")


def test_nothing_lies_on_something_else() -> None:
    """Every panel has its own cells of the 24 columns, and every line of panels is full."""
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        assert not taken & cells(panel), panel["title"]
        taken |= cells(panel)
    rows = {y for _, y in taken}
    assert {(x, y) for x in range(24) for y in rows} == taken


def test_every_panel_is_unique_and_says_what_it_means() -> None:
    """Ids and titles in a row differ; the description is what Grafana shows on the i."""
    ids = [panel["id"] for panel in panels()]
    assert len(ids) == len(set(ids))
    for row in ROWS:
        titles = [shown.title for shown in row.panels]
        assert len(titles) == len(set(titles))
        assert all(shown.meaning.endswith(".") for shown in row.panels)


def test_every_query_is_of_the_chosen_clusters_and_prometheus() -> None:
    """It asks for metrics that exist."""
    targets = [target for panel in panels() for target in panel.get("targets", [])]
    for target in targets:
        assert "${datasource}" == target["datasource"]["uid"]
        selectors = target["expr"].count("{")
        assert selectors == target["expr"].count('cluster=~"$cluster"'), target["expr"]
        assert set() == set(METRIC.findall(target["expr"])) - documented()
    assert sum(len(shown.queries) for row in ROWS for shown in row.panels) == len(targets)


def test_the_available_bytes_are_those_of_the_recorded_rule() -> None:
    """A sidecar that can't reach a broker keeps its last reading, which must not be the least."""
    (recorded,) = (
        "".join(rule["expr"].split())
        for rule in rules()
        if rule.get("record") == "volume:kafka_throttle_available_bytes:min"
    )
    targets = [target["expr"] for panel in panels() for target in panel.get("targets", [])]
    queries = ["".join(query.replace('{cluster=~"$cluster"}', "").split()) for query in targets]
    of_bytes = [query for query in queries if "kafka_throttle_volume_available_bytes" in query]
    assert of_bytes
    assert [] == [query for query in of_bytes if f"({recorded})" not in query]


def test_the_panel_of_alerts_leaves_none_out() -> None:
    """Its pattern matches the name of each rule."""
    (pattern,) = set(re.findall(r'alertname=~\\?"(.*?)\\?"', document()))
    names = {rule["alert"] for rule in alerts()}
    assert [] == [name for name in names if not re.fullmatch(pattern, name)]


def test_no_query_is_left_out() -> None:
    """A panel's queries have letters, of which there are enough."""
    for panel in panels():
        letters = [target["refId"] for target in panel.get("targets", [])]
        assert len(letters) == len(set(letters))
