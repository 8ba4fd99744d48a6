"""Spark as a part of this process's: its JVM on this machine, all cores or some, little memory.

Example: on ``local[2]`` a short run's JVM has a heap of 640 MB; with two workers of Python a day's
logs of 2.5 GB take 1.8 GB in all.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa

from usage_pipeline.runtime.class_archive import ClassArchive

JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_LOG4J: Final = Path(__file__).parent / "log4j2.properties"
_CORES: Final = re.compile(r"local\[(\d+)")
_POOL: Final = "ARROW_DEFAULT_MEMORY_POOL"
_ENVIRON: Final[Mapping[str, str]] = {
    # Else Spark warns of a host name that is of the loopback.
    "SPARK_LOCAL_IP": "127.0.0.1",
    # Memory that is returned to the system: without these, workers and JVM keep half as much again.
    _POOL: "system",
    "MALLOC_ARENA_MAX": "2",
}
_SETTINGS: Final[Mapping[str, str]] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
# A stream of logs is a third faster than with G1, whose barriers and threads take from two cores.
_OPTIONS: Final = (f"-Dlog4j2.configurationFile={_LOG4J}", "-XX:+UseParallelGC")
_LONG: Final[Mapping[str, str]] = {"spark.driver.memory": "1g"}
_BRIEF_OPTIONS: Final = ("-XX:TieredStopAtLevel=1",)
"""Half of a minute's CPU time went into compiling what was then hardly called."""
_BRIEF_MB: Final = 512
_BRIEF_MB_PER_CORE: Final = 64


def is_embedded(master: str) -> bool:
    """Whether this process starts the JVM that does the work."""
    return master.startswith("local")


def settings(master: str, classes: ClassArchive | None, *, brief: bool) -> Mapping[str, str]:
    """Of Spark; ``brief`` work is done in Python and soon over."""
    kept = () if classes is None else classes.options
    if not brief:
        return {**_SETTINGS, **_LONG, JAVA_OPTIONS: " ".join((*_OPTIONS, *kept))}
    cores = _cores(master)
    return {
        **_SETTINGS,
        "spark.driver.memory": f"{_BRIEF_MB + _BRIEF_MB_PER_CORE * cores}m",
        "spark.sql.codegen.wholeStage": "false",
        # A stage of two steps in Python has two for each core, and later ones would leave half of
        # them idle, 200 MB each.
        "spark.python.factory.idleWorkerMaxPoolSize": str(cores),
        JAVA_OPTIONS: " ".join((*_OPTIONS, *_BRIEF_OPTIONS, *kept)),
    }


def prepare(environ: "os._Environ[str] | dict[str, str]") -> None:
    """Sets what the JVM and its workers inherit, unless it is set, for this process too."""
    for name, value in _ENVIRON.items():
        environ.setdefault(name, value)
    if environ[_POOL] == _ENVIRON[_POOL]:
        pa.set_memory_pool(pa.system_memory_pool())


def _cores(master: str) -> int:
    found = _CORES.match(master)
    if found is not None:
        return int(found[1])
    return 1 if master == "local" else len(os.sched_getaffinity(0))
