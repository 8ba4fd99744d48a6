"""What the runbooks say against a client that reconnects, typed at a real broker."""

import re
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT
from tests.support.kafka_tools import tools_path, type_in
from tests.support.secured import SecureKafka

PAGE = ROOT / "docs/runbooks/KafkaThrottledButFilling.md"


@pytest.mark.slow
async def test_what_stops_a_client_can_be_typed(secure_kafka: SecureKafka, tmp_path: Path) -> None:
    """Each line is taken by the broker, and the one after it takes it back."""
    cluster = secure_kafka.cluster
    _, section = PAGE.read_text(encoding="utf-8").split("### Stop a client that reconnects\n")
    lines = re.findall(r"^ *(kafka-\S+\.sh .*)$", section, re.MULTILINE)
    assert 6 == len(lines)
    path = await tools_path(cluster, tmp_path)
    for line in lines:
        await type_in(line.replace("b1:9092", cluster.bootstrap), path, tmp_path)
