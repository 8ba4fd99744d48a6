"""Brokers that hang, and a cluster that is down altogether: what holds, and for how long."""

import asyncio

from sidecar.demo.cluster import Cluster
from tests.integration.conftest import Start
from tests.integration.daemon import FULL_BYTES, seconds, settings
from tests.integration.waiting import seen


async def test_a_violation_is_seen_while_another_broker_hangs(kafka: Cluster, start: Start) -> None:
    """A paused broker counts as last read; the others' news come by the poll's deadline of 2 s."""
    environ = settings(
        kafka.bootstrap, STORAGE_CHECK_INTERVAL="PT1S", STORAGE_CHECK_INTERVAL_MINIMUM="PT1S"
    )
    daemon = await start(kafka, environ)
    before = await daemon.decides(1.0)
    everything = set(await daemon.volumes())
    # Just after a poll, so that the next one, a second later, meets both.
    await seen("a poll", daemon.factor, lambda d: d["computed_at"] > before["computed_at"])
    now = asyncio.get_running_loop().time
    began = now()
    await kafka.pause_broker(1)
    await kafka.occupy(2, 0, FULL_BYTES)
    await daemon.decides(0.0)
    took_s = now() - began
    hung = (await daemon.brokers())[1]
    assert ("active", "timeout") == (hung["state"], hung["last_failure"]["kind"])
    assert everything == set(await daemon.volumes())
    # A second until the poll, 2 s for its deadline. Measured: 3.0 s.
    assert took_s < 3.5, took_s
    effects = [(change["factor"], change["source"]) for change in await daemon.decisions()]
    assert [(1.0, "observation"), (0.0, "observation")] == effects[-2:]
    await kafka.resume_broker(1)
    await daemon.shows_broker(1, "answers", lambda broker: broker["last_failure"] is None)


async def test_a_broker_that_hangs_holds_up_one_poll_only(kafka: Cluster, start: Start) -> None:
    """Once it has missed a deadline, a violation elsewhere is seen as soon as without it."""
    daemon = await start(kafka, settings(kafka.bootstrap))
    await daemon.decides(1.0)
    await kafka.pause_broker(1)
    await daemon.shows_broker(1, "hangs", lambda broker: broker["last_failure"] is not None)
    now = asyncio.get_running_loop().time
    began = now()
    await kafka.occupy(2, 0, FULL_BYTES)
    await daemon.decides(0.0)
    took_s = now() - began
    assert "active" == (await daemon.brokers())[1]["state"], "it is fenced 4 s after its pause"
    # Polls come every 0.2 s. Measured: 0.2 s.
    assert took_s < 1.0, took_s


async def test_no_broker_at_all_is_the_fallback_after_the_validity(
    kafka: Cluster, start: Start
) -> None:
    """All killed: 1.0 for the validity, then the fallback, counted once; then observed again."""
    validity_s = 2.5
    environ = settings(
        kafka.bootstrap,
        STORAGE_CHECK_INTERVAL="PT1S",
        STORAGE_CHECK_INTERVAL_MINIMUM="PT1S",
        THROTTLE_FACTOR_VALIDITY_DURATION=f"PT{validity_s}S",
        THROTTLE_FACTOR_FALLBACK="0.0",
    )
    daemon = await start(kafka, environ)
    await daemon.decides(1.0)
    await asyncio.gather(*(kafka.kill_broker(broker_id) for broker_id in kafka.brokers))
    await seen("a failed poll", lambda: daemon.get("/v1/brokers"), lambda d: d["failed_polls"] > 0)
    held = await daemon.factor()
    assert (1.0, "observation") == (held["factor"], held["source"])
    fallen = await daemon.decides(0.0, "fallback")
    # When it falls is known before: the next poll would notice it half a second later.
    assert 0.0 <= seconds(held["valid_until"], fallen["since"]) < 0.1
    assert validity_s == seconds(held["computed_at"], held["valid_until"])
    failed = (await daemon.get("/v1/brokers"))["failed_polls"]
    await seen(
        "more failed polls", lambda: daemon.get("/v1/brokers"), lambda d: d["failed_polls"] > failed
    )
    metrics = await daemon.metrics()
    assert (0.0, 1.0) == (metrics.value("factor"), metrics.value("fallback_applied_total"))
    assert 1.0 == metrics.value("source", source="fallback")
    await kafka.heal()
    await daemon.decides(1.0)
    metrics = await daemon.metrics()
    assert (1.0, 1.0) == (metrics.value("factor"), metrics.value("fallback_applied_total"))
    effects = [(change["factor"], change["source"]) for change in await daemon.decisions()]
    assert [(1.0, "observation"), (0.0, "fallback"), (1.0, "observation")] == effects[-3:]
