"""Describes the effects of setting or ending an override, before the operator confirms it.

Example: "For 60 min, until 03:12:00 UTC: nobody is throttled.", "It ignores that /kafka/data
of broker 2 has 8.1 GB left, ...", "It applies at once on broker 1, which reads this sidecar."
"""

import shlex
from dataclasses import replace

from sidecar.api.changes import OverrideRequest
from sidecar.status.headline import effect, sentence
from sidecar.status.inputs import StatusInputs
from sidecar.status.moments import Now, span
from sidecar.status.view import hidden
from sidecar.throttle.readers import ReaderCounts


def setting_effects(inputs: StatusInputs, requested: OverrideRequest, now: Now) -> list[str]:
    """Describe the effects of setting an override."""
    snapshot, counts = inputs.board.snapshot, inputs.board.readers.counts(now.now)
    ends = now.moment(now.now + requested.duration_s)
    sentences = [
        f"For {span(requested.duration_s)}, until {ends.clock}: {effect(requested.factor, counts)}."
    ]
    if requested.factor == 0.0:
        sentences.append(
            f"Every producer {'waits' if counts.enforces else 'would wait'}, however full the "
            "volumes are; excluded principals do not."
        )
    elif requested.factor < 1.0:
        sentences.append("For a client without a quota, that is a share of its previous rate.")
    if hides := hidden(snapshot, counts, requested.factor):
        sentences.append(f"It ignores that {hides}")
    if snapshot.decision.stop_line_reached and counts.authorizers:
        sentences.append("Brokers no longer refuse producers, although the stop line is reached.")
    if snapshot.decision.override is not None:
        before = snapshot.decision.override
        sentences.append(
            f"It replaces the current override: {effect(before.factor, counts)}, “{before.reason}”."
        )
    if snapshot.decision.users or snapshot.decision.budgets:
        sentences.append("The factors of single users and of storage budgets stay as they are.")
    sentences.append(_where(inputs, now.now))
    return sentences


def ending_effects(inputs: StatusInputs, now: Now) -> list[str]:
    """Describe the effects of ending the override."""
    decision, counts = inputs.board.snapshot.decision, inputs.board.readers.counts(now.now)
    if decision.override is None:
        unread = "An override in the state file, which is not read yet, ends too."
        return ["There is no override now.", *([unread] if inputs.board.unread else [])]
    return [
        f"The current override ends: {effect(decision.override.factor, counts)}, "
        f"“{decision.override.reason}”.",
        _after(inputs, counts),
        _where(inputs, now.now),
    ]


def setting_command(requested: OverrideRequest, sidecars: str) -> str:
    """Return the command that sets an override on several sidecars, by their addresses."""
    return (
        f"throttle-sidecar override set {requested.factor:.15g} "
        f"--reason {shlex.quote(requested.reason)} --for {shlex.quote(requested.duration)} "
        f"{_to(sidecars)}"
    )


def ending_command(sidecars: str) -> str:
    """Return the command that ends the override on several sidecars."""
    return f"throttle-sidecar override clear {_to(sidecars)}"


def _to(sidecars: str) -> str:
    return f"--sidecars {shlex.quote(sidecars)} --token-file FILE"


def _after(inputs: StatusInputs, counts: ReaderCounts) -> str:
    without = replace(inputs.board.snapshot, decision=inputs.board.without_override())
    return f"This applies at once instead. {sentence(without, counts)}"


def _where(inputs: StatusInputs, now: float) -> str:
    ids = [str(reader.report.broker_id) for reader in inputs.board.readers.recent(now)]
    if not ids and inputs.board.readers.enforcement == "client-quotas":
        return "Client quotas follow in steps, each 6 s."
    if not ids:
        return (
            "No broker's quota callback has read this sidecar's factor in the last 10 minutes: "
            "as far as this sidecar knows, this changes nothing."
        )
    named = f"broker {ids[0]}" if len(ids) == 1 else f"brokers {', '.join(ids)}"
    return f"It applies at once on {named}, which read{'s' if len(ids) == 1 else ''} this sidecar."
