"""The facts of a whole installation of three brokers, for tests to break."""

from sidecar.cli.doctor.facts import Alerts, Broker, Facts, Sidecar, Volume
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.rules import Rules
from sidecar.throttle.schedule import Timing

GB = 1_000_000_000
MB = 1_000_000

CONFIGS: dict[str, str | None] = {
    "client.quota.callback.class": "throttlesidecar.SidecarQuotaCallback",
    "authorizer.class.name": "throttlesidecar.SidecarAuthorizer",
    "log.retention.hours": "168",
    "log.retention.check.interval.ms": "300000",
    "log.segment.delete.delay.ms": "60000",
    "log.segment.bytes": "1073741824",
}
LIMITS = {
    "limit": {"type": "min_available_bytes", "value": 40.0 * GB},
    "stop_line": {"type": "min_available_bytes", "value": 20.0 * GB},
    "release_margin": 0.0,
    "scope": "cluster",
}
FACTOR = {"generation": 1, "factor": 1.0, "source": "observation", "reason": "room", "shadow": None}


def reader(broker_id: int, **more: object) -> dict[str, object]:
    """The report of a broker's callback, with an authorizer."""
    report = {
        "broker_id": broker_id,
        "last_seen": "2026-11-21T00:52:40.017Z",
        "fault": None,
        "waiting": True,
    }
    report |= {"refused": {"total": 0}, "kafka_version": "4.3.1", "jar_version": "0.1.0"}
    return report | more


def sidecar(broker_id: int, **more: object) -> Sidecar:
    """The sidecar beside a broker, which reads it."""
    known: dict[str, object] = {"version": "0.1.0", "factor": FACTOR, "limits": LIMITS}
    known |= {"readers": (reader(broker_id),), "clock_ahead_s": 0.4, "token": "accepted"}
    return Sidecar(f"http://b{broker_id}:7070", **(known | more))  # type: ignore[arg-type]


def volume(broker_id: int, available: float = 500 * GB, rate: float | None = 50 * MB) -> Volume:
    """A volume of 1 TB that fills."""
    by = "the history of up to 7 days"
    sizes = (1000 * GB, int(available), 40 * GB, 20 * GB)
    return Volume(broker_id, "/data", *sizes, rate, by)


WHOLE = Facts(
    version="0.1.0",
    target="b0:9092",
    principal="throttle-sidecar",
    rules=Rules(MinAvailableBytes(40 * GB), 300.0, MinAvailableBytes(20 * GB)),
    timing=Timing(60.0, 1.0),
    state_file="/var/lib/throttle-sidecar/state",
    brokers=tuple(Broker(each, configs=CONFIGS, kafka="4.0 or newer") for each in range(3)),
    rights=frozenset({"Describe", "DescribeConfigs"}),
    volumes=tuple(map(volume, range(3))),
    partitions={(0, "/data"): 100},
    sidecars=tuple(map(sidecar, range(3))),
    alerts=Alerts(frozenset(), 3),
)
