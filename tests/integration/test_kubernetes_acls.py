"""The ACLs of docs/kubernetes.md, given by Kafka's own tool, are those that the sidecar needs."""

import asyncio
import os
import re
import shlex
from pathlib import Path

import pytest

from sidecar.demo.admin import Admin
from sidecar.demo.cache import cache_folder
from sidecar.demo.jars import jars, java
from tests.integration.conftest import SecureKafka
from tests.integration.daemon import command
from tests.integration.test_secured import SCRAM, scram

DOCUMENT = (Path(__file__).parents[2] / "docs" / "kubernetes.md").read_text("utf-8")
LINES = re.findall(r"^kafka-acls\.sh (.*)$", DOCUMENT, re.MULTILINE)


# The jars of later versions lack the tool's; it is a client, and talks to those too.
@pytest.mark.parametrize("version", ["3.9.1"])
async def test_each_line_is_taken_and_the_first_is_enough(
    version: str, secure_kafka: SecureKafka
) -> None:
    """Without it the cluster can't be seen, with it alone it can; the tool takes the others too."""
    libraries = await jars(version, cache_folder(os.environ))
    environ = scram(secure_kafka, SASL_USERNAME="throttle-sidecar")
    async with Admin(secure_kafka.cluster.bootstrap) as admin:
        await admin.create_scram_user("throttle-sidecar", secure_kafka.password, SCRAM)
    assert 2 == (await command("check", environ=environ)).code

    async def give(line: str) -> None:
        words = shlex.split(line.replace("b:9092", secure_kafka.cluster.bootstrap))
        tool = await asyncio.create_subprocess_exec(
            *(java(os.environ), "-cp", f"{libraries}/*", "kafka.admin.AclCommand", *words),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await asyncio.wait_for(tool.communicate(), 60.0)
        operation = words[words.index("--operation") + 1]
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).upper()
        assert f"operation={name}" in said.decode()

    first, *others = LINES
    assert 3 == len(others)
    await give(first)
    assert 0 == (await command("check", environ=environ)).code
    await asyncio.gather(*map(give, others))
