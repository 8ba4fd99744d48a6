"""``quotas apply``: validate, ask, set, and say what was done when it stops."""

import json
from pathlib import Path

import pytest

from sidecar.quotas.entities import DEFAULT, Entity
from tests.sidecar.cli.quotas.conftest import Run
from tests.support.fake_quotas import FakeQuotas

KEY = "request_percentage"


@pytest.fixture
def many(tmp_path: Path) -> list[str]:
    """A plan for 250 users of 1,100 %: 4.4 % each."""
    file = tmp_path / "tenants"
    file.write_text("\n".join(f"user {n:03}" for n in range(250)))
    return ["--tenants-from", str(file)]


def test_it_is_validated_asked_and_set(run: Run, quotas: FakeQuotas) -> None:
    """They happen in this order; what changes is printed before the question."""
    result = run("apply", "--tenants", "120", answer="y\n")
    assert 0 == result.exit_code, result.output
    assert {Entity(DEFAULT): {KEY: 9.2}} == quotas.quotas
    assert [(1, True), (1, False)] == quotas.requests
    assert "Set 1 quota? [y/N]" in result.stderr
    assert result.stdout.endswith("Done: 1 quota is set.\n")


@pytest.mark.parametrize(
    ("answer", "why"),
    [("n\n", "the answer was no"), (None, "nobody answered the question; --yes skips it")],
)
def test_without_a_yes_nothing_is_set(
    run: Run, quotas: FakeQuotas, answer: str | None, why: str
) -> None:
    """It was only validated, and the output says so; in a job it also says which option to add."""
    result = run("apply", "--tenants", "120", answer=answer)
    assert 1 == result.exit_code
    assert result.stderr.endswith(f"Stopped: {why}\nNothing is changed; 1 quota is not set.\n")
    assert [(1, True)] == quotas.requests
    assert {} == quotas.quotas


def test_a_plan_in_force_asks_nothing(run: Run, quotas: FakeQuotas) -> None:
    """It asks neither the person nor the brokers."""
    quotas.quotas = {Entity(DEFAULT): {KEY: 9.2}}
    result = run("apply", "--tenants", "120")
    assert (0, "Nothing changes.\n") == (result.exit_code, result.stdout)
    assert [] == quotas.requests


def test_a_refusal_in_validation_sets_nothing(
    run: Run, quotas: FakeQuotas, many: list[str]
) -> None:
    """The refused change is in the last request; the entity and the broker's words are reported."""
    quotas.refused = {Entity("user 249")}
    result = run("apply", *many, "--yes")
    assert 2 == result.exit_code
    assert "nothing was set: " in result.stderr
    assert "user 'user 249'" in result.stderr
    assert "it is odd" in result.stderr
    assert {} == quotas.quotas
    assert [(100, True), (100, True), (50, True)] == quotas.requests


def test_it_stops_at_the_first_error(run: Run, quotas: FakeQuotas, many: list[str]) -> None:
    """The rest of that request was accepted, later ones are not sent; both are reported exactly."""
    quotas.refused_when_set = {Entity("user 120")}
    result = run("apply", *many, "--yes", "--json")
    assert 1 == result.exit_code
    document = json.loads(result.stdout)
    done = {each["entity"]["user"] for each in document["done"]}
    assert 199 == len(done)
    assert done == {entity.user for entity in quotas.quotas}
    left = [each["entity"]["user"] for each in document["not_done"]]
    assert ["user 120", *(f"user {n}" for n in range(200, 250))] == left
    assert [] == document["unknown"]
    assert "it is odd" in document["problem"]
    assert "199 quotas are set; 51 quotas are not set." in result.stderr
    assert 2 == sum(not validated for _, validated in quotas.requests)


@pytest.mark.slow
def test_what_was_not_answered_is_described_again(
    run: Run, quotas: FakeQuotas, many: list[str]
) -> None:
    """The connection broke in the middle of a request: what is in force of it counts as done."""
    quotas.drops = {Entity("user 150")}
    result = run("apply", *many, "--yes")
    assert 1 == result.exit_code
    assert "151 quotas are set; 99 quotas are not set." in result.stderr
    assert "Done before it stopped:" in result.stdout
    assert 151 == len(quotas.quotas)


@pytest.mark.slow
def test_ctrl_c_says_what_was_done(run: Run, quotas: FakeQuotas, many: list[str]) -> None:
    """The second request was under way: the command asks what is in force."""
    quotas.interrupts = {Entity("user 150")}
    result = run("apply", *many, "--yes", "--json")
    assert 130 == result.exit_code, result.stderr
    document = json.loads(result.stdout)
    assert len(quotas.quotas) == len(document["done"])
    assert 250 == len(document["done"]) + len(document["not_done"])
    assert "Ctrl-C" == document["problem"]
    assert "200 quotas are set; 50 quotas are not set." in result.stderr


@pytest.mark.slow
def test_what_can_not_be_described_is_not_known(
    run: Run, quotas: FakeQuotas, many: list[str]
) -> None:
    """The 100 of that request are neither done nor left."""
    quotas.drops = {Entity("user 150")}
    quotas.offline_after_drop = True
    result = run("apply", *many, "--yes", "--json")
    assert 1 == result.exit_code
    reported = "100 quotas are set; 50 quotas are not set; of 100 quotas it is not known."
    assert reported in result.stderr
    unknown = [each["entity"]["user"] for each in json.loads(result.stdout)["unknown"]]
    assert [f"user {n}" for n in range(100, 200)] == unknown


def test_quotas_of_an_entity_go_together(run: Run, quotas: FakeQuotas, tmp_path: Path) -> None:
    """A file's two quotas of one entity are one request; with --exact, one is removed."""
    quotas.quotas = {Entity("bob"): {KEY: 1.0}}
    file = tmp_path / "plan.json"
    entity = {"user": "ann", "client-id": None}
    values = {KEY: 5.0, "producer_byte_rate": 1e6}
    file.write_text(json.dumps({"quotas": [{"entity": entity, "quotas": values}]}))
    result = run("apply", "--plan", str(file), "--exact", "--yes")
    assert 0 == result.exit_code, result.output
    assert {Entity("ann", DEFAULT): values} == quotas.quotas
    assert [(2, True), (2, False)] == quotas.requests
    assert result.stdout.endswith("Done: 2 quotas are set and 1 is removed.\n")


def test_removals_are_asked_for_as_such(run: Run, quotas: FakeQuotas, tmp_path: Path) -> None:
    """An empty file with --exact removes all there is; it stops at one that is refused."""
    quotas.quotas = {Entity("ann"): {KEY: 1.0}, Entity("bob"): {KEY: 2.0}}
    quotas.refused_when_set = {Entity("bob")}
    file = tmp_path / "none.json"
    file.write_text('{"quotas": []}')
    result = run("apply", "--plan", str(file), "--exact", answer="y\n")
    assert "Remove 2 quotas? [y/N]" in result.stderr
    assert result.stderr.endswith("\n1 quota is removed; 1 quota is not removed.\n")


def test_warnings_are_reported_before_the_question(
    run: Run, quotas: FakeQuotas, many: list[str]
) -> None:
    """Standard error has 20 of them, JSON has them all."""
    quotas.scram = {"ann"}
    result = run("apply", *many, "--json", answer="n\n")
    warnings = json.loads(result.stdout)["warnings"]
    assert 251 == len(warnings)
    assert warnings[0].startswith("user 000: ")
    before, question, _ = result.stderr.partition("Set 250 quotas?")
    assert question
    assert "Warning: and 231 more; --json prints them all" in before
