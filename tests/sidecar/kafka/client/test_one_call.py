"""Calls over new connections, while the disk with the certificates hangs."""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.kafka.broker_configs import describe_broker_configs
from sidecar.kafka.client_quotas import alter_client_quotas, describe_client_quotas
from sidecar.settings import KafkaAdmin
from sidecar.volumes import FailureKind
from tests.sidecar.kafka.servers import admin, failed, free_port

pytestmark = pytest.mark.usefixtures("nothing_left_open")


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[KafkaAdmin]:
    """Settings whose CA file hangs when it is opened, until the test ends."""
    pipe = tmp_path / "ca.pem"
    os.mkfifo(pipe)
    yield admin(free_port(), security_protocol="SSL", ssl_truststore_location=pipe)
    while any(each.name == "certificates" for each in threading.enumerate()):
        os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))


@pytest.mark.parametrize("call", ["any broker", "each broker", "a change"])
async def test_a_disk_that_hangs_is_a_failure_in_time(hanging: KafkaAdmin, call: str) -> None:
    """The loop goes on meanwhile, and the failure names the file."""
    calls: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
        "any broker": lambda: describe_client_quotas(hanging, 0.3),
        "each broker": lambda: describe_broker_configs(hanging, None, ["log.dirs"], 0.3),
        "a change": lambda: alter_client_quotas(hanging, [], 0.3),
    }
    turns = 0
    asking = asyncio.create_task(calls[call]())
    while not asking.done():
        turns += 1
        await asyncio.sleep(0.01)
    message = failed(await asking, FailureKind.TIMEOUT)
    assert message.startswith(f"{hanging.ssl_truststore_location}: not read within 0.3 s")
    assert turns > 1
