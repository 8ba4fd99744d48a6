"""A simulated cluster in a process of its own, so that its work is not counted as ours."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from sidecar.settings import HostPort


@contextmanager
def simulated_cluster(brokers: int, volumes: int, core: int | None = None) -> Iterator[HostPort]:
    """Brokers on loopback that speak as much of Kafka as a poll needs.

    Args:
        brokers: how many.
        volumes: of each.
        core: where they run, all in one thread; None leaves that to the scheduler.

    Yields:
        The address to begin from.
    """
    command = [sys.executable, "-m", "tests.support.fake_broker"]
    command += ["--brokers", str(brokers), "--volumes", str(volumes)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            if core is not None:
                os.sched_setaffinity(process.pid, {core})
            assert process.stdout is not None
            host, _, port = process.stdout.readline().strip().rpartition(":")
            yield HostPort(host, int(port))
        finally:
            process.kill()
