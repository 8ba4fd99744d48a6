"""Which cluster's quotas admissions are judged by."""

from sidecar.control.board import Board
from sidecar.control.capability import Services
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.control.persistence import Persistence
from sidecar.control.tokens import Tokens
from sidecar.mutations.capability import MutationCapability, prepare
from sidecar.mutations.service import TIMEOUT_S
from sidecar.settings import load
from sidecar.volumes import FailureKind
from tests.sidecar.api.build import FACTORS
from tests.sidecar.kafka.servers import admin, bootstrap, failed
from tests.sidecar.throttle.build import FakeClock, whole
from tests.support.fake_broker import FakeCluster
from tests.support.fake_quotas import FakeQuotas
from tests.support.virtual_time import VIRTUAL_TIME


async def persist() -> Persistence:
    return Persistence.NONE


@VIRTUAL_TIME
async def test_another_clusters_quotas_judge_nobody() -> None:
    """They are only read from the cluster whose volumes are remembered."""
    board = Board(FACTORS, FakeClock())
    async with FakeQuotas().of(FakeCluster().add(1)) as cluster:
        environ = {
            "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": str(bootstrap(cluster)),
            "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": "1",
        }
        tokens, failures = Tokens(None, board.now), CapabilityFailures(["mutations"])
        services = Services(board, lambda _: 0.0, tokens, persist, None, failures)
        capability = prepare(load(environ=environ).settings)(services)
        assert isinstance(capability, MutationCapability)
        assert capability._mutations is not None
        reach = admin(bootstrap(cluster))
        assert {} == await capability._mutations._read(reach, TIMEOUT_S)
        board.observe(whole(0.0, cluster_id="other-cluster"))
        answer = await capability._mutations._read(reach, TIMEOUT_S)
        failed(answer, FailureKind.OTHER_CLUSTER)
