"""The request log of some brokers, on for a while and then as it was before.

Only the session that changed a level knows what it was before: Kafka stores no levels, and a broker
that restarts has those of its own log4j configuration. So the session stays until the end, checks
from time to time whether the log is still on, and sets each broker back to what it found there. A
broker whose log was on before is left alone: whoever turned that on may still need it.

Example: brokers 0 (WARN), 1 (DEBUG) and 2 (WARN). ``on`` sets 0 and 2. Somebody turns 2 off; that
is reported, and ``back`` sets 0 to WARN alone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from sidecar.kafka.broker_loggers import Levels
from sidecar.volumes import Failure

ON: Final = "DEBUG"
WRITES: Final = frozenset({"ALL", "TRACE", "DEBUG"})
"""The levels at which the request log is written."""

CHECK_S: Final = 10.0
"""How often a session checks whether the log is still on: two short requests a broker."""
BACK_TRIES: Final = 5
BACK_PAUSE_S: Final = 3.0
"""A broker that can't be reached at the end is tried for a quarter of a minute: one that is
restarting comes back with the log off, and one that is cut off must not fill its disk."""


@dataclass(frozen=True, slots=True)
class Loggers:
    """How the brokers' request loggers are read and set.

    Attributes:
        read: the levels of all brokers in question; a failure when these can't be listed.
        write: sets levels, by broker id; returns those that were set, and a failure for each that
            may not have been.
    """

    read: Callable[[], Awaitable[Levels | Failure]]
    write: Callable[[Mapping[int, str]], Awaitable[Levels | Failure]]


@dataclass(frozen=True, slots=True)
class Turned:
    """What became of one broker.

    Attributes:
        before: its level, or why that is not known; it was not touched then.
        after: its level, or why that is not known.
    """

    before: str | Failure
    after: str | Failure

    @property
    def is_on(self) -> bool:
        """Whether the request log is known to be written."""
        return is_on(self.after)


def is_on(level: str | Failure) -> bool:
    """Whether the request log is written at this level."""
    return isinstance(level, str) and level in WRITES


class Session:
    """Turns the request log on, watches it, and turns it back.

    Args:
        loggers: of the brokers.
        report: gets a line for a person when something has changed meanwhile.
    """

    def __init__(self, loggers: Loggers, report: Callable[[str], None]) -> None:
        self._loggers = loggers
        self._report = report
        # Nothing to turn back until something was turned on.
        self._before: dict[int, str] = {}

    @property
    def has_changes(self) -> bool:
        """Whether there is a broker that has to be turned back."""
        return bool(self._before)

    async def on(self) -> dict[int, Turned] | Failure:
        """Turn it on wherever it is off.

        Returns:
            By broker id; a failure when the brokers can't be listed, and nothing was done.
        """
        before = await self._loggers.read()
        if isinstance(before, Failure):
            return before
        off = {
            key: level
            for key, level in before.items()
            if not isinstance(level, Failure) and not is_on(level)
        }
        written = await self._write(dict.fromkeys(off, ON))
        # A broker may answer that it was done and not have done it.
        seen = await self._loggers.read() if off else before
        turned = {
            key: Turned(level, _after(key, level, written, seen)) for key, level in before.items()
        }
        # A broker whose level can't be read now may be on all the same.
        self._before = {key: level for key, level in off.items() if _may_be_on(key, seen)}
        return turned

    async def wait(self, for_s: float, ended: asyncio.Event) -> None:
        """Wait for the end, or until the log is on nowhere any more.

        Args:
            for_s: how long, seconds.
            ended: set when it is to end before.
        """
        now = asyncio.get_running_loop().time
        deadline = now() + for_s
        while (left_s := deadline - now()) > 0:
            try:
                await asyncio.wait_for(ended.wait(), min(CHECK_S, left_s))
            except TimeoutError:
                if now() < deadline and await self._over():
                    self._report("The request log is off on every broker where this turned it on.")
                    return
            else:
                return

    async def back(self) -> dict[int, Failure]:
        """Set every broker to the level that it had.

        Returns:
            By broker id, where it may still be on, and why.
        """
        failed: dict[int, Failure] = {}
        for number in range(BACK_TRIES):
            if number:
                await asyncio.sleep(BACK_PAUSE_S)
            written = await self._write(self._before)
            failed = {
                key: message for key, message in written.items() if isinstance(message, Failure)
            }
            self._before = {key: level for key, level in self._before.items() if key in failed}
            if not failed:
                break
        return failed

    async def _over(self) -> bool:
        """Whether nothing is on that this session turned on."""
        levels = await self._loggers.read()
        if isinstance(levels, Failure):
            # A log whose level can't be read may still be on.
            return False
        for broker_id in list(self._before):
            level = levels.get(broker_id)
            if isinstance(level, str) and not is_on(level):
                del self._before[broker_id]
                self._report(
                    f"Broker {broker_id} is at {level} again: it was restarted, or somebody turned"
                    " the request log off there."
                )
        return not self._before

    async def _write(self, levels: Mapping[int, str]) -> Levels:
        if not levels:
            return {}
        written = await self._loggers.write(levels)
        return dict.fromkeys(levels, written) if isinstance(written, Failure) else written


def _may_be_on(broker_id: int, seen: Levels | Failure) -> bool:
    level = None if isinstance(seen, Failure) else seen.get(broker_id)
    return not isinstance(level, str) or is_on(level)


def _after(
    broker_id: int, before: str | Failure, written: Levels, seen: Levels | Failure
) -> str | Failure:
    """The level that a broker has now; of two failures the one that explains why it is not on."""
    now = seen if isinstance(seen, Failure) else seen.get(broker_id, before)
    answer = written.get(broker_id, before)
    return answer if isinstance(answer, Failure) and not is_on(now) else now
