"""Whole polls of a simulated cluster, healthy and not."""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import trustme
from kio.schema.errors import ErrorCode

from sidecar.errors import SettingsError
from sidecar.kafka import KafkaVolumeSource
from sidecar.settings import HostPort
from sidecar.volumes import (
    Failure,
    FailureKind,
    Membership,
    Observation,
    Reading,
    Volume,
    VolumeSource,
)
from tests.sidecar.kafka.servers import (
    Clock,
    admin,
    bootstrap,
    failed,
    free_port,
    hang,
    pem,
    server_context,
    succeeded,
)
from tests.support.fake_broker import (
    DESCRIBE_CLUSTER,
    DESCRIBE_LOG_DIRS,
    GIB,
    FakeBroker,
    FakeCluster,
    FakeConnection,
    FakeRequest,
)
from tests.support.fake_configs import DESCRIBE_CONFIGS, FakeConfigs
from tests.support.raw_server import raw_server
from tests.support.virtual_time import VIRTUAL_TIME

pytestmark = [VIRTUAL_TIME, pytest.mark.usefixtures("nothing_left_open")]

SASL = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_username": "eve"}


@asynccontextmanager
async def source_of(
    address: HostPort | FakeCluster, clock: Clock, *more: HostPort, **settings: Any
) -> AsyncIterator[KafkaVolumeSource]:
    first = bootstrap(address) if isinstance(address, FakeCluster) else address
    async with KafkaVolumeSource(admin(first, *more, **settings), clock=clock) as source:
        yield source


async def seen(
    source: VolumeSource, brokers: list[int] | None = None, timeout_s: float = 5.0
) -> Observation:
    return succeeded(await source.observe(brokers, timeout_s))


def kinds(observation: Observation) -> dict[int, FailureKind | None]:
    """Broker -> the kind of its failure, None for a reading."""
    return {
        broker_id: answer.kind if isinstance(answer, Failure) else None
        for broker_id, answer in observation.answers.items()
    }


def silent(*_: object) -> None:
    """A twist: nothing is answered."""


def times_asked(broker: FakeBroker, api_key: int) -> int:
    return sum(request.api_key == api_key for request in broker.requests)


def asked_of_each(cluster: FakeCluster, api_key: int) -> list[int]:
    return [times_asked(broker, api_key) for broker in cluster.brokers.values()]


async def test_a_poll_sees_every_broker_and_volume(clock: Clock) -> None:
    """It asks for one list, then each broker once; times are the clock's."""
    async with FakeCluster().add(3, volumes=2) as cluster, source_of(cluster, clock) as source:
        addresses = {n: f"127.0.0.1:{broker.port}" for n, broker in cluster.brokers.items()}
        expected = Observation(
            observed_at=1000.0,
            origin="poll",
            membership=Membership("fake-cluster", addresses, fenced={}),
            answers={
                n: Reading(
                    n,
                    1000.0,
                    (
                        Volume(n, "/var/lib/kafka/data-0", 100 * GIB, 50 * GIB),
                        Volume(n, "/var/lib/kafka/data-1", 100 * GIB, 50 * GIB),
                    ),
                )
                for n in addresses
            },
        )
        assert expected == await source.observe(None, 5.0)


async def test_the_racks_are_those_of_the_last_list(clock: Clock) -> None:
    """A partial poll reads a list too, and a broker may have none."""
    async with FakeCluster().add(3) as cluster, source_of(cluster, clock) as source:
        assert {} == source.racks
        cluster.brokers[0].rack, cluster.brokers[2].rack = "a", "b"
        await seen(source, [2])
        assert {0: "a", 2: "b"} == source.racks
        cluster.brokers[0].rack = None
        cluster.forget_answers()
        await seen(source)
        assert {2: "b"} == source.racks


async def test_later_polls_use_the_same_connections(clock: Clock) -> None:
    """In three polls the first broker's connection is the one that the list came over.

    The others are asked once which cluster they belong to.
    """
    async with FakeCluster().add(3) as cluster, source_of(cluster, clock) as source:
        for _ in range(3):
            await seen(source)
        assert [1, 1, 1] == [broker.connected for broker in cluster.brokers.values()]
        assert [3, 1, 1] == asked_of_each(cluster, DESCRIBE_CLUSTER)


async def test_fenced_brokers_are_listed_and_not_asked(clock: Clock) -> None:
    """A fenced broker is part of the membership; no connection is made to it."""
    cluster = FakeCluster().add(2)
    cluster.brokers[1].fenced = True
    async with cluster, source_of(cluster, clock) as source:
        observation = await seen(source)
        assert observation.membership is not None
        assert {0} == set(observation.membership.active)
        assert {1: f"127.0.0.1:{cluster.brokers[1].port}"} == observation.membership.fenced
        assert {0} == set(observation.answers)
        assert cluster.brokers[1].connected == 0


async def test_a_hung_broker_costs_only_its_own_answer(clock: Clock) -> None:
    """Its answer is a time-out at the deadline; the others' readings are there."""
    async with FakeCluster().add(3) as cluster, source_of(cluster, clock) as source:
        cluster.brokers[2].twist = silent
        started = asyncio.get_running_loop().time()
        observation = await seen(source, timeout_s=0.5)
        took_s = asyncio.get_running_loop().time() - started
    assert {0: None, 1: None, 2: FailureKind.TIMEOUT} == kinds(observation)
    assert 0.5 == pytest.approx(took_s)


async def until_seen(source: VolumeSource, broker_id: int, clock: Clock, timeout_s: float) -> float:
    """Polls with a short deadline, as near a limit, until a broker is seen; how long it took."""
    now = asyncio.get_running_loop().time
    started = now()
    while kinds(await seen(source, timeout_s=timeout_s))[broker_id] is not None:
        assert now() - started < 5.0, "it was not seen for 5 s"
        await asyncio.sleep(0.02)
        clock.now += 0.02
    return now() - started


async def test_a_broker_whose_answer_was_lost_is_seen_soon(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the time an answer may be owed it is asked anew, over a connection that works."""
    monkeypatch.setattr("sidecar.kafka.source.ANSWER_TIMEOUT_S", 0.4)
    async with FakeCluster().add(2) as cluster, source_of(cluster, clock) as source:
        await seen(source)
        cluster.brokers[1].twist = silent
        await seen(source, timeout_s=0.1)
        cluster.brokers[1].twist = None
        assert 0.1 < await until_seen(source, 1, clock, timeout_s=0.1) < 1.5
        assert 2 == cluster.brokers[1].connected


@pytest.mark.slow
async def test_a_broker_that_is_always_slow_is_seen_in_spite_of_short_deadlines(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer counts as lost; from then on it has the time that it needs."""
    monkeypatch.setattr("sidecar.kafka.source.ANSWER_TIMEOUT_S", 0.2)
    loop = asyncio.get_running_loop()

    def slow(connection: FakeConnection, request: FakeRequest, frame: bytes) -> bytes | None:
        if request.api_key != DESCRIBE_LOG_DIRS:
            return frame
        loop.call_later(0.4, connection.transport.write, frame)
        return None

    async with FakeCluster().add(2) as cluster, source_of(cluster, clock) as source:
        cluster.brokers[1].twist = slow
        for _ in range(2):
            await until_seen(source, 1, clock, timeout_s=0.05)
        # The lost one, and each time that it is seen it is asked anew.
        assert 4 == times_asked(cluster.brokers[1], DESCRIBE_LOG_DIRS)
        # Quick again, it has the short time again: a lost answer does not hide it for long.
        cluster.brokers[1].twist = None
        await until_seen(source, 1, clock, timeout_s=0.05)
        cluster.brokers[1].twist = silent
        await seen(source, timeout_s=0.05)
        cluster.brokers[1].twist = None
        assert await until_seen(source, 1, clock, timeout_s=0.05) < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("slow", [0, 2])
@pytest.mark.parametrize("takes_s", [{DESCRIBE_LOG_DIRS: 2.5}, {35: 2.5, DESCRIBE_CLUSTER: 2.5}])
async def test_a_slow_broker_is_seen_at_short_deadlines_wherever_it_is_listed(
    slow: int, takes_s: dict[int, float]
) -> None:
    """2.5 s, polls of 1 s each second: every third poll has its answer, over one connection.

    A list that comes too late, once, delays the first one: it is on the connection before it. So
    does the question for the cluster, on the second connection.
    """
    now = asyncio.get_running_loop().time
    async with (
        FakeCluster().add(3) as cluster,
        KafkaVolumeSource(admin(bootstrap(cluster)), clock=now) as source,
    ):
        await seen(source)
        cluster.brokers[slow].takes_s = takes_s
        polls = []
        for _ in range(17 if DESCRIBE_CLUSTER in takes_s else 14):
            due = now() + 1.0
            polls.append(kinds(await seen(source, timeout_s=1.0)))
            await asyncio.sleep(max(0.0, due - now()))
        assert 3 <= sum(poll[slow] is None for poll in polls)
        assert all(poll[1] is None for poll in polls)
        assert cluster.brokers[slow].connected <= 2


async def test_a_late_answer_is_old_news() -> None:
    """It counts from the time of its request, and the poll that has it asks the broker again.

    Asked at 0 s it answers at 2.5 s, with 30 GiB left; the next poll comes at 6 s. All requests
    use one connection.
    """
    now = asyncio.get_running_loop().time

    def said(observation: Observation) -> tuple[float, int]:
        answer = observation.answers[1]
        assert isinstance(answer, Reading)
        return answer.read_at, answer.volumes[0].available_bytes // GIB

    async with (
        FakeCluster().add(2, volumes=1) as cluster,
        KafkaVolumeSource(admin(bootstrap(cluster)), clock=now) as source,
    ):
        broker = cluster.brokers[1]
        (log_dir,) = broker.log_dirs
        broker.has(replace(log_dir, available_bytes=30 * GIB))
        broker.takes_s = {DESCRIBE_LOG_DIRS: 2.5}
        assert {0: None, 1: FailureKind.TIMEOUT} == kinds(await seen(source, timeout_s=1.0))
        await asyncio.sleep(5.0)
        broker.has(replace(log_dir, available_bytes=20 * GIB))
        # Slow again, its old answer is all there is; then it answers at once.
        assert (0.0, 30) == said(await seen(source, timeout_s=1.0))
        await asyncio.sleep(5.0)
        broker.takes_s = {}
        broker.has(replace(log_dir, available_bytes=10 * GIB))
        assert (now(), 10) == said(await seen(source, timeout_s=1.0))
        assert 1 == broker.connected


async def test_a_broker_that_left_while_it_was_asked_is_not_waited_for(clock: Clock) -> None:
    """Its late answer is nobody's, and closing leaves nothing of it."""
    async with FakeCluster().add(3) as cluster, source_of(cluster, clock) as source:
        cluster.brokers[2].twist = silent
        await seen(source, timeout_s=0.3)
        cluster.brokers[2].fenced = True
        cluster.forget_answers()
        assert {0: None, 1: None} == kinds(await seen(source))
        cluster.brokers[2].fenced = False
        cluster.brokers[2].twist = None
        cluster.forget_answers()
        assert {0: None, 1: None, 2: None} == kinds(await seen(source))


async def test_a_hung_broker_does_not_delay_the_list(clock: Clock) -> None:
    """When the broker that was asked for the list hangs, another one is asked soon after."""
    async with FakeCluster().add(3) as cluster, source_of(cluster, clock) as source:
        await seen(source)
        cluster.brokers[0].twist = silent
        observation = await seen(source, timeout_s=1.0)
        assert {0: FailureKind.TIMEOUT, 1: None, 2: None} == kinds(observation)
        # The broker that answered is asked first from now on, so that costs one pause in all.
        # The hung broker still owes its answer, so this poll does not wait for it.
        started = asyncio.get_running_loop().time()
        assert {0: FailureKind.TIMEOUT, 1: None, 2: None} == kinds(await seen(source))
        assert asyncio.get_running_loop().time() - started < 0.5


async def test_a_stopped_broker_is_found_again(clock: Clock) -> None:
    """It is refused while it is away, seen again at the first poll after its pause."""
    async with FakeCluster().add(2) as cluster, source_of(cluster, clock) as source:
        await seen(source)
        await cluster.brokers[1].stop()
        assert {0: None, 1: FailureKind.CONNECT} == kinds(await seen(source))
        await cluster.brokers[1].start()
        clock.now += 0.2
        assert {0: None, 1: None} == kinds(await seen(source))


async def test_all_brokers_replaced_behind_a_stable_address(clock: Clock) -> None:
    """New brokers with new ports, known only to the configured address, are found."""
    cluster = FakeCluster().add(3)
    async with cluster:

        async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            port = next(iter(cluster.brokers.values())).port
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)

            async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
                while data := await source.read(65536):
                    target.write(data)
                target.close()

            try:
                await asyncio.gather(copy(reader, there_writer), copy(there_reader, writer))
            finally:
                there_writer.transport.abort()

        async with raw_server(forward) as stable, source_of(stable, clock) as source:
            assert {0: None, 1: None, 2: None} == kinds(await seen(source))
            old = dict(cluster.brokers)
            cluster.brokers.clear()
            cluster.add(3)
            cluster.brokers = {n + 10: broker for n, broker in cluster.brokers.items()}
            for n, broker in cluster.brokers.items():
                broker.broker_id = n
                await broker.start()
            for broker in old.values():
                await broker.stop()
            assert {10: None, 11: None, 12: None} == kinds(await seen(source))


async def test_a_broker_that_moved_is_dialled_where_it_is(clock: Clock) -> None:
    """The same id has a new address: the old connection is closed, the new place is asked."""
    async with FakeCluster().add(2) as cluster, source_of(cluster, clock) as source:
        await seen(source)
        moved = FakeBroker(1, cluster, cluster.brokers[1].log_dirs)
        old, cluster.brokers[1] = cluster.brokers[1], moved
        await moved.start()
        cluster.forget_answers()
        assert {0: None, 1: None} == kinds(await seen(source))
        assert moved.connected == 1
        await asyncio.sleep(0.05)
        assert not old.connections
        await old.stop()


async def test_a_broker_that_left_is_no_longer_connected(clock: Clock) -> None:
    async with FakeCluster().add(2) as cluster, source_of(cluster, clock) as source:
        await seen(source)
        left = cluster.brokers.pop(1)
        cluster.forget_answers()
        assert {0: None} == kinds(await seen(source))
        await asyncio.sleep(0.05)
        assert not left.connections
        await left.stop()


async def test_one_good_address_of_several_is_enough(clock: Clock) -> None:
    """A refused and a hung address before it cost one pause, not the poll."""
    async with (
        raw_server(hang) as hung,
        FakeCluster().add(1) as cluster,
        source_of(free_port(), clock, hung, bootstrap(cluster)) as source,
    ):
        assert {0: None} == kinds(await seen(source, timeout_s=2.0))


async def test_no_broker_answers(clock: Clock) -> None:
    """The failure of a poll names each address and why it did not answer."""
    nowhere = free_port()
    async with raw_server(hang) as hung, source_of(nowhere, clock, hung) as source:
        message = failed(await source.observe(None, 0.3), FailureKind.TIMEOUT)
    assert f"{hung}: no answer in time" in message
    assert f"{nowhere}: " in message


@pytest.mark.parametrize(
    ("user", "principal"),
    [
        ("eve", "User:eve"),
        (r"CORP\svc kafka", r"'User:CORP\svc kafka'"),
        ("$ConnectionString", "'User:$ConnectionString'"),
    ],
)
async def test_a_missing_acl(clock: Clock, user: str, principal: str) -> None:
    """Error 31 from every broker is the answer of each, with the command that helps.

    A shell takes the user as it is.
    """
    cluster = FakeCluster(users={user: "apple"}).add(2)
    for broker in cluster.brokers.values():
        broker.log_dirs_error = 31
    login = {**SASL, "sasl_username": user, "sasl_password": "apple"}
    async with cluster, source_of(cluster, clock, **login) as source:
        observation = await seen(source)
    assert {0: FailureKind.AUTHORIZATION, 1: FailureKind.AUTHORIZATION} == kinds(observation)
    message = failed(observation.answers[0], FailureKind.AUTHORIZATION)
    assert message.endswith(f"--allow-principal {principal} --operation Describe --cluster")


async def test_some_brokers_asked_alone(clock: Clock) -> None:
    """A partial observation asks only those named, at the addresses of the last list.

    The brokers are listed first if there is no list yet, or if one of them did not answer last.
    A second broker lists them too if the first list lacks one, such as 7. Brokers 1 and 2 are asked
    once which cluster they belong to.
    """
    async with FakeCluster().add(3) as cluster, source_of(cluster, clock) as source:
        assert {1: None} == kinds(await seen(source, [1]))
        assert [0, 1, 0] == asked_of_each(cluster, DESCRIBE_LOG_DIRS)
        await seen(source)
        await seen(source, [1])
        assert [2, 1, 1] == asked_of_each(cluster, DESCRIBE_CLUSTER)
        observation = await seen(source, [1, 7])
        assert observation.membership is None
        assert {1: None, 7: FailureKind.CONNECT} == kinds(observation)
        assert [1, 4, 1] == asked_of_each(cluster, DESCRIBE_LOG_DIRS)
        assert [3, 1, 2] == asked_of_each(cluster, DESCRIBE_CLUSTER)


async def test_a_list_without_the_own_broker_is_compared_with_another(clock: Clock) -> None:
    """Broker 0, which answers first, has an old list. The first poll knows no other broker."""
    async with FakeCluster().add(3) as cluster:
        cluster.brokers[0].list_of_then = {0: False, 1: False}
        address = admin(bootstrap(cluster))
        async with KafkaVolumeSource(address, clock=clock, own_broker=2) as source:
            polls = [kinds(await seen(source)) for _ in range(5)]
    assert [{0: None, 1: None, 2: None}] * 4 == polls[1:]


async def test_the_own_broker_is_named_while_it_answers(clock: Clock) -> None:
    """Its address is that of the list that it was found by; a poll of others says nothing of it."""
    async with FakeCluster().add(3) as cluster:
        address = admin(bootstrap(cluster))
        async with KafkaVolumeSource(address, clock=clock, own_broker=1) as source:
            expected = {1: f"127.0.0.1:{cluster.brokers[1].port}"}
            assert expected == (await seen(source)).own
            assert expected == (await seen(source, [0, 1])).own
            assert (await seen(source, [0, 2])).own is None
            cluster.brokers[1].twist = silent
            assert {} == (await seen(source, [1], 0.5)).own
            assert {} == (await seen(source, timeout_s=0.5)).own


async def test_a_list_serves_partial_polls_for_a_minute(clock: Clock) -> None:
    """A follower that asks only its own broker, every second, does not list all of them each time.

    It lists them again after a poll without an answer, since the broker may have moved. Once it
    asks which cluster the broker belongs to.
    """
    async with FakeCluster().add(2) as cluster, source_of(cluster, clock) as source:

        def lists() -> int:
            return sum(asked_of_each(cluster, DESCRIBE_CLUSTER)) - 1

        for _ in range(60):
            await seen(source, [1])
            clock.now += 1.0
        assert 1 == lists()
        await seen(source, [1])
        assert 2 == lists()
        cluster.brokers[1].twist = silent
        await seen(source, [1], 0.5)
        assert 2 == lists()
        cluster.brokers[1].twist = None
        await seen(source, [1], 0.5)
        assert 3 == lists()


async def test_a_refused_login_shows_no_secret(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """A wrong password is reported as such; it is in no message, log or text, even at DEBUG."""
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "aiokafka")
    async with (
        FakeCluster(users={"eve": "apple"}).add(1) as cluster,
        source_of(cluster, clock, **SASL, sasl_password="Tr0ub4dor") as source,
    ):
        message = failed(await source.observe(None, 5.0), FailureKind.AUTHENTICATION)
        text = repr(source)
    assert "SaslAuthenticate" in caplog.text
    assert "Tr0ub4dor" not in caplog.text + message + text


async def test_a_session_is_renewed_before_it_ends(clock: Clock) -> None:
    """Of a session of 10 s, 8.4 s are used; after 8.5 s the broker is dialled anew."""
    async with (
        FakeCluster(users={"eve": "apple"}, session_lifetime_ms=10_000).add(1) as cluster,
        source_of(cluster, clock, **SASL, sasl_password="apple") as source,
    ):
        await seen(source)
        clock.now += 8.4
        await seen(source)
        assert cluster.brokers[0].connected == 1
        clock.now += 0.1
        await seen(source)
        assert cluster.brokers[0].connected == 2
        await asyncio.sleep(0.05)
        assert len(cluster.brokers[0].connections) == 1


async def test_a_token_endpoint_that_fails_once(clock: Clock) -> None:
    """The first poll reports that there is no token, the next one after its pause succeeds."""
    answers = [
        b"HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\n\r\n",
        b'HTTP/1.1 200 OK\r\nContent-Length: 39\r\n\r\n{"access_token":"abc","expires_in":300}',
    ]

    async def endpoint(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"grant_type=client_credentials")
        writer.write(answers.pop(0))
        await writer.drain()
        await hang(reader, writer)

    async with (
        raw_server(endpoint) as address,
        FakeCluster(users={"sidecar": "abc"}).add(3) as cluster,
        source_of(
            cluster,
            clock,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauthbearer_token_endpoint_url=f"http://{address}/token",
            sasl_oauthbearer_client_credentials_client_id="sidecar",
            sasl_oauthbearer_client_credentials_client_secret="sesame",
        ) as source,
    ):
        message = failed(await source.observe(None, 5.0), FailureKind.AUTHENTICATION)
        assert "the endpoint answered 503" in message
        clock.now += 2
        # Three brokers share one token.
        assert {0: None, 1: None, 2: None} == kinds(await seen(source))
        assert not answers


async def test_new_credentials_are_used_after_a_reload(clock: Clock) -> None:
    """Connections are redialled with them, and a refused login is tried anew at once."""
    async with (
        FakeCluster(users={"eve": "apple"}).add(2) as cluster,
        source_of(cluster, clock, **SASL, sasl_password="apple") as source,
    ):
        await seen(source)
        cluster.users = {"eve": "pear"}
        source.reload(admin(bootstrap(cluster), **SASL, sasl_password="plum"))()
        failed(await source.observe(None, 5.0), FailureKind.AUTHENTICATION)
        source.reload(admin(bootstrap(cluster), **SASL, sasl_password="pear"))()
        assert {0: None, 1: None} == kinds(await seen(source))
        await asyncio.sleep(0.05)
        assert [1, 1] == [len(broker.connections) for broker in cluster.brokers.values()]


async def test_connections_that_work_stay_if_only_files_have_changed(clock: Clock) -> None:
    """The new password is used when one of them breaks, and not before."""
    async with (
        FakeCluster(users={"eve": "apple"}).add(2) as cluster,
        source_of(cluster, clock, **SASL, sasl_password="apple") as source,
    ):
        await seen(source)
        new = admin(bootstrap(cluster), **SASL, sasl_password="pear")
        source.reload(new, redial=False)()
        for _ in range(2):
            assert {0: None, 1: None} == kinds(await seen(source))
        assert [1, 1] == [broker.connected for broker in cluster.brokers.values()]
        cluster.users = {"eve": "pear"}
        await cluster.brokers[0].stop()
        await cluster.brokers[0].start()
        assert {0: None, 1: None} == kinds(await seen(source))


async def test_a_refused_login_reads_changed_secrets_at_once(clock: Clock) -> None:
    """The poll succeeds with the new password, although its first login was refused."""
    looks: list[str] = []
    passwords = iter(["apple", "pear"])

    async with FakeCluster(users={"eve": "pear"}).add(2) as cluster:

        async def look() -> None:
            looks.append("look")
            if (password := next(passwords, None)) is not None:
                new = admin(bootstrap(cluster), **SASL, sasl_password=password)
                source.reload(new, redial=False)()

        old = admin(bootstrap(cluster), **SASL, sasl_password="plum")
        source = KafkaVolumeSource(old, clock=clock, refused=look)
        async with source:
            failed(await source.observe(None, 5.0), FailureKind.AUTHENTICATION)
            clock.now += 1
            assert {0: None, 1: None} == kinds(await seen(source))
        assert ["look", "look"] == looks


async def test_a_reload_that_can_not_be_read_changes_nothing(clock: Clock) -> None:
    """The old material stays in use, over the connections that there are."""
    async with FakeCluster().add(1) as cluster, source_of(cluster, clock) as source:
        await seen(source)
        bad = admin(
            bootstrap(cluster),
            security_protocol="SSL",
            ssl_truststore_certificates="no certificate",
        )
        with pytest.raises(SettingsError, match="CA certificate"):
            source.reload(bad)
        await seen(source)
        assert cluster.brokers[0].connected == 1


@pytest.mark.slow
@pytest.mark.parametrize("encrypted", [False, True])
async def test_a_poll_cancelled_at_any_moment_leaves_nothing(
    clock: Clock, ca: trustme.CA, encrypted: bool
) -> None:
    """Cancelled after each turn of the loop that it takes, it leaves neither task nor socket."""
    settings = (
        {"security_protocol": "SSL", "ssl_truststore_certificates": pem(ca)} if encrypted else {}
    )
    cluster = FakeCluster(ssl_context=server_context(ca) if encrypted else None).add(3)
    cancelled = finished = 0
    async with cluster:
        for turns in itertools.count():
            async with source_of(cluster, clock, **settings) as source:
                tasks = len(asyncio.all_tasks())
                task = asyncio.ensure_future(source.observe(None, 5.0))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                try:
                    await task
                    finished += 1
                except asyncio.CancelledError:
                    cancelled += 1
            # Only the readers of open connections were left, and end when they close.
            for _ in range(3):
                await asyncio.sleep(0)
            assert tasks == len(asyncio.all_tasks())
            if finished == 5:
                break
    assert cancelled > 10


async def memberships(source: VolumeSource, polls: int) -> list[tuple[list[int], list[int]]]:
    """The active and the fenced brokers of some polls in a row."""
    seen_brokers = []
    for _ in range(polls):
        membership = (await seen(source, timeout_s=1.0)).membership
        assert membership is not None
        seen_brokers.append((sorted(membership.active), sorted(membership.fenced or ())))
    return seen_brokers


async def test_a_broker_with_an_old_list_is_not_believed(clock: Clock) -> None:
    """It answers first and still lists a dead broker as active; another broker is asked too."""
    async with FakeCluster().add(3) as cluster, source_of(cluster, clock) as source:
        await seen(source)
        await cluster.brokers[2].stop()
        cluster.fence(2)
        cluster.brokers[0].list_of_then = {0: False, 1: False, 2: False}
        cluster.forget_answers()
        polls = await memberships(source, 5)
    assert ([0, 1, 2], []) == polls[0]
    assert [([0, 1], [2])] * 4 == polls[1:]


async def test_a_broker_that_an_old_list_has_as_fenced_is_active_if_it_answers(
    clock: Clock,
) -> None:
    """Broker 1 came back; broker 0 does not know it yet. Broker 3 is dead, so two are asked."""
    async with FakeCluster().add(4) as cluster, source_of(cluster, clock) as source:
        await seen(source)
        await cluster.brokers[3].stop()
        cluster.brokers[0].list_of_then = {0: False, 1: True, 2: False, 3: False}
        cluster.forget_answers()
        await seen(source, timeout_s=1.0)
        observation = await seen(source, timeout_s=1.0)
    assert observation.membership is not None
    assert {0, 1, 2, 3} == set(observation.membership.active)
    assert {0: None, 1: None, 2: None, 3: FailureKind.CONNECT} == kinds(observation)


@pytest.mark.parametrize("then", [{0: False, 1: True, 2: False}, {0: False, 2: False}])
async def test_a_broker_that_came_back_is_seen_in_spite_of_an_old_list(
    clock: Clock, then: dict[int, bool]
) -> None:
    """Broker 0, which answers first, still lists broker 1 as fenced, or not at all."""
    async with FakeCluster().add(3) as cluster, source_of(cluster, clock) as source:
        await seen(source)
        cluster.brokers[0].list_of_then = then
        cluster.forget_answers()
        observations = [await seen(source) for _ in range(4)]
    assert [{0: None, 1: None, 2: None}] * 4 == [kinds(each) for each in observations]


async def test_a_silent_broker_that_one_list_lacks_is_gone(clock: Clock) -> None:
    """It was unregistered, and broker 0 does not know that yet."""
    async with FakeCluster().add(3) as cluster, source_of(cluster, clock) as source:
        await seen(source)
        await cluster.brokers[2].stop()
        for broker_id in (1, 2):
            cluster.brokers[broker_id].list_of_then = {0: False, 1: False}
        cluster.forget_answers()
        polls = await memberships(source, 3)
    assert [([0, 1, 2], []), ([0, 1], []), ([0, 1], [])] == polls


@pytest.mark.slow
@pytest.mark.parametrize("cut_off", [(0, 1), (3, 4), (0, 4)])
async def test_a_zone_with_old_lists_is_not_believed(
    cut_off: tuple[int, int], clock: Clock
) -> None:
    """Two of eight brokers lack the newer metadata. A full broker dies that only they list.

    Each poll compares with another broker's list, so two old lists meet in few polls.
    """
    async with FakeCluster().add(8) as cluster, source_of(cluster, clock) as source:
        await seen(source)
        for broker_id in cut_off:
            cluster.brokers[broker_id].list_of_then = dict.fromkeys(range(8), False)
        cluster.fence(*cut_off)
        await memberships(source, 3)
        await cluster.brokers[5].stop()
        cluster.fence(*cut_off, 5)
        before = asked_of_each(cluster, DESCRIBE_CLUSTER)
        polls = await memberships(source, 14)
        after = asked_of_each(cluster, DESCRIBE_CLUSTER)
    lists = [after[key] - before[key] for key in range(8)]
    assert all(2 <= lists[key] <= 8 for key in {0, 1, 2, 3, 4, 6, 7} - {*cut_off})
    # One list more in each poll, at most.
    assert sum(lists) <= 28
    believed = [5 in active for active, _ in polls[1:]]
    assert believed.count(True) <= 3
    assert (True, True) not in itertools.pairwise(believed)


async def polled_alone(
    broker_id: int, old: dict[int, bool], clock: Clock
) -> tuple[list[FailureKind | None], int]:
    """How polls of a broker alone end, while broker 0 has an old list, and the lists of each."""
    async with FakeCluster().add(4) as cluster, source_of(cluster, clock) as source:
        cluster.brokers[0].list_of_then = old
        await seen(source, [0])
        polls, lists = [], 0
        for _ in range(4):
            clock.now += 61.0
            for broker in cluster.brokers.values():
                broker.requests.clear()
            polls.append(kinds(await seen(source, [broker_id]))[broker_id])
            lists = max(lists, sum(asked_of_each(cluster, DESCRIBE_CLUSTER)))
        return polls, lists


@pytest.mark.parametrize("old", [{0: False, 1: False, 2: False, 3: True}, {0: False, 1: False}])
async def test_one_old_list_hides_no_broker_that_is_asked_alone(
    old: dict[int, bool], clock: Clock
) -> None:
    """Broker 3 is fenced there, or missing; another broker's list has it. Two lists each time."""
    polls, lists = await polled_alone(3, old, clock)
    assert [None] * 4 == polls
    # The broker that is asked is asked for its cluster once.
    assert lists <= 3


async def test_one_list_is_enough_for_a_broker_that_it_has(clock: Clock) -> None:
    """It is asked over the connection of before."""
    polls, lists = await polled_alone(1, {0: False, 1: False}, clock)
    assert [None] * 4 == polls
    assert lists <= 2


async def test_a_broker_that_moved_is_found_in_spite_of_an_old_list(clock: Clock) -> None:
    """The list of broker 0 has its old address. It did not answer there, so two lists are read."""
    async with FakeCluster().add(3) as cluster, source_of(cluster, clock) as source:
        await seen(source, [1])
        old = dict(cluster.brokers[0].answers)
        await cluster.brokers[1].stop()
        cluster.brokers[1].port = free_port().port
        await cluster.brokers[1].start()
        cluster.forget_answers()
        cluster.brokers[0].answers.update(old)
        polls = []
        for _ in range(4):
            clock.now += 1.0
            polls.append(kinds(await seen(source, [1]))[1])
    assert FailureKind.CONNECT == polls[0]
    assert None in polls[1:3]


@pytest.mark.slow
@pytest.mark.parametrize(("takes_s", "seen_of_12"), [(0.5, 10), (2.5, 3)])
@pytest.mark.parametrize("brokers", [None, [3]])
async def test_a_second_list_that_is_slow_is_compared_later(
    takes_s: float, seen_of_12: int, brokers: list[int] | None, clock: Clock
) -> None:
    """Only broker 0, which has an old list, answers in time; polls come each second.

    In that list broker 3 is missing, and broker 2, which is dead, is active.
    """
    now = asyncio.get_running_loop().time
    async with FakeCluster().add(5) as cluster, source_of(cluster, clock) as source:
        await seen(source)
        cluster.brokers[0].list_of_then = dict.fromkeys((0, 1, 2, 4), False)
        await cluster.brokers[2].stop()
        cluster.fence(2)
        for broker_id in (1, 3, 4):
            cluster.brokers[broker_id].takes_s = {DESCRIBE_CLUSTER: takes_s}
        polls = []
        clock.now += 61.0
        for _ in range(12):
            due, clock.now = now() + 1.0, clock.now + 1.0
            polls.append(await seen(source, brokers, timeout_s=1.0))
            await asyncio.sleep(max(0.0, due - now()))
    assert sum(isinstance(each.answers.get(3), Reading) for each in polls) >= seen_of_12
    fenced = [each.membership.fenced for each in polls if each.membership]
    # From the first other list on, the dead one is known as such.
    first = next((number for number, each in enumerate(fenced) if each), 0)
    assert first <= 3
    assert all(each is not None and {2} == set(each) for each in fenced[first:])


async def test_one_list_is_enough_while_all_brokers_answer(clock: Clock) -> None:
    """A second one is requested after a poll in which a broker was silent, or after a minute."""
    async with FakeCluster().add(3) as cluster, source_of(cluster, clock) as source:

        def lists() -> int:
            # Brokers 1 and 2 are asked once which cluster they belong to.
            return sum(asked_of_each(cluster, DESCRIBE_CLUSTER)) - 2

        await seen(source)
        await seen(source)
        assert 2 == lists()
        for _ in range(10):
            clock.now += 12.0
            await seen(source)
        # Ten polls in two minutes.
        assert 2 + 10 + 2 == lists()
        cluster.brokers[2].twist = silent
        await seen(source, timeout_s=1.0)
        assert 15 == lists()
        await seen(source, timeout_s=1.0)
        assert 17 == lists()


async def test_an_old_list_does_not_hide_a_broker_that_came_later(clock: Clock) -> None:
    """Broker 0, which answers first, was cut off before broker 3 joined; all brokers answer."""
    async with FakeCluster().add(3) as cluster, source_of(cluster, clock) as source:
        await seen(source)
        cluster.brokers[0].list_of_then = {0: False, 1: False, 2: False}
        cluster.add(1)
        await cluster.brokers[3].start()
        cluster.forget_answers()
        polls = []
        for _ in range(8):
            clock.now += 10.0
            polls.append(kinds(await seen(source)))
    assert [{0: None, 1: None, 2: None, 3: None}] * 3 == polls[5:]


async def test_brokers_behind_one_address_are_not_told_apart(clock: Clock) -> None:
    """Nobody knows which of them answers there, so neither is asked."""
    cluster = FakeCluster().add(3)
    async with cluster, source_of(cluster, clock) as source:
        cluster.brokers[2].advertised_port = cluster.brokers[1].port
        observation = await seen(source)
        assert {0: None, 1: FailureKind.SHARED_ADDRESS, 2: FailureKind.SHARED_ADDRESS} == kinds(
            observation
        )
        expected = (
            f"broker 1: 2 active brokers have the address 127.0.0.1:{cluster.brokers[1].port}, so "
            "nobody knows which of them answers there; set advertised.listeners so that each "
            "broker has an address of its own"
        )
        assert expected == failed(observation.answers[1], FailureKind.SHARED_ADDRESS)
        again = await seen(source, [1, 2])
        assert {1: FailureKind.SHARED_ADDRESS, 2: FailureKind.SHARED_ADDRESS} == kinds(again)
        cluster.brokers[2].advertised_port = None
        cluster.forget_answers()
        assert {0: None, 1: None, 2: None} == kinds(await seen(source))


@asynccontextmanager
async def beside_a_fenced_broker(
    clock: Clock, configs: FakeConfigs
) -> AsyncIterator[tuple[FakeCluster, KafkaVolumeSource]]:
    """Broker 2 is fenced, and has the address of broker 1."""
    cluster = configs.of(FakeCluster().add(3))
    async with cluster, source_of(cluster, clock) as source:
        cluster.brokers[2].advertised_port = cluster.brokers[1].port
        cluster.fence(2)
        yield cluster, source


async def test_a_fenced_broker_may_answer_at_a_shared_address(clock: Clock) -> None:
    """A fenced broker may run, so without its id nobody knows who answers; no log dirs are read."""
    refusing = FakeConfigs(refused={1: ErrorCode.cluster_authorization_failed})
    async with beside_a_fenced_broker(clock, refusing) as (cluster, source):
        expected = (
            f"broker 1: fenced broker 2 has the same address 127.0.0.1:{cluster.brokers[1].port}, "
            "and the broker there does not show its id; unregister broker 2 if it is gone, grant "
            "DescribeConfigs on the cluster, or set advertised.listeners so that each broker has "
            "an address of its own"
        )
        for brokers in (None, [0, 1]):
            observation = await seen(source, brokers)
            assert {0: None, 1: FailureKind.SHARED_ADDRESS} == kinds(observation)
            assert expected == failed(observation.answers[1], FailureKind.SHARED_ADDRESS)
        assert 0 == times_asked(cluster.brokers[1], DESCRIBE_LOG_DIRS)
        assert 1 == cluster.brokers[1].connected
        await cluster.brokers.pop(2).stop()
        cluster.forget_answers()
        assert {0: None, 1: None} == kinds(await seen(source))


async def test_a_broker_that_shows_its_id_is_seen_at_a_shared_address(clock: Clock) -> None:
    """It got a new id, or the address of a fenced one; each connection is asked once."""
    async with beside_a_fenced_broker(clock, FakeConfigs()) as (cluster, source):
        for brokers in (None, None, [0, 1]):
            assert {0: None, 1: None} == kinds(await seen(source, brokers))
        assert 1 == times_asked(cluster.brokers[1], DESCRIBE_CONFIGS)
        assert 0 == times_asked(cluster.brokers[0], DESCRIBE_CONFIGS)


async def test_a_fenced_broker_that_answers_for_another_is_not_sight(clock: Clock) -> None:
    """A proxy leads to it, until it leads to the other one."""
    configs = FakeConfigs(refused={1: ErrorCode.invalid_request})
    async with beside_a_fenced_broker(clock, configs) as (cluster, source):
        behind = cluster.brokers[1]
        assert {0: None, 1: FailureKind.SHARED_ADDRESS} == kinds(await seen(source))
        assert 0 == times_asked(behind, DESCRIBE_LOG_DIRS)
        configs.refused.clear()
        clock.now += 1.0
        assert {0: None, 1: None} == kinds(await seen(source))
        assert 2 == behind.connected


@pytest.mark.parametrize("refused", [None, ErrorCode.cluster_authorization_failed])
async def test_two_names_of_one_address_are_noticed(
    clock: Clock, refused: ErrorCode | None
) -> None:
    """Broker 1 is listed by another name of broker 0's address, whose broker says it is not 1.

    Behind a proxy for TLS two names may lead to two brokers. So a broker that may not show its id
    counts.
    """
    configs = FakeConfigs(refused={} if refused is None else {0: refused})
    cluster = configs.of(FakeCluster(host="localhost").add(2))
    async with cluster, source_of(cluster, clock) as source:
        ports = [each.port.to_bytes(4, "big") for each in cluster.brokers.values()]

        def renamed(_: object, request: FakeRequest, frame: bytes) -> bytes:
            listed = b"\x0alocalhost" + ports[1]
            assert request.api_key != DESCRIBE_CLUSTER or listed in frame
            return frame.replace(listed, b"\x0a127.0.0.1" + ports[0])

        for broker in cluster.brokers.values():
            broker.twist = renamed
        expected = FailureKind.SHARED_ADDRESS if refused is None else None
        await seen(source)
        assert {0: None, 1: expected} == kinds(await seen(source))
        observation = await seen(source, [0, 1])
        assert {0: None, 1: expected} == kinds(observation)
        if refused is None:
            text = failed(observation.answers[1], FailureKind.SHARED_ADDRESS)
            assert f"127.0.0.1:{cluster.brokers[0].port}: another broker than 1 answers" in text
        assert times_asked(cluster.brokers[0], DESCRIBE_CONFIGS) <= 4


async def test_the_own_cluster_is_found_behind_addresses_of_two(clock: Clock) -> None:
    """Another cluster answers first; the remembered one is looked for at the other addresses."""
    one, other = FakeCluster().add(1), FakeCluster(cluster_id="other-cluster").add(1)
    async with one, other:
        addresses = admin(bootstrap(other), bootstrap(one))
        async with KafkaVolumeSource(
            addresses, clock=clock, cluster_id=lambda: "fake-cluster"
        ) as source:
            membership = (await seen(source)).membership
            assert membership is not None
            assert "fake-cluster" == membership.cluster_id
            await one.brokers[0].stop()
            observation = await seen(source, timeout_s=1.0)
            assert observation.membership is not None
            assert ("other-cluster", {}) == (
                observation.membership.cluster_id,
                observation.answers,
            )
            await one.brokers[0].start()
            clock.now += 10.0
            membership = (await seen(source)).membership
            assert membership is not None
            assert "fake-cluster" == membership.cluster_id


@pytest.mark.parametrize("own_first", [True, False])
async def test_at_the_first_contact_two_clusters_are_none(clock: Clock, own_first: bool) -> None:
    """Nothing says which one is meant; with the other one's volumes a full disk is released."""
    one, other = FakeCluster().add(1), FakeCluster(cluster_id="other-cluster").add(1)
    async with one, other:
        first, second = (one, other) if own_first else (other, one)
        async with source_of(first, clock, bootstrap(second)) as source:
            for _ in range(2):
                text = failed(await source.observe(None, 5.0), FailureKind.OTHER_CLUSTER)
                assert f"{bootstrap(one)} to fake-cluster" in text
                assert f"{bootstrap(other)} to other-cluster" in text
                # The next poll reaches the other cluster alone.
                await one.brokers[0].stop()
                clock.now += 10.0
            assert 0 == times_asked(other.brokers[0], DESCRIBE_LOG_DIRS)
            await one.brokers[0].start()
            await passed_on(other.brokers[0], spare := FakeCluster().add(1).brokers[0])
            clock.now += 10.0
            assert {0: None} == kinds(await seen(source))
            await spare.stop()


async def test_at_the_first_contact_a_silent_address_costs_a_part_of_the_poll(clock: Clock) -> None:
    """It may be of another cluster, but a broker that is down must not blind a new sidecar."""
    cluster, silent_one = FakeCluster().add(2), FakeCluster().add(1)
    silent_one.brokers[0].twist = silent
    async with cluster, silent_one:
        addresses = (bootstrap(silent_one), free_port())
        async with source_of(cluster, clock, *addresses) as source:
            assert {0: None, 1: None} == kinds(await seen(source, timeout_s=2.0))


async def passed_on(address: FakeBroker, to: FakeBroker) -> None:
    """A broker is gone, and another one listens at its address."""
    await address.stop()
    to.port = address.port
    await to.start()


async def test_an_address_that_passed_to_another_cluster_is_not_sight(clock: Clock) -> None:
    """Each new connection is asked once, before the log dirs; a poll without a list asks too."""
    one, other = FakeCluster().add(2), FakeCluster(cluster_id="other-cluster").add(2)
    async with one, source_of(one, clock) as source:
        assert {0: None, 1: None} == kinds(await seen(source))
        stranger = other.brokers[1]
        await passed_on(one.brokers[1], stranger)
        for brokers in (None, [1]):
            answer = (await seen(source, brokers)).answers[1]
            expected = (
                f"127.0.0.1:{stranger.port}: belongs to cluster other-cluster, not to fake-cluster"
            )
            assert expected == failed(answer, FailureKind.OTHER_CLUSTER)
        assert 0 == times_asked(stranger, DESCRIBE_LOG_DIRS)
        assert stranger.connected == times_asked(stranger, DESCRIBE_CLUSTER)
        await passed_on(stranger, one.brokers[1])
        clock.now += 1.0
        assert {0: None, 1: None} == kinds(await seen(source))


async def test_the_first_poll_compares_with_its_own_list(clock: Clock) -> None:
    """Nothing is remembered yet, and the list names the cluster that is meant."""
    one, other = FakeCluster().add(2), FakeCluster(cluster_id="other-cluster").add(2)
    async with one:
        await passed_on(one.brokers[1], other.brokers[1])
        async with source_of(one, clock) as source:
            observation = await seen(source)
            assert {0: None, 1: FailureKind.OTHER_CLUSTER} == kinds(observation)
        await other.brokers[1].stop()


async def test_a_broker_without_a_cluster_id_is_sight(clock: Clock) -> None:
    """It is no sign of another cluster, and it is not asked again."""
    one, other = FakeCluster().add(2), FakeCluster(cluster_id="").add(2)
    async with one, source_of(one, clock) as source:
        await passed_on(one.brokers[1], other.brokers[1])
        for _ in range(2):
            assert {0: None, 1: None} == kinds(await seen(source))
        assert 1 == times_asked(other.brokers[1], DESCRIBE_CLUSTER)
        await other.brokers[1].stop()


async def test_a_broker_that_refuses_to_name_its_cluster_is_not_sight(clock: Clock) -> None:
    """Its log dirs are not asked for, and the next poll asks again."""

    def refuses(_: FakeConnection, request: FakeRequest, frame: bytes) -> bytes:
        if request.api_key != DESCRIBE_CLUSTER:
            return frame
        # The size, the correlation id, a tag and the throttle time come before the error code.
        return frame[:13] + (-1).to_bytes(2, "big", signed=True) + frame[15:]

    async with FakeCluster().add(2) as cluster, source_of(cluster, clock) as source:
        broker = cluster.brokers[1]
        broker.twist = refuses
        answer = (await seen(source)).answers[1]
        expected = f"127.0.0.1:{broker.port}: DescribeCluster returned error -1 (UNKNOWN)"
        assert expected == failed(answer, FailureKind.BROKER)
        assert 0 == times_asked(broker, DESCRIBE_LOG_DIRS)
        broker.twist = None
        assert {0: None, 1: None} == kinds(await seen(source))


async def test_a_late_answer_is_of_the_cluster_that_was_asked(clock: Clock) -> None:
    """Broker 1 answers late; then all addresses are another cluster's, whose broker 1 is silent."""
    known = "fake-cluster"
    one, other = FakeCluster().add(2), FakeCluster(cluster_id="other-cluster").add(2)
    async with (
        one,
        KafkaVolumeSource(admin(bootstrap(one)), clock=clock, cluster_id=lambda: known) as source,
    ):
        await seen(source)
        one.brokers[1].takes_s = {DESCRIBE_LOG_DIRS: 2.0}
        assert FailureKind.TIMEOUT == kinds(await seen(source, timeout_s=1.0))[1]
        await asyncio.sleep(2.0)
        for number in (0, 1):
            await passed_on(one.brokers[number], other.brokers[number])
        known = "other-cluster"
        other.brokers[1].twist = silent
        assert {0: None, 1: FailureKind.TIMEOUT} == kinds(await seen(source, timeout_s=1.0))
        for each in other.brokers.values():
            await each.stop()
