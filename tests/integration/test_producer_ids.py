"""A user who opens producer ids in a loop is throttled, by brokers' request logs (KIP-936)."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
from confluent_kafka import Producer

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.traffic import Traffic
from sidecar.kafka.broker_loggers import REQUEST_LOGGER, set_levels
from sidecar.quotas.entities import Entity, QuotaKey
from sidecar.requestlog.line import Line, parse
from sidecar.volumes import Failure
from tests.support.client_quotas import admin_of, quotas_of, under
from tests.support.clusters import login
from tests.support.daemon import Daemon, Start, settings
from tests.support.documents import Document
from tests.support.java import bean
from tests.support.rogue import Rogue
from tests.support.waiting import seen

ETL = login("etl")
RATE = 1e6
"""Bytes a second of the neighbour."""

BEAN = "throttlesidecar:type=QuotaCallback"

TOKEN = "t0k3n"
WINDOW_S = 10
PERCENTAGE = "throttled_request_percentage = 0.01"
QUOTA = 5
AT_ONCE = 2 * QUOTA
"""Two windows' worth."""


@pytest_asyncio.fixture
async def logging(obeying: Cluster) -> AsyncIterator[Cluster]:
    """The cluster while its brokers write their request logs."""
    cluster, brokers = obeying, obeying.brokers
    admin = admin_of(cluster)
    assert dict.fromkeys(brokers, "DEBUG") == await set_levels(
        admin, dict.fromkeys(brokers, "DEBUG"), REQUEST_LOGGER
    )
    yield cluster
    await set_levels(admin, dict.fromkeys(brokers, "WARN"), REQUEST_LOGGER)


async def sidecars(
    cluster: Cluster,
    start: Start,
    folder: Path,
    more: Mapping[str, str],
    *,
    know_their_broker: bool = False,
) -> list[Daemon]:
    """A sidecar beside each broker, which reads its log and asks the others."""
    token = folder / "token"
    token.write_text(TOKEN)
    daemons = []
    for broker in cluster.brokers.values():
        others = [each.sidecar_url for each in cluster.brokers.values() if each is not broker]
        environ = settings(
            cluster.bootstrap,
            HTTP_LISTEN=f"127.0.0.1:{broker.sidecar_port}",
            REQUEST_LOG_FILE=f"{broker.log}.requests",
            PEERS=",".join(others),
            PRODUCER_ID_QUOTA_WINDOW_NUM="2",
            PRODUCER_ID_QUOTA_WINDOW_SIZE_SECONDS=str(WINDOW_S),
            TOKEN_FILE=str(token),
            STATE_FILE=str(folder / f"state-{broker.id}"),
            **({"BROKER_ID": str(broker.id)} if know_their_broker else {}),
            **more,
        )
        daemons.append(await start(cluster, environ))
    for daemon in daemons:
        await daemon.decides(1.0)
    for broker_id in cluster.brokers:
        # An earlier test's throttle ends when these sidecars are heard, by a ramp for everybody.
        await seen(
            f"broker {broker_id} lets all go",
            partial(bean, cluster, broker_id, BEAN),
            lambda now: ("SIDECAR", "FREE") == (now["Source"], now["Regime"]),
        )
    return daemons


def quotas(folder: Path, text: str) -> dict[str, str]:
    """The setting of a file with such quotas."""
    file = folder / "ids.toml"
    file.write_text(text)
    return {"PRODUCER_ID_QUOTA_FILE": str(file)}


async def of_user(daemon: Daemon, user: str) -> Document | None:
    """What a sidecar says of a user."""
    users = (await daemon.get("/v1/producer-ids"))["users"]
    return next((each for each in users if each["user"] == user), None)


async def is_throttled(daemon: Daemon, user: str) -> Document:
    """Wait until a user is throttled."""
    found = await seen(
        f"{user} is throttled",
        lambda: of_user(daemon, user),
        lambda reported: reported is not None and reported["throttled_until"] is not None,
    )
    assert found is not None
    assert {user: 0.0} == (await daemon.get("/v1/quota-factors"))["users"]
    return found


async def request_percentage(cluster: Cluster, user: str) -> float | None:
    """What a user has in Kafka."""
    return (await quotas_of(cluster)).get(Entity(user=user), {}).get(QuotaKey.REQUEST)


async def has_percentage(cluster: Cluster, user: str, *, expected: bool) -> None:
    """Wait until a user has a request_percentage in Kafka, or has none."""
    await seen(
        f"{user} has a request quota: {expected}",
        lambda: request_percentage(cluster, user),
        lambda value: (value is not None) == expected,
    )


async def nobody_is_throttled(daemons: Sequence[Daemon]) -> None:
    """Wait until no sidecar throttles a user."""
    for daemon in daemons:
        await seen(
            "nobody is throttled",
            partial(daemon.get, "/v1/quota-factors"),
            lambda reported: not reported["users"],
        )


async def throttle_times(cluster: Cluster, user: str) -> dict[str, int]:
    """The longest throttle time that a user had from brokers, ms, by request."""
    reported: dict[str, int] = {}
    for broker in cluster.brokers.values():
        log = await asyncio.to_thread(Path(f"{broker.log}.requests").read_bytes)
        for line in map(parse, log.splitlines()):
            if isinstance(line, Line) and line.user == user:
                reported[line.api] = max(line.throttle_ms, reported.get(line.api, 0))
    return reported


@asynccontextmanager
async def topic(cluster: Cluster) -> AsyncIterator[str]:
    """A topic with a leader on each broker."""
    async with Admin(cluster.bootstrap) as admin:
        await admin.create_topic("ids", assignment=[[broker] for broker in cluster.brokers])
    yield "ids"


async def test_a_rogue_is_throttled_everywhere_and_its_neighbour_is_not(
    logging: Cluster, start: Start, tmp_path: Path
) -> None:
    """Each sidecar sees half of the ids, all of which count; only the rogue is slowed."""
    # Ids are counted only while somebody has a quota.
    others = quotas(tmp_path, "[users.nobody]\nproducer_ids_rate = 1\n")
    daemons = await sidecars(logging, start, tmp_path, others)
    async with (
        topic(logging) as name,
        Traffic(logging.bootstrap, name, bytes_per_s=RATE) as neighbour,
        Rogue(logging.bootstrap_of("BASIC"), name, ETL, clients=8),
    ):
        await seen("ids are seen", lambda: of_user(daemons[0], "etl"), bool)
        quotas(tmp_path, f"[users.etl]\nproducer_ids_rate = {QUOTA}\n{PERCENTAGE}")
        for daemon in daemons:
            found = await is_throttled(daemon, "etl")
            assert (QUOTA, True) == (found["producer_ids_rate"], found["tokens"] < 0)
        await has_percentage(logging, "etl", expected=True)
        await seen(
            "both parts of the throttle",
            lambda: throttle_times(logging, "etl"),
            # A request quota's wait is at most Kafka's window of a second.
            lambda ms: ms.get("INIT_PRODUCER_ID") == 1000 and ms.get("PRODUCE", 0) > 1000,
        )
        until = neighbour.acknowledged_bytes + 2 * RATE
        await seen("it lands", lambda: neighbour.acknowledged_bytes > until)
        assert 0.0 == neighbour.longest_throttle_s
        assert {"etl"} == set((await daemons[0].get("/v1/quota-factors"))["users"])
    # The rogue has ended; nothing is left of the throttle after a window.
    await nobody_is_throttled(daemons)
    await has_percentage(logging, "etl", expected=False)


@pytest.mark.slow
async def test_a_quota_put_over_http_counts_at_once_and_over_a_restart(
    logging: Cluster, start: Start, tmp_path: Path
) -> None:
    """The file says few, the operator says unlimited: the throttled user is released."""
    daemons = await sidecars(
        logging, start, tmp_path, quotas(tmp_path, f"[default]\nproducer_ids_rate = {QUOTA}")
    )
    daemon = daemons[0]
    path = "/v1/quotas/producer-ids/users/etl"
    async with topic(logging) as name, Rogue(logging.bootstrap_of("BASIC"), name, ETL):
        await is_throttled(daemon, "etl")
        answer = await daemon.put(path, {"producer_ids_rate": "unlimited"}, TOKEN)
        assert (200, True) == (answer.status_code, answer.json()["persisted"])
        assert {} == (await daemon.get("/v1/quota-factors"))["users"]
        await daemon.end(signal.SIGKILL)
        await daemon.start()
        await asyncio.sleep(3.0)
        assert {} == (await daemon.get("/v1/quota-factors"))["users"]
        reported = (await daemon.get("/v1/quotas/producer-ids"))["quotas"]
        assert ["file", "api"] == [each["origin"] for each in reported]
        await daemon.ask(path, "DELETE", TOKEN)
        await is_throttled(daemon, "etl")


async def test_what_a_killed_sidecar_set_in_kafka_is_taken_back(
    logging: Cluster, start: Start, tmp_path: Path
) -> None:
    """What an operator set for another user is not touched."""
    daemons = await sidecars(
        logging,
        start,
        tmp_path,
        quotas(tmp_path, f"[default]\nproducer_ids_rate = {QUOTA}\n{PERCENTAGE}"),
    )
    operators = under(logging, {Entity("ops"): {QuotaKey.REQUEST: 77.0}})
    async with operators, topic(logging) as name:
        async with Rogue(logging.bootstrap_of("BASIC"), name, ETL):
            await has_percentage(logging, "etl", expected=True)
            for daemon in daemons:
                await daemon.end(signal.SIGKILL)
        assert await request_percentage(logging, "etl") is not None
        # It has no state file, and knows its percentage by the number itself.
        (tmp_path / "state-0").unlink()
        await daemons[0].start()
        await has_percentage(logging, "etl", expected=False)
        assert 77.0 == await request_percentage(logging, "ops")


def open_producers(cluster: Cluster, count: int) -> list[Producer]:
    """Producers of etl that get an id each, and write nothing."""
    config = {"bootstrap.servers": cluster.bootstrap_of("BASIC"), "enable.idempotence": True}
    return [Producer({**config, **ETL}) for _ in range(count)]


async def write(producers: list[Producer], topic: str) -> None:
    """One record of each, to the partition that broker 0 leads."""
    for producer in producers:
        producer.produce(topic, b"x", partition=0)
    for producer in producers:
        assert 0 == await asyncio.to_thread(producer.flush, 30.0)


async def active(daemon: Daemon) -> Document:
    """What a sidecar knows of ids that write."""
    reported: Document = (await daemon.get("/v1/producer-ids"))["active"]
    return reported


async def allocated_to_etl(daemons: list[Daemon]) -> Callable[[], Awaitable[int]]:
    """Counts the ids that brokers allocate to etl from now on."""
    begin = [(await each.get("/v1/producer-ids/allocated"))["next"] for each in daemons]

    async def count() -> int:
        ids: set[int] = set()
        for daemon, after in zip(daemons, begin, strict=True):
            page = await daemon.get(f"/v1/producer-ids/allocated?after={after}")
            ids |= {each["producer_id"] for each in page["ids"] if not each["wrote"]}
        return len(ids)

    return count


@pytest.mark.slow
async def test_an_id_counts_for_its_owner_when_it_writes(
    logging: Cluster, start: Start, tmp_path: Path
) -> None:
    """It counts only then, at all sidecars if one sees it; without an owner it throttles nobody."""
    daemons = await sidecars(
        logging,
        start,
        tmp_path,
        quotas(tmp_path, f"[default]\nproducer_ids_rate = {QUOTA}"),
        know_their_broker=True,
    )
    # Some may be seen a scan later than the others (10 s), and peers may be asked 10 s after that.
    # Tokens come back between: sixteen too many are a throttle of 32 s, and still one then.
    count = AT_ONCE + 16
    async with topic(logging) as name:
        for daemon in daemons:
            await seen(
                "leaders are scanned",
                partial(active, daemon),
                lambda reported: reported["is_complete"],
            )
        allocated = await allocated_to_etl(daemons)
        idle = open_producers(logging, count)
        await seen("all have an id", allocated, lambda ids: ids >= count)
        scans_s = 5.0
        await asyncio.sleep(scans_s)
        for daemon in daemons:
            assert await of_user(daemon, "etl") is None
        await write(idle, name)
        await asyncio.gather(*(is_throttled(daemon, "etl") for daemon in daemons))
        del idle
        await nobody_is_throttled(daemons)
        # Nobody's log has the lines of these.
        admin = admin_of(logging)
        assert not isinstance(
            await set_levels(admin, dict.fromkeys(logging.brokers, "WARN"), REQUEST_LOGGER), Failure
        )
        before = (await active(daemons[0]))["unknown_owner"]
        await write(open_producers(logging, count), name)
        # One batch in a thousand is missed (``WrittenSince``): one of these in every fiftieth run.
        await seen(
            "they are counted as unknown",
            partial(active, daemons[0]),
            lambda reported: before + count >= reported["unknown_owner"] >= before + count - 1,
        )
        for daemon in daemons:
            assert {} == (await daemon.get("/v1/quota-factors"))["users"]
