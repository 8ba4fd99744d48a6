"""Log dirs that go offline for real: never read as empty, nor as full."""

from sidecar.demo.cluster import Cluster
from tests.integration.conftest import Start
from tests.integration.daemon import FULL_BYTES, Daemon, Document, seconds, settings
from tests.integration.waiting import seen


async def shows_offline(daemon: Daemon, key: tuple[int, str]) -> Document:
    """Wait until a volume is shown as offline; its document."""
    volumes = await seen(f"{key} offline", daemon.volumes, lambda v: not v[key]["online"])
    return volumes[key]


async def test_a_healthy_log_dir_that_goes_offline_blocks_nothing(
    kafka: Cluster, start: Start
) -> None:
    """Shown as offline in API and metrics, with its last sizes; the decision does not change."""
    key = (1, kafka.brokers[1].volumes[1].path)
    daemon = await start(kafka, settings(kafka.bootstrap))
    before = await daemon.decides(1.0)
    await kafka.fail_log_dir(1, 1)
    volume = await shows_offline(daemon, key)
    assert "error 56" in volume["offline_reason"]
    assert kafka.brokers[1].volumes[1].size_bytes == volume["total_bytes"]
    assert volume["available_bytes"] > 0
    assert False is volume["limit_violated"]
    metrics = await daemon.metrics()
    assert {each: float(each != key) for each in await daemon.volumes()} == metrics.volumes(
        "online"
    )
    assert key not in metrics.volumes("fill_bytes_per_second")
    assert 6.0 == metrics.value("active_log_dirs")
    after = await seen(
        "a later poll", daemon.factor, lambda d: d["computed_at"] > volume["read_at"]
    )
    assert (1.0, "observation", before["generation"]) == (
        after["factor"],
        after["source"],
        after["generation"],
    )


async def test_a_full_log_dir_that_goes_offline_holds_the_throttle(
    kafka: Cluster, start: Start
) -> None:
    """Beyond the validity, while its broker answers; the log dir comes back free: 1.0."""
    key = (2, kafka.brokers[2].volumes[0].path)
    environ = settings(kafka.bootstrap, THROTTLE_FACTOR_VALIDITY_DURATION="PT3S")
    daemon = await start(kafka, environ)
    await daemon.decides(1.0)
    await kafka.occupy(2, 0, FULL_BYTES)
    full = await daemon.decides(0.0)
    await kafka.fail_log_dir(2, 0)
    volume = await shows_offline(daemon, key)
    # The space is free again, but the broker does not look at it.
    await kafka.occupy(2, 0, 0)
    held = await seen(
        "a poll later than the validity",
        daemon.factor,
        lambda d: seconds(volume["read_at"], d["computed_at"]) > 4.5,
    )
    assert (0.0, "observation", full["generation"]) == (
        held["factor"],
        held["source"],
        held["generation"],
    )
    assert "the log dir is offline" in held["reason"]
    assert 0.0 == (await daemon.metrics()).volumes("online")[key]
    await kafka.restore_log_dir(2, 0)
    await daemon.decides(1.0)
    assert (await daemon.volumes())[key]["online"]
