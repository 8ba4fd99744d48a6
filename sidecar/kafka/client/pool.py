"""One link per broker id, and the addresses to begin from.

The list of brokers is read from a broker that is connected, then from the configured addresses,
then from any known broker; so a cluster whose brokers were all replaced behind a stable address is
found again. Of the connected ones those that owe no answer come first, and of these the one that
answered last. Links of brokers that have left or moved are closed when the new list is known.

Example: three brokers, the first one hung. The list comes from the second a quarter of a second
late, once: from then on the second is asked first.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Self, TypeVar

from aiokafka.protocol.api import Response

from sidecar.kafka.client.connection import Dialler
from sidecar.kafka.client.first import first_success
from sidecar.kafka.client.link import Link
from sidecar.kafka.client.messages import AdminRequest
from sidecar.kafka.client.security import load_security
from sidecar.settings import HostPort, KafkaAdmin
from sidecar.volumes import Failure, FailureKind

T = TypeVar("T")

LONGEST_STAGGER_S = 0.25
STAGGER_SHARE = 0.1
"""The part of the time left for which one silent broker is waited before another is tried too."""
CONNECTED_ASKED_FIRST = 3
"""After so many connected brokers were silent the configured addresses are tried."""
CLOSE_TIMEOUT_S = 1.0

# When all fail, the most informative failure's kind is reported: a refused login is one on every
# broker, while a broker that does not answer shows little.
_INFORMATIVE = (
    FailureKind.AUTHENTICATION,
    FailureKind.AUTHORIZATION,
    FailureKind.TLS,
    FailureKind.UNSUPPORTED,
    FailureKind.PROTOCOL,
    FailureKind.BROKER,
    FailureKind.TIMEOUT,
    FailureKind.CONNECT,
)
_SHOWN_FAILURES = 3


class Pool:
    """Connections to a cluster, dialled on demand.

    Args:
        bootstrap: the configured addresses.
        dial: makes a connection to an address.
        clock: steady seconds.

    Attributes:
        principal: who we are to the brokers, as an ACL names it; "<name>" where only they know.
    """

    def __init__(
        self, bootstrap: tuple[HostPort, ...], dial: Dialler, clock: Callable[[], float]
    ) -> None:
        self.principal = "<name>"
        self._bootstrap = bootstrap
        self._dial = dial
        self._clock = clock
        self._brokers: dict[int, Link] = {}
        self._bootstrap_links: dict[HostPort, Link] = {}
        self._answered_last: Link | None = None
        self._closed = False

    @classmethod
    def of(cls, admin: KafkaAdmin, clock: Callable[[], float]) -> Self:
        """A pool with the settings' addresses and credentials.

        Raises:
            SettingsError: certificates or credentials can't be read.
        """
        pool = cls(admin.bootstrap_servers, _dialler(admin, clock), clock)
        pool.principal = _principal(admin)
        return pool

    def __repr__(self) -> str:
        return f"Pool({len(self._brokers)} brokers)"

    async def call(
        self, broker_id: int, request: AdminRequest, deadline: float
    ) -> Response | Failure:
        """The answer of one broker of the last list that was set; see ``Link.call``."""
        link = self._brokers.get(broker_id)
        if link is None:
            return Failure(FailureKind.CONNECT, f"broker {broker_id} is not a known active broker")
        return await link.call(request, deadline)

    async def call_any(
        self,
        request: AdminRequest,
        deadline: float,
        read: Callable[[Response, HostPort], T | Failure],
        subject: str = "which brokers there are",
    ) -> T | Failure:
        """The first usable answer of a broker.

        Args:
            request: one that may be repeated.
            deadline: the loop's time by which this returns.
            read: makes the result of an answer and the address it came from, or a failure, after
                which another broker is tried.
            subject: what the request reads, for the failure's message.
        """

        async def ask(link: Link) -> T | Failure:
            answer = await link.call(request, deadline)
            if isinstance(answer, Failure):
                return answer
            self._answered_last = link
            return read(answer, link.endpoint)

        left_s = deadline - asyncio.get_running_loop().time()
        attempts = (partial(ask, link) for link in self._to_ask())
        result = await first_success(attempts, min(LONGEST_STAGGER_S, STAGGER_SHARE * left_s))
        return _summary(result, subject) if isinstance(result, list) else result

    def set_brokers(self, endpoints: Mapping[int, HostPort]) -> None:
        """Set which brokers there are and where; close the links to any others."""
        brokers: dict[int, Link] = {}
        for broker_id, endpoint in endpoints.items():
            link = self._brokers.get(broker_id)
            if link is None or link.endpoint != endpoint:
                # A configured address that is this broker's own has the connection already.
                link = self._bootstrap_links.pop(endpoint, None) or self._link(endpoint)
            brokers[broker_id] = link
        retained = set(map(id, brokers.values()))
        for link in (*self._brokers.values(), *self._bootstrap_links.values()):
            if id(link) not in retained:
                link.close()
        self._brokers = brokers
        self._bootstrap_links = {}

    def reload(self, admin: KafkaAdmin) -> Callable[[], None]:
        """Reads new TLS material and credentials.

        Returns:
            What makes every connection from the next call on use them and new addresses.

        Raises:
            SettingsError: the material can't be read.
        """
        dial = _dialler(admin, self._clock)

        def apply() -> None:
            for link in self._bootstrap_links.values():
                link.close()
            self._bootstrap_links = {}
            self._bootstrap = admin.bootstrap_servers
            self._dial = dial
            self.principal = _principal(admin)
            for link in self._brokers.values():
                link.redial_with(dial)

        return apply

    async def close(self) -> None:
        """Close every connection for good and wait until the sockets are closed."""
        self._closed = True
        links = (*self._brokers.values(), *self._bootstrap_links.values())
        closing = [closed for link in links if (closed := link.close()) is not None]
        self._brokers = {}
        self._bootstrap_links = {}
        if closing:
            await asyncio.wait(closing, timeout=CLOSE_TIMEOUT_S)

    def _link(self, endpoint: HostPort) -> Link:
        link = Link(endpoint, self._dial, self._clock)
        if self._closed:
            link.close()
        return link

    def _to_ask(self) -> Iterator[Link]:
        known = list(self._brokers.values())
        connected = [link for link in known if link.usable]
        connected.sort(key=lambda link: (link.owes, link is not self._answered_last))
        del connected[CONNECTED_ASKED_FIRST:]
        yield from connected
        own = {link.endpoint: link for link in known}
        tried = set(map(id, connected))
        for endpoint in self._bootstrap:
            link = own.get(endpoint) or self._bootstrap_links.get(endpoint)
            if link is None:
                link = self._bootstrap_links[endpoint] = self._link(endpoint)
            if id(link) not in tried:
                tried.add(id(link))
                yield link
        yield from (link for link in known if id(link) not in tried)


def _dialler(admin: KafkaAdmin, clock: Callable[[], float]) -> Dialler:
    return Dialler(load_security(admin, clock), admin.client_id, clock)


def _principal(admin: KafkaAdmin) -> str:
    return admin.sasl_username or admin.sasl_oauthbearer_client_credentials_client_id or "<name>"


def _summary(failures: list[Failure], subject: str) -> Failure:
    kind = min((failure.kind for failure in failures), key=_INFORMATIVE.index)
    ordered = sorted(set(failures), key=lambda failure: _INFORMATIVE.index(failure.kind))
    more = f"; and {len(ordered) - _SHOWN_FAILURES} more" if len(ordered) > _SHOWN_FAILURES else ""
    # Addresses that failed alike are named together.
    alike: dict[str, list[str]] = {}
    for failure in ordered[:_SHOWN_FAILURES]:
        address, _, why = failure.message.partition(": ")
        alike.setdefault(why, []).append(address)
    text = "; ".join(f"{', '.join(addresses)}: {why}" for why, addresses in alike.items())
    return Failure(kind, f"no broker reported {subject}: {text}{more}")
