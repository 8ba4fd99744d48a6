"""The headers by which a broker's callback reports who it is and how it is.

``Throttle-Reader: broker=1; emergency=false; throttled_clients=12``, in exactly this form and
order, white space around the semicolons aside; ``; fault=not-asked`` and members of later versions
may follow. With an authorizer it sends ``Throttle-Refused: new_connection=12; stop_line=0;
release=3; clients=alice/etl-1:10,bob/:2`` besides: requests, by reason and by principal and
client-id, which are percent-encoded; ``; logged=true`` follows where the broker's log has an error
for each. While a throttle is for some topics alone it sends ``Throttle-Scope:
clients=alice/etl-1:2000000`` too: the clients in scope, and the bytes that each has landed in it.
Anything else is ignored: no reader may be refused the factor for its report. A callback
that follows another sidecar sends ``Throttle-Broker: 1`` alone.

Example: ``broker=01; emergency=false; throttled_clients=0`` is none, since node ids have no leading
zeros.
"""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from sidecar.throttle.readers import Refusals, RefusedClient, Report, ScopedClient

_REPORT: Final = re.compile(
    r"broker=(0|[1-9][0-9]{0,9})[ \t]*;[ \t]*emergency=(true|false)[ \t]*;[ \t]*"
    r"throttled_clients=(0|[1-9][0-9]{0,9})((?:[ \t]*;[ \t]*[a-z_]+=[a-z0-9-]+)*)"
)

_NODE_ID: Final = re.compile(r"0|[1-9][0-9]{0,9}")

_MORE: Final = re.compile(r"([a-z_]+)=([a-z0-9-]+)")

_LONGEST: Final = 200
"""Characters; the longest valid one of today has 110."""

_REFUSALS: Final = re.compile(
    r"new_connection=([0-9]{1,18}); stop_line=([0-9]{1,18}); release=([0-9]{1,18})"
    r"(?:; clients=([A-Za-z0-9._%/:,-]+))?((?:; [a-z_]+=[^;]*)*)"
)

_SCOPE: Final = re.compile(r"clients=([A-Za-z0-9._%/:,-]+)((?:; [a-z_]+=[^;]*)*)")

_CLIENT: Final = re.compile(r"([A-Za-z0-9._%-]*)/([A-Za-z0-9._%-]*):([0-9]{1,18})")

_MOST_CLIENTS: Final = 10

_MOST_IN_SCOPE: Final = 50

_LONGEST_REFUSALS: Final = 20_000
"""Characters; ten clients with two names of 64 characters, each of which may be 12."""

_INT_MAX: Final = 2**31 - 1
"""Kafka's node ids, and Java's sizes."""


def parse_report(text: str, refused: str = "", scope: str = "") -> Report | None:
    """A callback's report; None when it has another form.

    Args:
        text: of the header Throttle-Reader.
        refused: of Throttle-Refused.
        scope: of Throttle-Scope.
    """
    found = _REPORT.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        return None
    broker_id, throttled_clients = int(found[1]), int(found[3])
    if max(broker_id, throttled_clients) > _INT_MAX:
        return None
    more = dict(_MORE.findall(found[4]))
    return Report(
        broker_id,
        found[2] == "true",
        throttled_clients,
        more.get("fault"),
        _refusals(refused),
        tuple(ScopedClient(*each) for each in _in_scope(scope)),
    )


def parse_broker(text: str) -> int | None:
    """The node id of the header Throttle-Broker; None when it is none."""
    return int(text) if _NODE_ID.fullmatch(text) and int(text) <= _INT_MAX else None


def _refusals(text: str) -> Refusals | None:
    found = _REFUSALS.fullmatch(text) if len(text) <= _LONGEST_REFUSALS else None
    if found is None:
        return None
    return Refusals(
        new_connection=int(found[1]),
        stop_line=int(found[2]),
        release=int(found[3]),
        clients=tuple(RefusedClient(*each) for each in _clients(found[4] or "", _MOST_CLIENTS)),
        logged="; logged=true" in found[5],
    )


def _in_scope(text: str) -> Iterator[tuple[str, str, int]]:
    found = _SCOPE.fullmatch(text) if len(text) <= _LONGEST_REFUSALS else None
    return _clients("" if found is None else found[1], _MOST_IN_SCOPE)


def _clients(text: str, most: int) -> Iterator[tuple[str, str, int]]:
    """Principal, client-id and number of the first clients; what has another form is left out."""
    for each in map(_CLIENT.fullmatch, text.split(",")[:most]):
        if each:
            yield unquote(each[1]), unquote(each[2]), int(each[3])
