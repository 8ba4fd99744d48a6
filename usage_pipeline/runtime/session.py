"""A Spark session: embedded, on this machine's cores, or of a cluster.

All times are UTC, workers run this Python, and nothing listens beyond loopback where Spark is
embedded. A JVM that is started here may say what it says in a file instead of on standard error.

Example: ``session("local[2]")`` has two worker threads, and two workers of Python for them.
"""

import os
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sidecar.errors import SidecarError
from usage_pipeline.runtime import embedded
from usage_pipeline.runtime.class_archive import ClassArchive, java_binary

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

NO_JAVA: Final = (
    "Spark needs Java 17 or newer, and there is no `java`: install one"
    " (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17)"
    " or set JAVA_HOME"
)


class NoJavaError(SidecarError):
    """There is no Java to run Spark with."""


class NoSparkError(SidecarError):
    """Spark can't be started."""


_SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Rows of packed charges are a megabyte each, and 10,000 of them would be a batch.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(1 << 22),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def session(
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    log: Path | None = None,
    *,
    brief: bool = False,
    classes: ClassArchive | None = None,
) -> "SparkSession":
    """The session, made or already there.

    Args:
        master: as Spark has it, ``local[2]`` or ``spark://host:7077``; None: what spark-submit
            says, or all cores of this machine.
        settings: of Spark, beside those that the pipeline needs.
        log: the file that the standard error of a JVM that is started here is appended to; None:
            this process's own standard error.
        brief: whether the work is done in Python and soon over, so that a JVM that is embedded here
            had better not get ready for a long run. Explicit settings win.
        classes: for a JVM that is embedded here.

    Raises:
        NoJavaError: there is no Java.
        NoSparkError: it can't be started.
    """
    if java_binary() is None:
        raise NoJavaError(NO_JAVA)
    from py4j.protocol import (  # type: ignore[import-untyped]  # noqa: PLC0415  of the extra
        Py4JError,
    )
    from pyspark import SparkConf  # noqa: PLC0415  takes a second
    from pyspark.errors import PySparkException  # noqa: PLC0415  as above
    from pyspark.sql import SparkSession  # noqa: PLC0415  as above

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["TZ"] = "UTC"
    master = master or os.environ.get("MASTER") or None
    if master is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        master = "local[*]"
    conf = SparkConf().setAppName("throttle-sidecar")
    if master is not None:
        conf.setMaster(master)
    own: Mapping[str, str] = {}
    if master is not None and embedded.is_embedded(master):
        embedded.prepare(os.environ)
        own = embedded.settings(master, classes, brief=brief)
    for name, value in {**_SETTINGS, **own, **(settings or {})}.items():
        conf.set(name, value)
    try:
        if log is not None:
            _start(conf, log)
        made = SparkSession.builder.config(conf=conf).getOrCreate()
    except (Py4JError, PySparkException) as error:
        where = master or "the master that spark-submit says"
        words = (
            "" if log else ": its own words are above; look at --master, and for a Java 17 or newer"
        )
        raise NoSparkError(f"Spark can't be started on {where}{words}") from error
    made.sparkContext.setLogLevel("ERROR")
    return made


def class_archive(folder: Path, *, whole: bool) -> ClassArchive | None:
    """The one of this machine's Java and this Spark; None where that is unknown.

    Args:
        folder: where it is kept.
        whole: whether this run loads all that others do, and so may write it.
    """
    java = java_binary()
    home = Path(os.environ.get("SPARK_HOME") or str(files("pyspark")))
    if java is None or not (home / "jars").is_dir():
        return None
    return ClassArchive.of(folder, java, home / "jars", whole=whole)


def keep_classes(classes: ClassArchive) -> None:
    """Ends the JVM of a Spark that has ended, if it was started to write its classes; keeps them.

    Raises:
        NotKeptError: they weren't written.
    """
    from pyspark import SparkContext  # noqa: PLC0415  takes a second

    # There is no public way to end the JVM before this process does.
    gateway: Any = SparkContext._gateway  # noqa: SLF001  see above
    if gateway is None or str(classes.partial) not in " ".join(gateway.proc.args):
        return
    gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001  as above
    gateway.proc.stdin.close()
    classes.keep(gateway.proc)


def _start(conf: "SparkConf", log: Path) -> None:
    """Starts the JVM, unless there is one; what it says goes to a file."""
    from pyspark import SparkContext  # noqa: PLC0415  takes a second
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415  as above

    if "PYSPARK_GATEWAY_PORT" in os.environ or SparkContext._active_spark_context is not None:  # noqa: SLF001  there is no public way to ask
        return
    with log.open("ab") as said:
        gateway = launch_gateway(conf, {"stderr": said})  # type: ignore[no-untyped-call]  # Spark's
    SparkContext(conf=conf, gateway=gateway)
