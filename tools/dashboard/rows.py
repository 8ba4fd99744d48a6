"""The rows of the dashboard: what an operator watches, from what matters most to the details.

Every sidecar reports every broker and volume, so these are taken over all sidecars of a cluster:
the least space, the largest limit, the fastest filling.
"""

from typing import Final

from tools.dashboard.details import BROKERS, CALLBACKS, IDS, PROCESSES
from tools.dashboard.parts import (
    CLUSTER,
    INSTANCE,
    VOLUME,
    by,
    number,
    of,
    of_cluster,
    of_volume,
    table,
)
from tools.dashboard.shown import Query, Shown, ShownRow

# Without the last readings of sidecars that can't reach the broker, if any sidecar can.
_AVAILABLE: Final = (
    f"(min by (cluster, broker, log_dir) ({of('volume_available_bytes')}"
    f" unless on (cluster, job, instance, broker) {of('broker_failing')} == 1)"
    f" or {of_volume('min', 'volume_available_bytes')})"
)
_LIMIT: Final = of_volume("max", "volume_limit_bytes")
_HEADROOM: Final = f"({_AVAILABLE} - {_LIMIT})"
_FILL: Final = of_volume("max", "volume_fill_bytes_per_second")
_VIOLATED: Final = of_volume("max", "volume_limit_violated")

_FACTOR: Final = ShownRow(
    "The factor, and why",
    (
        number(
            "Throttle factor",
            "What produce quotas are multiplied by; the smallest of all sidecars.",
            of_cluster("min", "factor"),
            ((None, "red"), (1.0, "green")),
        ),
        number(
            "Volumes at their limit",
            "One is enough to throttle the producers of the whole cluster.",
            Query(f"sum by (cluster) ({_VIOLATED})", CLUSTER),
            ((None, "green"), (1.0, "red")),
        ),
        number(
            "First volume full in",
            "At the rate at which it fills now; a broker stops when a volume is full.",
            Query(f"min by (cluster) ({of('seconds_to_full')} < +Inf)", CLUSTER),
            ((None, "red"), (3600.0, "yellow"), (86400.0, "green")),
            unit="s",
            if_empty="none fills",
        ),
        Shown(
            "Factor",
            "Of each sidecar: they should be one line.",
            (Query(of("factor"), INSTANCE),),
            width=12,
            most=1.0,
        ),
        Shown(
            "Why",
            "How many sidecars have a factor from each source: observation is as it should be.",
            (Query(by("cluster, source", "sum", "source"), "{{cluster}} {{source}}"),),
            width=12,
            decimals=0,
        ),
        table(
            "Alerts",
            "Those of deploy/prometheus/rules that fire, where this Prometheus evaluates them.",
            Query(
                "sum by (alertname, severity, cluster, broker, log_dir, user, instance) "
                '(ALERTS{alertname=~"Kafka(Throttle|Producer|Reassignment|StopLine|Storage|Volume|'
                'FullLogDir).*", alertstate="firing", cluster=~"$cluster"})'
            ),
            "no alert fires",
        ),
    ),
)

_VOLUMES: Final = ShownRow(
    "Volumes",
    (
        Shown(
            "Bytes until the limit, the ten volumes with the fewest",
            "At 0 the limit is reached.",
            (Query(f"bottomk(10, {_HEADROOM})", VOLUME),),
            unit="decbytes",
            width=12,
            least=None,
        ),
        Shown(
            "Time until the limit, the ten volumes with the least",
            "At the rate at which they fill now; no line for a volume that does not fill.",
            (Query(f"bottomk(10, clamp_min({_HEADROOM}, 0) / ({_FILL} > 0))", VOLUME),),
            unit="s",
            width=12,
            if_empty="none fills",
        ),
        Shown(
            "Available, and the limit, of the five volumes nearest to it",
            "The limit in bytes, whether it was set so or as a ratio.",
            (
                Query(f"{_AVAILABLE} and bottomk(5, {_HEADROOM})", f"{VOLUME} available"),
                Query(f"{_LIMIT} and bottomk(5, {_HEADROOM})", f"{VOLUME} limit"),
            ),
            unit="decbytes",
            width=12,
        ),
        Shown(
            "Fill rate, the ten volumes that fill fastest",
            "Negative while a volume empties.",
            (Query(f"topk(10, {_FILL})", VOLUME),),
            unit="Bps",
            width=12,
            least=None,
        ),
        table(
            "Volumes at their limit",
            "Their available bytes.",
            Query(f"{_AVAILABLE} and {_VIOLATED} == 1"),
            "none",
            unit="decbytes",
        ),
        table(
            "Log dirs without sizes",
            "Offline or unreadable. Each counts as when it was last read.",
            Query(f"{of_volume('min', 'volume_online')} == 0", VOLUME),
            "none",
        ),
    ),
)

ROWS: Final = (_FACTOR, _VOLUMES, BROKERS, CALLBACKS, IDS, PROCESSES)
"""All rows, from the top."""
