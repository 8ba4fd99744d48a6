"""What Spark says while it runs: into a file, which is named only when it is needed.

Its JVM greets on standard error, and writes each failure in hundreds of lines, some of them again
and again; so do its client's loggers. All that is written to a temporary file without a name, of
which nothing is left however the process ends. When Spark fails, a person reads the cause in a
line, what to do in another, and in a third a file that has all of it, with the whole trace.

Example: a full disk ends in three lines, "Spark has failed: a disk is full (No space left on
device)", "Free some of it: ...", "All that was said: /tmp/throttle-sidecar-h2x1.log".
"""

import logging
import os
import shutil
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from sidecar.errors import SidecarError
from usage_pipeline.cli.spark_failures import trouble

_TOLD: Final = 1 << 16
"""Bytes of the file's end that are searched for a cause."""
_ERROR: Final = b" ERROR "
"""As log4j2.properties has it."""


class SparkFailedError(SidecarError):
    """Spark has failed; says why, what to do, and where all of it is."""


@contextmanager
def spark_log() -> Iterator[Path]:
    """Gives the file for what Spark says (``session``), and reports failures in a few lines.

    Needs the extra.

    Raises:
        SparkFailedError: in place of an error of Spark's or its client's.
    """
    from usage_pipeline.runtime.session import NoSparkError  # noqa: PLC0415 - the extra
    from usage_pipeline.streaming.stream import StreamError  # noqa: PLC0415 - the extra

    with tempfile.TemporaryFile() as file:
        log = Path(f"/proc/self/fd/{file.fileno()}")
        try:
            with _loggers_to(log):
                yield log
        except NoSparkError as error:
            raise _failed(str(error), error.__cause__ or error, log) from error
        except StreamError as error:
            what = "The stream has ended by itself"
            raise _failed(what, error.__cause__ or error, log) from error
        except Exception as error:
            if not _is_sparks(error):
                raise
            raise _failed("Spark has failed", error, log) from error
        if _has_errors(log):
            click.echo(f"Spark met errors and went on{_kept(log)}", err=True)


@contextmanager
def _loggers_to(log: Path) -> Iterator[None]:
    """The client's own loggers say what they say there too."""
    from pyspark.logger import PySparkLogger  # noqa: PLC0415 - the extra

    # The first else writes to standard error as a last resort, the second to a handler of its own.
    loggers = (logging.getLogger("py4j"), PySparkLogger.getLogger("SQLQueryContextLogger"))
    before = [(list(logger.handlers), logger.propagate) for logger in loggers]
    handler = logging.FileHandler(log, delay=True)
    for logger in loggers:
        logger.handlers, logger.propagate = [handler], False
    try:
        yield
    finally:
        for logger, (handlers, propagate) in zip(loggers, before, strict=True):
            logger.handlers, logger.propagate = handlers, propagate
        handler.close()


def _is_sparks(error: BaseException) -> bool:
    from py4j.protocol import (  # type: ignore[import-untyped]  # noqa: PLC0415 - of the extra
        Py4JError,
    )
    from pyspark.errors import PySparkException  # noqa: PLC0415 - of the extra

    # A JVM that is gone refuses connections.
    return isinstance(error, Py4JError | PySparkException | ConnectionError)


def _failed(what: str, error: BaseException, log: Path) -> SparkFailedError:
    trace = _trace(error)
    found = trouble(trace, _end(log))
    advice = f"\n{found.advice[0].upper()}{found.advice[1:]}." if found.advice else ""
    return SparkFailedError(f"{what}: {found.cause}{advice}\nAll that was said{_kept(log, trace)}")


def _kept(log: Path, trace: str = "") -> str:
    """Where it is: in a file with a name."""
    try:
        with (
            log.open("rb") as said,
            tempfile.NamedTemporaryFile(
                prefix="throttle-sidecar-", suffix=".log", delete=False
            ) as file,
        ):
            shutil.copyfileobj(said, file)
            file.write(f"\n{trace}".encode(errors="replace"))
    except OSError as error:
        return f" can't be stored: {error.strerror}"
    return f": {file.name}"


def _trace(error: BaseException) -> str:
    """With what Java said, which Spark's client leaves out of its own errors."""
    lines = traceback.format_exception(error)
    inner: BaseException | None = error
    while inner is not None:
        if inner.__suppress_context__ and inner.__cause__ is None and inner.__context__ is not None:
            lines += ["\n", *traceback.format_exception_only(inner.__context__)]
        inner = inner.__cause__ or inner.__context__
    return "".join(lines)


def _end(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TOLD))
        return file.read().decode(errors="replace")


def _has_errors(log: Path) -> bool:
    with log.open("rb") as file:
        return any(_ERROR in line for line in file)
