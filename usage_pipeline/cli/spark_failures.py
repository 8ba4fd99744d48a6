"""Why Spark has failed: the cause in a line, and what to do about it.

Spark writes a failure in hundreds of lines, and the cause is in one of them.

Example: of "...TASK_WRITE_FAILED... Caused by: java.io.IOException: No space left on device" the
cause is "a disk is full", and what to do is to free some of it, or to name another.

Source: the words of Spark 4.2, py4j 0.10.9, Hadoop 3.4 and the JVM, as they were seen.
"""

import re
from dataclasses import dataclass
from typing import Final

_LESS: Final = "read less at a time (--since, --until)"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why Spark has failed.

    Attributes:
        cause: for a person.
        advice: what to do; "" when it is not known.
    """

    cause: str
    advice: str = ""


_KNOWN: Final = (
    (
        r"No space left on device|Disk quota exceeded",
        Trouble(
            "a disk is full",
            "free some of it: the tables are below --out, and what Spark puts aside is below"
            " SPARK_LOCAL_DIRS, by default /tmp",
        ),
    ),
    (
        r"OutOfMemoryError|GC overhead limit|insufficient memory for the Java Runtime",
        Trouble(
            "its JVM has too little memory",
            f"give it more, --conf spark.driver.memory=4g (without: 1g), or {_LESS}",
        ),
    ),
    (
        r"Python worker exited unexpectedly|MemoryError|ArrowMemoryError|malloc of size",
        Trouble(
            "a Python worker has ended, most likely for lack of memory",
            f"let fewer run at once, --master 'local[2]', or {_LESS}",
        ),
    ),
    (
        r"All masters are unresponsive|Failed to connect to master",
        Trouble("no master answers there", "see --master, and whether it is up"),
    ),
    (
        r"Permission denied|AccessControlException|Mkdirs failed to create|Read-only file system",
        Trouble(
            "it may not write there",
            "see whose the folder of --out is, and that of SPARK_LOCAL_DIRS, by default /tmp",
        ),
    ),
    (
        r"UnsupportedClassVersionError|has been compiled by a more recent version of the Java",
        Trouble(
            "this Java is too old",
            "Spark needs Java 17 or newer: set JAVA_HOME to one",
        ),
    ),
    (
        r"Py4JNetworkError|Answer from Java side is empty|ConnectionRefusedError",
        Trouble(
            "its JVM has ended",
            "it was killed, most likely for lack of memory: `dmesg` shows it; then give the machine"
            f" more, or {_LESS}",
        ),
    ),
)
"""What is known of, the more telling first."""

_ERROR: Final = re.compile(r"^(?:Caused by: |: )?((?:[\w$]+\.)*[\w$]*(?:Error|Exception)): (\S.*)")
_OURS: Final = re.compile(r"^(?:sidecar|usage_pipeline)\.\S+Error: (\S.*)", re.MULTILINE)
_WHO: Final = re.compile(
    r"^(?:\d\d/\d\d/\d\d [\d:]{8} [A-Z]+ \S+: )?\W*(?:Caused by: )?"
    r"(?:[\w.$]+(?:Error|Exception): )*"
)
"""Before what a line says: log4j's time, level and logger; classes."""
_LONGEST: Final = 300


def trouble(trace: str, said: str = "") -> Trouble:
    """What went wrong.

    Args:
        trace: of the error, Python's and Java's, with its causes.
        said: by the JVM on standard error, the end of it: where the trace knows nothing.
    """
    if ours := _OURS.findall(trace):
        return Trouble(ours[-1])
    for text in (trace, said):
        for pattern, known in _KNOWN[:-1]:
            if found := re.search(f".*(?:{pattern}).*", text):
                return Trouble(f"{known.cause} ({_cut(_bare(found[0]))})", known.advice)
    pattern, ended = _KNOWN[-1]
    if re.search(pattern, trace):
        return ended
    return Trouble(_cut(_last(trace) or _last(said) or trace.strip().split("\n")[-1]))


def _bare(line: str) -> str:
    """What a line says, without the classes that said it."""
    return _WHO.sub("", line.strip())


def _last(text: str) -> str:
    """The last error that says something: causes come last."""
    found = [match for line in text.splitlines() if (match := _ERROR.match(line))]
    return f"{found[-1][1].rpartition('.')[2]}: {found[-1][2]}" if found else ""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
