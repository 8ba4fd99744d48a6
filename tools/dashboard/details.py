"""The rows of the dashboard below the volumes: brokers, their callbacks, producer ids, sidecars."""

from typing import Final

from tools.dashboard.parts import (
    CLUSTER,
    INSTANCE,
    USER,
    by,
    number,
    of,
    of_brokers,
    of_cluster,
    of_process,
    rate,
    table,
)
from tools.dashboard.shown import Query, Shown, ShownRow

_ACTIVE: Final = of_cluster("max", "active_brokers", "active")

BROKERS: Final = ShownRow(
    "Brokers and polls",
    (
        Shown(
            "Brokers",
            "Active ones, and those of them that did not answer some sidecar when last asked.",
            (_ACTIVE, Query(of_brokers("broker_failing"), f"{CLUSTER} failing")),
            decimals=0,
        ),
        Shown(
            "Since the last successful poll",
            "After the validity the fallback applies.",
            (
                Query(f"time() - {of('last_success_timestamp_seconds')}", INSTANCE),
                of_cluster("min", "validity_duration_seconds", "validity"),
            ),
            unit="s",
        ),
        Shown(
            "How long polls take",
            "Half of them, and all but one in a hundred.",
            tuple(
                Query(
                    f"histogram_quantile({quantile}, "
                    f"sum by (cluster, le) ({rate('poll_duration_seconds_bucket')}))",
                    f"{CLUSTER} p{quantile * 100:g}",
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
                    f"sum by (cluster, kind) ({rate('poll_failures_total')}) > 0",
                    "{{cluster}} {{kind}}",
                ),
            ),
            unit="cps",
            width=12,
            if_empty="none",
        ),
        Shown(
            "Polls",
            "Of all sidecars; more often while a volume nears its limit.",
            (Query(f"sum by (cluster) ({rate('poll_duration_seconds_count')})", CLUSTER),),
            unit="cps",
            width=12,
        ),
    ),
)

CALLBACKS: Final = ShownRow(
    "Quota callbacks",
    (
        Shown(
            "Brokers that follow",
            "Their callbacks have the present decision and wait for the next.",
            (Query(of_brokers("reader_up_to_date"), f"{CLUSTER} follow"), _ACTIVE),
            decimals=0,
        ),
        table(
            "Brokers that do not follow",
            "Nothing throttles their producers.",
            Query(
                f"{by('cluster, broker', 'min', 'broker_active')} == 1 "
                f"unless {by('cluster, broker', 'max', 'reader_up_to_date')} == 1"
            ),
            "none",
            width=8,
        ),
        Shown(
            "Brokers with emergency pauses",
            "They pause for longer than usual, since a volume would be full all the same.",
            (of_cluster("sum", "readers_in_emergency"),),
            decimals=0,
        ),
        Shown(
            "Share of the leak budget",
            "What brokers may let through while producers are throttled; less than all where a "
            "volume would be full all the same.",
            (of_cluster("min", "leak_share"),),
            unit="percentunit",
            width=6,
            most=1.0,
        ),
        Shown(
            "Nothing is admitted",
            "1 while a volume is at or below the stop line.",
            (of_cluster("max", "stop_line_reached"),),
            width=6,
            decimals=0,
            most=1.0,
        ),
        Shown(
            "Requests refused",
            "By brokers with the authorizer, before anything was appended; /v1/readers says whose.",
            (
                Query(
                    f"sum by (cluster, broker, reason) ({rate('reader_refused_requests_total')})",
                    f"{CLUSTER} broker {{{{broker}}}} {{{{reason}}}}",
                ),
            ),
            unit="cps",
            width=6,
            if_empty="no broker has the authorizer",
        ),
        table(
            "Callbacks that may not throttle",
            "Their guards found that some clients may not be throttled; /v1/readers says why.",
            Query(f"{by('cluster, broker', 'max', 'reader_faulty')} == 1"),
            "none",
            width=6,
        ),
    ),
)

IDS: Final = ShownRow(
    "Producer ids and quotas",
    (
        Shown(
            "New producer ids in a window, the ten users with the most",
            "Of users under a quota.",
            (Query(f"topk(10, {by('cluster, user', 'max', 'producer_ids_rate')})", USER),),
            if_empty="no user under a quota has opened any",
        ),
        Shown(
            "Ids left, the ten users with the fewest",
            "Below 0 a user is throttled.",
            (Query(f"bottomk(10, {by('cluster, user', 'min', 'producer_ids_tokens')})", USER),),
            least=None,
            if_empty="no user under a quota has opened any",
        ),
        Shown(
            "Throttled for",
            "How long each user who is over the quota stays throttled if no new id comes.",
            (
                Query(
                    f"{by('cluster, user', 'max', 'producer_ids_throttle_time_seconds')} > 0", USER
                ),
            ),
            unit="s",
            if_empty="nobody is throttled",
        ),
        Shown(
            "What is not counted",
            "Ids without an owner or room, and those that other sidecars no longer had.",
            tuple(
                Query(
                    f"sum by (cluster) (increase({of(name)}[$__rate_interval]))",
                    f"{CLUSTER} {legend}",
                )
                for name, legend in (
                    ("producer_ids_unknown_owner_total", "of unknown owners"),
                    ("producer_ids_dropped_total", "without room"),
                    ("peer_producer_ids_lost_total", "lost between sidecars"),
                )
            ),
        ),
        Shown(
            "Partitions that are not read",
            "Producers that write to them count for nobody.",
            (
                of_cluster("sum", "producer_partitions_not_read", "partitions"),
                of_cluster("sum", "producer_scans_failing", "sidecars that read none"),
            ),
            decimals=0,
        ),
        Shown(
            "Request log not read yet",
            "Grows when a sidecar can't keep up with its broker's log.",
            (Query(of("request_log_behind_bytes"), INSTANCE),),
            unit="decbytes",
        ),
    ),
)

PROCESSES: Final = ShownRow(
    "The sidecars themselves",
    (
        number(
            "Sidecars",
            "By version.",
            Query(by("cluster, version", "count", "build_info"), "{{cluster}} {{version}}"),
        ),
        Shown(
            "CPU",
            "Seconds of a core in a second.",
            (of_process('rate(process_cpu_seconds_total{cluster=~"$cluster"}[$__rate_interval])'),),
            unit="percentunit",
            width=10,
        ),
        Shown(
            "Resident memory",
            "Grows with brokers and volumes, and with the users whose producer ids are counted.",
            (of_process('process_resident_memory_bytes{cluster=~"$cluster"}'),),
            unit="bytes",
            width=10,
        ),
        Shown(
            "Open files",
            "One for each broker, and one for each HTTP client.",
            (of_process('process_open_fds{cluster=~"$cluster"}'),),
            decimals=0,
            width=12,
        ),
        Shown(
            "Volume history",
            "What it takes on disk, and observations that could not be written.",
            (
                Query(of("history_bytes"), f"{INSTANCE} bytes"),
                Query(of("history_lost_total"), f"{INSTANCE} lost"),
            ),
            width=12,
        ),
    ),
)
