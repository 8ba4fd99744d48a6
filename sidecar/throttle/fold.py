"""Folding observations into the memory, before anything is computed from it.

The rules are those of ``sidecar.throttle.memory``.
"""

from dataclasses import replace

from sidecar.throttle.fill import LONGEST_WINDOW_S, WINDOW_S, first_fill, next_fill
from sidecar.throttle.memory import BrokerState, Memory, VolumeState
from sidecar.throttle.rules import Rules
from sidecar.throttle.validity import is_valid
from sidecar.volumes import Failure, Membership, Observation, Reading, Volume


def fold_in(memory: Memory, observation: Observation, rules: Rules) -> Memory:
    """The memory after an observation, before a factor is computed from it.

    Answers of brokers that are not active, and readings older than the remembered one, are ignored.
    """
    now = observation.observed_at
    if observation.membership is not None:
        memory = _with_membership(memory, observation.membership, now, rules.validity_s)
    if memory.membership is None:
        # Without a list of brokers nobody knows whose readings count.
        return memory
    brokers = dict(memory.brokers)
    # While producers are throttled, rates over long pauses are needed; see ``throttle.fill``.
    retention_s = LONGEST_WINDOW_S if _may_throttle(memory) else WINDOW_S
    for broker_id, answer in observation.answers.items():
        if broker_id not in memory.membership.active:
            # For example, an answer that was under way while the broker was fenced.
            continue
        state = brokers.get(broker_id, BrokerState())
        # A failure keeps the volumes: they count until the validity after their reading.
        if isinstance(answer, Failure):
            brokers[broker_id] = _failed(state, answer, now)
        # An answer that came too late for its poll may be older than what is known by now.
        elif state.read_at is None or answer.read_at >= state.read_at:
            brokers[broker_id] = _read(state, answer, rules, retention_s)
    return replace(memory, brokers=brokers)


def fail(memory: Memory, failure: Failure) -> Memory:
    """The memory after a poll that failed."""
    return replace(memory, failed_polls=memory.failed_polls + 1, failure=failure)


def forget(memory: Memory, broker_id: int, log_dir: str | None) -> Memory:
    """The memory without the last reading of a broker, or of one of its log dirs."""
    brokers = dict(memory.brokers)
    state = brokers.pop(broker_id, None)
    if state is not None and log_dir is not None:
        left = tuple(known for known in state.volumes if known.volume.log_dir != log_dir)
        brokers[broker_id] = replace(state, volumes=left)
    return replace(memory, brokers=brokers)


def _with_membership(
    memory: Memory, membership: Membership, now: float, validity_s: float
) -> Memory:
    before = memory.membership
    if before is not None and _differ(before.cluster_id, membership.cluster_id):
        # Another cluster: no volume of the old one may throttle it. The override is the operator's
        # word to this sidecar, and what capabilities keep is their own matter.
        memory = Memory(override=memory.override, retained=memory.retained)
    elif before is not None and membership.cluster_id is None:
        membership = replace(membership, cluster_id=before.cluster_id)
    brokers: dict[int, BrokerState] = {}
    for broker_id, state in memory.brokers.items():
        if broker_id in membership.active:
            brokers[broker_id] = state
        # Only violations outlive a broker's membership: a healthy dead broker blocks nothing.
        elif state.violating and _retains(state, broker_id, membership, now, validity_s):
            retained = state.retained or membership.fenced is not None
            brokers[broker_id] = BrokerState(state.read_at, state.violating, retained=retained)
    # When a fenced broker was last seen is only shown to people, so its volumes are left out.
    fenced = membership.fenced or {}
    fenced_seen = {
        broker_id: replace(state, volumes=(), offline=())
        for broker_id, state in {**memory.brokers, **memory.fenced_seen}.items()
        if broker_id in fenced
    }
    return replace(
        memory,
        membership=membership,
        membership_at=now,
        brokers=brokers,
        fenced_seen=fenced_seen,
    )


def _differ(old_id: str | None, new_id: str | None) -> bool:
    # A broker may not report an id, which is no sign of another cluster.
    return old_id is not None and new_id is not None and old_id != new_id


def _retains(
    state: BrokerState, broker_id: int, membership: Membership, now: float, validity_s: float
) -> bool:
    if membership.fenced is not None:
        return broker_id in membership.fenced
    if state.retained:
        # The list came from a broker that can't list fenced brokers; another one can. So a missing
        # broker may still be fenced.
        return True
    return state.read_at is not None and is_valid(state.read_at, validity_s, now)


def _failed(state: BrokerState, failure: Failure, now: float) -> BrokerState:
    # A failure of the same kind goes on; its text may differ from poll to poll.
    same = state.failure is not None and state.failure.kind == failure.kind
    return replace(state, failure=failure, failed_since=state.failed_since if same else now)


def _may_throttle(memory: Memory) -> bool:
    """Whether producers may be throttled; then fill rates over long pauses may be needed."""
    return memory.override is not None or (
        memory.computed is not None and memory.computed.factor < 1.0
    )


def _read(state: BrokerState, reading: Reading, rules: Rules, retention_s: float) -> BrokerState:
    before = {known.volume.log_dir: known for known in state.volumes}
    volumes = [
        _volume_state(volume, reading.read_at, before.get(volume.log_dir), rules, retention_s)
        for volume in reading.volumes
    ]
    # An offline log dir keeps its last sizes. A log dir that is not reported at all is gone.
    volumes += [
        replace(before[offline.log_dir], online=False)
        for offline in reading.offline
        if offline.log_dir in before
    ]
    volumes.sort(key=lambda known: known.volume.log_dir)
    return BrokerState(reading.read_at, tuple(volumes), reading.offline)


def _volume_state(
    volume: Volume, read_at: float, before: VolumeState | None, rules: Rules, retention_s: float
) -> VolumeState:
    fill = (
        next_fill(before.fill, read_at, volume.used_bytes, retention_s)
        if before is not None
        else first_fill(read_at, volume.used_bytes)
    )
    # A volume that violates needs the release margin too until it is released.
    did_violate = before is not None and before.violates
    verdict = rules.required_limit.judge(volume, did_violate=did_violate)
    stop_line_verdict = None if rules.stop_line is None else rules.stop_line.judge(volume)
    return VolumeState(volume, read_at, verdict, True, fill, stop_line_verdict)
