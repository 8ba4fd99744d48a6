"""The dashboard as Grafana imports it."""

import json
from pathlib import Path
from typing import Final

from grafana_foundation_sdk.builders import dashboard as building
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from tools.dashboard.panels import SOURCE, panel
from tools.dashboard.rows import ROWS

FILE: Final = Path(__file__).parents[2] / "deploy" / "grafana" / "throttle-sidecar.json"


def document() -> str:
    """The JSON, the same for the same code."""
    built = (
        building.Dashboard("Kafka throttle sidecars")
        .uid("kafka-throttle-sidecar")
        .description("Made by python -m tools.dashboard; changes belong there.")
        .tags(["kafka", "throttle-sidecar"])
        .readonly()
        .timezone("browser")
        .time("now-3h", "now")
        .refresh("30s")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(
            building.DatasourceVariable("datasource").label("Prometheus").type("prometheus")
        )
        .with_variable(_clusters())
    )
    number = 0
    for row in ROWS:
        built.with_row(building.Row(row.title).id(number := number + 1))
        for shown in row.panels:
            built.with_panel(panel(shown, number := number + 1))
    return json.dumps(built.build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"


def _clusters() -> building.QueryVariable:
    # All of them, and series without the label, unless one is chosen.
    everything = VariableOption(selected=True, text="All", value="$__all")
    return (
        building.QueryVariable("cluster")
        .label("Cluster")
        .datasource(SOURCE)
        .query("label_values(kafka_throttle_factor, cluster)")
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(everything)
    )
