"""A real broker that throttles the sidecar itself by a request quota, until it is exempt."""

import asyncio
import re
from pathlib import Path

import pytest

from kafka_lab.cluster import Cluster
from tests.support.daemon import Daemon, Start, settings
from tests.support.kafka_tools import tools_path, type_in
from tests.support.waiting import seen

WARNING = (
    r"WARNING +\S+ throttles this sidecar by a request quota, by \S+ s after an answer; "
    r"exempt it: (.*)"
)


async def throttled_s(daemon: Daemon) -> float:
    return (await daemon.metrics()).value("own_requests_throttled_seconds_total") or 0.0


async def polls(daemon: Daemon) -> float:
    return (await daemon.metrics()).value("poll_duration_seconds_count") or 0.0


@pytest.mark.slow
async def test_the_log_has_the_command_that_exempts_it(
    node: Cluster, start: Start, tmp_path: Path
) -> None:
    """The default of all users is 0.01 %, as in a cluster with strict tenants."""
    path = await tools_path(node, tmp_path)
    configs = f"kafka-configs.sh --bootstrap-server {node.bootstrap} --alter --entity-type users"
    default = f"{configs} --entity-default"
    await type_in(f"{default} --add-config request_percentage=0.01", path, tmp_path)
    try:
        daemon = await start(node, settings(node.bootstrap))
        await daemon.logs(WARNING)
        assert await throttled_s(daemon) > 0.0
        command = re.search(WARNING, daemon.output)
        assert command is not None
        await type_in(command[1], path, tmp_path)
        await asyncio.sleep(1.0)  # the last throttled answer
        before_s, count = await throttled_s(daemon), await polls(daemon)
        await seen("ten polls", lambda: polls(daemon), lambda now: now >= count + 10)
        assert before_s == await throttled_s(daemon)
        assert 1 == len(re.findall(WARNING, daemon.output))
    finally:
        # The next test has this cluster.
        await type_in(f"{default} --delete-config request_percentage", path, tmp_path)
