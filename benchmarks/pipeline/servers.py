"""What a run at the size of a cluster talks to: Spark's own cluster, and an S3 server on a disk.

All are processes of this machine's: a master and four workers of Spark, from pyspark's package,
each of which starts an executor, and s3proxy over a folder (tests/integration/s3proxy/pom.xml). The
executors are as many as on four machines, and share this one's cores and disk.

Example: ``with spark(folder, 4, "2g") as url: ...`` has a master at ``spark://127.0.0.1:34567``.
"""

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pyspark

from kafka_lab.ports import Ports
from tests.support.maven import jars_of
from tests.support.waiting import listens

_SPARK_CLASS: Final = Path(pyspark.__file__).parent / "bin" / "spark-class"
_CHECKOUT: Final = Path(__file__).parents[2]
_POM: Final = _CHECKOUT / "tests/integration/s3proxy/pom.xml"
_HERE: Final = "127.0.0.1"
_DEADLINE_S: Final = 300.0
_POLL_S: Final = 0.1


def environment() -> dict[str, str]:
    """Of Spark's processes and of commands: this Python and this checkout, on loopback."""
    own = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
    return own | {
        "SPARK_LOCAL_IP": _HERE,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(_CHECKOUT),
    }


@contextmanager
def spark(folder: Path, workers: int, memory: str, environ: Mapping[str, str]) -> Iterator[str]:
    """A master and workers of one core each.

    Args:
        folder: for their logs, and for what executors are sent.
        workers: how many.
        memory: that each may give to executors' JVMs, as Spark has it.
        environ: of all of them.
    """
    package = "org.apache.spark.deploy"
    where = ("--host", _HERE, "--webui-port", "0")
    with ExitStack() as running:
        log = folder / "master.log"
        master = (_SPARK_CLASS, f"{package}.master.Master", *where, "--port", "0")
        running.enter_context(_process(log, [*map(str, master)], environ))
        url = _awaited(partial(_said, log, r"Starting Spark master at (spark://\S+)"), log)
        logs = [folder / f"worker-{number}.log" for number in range(workers)]
        for number, log in enumerate(logs):
            size = ("--cores", "1", "--memory", memory, "--work-dir", folder / f"worker-{number}")
            worker = (_SPARK_CLASS, f"{package}.worker.Worker", *where, *size, url)
            running.enter_context(_process(log, [*map(str, worker)], environ))
        for log in logs:
            _awaited(partial(_said, log, r"(Successfully registered with master)"), log)
        yield url


@contextmanager
def store(folder: Path, buckets: Path) -> Iterator[dict[str, str]]:
    """An S3 server whose buckets are the folders of a folder, and the variables that reach it."""
    own = asyncio.run(jars_of(_POM))
    key, secret = "the-key", "the-secret"
    with Ports() as ports:
        port = ports.reserve()
        settings, log = folder / "s3proxy.properties", folder / "s3proxy.log"
        settings.write_text(
            f"s3proxy.endpoint=http://{_HERE}:{port}\n"
            f"s3proxy.authorization=aws-v4\ns3proxy.identity={key}\ns3proxy.credential={secret}\n"
            f"jclouds.provider=filesystem-nio2\njclouds.filesystem.basedir={buckets}\n"
            "jclouds.identity=x\njclouds.credential=x\n"
        )
        java = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", f"{own}/*", "org.gaul.s3proxy.Main"]
        with _process(log, [*java, "--properties", str(settings)], os.environ):
            _awaited(partial(listens, port), log)
            yield {
                "AWS_ENDPOINT_URL": f"http://{_HERE}:{port}",
                "AWS_ACCESS_KEY_ID": key,
                "AWS_SECRET_ACCESS_KEY": secret,
                "AWS_REGION": "us-east-1",
                "AWS_EC2_METADATA_DISABLED": "true",
            }


@contextmanager
def _process(log: Path, command: Sequence[str], environ: Mapping[str, str]) -> Iterator[None]:
    """A process, ended at the end."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environ)
        try:
            yield
        finally:
            process.terminate()
            process.wait(_DEADLINE_S)


def _said(log: Path, pattern: str) -> str:
    found = re.search(pattern, log.read_text(errors="replace"))
    return "" if found is None else found[1]


def _awaited(ask: Callable[[], str | bool], log: Path) -> str:
    until = time.monotonic() + _DEADLINE_S
    while not (answer := ask()):
        if time.monotonic() > until:
            raise TimeoutError(log.read_text(errors="replace"))
        time.sleep(_POLL_S)
    return str(answer)
