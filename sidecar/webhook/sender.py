"""Sends the messages: when, how often, and what happens if the receiver does not take one.

There is no queue. What is sent is always the difference between the last state that the receiver
took and the current one. So a receiver that hangs costs no memory, and gets the last state once it
answers. After a message there is a pause, in which further changes are only counted.

A message that is not taken is sent again after 1 s, 2 s, 4 s, up to five minutes. After 20
attempts, about an hour, it is dropped. A new state has its own 20 attempts. If a person must first
change something, the next attempt follows after five minutes, and the log says so once.
Alertmanager ends an alert that it does not get again. So it gets an attempt and a message each
minute at least, and a message is dropped after a quarter of an hour. At the start, the receiver is
taken to know the decision, and the fallback before the first poll is no news.

Example: interval 30 s. A factor falls at 0 s, rises at 5 s and falls at 6 s: the receiver gets
"throttled" at 0 s. At 30 s the state is the same, so nothing follows, and one state is dropped.
"""

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from sidecar.control.board import Board, Snapshot
from sidecar.http import HttpError, failure_of
from sidecar.throttle.decision import Decision
from sidecar.webhook.messages import Condition, Facts, State, signature

_log = logging.getLogger(__name__)

RENEW_S: Final = 60.0
"""How often Alertmanager gets an alert again: three may be lost before it ends."""

DEADLINE_S: Final = 5.0
LONGEST_PAUSE_S: Final = 300.0
MOST_ATTEMPTS: Final = 20
_LONGEST_WAIT_S: Final = 3600.0

Write = Callable[[State, Decision, Facts], Sequence[bytes]]
"""Makes the bodies of the requests that tell a change; see ``sidecar.webhook.messages``."""

Post = Callable[[bytes, Mapping[str, str]], Awaitable[int]]
"""Sends a body with headers, and returns the status; raises as ``sidecar.http.request``, or
NotAllowedError."""


class NotAllowedError(Exception):
    """The message can't be sent before a person has changed something; the text says what."""


@dataclass(slots=True)
class Hook:
    """A receiver.

    Attributes:
        write: makes the messages.
        renews: whether the receiver must get a condition again while it lasts.
        interval_s: the shortest time between two messages about changes, seconds; at most
            ``RENEW_S`` if ``renews``.
        runbooks_url: the folder of the runbooks.
        secret: signs messages; None signs none.
        post: sends a message.
        name: what the log calls it.
    """

    write: Write
    renews: bool
    interval_s: float
    runbooks_url: str
    secret: str | None
    post: Post
    name: str = "webhook"

    def __post_init__(self) -> None:
        if self.renews:
            self.interval_s = min(self.interval_s, RENEW_S)


class Sender:
    """Follows the board.

    Attributes:
        hook: the receiver.
        results: sent, failed (attempts) or dropped (states) -> how many.
    """

    def __init__(self, hook: Hook, board: Board, wall: Callable[[float], float]) -> None:
        """Take the current decision as known.

        Args:
            hook: the receiver.
            board: publishes the decisions.
            wall: steady seconds -> epoch seconds.
        """
        self.hook = hook
        self.results: Counter[str] = Counter(sent=0, failed=0, dropped=0)
        self._board = board
        self._wall = wall
        now = board.now()
        state = State.of(board.snapshot.decision)
        self._taken = State(state.conditions - {Condition.FALLBACK}, state.override)
        self._taken_at = now
        self._seen = self._taken
        self._began = dict.fromkeys(state.conditions, wall(now))
        self._attempts = 0
        self._tries = 0  # Attempts with the current state.
        self._is_refused = False
        self._next_at = now + hook.interval_s

    async def run(self) -> NoReturn:
        """Send until cancelled."""
        while True:
            snapshot = self._board.snapshot
            wait_s = await self.step(snapshot)
            await self._board.wait_for_change(snapshot.generation, min(wait_s, _LONGEST_WAIT_S))
            if self._board.closed:
                await asyncio.Event().wait()

    async def step(self, snapshot: Snapshot) -> float:
        """Send a message if one is due.

        Returns:
            After how many seconds one may be due if nothing changes.
        """
        now, state = self._board.now(), State.of(snapshot.decision)
        self._note(state, now)
        due_at = self._next_at
        if state == self._taken:
            if not self.hook.renews or not state.conditions:
                self._attempts = 0
                return _LONGEST_WAIT_S
            due_at = max(due_at, self._taken_at + RENEW_S)
        if now < due_at:
            return due_at - now
        refused = False
        try:
            problem = await self._send(snapshot, now)
        except NotAllowedError as error:
            problem, refused = str(error), True
        now = self._board.now()
        if problem:
            self._failed(problem, state, now, refused=refused)
        else:
            if self._attempts or self._is_refused:
                _log.info("%s: messages are taken again", self.hook.name)
            self._is_refused = False
            self.results["sent"] += 1
            # After an alert that is only sent again, news need not wait.
            self._take(state, now, 0.0 if state == self._taken else self.hook.interval_s)
        return max(0.0, self._next_at - now)

    def _note(self, state: State, now: float) -> None:
        if state == self._seen:
            return
        if self._seen != self._taken:
            self.results["dropped"] += 1
        for condition in state.conditions - self._seen.conditions:
            self._began[condition] = self._wall(now)
        self._seen = state
        self._tries = 0

    def _take(self, state: State, now: float, pause_s: float) -> None:
        self._taken, self._taken_at = state, now
        self._attempts = self._tries = 0
        self._next_at = now + pause_s

    def _failed(self, problem: str, state: State, now: float, *, refused: bool) -> None:
        self.results["failed"] += 1
        name, is_known = self.hook.name, refused and self._is_refused
        self._is_refused = refused
        if not is_known and (refused or not self._attempts):
            _log.warning("%s: a message was not taken, and is sent again: %s", name, problem)
        pause_s = RENEW_S if self.hook.renews else LONGEST_PAUSE_S
        if not refused:
            # States may change for days, and a float ends at 2**1024.
            pause_s = min(2.0 ** min(self._attempts, 9), pause_s)
        self._attempts += 1
        self._tries += 1
        self._next_at = now + pause_s
        if self._tries == MOST_ATTEMPTS:
            if not is_known:
                _log.error(
                    "%s: a message is dropped after %d attempts: %s", name, MOST_ATTEMPTS, problem
                )
            self.results["dropped"] += 1
            self._take(state, now, pause_s)

    async def _send(self, snapshot: Snapshot, now: float) -> str:
        """Send the difference; return why the receiver did not take it, or ""."""
        hook, epoch_s = self.hook, self._wall(now)
        facts = Facts(
            snapshot.memory.cluster_id,
            self._board.readers.counts(now),
            hook.runbooks_url,
            epoch_s,
            self._began,
        )
        try:
            async with asyncio.timeout(DEADLINE_S):
                for body in hook.write(self._taken, snapshot.decision, facts):
                    headers = {"Content-Type": "application/json"}
                    if hook.secret is not None:
                        headers |= signature(hook.secret, epoch_s, body)
                    status = await hook.post(body, headers)
                    if not 200 <= status < 300:
                        return f"the receiver answers {status}"
        except ssl.SSLError as error:
            # The whole text would name the host, and the URL is a secret.
            return f"TLS failed: {error.reason}"
        except (OSError, HttpError) as error:
            return failure_of(error, DEADLINE_S)
        except ValueError:
            return "the host in the URL is not valid"
        return ""
