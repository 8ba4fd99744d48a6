"""``quotas status`` and ``quotas restore``: what sidecars have lowered, and the way back."""

import json
from pathlib import Path

import pytest

from sidecar.quotas.entities import DEFAULT, Entity
from tests.sidecar.cli.quotas.conftest import Run
from tests.support.fake_quotas import FakeQuotas

KEY = "producer_byte_rate"
ALICE, REST = Entity("alice"), Entity(client_id=DEFAULT)
ORIGINAL = {ALICE: {KEY: 1e7, "request_percentage": 9.0}}
LOWERED = {
    ALICE: {KEY: 8559249.0, "request_percentage": 9.0},
    Entity("throttle-sidecar.before:alice"): {KEY: 1e7},
    REST: {KEY: 6e6},
    Entity(client_id="throttle-sidecar.without-default"): {KEY: 3e6},
}


@pytest.fixture
def lowered(quotas: FakeQuotas) -> FakeQuotas:
    """Alice is lowered, and clients without a quota have one."""
    quotas.quotas = {entity: dict(values) for entity, values in LOWERED.items()}
    return quotas


def test_the_lowered_quotas_are_shown_with_their_originals(run: Run, lowered: FakeQuotas) -> None:
    """A quota that was not there has "none"."""
    rows = [line.split() for line in run("status").stdout.splitlines() if line.strip()][2:]
    expected = [
        ["user", "'alice'", "10000000", "8559249"],
        ["client-id", "the", "default", "none", "6000000"],
    ]
    assert expected == rows
    document = json.loads(run("status", "--json").stdout)
    assert {"user": "alice"} == document["quotas"][0]["entity"]
    assert (None, 6e6) == (document["quotas"][1]["original"], document["quotas"][1]["now"])


def test_restoring_sets_the_originals_and_removes_the_records(
    run: Run, lowered: FakeQuotas
) -> None:
    """A dry run changes nothing; quotas of other kinds stay."""
    dry = run("restore", "--dry-run")
    assert "user 'alice': would be restored to 10000000\n" in dry.stdout
    assert LOWERED == lowered.quotas
    done = run("restore")
    assert (0, "") == (done.exit_code, done.stderr)
    assert "client-id the default: restored to none\n" in done.stdout
    assert ORIGINAL == lowered.quotas
    assert "No produce quota is lowered.\n" == run("restore").stdout == run("status").stdout


def test_a_quota_that_can_not_be_restored_is_an_error(run: Run, lowered: FakeQuotas) -> None:
    """Its record stays, so that a later try finds it."""
    lowered.refused = {ALICE}
    result = run("restore")
    assert 2 == result.exit_code
    assert "AlterClientQuotas of user 'alice'" in result.stderr
    assert {KEY: 1e7} == lowered.quotas[Entity("throttle-sidecar.before:alice")]
    assert REST not in lowered.quotas


def test_other_commands_go_by_the_originals(run: Run, lowered: FakeQuotas, tmp_path: Path) -> None:
    """A comparison with the quotas of before finds no change; ``show`` warns."""
    shown = run("show", "--json")
    assert "2 produce quotas may be lowered by a sidecar now" in shown.stderr
    before = tmp_path / "before.json"
    entry = {"entity": {"user": "alice"}, "quotas": ORIGINAL[ALICE]}
    before.write_text(json.dumps({"quotas": [entry]}))
    result = run("diff", "--plan", str(before), "--exact")
    assert (0, "Nothing changes.\n") == (result.exit_code, result.stdout)
