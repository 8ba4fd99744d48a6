"""What must hold in a simulated world, checked at each step; docs/reliability.md states it.

1. Bytes past a limit, by cause: ``past`` has the delays that the rules allow in each fault, and the
   arithmetic. A broker whose own volume violates throttles within a look of its eyes, ``EYES_S``,
   whatever fails, but for an override. So it is with the stop at its own volume's stop line. A
   callback throttles by then too that no fault keeps from hearing of another's volume; nor does it
   throttle so long after the last volume has enough space, where no fault touches whom it asks. So
   it is with the stop, at the stop line and a tenth above it. Enough space is more than the limit,
   its release margin and the soft limit; with a soft limit the factor has ``TURN_S`` and a poll
   more to rise.
2. A factor rises by observation only if each broker's last answer to that sidecar shows no
   violation, and after one that the same process saw the release margin too; a stop ends by
   observation only if each shows more than the stop line and a tenth. No factor leaps to 1.0 while
   one shows a volume on the slope.
3. No client is told to wait for longer than the callback's longest pause, or in an emergency than
   the sidecars allow.
4. When faults have ended and space is free, all sidecars agree and traffic is back; see ``calm``.
5. A reading is not newer than the answer that it is of. Generations grow by one, an ETag is never
   another decision's, but for a step on the slope; ``computed_at`` does not run backwards while the
   same volumes violate. Metrics of the same generation say the same as the document, but for such
   a step.
6. An operator's change is answered within ``_CHANGED_S``. No traceback, no task that ended by
   itself, no open connection after a stop, and never more tasks or connections of a sidecar than
   ``_MOST_TASKS`` and ``_MOST_CONNECTIONS``. Memory does not grow once a sidecar has made what it
   makes once, its journal of decisions apart, which is bounded.

Example: sidecar 1 is killed, and a second later broker 1's volume violates: within a second broker
1 throttles by its own volumes. Broker 2, whose clients write to that volume too, does so when its
own sidecar has seen it.
"""

import asyncio
import gc
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import count, takewhile
from typing import TYPE_CHECKING, Any, Final

from sidecar.control.board import Snapshot
from sidecar.throttle.decision import Decision, Source
from sidecar.throttle.slope import STEP, TURN_S
from tests.simulation.clients import Client
from tests.simulation.faults import Fault
from tests.simulation.http_get import http_get
from tests.simulation.past import EMERGENCY_PAUSE_MAX_S, EYES_S, VALIDITY_S, Past
from tests.simulation.refusals import Refusal
from tests.simulation.sidecars import SimulatedSidecar
from tests.simulation.touched import LINKS, touched

if TYPE_CHECKING:
    from tests.simulation.brokers import FormerBroker, Served, SimulatedBroker
    from tests.simulation.volumes import Volume
    from tests.simulation.world import World

RECOVERY_S: Final = 15.0
"""Backoff of connections (10 s), fencing's delay apart."""
_CALM_S: Final = 60.0
_FREE_S: Final = 0.25
"""The smallest room of a world above its soft limit is 6 MB, and clients write up to 20 MB/s."""
_BACK: Final = 0.9
_COUNT_S: Final = 5
_COMPARE_S: Final = 60
_COMPARED: Final = (
    "kafka_throttle_factor ",
    "kafka_throttle_generation ",
    "kafka_throttle_stop_line_reached ",
    "kafka_throttle_source{",
)
_MOST_TASKS: Final = 100
_MOST_CONNECTIONS: Final = 50
_MORE_TASKS: Final = 8
_MORE_CONNECTIONS: Final = 4
"""So many more a sidecar may have for each broker of the cluster: one to the broker, and with
peers one from its sidecar and two to it, of which one waits for the next producer id."""
_WARM_S: Final = 600
"""By then all that is made once is made."""
_BLOCKS_AT_ONCE: Final = 60_000
"""Of memory, for what is under way at the moment of counting."""
_BLOCKS_PER_START: Final = 30_000
"""What a killed process had, 11,000 to 18,000: nobody collects it before the world ends."""
_BLOCKS_PER_DECISION: Final = 25
"""In a sidecar's journal; in ``Claims`` it is less."""
_HAIR_S: Final = 0.002
_CHANGED_S: Final = 2.0
"""By then an operator's change is answered, whatever the disk or the name server does."""
_FRESH_S: Final = 0.1
"""For the network and the fold."""


class Claims:
    """Watches a world.

    Attributes:
        violations: in words.
    """

    def __init__(self, world: "World") -> None:
        self.violations: list[str] = []
        self._world = world
        self._disturbed: Counter[str] = Counter()
        self._quiet_since: dict[str, float] = {}
        self._decisions: dict[int, int] = {}
        self._past: Counter[str] = Counter()
        self._longest_pause_s = 0.0
        self._releases = 0
        self._stops = 0
        self._slopes = 0
        self._held: set[tuple[str, str, int, str]] = set()
        self._starts = 0
        self._well_since = 0.0
        self._warm: tuple[int, int] | None = None
        self._limits = Past(world, self)

    @property
    def reaction_s(self) -> float:
        """How long it may take until a violation is seen and heard of."""
        return self._limits.reaction_s

    @property
    def _rise_s(self) -> float:
        """How long the factor may stay on its slope when no volume is on it any more.

        It rises a minute after it last began to fall, and so at the first poll after that.
        """
        return TURN_S + self._world.interval_s if self._world.has_slope else 0.0

    def broken(self, what: str) -> None:
        """A claim does not hold."""
        self._world.note(f"BROKEN: {what}")
        self.violations.append(f"{self._world.now():.3f} s: {what}")

    def begins(self, fault: Fault) -> None:
        """A fault happens."""
        self._limits.begins(fault)
        self.disturb(*touched(fault, self._world))

    def disturb(self, *names: str) -> None:
        """Something begins that makes processes blind, deaf, or slow, or hides them."""
        self._disturbed.update(names)

    def undisturb(self, *names: str) -> None:
        """It has ended."""
        self._disturbed.subtract(names)
        self._quiet_since.update(dict.fromkeys(names, self._world.now()))

    def is_undisturbed(self, *names: str) -> bool:
        """Whether no fault touches any of them, nor has for as long as it takes to recover."""
        since = self._world.now() - RECOVERY_S - self.reaction_s
        return not any(
            self._disturbed.get(name) or self._quiet_since.get(name, 0.0) > since for name in names
        )

    def quiet_s(self, name: str) -> float | None:
        """For how long no fault has touched something or a link; None during one."""
        if self._disturbed.get(name) or self._disturbed.get(LINKS):
            return None
        since = max(self._quiet_since.get(each, 0.0) for each in (name, LINKS))
        return self._world.now() - since

    def cause(self, client: Client, leader: "SimulatedBroker", volume: "Volume") -> str:
        """Why a client can append to a volume that violates; "" while it does not."""
        return self._limits.cause(client, leader, volume)

    def paused(self, client: Client, pause_s: float, allowed_s: float) -> None:
        """A client was told to wait, by a broker that its sidecar allows so much."""
        self._longest_pause_s = max(self._longest_pause_s, pause_s)
        if pause_s > min(allowed_s, EMERGENCY_PAUSE_MAX_S) + _HAIR_S:
            self.broken(
                f"client {client.number} was told to wait for {pause_s:.3f} s, {allowed_s:g} s are "
                f"allowed"
            )

    def landed(self, client: Client, leader: "SimulatedBroker") -> None:
        """A client's request is appended, and not charged yet."""
        wrong = self._limits.landed(client, leader.number)
        if wrong:
            self.broken(wrong)

    def changed(self, sidecar: SimulatedSidecar, took_s: float) -> None:
        """An operator's change was answered, or given up, by a sidecar that ran all the time."""
        if took_s > _CHANGED_S + _HAIR_S:
            self.broken(f"{sidecar.name} takes {took_s:.1f} s to answer an operator")

    def refused(self, refusal: Refusal) -> None:
        """A broker refused a request."""
        self._past[f"refused: {refusal}"] += 1

    def full(self) -> None:
        """A volume is full."""
        self._past["full volumes"] += 1

    def unhandled(self, context: dict[str, Any]) -> None:
        """The loop has an exception that nobody took."""
        self.broken(f"nobody took: {context.get('message')} {context.get('exception')!r}")

    def watch(self, sidecar: SimulatedSidecar) -> None:
        """A sidecar is composed: its decisions are watched."""
        assert sidecar.parts is not None
        board = sidecar.parts.board
        self._starts += 1

        def published(before: Snapshot | None, after: Snapshot) -> None:
            self._published(sidecar, board.start_id, before, after)

        board._listeners = (*board._listeners, published)
        published(None, board.snapshot)

    def _published(
        self, sidecar: SimulatedSidecar, start: str, before: Snapshot | None, after: Snapshot
    ) -> None:
        name, decision = sidecar.name, after.decision
        self._note_override(sidecar)
        volumes = [(each.volume.broker_id, each.volume.log_dir) for each in decision.violations]
        # A step on the slope is no other decision.
        factor = None if decision.is_sloped else decision.factor
        identity = (
            *(factor, decision.source, decision.stop_line_reached),
            *(tuple(volumes), tuple(decision.users)),
        )
        # Hashes, since a day has very many decisions.
        known = self._decisions.setdefault(hash((start, after.generation)), hash(identity))
        if known != hash(identity):
            self.broken(f"{name}: ETag {start}-{after.generation} is of another decision too")
        if before is None:
            return
        if not 0 <= after.generation - before.generation <= 1:
            self.broken(f"{name}: generation {before.generation} before {after.generation}")
        for number, state in after.memory.brokers.items():
            broker = self._world.registered(number)
            if broker is None:
                continue
            answered_s = broker.answered_s
            asked = answered_s if self._world.has_observers else [name]
            served_s = max((answered_s.get(each, math.inf) for each in asked), default=math.inf)
            read_s = (state.read_at or 0.0) - sidecar.anchor_s
            if read_s > served_s + _FRESH_S and state.failure is None:
                self.broken(
                    f"{name} has a reading of broker {number} of {read_s:.3f} s, which answered "
                    f"it last at {served_s:.3f} s"
                )
        last = before.decision
        same = (
            decision.violations
            and last.violations
            and volumes
            == [(each.volume.broker_id, each.volume.log_dir) for each in last.violations]
        )
        if same and (decision.computed_at or 0.0) < (last.computed_at or 0.0):
            self.broken(
                f"{name}: computed_at runs back from {last.computed_at} to {decision.computed_at}"
            )
        self._slopes += decision.is_sloped and not last.is_sloped
        self._rose(sidecar, last, decision)
        self._hold(sidecar, start, last, decision)
        if decision.factor > last.factor:
            self._released(sidecar, start, last.source, decision.source)
        self._stopped(sidecar, last, decision)

    def _served(
        self, broker: "SimulatedBroker | FormerBroker", sidecar: SimulatedSidecar
    ) -> "list[Served]":
        """What a broker answered a sidecar since its last reading, or others that it may follow.

        A sidecar that reaches neither a broker nor an observer rests on an older answer, and a slow
        one may come when it has given up. So all answers count since the time of its own reading.
        """
        assert sidecar.parts is not None
        state = sidecar.parts.board.snapshot.memory.brokers.get(broker.broker_id)
        own = [broker.served[sidecar.name]] if sidecar.name in broker.served else []
        if state is None or state.read_at is None:
            return [*broker.served.values()] if self._world.has_observers else own
        read_s = state.read_at - sidecar.anchor_s
        found = takewhile(lambda each: each.at_s >= read_s, reversed(broker.answered))
        if self._world.has_observers:
            return [*found]
        return [each for each in found if each.asker == sidecar.name] or own

    def _last_available(
        self, sidecar: SimulatedSidecar
    ) -> "Iterator[tuple[SimulatedBroker | FormerBroker, Volume, int]]":
        """The most of each volume that was last answered to this sidecar or whom it may follow."""
        for broker in self._world.all_registered():
            # What was answered under a former node id is known of that one.
            served = [
                each.available
                for each in self._served(broker, sidecar)
                if each.at_s >= broker.numbered_s
            ]
            for volume in broker.volumes:
                known = (each.get(volume.log_dir, volume.total_bytes) for each in served)
                yield broker, volume, max(known, default=volume.total_bytes)

    def _stopped(self, sidecar: SimulatedSidecar, last: Decision, decision: Decision) -> None:
        """Whether a stop ended that had to go on."""
        self._stops += decision.stop_line_reached and not last.stop_line_reached
        if (
            not last.stop_line_reached
            or decision.stop_line_reached
            or decision.source is not Source.OBSERVATION
        ):
            return
        for broker, volume, available in self._last_available(sidecar):
            is_near = 10 * available <= 11 * (volume.stop_bytes or 0)
            if not is_near or available > volume.limit_bytes:
                continue
            if self.is_undisturbed(sidecar.name, broker.name, volume.name):
                self.broken(
                    f"{sidecar.name} admits though {broker.name} last answered it with "
                    f"{available} bytes available, a stop line of {volume.stop_bytes}"
                )

    def _hold(
        self, sidecar: SimulatedSidecar, start: str, last: Decision, decision: Decision
    ) -> None:
        """Whose volumes a process saw violate, and not yet with the release margin.

        A factor that is kept, because a broker can't be read, names the violations of before.
        """
        is_new = decision.computed_at != last.computed_at
        seen = {(each.volume.broker_id, each.volume.log_dir) for each in decision.violations}
        for broker, volume, available in self._last_available(sidecar):
            key = (sidecar.name, start, broker.broker_id, volume.log_dir)
            if available > volume.limit_bytes + volume.margin_bytes:
                self._held.discard(key)
            elif is_new and (broker.broker_id, volume.log_dir) in seen:
                self._held.add(key)

    def _released(
        self, sidecar: SimulatedSidecar, start: str, last: Source, source: Source
    ) -> None:
        self._releases += 1
        if source is not Source.OBSERVATION or last is Source.OVERRIDE:
            return
        for broker, volume, available in self._last_available(sidecar):
            is_held = (sidecar.name, start, broker.broker_id, volume.log_dir) in self._held
            margin = volume.margin_bytes if is_held else 0
            if available > volume.limit_bytes + margin:
                continue
            if self.is_undisturbed(sidecar.name, broker.name, volume.name):
                self.broken(
                    f"{sidecar.name} released though {broker.name} last answered it with "
                    f"{available} bytes available, a limit of {volume.limit_bytes} and a "
                    f"release margin of {margin}"
                )

    def _rose(self, sidecar: SimulatedSidecar, last: Decision, decision: Decision) -> None:
        """Whether the factor left a slope on which a volume still is.

        The restart of its broker shows no space, nor does an answer without its sizes.
        """
        if not last.is_sloped or decision.source is not Source.OBSERVATION or last.violations:
            return
        if decision.factor < 1.0 or last.factor >= 1.0 - 2 * STEP:
            return
        for broker, volume, available in self._last_available(sidecar):
            served = self._served(broker, sidecar)
            is_low = volume.limit_bytes < available <= (volume.soft_bytes or 0)
            if is_low and not any(volume.log_dir in each.offline for each in served):
                self.broken(
                    f"{sidecar.name} rises from {last.factor:g} to 1 though {broker.name} last "
                    f"answered it with {available} bytes available, a soft limit of "
                    f"{volume.soft_bytes}"
                )

    def _note_override(self, sidecar: SimulatedSidecar) -> None:
        board = sidecar.parts and sidecar.parts.board
        if board and sidecar.process.is_alive and board.snapshot.decision.source is Source.OVERRIDE:
            self._limits.overridden(sidecar.number)

    @property
    def _forgotten_at(self) -> float:
        """When the last reading of a node id that was unregistered no longer counts.

        That is the validity after the first list without it, since a list may be out of date.
        """
        return self._world.unregistered_at + self.reaction_s + VALIDITY_S

    async def run(self) -> None:
        """Checks what only time can break, each second."""
        world = self._world
        for second in count(1):
            await asyncio.sleep(1.0)
            if second == _WARM_S:
                self._warm = (_blocks(), self._starts)
            for sidecar in world.sidecars.values():
                self._note_override(sidecar)
                if second % _COUNT_S == 0:
                    self._bounded(sidecar)
                if second % _COMPARE_S == 0:
                    world.errand(self._compare(sidecar))
            if world.former or world.now() < self._forgotten_at:
                self._well_since = world.now()
            self._run_on()
            for volume in world.volumes():
                self._limits.tick(volume)
                self._bound(volume)
            for broker in world.brokers.values():
                self._saw(broker)
                self._heard(broker)

    def _run_on(self) -> None:
        for sidecar in self._world.sidecars.values():
            if sidecar.ended is not None:
                self.broken(f"{sidecar.name} ended: {sidecar.ended}")
                sidecar.ended = None

    def _bounded(self, sidecar: SimulatedSidecar) -> None:
        tasks = sum(not task.done() for task in sidecar.process.tasks)
        connections = len([*self._world.network.of(sidecar.process)])
        brokers = len(self._world.brokers)
        for what, found, most in (
            ("tasks", tasks, _MOST_TASKS + _MORE_TASKS * brokers),
            ("connections", connections, _MOST_CONNECTIONS + _MORE_CONNECTIONS * brokers),
        ):
            self._past[f"most {what}"] = max(self._past[f"most {what}"], found)
            if found > most and sidecar.is_running:
                self.broken(f"{sidecar.name} has {found} {what}")

    async def _compare(self, sidecar: SimulatedSidecar) -> None:
        """Whether the metrics and the document of one generation say the same."""
        answers = [
            await http_get(f"{sidecar.url}{path}", {}, _COMPARE_S / 2)
            for path in ("/metrics", "/v1/throttle-factor")
        ]
        metrics, document = answers
        # It may answer readers with 503 while its state is not read, and scrapes after a freeze.
        if metrics is None or document is None or {metrics.status, document.status} != {200}:
            return
        self._past["compared"] += 1
        found = {
            line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
            for line in metrics.body.decode().splitlines()
            if line.startswith(_COMPARED)
        }
        reported = json.loads(document.body)
        if found["kafka_throttle_generation"] != reported["generation"]:
            return
        source = f'kafka_throttle_source{{source="{reported["source"]}"}}'
        factor = found["kafka_throttle_factor"]
        if reported["slope"] and 0.0 < factor < 1.0:
            # It may have moved between the two answers.
            factor = reported["factor"]
        values = (factor, found[source], found["kafka_throttle_stop_line_reached"])
        if values != (reported["factor"], 1.0, reported["stop_line_reached"]):
            self.broken(f"{sidecar.name} has metrics {found} beside {reported}")

    def _saw(self, at: "SimulatedBroker") -> None:
        """Whether a broker sees its own volumes, whatever its sidecar does."""
        callback, now = self._world.callbacks.get(at.number), self._world.now()
        if callback is None or not at.is_running or self._limits.is_lifted(at.number):
            return
        for volume in at.volumes:
            if volume.is_offline:
                # Nothing is written there, and the broker can't read it.
                continue
            for_s = now - (now if volume.violates_since is None else volume.violates_since)
            if for_s > EYES_S + _HAIR_S and callback.factor(now) > 0.0:
                self.broken(
                    f"{at.name} does not see that its own volume violates for {for_s:.1f} s"
                )
            stops_s = now - (now if volume.stops_since is None else volume.stops_since)
            if stops_s > EYES_S + _HAIR_S and not callback.stop(now):
                self.broken(
                    f"{at.name} does not see its volume at the stop line for {stops_s:.1f} s"
                )

    def _heard(self, at: "SimulatedBroker") -> None:
        """Whether a broker's callback has heard what is so since a while."""
        world, limits = self._world, self._limits
        callback, now = world.callbacks.get(at.number), world.now()
        if callback is None or not at.is_running or limits.is_lifted(at.number):
            return
        volumes = [*world.volumes()]
        factor, is_stopped = callback.factor(now), callback.stop(now)
        for volume in volumes:
            within_s = limits.heard_within_s(at.number, volume)
            if within_s is None:
                if limits.had_heard(at.number, volume) and factor > 0.0:
                    self.broken(f"{at.name} throttles nobody; it had heard of {volume.name}")
                continue
            for_s = now - (now if volume.violates_since is None else volume.violates_since)
            if for_s > within_s and factor > 0.0:
                self.broken(f"{at.name} throttles nobody; a volume has violated for {for_s:.1f} s")
            stops_s = now - (now if volume.stops_since is None else volume.stops_since)
            if stops_s > within_s and not is_stopped:
                self.broken(f"{at.name} admits; a volume is at the stop line for {stops_s:.1f} s")
        names = [each.name for each in world.brokers.values()] + [each.name for each in volumes]
        if not self.is_undisturbed(*names, *limits.asked(at.number), LINKS):
            return
        released_s = now - max(self._well_since, *(each.slows_until for each in volumes))
        is_well = not any(each.slows for each in volumes)
        if is_well and released_s > limits.longest_s + self._rise_s and factor < 1.0:
            self.broken(f"{at.name} throttles; no volume has violated for {released_s:.1f} s")
        away_s = now - max(self._well_since, *(each.near_stop_until for each in volumes))
        is_near = any(each.is_near_stop for each in volumes)
        if not is_near and away_s > limits.longest_s and is_stopped:
            self.broken(f"{at.name} admits nothing; no volume was near the line for {away_s:.1f} s")

    def _bound(self, volume: "Volume") -> None:
        world = self._world
        past = volume.past_bytes
        since = volume.violates_since
        if since is None:
            return
        for_s = world.now() - since
        for cause, landed in past.items():
            self._past[f"most by {cause}"] = max(self._past[f"most by {cause}"], landed)
            bound = self._limits.allowed(cause, volume, for_s)
            if landed > bound:
                self.broken(
                    f"{landed} bytes by {cause} past the limit of {volume.name}, violated for "
                    f"{for_s:.1f} s; {bound:.0f} may be"
                )
                past[cause] = 0

    async def calm(self) -> None:
        """The second phase: no fault is left."""
        world = self._world
        for broker_id in [*world.former]:
            world.unregister(broker_id)
        world.free_all()
        keep = asyncio.create_task(self._keep_free(), name="keep free")
        try:
            forgotten_s = max(0.0, self._forgotten_at - world.now())
            await asyncio.sleep(forgotten_s + _CALM_S + self.reaction_s + RECOVERY_S + self._rise_s)
            await self._well()
        finally:
            keep.cancel()

    async def _keep_free(self) -> None:
        while True:
            await asyncio.sleep(_FREE_S)
            self._world.free_all()

    async def _well(self) -> None:
        world = self._world
        self._grown()
        began = {each.number: each.written_bytes for each in world.clients}
        for_s = 20.0
        for sidecar in world.sidecars.values():
            assert sidecar.parts is not None
            decision = sidecar.parts.board.snapshot.decision
            if (1.0, Source.OBSERVATION) != (decision.factor, decision.source):
                self.broken(
                    f"{sidecar.name} has {decision.factor:g} by {decision.source} when all is "
                    f"well: {decision.reason}"
                )
        await asyncio.sleep(for_s)
        for each in world.clients:
            rate = (each.written_bytes - began[each.number]) / for_s
            if rate < _BACK * each.bytes_per_s - each.request_bytes / for_s:
                self.broken(f"client {each.number} writes {rate:.0f} of {each.bytes_per_s:.0f} B/s")

    def _grown(self) -> None:
        """Whether memory grew by more than what explains itself."""
        if self._warm is None:
            return
        world = self._world
        blocks, starts = self._warm
        grown = _blocks() - blocks
        journals = [each.parts.board.changes for each in world.sidecars.values() if each.parts]
        decisions = len(self._decisions) + sum(len(each) for each in journals)
        most = (
            _BLOCKS_AT_ONCE
            + _BLOCKS_PER_START * (self._starts - starts)
            + _BLOCKS_PER_DECISION * decisions
        )
        self._past["blocks more an hour"] = int(grown / (world.now() - _WARM_S) * 3600.0)
        if grown > most:
            self.broken(f"memory grew by {grown} blocks; {most} may be")

    def stopped(self) -> None:
        """All sidecars were stopped a while ago."""
        world = self._world
        for sidecar in world.sidecars.values():
            if sidecar.process.is_alive:
                self.broken(f"{sidecar.name} did not stop")
            if sidecar.left:
                self.broken(f"{sidecar.name} left {sidecar.left} connections")

    def figures(self) -> dict[str, float]:
        """What was counted."""
        return {
            "longest pause, s": round(self._longest_pause_s, 3),
            "releases": self._releases,
            "stops": self._stops,
            "slopes": self._slopes,
            "starts": self._starts,
            **self._past,
        }


def _blocks() -> int:
    """How many blocks of memory Python has allocated, of all that is in this process."""
    gc.collect()
    return sys.getallocatedblocks()
