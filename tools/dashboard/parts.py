"""What the rows are made of: queries over the sidecars of the chosen clusters, and panels.

Example: ``of_cluster("min", "factor")`` asks ``min by (cluster) (kafka_throttle_factor{...})``, and
names each series by its cluster.
"""

from typing import Final

from tools.dashboard.shown import Kind, Query, Shown

CLUSTER: Final = "{{cluster}}"
INSTANCE: Final = "{{cluster}} {{instance}}"
VOLUME: Final = "{{cluster}} broker {{broker}} {{log_dir}}"
USER: Final = "{{cluster}} {{user}}"


def of(name: str) -> str:
    """A metric of the sidecars of the chosen clusters."""
    return f'kafka_throttle_{name}{{cluster=~"$cluster"}}'


def rate(name: str) -> str:
    """What a counter grows by in a second."""
    return f"rate({of(name)}[$__rate_interval])"


def by(labels: str, aggregate: str, name: str) -> str:
    """A metric over all sidecars, such as the max by "cluster, user"."""
    return f"{aggregate} by ({labels}) ({of(name)})"


def of_volume(aggregate: str, name: str) -> str:
    """A metric of each volume over all sidecars, which all tell of every volume."""
    return by("cluster, broker, log_dir", aggregate, name)


def of_brokers(name: str) -> str:
    """How many brokers of a cluster some sidecar has a 1 for."""
    return f"sum by (cluster) ({by('cluster, broker', 'max', name)})"


def of_cluster(aggregate: str, name: str, also: str = "") -> Query:
    """A metric over a cluster's sidecars; ``also`` tells it from others in its panel."""
    return Query(by("cluster", aggregate, name), f"{CLUSTER} {also}".strip())


def of_process(expr: str) -> Query:
    """A metric of the process's own, or its rate, of sidecars alone."""
    return Query(f"{expr} and on (job, instance) {of('build_info')}", INSTANCE)


def number(
    title: str,
    meaning: str,
    query: Query,
    steps: tuple[tuple[float | None, str], ...] = (),
    *,
    unit: str = "short",
    if_empty: str = "",
) -> Shown:
    """A panel with one number for each cluster, coloured by steps."""
    return Shown(title, meaning, (query,), unit, Kind.NUMBER, 4, steps, if_empty)


def table(
    title: str, meaning: str, query: Query, if_empty: str, *, unit: str = "short", width: int = 12
) -> Shown:
    """A panel with a line for each series."""
    return Shown(title, meaning, (query,), unit, Kind.TABLE, width, if_empty=if_empty)
