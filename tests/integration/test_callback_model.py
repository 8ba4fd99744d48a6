"""The simulation's model of the quota callback beside the jar: the same requests and pauses.

A course is a broker's clients and its sidecars as a seed makes them, and what an earlier run of the
broker kept. The model plays it first, so that clients wait for their pauses; what happened is then
played on the jar's own classes and Kafka's quota manager (``ScenarioPlayer.java``).
"""

import heapq
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import pytest_asyncio

from kafka_lab.jars import DEFAULT_VERSION, jars
from sidecar.formats.cache_folder import cache_folder
from sidecar.quotas.entities import DEFAULT, ClientQuotas, Default, Entity, Name, QuotaKey
from tests.simulation.callback import Callback, Request
from tests.simulation.following import KeptDocument, read_answer
from tests.simulation.turns import EVERY_S
from tests.support.java import compiled_scenario_player
from tests.support.quota_traces import KafkaQuotas

SHORT_COURSES: Final = (*range(1, 17), 30, 36, 178)
"""Seeds: of five minutes each; those with an odd seed have a wall clock that is set."""
LONG_COURSES: Final = (17, 18)
"""Of three hours each, with clients that sleep for longer than Kafka retains their rates."""

MINUTE_MS: Final = 60_000
OTHERS_EVERY_MS: Final = int(EVERY_S * 1000)
AWAKE_MS: Final = 20 * MINUTE_MS
CYCLE_MS: Final = 85 * MINUTE_MS
USERS: Final = ("u0", "u1", "u2", "ops", "CN=a b*,O=\u00fc~")
PREFIX: Final = "client.quota.callback.sidecar."

Line = list[Any]
"""One line of a course or of its outcome, as ``ScenarioPlayer.java`` has them."""


@dataclass(frozen=True, slots=True)
class Client:
    """Connections that send requests of one size, each after a break, ms.

    One that sleeps does so for all but the first minutes of each cycle.
    """

    user: str
    client_id: str
    nbytes: int
    connections: int
    break_ms: int
    is_patient: bool
    sleeps: bool


class Sidecar:
    """What answers the callback: documents that change, in one of several states.

    Attributes:
        state: what it does now.
    """

    def __init__(self, random: Random, seldom: Random, *, has_users: bool) -> None:
        self._random = random
        self._seldom = seldom
        self._has_users = has_users
        self._generation = 0
        self._answers = 0
        self._document: dict[str, object] = {}
        self.state = "answers"
        self.change()

    def change(self) -> None:
        """Another decision."""
        some = self._random
        self._generation += 1
        factor = some.choice((0.0, 0.0, 1.0, 0.5, some.random()))
        own = {user: some.choice((0.0, 1.0, some.random())) for user in USERS[:4]}
        count = some.choice((0, 0, 1, 3)) if self._has_users else 0
        users = {user: own[user] for user in some.sample(USERS[:4], count)}
        valid_for_ms = some.choice((300, 5_000, 20_000, 300_000))
        self._document = {"factor": factor, "valid_for_ms": valid_for_ms, "reason": "why"}
        self._document |= {"users": users} if users or some.random() < 0.5 else {}
        self._document |= {"later": [{}]}
        if some.random() < 0.7:
            lines = (None, {"type": "min_available_ratio", "value": 0.5}, None)
            few = {"type": "min_available_bytes", "value": 200}
            sources = ("observation", "observation", "fallback", "override", "disabled")
            self._document |= {"source": some.choice(sources), "stop": some.random() < 0.3}
            self._document |= {"limit": some.choice(lines), "stop_line": some.choice((*lines, few))}
            # Not drawn: the courses of the kept seeds stay what they are.
            self._document |= ({}, {"release_margin": 0.1}, {"release_margin": 0.3})[
                self._generation % 3
            ]
            self._document |= {"slope": True} if self._generation % 4 == 0 else {}
            # Of a type that only a later jar knows: the answer can't be used.
            later = {"type": "later", "value": 1}
            self._document |= {"limit": later} if self._generation % 7 == 0 else {}

    @property
    def etag(self) -> str:
        """Of the document."""
        return f'"a-{self._generation}"'

    @property
    def document(self) -> str:
        """Its present one."""
        return json.dumps({**self._document, "generation": self._generation})

    def answer(self, request: Request) -> tuple[int | None, dict[str, str], str]:
        """Status, headers and body; no status: no answer."""
        match self.state:
            case "refuses":
                return None, {}, ""
            case "fails":
                return self._random.choice((500, 503, 404, 302)), {}, ""
            case "garbage":
                return self._garbage()
        ago_ms = self._seldom.choice((None, "0", "900", "4000", "60000", "60000", "soon"))
        limit_ms = self._seldom.choice((None, "0", "3000", "20000", "29950", "60000", "1e3"))
        more = self._leak() | ({} if ago_ms is None else {"Throttle-Observed-Ms-Ago": ago_ms})
        more |= {} if limit_ms is None else {"Throttle-Limit-In-Ms": limit_ms}
        # Not drawn either: it moves from answer to answer.
        self._answers += 1
        if self._answers % 3:
            more["Throttle-Factor"] = ("0.05", "0.35", "0.4", "0.95", "1", "0")[self._answers % 6]
        if self.state == "untagged":
            return 200, more, self.document
        valid_for_ms = str(self._document["valid_for_ms"])
        if request.etag == self.etag:
            return 304, {"Throttle-Valid-For-Ms": valid_for_ms, **more}, ""
        return 200, {"ETag": self.etag, **more}, self.document

    def _leak(self) -> dict[str, str]:
        """It moves from answer to answer; one in a hundred is wrong."""
        if self._random.random() < 0.5:
            return {}
        share, pause_max_ms = self._random.random(), int(10 ** self._random.uniform(3.0, 6.0))
        shares = (f"{share:.6f}", f"{share**8:.6f}", "1" if self._random.random() < 0.9 else "much")
        return {
            "Throttle-Leak-Share": self._random.choice(shares),
            "Throttle-Pause-Max-Ms": str(pause_max_ms),
        }

    def _garbage(self) -> tuple[int, dict[str, str], str]:
        wrong: tuple[dict[str, object], ...] = (
            {"factor": 1.5},
            {"factor": -0.1},
            {"factor": "0"},
            {"factor": True},
            {"valid_for_ms": 1.5},
            {"valid_for_ms": -1},
            {"users": []},
            {"users": {"": 0.5}},
            {"users": {"u0": 2}},
            {"generation": None},
            {"reason": {"a": 1}},
            {"reason": [1]},
        )
        whole = json.dumps({**self._document, **self._random.choice(wrong)})
        cut = json.dumps(self._document)[: self._random.randrange(20)]
        twice = '{"factor": 0, "factor": 0, "valid_for_ms": 1000}'
        body = self._random.choice((whole, cut, twice, '{"factor": NaN, "valid_for_ms": 1}', "[]"))
        no_validity = (304, {"Throttle-Valid-For-Ms": "soon"}, "")
        return self._random.choice(((200, {"ETag": self.etag}, body), no_validity))


class Course:
    """One course, played on the model by ``play``.

    Attributes:
        line: the course, for the jar.
        outcome: what the model made of it.
    """

    def __init__(self, seed: int, *, is_long: bool) -> None:
        self._random = random = Random(seed)
        self._end_ms = (180 if is_long else 5) * MINUTE_MS
        self._is_long = is_long
        # Of a chance of its own: what a seed drew before there were others stays as it was.
        self._seldom = seldom = Random(f"others {seed}")
        # Each user's own factor makes the callback forget whom it has resolved.
        self._sidecar = Sidecar(random, seldom, has_users=not is_long)
        self._clients = [self._client(number) for number in range(random.randint(1, 12))]
        terms, quotas = self._terms()
        terms["enabled"] = seed != 9
        count = seldom.choice((0, 1, 2, 3))
        self._others = [Sidecar(seldom, seldom, has_users=not is_long) for _ in range(count)]
        urls = ["http://127.0.0.1:7070", *(f"http://other-{each}:7070" for each in range(count))]
        found, kept = self._found() if seldom.random() < 0.3 else ({}, None)
        self._callback = Callback(1, urls, 0.0, kept, **terms)
        self._now_ms = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._in_force = (0.0, "", False)
        self._waits: Request | None = None
        self._events: list[Line] = []
        self.outcome: list[Line] = []
        self.line = {
            "properties": {**_properties(terms), f"{PREFIX}url": ",".join(urls)},
            **found,
            "quotas": [
                [_word(entity.user), _word(entity.client_id), limits[QuotaKey.PRODUCE]]
                for entity, limits in quotas.items()
            ],
            "events": self._events,
        }
        for client in self._clients:
            for _ in range(client.connections):
                self._at(random.randrange(1 + client.break_ms), self._sends(client))
        self._at(self._end_ms, lambda: self._sets_clock(0))
        self._at(random.randrange(40_000), self._changes)
        self._at(random.randrange(60_000), self._turns)
        self._at(random.randrange(60_000), self._sees)
        if self._callback.others:
            self._at(0, lambda: self._asks_other(0))
        if seed % 2:
            self._at(random.randrange(30_000), self._steps)

    def _client(self, number: int) -> Client:
        random = self._random
        connections = int(10 ** (random.random() * 1.7))
        break_ms = random.randint(200, 1_000) * connections
        break_ms *= self._slower
        nbytes = int(10 ** (random.random() * 7.5))
        patient = random.random() < 0.8
        sleeps = self._is_long and random.random() < 0.5
        client_id = f"c{number if self._is_long else number % 4}"
        user = random.choice(USERS)
        return Client(user, client_id, nbytes, connections, break_ms, patient, sleeps)

    def _found(self) -> tuple[Mapping[str, object], KeptDocument]:
        """What an earlier run kept, for the jar and for the model."""
        seldom = self._seldom
        body, age_ms = Sidecar(seldom, seldom, has_users=False).document, seldom.choice((0, 4000))
        answer = read_answer(200, {}, body.encode(), None)
        assert answer is not None
        assert answer.document is not None
        return {"kept": [body, age_ms]}, KeptDocument(answer.document, -age_ms)

    def _terms(self) -> tuple[dict[str, Any], ClientQuotas]:
        random = self._random
        some = random.sample(
            [
                *(Entity(user=user) for user in (*USERS[:3], DEFAULT)),
                *(Entity(client_id=name) for name in ("c0", "c1", DEFAULT)),
                *(Entity(user, name) for user in ("u0", DEFAULT) for name in ("c1", DEFAULT)),
            ],
            random.choice((0, 0, 1, 3)),
        )
        quotas: ClientQuotas = {
            entity: {QuotaKey.PRODUCE: float(10 ** random.uniform(0.0, 7.0))} for entity in some
        }
        terms: dict[str, Any] = {
            "fallback": random.choice((1.0, 1.0, 0.0, 0.3)),
            "pause_max_ms": random.randint(100, 8_000),
            "emergency_pause_max_ms": random.choice((300_000, 10_000)),
            "leak_ratio": random.choice((0.01, 0.1, 0.0)),
            "leak_bytes_per_second": random.choice((None, None, 60_000.0, 0.0)),
            "ramp_ms": random.choice((0, 1000, 5000, 60_000)),
            "excluded": frozenset({"ops"} if random.random() < 0.4 else ()),
            "quotas": quotas,
        }
        return terms, quotas

    def play(self) -> None:
        """To its end."""
        self._wake(0)
        while self._now_ms < self._end_ms:
            at_ms = self._heap[0][0]
            wake_nanos = self._nanos(self._callback.next_wake(self._now_ms / 1000.0))
            if wake_nanos <= at_ms * 1_000_000:
                self._wake(max(wake_nanos, self._now_ms * 1_000_000))
                continue
            self._now_ms = at_ms
            heapq.heappop(self._heap)[2]()

    @staticmethod
    def _nanos(moment_s: float) -> int:
        return round(moment_s * 1e9)

    def _at(self, at_ms: int, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._heap, (at_ms, self._count, action))

    def _wake(self, nanos: int) -> None:
        request = self._callback.next_request(nanos / 1e9)
        self._now_ms = -(-nanos // 1_000_000)
        self._look(nanos)
        if request is None:
            return
        said = dict(part.split("=") for part in request.headers["Throttle-Reader"].split("; "))
        report = int(said["throttled_clients"]), said["emergency"] == "true"
        self.outcome.append(["request", nanos, request.etag, request.wait_s, *report])
        self._waits = request
        if self._sidecar.state == "silent":
            return
        is_current = request.etag == self._sidecar.etag
        wait_ms = request.wait_s * 1000 if is_current else 0
        delay_ms = self._random.choice((0, 1, 30, 900, 2_100 if self._random.random() < 0.1 else 5))
        self._at(self._now_ms + wait_ms + delay_ms, lambda: self._answers(request))

    def _look(self, nanos: int) -> None:
        now_s = nanos / 1e9
        callback = self._callback
        now = callback.factor(now_s), str(callback.source(now_s)), callback.stop(now_s)
        if now != self._in_force:
            self._in_force = now
            self.outcome.append(["factor", nanos, *now])

    def _answers(self, request: Request) -> None:
        if request is not self._waits or self._sidecar.state == "silent":
            return
        self._waits = None
        status, headers, body = self._sidecar.answer(request)
        began_ms = self._now_ms - self._random.choice((0, 0, 0, 400))
        self._events.append([self._now_ms, "answer", began_ms, status, headers, body])
        now_s, began_s = self._now_ms / 1000.0, began_ms / 1000.0
        self._callback.on_answer(request, status, headers, body.encode(), now_s, began_s=began_s)
        self._look(self._now_ms * 1_000_000)

    def _asks_other(self, turn: int) -> None:
        """On a thread of its own, which waits for each answer and a second more."""
        seldom, number = self._seldom, turn % len(self._others)
        other = self._others[number]
        if seldom.random() < 0.05:
            states = ("answers", "answers", "answers", "silent", "refuses", "fails", "garbage")
            other.state = seldom.choice(states)
        if seldom.random() < 0.1:
            other.change()
        is_silent = other.state == "silent"
        delay_ms = 2_000 if is_silent else seldom.choice((0, 1, 30, 900))

        def hears() -> None:
            status, headers, body = other.answer(self._callback.others[number])
            if is_silent:
                status, headers, body = None, {}, ""
            began_ms = self._now_ms - seldom.choice((0, min(delay_ms, 400)))
            self._events.append([self._now_ms, "other", began_ms, status, headers, body, number])
            began_s, now_s = began_ms / 1000.0, self._now_ms / 1000.0
            answer = status, headers, body.encode()
            self._callback.on_other(number, *answer, now_s, began_s=began_s)
            self._look(self._now_ms * 1_000_000)
            every_ms = OTHERS_EVERY_MS * self._slower
            self._at(self._now_ms + every_ms, lambda: self._asks_other(turn + 1))

        self._at(self._now_ms + delay_ms, hears)

    def _sends(self, client: Client) -> Callable[[], None]:
        def send() -> None:
            words = client.user, client.client_id
            self._events.append([self._now_ms, "charge", *words, client.nbytes])
            now_s = self._now_ms / 1000.0
            pause_ms = self._callback.charge(*words, 0, client.nbytes, now_s)
            self.outcome.append(["pause", pause_ms])
            # Nobody waits for days here: a quota of their own may say so.
            wait_ms = min(int(pause_ms), 60_000) if client.is_patient else 0
            next_ms = self._now_ms + max(wait_ms, self._random.randint(0, client.break_ms))
            if client.sleeps and next_ms % CYCLE_MS > AWAKE_MS:
                next_ms += CYCLE_MS - next_ms % CYCLE_MS
            self._at(next_ms, send)

        return send

    def _changes(self) -> None:
        self._sidecar.change()
        if self._waits is not None:
            self._answers(self._waits)
        self._at(self._now_ms + self._random.randint(1, 30_000) * self._slower, self._changes)

    def _turns(self) -> None:
        states = ("answers", "answers", "silent", "refuses", "fails", "garbage", "untagged")
        self._sidecar.state = self._random.choice(states)
        self._at(self._now_ms + self._random.randint(1, 30_000) * self._slower, self._turns)

    def _sees(self) -> None:
        readings = self._random.choice((150, 210, 225, 490, 510, 900)), 1000
        self._events.append([self._now_ms, "readings", *readings])
        self._callback.see(*readings, self._now_ms / 1000.0)
        self._look(self._now_ms * 1_000_000)
        self._at(self._now_ms + self._random.randint(1, 20_000) * self._slower, self._sees)

    @property
    def _slower(self) -> int:
        return 20 if self._is_long else 1

    def _steps(self) -> None:
        self._sets_clock(self._random.randint(-20_000, 20_000))
        self._at(self._now_ms + self._random.randint(1, 60_000), self._steps)

    def _sets_clock(self, step_ms: int) -> None:
        self._events.append([self._now_ms, "wall", step_ms])
        self._callback.step_wall(step_ms)


def _properties(terms: Mapping[str, Any]) -> dict[str, str]:
    texts = {
        "enabled": str(terms["enabled"]),
        "ramp.ms": str(terms["ramp_ms"]),
        "pause.emergency.max.ms": str(terms["emergency_pause_max_ms"]),
        "fallback": repr(terms["fallback"]),
        "pause.max.ms": str(terms["pause_max_ms"]),
        "leak.ratio": repr(terms["leak_ratio"]),
        "excluded.principals": ";".join(f"User:{user}" for user in terms["excluded"]),
    }
    if terms["leak_bytes_per_second"] is not None:
        texts["leak.bytes.per.second"] = repr(terms["leak_bytes_per_second"])
    return {PREFIX + name: text for name, text in texts.items()}


def _word(name: Name) -> str | None:
    return "" if isinstance(name, Default) else name


def _is_same(theirs: Line, ours: Line) -> bool:
    """Pauses within a millisecond."""
    match theirs:
        case ["pause", pause_ms]:
            return bool(ours[0] == "pause" and abs(ours[1] - pause_ms) <= 1)
        case _:
            return ours == theirs


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def jar() -> AsyncIterator[KafkaQuotas]:
    libraries = await jars(DEFAULT_VERSION, cache_folder(os.environ))
    classes = await compiled_scenario_player(libraries)
    player = "throttlesidecar.reading.ScenarioPlayer"
    with KafkaQuotas.running(player, classes, libraries) as running:
        yield running


def test_the_model_is_the_jar(jar: KafkaQuotas) -> None:
    """Of every course each request, each change of the factor in force, and each pause."""
    outcome: list[Line] = []
    for seed in SHORT_COURSES + LONG_COURSES:
        course = Course(seed, is_long=seed in LONG_COURSES)
        course.play()
        [answer] = jar.ask(json.dumps(course.line) + "\n", 1)
        theirs = json.loads(answer)
        for number, (their, our) in enumerate(zip(theirs, course.outcome, strict=False)):
            before = course.outcome[max(0, number - 5) : number]
            assert _is_same(their, our), f"seed {seed}, line {number}: {their}, {our}; {before}"
        assert len(theirs) == len(course.outcome), f"seed {seed}"
        outcome += course.outcome
    sources = {line[3] for line in outcome if line[0] == "factor"}
    assert {"SIDECAR", "LOCAL", "FORECAST", "FALLBACK", "DISABLED"} == sources
    assert {True, False} == {line[4] for line in outcome if line[0] == "factor"}
    assert 10_000 < sum(line[0] == "pause" and line[1] > 0.0 for line in outcome)
