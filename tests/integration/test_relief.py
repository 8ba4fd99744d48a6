"""What the status page says of a full volume of a real broker, and its commands, typed as shown."""

import re
import time
from html import unescape
from pathlib import Path

import pytest

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.traffic import Traffic
from tests.support.daemon import LIMIT_BYTES, Daemon, Start, settings
from tests.support.kafka_tools import tools_path, type_in
from tests.support.waiting import seen

TOPIC = "orders.v1"
BROKER = 1
OTHERS_BYTES = 12 << 20
"""What is there besides: half of what is above the limit."""

_COMMANDS = re.compile(r"<h3>(.*?)</h3>(.*?)(?=<h3>|</details>)", re.DOTALL)
_LINES = re.compile(r"<pre><code>(.*?)</code></pre>", re.DOTALL)


async def page(daemon: Daemon) -> str:
    """The status page."""
    return (await daemon.ask("/")).text


async def fill(kafka: Cluster) -> int:
    """Produce until a volume is at the limit, and a little more; between, in ms of the epoch."""
    # So that another broker has room for the topic.
    for index in range(len(kafka.brokers[BROKER].volumes)):
        await kafka.occupy(BROKER, index, OTHERS_BYTES)
    async with Traffic(kafka.bootstrap, TOPIC, bytes_per_s=30e6) as traffic:
        await seen(
            "a volume at the limit",
            lambda: available(kafka),
            lambda left: left <= LIMIT_BYTES - (1 << 20),
        )
        assert 0 == traffic.failed_records
    between_ms = round(time.time() * 1000)
    async with Traffic(kafka.bootstrap, TOPIC, bytes_per_s=1e6) as more:
        await seen("more records", lambda: more.acknowledged_bytes)
    return between_ms


async def available(kafka: Cluster) -> int:
    """What the fullest volume of the broker has left, bytes."""
    volumes = range(len(kafka.brokers[BROKER].volumes))
    return min([(await kafka.usage(BROKER, index))[1] for index in volumes])


@pytest.mark.parametrize(
    "what",
    [
        "Retain at most",
        pytest.param("Delete what is older", marks=pytest.mark.slow),
        pytest.param("Move it to brokers", marks=pytest.mark.slow),
    ],
)
async def test_the_pages_commands_relieve_the_volume(
    kafka: Cluster, start: Start, tmp_path: Path, what: str
) -> None:
    """The topic that fills it is the largest; each command that makes it smaller ends the throttle.

    For the deletion, "6 hours ago" becomes a moment between the test's own records.
    """
    path = await tools_path(kafka, tmp_path)
    daemon = await start(kafka, settings(kafka.bootstrap))
    await daemon.decides(1.0)
    async with Admin(kafka.bootstrap) as admin:
        await admin.create_topic(TOPIC, assignment=[[BROKER]])
        between_ms = await fill(kafka)
        await daemon.decides(0.0)
        html = await seen("its commands", lambda: page(daemon), lambda html: "<h3>" in html)
        assert f"of broker {BROKER}</h2>" in html
        first = re.search(r'<span class="path">([^<]*)</span> <b>([0-9.]+) MB</b>', html)
        assert first is not None
        assert (TOPIC, True) == (first[1], float(first[2]) > 8.0)
        (lines,) = [
            _LINES.findall(text)
            for heading, text in _COMMANDS.findall(html)
            if heading.startswith(what)
        ]
        *typed, last = [
            unescape(line).replace('"$(date -d "6 hours ago" +%s000)"', str(between_ms))
            for line in lines
        ]
        for line in typed:
            await type_in(line, path, tmp_path)
        if what.startswith("Move"):
            await daemon.decides(1.0)
        await type_in(last, path, tmp_path)
        await daemon.decides(1.0)
