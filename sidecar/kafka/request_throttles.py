"""Brokers that throttle the sidecar itself by a request quota (``request_percentage``, KIP-124).

Such a broker answers at once with a throttle time, and does not read the next request before it is
over (KIP-219). So the answer says why the next one is late. Failures within a minute of a throttled
answer name the quota, and how to exempt the sidecar.

Example: an answer has ``throttle_time_ms`` 900. A second later the sidecar asks again with a
deadline of 1 s, gets no answer in time, and says that the broker throttles it by 0.9 s.
"""

import logging
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from sidecar.settings import HostPort, KafkaAdmin
from sidecar.volumes import Failure, FailureKind

_log = logging.getLogger(__name__)

_RECENT_S: Final = 60.0
"""How long after its last throttled answer a broker counts as one that throttles."""
_ENOUGH: Final = 10_000
"""100 threads: Kafka has no value for "unlimited"."""


@dataclass(frozen=True, slots=True)
class _Throttle:
    """The last throttled answer of a broker: its throttle time, and when it came."""

    seconds: float
    at: float


class RequestThrottles:
    """The throttles of brokers, by their addresses; none at first.

    Attributes:
        total_s: the sum of all throttle times, seconds.
    """

    def __init__(self, clock: Callable[[], float], exemption: Callable[[], str]) -> None:
        """Start without throttles.

        Args:
            clock: steady seconds.
            exemption: how to exempt the sidecar, with {address} for the broker's address.
        """
        self.total_s = 0.0
        self._clock = clock
        self._exemption = exemption
        self._last: dict[HostPort, _Throttle] = {}

    def note(self, address: HostPort, throttle_ms: int) -> None:
        """Note an answer and its throttle time; 0 is no throttle."""
        now, last = self._clock(), self._last.get(address)
        if throttle_ms > 0:
            self.total_s += throttle_ms / 1000
            self._last[address] = _Throttle(throttle_ms / 1000, now)
            if last is None:
                _log.warning("%s %s", address, self._described(address))
        elif last is not None and now - last.at >= _RECENT_S:
            del self._last[address]
            _log.info("%s no longer throttles this sidecar", address)

    def explained(self, address: HostPort | None, failure: Failure) -> Failure:
        """The failure, with the throttle that explains it.

        Args:
            address: the broker's address; None for the request that any broker may answer.
            failure: why there is no answer.
        """
        if failure.kind is not FailureKind.TIMEOUT:
            return failure
        now = self._clock()
        for each, last in self._last.items():
            if address in {None, each} and now - last.at < _RECENT_S:
                subject = each if address is None else "the broker"
                message = f"{failure.message}; {subject} {self._described(each)}"
                return replace(failure, message=message)
        return failure

    def _described(self, address: HostPort) -> str:
        seconds = self._last[address].seconds
        remedy = self._exemption().replace("{address}", str(address))
        return (
            f"throttles this sidecar by a request quota, by {seconds:g} s after an answer; {remedy}"
        )


def exemption(admin: KafkaAdmin, principal: str) -> str:
    """The command that exempts the sidecar from request quotas, with {address} of a broker.

    Without a login, the client id is added, since all clients without one have the same user. A
    quota of user and client id has precedence over all others.

    Args:
        admin: how the sidecar connects.
        principal: the sidecar's user name, or a placeholder if only the brokers know it.
    """
    has_key = admin.ssl_keystore_location or admin.ssl_keystore_key
    if admin.security_protocol.startswith("SASL_") or (
        admin.security_protocol == "SSL" and has_key
    ):
        entities = f"--entity-type users --entity-name {shlex.quote(principal)}"
    else:
        client_id = shlex.quote(admin.client_id)
        entities = (
            "--entity-type users --entity-name ANONYMOUS --entity-type clients --entity-name "
            f"{client_id}"
        )
    return (
        f"exempt it: kafka-configs.sh --bootstrap-server {{address}} --alter {entities} "
        f"--add-config request_percentage={_ENOUGH}"
    )
