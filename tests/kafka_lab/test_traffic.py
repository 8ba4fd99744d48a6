"""The producer's queue is bounded and its end is soon, whether or not a broker answers."""

from itertools import pairwise

import pytest

from kafka_lab.ports import Ports
from kafka_lab.traffic import Traffic
from kafka_lab.waiting import deadline, until
from sidecar.errors import ClusterError


async def test_what_can_not_be_sent_does_not_pile_up() -> None:
    """Of 1 GB/s to nobody at most the queue's 4 MiB waits; stopping drops it, as no failure."""
    with Ports() as ports:
        address = f"127.0.0.1:{ports.reserve()}"
        async with Traffic(address, "t", bytes_per_s=1e9, record_bytes=100_000) as traffic:
            async with deadline(5.0, "the queue did not fill"):
                await until(lambda: len(traffic._producer) >= 40)
            assert len(traffic._producer) <= 4 * 1024 * 1024 // 100_000 + 1
        assert (0, 0, None) == (
            traffic.acknowledged_bytes,
            traffic.failed_records,
            traffic.last_failure,
        )
        await traffic.stop()


async def test_a_wrong_configuration_is_refused() -> None:
    """The error names it, before anything is sent."""
    traffic = Traffic("127.0.0.1:1", "t", bytes_per_s=1.0, config={"no.such.thing": 1})
    with pytest.raises(ClusterError, match=r"no\.such\.thing"):
        async with traffic:
            pass


@pytest.mark.slow
async def test_what_is_acknowledged_is_sampled_over_time() -> None:
    """It is some ten times a second, also while nothing can be sent, in the order of time."""
    with Ports() as ports:
        address = f"127.0.0.1:{ports.reserve()}"
        async with (
            Traffic(address, "t", bytes_per_s=1e9, record_bytes=100_000) as traffic,
            deadline(5.0, "there were no samples"),
        ):
            await until(lambda: len(traffic.samples) >= 5)
        times = [at for at, _ in traffic.samples]
    assert {0.0} == {acknowledged for _, acknowledged in traffic.samples}
    assert all(0.09 <= later - earlier < 1.0 for earlier, later in pairwise(times[:-1]))
