"""From what is shown to Grafana's panels."""

from collections.abc import Callable, Mapping
from typing import Final

from grafana_foundation_sdk.builders import dashboard as building
from grafana_foundation_sdk.builders import stat, table, timeseries
from grafana_foundation_sdk.builders.common import ReduceDataOptions, VizLegendOptions
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    DataSourceRef,
    LegendDisplayMode,
    LegendPlacement,
    VisibilityMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DataTransformerConfig,
    Panel,
    Threshold,
    ThresholdsMode,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from tools.dashboard.shown import Kind, Shown

SOURCE: Final = DataSourceRef("prometheus", "${datasource}")
"""Whatever Prometheus is chosen at the top of the dashboard."""

HEIGHT: Final = 8
"""Of every panel, in Grafana's rows of 30 pixels."""

PanelBuilder = timeseries.Panel | stat.Panel | table.Panel


def panel(shown: Shown, number: int) -> Builder[Panel]:
    """A panel.

    Args:
        shown: what it shows.
        number: its id, unlike any other.
    """
    built = _KINDS[shown.kind](shown)
    built.id(number).title(shown.title).description(shown.meaning).datasource(SOURCE)
    built.height(HEIGHT).span(shown.width).unit(shown.unit)
    if shown.if_empty:
        built.no_value(shown.if_empty)
    if shown.decimals is not None:
        built.decimals(shown.decimals)
    if shown.steps:
        steps = [Threshold(value, color) for value, color in shown.steps]
        built.thresholds(building.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
    return built


def _lines(shown: Shown) -> PanelBuilder:
    built = timeseries.Panel().show_points(VisibilityMode.NEVER).fill_opacity(5)
    if shown.least is not None:
        built.min(shown.least)
    if shown.most is not None:
        built.max(shown.most)
    legend = VizLegendOptions().display_mode(LegendDisplayMode.LIST).show_legend(True)
    built.legend(legend.placement(LegendPlacement.BOTTOM))
    for letter, query in zip("ABCDE", shown.queries, strict=False):
        target = Dataquery().ref_id(letter).datasource(SOURCE).expr(query.expr).range()
        built.with_target(target.legend_format(query.legend))
    return built


def _number(shown: Shown) -> PanelBuilder:
    built = stat.Panel().graph_mode(BigValueGraphMode.NONE)
    built.color_mode(BigValueColorMode.BACKGROUND if shown.steps else BigValueColorMode.NONE)
    built.reduce_options(ReduceDataOptions().calcs(["lastNotNull"]).values(False))
    for letter, query in zip("ABCDE", shown.queries, strict=False):
        target = Dataquery().ref_id(letter).datasource(SOURCE).expr(query.expr).instant()
        built.with_target(target.legend_format(query.legend))
    return built


def _table(shown: Shown) -> PanelBuilder:
    built = table.Panel().with_transformation(
        DataTransformerConfig("organize", options={"excludeByName": {"Time": True}})
    )
    (query,) = shown.queries
    target = Dataquery().ref_id("A").datasource(SOURCE).expr(query.expr).instant()
    return built.with_target(target.format(PromQueryFormat.TABLE))


_KINDS: Final[Mapping[Kind, Callable[[Shown], PanelBuilder]]] = {
    Kind.LINES: _lines,
    Kind.NUMBER: _number,
    Kind.TABLE: _table,
}
