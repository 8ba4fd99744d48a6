"""A small HTTP client that sends requests to many sidecars at once.

Each request has a thread of its own, and all have the same deadline. The client follows no
redirect and reads at most 1 MiB of an answer. It sends the token only with requests that need it,
and never prints it.

Example: one of three sidecars hangs. After 5 s there are two answers and one "no answer within
5 s".
"""

import contextlib
import json
import queue
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final
from urllib.parse import urlsplit

from sidecar.errors import SettingsError
from sidecar.http import AnswerCutError, AnswerTooLongError, HttpError, request_blocking
from sidecar.tls import TlsFiles, client_context

DEADLINE_S: Final = 5.0
"""A sidecar answers within milliseconds. An operator does not wait longer for one that hangs."""

DEFAULT_PORT: Final = 7070

_LONGEST_ANSWER: Final = 1 << 20
_WANTS_ONE: Final = (
    "a change needs the sidecar's token: name its file by --token-file FILE or SIDECAR_TOKEN_FILE"
)
_HAS_ANOTHER: Final = (
    "the sidecar has another token than the file of --token-file, or of SIDECAR_TOKEN_FILE"
)
_REFUSED: Final = (
    "Connection refused: nothing listens there; a sidecar's API listens where its "
    "SIDECAR_HTTP_LISTEN says"
)
_NOTHING_HERE: Final = "There is no such path: /docs lists all paths."
"""``sidecar.api.problems.NOTHING_HERE``, without what importing that takes."""
_NO_API: Final = (
    "the API is not there, but where the sidecar's SIDECAR_HTTP_LISTEN says: is this the port of "
    "its metrics (SIDECAR_METRICS_LISTEN)?"
)
_HINTS: Final = {
    "http": "; does it use TLS? Then write https://",
    # With TLS 1.3, a server that refuses the client's certificate only closes the connection.
    "https": "; did CAs that it trusts sign the certificate of this client?",
}
"""What may be wrong if the answer is cut or missing."""
_LOOPBACK: Final = ("localhost", "::1")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a sidecar listens.

    Attributes:
        scheme: "http" or "https".
        host: name or IP address; an IPv6 address has no brackets.
        port: 1 to 65535.
        path: the prefix before /v1 if the sidecar is behind a proxy; else "".
        tls: the files for https.
    """

    scheme: str
    host: str
    port: int
    path: str = ""
    tls: TlsFiles = field(default_factory=TlsFiles)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"

    @property
    def exposes(self) -> bool:
        """Whether requests cross a network unencrypted."""
        local = self.host in _LOOPBACK or self.host.startswith("127.")
        return self.scheme == "http" and not local

    @property
    def ssl_context(self) -> ssl.SSLContext | None:
        """What to connect with; raises SettingsError if a file can't be used."""
        return _context(self.tls) if self.scheme == "https" else None


@dataclass(frozen=True, slots=True)
class Request:
    """One request."""

    method: str
    path: str
    body: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A sidecar's answer.

    Attributes:
        address: the sidecar's address.
        documents: one for each request that was answered.
        problem: one line that says why a request failed; None if none failed.
        reached: whether a sidecar answered, even if it rejected the request.
    """

    address: Address
    documents: tuple[Mapping[str, object], ...] = ()
    problem: str | None = None
    reached: bool = True


def parse_address(text: str, default_port: int = DEFAULT_PORT) -> Address:
    """Parse ``host``, ``host:port`` or a URL.

    Args:
        text: the address.
        default_port: the port where the text is only a host.

    Raises:
        ValueError: the text is none of these. The message repeats no user name or password.
    """
    if "@" in text:
        raise ValueError("a URL with a user or a password; the token comes from --token-file")
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("not host:port or a URL: its host or port is not valid") from None
    if parts.scheme not in {"http", "https"} or not host or parts.query or parts.fragment:
        raise ValueError(f"{text!r} is not host:port or an http(s) URL")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(f"{text!r} has characters that a URL can't have")
    if port is None:
        port = default_port if "://" not in text else {"http": 80, "https": 443}[parts.scheme]
    if port == 0:
        raise ValueError(f"{text!r} has port 0, on which no server can listen")
    return Address(parts.scheme, host, port, parts.path.rstrip("/"))


def request_all(
    addresses: Sequence[Address],
    requests: Sequence[Request],
    token: str | None = None,
    deadline_s: float = DEADLINE_S,
) -> list[Answer]:
    """Send requests to all sidecars at once.

    Args:
        addresses: the sidecars.
        requests: sent to each sidecar in this order, until one fails.
        token: sent with every request; None sends no token.
        deadline_s: one deadline for all sidecars, in seconds.

    Returns:
        One answer for each address, in the same order.
    """
    ends_at = time.monotonic() + deadline_s
    answered: queue.SimpleQueue[tuple[int, Answer]] = queue.SimpleQueue()

    def query_one(number: int) -> None:
        # An answer after the deadline counts as no answer.
        with contextlib.suppress(TimeoutError):
            answered.put((number, _send(addresses[number], requests, token, ends_at)))

    for number in range(len(addresses)):
        # Daemon threads: one that hangs in a name lookup or a slow answer does not delay the exit.
        threading.Thread(target=query_one, args=(number,), daemon=True).start()
    late = f"no answer within {deadline_s:g} s"
    if any(request.method != "GET" for request in requests):
        late += "; the change may apply all the same"
    answers = [_unreached(address, (), late) for address in addresses]
    for _ in addresses:
        try:
            number, answer = answered.get(timeout=max(0.0, ends_at - time.monotonic()))
        except queue.Empty:
            break
        answers[number] = answer
    return answers


def _send(
    address: Address, requests: Sequence[Request], token: str | None, ends_at: float
) -> Answer:
    """Return one sidecar's answer.

    Raises:
        TimeoutError: the answer came too late.
    """
    documents: list[Mapping[str, object]] = []
    try:
        for request in requests:
            document, problem = _one(address, request, token, ends_at)
            if problem is not None:
                return Answer(address, tuple(documents), problem)
            documents.append(document)
    except TimeoutError:
        raise
    except ssl.SSLError as error:
        return _unreached(address, documents, f"TLS failed: {error.reason or error}")
    except OSError as error:
        why = _REFUSED if isinstance(error, ConnectionRefusedError) else error.strerror
        return _unreached(address, documents, why or str(error))
    except (AnswerCutError, SettingsError) as error:
        hint = _HINTS[address.scheme] if isinstance(error, AnswerCutError) else ""
        return _unreached(address, documents, f"{error}{hint}")
    except (HttpError, ValueError, RecursionError):
        return _unreached(address, documents, "the server at this address is not a sidecar")
    return Answer(address, tuple(documents))


def _unreached(address: Address, documents: Sequence[Mapping[str, object]], problem: str) -> Answer:
    return Answer(address, tuple(documents), problem, reached=False)


def _one(
    address: Address, request: Request, token: str | None, ends_at: float
) -> tuple[Mapping[str, object], str | None]:
    """Return the answer to one request, and the problem with it, if any."""
    headers = {"Accept": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    body = b""
    if request.body is not None:
        body = json.dumps(request.body).encode()
        headers["Content-Type"] = "application/json"
    try:
        response = request_blocking(
            request.method,
            f"{address}{request.path}",
            headers=headers,
            deadline_s=ends_at - time.monotonic(),
            body=body,
            longest_answer=_LONGEST_ANSWER,
            ssl_context=address.ssl_context,
        )
    except AnswerTooLongError:
        return {}, "its answer is longer than 1 MiB"
    if 300 <= response.status < 400:
        return {}, f"it answered {response.status} {response.reason}, which is not followed"
    document = json.loads(response.body)
    if not isinstance(document, dict):
        raise ValueError("not an object")  # noqa: TRY004 - reported like any other foreign answer
    if not 200 <= response.status < 300:
        return {}, _problem(response.status, document, token is not None)
    return document, None


_context = cache(client_context)
"""One for all sidecars."""


def _problem(status: int, document: Mapping[str, object], has_token: bool) -> str:
    """Return the text of an application/problem+json, with the fields that were rejected."""
    detail = document.get("detail")
    if not isinstance(detail, str):
        return f"it answered {status}"
    if status == 401:
        # The answer's own text is about HTTP headers, which does not help an operator.
        return _HAS_ANOTHER if has_token else _WANTS_ONE
    if status == 404 and detail == _NOTHING_HERE:
        return _NO_API
    errors = document.get("errors")
    fields = [
        f"{each.get('field')}: {each.get('problem')}"
        for each in (errors if isinstance(errors, list) else [])
        if isinstance(each, dict)
    ]
    return " ".join([detail, "; ".join(fields)]).strip()
