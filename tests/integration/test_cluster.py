"""The test cluster is real: brokers, volumes, and an end that leaves nothing."""

from sidecar.demo.cluster import Cluster


async def test_volumes_are_file_systems_of_the_size_asked_for(kafka: Cluster) -> None:
    """Each volume is a tmpfs of its own, as large as was asked for, and the broker lives."""
    for broker in kafka.brokers.values():
        for index, volume in enumerate(broker.volumes):
            total, _ = await kafka.usage(broker.id, index)
            assert volume.size_bytes == total
        assert kafka.is_running(broker.id)


async def test_a_killed_broker_is_fenced_and_comes_back(kafka: Cluster) -> None:
    """The others no longer see a killed broker, and see it again after its start."""
    await kafka.kill_broker(1)
    await kafka.wait_active({0, 2})
    await kafka.start_broker(1)
    await kafka.wait_active({0, 1, 2})
