"""The rows of the dashboard: what an operator looks at, from what matters most to the details.

Every sidecar tells of every broker and volume, so these are taken over all sidecars of a cluster:
the least space, the largest limit, the fastest filling.
"""

from typing import Final

from tools.dashboard.shown import Kind, Query, Shown, ShownRow

_OF_VOLUME: Final = "by (cluster, broker, log_dir)"
_VOLUME: Final = "{{cluster}} broker {{broker}} {{log_dir}}"
_INSTANCE: Final = "{{cluster}} {{instance}}"
_GOOD_IS_HIGH: Final = ((None, "red"), (1.0, "green"))
_GOOD_IS_ZERO: Final = ((None, "green"), (1.0, "red"))


def _of(name: str, *more: str) -> str:
    """A metric of the sidecars of the chosen clusters."""
    chosen = ", ".join(('cluster=~"$cluster"', *more))
    return f"kafka_throttle_{name}{{{chosen}}}"


_AVAILABLE: Final = f"min {_OF_VOLUME} ({_of('volume_available_bytes')})"
_LIMIT: Final = f"max {_OF_VOLUME} ({_of('volume_limit_bytes')})"
_HEADROOM: Final = f"({_AVAILABLE} - {_LIMIT})"
_FILL: Final = f"max {_OF_VOLUME} ({_of('volume_fill_bytes_per_second')})"
_VIOLATED: Final = f"max {_OF_VOLUME} ({_of('volume_limit_violated')})"

_FACTOR: Final = ShownRow(
    "The factor, and why",
    (
        Shown(
            "Throttle factor",
            "What produce quotas are multiplied by; the smallest of all sidecars.",
            (Query(f"min by (cluster) ({_of('factor')})", "{{cluster}}"),),
            kind=Kind.NUMBER,
            width=4,
            steps=_GOOD_IS_HIGH,
        ),
        Shown(
            "Volumes at their limit",
            "One is enough to hold the producers of the whole cluster.",
            (Query(f"sum by (cluster) ({_VIOLATED})", "{{cluster}}"),),
            kind=Kind.NUMBER,
            width=4,
            steps=_GOOD_IS_ZERO,
        ),
        Shown(
            "First volume full in",
            "At the rate at which it fills now; a broker stops when a volume is full.",
            (
                Query(
                    f"min by (cluster) ({_of('seconds_to_full')} < +Inf)",
                    "{{cluster}}",
                    may_be_empty=True,
                ),
            ),
            unit="s",
            kind=Kind.NUMBER,
            width=4,
            steps=((None, "red"), (3600.0, "yellow"), (86400.0, "green")),
            if_empty="none fills",
        ),
        Shown(
            "Factor",
            "Of each sidecar: they should be one line.",
            (Query(_of("factor"), _INSTANCE),),
            width=12,
            most=1.0,
        ),
        Shown(
            "Why",
            "How many sidecars have their factor from where: observation is as it should be.",
            (Query(f"sum by (cluster, source) ({_of('source')})", "{{cluster}} {{source}}"),),
            width=12,
            decimals=0,
        ),
        Shown(
            "Alerts",
            "Those of deploy/prometheus/rules that fire, where this Prometheus evaluates them.",
            (
                Query(
                    "sum by (alertname, severity, cluster, broker, log_dir, user, instance) "
                    '(ALERTS{alertname=~"Kafka(Throttle|Producer|Volume).*", '
                    'alertstate="firing", cluster=~"$cluster"})',
                    may_be_empty=True,
                ),
            ),
            kind=Kind.TABLE,
            width=12,
            if_empty="no alert fires",
        ),
    ),
)

_VOLUMES: Final = ShownRow(
    "Volumes",
    (
        Shown(
            "Bytes until the limit, the ten volumes with the fewest",
            "At 0 producers are held.",
            (Query(f"bottomk(10, {_HEADROOM})", _VOLUME),),
            unit="decbytes",
            width=12,
            least=None,
        ),
        Shown(
            "Time until the limit, the ten volumes with the least",
            "At the rate at which they fill now; no line for a volume that does not fill.",
            (
                Query(
                    f"bottomk(10, clamp_min({_HEADROOM}, 0) / ({_FILL} > 0))",
                    _VOLUME,
                    may_be_empty=True,
                ),
            ),
            unit="s",
            width=12,
            if_empty="none fills",
        ),
        Shown(
            "Available, and the limit, of the five volumes nearest to it",
            "The limit in bytes, whether it was set so or as a ratio.",
            (
                Query(f"{_AVAILABLE} and bottomk(5, {_HEADROOM})", f"{_VOLUME} available"),
                Query(f"{_LIMIT} and bottomk(5, {_HEADROOM})", f"{_VOLUME} limit"),
            ),
            unit="decbytes",
            width=12,
        ),
        Shown(
            "Fill rate, the ten volumes that fill fastest",
            "Negative while a volume empties.",
            (Query(f"topk(10, {_FILL})", _VOLUME),),
            unit="Bps",
            width=12,
            least=None,
        ),
        Shown(
            "Volumes at their limit",
            "Their available bytes.",
            (Query(f"{_AVAILABLE} and {_VIOLATED} == 1", may_be_empty=True),),
            unit="decbytes",
            kind=Kind.TABLE,
            width=12,
            if_empty="none",
        ),
        Shown(
            "Log dirs that are offline",
            "They keep the state in which they were last read.",
            (Query(f"min {_OF_VOLUME} ({_of('volume_online')}) == 0", _VOLUME, may_be_empty=True),),
            kind=Kind.TABLE,
            width=12,
            if_empty="none",
        ),
    ),
)

_BROKERS: Final = ShownRow(
    "Brokers and polls",
    (
        Shown(
            "Brokers",
            "Active ones, and those of them that did not answer some sidecar when last asked.",
            (
                Query(f"max by (cluster) ({_of('active_brokers')})", "{{cluster}} active"),
                Query(
                    f"sum by (cluster) (max by (cluster, broker) ({_of('broker_failing')}))",
                    "{{cluster}} failing",
                ),
            ),
            decimals=0,
        ),
        Shown(
            "Since the last successful poll",
            "Beyond the validity the fallback holds.",
            (
                Query(f"time() - {_of('last_success_timestamp_seconds')}", _INSTANCE),
                Query(
                    f"min by (cluster) ({_of('validity_duration_seconds')})", "{{cluster}} validity"
                ),
            ),
            unit="s",
        ),
        Shown(
            "How long polls take",
            "Half of them, and all but one in a hundred.",
            tuple(
                Query(
                    f"histogram_quantile({quantile}, sum by (cluster, le) "
                    f"(rate({_of('poll_duration_seconds_bucket')}[$__rate_interval])))",
                    f"{{{{cluster}}}} p{quantile * 100:g}",
                )
                for quantile in (0.5, 0.99)
            ),
            unit="s",
        ),
        Shown(
            "Failures",
            "Polls, and calls to one broker, that failed, by kind.",
            (
                Query(
                    f"sum by (cluster, kind) "
                    f"(rate({_of('poll_failures_total')}[$__rate_interval])) > 0",
                    "{{cluster}} {{kind}}",
                    may_be_empty=True,
                ),
            ),
            unit="cps",
            width=12,
            if_empty="none",
        ),
        Shown(
            "Polls",
            "Of all sidecars; more often while a volume nears its limit.",
            (
                Query(
                    f"sum by (cluster) "
                    f"(rate({_of('poll_duration_seconds_count')}[$__rate_interval]))",
                    "{{cluster}}",
                ),
            ),
            unit="cps",
            width=12,
        ),
    ),
)

_CALLBACKS: Final = ShownRow(
    "Quota callbacks",
    (
        Shown(
            "Brokers that follow",
            "Their callbacks have the present decision and listen for the next.",
            (
                Query(
                    f"sum by (cluster) (max by (cluster, broker) ({_of('reader_follows')}))",
                    "{{cluster}} follow",
                ),
                Query(f"max by (cluster) ({_of('active_brokers')})", "{{cluster}} active"),
            ),
            decimals=0,
        ),
        Shown(
            "Brokers that do not follow",
            "Nobody holds their producers.",
            (
                Query(
                    f"min by (cluster, broker) ({_of('broker_active')}) == 1 "
                    f"unless max by (cluster, broker) ({_of('reader_follows')}) == 1",
                    may_be_empty=True,
                ),
            ),
            kind=Kind.TABLE,
            if_empty="none",
        ),
        Shown(
            "Brokers with emergency pauses",
            "They pause for longer than usual, since a volume would be full all the same.",
            (Query(f"sum by (cluster) ({_of('readers_in_emergency')})", "{{cluster}}"),),
            decimals=0,
        ),
    ),
)

_IDS: Final = ShownRow(
    "Producer ids and quotas",
    (
        Shown(
            "New producer ids in a window, the ten users with the most",
            "Of users under a quota.",
            (
                Query(
                    f"topk(10, max by (cluster, user) ({_of('producer_ids_rate')}))",
                    "{{cluster}} {{user}}",
                    may_be_empty=True,
                ),
            ),
            if_empty="no user under a quota has opened any",
        ),
        Shown(
            "Ids left, the ten users with the fewest",
            "Below 0 a user is held.",
            (
                Query(
                    f"bottomk(10, min by (cluster, user) ({_of('producer_ids_tokens')}))",
                    "{{cluster}} {{user}}",
                    may_be_empty=True,
                ),
            ),
            least=None,
            if_empty="no user under a quota has opened any",
        ),
        Shown(
            "Held for",
            "How long each user who is over the quota is held if no new id comes.",
            (
                Query(
                    f"max by (cluster, user) ({_of('producer_ids_throttle_time_seconds')}) > 0",
                    "{{cluster}} {{user}}",
                    may_be_empty=True,
                ),
            ),
            unit="s",
            if_empty="nobody is held",
        ),
        Shown(
            "What is not counted",
            "Ids without an owner or room, and those that other sidecars no longer had.",
            tuple(
                Query(
                    f"sum by (cluster) (increase({_of(name)}[$__rate_interval]))",
                    f"{{{{cluster}}}} {legend}",
                )
                for name, legend in (
                    ("producer_ids_unknown_owner_total", "of unknown owners"),
                    ("producer_ids_dropped_total", "without room"),
                    ("peer_producer_ids_lost_total", "lost between sidecars"),
                )
            ),
        ),
        Shown(
            "Partitions that are not seen",
            "What is written to them counts for nobody.",
            (
                Query(
                    f"sum by (cluster) ({_of('producer_partitions_not_seen')})",
                    "{{cluster}} partitions",
                ),
                Query(
                    f"sum by (cluster) ({_of('producer_looks_failing')})",
                    "{{cluster}} sidecars that see none",
                ),
            ),
            decimals=0,
        ),
        Shown(
            "Request log not read yet",
            "Grows when a sidecar can't keep up with its broker's log.",
            (Query(_of("request_log_behind_bytes"), _INSTANCE),),
            unit="decbytes",
        ),
    ),
)

_PROCESSES: Final = ShownRow(
    "The sidecars themselves",
    (
        Shown(
            "Sidecars",
            "By version.",
            (
                Query(
                    f"count by (cluster, version) ({_of('build_info')})", "{{cluster}} {{version}}"
                ),
            ),
            kind=Kind.NUMBER,
            width=4,
        ),
        Shown(
            "CPU",
            "Seconds of a core in a second.",
            (
                Query(
                    'rate(process_cpu_seconds_total{cluster=~"$cluster"}[$__rate_interval]) '
                    f"and on (job, instance) {_of('build_info')}",
                    _INSTANCE,
                ),
            ),
            unit="percentunit",
            width=10,
        ),
        Shown(
            "Resident memory",
            "Grows with brokers and volumes, and with the users whose producer ids are counted.",
            (
                Query(
                    'process_resident_memory_bytes{cluster=~"$cluster"} '
                    f"and on (job, instance) {_of('build_info')}",
                    _INSTANCE,
                ),
            ),
            unit="bytes",
            width=10,
        ),
        Shown(
            "Open files",
            "One for each broker, and one for each who asks.",
            (
                Query(
                    'process_open_fds{cluster=~"$cluster"} '
                    f"and on (job, instance) {_of('build_info')}",
                    _INSTANCE,
                ),
            ),
            decimals=0,
            width=12,
        ),
        Shown(
            "Volume history",
            "What it takes on disk, and observations that could not be written.",
            (
                Query(_of("history_bytes"), f"{_INSTANCE} bytes"),
                Query(_of("history_lost_total"), f"{_INSTANCE} lost"),
            ),
            width=12,
        ),
    ),
)

ROWS: Final = (_FACTOR, _VOLUMES, _BROKERS, _CALLBACKS, _IDS, _PROCESSES)
"""All rows, from the top."""
