"""``doctor`` on real brokers: one whole installation, and broken ones."""

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from operator import itemgetter
from pathlib import Path

import pytest

from kafka_lab.cluster import Cluster
from sidecar.history.folder import file_name
from sidecar.history.volume_line import to_line
from sidecar.volumes import Observation, Reading, Volume
from tests.integration.prometheus import prometheus
from tests.support.command import command
from tests.support.daemon import LIMIT_BYTES, Daemon, Start, settings
from tests.support.documents import Document
from tests.support.secured import SecureKafka, scram
from tests.support.waiting import seen

pytestmark = pytest.mark.slow

FENCED_MS = 60_000
"""So that a broker which is paused is still active, however slow the machine is."""

STOP = "SIDECAR_STORAGE_PER_VOLUME_STOP_MIN_AVAILABLE_BYTES"

Rows = list[tuple[str, str, str]]


async def doctor(
    environ: Mapping[str, str], code: int | None, *words: str
) -> tuple[Rows, Document]:
    """The (name, verdict, sentence and what to do) of each finding, and the whole document."""
    done = await command("doctor", "--json", "--watch", "0.5s", *words, environ=environ)
    assert code in {None, done.code}, done.said
    document = done.document()
    rows = [
        (each["name"], each["verdict"], f"{each['what']} -> {each['to_do']}")
        for each in document["findings"]
    ]
    return rows, document


def of(rows: Rows, name: str) -> list[tuple[str, str]]:
    """The verdicts and sentences of one name."""
    return [(verdict, text) for each, verdict, text in rows if each == name]


def failing(rows: Rows) -> set[str]:
    """The names with a verdict that fails."""
    return {name for name, verdict, _ in rows if verdict == "fail"}


@asynccontextmanager
async def beside(
    cluster: Cluster, start: Start, tmp_path: Path, *limits: int
) -> AsyncIterator[list[Daemon]]:
    """A sidecar beside each broker, which reads it, with a token and a limit."""
    token = tmp_path / "token"
    token.write_text("good")
    daemons = []
    for broker, limit in zip(cluster.brokers.values(), limits, strict=True):
        environ = settings(cluster.bootstrap, TOKEN_FILE=str(token))
        environ["SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES"] = str(limit)
        listen = broker.sidecar_url.removeprefix("http://")
        daemons.append(await start(cluster, environ | {"SIDECAR_HTTP_LISTEN": listen}))
    for daemon in daemons:
        await seen("a reader", partial(daemon.get, "/v1/readers"), itemgetter("readers"))
    yield daemons


def of_all(daemons: list[Daemon]) -> tuple[str, str]:
    """The option that names them."""
    return "--sidecars", ",".join(daemon.address for daemon in daemons)


async def test_a_whole_installation_and_what_breaks_it(
    obeying: Cluster, start: Start, tmp_path: Path
) -> None:
    """First all is OK that brokers and sidecars show. Then each fault has its finding alone."""
    async with beside(obeying, start, tmp_path, LIMIT_BYTES, LIMIT_BYTES) as daemons:
        files = {"TOKEN_FILE": str(tmp_path / "token"), "STATE_FILE": str(tmp_path / "state")}
        environ = settings(obeying.bootstrap, **files)
        rows, _ = await doctor(environ, 1, *of_all(daemons))
        # Whether a volume fills shortly after the cluster's start is not sure.
        not_ok = {name for name, verdict, _ in rows if verdict != "ok"}
        assert {"alerts"} == not_ok - {"interval", "volumes"}
        ((_, effect),) = of(rows, "effect")
        assert "brokers 0, 1 throttle their producers within 11 s" in effect

        async with prometheus(obeying, daemons, tmp_path) as watching:
            scraped = partial(watching.instant, "kafka_throttle_build_info")
            await seen("both are scraped", scraped, lambda found: len(found) == 2)
            rows, _ = await doctor(environ, None, *of_all(daemons), "--prometheus", watching.url)
            assert [("ok", "Prometheus has loaded all alerts -> ")] == of(rows, "alerts")

        # A wrong token.
        wrong = tmp_path / "wrong"
        wrong.write_text("bad")
        rows, _ = await doctor(environ | {"SIDECAR_TOKEN_FILE": str(wrong)}, 2, *of_all(daemons))
        assert {"token"} == failing(rows)

        # A limit that is smaller than what is written in an interval: 1 MB/s, by the history.
        path = obeying.brokers[0].volumes[0].path
        (tmp_path / "history").mkdir()
        now = round(time.time())
        for at, used in ((now - 60.0, 0), (now, 60_000_000)):
            volume = Volume(0, str(path), 10**9, 10**9 - used)
            line = to_line(Observation(at, "me", None, {0: Reading(0, at, (volume,))}), "me", at)
            with (tmp_path / "history" / file_name("me", at)).open("ab") as file:
                file.write(line)
        slow = {"SIDECAR_STORAGE_CHECK_INTERVAL": "60s"}
        slow["SIDECAR_HISTORY_DIR"] = str(tmp_path / "history")
        rows, document = await doctor(environ | slow, 2, *of_all(daemons))
        assert {"interval"} == failing(rows)
        assert "1.0 MB/s x 60 s until the next poll" in document["arithmetic"][1]

        # A broker that accepts connections and never answers.
        await obeying.pause_broker(1)
        rows, _ = await doctor(environ, 2, *of_all(daemons))
        # Its callback and the sidecars may have noticed, or not yet.
        assert "brokers" in failing(rows)
        assert "broker 1 can't be read: " in dict(of(rows, "brokers"))["fail"]


async def test_two_limits_and_a_broker_without_its_sidecar(
    obeying: Cluster, start: Start, tmp_path: Path
) -> None:
    """Both limits are named. Of a broker whose sidecar was not asked, the effect is not known."""
    async with beside(obeying, start, tmp_path, LIMIT_BYTES, LIMIT_BYTES // 2) as daemons:
        rows, _ = await doctor(settings(obeying.bootstrap), 2, *of_all(daemons))
        assert {"equal limits"} == failing(rows)
        ((_, both),) = of(rows, "equal limits")
        assert "=41943040" in both
        assert "=20971520" in both
        # A stop line that brokers without the authorizer can't keep, and that no sidecar has.
        stop = {STOP: str(LIMIT_BYTES // 2)}
        rows, _ = await doctor(settings(obeying.bootstrap) | stop, 2, *of_all(daemons))
        assert {"equal limits", "authorizer"} == failing(rows)
        rows, _ = await doctor(settings(obeying.bootstrap), 1, *of_all(daemons[:1]))
        assert {"ok", "not known"} == {verdict for verdict, _ in of(rows, "callback")}
        assert ["not known"] == [verdict for verdict, _ in of(rows, "effect")]


async def test_a_missing_acl_and_a_missing_callback(secure_kafka: SecureKafka) -> None:
    """The command that grants the ACL is there, and nothing about other brokers is claimed."""
    nobody = ("--sidecars", "127.0.0.1:1")
    bob = scram(secure_kafka, SASL_USERNAME="bob")
    rows, _ = await doctor(bob, 2, *nobody)
    assert ("fail", "not known") == tuple(verdict for verdict, _ in of(rows, "ACLs"))[:2]
    grant = "--add --allow-principal User:bob --operation Describe --cluster"
    assert of(rows, "ACLs")[0][1].endswith(grant)
    assert ["not known"] == [verdict for verdict, _ in of(rows, "callback")]
    wrong = scram(secure_kafka, SASL_PASSWORD="a wrong one")
    rows, _ = await doctor(wrong, 2, *nobody)
    assert {"brokers", "sidecars"} == failing(rows)
    assert "SASL" in of(rows, "brokers")[0][1]
    # alice may describe the cluster, but no configuration and no topic.
    rows, _ = await doctor(scram(secure_kafka), 2, *nobody)
    # One more where another test of this cluster has left a topic.
    assert {"warn"} == {verdict for verdict, _ in of(rows, "ACLs")}
    assert "--operation DescribeConfigs --cluster" in of(rows, "ACLs")[0][1]
    assert ["not known"] == [verdict for verdict, _ in of(rows, "retention")]
    # A super user sees that the broker has no callback.
    rows, _ = await doctor(settings(secure_kafka.cluster.bootstrap), 2, *nobody)
    assert ["ok"] == [verdict for verdict, _ in of(rows, "ACLs")]
    assert "broker 0 has no quota callback" in dict(of(rows, "callback"))["fail"]
    assert "StandardAuthorizer" in of(rows, "authorizer")[0][1]
    assert "Kafka 4.0 or newer" in of(rows, "Kafka")[0][1]
