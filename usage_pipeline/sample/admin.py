"""Requests about topics and quotas, as a KRaft broker and controller log them.

Grace creates a topic of 12 partitions, grows it to 24 and deletes it, again and again. Her mutation
quota sometimes refuses a request (KIP-599). At half time, the admin raises alice's quota. Each
request is a line of the broker that received it, and a line of the controller with ``isForwarded``
true. Both are broker 0 here.

Example: with a request every 10 s, she creates 24 partitions and deletes 24 in 30 s, 1.6 a second.
Her quota is 0.5, so she is refused after the first topic.

Source: lines of a Kafka 4.3.1 broker and controller.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import numpy as np

from sidecar.quotas.rate import QuotaWindow
from sidecar.quotas.token_bucket import TokenBucket
from usage_pipeline.sample.limits import MUTATIONS, Limit
from usage_pipeline.sample.shapes import topic_id

USER: Final = "grace"
_CLIENT: Final = "terraform"
_ADMIN: Final = ("admin", "adminclient-9")
_REFUSED: Final = 89
_CREATE, _GROW, _DELETE, _ALTER = 19, 37, 20, 49
_NAMES: Final = {
    _CREATE: ("CREATE_TOPICS", 7),
    _GROW: ("CREATE_PARTITIONS", 3),
    _DELETE: ("DELETE_TOPICS", 6),
    _ALTER: ("ALTER_CLIENT_QUOTAS", 1),
}
_LEAST_S: Final = 10


@dataclass(frozen=True, slots=True)
class AdminLine:
    """A line of broker 0, and the time of its writing in milliseconds since 1970."""

    log_ms: int
    text: str


@dataclass(slots=True)
class Admins:
    """The requests of Grace and of the admin."""

    raise_ms: int
    raised: Limit
    _partitions: int = 0
    _topic: int = 0
    _next_ms: int = 0
    _bucket: TokenBucket = field(default_factory=lambda: TokenBucket(MUTATIONS, QuotaWindow(), 0))
    _is_raised: bool = False

    def lines(self, begin_s: int, end_s: int, rng: np.random.Generator) -> Iterator[AdminLine]:
        """Yield the lines from one second until before another."""
        now_ms = max(self._next_ms, begin_s * 1000)
        while now_ms < end_s * 1000:
            wait_ms = 0
            for line, throttle_ms in self._mutate(now_ms):
                wait_ms = max(wait_ms, throttle_ms)
                yield line
            pause_ms = int(rng.integers(_LEAST_S * 1000, 8 * _LEAST_S * 1000))
            now_ms += max(pause_ms, wait_ms)
        self._next_ms = now_ms
        if not self._is_raised and begin_s * 1000 <= self.raise_ms < end_s * 1000:
            self._is_raised = True
            yield from self._alter()

    def _mutate(self, now_ms: int) -> Iterator[tuple[AdminLine, int]]:
        """Make Grace's next request; the three kinds take turns."""
        name = f"etl-{self._topic:05d}"
        key, count = {0: (_CREATE, 12), 12: (_GROW, 12)}.get(self._partitions, (_DELETE, 24))
        remote_ms = 6.0
        admission = self._bucket.admit(count, now_ms, strict=True)
        throttle_ms = max(0, admission.throttle_ms - round(remote_ms))
        request, answer = _about_topic(key, name, is_refused=not admission.accepted)
        if admission.accepted:
            self._partitions = 0 if key == _DELETE else self._partitions + 12
            self._topic += key == _DELETE
        charged_ms = now_ms + round(remote_ms)
        for forwarded in (True, False):
            answer["throttleTimeMs"] = throttle_ms
            yield (
                _line(
                    key,
                    charged_ms,
                    request,
                    answer,
                    sender=(USER, _CLIENT),
                    remote_ms=remote_ms,
                    is_forwarded=forwarded,
                ),
                throttle_ms,
            )

    def _alter(self) -> Iterator[AdminLine]:
        entity = [{"entityType": "user", "entityName": self.raised.user}]
        ops = [{"key": self.raised.key.value, "value": self.raised.value, "remove": False}]
        request: dict[str, object] = {
            "entries": [{"entity": entity, "ops": ops}],
            "validateOnly": False,
        }
        answer: dict[str, object] = {
            "throttleTimeMs": 0,
            "entries": [{"errorCode": 0, "errorMessage": None, "entity": entity}],
        }
        for forwarded in (True, False):
            yield _line(
                _ALTER,
                self.raise_ms,
                request,
                answer,
                sender=_ADMIN,
                remote_ms=5.0,
                is_forwarded=forwarded,
            )


def _about_topic(
    key: int, name: str, *, is_refused: bool
) -> tuple[dict[str, object], dict[str, object]]:
    error = _REFUSED if is_refused else 0
    created_topic = {
        "name": name,
        "errorCode": error,
        "errorMessage": "The throttling quota has been exceeded." if error else None,
    }
    identity = topic_id(name)
    if key == _CREATE:
        topic = {"name": name, "numPartitions": 12, "replicationFactor": 3}
        request = {
            "topics": [{**topic, "assignments": [], "configs": []}],
            "timeoutMs": 30000,
            "validateOnly": False,
        }
        partitions = -1 if error else 12
        more = {"topicId": identity, "numPartitions": partitions, "replicationFactor": 3}
        return request, {"topics": [{**created_topic, **more, "configs": []}]}
    if key == _GROW:
        grown = {"name": name, "count": 24, "assignments": None}
        return (
            {"topics": [grown], "timeoutMs": 30000, "validateOnly": False},
            {"results": [created_topic]},
        )
    gone = {"name": name, "topicId": "AAAAAAAAAAAAAAAAAAAAAA"}
    return {"topics": [gone], "timeoutMs": 30000}, {
        "responses": [{**created_topic, "topicId": identity}]
    }


def _line(
    key: int,
    charged_ms: int,
    request: dict[str, object],
    answer: dict[str, object],
    *,
    sender: tuple[str, str],
    remote_ms: float,
    is_forwarded: bool,
) -> AdminLine:
    user, client_id = sender
    name, version = _NAMES[key]
    log_ms = charged_ms + 1
    body = {
        "isForwarded": is_forwarded,
        "requestHeader": {
            "requestApiKey": key,
            "requestApiVersion": version,
            "correlationId": 41,
            "clientId": client_id,
            "requestApiKeyName": name,
        },
        "request": request,
        "response": answer,
        "connection": "10.0.0.9:9094-10.0.1.1:52011-0-2",
        "totalTimeMs": round(0.7 + remote_ms, 3),
        "requestQueueTimeMs": 0.07,
        "localTimeMs": 0.5,
        "remoteTimeMs": remote_ms,
        "throttleTimeMs": 0 if is_forwarded else answer["throttleTimeMs"],
        "responseQueueTimeMs": 0.03,
        "sendTimeMs": 0.1,
        "securityProtocol": "SSL" if is_forwarded else "SASL_SSL",
        "principal": f"User:{user}",
        "listener": "CONTROLLER" if is_forwarded else "CLIENT",
        "clientInformation": {"softwareName": "apache-kafka-java", "softwareVersion": "4.3.1"},
    }
    when = datetime.fromtimestamp(log_ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    stamp = f"[{when},{log_ms % 1000:03d}]"
    return AdminLine(log_ms, f"{stamp} DEBUG Completed request:{text} (kafka.request.logger)\n")
