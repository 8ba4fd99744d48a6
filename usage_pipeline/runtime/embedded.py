"""Runs Spark's JVM as a child of this process, with all cores or some, and little memory.

Example: on ``local[2]``, the JVM of a short run has a heap of 640 MB. With two Python workers, a
day's logs of 2.5 GB take 1.8 GB of memory in total.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa

JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_LOG4J: Final = Path(__file__).parent / "log4j2.properties"
_CORES: Final = re.compile(r"local\[(\d+)")
_POOL: Final = "ARROW_DEFAULT_MEMORY_POOL"
_ENVIRON: Final[Mapping[str, str]] = {
    # Without this, Spark warns that the host name resolves to a loopback address.
    "SPARK_LOCAL_IP": "127.0.0.1",
    # These return memory to the system. Without them, workers and JVM take half as much again.
    _POOL: "system",
    "MALLOC_ARENA_MAX": "2",
}
_SETTINGS: Final[Mapping[str, str]] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
# With this collector, a stream of logs is a third faster than with G1, whose barriers and threads
# need CPU time of the two cores.
_OPTIONS: Final = (f"-Dlog4j2.configurationFile={_LOG4J}", "-XX:+UseParallelGC")
_LONG: Final[Mapping[str, str]] = {"spark.driver.memory": "1g"}
_BRIEF_OPTIONS: Final = ("-XX:TieredStopAtLevel=1",)
"""A run of a minute spent half of its CPU time on compiling code that it hardly called."""
_BRIEF_MB: Final = 512
_BRIEF_MB_PER_CORE: Final = 64


def is_embedded(master: str) -> bool:
    """Return whether this process starts the JVM that does the work."""
    return master.startswith("local")


def settings(master: str, *, brief: bool) -> Mapping[str, str]:
    """Return Spark's settings; ``brief`` is for short runs whose work is done in Python."""
    if not brief:
        return {**_SETTINGS, **_LONG, JAVA_OPTIONS: " ".join(_OPTIONS)}
    cores = _cores(master)
    return {
        **_SETTINGS,
        "spark.driver.memory": f"{_BRIEF_MB + _BRIEF_MB_PER_CORE * cores}m",
        "spark.sql.codegen.wholeStage": "false",
        # A stage with two steps in Python needs two workers for each core. Later stages would
        # leave half of them idle, 200 MB each.
        "spark.python.factory.idleWorkerMaxPoolSize": str(cores),
        JAVA_OPTIONS: " ".join((*_OPTIONS, *_BRIEF_OPTIONS)),
    }


def prepare(environ: "os._Environ[str] | dict[str, str]") -> None:
    """Set environment variables for the JVM, its workers and this process, unless they are set."""
    for name, value in _ENVIRON.items():
        environ.setdefault(name, value)
    if environ[_POOL] == _ENVIRON[_POOL]:
        pa.set_memory_pool(pa.system_memory_pool())


def _cores(master: str) -> int:
    match = _CORES.match(master)
    if match is not None:
        return int(match[1])
    return 1 if master == "local" else len(os.sched_getaffinity(0))
