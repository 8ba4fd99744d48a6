"""Parses the headers in which a broker's callback reports its state.

- ``Throttle-Reader: broker=1; emergency=false; throttled_clients=12``, in exactly this form and
  order, with optional white space around the semicolons. ``; fault=not-asked`` and members of later
  versions may follow.
- With an authorizer, ``Throttle-Refused: new_connection=12; stop_line=0; release=3;
  clients=alice/etl-1:10,bob/:2``: refused requests by reason, and by principal and client-id, which
  are percent-encoded. ``; logged=true`` follows if the broker's log has an error for each.
- While a throttle is only for some topics, ``Throttle-Scope: clients=alice/etl-1:2000000``: the
  clients in scope, with the bytes that each has written during the throttle.
- With reserves, ``Throttle-Reserve: %2Fdata0:1073741824,%2Fdata1:0``: the bytes of the reserve in
  each log dir, whose path is percent-encoded; 0 after the broker started from it.
- ``Throttle-Kafka: 4.3.1``: the broker's version of Kafka.
- ``Throttle-Jar: 0.1.0``: the version of the callback's jar.
- A callback that uses another sidecar sends ``Throttle-Broker: 1`` alone.

Names are cut to 65 characters, since a broker cuts them to 64 and an ellipsis, and paths to 255.
Any other form is ignored, because a wrong report must not deprive a reader of the factor.

Example: ``broker=01; emergency=false; throttled_clients=0`` is ignored, since node ids have no
leading zeros.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote

from sidecar.throttle.readers import Refusals, RefusedClient, Report, Reserve, ScopedClient

_REPORT: Final = re.compile(
    r"broker=(0|[1-9][0-9]{0,9})[ \t]*;[ \t]*emergency=(true|false)[ \t]*;[ \t]*"
    r"throttled_clients=(0|[1-9][0-9]{0,9})((?:[ \t]*;[ \t]*[a-z_]+=[a-z0-9-]+)*)"
)

_NODE_ID: Final = re.compile(r"0|[1-9][0-9]{0,9}")

_MORE: Final = re.compile(r"([a-z_]+)=([a-z0-9-]+)")

_LONGEST: Final = 200
"""The most characters of a report; the longest one now has 110."""

_REFUSALS: Final = re.compile(
    r"new_connection=([0-9]{1,18}); stop_line=([0-9]{1,18}); release=([0-9]{1,18})"
    r"(?:; clients=([A-Za-z0-9._%/:,-]+))?((?:; [a-z_]+=[^;]*)*)"
)

_SCOPE: Final = re.compile(r"clients=([A-Za-z0-9._%/:,-]+)((?:; [a-z_]+=[^;]*)*)")

_CLIENT: Final = re.compile(r"([A-Za-z0-9._%-]*)/([A-Za-z0-9._%-]*):([0-9]{1,18})")

_RESERVE: Final = re.compile(r"([A-Za-z0-9._%-]+):([0-9]{1,18})")

_VERSION: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){2}[A-Za-z0-9.-]{0,40}")

_MOST_CLIENTS: Final = 10

_MOST_IN_SCOPE: Final = 50

_MOST_LOG_DIRS: Final = 100

_LONGEST_REFUSALS: Final = 20_000
"""The most characters: ten clients with two names of 64 characters, encoded as up to 12 each."""

_LONGEST_NAME: Final = 65
_LONGEST_PATH: Final = 255
"""Anyone can send a report, and the sidecar remembers a thousand."""

_INT_MAX: Final = 2**31 - 1
"""The largest node id of Kafka, and the largest size in Java."""


def parse_report(headers: Mapping[str, str]) -> Report | None:
    """Parse a callback's report, of headers by their names in small letters.

    Returns:
        None when it has another form.
    """
    text = headers.get("throttle-reader", "")
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
        _refusals(headers.get("throttle-refused", "")),
        tuple(ScopedClient(*each) for each in _in_scope(headers.get("throttle-scope", ""))),
        _version(headers.get("throttle-kafka", "")),
        _version(headers.get("throttle-jar", "")),
        tuple(_reserves(headers.get("throttle-reserve", ""))),
    )


def parse_broker(text: str) -> int | None:
    """Parse the node id in the header Throttle-Broker; None when it is not a node id."""
    return int(text) if _NODE_ID.fullmatch(text) and int(text) <= _INT_MAX else None


def _version(text: str) -> str | None:
    return text if _VERSION.fullmatch(text) else None


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


def _reserves(text: str) -> Iterator[Reserve]:
    if len(text) <= _LONGEST_REFUSALS:
        for each in map(_RESERVE.fullmatch, text.split(",")[:_MOST_LOG_DIRS]):
            if each:
                yield Reserve(unquote(each[1])[:_LONGEST_PATH], int(each[2]))


def _clients(text: str, most: int) -> Iterator[tuple[str, str, int]]:
    """Parse principal, client-id and number of the first clients; skip members of another form."""
    for each in map(_CLIENT.fullmatch, text.split(",")[:most]):
        if each:
            principal, client_id = (unquote(text)[:_LONGEST_NAME] for text in each.groups()[:2])
            yield principal, client_id, int(each[3])
