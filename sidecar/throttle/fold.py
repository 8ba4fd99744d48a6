"""Folds observations into the memory, by the rules in ``sidecar.throttle.memory``.

It computes no factor: ``sidecar.throttle.decision`` does that afterwards.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from sidecar.throttle.fill import LONGEST_WINDOW_S, WINDOW_S, first_fill, next_fill
from sidecar.throttle.memory import BrokerState, Memory, VolumeState
from sidecar.throttle.reason import brokers_named
from sidecar.throttle.rules import Rules
from sidecar.throttle.validity import is_valid
from sidecar.volumes import Failure, FailureKind, Membership, Observation, Reading, Volume


def fold_in(memory: Memory, observation: Observation, rules: Rules) -> Memory:
    """The memory after an observation, before a factor is computed from it.

    Answers of brokers that are not active, and readings older than the remembered one, are ignored.
    """
    now = observation.observed_at
    own = observation.own
    if own is None:
        own = {
            broker_id: address
            for broker_id, address in memory.own.items()
            if (state := memory.brokers.get(broker_id)) is not None
            and is_valid(state.read_at, rules.validity_s, now)
        }
    if observation.membership is not None:
        listed = _with_own(observation.membership, own)
        memory = _with_membership(memory, listed, now, rules)
    if memory.membership is None:
        # Without a list of brokers, it is unknown which readings count.
        return memory
    membership = _with_own(memory.membership, own)
    brokers = dict(memory.brokers)
    # While producers are throttled, pauses can take minutes, and a rate has to span several of
    # them. So more readings are kept then (``throttle.fill``).
    retention_s = LONGEST_WINDOW_S if _may_throttle(memory) else WINDOW_S
    for broker_id, answer in observation.answers.items():
        if broker_id not in membership.active:
            # For example, the answer was on its way while the broker was fenced.
            continue
        state = brokers.get(broker_id, BrokerState())
        # A failure keeps the volumes. They count until the validity after their reading is over, so
        # a broker that restarts within the validity changes nothing.
        if isinstance(answer, Failure):
            brokers[broker_id] = _failed(state, answer, now)
        # An answer that came too late for its poll may be older than the last reading. It is
        # ignored, because fill rates need readings in order.
        elif state.read_at is None or answer.read_at >= state.read_at:
            brokers[broker_id] = _read(state, answer, rules, retention_s)
    return replace(memory, membership=membership, brokers=brokers, own=own)


def other_cluster(memory: Memory, observation: Observation) -> Failure | None:
    """Why an observation of another cluster can't be used; None if it can.

    Addresses change hands, and a list of addresses may lead to two clusters. So another cluster
    says nothing about the one that is remembered. As Kafka's brokers do with the cluster id in
    ``meta.properties``, the sidecar leaves the change to an operator. It takes the other cluster
    when no broker that was read is remembered.
    """
    membership, known = observation.membership, memory.membership
    if membership is None or known is None or not _differ(known.cluster_id, membership.cluster_id):
        return None
    read = sorted(key for key, state in memory.brokers.items() if state.read_at is not None)
    if not read:
        return None
    return Failure(
        FailureKind.OTHER_CLUSTER,
        f"the brokers that answered belong to cluster {membership.cluster_id}, but the sidecar "
        f"knows the volumes of cluster {known.cluster_id}; do the bootstrap addresses lead to two "
        f"clusters? If cluster {known.cluster_id} is gone, forget {brokers_named(read)}, or "
        "restart the sidecar without its state file",
    )


def all_failed(memory: Memory, failure: Failure, now: float) -> Memory:
    """The memory after a poll in which no known broker answered."""
    brokers = {key: _failed(state, failure, now) for key, state in memory.brokers.items()}
    return fail(replace(memory, brokers=brokers), failure)


def fail(memory: Memory, failure: Failure) -> Memory:
    """The memory after a poll that failed."""
    return replace(memory, failed_polls=memory.failed_polls + 1, failure=failure)


def forget(memory: Memory, broker_id: int, log_dir: str | None) -> Memory:
    """The memory without the last reading of a broker, or of one of its log dirs."""
    brokers = dict(memory.brokers)
    state = brokers.pop(broker_id, None)
    if state is not None and log_dir is not None:
        left = tuple(kept for kept in state.volumes if kept.volume.log_dir != log_dir)
        brokers[broker_id] = replace(state, volumes=left)
    return replace(memory, brokers=brokers)


def take_over(past: Memory, memory: Memory, seen: Collection[int], rules: Rules) -> Memory:
    """The memory with what an earlier run remembered, which was read late.

    Newer news counts: a broker that has answered since the start is as it answered. Of another
    cluster nothing is taken but the override and what capabilities keep.

    Args:
        past: the memory of the earlier run, with the operator's changes since the start.
        memory: what is known since the start.
        seen: the brokers that have answered since.
        rules: the current rules.
    """
    kept = replace(
        memory,
        override=past.override,
        user_throttles={**past.user_throttles, **memory.user_throttles},
        retained={**memory.retained, **past.retained},
    )
    known, now = memory.membership, memory.membership_at
    if past.membership and known and _differ(past.membership.cluster_id, known.cluster_id):
        return kept
    brokers = dict(memory.brokers)
    for broker_id, state in past.brokers.items():
        if broker_id not in seen:
            since = brokers.get(broker_id, state)
            brokers[broker_id] = replace(
                state, failure=since.failure, failed_since=since.failed_since
            )
    kept = replace(
        kept,
        membership=past.membership,
        membership_at=past.membership_at,
        brokers=brokers,
        computed=memory.computed or past.computed,
        slope=memory.slope or past.slope,
        contents={**past.contents, **memory.contents},
    )
    return kept if known is None or now is None else _with_membership(kept, known, now, rules)


def _with_own(membership: Membership, own: Mapping[int, str]) -> Membership:
    """The membership by a list and the answer of the broker beside this sidecar.

    As with two lists (``sidecar.kafka.cluster_answers.settled``), that broker is active if it
    answers, although observers may have an old list without it.
    """
    if own.keys() <= membership.active.keys():
        return membership
    fenced = membership.fenced
    if fenced is not None:
        fenced = {key: address for key, address in fenced.items() if key not in own}
    return replace(membership, active={**membership.active, **own}, fenced=fenced)


def _with_membership(memory: Memory, membership: Membership, now: float, rules: Rules) -> Memory:
    before = memory.membership
    if before is not None and _differ(before.cluster_id, membership.cluster_id):
        # No volume of the old cluster may throttle the new one. The override stays, because the
        # operator set it on this sidecar. Capabilities check what they retain by themselves.
        memory = Memory(override=memory.override, retained=memory.retained)
    elif before is not None and membership.cluster_id is None:
        # A list without an id does not delete the known id, or a change of clusters could hide
        # behind such a list.
        membership = replace(membership, cluster_id=before.cluster_id)
    brokers: dict[int, BrokerState] = {}
    for broker_id, state in memory.brokers.items():
        if broker_id in membership.active:
            brokers[broker_id] = replace(state, missing_since=None)
            continue
        # Only volumes that throttle outlive a broker's membership. So the restart of a full broker
        # releases nobody, and a dead broker that was healthy throttles nobody.
        # Nobody reads how they fill now. By the rate of then, a throttle would end in the past.
        volumes = tuple(
            replace(volume, fill=first_fill(volume.read_at, volume.volume.used_bytes))
            for volume in state.volumes
            if is_low(volume, rules)
        )
        left = BrokerState(
            state.read_at,
            volumes,
            state.offline,
            # A broker in a list of fenced brokers is retained without an end. A broker that merely
            # left a list that can't name fenced ones expires with the validity.
            retained=state.retained or broker_id in (membership.fenced or {}),
            missing_since=_missing_since(state, broker_id, membership, now),
        )
        if volumes and now <= left.counts_until(membership, rules.validity_s):
            brokers[broker_id] = left
    # People see when a fenced broker last answered. No decision uses that, so volumes are left out.
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
    # A broker that reports no id is no sign of another cluster.
    return old_id is not None and new_id is not None and old_id != new_id


def is_low(state: VolumeState, rules: Rules) -> bool:
    """Whether a volume was at or below the limit or the soft limit when last read."""
    soft_limit = rules.soft_limit
    return state.violates or (soft_limit is not None and soft_limit.judge(state.volume).violates)


def _missing_since(
    state: BrokerState, broker_id: int, membership: Membership, now: float
) -> float | None:
    """Since when lists that name fenced brokers lack this one; None if the last one has it."""
    if membership.fenced is None:
        return state.missing_since
    if broker_id in membership.fenced:
        return None
    return now if state.missing_since is None else state.missing_since


def _failed(state: BrokerState, failure: Failure, now: float) -> BrokerState:
    # A failure of the same kind continues, although its text may differ from poll to poll.
    same = state.failure is not None and state.failure.kind == failure.kind
    return replace(state, failure=failure, failed_since=state.failed_since if same else now)


def _may_throttle(memory: Memory) -> bool:
    """Whether producers may be throttled; then fill rates over long pauses may be needed."""
    return memory.override is not None or (
        memory.computed is not None and memory.computed.factor < 1.0
    )


def _read(state: BrokerState, reading: Reading, rules: Rules, retention_s: float) -> BrokerState:
    before = {old.volume.log_dir: old for old in state.volumes}
    volumes = [
        _volume_state(volume, reading.read_at, before.get(volume.log_dir), rules, retention_s)
        for volume in reading.volumes
    ]
    # An offline log dir keeps its last sizes, so a full disk that fails does not release producers.
    # A log dir that its broker no longer reports was removed, and its volume is dropped.
    volumes += [
        replace(before[offline.log_dir], online=False)
        for offline in reading.offline
        if offline.log_dir in before
    ]
    volumes.sort(key=lambda new: new.volume.log_dir)
    new = BrokerState(reading.read_at, tuple(volumes), reading.offline, cordoned=reading.cordoned)
    unreadable = [each for each in reading.offline if each.is_written]
    if not unreadable:
        return new
    more = f" and {len(unreadable) - 1} more" if len(unreadable) > 1 else ""
    failure = Failure(
        FailureKind.UNREADABLE_LOG_DIR,
        f"broker {reading.broker_id}: the sizes of {unreadable[0].log_dir}{more} can't be read: "
        f"{unreadable[0].reason}; the broker's log says why",
    )
    failed = _failed(state, failure, reading.read_at)
    return replace(new, failure=failed.failure, failed_since=failed.failed_since)


def _volume_state(
    volume: Volume, read_at: float, before: VolumeState | None, rules: Rules, retention_s: float
) -> VolumeState:
    fill = (
        next_fill(before.fill, read_at, volume.used_bytes, retention_s)
        if before is not None
        else first_fill(read_at, volume.used_bytes)
    )
    # A volume that violates also needs the release margin until it is released. The stop line has a
    # margin of its own (``throttle.stop_line``), which depends on all volumes and so is not judged
    # here.
    did_violate = before is not None and before.violates
    verdict = rules.required_limit.judge(volume, did_violate=did_violate)
    stop_line_verdict = None if rules.stop_line is None else rules.stop_line.judge(volume)
    return VolumeState(volume, read_at, verdict, True, fill, stop_line_verdict)
