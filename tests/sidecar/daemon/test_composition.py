"""Asking one broker with the credentials of the moment, the zone, and files that are missing."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from sidecar.api.connections import Connections
from sidecar.control.board import Board
from sidecar.control.capability import Task
from sidecar.control.tokens import Tokens
from sidecar.daemon import application, composition
from sidecar.daemon.composition import _ask_one_broker, _zone
from sidecar.daemon.daemon import serve
from sidecar.daemon.reload import Credentials
from sidecar.errors import SettingsError, SidecarError
from sidecar.kafka import KafkaVolumeSource
from sidecar.kafka.fed_brokers import fed_brokers
from sidecar.kafka.largest_topics import largest_topics, topics_by_log_dir
from sidecar.settings import HostPort, KafkaAdmin, load
from sidecar.status.inputs import ToolSettings
from sidecar.throttle.decision import Disabled, VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.rules import Rules
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.daemon.composed import ENVIRON
from tests.sidecar.kafka.servers import PATIENCE_S, admin, bootstrap, failed
from tests.sidecar.throttle.build import whole
from tests.support.fake_broker import FakeCluster

LIMITED = {
    "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_RATIO": "0.05",
    "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": "broker-0:9092",
}


async def test_credentials_that_can_not_be_read_are_a_failure() -> None:
    """They are read each time: a password file that is gone ends no task."""

    async def ask(_admin: KafkaAdmin, _broker_id: int, _deadline_s: float) -> str:
        raise SettingsError(("the file /p can't be read",))

    credentials = Credentials(Tokens(None, lambda: 0.0), KafkaAdmin())
    fetch = _ask_one_broker(credentials, Board(Disabled(), lambda: 0.0), ask, 1.0)
    expected = Failure(FailureKind.AUTHENTICATION, "the file /p can't be read")
    assert expected == await fetch(1)


SSL = {"SECURITY_PROTOCOL": "SSL", "SSL_TRUSTSTORE_TYPE": "PEM"}


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("STATE_FILE", {}),
        ("TOKEN_FILE", {}),
        ("KAFKA_ADMIN_SSL_TRUSTSTORE_LOCATION", SSL),
    ],
)
async def test_a_file_that_can_not_be_used_stops_the_start(
    tmp_path: Path, name: str, more: dict[str, str]
) -> None:
    """The refusal has its path."""
    path = tmp_path / "gone" / "file"
    environ = LIMITED | {f"SIDECAR_KAFKA_ADMIN_{key}": text for key, text in more.items()}
    environ |= {f"SIDECAR_{name}": str(path), "SIDECAR_HTTP_LISTEN": "127.0.0.1:0"}
    settings = load(environ=environ).settings
    with pytest.raises(SidecarError, match=str(path.parent)):
        await composition.compose(settings, lambda: settings, Connections(10))


@pytest.mark.parametrize("ask", [fed_brokers, largest_topics, topics_by_log_dir])
async def test_only_the_known_cluster_is_asked(
    ask: Callable[[KafkaAdmin, int, float], Awaitable[object]],
) -> None:
    """What lies on broker 1 of another cluster says nothing of the full broker 1."""
    board = Board(VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 1.0), lambda: 0.0)
    async with FakeCluster(cluster_id="other-cluster").add(2) as cluster:
        credentials = Credentials(Tokens(None, lambda: 0.0), admin(bootstrap(cluster)))
        fetch = _ask_one_broker(credentials, board, ask, PATIENCE_S)
        assert not isinstance(await fetch(1), Failure)
        board.observe(whole(0.0, cluster_id="fake-cluster"))
        failed(await fetch(1), FailureKind.OTHER_CLUSTER)


@pytest.mark.parametrize(
    ("environ", "zone"),
    [
        ({}, None),
        ({"SIDECAR_BROKER_ID": "2"}, "rack-b"),
        ({"SIDECAR_BROKER_ID": "3"}, None),
        ({"SIDECAR_BROKER_ID": "2", "SIDECAR_ZONE": "own"}, "own"),
        ({"SIDECAR_ZONE": "own"}, "own"),
    ],
)
async def test_the_zone_is_the_rack_of_the_broker_beside_it(
    environ: dict[str, str], zone: str | None
) -> None:
    """Unless it is set; without a broker's id no rack is its own."""
    settings = load(environ=environ | LIMITED).settings
    admin = KafkaAdmin(bootstrap_servers=(HostPort("broker-0", 9092),))
    source = KafkaVolumeSource(admin, clock=lambda: 0.0)
    source.racks = {1: "rack-a", 2: "rack-b"}
    assert zone == _zone(settings, source)()


async def test_the_page_has_the_operators_tools_and_a_refused_login(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both come from parts of the daemon, and the metric has the refusal, too."""
    inputs: dict[str, Any] = {}

    def build_app(*args: Any, **named: Any) -> FastAPI:
        inputs.update(named)
        return application.build_app(*args, **named)

    monkeypatch.setattr(composition, "build_app", build_app)
    environ = {"SIDECAR_PLATFORM": "strimzi", "SIDECAR_HTTP_LISTEN": "127.0.0.1:0"}
    settings = load(environ=environ | LIMITED).settings
    parts = await composition.compose(settings, lambda: settings, Connections(10))
    for server in parts.servers:
        server.stop()
    assert ToolSettings("strimzi", ("broker-0",)) == inputs["tools"]
    assert parts.source is not None
    used = "kafka_throttle_former_credentials_used"
    for refusal in ("", "b1: the login was refused"):
        parts.source._former.refusal = refusal
        assert refusal == inputs["refusal"]()
        value = inputs["registry"].get_sample_value(used, {"kind": "broker"})
        assert bool(refusal) == bool(value)


async def _returns() -> None:
    """Nothing was left to do."""


async def _awaits_what_is_cancelled() -> None:
    cancelled = asyncio.get_running_loop().create_future()
    cancelled.cancel()
    await cancelled


@pytest.mark.parametrize("part", [_returns, _awaits_what_is_cancelled])
async def test_a_vital_part_that_ends_by_itself_ends_the_daemon(part: Task) -> None:
    """With an error that names it, also if it was cancelled by nobody."""
    settings = load(environ=ENVIRON).settings
    parts = await composition.compose(settings, lambda: settings, Connections(10))
    parts = replace(parts, vital={**parts.vital, "poller": part})
    with pytest.raises(ExceptionGroup) as raised:
        await asyncio.wait_for(serve(parts, asyncio.Event()), PATIENCE_S)
    assert ["the task poller ended by itself"] == [str(each) for each in raised.value.exceptions]
