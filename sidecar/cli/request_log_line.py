"""Waits until the line of a request of this command is in a request log.

A broker at DEBUG need not write the lines: the appender may have a threshold or a filter, or write
to another file. The command therefore sends requests with a client-id that nobody else has, and
reads the file until the line of one of them is there, for at most ``WAIT_S``. It repeats the
request, because an appender may write only when its buffer is full.

Example: brokers 0 and 1 are asked for a configuration, and the file is broker 1's. A second later
it has a DESCRIBE_CONFIGS of ``throttle-sidecar-request-log-5e1f09aa`` for the resource "1".
"""

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from sidecar.requestlog.layout import Layout
from sidecar.requestlog.line import Line, parse
from sidecar.requestlog.rejected import RejectedKind
from sidecar.requestlog.tail import Tail, follow

WAIT_S: Final = 15.0
SEND_S: Final = 1.0
"""How often the request is sent."""
_DESCRIBE_CONFIGS: Final = 32


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen in the file.

    Attributes:
        is_there: whether the line of a request of this command is there.
        text: a sentence about it, without a full stop.
    """

    is_there: bool
    text: str


class OwnLine:
    """The line of a request of this command.

    Args:
        file: the request log.
        client_id: the client-id of the requests.
        pattern: the pattern of the log's layout; None if it is not known.
    """

    def __init__(self, file: Path, client_id: str, pattern: str | None = None) -> None:
        self._file = file
        self._client_id = client_id
        self._layout = Layout(pattern)
        self._has_lines = False
        self._has_requests = False
        self._obstacle = ""

    async def wait(self, send: Callable[[], Awaitable[object]], ended: asyncio.Event) -> Seen:
        """Send requests and wait for the line of one of them.

        Args:
            send: sends a DescribeConfigs about itself to each broker.
            ended: an event that ends the wait early.
        """
        now = asyncio.get_running_loop().time
        send_at = now()
        try:
            async with asyncio.timeout(WAIT_S), aclosing(follow(Tail(self._file))) as reads:
                # The first read skips the lines that the file already has.
                async for read in reads:
                    self._obstacle = read.failure or ("" if read.there else "it does not exist")
                    for line in read.lines:
                        if (text := self._found(line)) is not None:
                            return Seen(is_there=True, text=text)
                    if ended.is_set():
                        break
                    if now() >= send_at:
                        await send()
                        send_at = now() + SEND_S
        except TimeoutError:
            pass
        return Seen(is_there=False, text=self._why_not())

    def _found(self, text: bytes) -> str | None:
        """Return a sentence if the line is a request of this command's."""
        self._has_lines = True
        line = parse(text, self._layout)
        if isinstance(line, Line):
            self._has_requests = True
            # A request for the list of brokers may go to any broker.
            if line.client_id != self._client_id or line.api_key != _DESCRIBE_CONFIGS:
                return None
            return f"the line of this command's request to {_broker_of(line)} is in {self._file}"
        if line.kind is RejectedKind.OTHER or self._client_id.encode() not in text:
            return None
        return (
            f"the line of this command's request is in {self._file}, but it can't be read"
            f" ({line.kind}: {line.message}); throttle-sidecar request-log check"
            f" {shlex.quote(str(self._file))} shows what can be read"
        )

    def _why_not(self) -> str:
        if self._obstacle:
            return f"{self._file} can't be read: {self._obstacle}"
        if self._has_requests:
            return (
                f"{self._file} got requests, but none of this command: the file may be another"
                " broker's"
            )
        if self._has_lines:
            return (
                f"{self._file} got lines, but no request: the broker may log requests to another"
                " file"
            )
        return (
            f"nothing was written to {self._file}: the appender of kafka.request.logger may have a"
            " threshold or a filter that drops DEBUG, or write to another file"
        )


class _Resource(msgspec.Struct, rename="camel"):
    resource_name: str


class _Described(msgspec.Struct):
    resources: list[_Resource]


_DESCRIBED: Final = msgspec.json.Decoder(_Described)


def _broker_of(line: Line) -> str:
    try:
        resources = _DESCRIBED.decode(line.body.request).resources
    except ValueError:
        return "a broker"
    return f"broker {resources[0].resource_name}" if resources else "a broker"
