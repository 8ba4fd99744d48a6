"""A volume source that plays a script, and short names for what it says."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, field

from sidecar.throttle.limits import MinAvailableBytes
from sidecar.volumes import Failure, FailureKind, Membership, Observation, Reading, Volume

LIMIT = MinAvailableBytes(100)
"""The limit of tests to which it does not matter."""

REFUSED = Failure(FailureKind.CONNECT, "nothing listens on 127.0.0.1:1")


@dataclass(frozen=True)
class Call:
    """One call of a source."""

    at: float
    brokers: frozenset[int] | None
    timeout_s: float


Answer = Callable[[Call], Awaitable[Observation | Failure]]


@dataclass
class ScriptedSource:
    """Answers each call by a function, and records who asked for what and when."""

    answer: Answer
    calls: list[Call] = field(default_factory=list)
    running: int = 0
    most_running: int = 0

    async def observe(
        self, brokers: Collection[int] | None, timeout_s: float
    ) -> Observation | Failure:
        only = None if brokers is None else frozenset(brokers)
        call = Call(asyncio.get_running_loop().time(), only, timeout_s)
        self.calls.append(call)
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        try:
            return await self.answer(call)
        finally:
            self.running -= 1


def reading(
    at: float, broker_id: int, available: int | Mapping[str, int], total: int = 1000
) -> Reading:
    """What a broker says whose volumes are all of one size."""
    dirs = {"/data/d0": available} if isinstance(available, int) else available
    volumes = (Volume(broker_id, log_dir, total, size) for log_dir, size in dirs.items())
    return Reading(broker_id, at, tuple(volumes))


def whole(at: float, *answers: Reading, failed: Mapping[int, Failure] | None = None) -> Observation:
    """A whole observation of a cluster with these brokers, none of them fenced."""
    reported: dict[int, Reading | Failure] = {answer.broker_id: answer for answer in answers}
    reported |= failed or {}
    active = {broker_id: f"b{broker_id}:9092" for broker_id in reported}
    return Observation(at, "poll", Membership("cluster", active, {}), reported)


def partial(at: float, *answers: Reading) -> Observation:
    """A partial observation."""
    return Observation(at, "poll", None, {answer.broker_id: answer for answer in answers})


async def run_for(seconds: float, *parts: Coroutine[object, object, None]) -> None:
    """Runs endless coroutines for a time; an exception of theirs is the test's."""
    try:
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(part)
    except TimeoutError:
        pass
