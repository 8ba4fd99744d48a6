"""The header by which a broker's callback reports who it is and how it is.

``Throttle-Reader: broker=1; emergency=false; throttled_clients=12``, in exactly this form and
order, white space around the semicolons aside; ``; fault=not-asked``, ``; refused=7`` and members
of later versions may follow. Anything else is ignored: no reader may be refused the factor for its
report.

Example: ``broker=01; emergency=false; throttled_clients=0`` is none, since node ids have no leading
zeros.
"""

import re
from typing import Final

from sidecar.throttle.readers import Report

_REPORT: Final = re.compile(
    r"broker=(0|[1-9][0-9]{0,9})[ \t]*;[ \t]*emergency=(true|false)[ \t]*;[ \t]*"
    r"throttled_clients=(0|[1-9][0-9]{0,9})((?:[ \t]*;[ \t]*[a-z_]+=[a-z0-9-]+)*)"
)

_MORE: Final = re.compile(r"([a-z_]+)=([a-z0-9-]+)")

_LONGEST: Final = 200
"""Characters; the longest valid one of today has 110."""

_COUNT: Final = re.compile(r"0|[1-9][0-9]{0,17}")

_INT_MAX: Final = 2**31 - 1
"""Kafka's node ids, and Java's sizes."""


def parse_report(text: str) -> Report | None:
    """A callback's report; None when it has another form."""
    found = _REPORT.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        return None
    broker_id, throttled_clients = int(found[1]), int(found[3])
    if max(broker_id, throttled_clients) > _INT_MAX:
        return None
    more = dict(_MORE.findall(found[4]))
    refused = _COUNT.fullmatch(more.get("refused", ""))
    return Report(
        broker_id,
        found[2] == "true",
        throttled_clients,
        more.get("fault"),
        int(refused[0]) if refused else None,
    )
