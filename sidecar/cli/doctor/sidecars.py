"""Asks running sidecars and Prometheus over HTTP. Each request has a deadline, and changes nothing.

The token is tried with an override that lacks all its fields. The sidecar checks the token first,
so the answer is 422 for the right one, 401 for a wrong one, and 403 if it has none.

Example: a sidecar that hangs has the problem "no answer within 5 s"; the others have their answers.
"""

import json
import ssl
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import quote

from sidecar.cli.doctor.facts import Alerts, NotKnown, Sidecar, TokenState
from sidecar.cli.sidecar_client import DEADLINE_S, Address, Request, request_all
from sidecar.http import HttpError, Response, failure_of, request_blocking

_TRIES: Final = 4
_APART_S: Final = 0.5
_LONGEST_ANSWER: Final = 16 << 20
_STATES: Final[Mapping[int, TokenState]] = {
    401: "refused",
    403: "not set there",
    422: "accepted",
}
_RATES: Final = (
    "max by (cluster, broker, log_dir)"
    " (max_over_time(volume:kafka_throttle_fill_bytes_per_second:5m[7d]))"
)
_FAILURES: Final = (OSError, HttpError, ValueError, LookupError, TypeError, RecursionError)


def ask_sidecars(addresses: Sequence[Address], token: str | None) -> tuple[Sidecar, ...]:
    """Ask all sidecars at once.

    Args:
        addresses: the sidecars.
        token: the token of these settings; None without one.
    """
    with ThreadPoolExecutor(max_workers=min(64, len(addresses))) as threads:
        found = list(threads.map(lambda each: _ask(each, token), addresses))
    # A sidecar may be asked at its loopback address and as one of the peers' addresses.
    return tuple({each.started or each.address: each for each in reversed(found)}.values())[::-1]


def _ask(address: Address, token: str | None) -> Sidecar:
    (decided,) = request_all([address], [Request("GET", "/v1/throttle-factor")])
    if decided.problem is not None:
        return Sidecar(str(address), decided.problem)
    if not decided.documents[0].keys() >= {"factor", "source", "generation"}:
        return Sidecar(str(address), "the server at this address is not a sidecar")
    (limits,) = request_all([address], [Request("GET", "/v1/quota-factors")])
    (brokers,) = request_all([address], [Request("GET", "/v1/brokers")])
    (relief,) = request_all([address], [Request("GET", "/v1/relief")])
    (budgets,) = request_all([address], [Request("GET", "/v1/budgets")])
    version, started, ahead_s = _running(address)
    return Sidecar(
        str(address),
        version=version,
        started=started,
        factor=decided.documents[0],
        failure=brokers.problem or _failure(brokers.documents[0]),
        limits=None if limits.problem else limits.documents[0],
        readers=_readers(address),
        relief=None if relief.problem else relief.documents[0],
        budgets=() if budgets.problem else _list(budgets.documents[0].get("budgets")),
        clock_ahead_s=ahead_s,
        token=_token(address, token),
    )


def _failure(document: Mapping[str, Any]) -> str:
    """Why the last poll failed, or a broker could not be read; "" if all is well."""
    active = [each for each in _list(document.get("brokers")) if each.get("state") == "active"]
    failures = [each.get("last_failure") for each in (document, *active)]
    return next((str(each.get("message")) for each in failures if isinstance(each, dict)), "")


def _readers(address: Address) -> tuple[Mapping[str, Any], ...] | None:
    """A sidecar's readers, asked again while one does not wait: it may be between two requests."""
    readers: tuple[Mapping[str, Any], ...] = ()
    for _ in range(_TRIES):
        (found,) = request_all([address], [Request("GET", "/v1/readers")])
        if found.problem:
            return None
        readers = _list(found.documents[0].get("readers"))
        if all(each.get("waiting") for each in readers):
            break
        time.sleep(_APART_S)
    return readers


def volumes_of(address: Address) -> tuple[Mapping[str, Any], ...]:
    """The volumes of a sidecar with their fill rates; none if it does not answer."""
    (found,) = request_all([address], [Request("GET", "/v1/volumes")])
    return () if found.problem else _list(found.documents[0].get("volumes"))


def _list(found: object) -> tuple[Mapping[str, Any], ...]:
    each = found if isinstance(found, list) else []
    return tuple(document for document in each if isinstance(document, dict))


def _running(address: Address) -> tuple[str, str, float | None]:
    """A sidecar's version, the id of its start, and how far its clock is ahead.

    They are of the API, because the metrics may have a port of their own.
    """
    began_at = time.time()
    try:
        answer = _get(f"{address}/v1/throttle-factor", address.ssl_context)
        ended_at = time.time()
        health = json.loads(_get(f"{address}/healthz", address.ssl_context).body)
        version = str(health["version"])
        sent_at = parsedate_to_datetime(answer.date).timestamp()
    except _FAILURES:
        return "", "", None
    # The ETag is W/"START-GENERATION".
    started = answer.etag.partition('"')[2].rpartition("-")[0]
    # The header has whole seconds, so on average half a second is missing.
    return version, started, sent_at + 0.5 - (began_at + ended_at) / 2


def _token(address: Address, token: str | None) -> TokenState | NotKnown:
    if token is None:
        return "not set here"
    if address.exposes:
        return NotKnown("the token is not sent unencrypted over a network")
    try:
        answer = request_blocking(
            "PUT",
            f"{address}/v1/override",
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            deadline_s=DEADLINE_S,
            body=b"{}",
            ssl_context=address.ssl_context,
        )
    except _FAILURES as error:
        return NotKnown(failure_of(error, DEADLINE_S))
    return _STATES.get(answer.status) or NotKnown(f"it answered {answer.status}")


def _get(url: str, ssl_context: ssl.SSLContext | None = None) -> Response:
    answer = request_blocking(
        "GET",
        url,
        headers={"Accept": "application/json"},
        deadline_s=DEADLINE_S,
        longest_answer=_LONGEST_ANSWER,
        ssl_context=ssl_context,
    )
    if answer.status != 200:
        raise HttpError(f"it answered {answer.status} {answer.reason}")
    return answer


def ask_prometheus(
    url: str, expected: Collection[str]
) -> tuple[Alerts | NotKnown, dict[tuple[int, str], float]]:
    """Ask Prometheus for the alerts, the sidecars that it scrapes, and rates of the last week.

    Args:
        url: its address.
        expected: the names of all alerts.

    Returns:
        What it has; (broker, log dir) -> the highest fill rate over 5 min, bytes/s, if it watches
        one cluster.
    """

    def query(expression: str) -> list[Any]:
        document = json.loads(_get(f"{url}/api/v1/query?query={quote(expression)}").body)
        return list(document["data"]["result"])

    try:
        groups = json.loads(_get(f"{url}/api/v1/rules?type=alert").body)["data"]["groups"]
        loaded = {rule["name"] for group in groups for rule in group["rules"]}
        scraped = len(query("kafka_throttle_build_info"))
        found = Alerts(frozenset(expected) - loaded, scraped)
        series = query(_RATES)
        # Which of several clusters is this one is not known.
        is_one = len({each["metric"].get("cluster") for each in series}) == 1
        rates = {
            (int(each["metric"]["broker"]), each["metric"]["log_dir"]): float(each["value"][1])
            for each in (series if is_one else ())
        }
    except _FAILURES as error:
        return NotKnown(f"Prometheus at {url}: {failure_of(error, DEADLINE_S)}"), {}
    return found, rates
