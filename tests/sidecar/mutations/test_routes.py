"""Asking for controller mutations: the document, both modes, 429, and what is refused."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from sidecar.quotas.entities import Entity
from sidecar.quotas.mutations.admissions import AdmissionRequest, Judged, MutationAdmissions, Muted
from sidecar.quotas.rate import QuotaWindow
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.api.build import FakeSidecar, assert_problem

URL = "/v1/admissions/controller-mutations"
QUOTAS = {Entity("alice"): {"controller_mutation_rate": 5.0}}


class Portal:
    """Asks a sidecar whose clock it moves; alice has 5 partitions a second, a bucket of 55."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.admissions = MutationAdmissions("token-bucket", QuotaWindow())
        self.admissions.set_quotas(QUOTAS)
        self.failure: Failure | None = None
        self.sidecar = FakeSidecar(admit=self._admit)

    async def _admit(self, asked: AdmissionRequest) -> Judged | Muted | Failure:
        await asyncio.sleep(0)
        return self.failure or self.admissions.admit(asked, self.now_ms)

    async def ask(self, *operations: Any, user: str = "alice", **more: object) -> httpx.Response:
        body = {"user": user, "operations": operations, **more}
        return await self.send(json.dumps(body))

    async def send(self, content: str, media_type: str = "application/json") -> httpx.Response:
        async with self.sidecar.client() as client:
            return await client.post(URL, content=content, headers={"Content-Type": media_type})


def create(topic: str, partitions: int, kind: str = "create_topic") -> dict[str, object]:
    return {"kind": kind, "topic": topic, "partitions": partitions}


async def test_strict_rejects_what_is_over_the_quota() -> None:
    """The document has each operation as it was asked, with the error and the wait."""
    response = await Portal().ask(
        create("a", 40), create("b", 40, "create_partitions"), create("c", 1, "delete_topic")
    )
    assert 200 == response.status_code
    done = {"accepted": True, "error": None, "message": None, "throttle_time_ms": 0}
    expected = {
        "throttle_time_ms": 5000,
        "results": [
            {"topic": "a", "kind": "create_topic", **done},
            {"topic": "b", "kind": "create_partitions", **done},
            {
                "topic": "c",
                "kind": "delete_topic",
                "accepted": False,
                "error": "THROTTLING_QUOTA_EXCEEDED",
                "message": "The throttling quota has been exceeded.",
                "throttle_time_ms": 5000,
            },
        ],
    }
    assert expected == response.json()


async def test_permissive_accepts_and_throttles() -> None:
    """The message says so, as a controller's does to old clients."""
    response = await Portal().ask(create("a", 55), create("b", 10), mode="permissive")
    document = response.json()
    assert 2000 == document["throttle_time_ms"]
    assert [(True, None, None, 0), (True, None, "Accepted, but", 2000)] == [
        (
            result["accepted"],
            result["error"],
            result["message"] and result["message"][:13],
            result["throttle_time_ms"],
        )
        for result in document["results"]
    ]


async def test_who_comes_back_too_soon_gets_429() -> None:
    """It has whole seconds to wait, rounded up; the user's other client-ids get an answer."""
    portal = Portal()
    await portal.ask(create("a", 80), create("b", 1))
    portal.now_ms += 2001
    early = await portal.ask(create("b", 1))
    problem = assert_problem(early, 429)
    assert "2999 ms are left" in str(problem["detail"])
    assert "3" == early.headers["retry-after"]
    other = await portal.ask(create("b", 1), client_id="other")
    assert 2999 == other.json()["throttle_time_ms"]
    portal.now_ms += 2999
    assert (await portal.ask(create("b", 1))).json()["results"][0]["accepted"]


async def test_validating_costs_nothing() -> None:
    """That is so however much is asked."""
    portal = Portal()
    for _ in range(2):
        response = await portal.ask(create("a", 9999), validate_only=True)
        assert response.json()["results"][0]["accepted"]


async def test_unknown_quotas_are_503() -> None:
    """They have the reason, and when to come again."""
    portal = Portal()
    portal.failure = Failure(FailureKind.CONNECT, "b1:9092: nothing listens")
    response = await portal.ask(create("a", 1))
    problem = assert_problem(response, 503)
    assert "b1:9092: nothing listens" in str(problem["detail"])
    assert "5" == response.headers["retry-after"]


async def test_without_brokers_it_is_503_too() -> None:
    """A sidecar that is disabled has no brokers to ask."""
    portal = Portal()
    portal.sidecar = FakeSidecar()
    problem = assert_problem(await portal.ask(create("a", 1)), 503)
    assert "No brokers are configured" in str(problem["detail"])


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        '{"user": "a"}',
        '{"user": "a", "operations": []}',
        '{"user": "", "operations": [{"kind": "create_topic", "topic": "t", "partitions": 1}]}',
        '{"operations": [{"kind": "create_topic", "topic": "t", "partitions": 1}]}',
        '{"user": "a", "operations": [{"kind": "create", "topic": "t", "partitions": 1}]}',
        '{"user": "a", "operations": [{"kind": "create_topic", "topic": "", "partitions": 1}]}',
        '{"user": "a", "operations": [{"kind": "create_topic", "topic": "t", "partitions": 0}]}',
        '{"user": "a", "operations": [{"kind": "create_topic", "topic": "t", "partitions": "1"}]}',
        '{"user": "a", "operations": [{"kind": "create_topic", "topic": "t", "partitions": 1.5}]}',
        '{"user": "a", "operations": [{"kind": "create_topic", "topic": "t"}]}',
        '{"user": "a", "operations": [{"kind": "delete_topic", "topic": "t", "partitions": 1}],'
        ' "mode": "lax"}',
        '{"user": "a", "operations": [{"kind": "delete_topic", "topic": "t", "partitions": 1}],'
        ' "s3cret": 1}',
    ],
)
async def test_what_is_not_as_it_must_be_is_refused(body: str) -> None:
    """The answer is 422 without a word of what was sent; nothing is charged."""
    portal = Portal()
    problem = assert_problem(await portal.send(body), 422)
    assert "s3cret" not in json.dumps(problem)
    assert "0 buckets" in repr(portal.admissions)


async def test_a_principal_is_not_taken_for_a_users_name() -> None:
    """No quota in Kafka is for "User:alice": all that she asks for would be admitted."""
    portal = Portal()
    response = await portal.ask(create("a", 1), user="User:alice")
    assert_problem(response, 422)
    (error,) = response.json()["errors"]
    assert "body.user" == error["field"]
    assert "0 buckets" in repr(portal.admissions)


async def test_a_number_may_be_written_with_a_point() -> None:
    """For JSON 40.0 is a whole number."""
    response = await Portal().ask({"kind": "create_topic", "topic": "a", "partitions": 60.0})
    assert 200 == response.status_code


async def test_the_body_has_to_say_that_it_is_json() -> None:
    """No web page can ask in somebody's name then."""
    good = json.dumps({"user": "a", "operations": [create("t", 1)]})
    assert_problem(await Portal().send(good, "text/plain"), 415)


async def test_a_thousand_operations_fit_and_far_more_do_not() -> None:
    """The bound is 64 KiB, as for every body."""
    portal = Portal()
    fits = await portal.ask(*(create(f"t-{number:05}", 1) for number in range(1000)), user="bob")
    assert 1000 == len(fits.json()["results"])
    assert_problem(await portal.ask(*(create("t" * 249, 1) for _ in range(1000))), 413)
