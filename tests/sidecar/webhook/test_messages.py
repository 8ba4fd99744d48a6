"""The body of a message, from a former state and a decision."""

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from sidecar.throttle.decision import Decision, Source, VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Memory, Override
from sidecar.throttle.readers import ReaderCounts
from sidecar.throttle.rules import Rules
from sidecar.webhook.messages import Condition, Facts, State, message, pod_events, signature
from tests.support.scripted import LIMIT, reading, whole

URL = "https://runbooks.example/"
FREE = State()


def decided(available: int) -> Decision:
    """The decision when a volume has so much available, with a stop line at 10 bytes."""
    factors = VolumeLimit(Rules(LIMIT, 300.0, MinAvailableBytes(10)), 1.0)
    return factors.decide(factors.fold(Memory(), whole(0.0, reading(0.0, 1, available))), 0.0)


FULL, STOPPED, ROOM = decided(50), decided(5), decided(900)
BLIND = Decision(1.0, Source.FALLBACK, "nothing was seen for 5 min")
BY_HAND = Override(0.5, "<maintenance> & more", 0.0, 60.0)
SET = Decision(0.5, Source.OVERRIDE, "an operator set 0.5: <b> & more", override=BY_HAND)


def facts(
    readers: int = 1, began: Mapping[Condition, float] | None = None, cluster: str | None = "c1"
) -> Facts:
    return Facts(cluster, ReaderCounts(readers, 0), URL, 1_700_000_000.0, began or {})


def alerts(before: State, decision: Decision, known: Facts | None = None) -> list[Any]:
    alerts: list[Any] = json.loads(message("alertmanager", before, decision, known or facts()))
    return alerts


def text(before: State, decision: Decision, known: Facts | None = None) -> str:
    slack: dict[str, str] = json.loads(message("slack", before, decision, known or facts()))
    return slack["text"]


def test_an_alert_begins_and_ends() -> None:
    """It lasts five minutes from now, with the name and runbook of its rule; its end is now."""
    began = facts(began={Condition.THROTTLED: 1_699_999_990.5})
    alert = {
        "labels": {
            "alertname": "KafkaProducersThrottled",
            "severity": "critical",
            "kafka_cluster": "c1",
        },
        "annotations": {
            "summary": "producers are throttled: the factor is 0",
            "description": FULL.reason,
            "runbook_url": f"{URL}KafkaProducersThrottled",
        },
        "startsAt": "2023-11-14T22:13:10.500+00:00",
        "endsAt": "2023-11-14T22:18:20.000+00:00",
    }
    assert [alert] == alerts(FREE, FULL, began)
    (ended,) = alerts(State.of(FULL), ROOM, began)
    assert alert["labels"] == ended["labels"]
    assert alert["startsAt"] == ended["startsAt"]
    assert "2023-11-14T22:13:20.000+00:00" == ended["endsAt"]
    assert "the throttle factor is 1 again" == ended["annotations"]["summary"]


def test_an_end_claims_no_release() -> None:
    """Without a reader nobody was throttled, and client quotas still rise for minutes."""
    for known in (facts(readers=0), facts()):
        (ended,) = alerts(State.of(FULL), ROOM, known)
        assert "the throttle factor is 1 again" == ended["annotations"]["summary"]


def test_each_condition_is_an_alert_of_its_own() -> None:
    """What continues is sent again, and what ended is sent with its end."""
    names = [each["labels"]["alertname"] for each in alerts(State.of(SET), STOPPED)]
    assert [
        "KafkaProducersThrottled",
        "KafkaStopLineReached",
        "KafkaThrottleOverride",
    ] == names
    (blind,) = alerts(FREE, BLIND, facts(cluster=None))
    assert {"alertname": "KafkaThrottleFallback", "severity": "critical"} == blind["labels"]
    by_hand = {each["labels"]["alertname"]: each for each in alerts(FREE, SET)}
    override = by_hand["KafkaThrottleOverride"]
    assert "warning" == override["labels"]["severity"]
    assert override["annotations"]["runbook_url"].endswith("/KafkaThrottleOverrideLeftOn")


def test_slack_gets_what_changed() -> None:
    """One text has what began and ended, and the reason; only three characters are escaped."""
    assert (
        f"Kafka cluster c1: producers are throttled: the factor is 0; the stop line is reached: "
        f"producers are throttled, not refused\n{STOPPED.reason}"
    ) == text(FREE, STOPPED)
    assert f"Kafka cluster c1: the stop line is no longer reached\n{FULL.reason}" == text(
        State.of(STOPPED), FULL
    )
    assert text(FREE, SET).endswith("\nan operator set 0.5: &lt;b&gt; &amp; more")
    assert "an operator's override applies, 0.5" in text(
        State(State.of(SET).conditions, Override(0.1, "", 0.0, 60.0)), SET
    )
    assert text(FREE, BLIND, facts(cluster=None)).startswith("Kafka: the sidecar can't see")


def events(before: State, decision: Decision, **known: Any) -> list[Any]:
    pod = f"kafka/sidecar-0/{known.pop('uid', 'u1')}"
    return [json.loads(each) for each in pod_events(pod, before, decision, facts(**known))]


def test_kubernetes_gets_an_event_of_the_pod_for_each_change() -> None:
    """It is a warning when a condition begins, at that time, and normal when it ends."""
    throttled, stopped = events(FREE, STOPPED, began={Condition.THROTTLED: 1_699_999_990.5})
    about = {"kind": "Pod", "namespace": "kafka", "name": "sidecar-0", "uid": "u1"}
    assert about == {key: throttled["involvedObject"][key] for key in about}
    assert "kafka" == throttled["metadata"]["namespace"]
    assert "2023-11-14T22:13:10.500+00:00" == throttled["firstTimestamp"]
    assert f"producers are throttled: the factor is 0 ({STOPPED.reason})" == throttled["message"]
    assert ("Warning", "KafkaStopLineReached") == (stopped["type"], stopped["reason"])
    (ended,) = events(State.of(STOPPED), FULL)
    assert ("Normal", "KafkaStopLineReached") == (ended["type"], ended["reason"])
    long = Decision(1.0, Source.FALLBACK, "é" * 2000)
    assert 1023 <= len(events(FREE, long)[0]["message"].encode()) <= 1024


def test_an_event_that_is_sent_again_has_the_same_name() -> None:
    """Every other change has another name: the end, another pod, time or factor."""
    began = {Condition.OVERRIDE: 1.0}
    other = Decision(0.1, Source.OVERRIDE, "", override=Override(0.1, "", 0.0, 60.0))
    changes = [
        events(FREE, SET, began=began),
        events(State.of(SET), ROOM, began=began),
        events(FREE, SET, began=began, uid="u2"),
        events(FREE, SET, began={Condition.OVERRIDE: 2.0}),
        events(State.of(SET), other, began=began),
    ]
    names = [each["metadata"]["name"] for change in changes for each in change if _is_set(each)]
    assert len(changes) == len(set(names)) == len(names)
    later = events(FREE, SET, began=began, readers=0)
    assert names[0] in {each["metadata"]["name"] for each in later}


def _is_set(event: Any) -> bool:
    return bool(event["reason"] == Condition.OVERRIDE)


def test_without_a_reader_nobody_is_throttled() -> None:
    """The message does not claim it."""
    assert "producers would be throttled" in text(FREE, FULL, facts(readers=0))


def test_in_observe_mode_there_is_nothing_to_tell() -> None:
    """The decision that does not apply is no condition, nor is an override there."""
    shadow = Decision(1.0, Source.SHADOW, "observe mode", override=BY_HAND, shadow=FULL)
    assert FREE == State.of(shadow)


def test_a_signature_is_of_time_and_body() -> None:
    """As docs/alerts.md describes it, so that a receiver can refuse an old one."""
    expected = hmac.new(b"hush", b"1700000000.[]", hashlib.sha256).hexdigest()
    assert {
        "Throttle-Timestamp": "1700000000",
        "Throttle-Signature": f"v1={expected}",
    } == signature("hush", 1_700_000_000.9, b"[]")
