"""Which cluster's quotas admissions are judged by."""

from pathlib import Path

from sidecar.control.board import Board
from sidecar.mutations.capability import MutationCapability, prepare
from sidecar.mutations.service import TIMEOUT_S
from sidecar.settings import load
from sidecar.volumes import FailureKind
from tests.sidecar.api.build import FACTORS
from tests.sidecar.control.services import services
from tests.sidecar.kafka.servers import admin, bootstrap, failed
from tests.sidecar.throttle.build import FakeClock, whole
from tests.support.fake_broker import FakeCluster
from tests.support.fake_quotas import FakeQuotas
from tests.support.virtual_time import VIRTUAL_TIME


@VIRTUAL_TIME
async def test_another_clusters_quotas_judge_nobody() -> None:
    """They are only read from the known cluster; certificates that can't be read are a failure."""
    board = Board(FACTORS, FakeClock())
    async with FakeQuotas().of(FakeCluster().add(1)) as cluster:
        environ = {
            "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": str(bootstrap(cluster)),
            "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": "1",
        }
        capability = prepare(load(environ=environ).settings)(services(board, "mutations"))
        assert isinstance(capability, MutationCapability)
        assert capability._mutations is not None
        reach = admin(bootstrap(cluster))
        assert {} == await capability._mutations.read(reach, TIMEOUT_S)
        board.observe(whole(0.0, cluster_id="other-cluster"))
        answer = await capability._mutations.read(reach, TIMEOUT_S)
        failed(answer, FailureKind.OTHER_CLUSTER)
        tls = {"security_protocol": "SSL", "ssl_truststore_location": Path("none.pem")}
        answer = await capability._mutations.read(reach.model_copy(update=tls), TIMEOUT_S)
        assert "none.pem" in failed(answer, FailureKind.AUTHENTICATION)
