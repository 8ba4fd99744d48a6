"""The runbooks that fit a state, by name. The page links to them.

Example: the fallback applies and no broker reads the sidecar: ``KafkaThrottleCallbackSilent``, then
``KafkaThrottleFallback``.
"""

from collections.abc import Iterator
from typing import Final

from sidecar.control.board import Snapshot
from sidecar.throttle.decision import Source
from sidecar.throttle.memory import Memory, VolumeState
from sidecar.throttle.readers import ReaderCounts, Report
from sidecar.volumes import Failure, FailureKind

_OF_FAILURES: Final = {
    FailureKind.UNREADABLE_LOG_DIR: "KafkaThrottleLogDirUnreadable",
    FailureKind.SHARED_ADDRESS: "KafkaThrottleSharedAddress",
    FailureKind.OTHER_CLUSTER: "KafkaThrottleOtherCluster",
}


def of_decision(snapshot: Snapshot, counts: ReaderCounts) -> Iterator[str]:
    """Yield the runbooks of a decision, the first to read first."""
    decision = snapshot.decision.decided
    acts = decision.factor < 1.0 or bool(decision.users) or bool(decision.budgets)
    if acts and counts.enforcement == "callback" and not counts.readers:
        yield "KafkaThrottleCallbackSilent"
    if decision.source is Source.FALLBACK:
        yield "KafkaThrottleFallback"
    elif decision.source is Source.OVERRIDE:
        yield "KafkaThrottleOverrideLeftOn"
    elif decision.stop_line_reached:
        yield "KafkaStopLineReached"
    elif any(_is_unread(state, snapshot.memory) for state in decision.violations):
        yield "KafkaFullLogDirOffline"
    elif decision.factor < 1.0:
        yield "KafkaProducersThrottled"
    if decision.users:
        yield "KafkaProducerIdQuotaExceeded"


def of_failed_polls(memory: Memory) -> str:
    """Return the runbook for polls that fail; "" if they succeed."""
    if memory.failure is None:
        return ""
    failures = [memory.failure, *(each.failure for each in memory.brokers.values())]
    return next(filter(None, map(of_failure, failures)), "KafkaThrottleNoObservation")


def of_failure(failure: Failure | None) -> str:
    """Return the runbook for a failure of one kind; "" if its kind has none."""
    return "" if failure is None else _OF_FAILURES.get(failure.kind, "")


def of_reader(report: Report) -> Iterator[str]:
    """Yield the runbooks for what a broker's callback reports."""
    if report.fault:
        yield "KafkaThrottleCallbackFaulty"
    if report.released:
        yield "KafkaVolumeReserveReleased"
    if report.emergency:
        yield "KafkaThrottleEmergencyPauses"
    if report.refusals and report.refusals.logged:
        yield "KafkaThrottleRefusalsLogged"


def _is_unread(state: VolumeState, memory: Memory) -> bool:
    return not state.online and state.volume.broker_id in memory.active
