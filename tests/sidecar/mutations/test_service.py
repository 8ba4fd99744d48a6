"""Admissions by quotas that are read while they are asked for, in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest

from sidecar.mutations.service import (
    FORGOTTEN_AFTER_S,
    READ_EVERY_S,
    TIMEOUT_S,
    ControllerMutations,
)
from sidecar.quotas.entities import ClientQuotas, Entity
from sidecar.quotas.mutations.admissions import AdmissionRequest, Judged, MutationAdmissions, Muted
from sidecar.quotas.rate import QuotaWindow
from sidecar.settings import HostPort, KafkaAdmin
from sidecar.volumes import Failure, FailureKind

ADMIN = KafkaAdmin(bootstrap_servers=(HostPort("b1", 9092),))
DOWN = Failure(FailureKind.CONNECT, "b1:9092: nothing listens")
REFUSED = Failure(FailureKind.AUTHORIZATION, "b1:9092: error 31")
FIVE: ClientQuotas = {Entity("alice"): {"controller_mutation_rate": 5.0}}

pytestmark = [pytest.mark.looptime]


@dataclass
class Brokers:
    """What brokers answer, when, and after how long.

    Attributes:
        answer: quotas, or a failure.
        takes_s: how long an answer takes.
        is_deaf: whether it takes that long whatever the time-out is.
        asked: when.
        admins: by which settings.
    """

    answer: ClientQuotas | Failure = field(default_factory=lambda: FIVE)
    takes_s: float = 0.0
    is_deaf: bool = False
    asked: list[float] = field(default_factory=list)
    admins: list[KafkaAdmin] = field(default_factory=list)

    async def read(self, admin: KafkaAdmin, timeout_s: float) -> ClientQuotas | Failure:
        self.asked.append(now())
        self.admins.append(admin)
        await asyncio.sleep(self.takes_s if self.is_deaf else min(self.takes_s, timeout_s))
        if self.takes_s > timeout_s:
            return Failure(FailureKind.TIMEOUT, "b1:9092: no answer")
        return self.answer


def now() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def running(
    brokers: Brokers, validity_s: float = 300.0
) -> AsyncIterator[ControllerMutations]:
    """Admissions with their task, which must not end by itself."""
    mutations = ControllerMutations(
        MutationAdmissions("token-bucket", QuotaWindow()),
        ADMIN,
        read=brokers.read,
        clock=now,
        validity_s=validity_s,
    )
    task = asyncio.create_task(mutations.run())
    try:
        yield mutations
    finally:
        assert not task.done()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def asked(partitions: int = 1) -> AdmissionRequest:
    return AdmissionRequest("alice", "portal", [partitions])


async def test_nobody_asks_and_nothing_is_read() -> None:
    """A sidecar without portals costs the brokers nothing."""
    brokers = Brokers()
    async with running(brokers):
        await asyncio.sleep(3600)
    assert [] == brokers.asked


async def test_the_first_request_waits_for_the_quotas() -> None:
    """It waits as long as a broker takes; two that come together share one read."""
    brokers = Brokers(takes_s=0.5)
    async with running(brokers) as mutations:
        both = await asyncio.gather(mutations.admit(asked(60)), mutations.admit(asked()))
        assert 0.5 == now()
    assert [0.0] == brokers.asked
    first, second = both
    assert isinstance(first, Judged)
    assert isinstance(second, Judged)
    assert 1000 == second.throttle_ms


async def test_the_wait_is_counted_by_the_clock() -> None:
    """A client is muted while it lasts, and admitted when it is over."""
    async with running(Brokers()) as mutations:
        await mutations.admit(asked(60))
        assert 1000 == (await judged(mutations)).throttle_ms
        await asyncio.sleep(0.9)
        assert Muted(100) == await mutations.admit(asked())
        await asyncio.sleep(0.1)
        assert (await judged(mutations)).admissions[0].accepted


async def judged(mutations: ControllerMutations) -> Judged:
    answer = await mutations.admit(asked())
    assert isinstance(answer, Judged)
    return answer


async def test_a_quota_that_changes_applies_soon() -> None:
    """It does from the next read on, while requests come."""
    brokers = Brokers()
    async with running(brokers) as mutations:
        await mutations.admit(asked(60))
        await judged(mutations)
        brokers.answer = {}
        await asyncio.sleep(READ_EVERY_S + 0.1)
        assert [0.0, READ_EVERY_S] == brokers.asked
        await mutations.admit(asked(1000))
        assert (await judged(mutations)).admissions[0].accepted


async def test_reading_ends_when_nobody_asks_any_more() -> None:
    """It begins again with the next request, which waits for it."""
    brokers = Brokers()
    async with running(brokers) as mutations:
        await mutations.admit(asked())
        await asyncio.sleep(FORGOTTEN_AFTER_S * 2)
        reads = len(brokers.asked)
        assert FORGOTTEN_AFTER_S / READ_EVERY_S + 1 == pytest.approx(reads, abs=1)
        brokers.takes_s = 1.0
        before = now()
        await mutations.admit(asked())
        assert before + 1.0 == now()
        assert reads + 1 == len(brokers.asked)


async def test_after_a_silence_nobody_is_judged_by_quotas_from_before_it() -> None:
    """Reading had ended 200 s ago, and the quota was changed since."""
    brokers = Brokers()
    async with running(brokers) as mutations:
        await mutations.admit(asked(60))
        await asyncio.sleep(FORGOTTEN_AFTER_S + READ_EVERY_S + 200.0)
        brokers.answer = {}
        await mutations.admit(asked(1000))
        assert (await judged(mutations)).admissions[0].accepted


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (DOWN, "nothing listens"),
        (REFUSED, "error 31"),
    ],
)
async def test_nobody_is_admitted_by_unknown_quotas(answer: Failure, words: str) -> None:
    """The failure is reported at once, and reading is tried again each second."""
    brokers = Brokers(answer)
    async with running(brokers) as mutations:
        failure = await mutations.admit(asked())
        assert isinstance(failure, Failure)
        assert words in failure.message
        assert 0.0 == now()
        brokers.answer = FIVE
        assert isinstance(await mutations.admit(asked()), Judged)
        assert [0.0, 1.0] == brokers.asked


@pytest.mark.parametrize("is_deaf", [False, True])
async def test_a_hung_broker_is_not_waited_for_long(is_deaf: bool) -> None:
    """The request has its own end."""
    brokers = Brokers(takes_s=3600, is_deaf=is_deaf)
    async with running(brokers) as mutations:
        assert isinstance(await mutations.admit(asked()), Failure)
        assert TIMEOUT_S == now()


async def test_what_was_read_is_valid_for_the_validity_duration() -> None:
    """While reads fail it is used for 300 s after the last good one, and not longer."""
    brokers = Brokers()
    async with running(brokers) as mutations:
        await mutations.admit(asked())
        brokers.answer = DOWN
        await asyncio.sleep(300.0)
        assert isinstance(await mutations.admit(asked()), Judged)
        await asyncio.sleep(0.1)
        assert DOWN == await mutations.admit(asked())


async def test_a_short_validity_is_read_more_often() -> None:
    """A request seldom has to wait then."""
    brokers = Brokers()
    async with running(brokers, validity_s=2.0) as mutations:
        await mutations.admit(asked())
        await asyncio.sleep(3.5)
    assert [0.0, 1.0, 2.0, 3.0] == brokers.asked


async def test_failures_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """They begin with a warning and end with a line."""
    caplog.set_level("INFO")
    brokers = Brokers(DOWN)
    async with running(brokers) as mutations:
        await mutations.admit(asked())
        await asyncio.sleep(10.5)
        brokers.answer = FIVE
        await asyncio.sleep(1.0)
        brokers.answer = REFUSED
        await asyncio.sleep(READ_EVERY_S + 5.0)
    assert [
        ("WARNING", "controller mutation quotas can't be read: b1:9092: nothing listens"),
        ("INFO", "controller mutation quotas can be read again"),
        ("WARNING", "controller mutation quotas can't be read: b1:9092: error 31"),
    ] == [(record.levelname, record.message) for record in caplog.records]


async def test_new_settings_apply_from_the_next_read_on() -> None:
    """They come with SIGHUP."""
    brokers = Brokers()
    moved = ADMIN.model_copy(update={"client_id": "new"})
    async with running(brokers) as mutations:
        await mutations.admit(asked())
        mutations.reload(moved)
        await asyncio.sleep(READ_EVERY_S + 0.1)
    assert [ADMIN, moved] == brokers.admins
