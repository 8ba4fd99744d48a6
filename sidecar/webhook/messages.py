"""Makes messages from a former decision and a new one; pure.

A decision has conditions: producers are throttled, the stop line is reached, the fallback applies,
an override applies. A message tells which of them began and which ended. The names of conditions
are those of the alert rules (deploy/prometheus), so that routes and silences fit both.

Alertmanager takes alerts that end by themselves, at ``endsAt``. So each condition is sent again
while it lasts, and ends soon after its sidecar. The labels are the same for all sidecars of a
cluster, so that Alertmanager shows one alert for them.

Kubernetes gets an event of the sidecar's pod for each condition that begins (Warning) or ends
(Normal), with the condition as its reason. Its name follows from the change: if an attempt's answer
is lost, the next one finds that the event exists. Events of core/v1 with ``source`` and timestamps
are those that every ``kubectl describe pod`` shows completely.

Example: a volume reaches the limit. Alertmanager gets the alert KafkaProducersThrottled until five
minutes later, and Slack "producers are throttled: the factor is 0.0".

Source: Alertmanager's API v2, ``POST /api/v2/alerts``; Slack's incoming webhooks; Kubernetes'
Event v1 core, and DescribeEvents of kubectl.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from sidecar.settings.values import WebhookFormat
from sidecar.throttle.decision import Decision, Source
from sidecar.throttle.memory import Override
from sidecar.throttle.readers import ReaderCounts

_COMPONENT: Final = "throttle-sidecar"
_LONGEST_NOTE: Final = 1024
"""Bytes of an event's message; the limit of Kubernetes' newer API, events.k8s.io/v1."""

LASTS_S: Final = 300.0
"""How long an alert lasts that is not sent again; Alertmanager's own default."""


class Condition(StrEnum):
    """A condition, by the name of its alert."""

    THROTTLED = "KafkaProducersThrottled"
    STOP_LINE = "KafkaStopLineReached"
    FALLBACK = "KafkaThrottleFallback"
    OVERRIDE = "KafkaThrottleOverride"


_RUNBOOKS: Final = {Condition.OVERRIDE: "KafkaThrottleOverrideLeftOn"}
"""The runbooks of conditions that have no rule of the same name."""

_ENDED: Final = {
    Condition.THROTTLED: "the throttle factor is 1 again",
    Condition.STOP_LINE: "the stop line is no longer reached",
    Condition.FALLBACK: "the fallback no longer applies",
    Condition.OVERRIDE: "the override has ended",
}


@dataclass(frozen=True, slots=True)
class State:
    """The part of a decision whose change is worth a message.

    Attributes:
        conditions: the conditions.
        override: the operator's factor, since another one is a change too.
    """

    conditions: frozenset[Condition] = frozenset()
    override: Override | None = None

    @classmethod
    def of(cls, decision: Decision) -> "State":
        """Return the state of a published decision. In observe mode nothing is throttled."""
        holds = {
            Condition.THROTTLED: decision.factor < 1.0,
            Condition.STOP_LINE: decision.stop_line_reached,
            Condition.FALLBACK: decision.source is Source.FALLBACK,
            Condition.OVERRIDE: decision.source is Source.OVERRIDE,
        }
        override = decision.override if holds[Condition.OVERRIDE] else None
        return cls(frozenset(each for each in holds if holds[each]), override)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a message needs besides the decision.

    Attributes:
        cluster_id: the id of the Kafka cluster; None while it is unknown.
        readers: the brokers that obey.
        runbooks_url: the folder of the runbooks.
        now: epoch seconds.
        began: condition -> when it began, epoch seconds.
    """

    cluster_id: str | None
    readers: ReaderCounts
    runbooks_url: str
    now: float
    began: Mapping[Condition, float]


def message(form: WebhookFormat, before: State, decision: Decision, facts: Facts) -> bytes:
    """Return the body of the request.

    Args:
        form: the receiver's format.
        before: the state that the receiver knows.
        decision: the decision that applies now.
        facts: the rest.
    """
    body = _slack if form == "slack" else _alertmanager
    return json.dumps(body(before, decision, facts)).encode()


def pod_events(pod: str, before: State, decision: Decision, facts: Facts) -> list[bytes]:
    """Return the body of a request for each condition that has changed.

    Args:
        pod: namespace/name/uid of the pod that the events are about.
        before: the state that Kubernetes knows.
        decision: the decision that applies now.
        facts: the rest.
    """
    namespace, name, uid = pod.split("/")
    after = State.of(decision)
    bodies = []
    for condition, sentence in _changes(before, decision, facts):
        holds = condition in after.conditions
        began = facts.began.get(condition, facts.now)
        at = _time(began if holds and condition not in before.conditions else facts.now)
        override = after.override if condition is Condition.OVERRIDE else None
        change = repr((uid, condition.value, holds, began, override))
        note = f"{sentence} ({decision.reason})".encode()[:_LONGEST_NOTE].decode(errors="ignore")
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{_COMPONENT}.{hashlib.sha256(change.encode()).hexdigest()[:16]}",
                "namespace": namespace,
            },
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": namespace,
                "name": name,
                "uid": uid,
            },
            "type": "Warning" if holds else "Normal",
            "reason": condition.value,
            "message": note,
            "source": {"component": _COMPONENT},
            "reportingComponent": _COMPONENT,
            "reportingInstance": name,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
        bodies.append(json.dumps(event).encode())
    return bodies


def signature(secret: str, now: float, body: bytes) -> Mapping[str, str]:
    """Return the headers by which a receiver checks the sender: HMAC-SHA256 of "time.body"."""
    at = str(int(now))
    signed = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return {"Throttle-Timestamp": at, "Throttle-Signature": f"v1={signed}"}


def _alertmanager(before: State, decision: Decision, facts: Facts) -> list[dict[str, object]]:
    holds = State.of(decision).conditions
    return [
        {
            "labels": _labels(condition, facts),
            "annotations": {
                "summary": _sentence(condition, decision, facts),
                "description": decision.reason,
                "runbook_url": f"{facts.runbooks_url}{_RUNBOOKS.get(condition, condition)}",
            },
            "startsAt": _time(facts.began.get(condition, facts.now)),
            "endsAt": _time(facts.now + (LASTS_S if condition in holds else 0.0)),
        }
        for condition in sorted(holds | before.conditions)
    ]


def _labels(condition: Condition, facts: Facts) -> dict[str, str]:
    severity = "warning" if condition is Condition.OVERRIDE else "critical"
    labels = {"alertname": condition.value, "severity": severity}
    return labels if facts.cluster_id is None else {**labels, "kafka_cluster": facts.cluster_id}


def _slack(before: State, decision: Decision, facts: Facts) -> dict[str, str]:
    sentences = [sentence for _, sentence in _changes(before, decision, facts)]
    cluster = f"Kafka cluster {facts.cluster_id}" if facts.cluster_id else "Kafka"
    text = f"{cluster}: {'; '.join(sentences)}\n{decision.reason}"
    # https://docs.slack.dev/messaging/formatting-message-text: these three alone are escaped.
    for character, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(character, escaped)
    return {"text": text}


def _changes(before: State, decision: Decision, facts: Facts) -> list[tuple[Condition, str]]:
    after = State.of(decision)
    is_other = after.override != before.override
    return [
        (condition, _sentence(condition, decision, facts))
        for condition in sorted(after.conditions | before.conditions)
        if (condition in after.conditions) != (condition in before.conditions)
        or (condition is Condition.OVERRIDE and is_other)
    ]


def _sentence(condition: Condition, decision: Decision, facts: Facts) -> str:
    if condition not in State.of(decision).conditions:
        return _ENDED[condition]
    are, factor = facts.readers.are, f"{decision.factor:g}"
    return {
        Condition.THROTTLED: f"producers {are} throttled: the factor is {factor}",
        Condition.STOP_LINE: f"the stop line is reached: {facts.readers.stopped}",
        Condition.FALLBACK: f"the sidecar can't see the cluster: its fallback applies, {factor}",
        Condition.OVERRIDE: f"an operator's override applies, {factor}",
    }[condition]


def _time(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).isoformat(timespec="milliseconds")
