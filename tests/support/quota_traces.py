"""Kafka's own quota classes as a witness: traces of events through ``QuotaTraces.java``.

Another program that answers lines can be run in its place, such as ``QuotaEntities.java``.

One JVM answers any number of traces. Example: the trace "rate" over 11 samples of 1,000 ms with a
limit of 100, and the events "record" and "measure" with 1500.0 and 0.0, both at 0 ms: 150.0.
"""

import os
import struct
import subprocess
import sys
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from kafka_lab.jars import DEFAULT_VERSION, jars, java
from sidecar.formats.cache_folder import cache_folder
from sidecar.quotas.rate import QuotaWindow
from tests.support.java import compiled

_PROGRAM: Final = "QuotaTraces"
_END_TIMEOUT_S: Final = 10.0
_ENDED: Final = "the program ended; its reason is in standard error"

# As the program has them: one byte each.
_KINDS: Final = {"rate": b"r", "tokens": b"t", "mutations": b"m", "request": b"q"}
_WORDS: Final = {
    "bounded": "b",
    "checked": "c",
    "limit": "l",
    "measure": "m",
    "percent": "%",
    "permissive": "p",
    "record": "r",
    "strict": "s",
    "throttle": "t",
    "window": "w",
}

assert sys.byteorder == "little", "arrays are sent as they lie in memory"


@dataclass(frozen=True, slots=True)
class Trace:
    """Events that happen to one quota: what is done, with how much, at which epoch millisecond.

    Attributes:
        kind: "rate", "tokens", "mutations" or "request".
        window: of the quota; whole seconds for the last two.
        limit: that it begins with.
        words: what is done; "limit" sets another one.
        amounts: as many.
        times_ms: as many.
    """

    kind: str
    window: QuotaWindow
    limit: float
    words: Sequence[str]
    amounts: Sequence[float]
    times_ms: Sequence[int]

    def encoded(self) -> bytes:
        """The trace as the program reads it."""
        window, events = self.window, len(self.words)
        header = (_KINDS[self.kind], window.samples, window.window_ms, events, self.limit)
        words = "".join(map(_WORDS.__getitem__, self.words)).encode("ascii")
        columns = (words, array("d", self.amounts).tobytes(), array("q", self.times_ms).tobytes())
        return b"".join((struct.pack("<ciiid", *header), *columns))

    def without(self, start: int, end: int) -> Self:
        """The trace as if some of its events had not happened."""
        columns = (self.words, self.amounts, self.times_ms)
        words, amounts, times_ms = ([*column[:start], *column[end:]] for column in columns)
        return replace(self, words=words, amounts=amounts, times_ms=times_ms)

    def __str__(self) -> str:
        """One event a line, with times since the first one."""
        first_ms = self.times_ms[0]
        events = zip(self.words, self.amounts, self.times_ms, strict=True)
        lines = (
            f"  {now_ms - first_ms:+d} ms {word} {amount!r}" for word, amount, now_ms in events
        )
        return "\n".join((f"{self.kind}, {self.window}, limit {self.limit!r}:", *lines))


@dataclass(frozen=True, slots=True)
class Answers:
    """What the events of a trace gave, bit for bit: what Kafka has as doubles, and as longs."""

    doubles: bytes
    longs: bytes

    @classmethod
    def of(cls, doubles: Sequence[float], longs: Sequence[int]) -> Self:
        """The same answers, each kind in the order of the events."""
        return cls(array("d", doubles).tobytes(), array("q", longs).tobytes())

    def __str__(self) -> str:
        return " ".join(map(repr, (*array("d", self.doubles), *array("q", self.longs))))


def shortened(trace: Trace, differs: Callable[[Trace], bool]) -> Trace:
    """A part of a trace that still differs, with few events that don't matter.

    The first one stays: it says when the quota begins.
    """
    size = len(trace.words)
    while size > 1:
        size //= 2
        for start in range(len(trace.words) - size, 0, -size):
            part = trace.without(start, start + size)
            if differs(part):
                trace = part
    return trace


class KafkaQuotas:
    """The JVM that runs traces, from ``start`` to exit of its context."""

    def __init__(self, words: Sequence[str]) -> None:
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    @classmethod
    async def start(cls, program: str = _PROGRAM) -> Self:
        """Starts with the classes of the default version.

        Args:
            program: a Java program of ours; one that answers lines serves ``ask`` alone.

        Raises:
            ClusterError: they are not to be had, or the program is not compiled.
        """
        libraries = await jars(DEFAULT_VERSION, cache_folder(os.environ))
        return cls.running(program, await compiled(program, libraries), libraries)

    @classmethod
    def running(cls, program: str, classes: Path, libraries: Path) -> Self:
        """A program that is compiled, with Kafka's classes from the libraries' jars."""
        options = ["-Xmx256m", "-Xshare:auto", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        classpath = f"{classes}:{libraries}/*"
        return cls([java(os.environ), *options, "-Dlog4j2.level=OFF", "-cp", classpath, program])

    def send(self, trace: Trace) -> None:
        """Runs a trace; ``receive`` has to follow."""
        self._write(trace.encoded())

    def receive(self) -> Answers:
        """What Kafka's classes answered to the trace that was sent."""
        doubles, longs = struct.unpack("<ii", self._read(8))
        return Answers(self._read(8 * doubles), self._read(8 * longs))

    def ask(self, lines: str, answers: int) -> list[str]:
        """So many lines of answers to these lines, which end with "end"."""
        self._write(lines.encode())
        assert self._process.stdout is not None
        output = [self._process.stdout.readline() for _ in range(answers)]
        assert all(output), _ENDED
        return [answer.decode().rstrip("\n") for answer in output]

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def _read(self, size: int) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(size)
        assert size == len(data), _ENDED
        return data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # A test that failed amid a trace may have left it unread: it is not asked to end.
        self._process.kill()
        self._process.wait(_END_TIMEOUT_S)
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                pipe.close()
            except BrokenPipeError:
                continue
