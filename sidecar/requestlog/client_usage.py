"""What each client used, summed from the lines of one node's request log, in bounded memory.

For each user and client-id, ``Usage`` sums the requests, the request handlers' time that they took
(KIP-124), their throttle times, and the partitions that they created and deleted (KIP-599). All
sums begin at zero when the sidecar starts.

Request time is a lower bound, because the network threads' time is not in the log. If a broker
forwards a request to the controller, both charge it. On a node that is both, such a request has two
lines. A forwarded line, which the controller writes, therefore counts for mutations only, and no
other line does. A CREATE_PARTITIONS contains the new total and a DELETE_TOPICS no number. Both need
the previous size of the topic, from an earlier line.

Example: a broker's lines of alice's client "etl" took 0.258 and 0.312 ms, so ``request_ms`` is 0.57
and ``requests`` is 2. The controller's line of her CREATE_TOPICS with 12 partitions makes
``mutations`` 12. Her CREATE_PARTITIONS to 24, refused with error 89, makes ``mutations_refused``
12.

If there are more than ``most_clients``, the client that was seen least recently is removed, and its
sums are added to ``evicted``. Long names are cut. Measured: 10,000 clients take 4 MB (9 MB with
names of 256 characters), and 20,000 topics take 2 MB.

Source: KIP-124 and KIP-599; Kafka's ReplicationControlManager for the charges.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from sidecar.requestlog.exempt import is_exempt
from sidecar.requestlog.line import Line
from sidecar.requestlog.mutation_counts import ABOUT_TOPICS, TopicSizes
from sidecar.requestlog.rejected import Rejected, RejectedKind

_RECENT: Final = 1000
"""The newest requests; their numbers are halved when there are more."""
_FEWEST_REJECTED: Final = 10
"""A few lines are torn by a crash or a full disk."""

Client = tuple[str, str]
"""User and client-id, "" for a client without one."""


@dataclass(slots=True)
class ClientUsage:
    """The sums of one client.

    Attributes:
        requests: requests that the broker itself answered.
        request_ms: request handlers' time charged to the request quota; a lower bound.
        exempt_ms: request handlers' time of exempt requests.
        throttled: requests that got a throttle time.
        throttle_ms: the sum of these throttle times.
        longest_throttle_ms: the longest of them.
        mutations: partitions created and deleted, as charged.
        mutations_refused: partitions that the quota refused.
        mutations_unknown: topics whose number of partitions is not known; neither sum has them.
    """

    requests: int = 0
    request_ms: float = 0.0
    exempt_ms: float = 0.0
    throttled: int = 0
    throttle_ms: int = 0
    longest_throttle_ms: int = 0
    mutations: int = 0
    mutations_refused: int = 0
    mutations_unknown: int = 0

    def add(self, other: "ClientUsage") -> None:
        """Adds another client's sums to these."""
        self.requests += other.requests
        self.request_ms += other.request_ms
        self.exempt_ms += other.exempt_ms
        self.throttled += other.throttled
        self.throttle_ms += other.throttle_ms
        self.longest_throttle_ms = max(self.longest_throttle_ms, other.longest_throttle_ms)
        self.mutations += other.mutations
        self.mutations_refused += other.mutations_refused
        self.mutations_unknown += other.mutations_unknown


@dataclass(slots=True)
class Usage:
    """The sums of all clients.

    Attributes:
        most_clients: the number of pairs of user and client-id that are remembered, > 0.
        most_topics: the number of topics whose sizes are remembered, > 0.
        longest_name: the characters kept of a user's, client's or topic's name, > 0. Names that
            have these characters in common are counted together.
        evicted: the sums of clients that were removed to make room.
        rejected: the number of lines that could not be read, by kind.
        unread: requests about topics whose line could be read, but not the topics in it.
    """

    most_clients: int = 10_000
    most_topics: int = 20_000
    longest_name: int = 256
    evicted: ClientUsage = field(default_factory=ClientUsage, init=False)
    rejected: dict[RejectedKind, int] = field(
        default_factory=lambda: dict.fromkeys(RejectedKind, 0), init=False
    )
    unread: int = field(default=0, init=False)
    _recent_read: int = field(default=0, init=False)
    _recent_rejected: int = field(default=0, init=False)
    _clients: dict[Client, ClientUsage] = field(default_factory=dict, init=False)
    _sizes: TopicSizes = field(init=False)

    def __post_init__(self) -> None:
        self._sizes = TopicSizes(self.most_topics, self.longest_name)

    def clients(self) -> Mapping[Client, ClientUsage]:
        """A copy of the current sums; the least recently seen client first."""
        return {client: replace(usage) for client, usage in self._clients.items()}

    @property
    def is_unreadable(self) -> bool:
        """Whether most of the newest requests in the log could not be read."""
        return self._recent_rejected > max(self._recent_read, _FEWEST_REJECTED)

    def record(self, parsed: Line | Rejected) -> None:
        """Counts the result of ``parse``."""
        if self._recent_read + self._recent_rejected >= _RECENT:
            self._recent_read //= 2
            self._recent_rejected //= 2
        if isinstance(parsed, Rejected):
            self.rejected[parsed.kind] += 1
            # A log may have other loggers' lines too.
            self._recent_rejected += parsed.kind is not RejectedKind.OTHER
            return
        self._recent_read += 1
        usage = self._usage_of(parsed)
        if parsed.is_forwarded:
            if parsed.api_key in ABOUT_TOPICS:
                self._record_mutations(usage, parsed)
            return
        usage.requests += 1
        if is_exempt(parsed):
            usage.exempt_ms += parsed.local_ms
        else:
            usage.request_ms += parsed.local_ms
        throttle_ms = parsed.throttle_ms
        if throttle_ms > 0:
            usage.throttled += 1
            usage.throttle_ms += throttle_ms
            usage.longest_throttle_ms = max(usage.longest_throttle_ms, throttle_ms)

    def _usage_of(self, line: Line) -> ClientUsage:
        most = self.longest_name
        client = (line.user[:most], line.client_id[:most])
        usage = self._clients.pop(client, None)
        if usage is None:
            usage = ClientUsage()
            if len(self._clients) >= self.most_clients:
                self.evicted.add(self._clients.pop(next(iter(self._clients))))
        # A dict keeps the order of insertion, so its first client is the least recently seen.
        self._clients[client] = usage
        return usage

    def _record_mutations(self, usage: ClientUsage, line: Line) -> None:
        mutations = self._sizes.mutations(line)
        if mutations is None:
            self.unread += 1
        for mutation in mutations or ():
            if mutation.partitions is None:
                usage.mutations_unknown += 1
            elif mutation.refused:
                usage.mutations_refused += mutation.partitions
            else:
                usage.mutations += mutation.partitions
