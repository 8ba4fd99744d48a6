"""What setting or ending an override would do, in sentences, before it is done.

Example: "For 60 min, until 03:12:00 UTC: nobody is throttled.", "It does not heed that /kafka/data
of broker 2 has 8.1 GB left, ...", "It is in force at once on broker 1, which asks this sidecar."
"""

import shlex

from sidecar.api.changes import OverrideRequest
from sidecar.api.status.headline import effect, short_of
from sidecar.api.status.moments import Now, span
from sidecar.api.status.view import Sight, hidden
from sidecar.throttle.decision import Decision


def setting_effects(sight: Sight, asked: OverrideRequest, now: Now) -> list[str]:
    """What an override would do."""
    snapshot = sight.board.snapshot
    ends = now.moment(now.now + asked.duration_s)
    told = [f"For {span(asked.duration_s)}, until {ends.clock}: {effect(asked.factor)}."]
    if asked.factor == 0.0:
        told.append("Every producer waits, whatever the volumes say; excluded principals do not.")
    elif asked.factor < 1.0:
        told.append("Where a client has no quota, that is of its rate before.")
    if hides := hidden(snapshot, asked.factor):
        told.append(f"It does not heed that {hides}")
    if snapshot.decision.override is not None:
        before = snapshot.decision.override
        told.append(f"It replaces what is set now: {effect(before.factor)}, “{before.reason}”.")
    if snapshot.decision.users:
        told.append("Users who are held for their producer ids stay held.")
    told.append(_where(sight, now.now))
    return told


def ending_effects(sight: Sight, now: Now) -> list[str]:
    """What ending the override would do."""
    decision = sight.board.snapshot.decision
    if decision.override is None:
        return ["Nothing is set by hand now."]
    return [
        f"What is set by hand ends: {effect(decision.override.factor)}, "
        f"“{decision.override.reason}”.",
        _after(sight, decision),
        _where(sight, now.now),
    ]


def setting_command(asked: OverrideRequest, sidecars: str) -> str:
    """The command that sets an override on several sidecars, by their addresses."""
    return (
        f"throttle-sidecar override set {asked.factor:g} --reason {shlex.quote(asked.reason)} "
        f"--for {shlex.quote(asked.duration)} {_to(sidecars)}"
    )


def ending_command(sidecars: str) -> str:
    """The command that ends the override on several sidecars."""
    return f"throttle-sidecar override clear {_to(sidecars)}"


def _to(sidecars: str) -> str:
    return f"--sidecars {shlex.quote(sidecars)} --token-file FILE"


def _after(sight: Sight, decision: Decision) -> str:
    if decision.violations and sight.limit is not None:
        return f"Producers are held at once: {short_of(sight.board.snapshot, sight.limit)}."
    if decision.computed_at is None:
        return "The volumes can't be seen: the fallback holds at once."
    return "Nobody is throttled then: no volume is at or below the limit."


def _where(sight: Sight, now: float) -> str:
    ids = [str(reader.report.broker_id) for reader in sight.board.readers.known(now)]
    if not ids:
        return (
            "No broker's quota callback has asked this sidecar in the last 10 minutes: as far as "
            "is known here, nobody will notice."
        )
    named = f"broker {ids[0]}" if len(ids) == 1 else f"brokers {', '.join(ids)}"
    return (
        f"It is in force at once on {named}, which ask{'s' if len(ids) == 1 else ''} this sidecar."
    )
