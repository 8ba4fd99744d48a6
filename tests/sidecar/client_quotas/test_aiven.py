"""Aiven's API: a scripted server made from its public description, and what the sidecar asks it."""

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner

from sidecar.cli import group
from sidecar.client_quotas.aiven import MOST, AivenService, aiven_quotas
from sidecar.client_quotas.plan import Found
from sidecar.client_quotas.platform import KafkaQuotas
from sidecar.http import Response
from sidecar.quotas.entities import DEFAULT, Entity
from sidecar.quotas.kept_originals import Kept
from sidecar.settings import load
from sidecar.throttle.quota_steps import is_rung
from sidecar.volumes import Failure, FailureKind
from tests.support.background import Canned, reply, serving

URL = "https://api.aiven.io/v1/project/prod/service/kafka/quota"
ALICE, REST = Entity("alice"), Entity(client_id=DEFAULT)
BEFORE = {"user": "alice", "producer_byte_rate": 1e7, "consumer_byte_rate": 5e6}


@dataclass
class Scripted:
    """The quotas of a service; DELETE removes those of an entity.

    Attributes:
        merges: whether POST keeps quotas that it does not name, which is not documented.
        quotas: as the API lists them.
        refuses: method -> how often it is answered 503.
    """

    quotas: list[dict[str, Any]] = field(default_factory=list)
    merges: bool = False
    refuses: dict[str, int] = field(default_factory=dict)

    async def send(
        self, method: str, url: str, *, headers: dict[str, str], body: bytes, longest_answer: int
    ) -> Response:
        assert (URL, 0 < longest_answer) == (url.partition("?")[0], True)
        if headers["Authorization"] != "Bearer good":
            return Response(401, "Unauthorized", b"{}")
        if self.refuses.get(method, 0):
            self.refuses[method] -= 1
            return Response(503, "Service Unavailable", b"{}")
        if method == "GET":
            return Response(200, "OK", json.dumps({"quotas": self.quotas}).encode())
        query = {name: value for name, (value,) in parse_qs(urlsplit(url).query).items()}
        named: dict[str, Any] = json.loads(body) if method == "POST" else query
        mine = {key: named.get(key) for key in ("user", "client-id")}
        before = [each for each in self.quotas if not mine.items() - each.items() - EMPTY]
        self.quotas = [each for each in self.quotas if each not in before]
        if method == "POST":
            if self.merges and before:
                named = before[0] | named
            assert all(0 < value <= MOST for key, value in named.items() if "_" in key)
            self.quotas.append(named)
        return Response(200, "OK", b"{}")


EMPTY = {("user", None), ("client-id", None)}


@pytest.fixture
def token(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("good\n")
    return tmp_path / "token"


def quotas_of(scripted: Scripted, token: Path) -> KafkaQuotas:
    service = AivenService(URL, token, scripted.send)
    return KafkaQuotas(service.describe, service.alter, is_whole=False)


@pytest.mark.parametrize("merges", [False, True])
async def test_quotas_are_lowered_and_come_back(token: Path, *, merges: bool) -> None:
    """Other quotas of an entity stay, and a default has the name "default"."""
    scripted = Scripted([dict(BEFORE), {"user": "bob", "request_percentage": 5.0}], merges)
    before = list(scripted.quotas)
    platform = quotas_of(scripted, token)
    assert Found({ALICE: 1e7}, {}) == await platform.read()
    kept = {ALICE: Kept(1e7, 1e7), REST: Kept(None, 3e6)}
    assert {ALICE: None, REST: None} == await platform.apply(
        kept, {ALICE: 8559249.0, REST: 6e6}, kept
    )
    assert {**BEFORE, "producer_byte_rate": 8559249.0} in scripted.quotas
    assert {"client-id": "default", "producer_byte_rate": 6e6} in scripted.quotas
    assert Found({ALICE: 8559249.0, REST: 6e6}, kept) == await platform.read()
    assert {ALICE: None, REST: None} == await platform.restore(kept)
    assert sorted(map(str, before)) == sorted(map(str, scripted.quotas))


async def test_an_original_that_can_not_be_restored_stays_in_the_service(token: Path) -> None:
    """It is the only copy: the service made two changes one after the other, and one failed."""
    scripted = Scripted([{**BEFORE}], merges=True)
    platform = quotas_of(scripted, token)
    kept = {ALICE: Kept(1e7, 1e7)}
    await platform.apply(kept, {ALICE: 8559249.0}, kept)
    scripted.refuses = {"POST": 30}
    outcomes = await platform.restore(kept)
    assert isinstance(outcomes, dict)
    assert outcomes[ALICE] is not None
    assert Found({ALICE: 8559249.0}, kept) == await platform.read()


@pytest.mark.parametrize("merges", [False, True])
async def test_a_quota_is_removed_without_its_neighbours(token: Path, *, merges: bool) -> None:
    """The API removes all of an entity, so the others are set again, or named in the failure."""
    scripted = Scripted([{**BEFORE}], merges, {"POST": 2})
    platform = quotas_of(scripted, token)
    assert {ALICE: None} == await platform.restore({ALICE: Kept(None, 1e7)})
    assert [{"user": "alice", "consumer_byte_rate": 5e6}] == scripted.quotas
    scripted.quotas, scripted.refuses = [{**BEFORE}], {"POST": 3}
    outcomes = await platform.restore({ALICE: Kept(None, 1e7)})
    assert isinstance(outcomes, dict)
    failure = outcomes[ALICE]
    assert failure is not None
    assert "was answered 503 Service Unavailable; before, {'user': 'alice'} had" in failure.message
    assert "'consumer_byte_rate': 5000000.0" in failure.message


async def test_no_quota_is_above_what_the_api_takes(token: Path) -> None:
    """The next lower rung takes its place, so that the sidecar recognises it."""
    scripted = Scripted()
    await quotas_of(scripted, token).apply({}, {REST: MOST * 1.01}, {REST: Kept(None, MOST)})
    (quota,) = (each for each in scripted.quotas if each["client-id"] == "default")
    assert is_rung(quota["producer_byte_rate"])


def test_a_failure_says_what_to_check_and_no_token(token: Path) -> None:
    """A refused token, a file that is gone, and an answer of another form."""
    scripted = Scripted([{"producer_byte_rate": 1.0}])
    platform = quotas_of(scripted, token)
    odd = asyncio.run(platform.read())
    assert isinstance(odd, Failure)
    assert FailureKind.PROTOCOL is odd.kind
    token.write_text("s3cret")
    refused = asyncio.run(platform.read())
    assert isinstance(refused, Failure)
    assert FailureKind.AUTHORIZATION is refused.kind
    assert "401 Unauthorized: check SIDECAR_AIVEN_TOKEN_FILE" in refused.message
    assert "s3cret" not in refused.message
    token.unlink()
    gone = asyncio.run(platform.read())
    assert isinstance(gone, Failure)
    assert "the Aiven token file" in gone.message


def test_commands_ask_the_service_of_the_settings(token: Path) -> None:
    """By its address; without a service, Kafka's protocol is used."""
    settings = {
        "SIDECAR_AIVEN_PROJECT": "prod",
        "SIDECAR_AIVEN_SERVICE": "kafka",
        "SIDECAR_AIVEN_TOKEN_FILE": str(token),
    }
    left = {"client-id": "throttle-sidecar.before:etl", "producer_byte_rate": 1e7}
    canned = Canned({"GET /v1/project/prod/service/kafka/quota": reply({"quotas": [left]})})
    with serving(canned):
        settings["SIDECAR_AIVEN_URL"] = f"{canned.url}/v1"
        result = CliRunner().invoke(group, ["quotas", "status", "--json"], env=settings)
    assert 0 == result.exit_code, result.output
    assert {"client-id": "etl"} == json.loads(result.stdout)["quotas"][0]["entity"]
    assert "Bearer good" == canned.asked[0].headers["Authorization"]
    limit = {"SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": "10"}
    brokers = {"SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": "a:9092"}
    assert aiven_quotas(load(environ={**limit, **brokers}).settings) is None
