"""Redirects the output of Spark to a file, which gets a name only after a failure.

Spark's JVM and its Python client write hundreds of lines for each failure to standard error. Here
they write to a temporary file without a name, which disappears with the process. If Spark fails,
the command prints the cause, the remedy, and the name of a file with the output and the traceback.

Example: a full disk prints three lines: "Spark has failed: a disk is full (No space left on
device)", "Free space: ...", "Output: /tmp/throttle-sidecar-h2x1.log".
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

_SEARCHED_BYTES: Final = 1 << 16
"""Bytes at the end of the file in which the cause is searched."""
_ERROR: Final = b" ERROR "
"""The level, as log4j2.properties formats it."""


class SparkFailedError(SidecarError):
    """Spark has failed. The message has the cause, the remedy and the file with the output."""


@contextmanager
def spark_log() -> Iterator[Path]:
    """Yield the file for Spark's output (``session``), and report failures in a few lines.

    Raises:
        SparkFailedError: instead of an error of Spark or its client.
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
            what = "The stream has ended unexpectedly"
            raise _failed(what, error.__cause__ or error, log) from error
        except Exception as error:
            if not _is_sparks(error):
                raise
            raise _failed("Spark has failed", error, log) from error
        if _has_errors(log):
            click.echo(f"Spark had errors and continued. Output{_kept(log)}", err=True)


@contextmanager
def _loggers_to(log: Path) -> Iterator[None]:
    """Redirect the loggers of the client to the file too."""
    from pyspark.logger import PySparkLogger  # noqa: PLC0415 - the extra

    # Otherwise the first writes to standard error as a last resort, the second to its own handler.
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

    # After the JVM has ended, connections are refused.
    return isinstance(error, Py4JError | PySparkException | ConnectionError)


def _failed(what: str, error: BaseException, log: Path) -> SparkFailedError:
    trace = _trace(error)
    failure = trouble(trace, _end(log))
    advice = f"\n{failure.advice[0].upper()}{failure.advice[1:]}." if failure.advice else ""
    return SparkFailedError(f"{what}: {failure.cause}{advice}\nOutput{_kept(log, trace)}")


def _kept(log: Path, trace: str = "") -> str:
    """Copy the output to a named file, and return the end of the sentence about it."""
    try:
        with (
            log.open("rb") as output,
            tempfile.NamedTemporaryFile(
                prefix="throttle-sidecar-", suffix=".log", delete=False
            ) as file,
        ):
            shutil.copyfileobj(output, file)
            file.write(f"\n{trace}".encode(errors="replace"))
    except OSError as error:
        return f" can't be stored: {error.strerror}"
    return f": {file.name}"


def _trace(error: BaseException) -> str:
    """Return the traceback with Java's part, which Spark's client omits."""
    lines = traceback.format_exception(error)
    inner: BaseException | None = error
    while inner is not None:
        if inner.__suppress_context__ and inner.__cause__ is None and inner.__context__ is not None:
            lines += ["\n", *traceback.format_exception_only(inner.__context__)]
        inner = inner.__cause__ or inner.__context__
    return "".join(lines)


def _end(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _SEARCHED_BYTES))
        return file.read().decode(errors="replace")


def _has_errors(log: Path) -> bool:
    with log.open("rb") as file:
        return any(_ERROR in line for line in file)
