"""What the runbooks say against a client that reconnects, typed at a real broker."""

import asyncio
import os
import re
import subprocess
from pathlib import Path

from tests.docs.markdown import ROOT
from tests.integration.conftest import SecureKafka
from tests.integration.test_relief import type_tools

PAGE = ROOT / "docs/runbooks/KafkaThrottledButFilling.md"


async def test_what_stops_a_client_can_be_typed(secure_kafka: SecureKafka, tmp_path: Path) -> None:
    """Each line is taken by the broker, and the one after it takes it back."""
    cluster = secure_kafka.cluster
    _, section = PAGE.read_text(encoding="utf-8").split("### Stop a client that reconnects\n")
    lines = re.findall(r"^ *(kafka-\S+\.sh .*)$", section, re.MULTILINE)
    assert 6 == len(lines)
    environ = {**os.environ, "PATH": await type_tools(cluster, tmp_path)}
    for line in lines:
        done = await asyncio.to_thread(
            subprocess.run,
            ["/bin/sh", "-c", line.replace("b1:9092", cluster.bootstrap)],
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert 0 == done.returncode, (line, done.stdout, done.stderr)
