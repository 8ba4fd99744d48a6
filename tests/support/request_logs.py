"""The request logs of a real cluster's nodes, read while they are written."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from kafka_lab.broker_properties import CONTROLLER_ID
from kafka_lab.cluster import Cluster
from sidecar.kafka.broker_configs import describe_broker_configs
from sidecar.kafka.broker_loggers import set_levels
from sidecar.requestlog.client_usage import Usage
from sidecar.requestlog.line import Line, parse
from sidecar.requestlog.rejected import LOGGER
from sidecar.requestlog.tail import Tail
from sidecar.settings import KafkaAdmin
from sidecar.settings.convert import addresses
from sidecar.volumes import Failure
from tests.support.client_quotas import admin_of


class Logs:
    """The lines that brokers and the controller write meanwhile.

    Attributes:
        lines: of each node, in its log's order.
        usage: of all of them.
    """

    def __init__(self, cluster: Cluster) -> None:
        assert cluster.folder is not None
        files = {broker.id: Path(f"{broker.log}.requests") for broker in cluster.brokers.values()}
        files[CONTROLLER_ID] = cluster.folder / "controller.log.requests"
        self._tails = {node_id: Tail(file) for node_id, file in files.items()}
        self.lines: dict[int, list[Line]] = {node_id: [] for node_id in files}
        self.usage = Usage()
        # A file that is there already is followed from its end as it is now.
        assert not self._read()

    @property
    def all_lines(self) -> list[Line]:
        """The lines of all nodes, one node after the other."""
        return [line for lines in self.lines.values() for line in lines]

    def _read(self) -> int:
        count = 0
        for node_id, tail in self._tails.items():
            result = tail.read()
            count += len(result.lines)
            for text in result.lines:
                parsed = parse(text)
                self.usage.record(parsed)
                assert isinstance(parsed, Line), (parsed, text)
                self.lines[node_id].append(parsed)
        return count

    async def read_all(self) -> None:
        """Read until half a second brings nothing new; 3 s at most, since followers never rest."""
        quiet = 0
        for _ in range(30):
            quiet = 0 if self._read() else quiet + 1
            if quiet == 5:
                break
            await asyncio.sleep(0.1)

    def close(self) -> None:
        for tail in self._tails.values():
            tail.close()


@asynccontextmanager
async def logged(cluster: Cluster, controllers: Sequence[str] = ()) -> AsyncIterator[Logs]:
    """Brokers log meanwhile, and these controllers; afterwards all that they logged is read."""
    logs = Logs(cluster)
    await _set(cluster, controllers, "DEBUG")
    try:
        yield logs
    finally:
        await _set(cluster, controllers, "WARN")
        await logs.read_all()
        logs.close()


async def controllers_of(cluster: Cluster) -> list[str]:
    """The controllers, "id@host:port", as a broker's configuration has them."""
    answers = await describe_broker_configs(admin_of(cluster), [0], ["controller.quorum.voters"])
    assert not isinstance(answers, Failure)
    configs = answers[0]
    assert not isinstance(configs, Failure)
    voters = configs["controller.quorum.voters"]
    assert voters is not None
    return voters.split(",")


async def _set(cluster: Cluster, controllers: Sequence[str], level: str) -> None:
    done = await set_levels(admin_of(cluster), dict.fromkeys(cluster.brokers, level), LOGGER)
    _succeeded(done)
    for controller in controllers:
        node_id, _, address = controller.partition("@")
        admin = KafkaAdmin(bootstrap_servers=addresses(address))
        _succeeded(await set_levels(admin, {int(node_id): level}, LOGGER, nodes="controllers"))


def _succeeded(levels: Mapping[int, object] | Failure) -> None:
    assert not isinstance(levels, Failure), levels
    failed = [value for value in levels.values() if isinstance(value, Failure)]
    assert not failed
