"""Kafka's own quota classes as a witness: traces of events through ``QuotaTraces.java``.

Another program that answers lines can be run in its place, such as ``QuotaEntities.java``.

One JVM answers any number of traces. Example: the trace "rate" over 11 samples of 1,000 ms with a
limit of 100, and the events ("record", 1500.0, 0) and ("measure", 0.0, 0): "", "150.0".
"""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from sidecar.demo.cache import cache_folder
from sidecar.demo.jars import DEFAULT_VERSION, jars, java
from sidecar.quotas.rate import QuotaWindow
from tests.support.java import compiled

_PROGRAM: Final = "QuotaTraces"
_END_TIMEOUT_S: Final = 10.0

Event = tuple[str, float, int]
"""What is done, with how much, at which epoch millisecond."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Events that happen to one quota.

    Attributes:
        kind: "rate", "mutations" or "request".
        window: of the quota; whole seconds for all but "rate".
        limit: that it begins with.
        events: in their order; "limit" sets another one.
    """

    kind: str
    window: QuotaWindow
    limit: float
    events: Sequence[Event]

    def lines(self) -> str:
        """The trace as the program reads it."""
        first = f"{self.kind} {self.window.samples} {self.window.window_ms} {self.limit!r}"
        rest = (f"{word} {amount!r} {now_ms}" for word, amount, now_ms in self.events)
        return "\n".join((first, *rest, "end", ""))


class KafkaQuotas:
    """The JVM that runs traces, from ``start`` to exit of its context."""

    def __init__(self, words: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )

    @classmethod
    async def start(cls, program: str = _PROGRAM) -> Self:
        """Starts with the classes of the default version.

        Args:
            program: a Java program of ours that answers lines.

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

    def run(self, trace: Trace) -> list[str]:
        """What Kafka's classes answer to each event."""
        return self.ask(trace.lines(), len(trace.events))

    def ask(self, lines: str, answers: int) -> list[str]:
        """So many lines of answers to these lines, which end with "end"."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(lines)
        self._process.stdin.flush()
        output = [self._process.stdout.readline() for _ in range(answers)]
        assert all(output), "the program ended; its reason is in standard error"
        return [answer.rstrip("\n") for answer in output]

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
