"""Setting quotas: the bytes of the request, and why it was not done.

That it works is shown on a real cluster, in tests/integration/test_enforcement.py.
"""

from kio.index import load_payload_module
from kio.static.constants import EntityType
from kio.static.primitive import f64

from sidecar.kafka.client_quotas import alter_client_quotas
from sidecar.kafka.quota_messages import ALTER_CLIENT_QUOTAS_KEY, AlterClientQuotas
from sidecar.volumes import Failure, FailureKind
from tests.kafka.servers import admin, free_port
from tests.kafka.test_messages import kio_request, our_request


def test_the_request_is_kafkas_bytes() -> None:
    """Entities with a name and the default one, quotas to set and to remove."""
    kio = load_payload_module(ALTER_CLIENT_QUOTAS_KEY, 1, EntityType.request)
    both = (
        kio.EntityData(entity_type="user", entity_name="ann"),
        kio.EntityData(entity_type="client-id", entity_name=None),
    )
    set_rate = kio.OpData(key="producer_byte_rate", value=f64(1.5e6), remove=False)
    removed = kio.OpData(key="request_percentage", value=f64(0.0), remove=True)
    etl = kio.EntityData(entity_type="client-id", entity_name="etl")
    expected = kio_request(
        ALTER_CLIENT_QUOTAS_KEY,
        1,
        entries=(
            kio.EntryData(entity=both, ops=(set_rate,)),
            kio.EntryData(entity=(etl,), ops=(removed,)),
        ),
        validate_only=False,
    )
    request = AlterClientQuotas(
        [
            ({"user": "ann", "client-id": None}, {"producer_byte_rate": 1.5e6}),
            ({"client-id": "etl"}, {"request_percentage": None}),
        ]
    )
    assert expected == our_request(request, 1)


async def test_a_broker_that_is_not_there() -> None:
    """A failure as of every other call, and no exception."""
    failure = await alter_client_quotas(admin(free_port()), [({"client-id": "a"}, {"x": 1.0})])
    assert isinstance(failure, Failure)
    assert FailureKind.CONNECT is failure.kind
