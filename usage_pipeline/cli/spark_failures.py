"""The cause of a failure of Spark, and the remedy.

Spark logs a failure in hundreds of lines, and one of them contains the cause.

Example: for "...TASK_WRITE_FAILED... Caused by: java.io.IOException: No space left on device" the
cause is "a disk is full", and the remedy is to free space or to use another disk.

Source: messages of Spark 4.2, py4j 0.10.9, Hadoop 3.4 and the JVM.
"""

import re
from dataclasses import dataclass
from typing import Final

_LESS: Final = "process fewer days at a time (--since, --until)"


@dataclass(frozen=True, slots=True)
class Trouble:
    """The cause of a failure, and the remedy, which is empty if it is unknown."""

    cause: str
    advice: str = ""


_KNOWN: Final = (
    (
        r"No space left on device|Disk quota exceeded",
        "a disk is full",
        "free space: tables are in --out, and Spark's temporary files in SPARK_LOCAL_DIRS"
        " (default /tmp)",
    ),
    (
        r"OutOfMemoryError|GC overhead limit|insufficient memory for the Java Runtime",
        "the JVM has too little memory",
        f"increase --conf spark.driver.memory=4g (default 1g), or {_LESS}",
    ),
    (
        r"Python worker exited unexpectedly|MemoryError|ArrowMemoryError|malloc of size",
        "a Python worker has ended, probably because it had too little memory",
        f"run fewer workers (--master 'local[2]'), or {_LESS}",
    ),
    (
        r"All masters are unresponsive|Failed to connect to master",
        "no Spark master answers",
        "start the master or correct --master",
    ),
    (
        r"Permission denied|AccessControlException|Mkdirs failed to create|Read-only file system",
        "Spark has no permission to write",
        "check the permissions of --out and of SPARK_LOCAL_DIRS (default /tmp)",
    ),
    (
        r"UnsupportedClassVersionError|has been compiled by a more recent version of the Java",
        "this Java is too old",
        "set JAVA_HOME to Java 17 or newer",
    ),
    (
        r"Py4JNetworkError|Answer from Java side is empty|ConnectionRefusedError",
        "the JVM has ended",
        "the system probably killed it for lack of memory (see `dmesg`): use a machine with"
        f" more memory, or {_LESS}",
    ),
)
"""Patterns of the known failures, their causes and remedies, the most specific first."""

_ERROR: Final = re.compile(r"^(?:Caused by: |: )?((?:[\w$]+\.)*[\w$]*(?:Error|Exception)): (\S.*)")
_OURS: Final = re.compile(r"^(?:sidecar|usage_pipeline)\.\S+Error: (\S.*)", re.MULTILINE)
_WHO: Final = re.compile(
    r"^(?:\d\d/\d\d/\d\d [\d:]{8} [A-Z]+ \S+: )?\W*(?:Caused by: )?"
    r"(?:[\w.$]+(?:Error|Exception): )*"
)
"""The prefix of a message: log4j's time, level and logger, and classes."""
_LONGEST: Final = 300


def trouble(trace: str, stderr: str = "") -> Trouble:
    """Return the cause of a failure.

    Args:
        trace: the traceback of Python and Java, with its causes.
        stderr: the end of the JVM's standard error, used if the traceback has no known cause.
    """
    if ours := _OURS.findall(trace):
        return Trouble(ours[-1])
    for text in (trace, stderr):
        for pattern, cause, advice in _KNOWN[:-1]:
            if match := re.search(f".*(?:{pattern}).*", text):
                return Trouble(f"{cause} ({_cut(_bare(match[0]))})", advice)
    pattern, cause, advice = _KNOWN[-1]
    if re.search(pattern, trace):
        return Trouble(cause, advice)
    return Trouble(_cut(_last(trace) or _last(stderr) or trace.strip().split("\n")[-1]))


def _bare(line: str) -> str:
    """Return the message of a line, without its classes."""
    return _WHO.sub("", line.strip())


def _last(text: str) -> str:
    """Return the last error with a message; causes come last."""
    errors = [match for line in text.splitlines() if (match := _ERROR.match(line))]
    return f"{errors[-1][1].rpartition('.')[2]}: {errors[-1][2]}" if errors else ""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
