"""Reads observations from the brokers: one poll reads the cluster once.

A poll lists the brokers with DescribeCluster, and then sends DescribeLogDirs to every active broker
concurrently. One deadline covers the whole poll. A broker that misses it has a failure of kind
timeout, and the others have their readings. The request to the slow broker stays open for later
polls.

A broker that the controllers don't reach still lists the brokers of then. So the list is requested
from two brokers if a broker is fenced in it, came or left, or did not answer the last poll, and
once a minute in any case, since an old list may lack a broker that came later. The second one is
another broker each time, since a whole zone may be out of date.

An address may pass to a broker of another cluster. So each new connection is asked for its
cluster's id before log dirs are requested, unless the list came over it. Until a cluster is known,
all configured addresses are asked, and two clusters are a failure.

Example: one of three brokers takes 2.5 s to answer. Polls come every second, with a deadline of
1 s. The first poll ends after 1 s with two readings and a time-out. The next two end at once with
the same. The fourth ends after 1 s with three readings; that of the slow broker is 3 s old.
"""

import asyncio
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, Self

from aiokafka.protocol.api import Response

from sidecar.kafka.client.failures import other_cluster
from sidecar.kafka.client.former_logins import FormerLogins
from sidecar.kafka.client.link import Refused, nothing_to_read
from sidecar.kafka.client.pool import Pool
from sidecar.kafka.cluster_answers import (
    ClusterList,
    both_lists,
    disputed,
    read_cluster,
    read_cluster_id,
    read_log_dirs,
    settled,
    shared_with_fenced,
)
from sidecar.kafka.cluster_messages import DescribeCluster, DescribeClusterId, DescribeLogDirs
from sidecar.kafka.request_throttles import RequestThrottles, exemption
from sidecar.settings import HostPort, KafkaAdmin
from sidecar.volumes import Failure, FailureKind, Observation, Reading

ORIGIN = "poll"

ANSWER_TIMEOUT_S = 3.0
"""How long a request stays open if the poll's deadline is shorter. Then the connection is closed
and the next poll sends the request again. It is short because the answer may be lost."""

SLOW_ANSWER_TIMEOUT_S = 10.0
"""The same for a broker that has missed ``ANSWER_TIMEOUT_S``, until it answers in time again: a
slow broker is likelier than two lost answers."""

LIST_AGAIN_S = 60.0
"""How old the list may be when single brokers are asked: a follower that asks its own broker every
second in a throttle does not ask for the list each time. And how old a second list may be while the
next one is late, and how long a poll of all brokers does without one."""

SECOND_LIST_SHARE = 0.3
"""The part of the remaining time in which a poll waits for a second broker's list, or for silent
addresses while no cluster is known."""

GOLDEN_RATIO = 0.618034
"""Multiples of it, without their whole part, are spread evenly over 0 to 1 (Fibonacci hashing)."""

_DESCRIBE_CLUSTER = DescribeCluster()
_DESCRIBE_CLUSTER_ID = DescribeClusterId()
_DESCRIBE_LOG_DIRS = DescribeLogDirs()


class KafkaVolumeSource:
    """Reads a cluster over connections that stay open from poll to poll.

    An async context manager; leaving it closes all connections.

    Args:
        admin: how to reach the brokers.
        clock: steady seconds, for the times in observations and for the age of connections.
        cluster_id: the id of the cluster whose volumes are remembered; None if none is known. Its
            brokers are looked for first. If only another cluster answers, the observation has its
            list and no reading.
        own_broker: the id of the broker beside this sidecar; None if it is not known.
        refused: called when a broker refuses a login; may read the secrets again.

    Attributes:
        racks: broker id -> ``broker.rack`` of the brokers in the last list that have one.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """

    def __init__(
        self,
        admin: KafkaAdmin,
        *,
        clock: Callable[[], float],
        cluster_id: Callable[[], str | None] = lambda: None,
        own_broker: int | None = None,
        refused: Refused = nothing_to_read,
    ) -> None:
        self._clock = clock
        self._own_broker = own_broker
        self._cluster_id = cluster_id
        self._admin = admin
        self._former = FormerLogins()
        self._throttles = RequestThrottles(
            clock, lambda: exemption(self._admin, self._pool.principal)
        )
        self._pool = Pool.of(
            admin, clock, refused, former=self._former, throttled=self._throttles.note
        )
        self._endpoints: Mapping[int, HostPort] = {}
        self._listed_at = -math.inf
        self._listed_cluster: str | None = None
        self._first_ids: dict[HostPort, str] = {}
        self.racks: dict[int, str] = {}
        self._shared: dict[int, Failure] = {}
        self._doubtful: dict[int, Failure] = {}
        self._answered: list[int] = []
        self._unreached: set[int] = set()
        self._active: set[int] = set()
        self._is_in_doubt = False
        self._turn = -1.0
        self._second: asyncio.Task[ClusterList | Failure] | None = None
        self._compared: ClusterList | None = None
        self._compared_at = clock()
        self._requests: dict[int, asyncio.Task[Reading | Failure]] = {}
        self._slow: set[int] = set()

    def __repr__(self) -> str:
        return f"KafkaVolumeSource({self._pool})"

    @property
    def throttled_s(self) -> float:
        """The sum of the throttle times in all answers: quotas that the sidecar exceeded."""
        return self._throttles.total_s

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    async def observe(
        self, brokers: Collection[int] | None, timeout_s: float
    ) -> Observation | Failure:
        """Reads the cluster once; see ``sidecar.volumes.VolumeSource``."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        others: list[ClusterList] = []
        if brokers is not None:
            is_old = self._clock() - self._listed_at >= LIST_AGAIN_S
            # Another sidecar listed the brokers, or a broker may have moved since.
            if is_old or self._lacks(brokers, self._endpoints):
                listed = await self._list(brokers, deadline, others)
                if isinstance(listed, Failure):
                    return listed
            answers = await self._ask(brokers, deadline)
            own = self._own(answers) if self._own_broker in brokers else None
            return Observation(self._clock(), ORIGIN, None, answers, own)
        listed = await self._list(None, deadline, others)
        if isinstance(listed, Failure):
            if others:
                return Observation(self._clock(), ORIGIN, others[0].membership, {})
            return listed
        cluster, in_dispute = listed
        answers = await self._ask(cluster.endpoints, deadline)
        self._answered = [key for key, each in answers.items() if isinstance(each, Reading)]
        self._is_in_doubt = bool(in_dispute) or len(self._answered) < len(answers)
        self._active = set(cluster.endpoints)
        membership = settled(cluster.membership, in_dispute, answers)
        answers = {key: each for key, each in answers.items() if key in membership.active}
        return Observation(self._clock(), ORIGIN, membership, answers, self._own(answers))

    def _own(self, answers: Mapping[int, Reading | Failure]) -> dict[int, str] | None:
        """The broker beside this sidecar and its address, if it answered; None if not known."""
        own = self._own_broker
        if own is None:
            return None
        return {own: str(self._endpoints[own])} if isinstance(answers.get(own), Reading) else {}

    async def _list(
        self, brokers: Collection[int] | None, deadline: float, others: list[ClusterList]
    ) -> tuple[ClusterList, frozenset[int]] | Failure:
        """The brokers by one list or two, and those that two lists disagree about.

        Args:
            brokers: the only brokers to ask afterwards; None for all.
            deadline: the loop's time by which this returns.
            others: gets the lists of other clusters.
        """
        read = partial(self._read_own, others)
        first = await self._pool.call_any(_DESCRIBE_CLUSTER, deadline, read)
        if isinstance(first, Failure):
            return self._throttles.explained(None, first)
        is_known = self._listed_cluster or self._cluster_id()
        if not is_known and (failure := await self._two_clusters(deadline)):
            return failure
        second = None
        if not self._is_doubtful(first, brokers):
            self._drop_second()
        else:
            if not self._endpoints:
                self._use(first)
            known = self._answered if brokers is None else first.endpoints
            second = await self._second_list(set(known) - self._unreached, deadline)
        # Not the first list before, since that may end a request to a broker that it lacks.
        cluster = first if second is None else both_lists(first, second)
        self._use(cluster)
        return cluster, frozenset() if second is None else disputed(first, second)

    async def _two_clusters(self, deadline: float) -> Failure | None:
        """Why nobody knows which cluster is meant; None if no two addresses disagree.

        An address that is silent now still belongs to the cluster that it answered for.
        """
        bootstrap = self._admin.bootstrap_servers
        if len(bootstrap) < 2:
            return None
        patience_s = SECOND_LIST_SHARE * (deadline - asyncio.get_running_loop().time())
        answers = await self._pool.call_configured(_DESCRIBE_CLUSTER_ID, deadline, patience_s)
        for endpoint, answer in answers.items():
            cluster_id = read_cluster_id(answer, endpoint)
            if cluster_id and not isinstance(cluster_id, Failure):
                self._first_ids[endpoint] = cluster_id
        ids = {key: each for key, each in self._first_ids.items() if key in bootstrap}
        if len(set(ids.values())) < 2:
            return None
        named = ", ".join(f"{endpoint} to {cluster_id}" for endpoint, cluster_id in ids.items())
        return Failure(
            FailureKind.OTHER_CLUSTER,
            f"the bootstrap addresses belong to different clusters: {named}; remove the addresses "
            "of all clusters but one",
        )

    async def _second_list(self, known: Collection[int], deadline: float) -> ClusterList | None:
        """The newest list of one of the brokers, perhaps a late one; None if there is none.

        The request stays open for later polls. Near a limit, the deadline of a poll is shorter than
        slow brokers need for a list.
        """
        now = asyncio.get_running_loop().time
        if self._second is None:
            self._second = asyncio.create_task(
                self._pool.call_any(
                    _DESCRIBE_CLUSTER,
                    max(deadline, now() + SLOW_ANSWER_TIMEOUT_S),
                    partial(self._read_own, []),
                    others=self._in_turn(known),
                ),
                name="second list of brokers",
            )
        second = self._second
        await asyncio.wait([second], timeout=SECOND_LIST_SHARE * max(0.0, deadline - now()))
        if second.done():
            self._second = None
            cluster = second.result()
            if not isinstance(cluster, Failure):
                self._compared, self._compared_at = cluster, self._clock()
        # Until the next one is there, the last one counts, so that brokers that two lists disagree
        # about do not come and go.
        return self._compared if self._clock() - self._compared_at < LIST_AGAIN_S else None

    def _drop_second(self) -> None:
        self._compared = None
        if self._second is not None:
            self._second.cancel()
            self._second = None

    def _is_doubtful(self, first: ClusterList, brokers: Collection[int] | None) -> bool:
        """Whether a list may be old, so that another broker's list is needed too."""
        if brokers is not None:
            return self._lacks(brokers, first.endpoints)
        # A dead broker is active in an old list, and one that came back is fenced or missing there.
        is_own_missing = self._own_broker is not None and self._own_broker not in first.endpoints
        has_changed = bool(first.membership.fenced) or set(first.endpoints) != self._active
        # An old list may lack a broker that came later, and nothing else shows that.
        is_due = self._clock() - self._compared_at >= LIST_AGAIN_S
        return self._is_in_doubt or has_changed or is_own_missing or is_due

    def _lacks(self, brokers: Collection[int], endpoints: Mapping[int, HostPort]) -> bool:
        """Whether a list lacks some brokers, or they did not answer where a list had them."""
        return not set(brokers) <= endpoints.keys() - self._unreached

    def _in_turn(self, brokers: Collection[int]) -> Iterator[int]:
        """The brokers to ask for a second list, beginning after the one that was asked last.

        Neighbours by id are far apart in this order. They may be in one zone, whose brokers all
        have an old list when the controllers don't reach it.
        """
        places = {broker_id: broker_id * GOLDEN_RATIO % 1.0 for broker_id in brokers}
        for broker_id in sorted(places, key=lambda key: (places[key] <= self._turn, places[key])):
            self._turn = places[broker_id]
            yield broker_id

    def _read_own(
        self, others: list[ClusterList], response: Response, endpoint: HostPort
    ) -> ClusterList | Failure:
        """Reads a list of brokers, and puts one of another cluster aside."""
        cluster = read_cluster(response, endpoint)
        if isinstance(cluster, Failure):
            return cluster
        other = other_cluster(str(endpoint), cluster.membership.cluster_id, self._cluster_id())
        if other is not None:
            others.append(cluster)
        return other or cluster

    def _use(self, cluster: ClusterList) -> None:
        self._pool.set_brokers(cluster.endpoints)
        self._listed_at = self._clock()
        self.racks = cluster.racks
        self._endpoints = cluster.endpoints
        self._shared = cluster.shared
        self._doubtful = shared_with_fenced(cluster)
        gone = self._requests.keys() - cluster.endpoints.keys()
        cluster_id = cluster.membership.cluster_id or self._cluster_id()
        if cluster_id != self._listed_cluster:
            # What is still to come is of the former cluster's brokers.
            gone = set(self._requests)
            self._drop_second()
            self._listed_cluster = cluster_id
        for broker_id in gone:
            self._requests.pop(broker_id).cancel()
        self._slow &= cluster.endpoints.keys()

    @property
    def is_refused(self) -> bool:
        """Whether a broker refused the credentials and accepts only the former ones."""
        return self._pool.is_refused

    @property
    def refusal(self) -> str:
        """Why a broker accepts only the former credentials; "" if none does."""
        return self._former.refusal

    def reload(self, admin: KafkaAdmin, *, redial: bool = True) -> Callable[[], None]:
        """Reads new credentials; see ``Pool.reload``."""
        use = self._pool.reload(admin, redial=redial)

        def apply() -> None:
            use()
            self._admin = admin

        return apply

    async def close(self) -> None:
        """Closes all connections without waiting for pending answers."""
        pending: list[asyncio.Task[Any]] = list(self._requests.values())
        if self._second is not None:
            pending.append(self._second)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        self._requests, self._second = {}, None
        await self._pool.close()

    async def _ask(self, brokers: Collection[int], deadline: float) -> dict[int, Reading | Failure]:
        now = asyncio.get_running_loop().time
        shared = {key: self._shared[key] for key in brokers if key in self._shared}
        brokers = [key for key in brokers if key not in shared]
        done = [key for key in brokers if key in self._requests and self._requests[key].done()]
        late = {broker_id: self._requests.pop(broker_id).result() for broker_id in done}
        # Ask again even if a late answer is there, since it is old; see _answer.
        new = [broker_id for broker_id in brokers if broker_id not in self._requests]
        for broker_id in new:
            patience_s = SLOW_ANSWER_TIMEOUT_S if broker_id in self._slow else ANSWER_TIMEOUT_S
            self._requests[broker_id] = asyncio.create_task(
                self._read(broker_id, max(deadline, now() + patience_s)),
                name=f"log dirs of broker {broker_id}",
            )
        # Wait only for the new requests, so that a broker that hangs delays one poll, not the next.
        if new:
            await asyncio.wait(
                [self._requests[broker_id] for broker_id in new], timeout=max(0.0, deadline - now())
            )
        answers = {broker_id: self._answer(broker_id, late.get(broker_id)) for broker_id in brokers}
        self._unreached -= answers.keys()
        failed = (key for key, each in answers.items() if isinstance(each, Failure))
        self._unreached.update(failed, shared)
        return {**answers, **shared}

    def _answer(self, broker_id: int, late: Reading | Failure | None) -> Reading | Failure:
        answer: Reading | Failure
        if self._requests[broker_id].done():
            answer = self._requests.pop(broker_id).result()
        else:
            answer = Failure(FailureKind.TIMEOUT, f"broker {broker_id}: no answer in time yet")
        if isinstance(answer, Reading):
            return answer
        # A broker that is slower than every deadline is seen by its late answers.
        if isinstance(late, Reading):
            return late
        endpoint = self._endpoints.get(broker_id)
        return answer if endpoint is None else self._throttles.explained(endpoint, answer)

    async def _read(self, broker_id: int, deadline: float) -> Reading | Failure:
        now = asyncio.get_running_loop().time
        # A reading counts from when the broker was asked, so a late one is old.
        asked_at, read_at = now(), self._clock()
        doubt = self._doubtful.get(broker_id)
        answer = await self._pool.call(
            broker_id,
            _DESCRIBE_LOG_DIRS,
            deadline,
            cluster_id=self._listed_cluster,
            is_doubtful=doubt is not None,
        )
        if isinstance(answer, Failure):
            if doubt is not None and answer.kind is FailureKind.SHARED_ADDRESS:
                return doubt
            if answer.kind is FailureKind.TIMEOUT:
                self._slow.add(broker_id)
            return answer
        if now() < asked_at + ANSWER_TIMEOUT_S:
            self._slow.discard(broker_id)
        return read_log_dirs(answer, broker_id, read_at, self._pool.principal)
