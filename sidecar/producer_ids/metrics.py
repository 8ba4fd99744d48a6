"""The metrics of producer ids (KIP-936).

Users with a quota have metrics of their own, but at most the 1,000 users with the fewest tokens, so
that the number of series is bounded.

Example: bob's quota is 50 ids an hour, and he has opened 552. He has -2 tokens and a throttle time
of 144 s.

Source: KIP-936, section "New Broker Metrics".
"""

from collections.abc import Iterator
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from sidecar.peers.exchange import Peers
from sidecar.producer_ids.active_watch import ActiveIdWatch
from sidecar.producer_ids.service import ProducerIdWatch

MOST_USERS: Final = 1000

_PREFIX: Final = "kafka_throttle"


def id_metrics(
    watch: ProducerIdWatch, peers: Peers | None, active: ActiveIdWatch | None = None
) -> Iterator[Metric]:
    """Yield all metrics, even if no log or sidecar is read."""
    yield from _users(watch)
    yield from _counts(watch, peers)
    yield from _writing(active)


def _users(watch: ProducerIdWatch) -> Iterator[Metric]:
    limited = [(status.tokens, status) for status in watch.statuses() if status.tokens is not None]
    limited.sort(key=lambda each: each[0])
    rate = _of_users(
        "producer_ids_rate",
        "New producer ids of a user per window, averaged over all windows (KIP-936).",
    )
    tokens = _of_users(
        "producer_ids_tokens",
        "How many new producer ids a user may still open. Below 0 the user is throttled.",
    )
    throttle = _of_users(
        "producer_ids_throttle_time_seconds",
        "How long a user will be throttled if no new producer id comes.",
    )
    for left, status in limited[:MOST_USERS]:
        rate.add_metric([status.user], status.rate)
        tokens.add_metric([status.user], left)
        throttle.add_metric([status.user], status.throttle_ms / 1000)
    yield from (rate, tokens, throttle)


def _counts(watch: ProducerIdWatch, exchange: Peers | None) -> Iterator[Metric]:
    dropped = watch.dropped
    yield CounterMetricFamily(
        f"{_PREFIX}_producer_ids_dropped",
        "Producer ids that were not counted, for lack of room or by the name of their user. They"
        " throttle no user.",
        dropped.of_known_users + dropped.of_unknown_users,
    )
    yield GaugeMetricFamily(
        f"{_PREFIX}_producer_ids_filter_bytes",
        "Memory for known producer ids.",
        watch.filter_bytes,
    )
    peers = [] if exchange is None else exchange.peers
    yield GaugeMetricFamily(
        f"{_PREFIX}_peers_failing",
        "Other sidecars that did not answer the last request for producer ids.",
        sum(peer.failure is not None for peer in peers),
    )
    yield CounterMetricFamily(
        f"{_PREFIX}_peer_producer_ids_lost",
        "Producer ids that other sidecars no longer had when this one requested them.",
        0 if exchange is None else exchange.lost,
    )


def _writing(active: ActiveIdWatch | None) -> Iterator[Metric]:
    last_scan = None if active is None else active.last_scan
    for name, text, value in (
        (
            "ids_active",
            "Producer ids that wrote between the last two scans.",
            active and active.active,
        ),
        (
            "partitions_read",
            "Partitions whose producers the last scan read.",
            last_scan and last_scan.partitions,
        ),
        (
            "partitions_not_read",
            "Partitions that the last scan did not read. Their producer ids do not count.",
            last_scan and last_scan.not_read,
        ),
        (
            "scans_failing",
            "1 while no broker can be asked for active producers; then no producer id counts.",
            active and int(active.failure is not None),
        ),
    ):
        yield GaugeMetricFamily(f"{_PREFIX}_producer_{name}", text, value or 0)
    yield CounterMetricFamily(
        f"{_PREFIX}_producer_ids_unknown_owner",
        "Producer ids that wrote and whose owner no sidecar reported. They throttle no user.",
        0 if active is None else active.ids.unknown,
    )


def _of_users(name: str, text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{_PREFIX}_{name}", text, labels=["user"])
