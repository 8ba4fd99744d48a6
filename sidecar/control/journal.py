"""The log lines of each publication: changes of the decision, and failures that begin or end.

- A WARNING for each change of an operator: who, from which address, what and why.
- One line for each change of the decision, with its reason. It is a WARNING when the factor falls
  by itself, when it rises although a volume violates the limit, or when the fallback begins.
- A WARNING when the stop line is reached, and for each user who is throttled; a line when it ends.
- A line for each change of how much brokers may let through at factor 0.0. It is a WARNING when the
  share shrinks.
- A WARNING for a new kind of failure of a broker or of the poll; a line when it ends.
- A WARNING when another cluster takes the place of the known one.
- A publication that changes nothing is logged at DEBUG only.

What is done to producers depends on the readers: without one, lines tell what would be done.

Example: ``throttle factor 0.0 (observation): broker 2 /data/d1 has 38.2 MB of 64.0 MB available
(59.7%), at or below the limit of 40.0 MB``.
"""

import logging
from dataclasses import replace

from sidecar.control.board import Snapshot
from sidecar.throttle.decision import Decision, Source
from sidecar.throttle.memory import BrokerState
from sidecar.volumes import Failure, Membership

_log = logging.getLogger(__name__)

_UNKNOWN = BrokerState()

_NAMED = 3
"""The most volumes that a line names; the others are only counted."""


def log_publication(before: Snapshot | None, after: Snapshot) -> None:
    """A board's listener."""
    if before is not None and after.operation is not None:
        _log.warning(
            "operator: %s; the throttle factor was %s and is %s",
            after.operation,
            before.decision.factor,
            after.decision.factor,
        )
    _log_decision(before, after)
    _log_stop_line(before, after)
    _log_users(before, after)
    _log_leaks(before, after)
    if before is None or before.memory is after.memory:
        return
    _log_cluster(before.memory.membership, after.memory.membership)
    _log_failure("polling", before.memory.failure, after.memory.failure)
    old, new = before.memory.brokers, after.memory.brokers
    if old is new:
        return
    active = after.memory.active
    for broker_id in sorted({*old, *new}):
        failed_before = old.get(broker_id, _UNKNOWN).failure
        failed_now = new.get(broker_id, _UNKNOWN).failure
        if broker_id in active and broker_id in new:
            if failed_now is not failed_before:
                _log_failure(f"broker {broker_id}", failed_before, failed_now)
        elif failed_before is not None:
            # The broker is no longer polled, which does not mean that it works again.
            _log.info(
                "broker %d is no longer polled (fenced, removed or forgotten); its last failure was"
                " %s",
                broker_id,
                failed_before.kind.value,
            )


def _log_decision(before: Snapshot | None, after: Snapshot) -> None:
    decision = after.decision
    _log.log(
        _level(before, after),
        "throttle factor %s (%s): %s",
        decision.factor,
        decision.source.value,
        decision.reason,
        extra={
            "factor": decision.factor,
            "source": decision.source.value,
            "generation": after.generation,
        },
    )


def _log_stop_line(before: Snapshot | None, after: Snapshot) -> None:
    decision = after.decision
    was_reached = before is not None and before.decision.stop_line_reached
    if decision.stop_line_reached and not was_reached:
        volumes = ", ".join(
            f"broker {state.volume.broker_id} {state.volume.log_dir}"
            for state in decision.at_stop_line[:_NAMED]
        )
        others = len(decision.at_stop_line) - _NAMED
        more = f" and {others} more" if others > 0 else ""
        _log.warning("stop line reached by %s%s: %s", volumes, more, after.readers.stopped)
    elif was_reached and not decision.stop_line_reached:
        _log.info("stop line: no longer reached (%s)", decision.source.value)


def _log_users(before: Snapshot | None, after: Snapshot) -> None:
    decided = after.decision.decided
    old = {} if before is None else before.decision.decided.user_throttles
    new = decided.user_throttles
    enforced = after.decision.shadow is None and after.readers.readers
    is_ = "is" if enforced else "would be"
    for user in sorted(set(new) - set(old)):
        _log.warning("user %s %s throttled: %s", user, is_, new[user].reason, extra={"user": user})
    for user in sorted(set(old) - set(new)):
        _log.info("user %s %s no longer throttled", user, is_, extra={"user": user})


def _log_leaks(before: Snapshot | None, after: Snapshot) -> None:
    if after.readers.enforcement != "callback":
        return
    old = 1.0 if before is None else before.leaks.share
    new = after.leaks.share
    if new < 1.0 and new != old:
        _log.log(
            logging.WARNING if new < old else logging.INFO,
            "a volume will soon be full at factor 0.0: brokers may let only %.3g of their leak"
            " budget through, with longer pauses",
            new,
        )
    elif new > old:
        _log.info("brokers may let their whole leak budget through again")


def _level(before: Snapshot | None, after: Snapshot) -> int:
    new = after.decision
    if before is None:
        # A start without an observation is no fault. A throttle that continues after a restart is
        # worth a warning.
        throttles = new.source is Source.OBSERVATION and new.factor < 1.0
        return logging.WARNING if throttles else logging.INFO
    old = before.decision
    if before.generation == after.generation or _for_all(old) == _for_all(new):
        return logging.DEBUG
    fell = new.factor < old.factor and new.source is not Source.OVERRIDE
    fell_back = new.source is Source.FALLBACK and old.source is not Source.FALLBACK
    releases_full = new.factor > old.factor and bool(new.violations)
    return logging.WARNING if fell or fell_back or releases_full else logging.INFO


def _for_all(decision: Decision) -> Decision:
    """The decision without the throttles of single users and of budgets."""
    shadow = None if decision.shadow is None else _for_all(decision.shadow)
    return replace(
        decision,
        user_throttles={},
        shadow=shadow,
        budgets={},
        budgets_until=None,
    )


def _log_cluster(before: Membership | None, after: Membership | None) -> None:
    if before is None or after is None or before.cluster_id is None:
        return
    if after.cluster_id != before.cluster_id:
        _log.warning(
            "the sidecar remembers no broker of cluster %s, and from now on polls cluster %s",
            before.cluster_id,
            after.cluster_id,
        )


def _log_failure(subject: str, before: Failure | None, after: Failure | None) -> None:
    if after is None:
        if before is not None:
            _log.info("%s works again; its last failure was %s", subject, before.kind.value)
    elif before is None or before.kind != after.kind:
        _log.warning(
            "%s: %s: %s", subject, after.kind.value, after.message, extra={"kind": after.kind.value}
        )
