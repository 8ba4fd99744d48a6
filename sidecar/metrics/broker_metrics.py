"""The metrics of single brokers: whether they are seen, and whether their callbacks are up to date.

A broker has series while it is in the cluster, or while the sidecar remembers its volumes. The
series of its callback end 10 minutes after the callback's last request. Only the sidecar that a
callback reads knows the callback, so in Prometheus the largest value of all sidecars counts.

Example: broker 3 is killed. Its ``broker_active`` is 0 as soon as it is fenced, and its
``reader_up_to_date`` 0 until its last report is 10 minutes old; then it has none.
"""

from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from sidecar.control.board import Board


def broker_metrics(board: Board) -> Iterator[Metric]:
    """Yield every metric, even before a broker is known."""
    yield from _members(board)
    yield from _readers(board)


def _members(board: Board) -> Iterator[Metric]:
    memory = board.snapshot.memory
    active = memory.active
    members = _of_brokers(
        "broker_active",
        "1 while a broker is in the cluster and not fenced; 0 for a broker that is fenced, or"
        " has left and still counts.",
    )
    failing = _of_brokers(
        "broker_failing",
        "1 when an active broker did not answer when it was last asked, or answered without all"
        " sizes.",
    )
    for broker_id in sorted({*active, *memory.fenced, *memory.brokers}):
        members.add_metric([str(broker_id)], float(broker_id in active))
        state = memory.brokers.get(broker_id)
        if broker_id in active:
            is_failing = state is not None and state.failure is not None
            failing.add_metric([str(broker_id)], float(is_failing))
    yield from (members, failing)


def _readers(board: Board) -> Iterator[Metric]:
    up_to_date = _of_brokers(
        "reader_up_to_date",
        "1 while a broker's quota callback has the current decision and waits for the next;"
        " no series 10 minutes after its last request.",
    )
    faulty = _of_brokers(
        "reader_faulty",
        "1 while a broker's quota callback reports that it may not throttle some clients;"
        " /v1/readers has the reason.",
    )
    logged = _of_brokers(
        "reader_refusals_logged",
        "1 when a broker's log has an error for each request that its authorizer refuses, which"
        " the jar could not filter; no series without the authorizer.",
    )
    refused = CounterMetricFamily(
        "kafka_throttle_reader_refused_requests",
        "Produce requests that a broker's authorizer has refused since its start, by reason"
        " (new_connection, stop_line, release); no series without the authorizer.",
        labels=["broker", "reason"],
    )
    reserves = GaugeMetricFamily(
        "kafka_throttle_reader_reserve_bytes",
        "The bytes of a broker's reserve in a log dir; 0 after the broker started from it,"
        " until a new one is made; no series without a reserve.",
        labels=["broker", "log_dir"],
    )
    memory = board.snapshot.memory
    known = {*memory.active, *memory.fenced, *memory.brokers}
    for reader in board.readers.recent(board.now()):
        report = reader.report
        is_up_to_date = reader.is_up_to_date(board.snapshot.generation, board.now())
        up_to_date.add_metric([str(report.broker_id)], float(is_up_to_date))
        faulty.add_metric([str(report.broker_id)], float(report.fault is not None))
        # Anyone can claim to be a broker, so a log dir is a label only of brokers in the cluster.
        is_known = memory.membership is None or report.broker_id in known
        for each in report.reserves if is_known else ():
            reserves.add_metric([str(report.broker_id), each.log_dir], each.nbytes)
        if report.refusals is not None:
            logged.add_metric([str(report.broker_id)], float(report.refusals.logged))
            for reason in ("new_connection", "stop_line", "release"):
                count = getattr(report.refusals, reason)
                refused.add_metric([str(report.broker_id), reason], count)
    yield from (up_to_date, faulty, logged, refused, reserves)


def _of_brokers(name: str, text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"kafka_throttle_{name}", text, labels=["broker"])
