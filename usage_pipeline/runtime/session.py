"""A Spark session: embedded, with this machine's cores, or on a cluster.

All times are UTC, and workers run this Python. An embedded Spark listens on loopback only. The
output of a JVM that is started here can go to a file instead of standard error.

Example: ``session("local[2]")`` has two worker threads, and two Python workers for them.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sidecar.errors import SidecarError
from usage_pipeline.runtime import embedded

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

NO_JAVA: Final = (
    "Spark needs Java 17 or newer, and there is no `java` on this machine: install one"
    " (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17)"
    " or set JAVA_HOME"
)


class NoJavaError(SidecarError):
    """Spark can't run because there is no Java."""


class NoSparkError(SidecarError):
    """Spark can't be started."""


_SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Rows of packed charges have a megabyte each; the default of 10,000 rows in a batch is too big.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(1 << 22),
    # The default of 15 s is too short for a machine that pauses: a whole run would fail.
    "spark.python.authenticate.socketTimeout": "2m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def session(
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    log: Path | None = None,
    *,
    brief: bool = False,
) -> "SparkSession":
    """Return the session; create it if there is none.

    Args:
        master: in Spark's form, ``local[2]`` or ``spark://host:7077``; None for the setting of
            spark-submit, or all cores of this machine.
        settings: Spark's settings, in addition to those that the pipeline needs.
        log: the file for the standard error of a JVM that is started here, which is appended; None
            for this process's standard error.
        brief: whether the work is short and done in Python, so that an embedded JVM should not
            optimize for a long run. Explicit settings take precedence.

    Raises:
        NoJavaError: there is no Java.
        NoSparkError: Spark can't be started.
    """
    if not _has_java():
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
        own = embedded.settings(master, brief=brief)
    for name, value in {**_SETTINGS, **own, **(settings or {})}.items():
        conf.set(name, value)
    try:
        if log is not None:
            _start(conf, log)
        made = SparkSession.builder.config(conf=conf).getOrCreate()
    except (Py4JError, PySparkException) as error:
        where = master or "the master of spark-submit"
        hint = "" if log else ": see its messages above; check --master, and for Java 17 or newer"
        raise NoSparkError(f"Spark can't be started on {where}{hint}") from error
    made.sparkContext.setLogLevel("ERROR")
    return made


def _has_java() -> bool:
    """Whether there is the Java that Spark starts."""
    home = os.environ.get("JAVA_HOME")
    return bool(home and Path(home, "bin", "java").exists()) or shutil.which("java") is not None


def _start(conf: "SparkConf", log: Path) -> None:
    """Start the JVM with its standard error in a file, unless there is a JVM."""
    from pyspark import SparkContext  # noqa: PLC0415  takes a second
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415  as above

    if "PYSPARK_GATEWAY_PORT" in os.environ or SparkContext._active_spark_context is not None:  # noqa: SLF001  there is no public way to ask
        return
    with log.open("ab") as stderr:
        gateway = launch_gateway(conf, {"stderr": stderr})  # type: ignore[no-untyped-call]  # Spark's
    SparkContext(conf=conf, gateway=gateway)
