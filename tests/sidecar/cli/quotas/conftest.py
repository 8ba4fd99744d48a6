"""A simulated cluster with quotas and users, and the commands run on it."""

from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner, Result

from sidecar.cli import group
from tests.support.background import bootstrap, running
from tests.support.fake_broker import FakeCluster
from tests.support.fake_configs import FakeConfigs
from tests.support.fake_quotas import FakeQuotas

Run = Callable[..., Result]
"""Runs ``throttle-sidecar quotas WORDS`` on the cluster."""


@pytest.fixture
def configs() -> FakeConfigs:
    """Two equal brokers: 8 I/O threads and 3 network threads are 1,100 %."""
    threads = {
        "num.io.threads": "8",
        "num.network.threads": "3",
        "quota.window.size.seconds": "1",
    }
    return FakeConfigs(configs={0: dict(threads), 1: dict(threads)})


@pytest.fixture
def quotas() -> FakeQuotas:
    """No quotas yet."""
    return FakeQuotas()


@pytest.fixture
def cluster(configs: FakeConfigs, quotas: FakeQuotas) -> Iterator[FakeCluster]:
    """The cluster, which runs."""
    with running(quotas.of(configs.of(FakeCluster().add(2)))) as cluster:
        yield cluster


@pytest.fixture
def run(cluster: FakeCluster) -> Run:
    """Runs a command on this cluster."""

    def run_words(*words: str, answer: str | None = None) -> Result:
        command = ["quotas", *words, "--bootstrap-server", bootstrap(cluster)]
        return CliRunner().invoke(group, command, input=answer, env={"COLUMNS": "100"})

    return run_words
