"""A pool with one link for each broker, and for the configured addresses.

The list of brokers is read from a connected broker, then from the configured addresses, and then
from any other known broker. So a cluster whose brokers were all replaced behind a stable address is
found again. Connected brokers without an outstanding answer come first, beginning with the one that
answered last. ``set_brokers`` closes the links of brokers that have left or moved.

Example: the first of three brokers hangs. The list comes from the second broker, a quarter of a
second late. From then on the second broker is asked first, without a delay.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Self, TypeVar

from aiokafka.protocol.api import Response

from sidecar.kafka.client.connection import End
from sidecar.kafka.client.dialler import Dialler
from sidecar.kafka.client.first import first_success
from sidecar.kafka.client.former_logins import FormerLogins
from sidecar.kafka.client.link import Link, Refused, Throttled, not_noted, nothing_to_read
from sidecar.kafka.client.messages import AdminRequest
from sidecar.settings import HostPort, KafkaAdmin
from sidecar.volumes import Failure, FailureKind

T = TypeVar("T")

LONGEST_STAGGER_S = 0.25
STAGGER_SHARE = 0.1
"""The share of the remaining time after which another broker is tried beside a silent one."""
CONNECTED_ASKED_FIRST = 3
"""How many connected brokers are tried before the configured addresses."""
CLOSE_TIMEOUT_S = 1.0

# If all brokers fail, the kind of the most informative failure is reported. A refused login
# concerns every broker, but a broker that does not answer says little about the others.
_INFORMATIVE = (
    FailureKind.AUTHENTICATION,
    FailureKind.AUTHORIZATION,
    FailureKind.TLS,
    FailureKind.OTHER_CLUSTER,
    FailureKind.SHARED_ADDRESS,
    FailureKind.UNSUPPORTED,
    FailureKind.PROTOCOL,
    FailureKind.BROKER,
    FailureKind.UNREADABLE_LOG_DIR,
    FailureKind.SOURCE,
    FailureKind.INCOMPLETE,
    FailureKind.UNEXPECTED,
    FailureKind.TIMEOUT,
    FailureKind.CONNECT,
)
_SHOWN_FAILURES = 3


ClusterId = Callable[[], str | None]
"""Returns the id of the known cluster; None if none is known."""


def any_cluster() -> None:
    """The default of ``ClusterId``."""


UNKNOWN_USER: Final = "<name>"
"""Stands for the sidecar's user where only the brokers know it."""


@dataclass(slots=True, eq=False, repr=False)
class Pool:
    """Connections to a cluster, dialled on demand.

    Attributes:
        bootstrap: the configured addresses.
        dial: makes a connection to an address; its clock is the pool's.
        refused: called when a broker refuses a login.
        former: follows whether brokers accept only the former credentials.
        throttled: called with each answer's throttle time.
        cluster_id: the id of the only cluster that may answer; None for any.
        principal: the sidecar's user name in ACLs; "<name>" if only the brokers know it.
    """

    bootstrap: tuple[HostPort, ...]
    dial: Dialler
    refused: Refused = nothing_to_read
    former: FormerLogins | None = None
    throttled: Throttled = not_noted
    principal: str = UNKNOWN_USER
    cluster_id: ClusterId = any_cluster
    _brokers: dict[int, Link] = field(default_factory=dict, init=False)
    _bootstrap_links: dict[HostPort, Link] = field(default_factory=dict, init=False)
    _answered_last: Link | None = field(default=None, init=False)
    _closed: bool = field(default=False, init=False)
    # Two addresses may be one, as localhost and 127.0.0.1, or two names of a load balancer.
    _shared_ends: set[End] = field(default_factory=set, init=False)

    @classmethod
    def of(
        cls,
        admin: KafkaAdmin,
        clock: Callable[[], float],
        refused: Refused = nothing_to_read,
        *,
        former: FormerLogins | None = None,
        throttled: Throttled = not_noted,
        cluster_id: ClusterId = any_cluster,
    ) -> Self:
        """Makes a pool with the addresses and credentials of the settings.

        Raises:
            SettingsError: certificates or credentials can't be read.
        """
        return cls(
            admin.bootstrap_servers,
            Dialler.of(admin, clock),
            refused,
            former=former,
            throttled=throttled,
            principal=_principal(admin),
            cluster_id=cluster_id,
        )

    @classmethod
    async def opened(cls, admin: KafkaAdmin, timeout_s: float) -> Self | Failure:
        """Like ``of``, for one call: reads the files in a thread, within a time."""
        dialler = await Dialler.read(admin, timeout_s)
        if isinstance(dialler, Failure):
            return dialler
        return cls(
            admin.bootstrap_servers,
            dialler,
            principal=_principal(admin),
            cluster_id=lambda: admin.cluster_id,
        )

    def __repr__(self) -> str:
        return f"Pool({len(self._brokers)} brokers)"

    @property
    def is_refused(self) -> bool:
        """Whether a broker refused the credentials and accepts only the former ones."""
        return any(link.refusal for link in self._links)

    @property
    def _links(self) -> tuple[Link, ...]:
        return (*self._brokers.values(), *self._bootstrap_links.values())

    async def call(
        self,
        broker_id: int,
        request: AdminRequest,
        deadline: float,
        *,
        cluster_id: str | None = None,
        is_doubtful: bool = False,
    ) -> Response | Failure:
        """Sends a request to a broker of the current list; see ``Link.call``.

        ``is_doubtful`` says that another broker may answer at its address.
        Without a ``cluster_id``, the pool's is the only cluster.
        """
        link = self._brokers.get(broker_id)
        if link is None:
            return Failure(FailureKind.CONNECT, f"broker {broker_id} is not a known active broker")
        return await link.call(
            request,
            deadline,
            cluster_id=cluster_id or self.cluster_id(),
            broker_id=broker_id,
            must_show=is_doubtful,
        )

    async def call_each(
        self, requests: Mapping[int, AdminRequest], deadline: float
    ) -> dict[int, Response | Failure]:
        """Sends each broker its request, all at once."""
        calls = (self.call(key, request, deadline) for key, request in requests.items())
        return dict(zip(requests, await asyncio.gather(*calls), strict=True))

    async def call_any(
        self,
        request: AdminRequest,
        deadline: float,
        read: Callable[[Response, HostPort], T | Failure],
        subject: str = "the list of brokers",
        *,
        others: Iterable[int] | None = None,
    ) -> T | Failure:
        """Returns the first usable answer of a broker.

        Args:
            request: a request that may be repeated.
            deadline: the loop's time by which this returns.
            read: turns an answer and its address into a result. If it returns a failure, another
                broker is tried.
            subject: what the request reads, for the failure's message.
            others: the ids of the only brokers to ask, of which the one that answered such a
                request last is left out; each is taken when it is asked. None asks any broker.
        """
        links = (
            self._links_in_order()
            if others is None
            else (self._brokers[key] for key in others if key in self._brokers)
        )
        last = None if others is None else self._answered_last

        async def ask(link: Link) -> T | Failure:
            answer = await link.call(request, deadline, cluster_id=self.cluster_id())
            if isinstance(answer, Failure):
                return answer
            self._answered_last = link
            return read(answer, link.endpoint)

        left_s = deadline - asyncio.get_running_loop().time()
        attempts = (partial(ask, link) for link in links if link is not last)
        result = await first_success(attempts, min(LONGEST_STAGGER_S, STAGGER_SHARE * left_s))
        return _summary(result, subject) if isinstance(result, list) else result

    async def call_configured(
        self, request: AdminRequest, deadline: float, patience_s: float
    ) -> dict[HostPort, Response]:
        """Sends each configured address a request, all at once.

        Args:
            request: a request that may be repeated.
            deadline: the loop's time by which requests end.
            patience_s: how long to wait for silent addresses, seconds.

        Returns:
            The answers that came in time.
        """

        async def ask(link: Link) -> Response | Failure | None:
            with suppress(TimeoutError):
                # A broker that is only slow keeps its connection.
                async with asyncio.timeout(patience_s):
                    return await link.call(request, deadline)
            return None

        links = {endpoint: self._configured(endpoint) for endpoint in self.bootstrap}
        found = await asyncio.gather(*(ask(link) for link in links.values()))
        answers = zip(links, found, strict=True)
        return {
            key: each for key, each in answers if each is not None and not isinstance(each, Failure)
        }

    def set_brokers(self, endpoints: Mapping[int, HostPort]) -> None:
        """Sets the brokers and their addresses, and closes the links to all others."""
        brokers: dict[int, Link] = {}
        for broker_id, endpoint in endpoints.items():
            link = self._brokers.get(broker_id)
            if link is None or link.endpoint != endpoint:
                # If a configured address is the broker's own, its connection is reused.
                link = self._bootstrap_links.pop(endpoint, None) or self._link(endpoint)
            brokers[broker_id] = link
        retained = set(map(id, brokers.values()))
        for link in self._links:
            if id(link) not in retained:
                link.close()
        self._brokers = brokers
        self._bootstrap_links = {}
        self._logged_in()

    def reload(self, admin: KafkaAdmin, *, redial: bool = True) -> Callable[[], None]:
        """Reads new certificates, credentials and addresses, without using them yet.

        Args:
            admin: the new settings.
            redial: whether calls make new connections at once; otherwise connections that work
                stay.

        Returns:
            A function that makes every new connection from then on use them.

        Raises:
            SettingsError: certificates or credentials can't be read.
        """
        dial = Dialler.of(admin, self.dial.clock)

        def apply() -> None:
            dial.changed_at = dial.clock()
            self.bootstrap = admin.bootstrap_servers
            self.dial = dial
            self.principal = _principal(admin)
            for link in self._links:
                link.redial_with(dial, keep=not redial)
            if redial:
                for link in self._bootstrap_links.values():
                    link.close()
                self._bootstrap_links = {}

        return apply

    async def close(self) -> None:
        """Closes every connection for good, and waits until the sockets are closed."""
        self._closed = True
        closing = [closed for link in self._links if (closed := link.close()) is not None]
        self._brokers = {}
        self._bootstrap_links = {}
        if closing:
            await asyncio.wait(closing, timeout=CLOSE_TIMEOUT_S)

    def _link(self, endpoint: HostPort) -> Link:
        link = Link(
            endpoint,
            self.dial,
            self.refused,
            logged_in=self._logged_in,
            throttled=self.throttled,
            shared_ends=self._shared_ends,
        )
        if self._closed:
            link.close()
        return link

    def _logged_in(self) -> None:
        ends = Counter(link.end for link in self._brokers.values())
        self._shared_ends.clear()
        self._shared_ends.update(end for end, links in ends.items() if end and links > 1)
        if self.former is not None:
            self.former.note(link.refusal for link in self._links)

    def _links_in_order(self) -> Iterator[Link]:
        known = list(self._brokers.values())
        connected = [link for link in known if link.usable]
        connected.sort(key=lambda link: (link.awaits_answer, link is not self._answered_last))
        del connected[CONNECTED_ASKED_FIRST:]
        yield from connected
        own = {link.endpoint: link for link in known}
        tried = set(map(id, connected))
        for endpoint in self.bootstrap:
            link = own.get(endpoint) or self._configured(endpoint)
            if id(link) not in tried:
                tried.add(id(link))
                yield link
        yield from (link for link in known if id(link) not in tried)

    def _configured(self, endpoint: HostPort) -> Link:
        link = self._bootstrap_links.get(endpoint)
        if link is None:
            link = self._bootstrap_links[endpoint] = self._link(endpoint)
        return link


def _principal(admin: KafkaAdmin) -> str:
    return (
        admin.sasl_username or admin.sasl_oauthbearer_client_credentials_client_id or UNKNOWN_USER
    )


def _summary(failures: list[Failure], subject: str) -> Failure:
    if not failures:
        return Failure(FailureKind.CONNECT, f"no other broker is known for {subject}")
    kind = min((failure.kind for failure in failures), key=_INFORMATIVE.index)
    ordered = sorted(set(failures), key=lambda failure: _INFORMATIVE.index(failure.kind))
    more = f"; and {len(ordered) - _SHOWN_FAILURES} more" if len(ordered) > _SHOWN_FAILURES else ""
    # Addresses with the same failure are listed together.
    alike: dict[str, list[str]] = {}
    for failure in ordered[:_SHOWN_FAILURES]:
        address, _, why = failure.message.partition(": ")
        alike.setdefault(why, []).append(address)
    text = "; ".join(f"{', '.join(addresses)}: {why}" for why, addresses in alike.items())
    return Failure(kind, f"no broker reported {subject}: {text}{more}")
