"""Which users a cluster knows: who is in the answers, and what a refusal means.

That it works is shown on real clusters, in tests/integration/test_quotas.py.
"""

from collections.abc import Awaitable, Callable

import pytest
from kio.schema.errors import ErrorCode

from sidecar.kafka.user_messages import (
    DESCRIBE_ACLS_KEY,
    DESCRIBE_USER_SCRAM_CREDENTIALS_KEY,
)
from sidecar.kafka.users import acl_users, scram_users
from sidecar.settings import KafkaAdmin
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.kafka.kio_codec import kio_answer
from tests.sidecar.kafka.servers import admin, bootstrap, failed
from tests.support.fake_broker import FakeCluster


def answering(key: int, version: int, **fields: object) -> FakeCluster:
    """A broker that answers a kind of request with these fields."""
    body = kio_answer(key, version, error_message=None, **fields)
    return FakeCluster().add(1).answer(key, version, lambda *_: body)


def scram(*users: tuple[str, ErrorCode, int], code: ErrorCode = ErrorCode.none) -> FakeCluster:
    """A cluster that has these users, each with an error code and how many credentials."""
    credential = {"mechanism": 1, "iterations": 4096}
    results = [
        {
            "user": user,
            "error_code": error,
            "error_message": "gone" if error is not ErrorCode.none else None,
            "credential_infos": [credential] * credentials,
        }
        for user, error, credentials in users
    ]
    return answering(DESCRIBE_USER_SCRAM_CREDENTIALS_KEY, 0, error_code=code, results=results)


def acls(*rules: tuple[str, int], code: ErrorCode = ErrorCode.none) -> FakeCluster:
    """A cluster with ACLs of these principals, each with a permission type, on two resources."""
    described = [
        {"principal": principal, "host": "*", "operation": 3, "permission_type": permission}
        for principal, permission in rules
    ]
    resources = [
        {"resource_type": 2, "resource_name": name, "pattern_type": 3, "acls": described}
        for name in ("orders", "invoices")
    ]
    return answering(DESCRIBE_ACLS_KEY, 3, error_code=code, resources=resources)


async def test_scram_users_are_those_with_a_credential() -> None:
    """One of several mechanisms is enough; a user who was just deleted is none."""
    none = ErrorCode.none
    gone = ErrorCode.resource_not_found
    async with scram(
        ("ann", none, 2), ("bob", none, 1), ("eve", gone, 0), ("joe", none, 0)
    ) as all_:
        assert frozenset({"ann", "bob"}) == await scram_users(admin(bootstrap(all_)))


async def test_who_may_not_ask_is_reported_so() -> None:
    """Real brokers fail on them when all users are asked for, and never answer: one is first."""
    async with scram(code=ErrorCode.cluster_authorization_failed) as cluster:
        answer = await scram_users(admin(bootstrap(cluster)))
        asked = [
            each.decoded.users
            for broker in cluster.brokers.values()
            for each in broker.requests
            if each.api_key == DESCRIBE_USER_SCRAM_CREDENTIALS_KEY
        ]
    message = failed(answer, FailureKind.AUTHORIZATION)
    assert "error 31" in message
    assert "it needs Describe on the Kafka cluster" in message
    assert asked
    assert all(asked)


async def test_acl_users_are_those_who_may_something() -> None:
    """User:*, users only denied and other principals are left out; a name may have ":"."""
    rules = [("User:ann", 3), ("User:eve", 2), ("User:*", 3), ("Group:ops", 3), ("User:a:b", 3)]
    async with acls(*rules) as cluster:
        assert frozenset({"ann", "a:b"}) == await acl_users(admin(bootstrap(cluster)))


@pytest.mark.parametrize(
    ("cluster", "ask", "kind", "words"),
    [
        (scram(("a", ErrorCode.duplicate_resource, 0)), scram_users, "BROKER", "gone"),
        (acls(code=ErrorCode.security_disabled), acl_users, "BROKER", "SECURITY_DISABLED"),
        (acls(code=ErrorCode.cluster_authorization_failed), acl_users, "AUTHORIZATION", "Describe"),
    ],
)
async def test_refusals_are_failures(
    cluster: FakeCluster,
    ask: Callable[[KafkaAdmin], Awaitable[frozenset[str] | Failure]],
    kind: str,
    words: str,
) -> None:
    """They are of the whole answer or of one user, with a kind and what the broker said."""
    async with cluster:
        answer = await ask(admin(bootstrap(cluster)))
    assert words in failed(answer, FailureKind[kind])
