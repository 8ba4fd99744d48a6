"""Turns the request log of some brokers on for a while, and restores the previous levels.

Kafka does not store levels, and a broker that restarts takes the levels of its log4j configuration.
So only the session that changed a level knows the previous one. The session runs until the end,
checks from time to time whether the log is still on, and restores the level of each broker. It does
not change a broker whose log was already on, because somebody may still need that log.

Example: brokers 0 (WARN), 1 (DEBUG) and 2 (WARN). ``on`` sets the levels of 0 and 2. Somebody turns
off the log of 2. The session reports that, and ``back`` only sets broker 0 to WARN.
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
"""How often a session checks whether the log is still on; it costs two short requests a broker."""
BACK_TRIES: Final = 5
BACK_PAUSE_S: Final = 3.0
"""How long the session tries to reach a broker at the end. A broker that restarts comes back with
the log off; a broker that is cut off must not fill its disk with the log."""


@dataclass(frozen=True, slots=True)
class Turned:
    """The levels of one broker before and after a change.

    Attributes:
        before: its level, or why the level is not known; then the broker was not changed.
        after: its level, or why the level is not known.
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
    """Turns the request log on, watches it, and restores the levels.

    Args:
        read: returns the levels of all selected brokers, or a failure if brokers can't be listed.
        write: sets levels by broker id; returns the levels that were set, and a failure for each
            broker where this is uncertain.
        report: is called with a line of text when a broker's level has changed in the meantime.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[Levels | Failure]],
        write: Callable[[Mapping[int, str]], Awaitable[Levels | Failure]],
        report: Callable[[str], None],
    ) -> None:
        self._read = read
        self._set = write
        self._report = report
        # There is no level to restore until one was changed.
        self._before: dict[int, str] = {}

    @property
    def has_changes(self) -> bool:
        """Whether the level of any broker has to be restored."""
        return bool(self._before)

    async def on(self) -> dict[int, Turned] | Failure:
        """Turn the log on wherever it is off.

        Returns:
            The change of each broker, by id; a failure if the brokers can't be listed, in which
            case nothing was changed.
        """
        before = await self._read()
        if isinstance(before, Failure):
            return before
        off = {
            key: level
            for key, level in before.items()
            if not isinstance(level, Failure) and not is_on(level)
        }
        written = await self._write(dict.fromkeys(off, ON))
        # A broker may answer that it has set the level without having done so.
        seen = await self._read() if off else before
        turned = {
            key: Turned(level, _after(key, level, written, seen)) for key, level in before.items()
        }
        # The log may be on even if the broker's level can't be read now.
        self._before = {key: level for key, level in off.items() if _may_be_on(key, seen)}
        return turned

    async def wait(self, for_s: float, ended: asyncio.Event) -> None:
        """Wait for the end, or until the log is off everywhere.

        Args:
            for_s: how long to wait, in seconds.
            ended: an event that ends the wait early.
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
        """Restore the previous level of every broker.

        Returns:
            The brokers, by id, on which the log may still be on, each with the failure.
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
        """Whether the log is off on every broker where this session turned it on."""
        levels = await self._read()
        if isinstance(levels, Failure):
            # The log may still be on if the level can't be read.
            return False
        for broker_id in list(self._before):
            level = levels.get(broker_id)
            if isinstance(level, str) and not is_on(level):
                del self._before[broker_id]
                self._report(
                    f"Broker {broker_id} is at {level} again: it was restarted, somebody turned off"
                    " its request log, or Strimzi's operator set the levels of the Kafka resource"
                    " (spec.kafka.logging), as it does at each reconciliation."
                )
        return not self._before

    async def _write(self, levels: Mapping[int, str]) -> Levels:
        if not levels:
            return {}
        written = await self._set(levels)
        return dict.fromkeys(levels, written) if isinstance(written, Failure) else written


def _may_be_on(broker_id: int, seen: Levels | Failure) -> bool:
    level = None if isinstance(seen, Failure) else seen.get(broker_id)
    return not isinstance(level, str) or is_on(level)


def _after(
    broker_id: int, before: str | Failure, written: Levels, seen: Levels | Failure
) -> str | Failure:
    """Return a broker's current level; of two failures, the one that explains the log's state."""
    now = seen if isinstance(seen, Failure) else seen.get(broker_id, before)
    answer = written.get(broker_id, before)
    return answer if isinstance(answer, Failure) and not is_on(now) else now
