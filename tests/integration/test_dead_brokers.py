"""A full broker that is killed: a real controller fences it, and the throttle lasts.

``tests/control/test_faults_of_brokers.py`` has what else becomes of brokers.
"""

from sidecar.demo.cluster import Cluster
from tests.support.daemon import FULL_BYTES, Start, seconds, settings
from tests.support.waiting import seen

FENCED_MS = 4000
VALIDITY_S = 3.0


async def test_a_fenced_full_broker_throttles_until_it_is_back(
    kafka: Cluster, start: Start
) -> None:
    """Beyond the validity, by polls that succeed; it comes back with free space: 1.0."""
    environ = settings(kafka.bootstrap, THROTTLE_FACTOR_VALIDITY_DURATION=f"PT{VALIDITY_S}S")
    daemon = await start(kafka, environ)
    await daemon.decides(1.0)
    await kafka.occupy(1, 0, FULL_BYTES)
    full = await daemon.decides(0.0)
    await kafka.kill_broker(1)
    fenced = await daemon.shows_state(1, "fenced")
    # The space is free again, but the broker that could say so is down.
    await kafka.occupy(1, 0, 0)
    last = await seen(
        "a poll later than the validity",
        daemon.factor,
        lambda now: seconds(fenced["last_seen"], now["computed_at"]) > VALIDITY_S,
    )
    assert (0.0, "observation", full["generation"]) == (
        last["factor"],
        last["source"],
        last["generation"],
    )
    await kafka.start_broker(1)
    await daemon.decides(1.0)
    assert "active" == (await daemon.brokers())[1]["state"]
