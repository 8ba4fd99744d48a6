"""``quotas status`` and ``quotas restore``: what sidecars have lowered, and the way back."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sidecar.cli import group
from sidecar.client_quotas.retained import retain
from sidecar.control.board import Board, PersistedState
from sidecar.quotas.entities import DEFAULT, Entity
from sidecar.quotas.kept_originals import Kept
from sidecar.quotas.producer_ids.throttle_signature import signed
from sidecar.quotas.quota_file import quota_documents
from sidecar.state import StateFile
from sidecar.throttle.decision import Source, VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.quota_steps import highest_rung
from sidecar.throttle.rules import Rules
from tests.sidecar.cli.quotas.conftest import Run
from tests.sidecar.throttle.build import FakeClock
from tests.support.background import bootstrap, running
from tests.support.fake_broker import FakeBroker, FakeCluster, FakeRequest
from tests.support.fake_quotas import FakeQuotas

KEY = "producer_byte_rate"
ALICE, REST = Entity("alice"), Entity(client_id=DEFAULT)
RUNG = highest_rung(6e6)
ORIGINAL = {ALICE: {KEY: 1e7, "request_percentage": 9.0}}
LOWERED = {
    ALICE: {KEY: 8559249.0, "request_percentage": 9.0},
    Entity("throttle-sidecar.before:alice"): {KEY: 1e7},
    REST: {KEY: RUNG},
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
        ["client-id", "the", "default", "none", f"{RUNG:.0f}"],
    ]
    assert expected == rows
    document = json.loads(run("status", "--json").stdout)
    assert {"user": "alice"} == document["quotas"][0]["entity"]
    assert (None, RUNG) == (document["quotas"][1]["original"], document["quotas"][1]["now"])


def test_restoring_sets_the_originals_and_removes_the_records(
    run: Run, lowered: FakeQuotas
) -> None:
    """A dry run changes nothing; quotas of other kinds stay."""
    dry = run("restore", "--dry-run")
    assert "user 'alice': would be restored from 8559249 to 10000000\n" in dry.stdout
    assert LOWERED == lowered.quotas
    done = run("restore")
    assert (0, "") == (done.exit_code, done.stderr)
    assert "client-id the default: restored to none\n" in done.stdout
    assert ORIGINAL == lowered.quotas
    assert "No produce quota is lowered.\n" == run("restore").stdout == run("status").stdout


@pytest.mark.parametrize("entity", [ALICE, REST])
@pytest.mark.parametrize("value", [5e7, 2e6, None])
def test_a_quota_that_somebody_has_set_or_removed_stays(
    run: Run, lowered: FakeQuotas, entity: Entity, value: float | None
) -> None:
    """It is the new original, as for a sidecar; only the record goes."""
    others = lowered.quotas.get(entity, {}) | {KEY: value}
    lowered.quotas[entity] = {key: each for key, each in others.items() if each is not None}
    is_kept = (entity, value) != (REST, None)
    now = "none" if value is None else f"{value:.0f}"
    text = f"{entity}: would be kept at {now}, since somebody changed it\n"
    assert is_kept == (text in run("restore", "--dry-run").stdout)
    assert is_kept == (text.replace("would be ", "") in run("restore").stdout)
    expected = {ALICE: ORIGINAL[ALICE], REST: {}, entity: lowered.quotas.get(entity, {})}
    assert {each: values for each, values in expected.items() if values} == lowered.quotas
    assert value == lowered.quotas.get(entity, {}).get(KEY)
    assert "No produce quota is lowered.\n" == run("restore").stdout


def test_other_commands_go_by_what_somebody_has_set_since(run: Run, lowered: FakeQuotas) -> None:
    """A backup of 10 MB/s would undo it, and a restore keeps it too."""
    lowered.quotas[ALICE] = {KEY: 5e7}
    shown = json.loads(run("show", "--json").stdout)["quotas"]
    assert [{"entity": {"user": "alice"}, "quotas": {KEY: 5e7}}] == shown


def test_a_quota_that_can_not_be_restored_is_an_error(run: Run, lowered: FakeQuotas) -> None:
    """Its record stays, so that a later try finds it. The percentage of a throttle is removed."""
    lowered.refused = {ALICE}
    lowered.quotas[Entity("bob")] = {"request_percentage": signed(0.01)}
    result = run("restore")
    assert 2 == result.exit_code
    assert Entity("bob") not in lowered.quotas
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


@pytest.mark.parametrize("words", [(), ("--forget", "--watch", "0.01s")])
def test_the_request_percentage_of_a_throttled_user_is_removed(
    run: Run, quotas: FakeQuotas, words: tuple[str, ...]
) -> None:
    """A sidecar that was removed during a throttle left it; an operator's stays."""
    throttled = {"request_percentage": 0.010000936}
    quotas.quotas = {Entity("bob"): {KEY: 5.0, **throttled}, Entity("eve"): dict(throttled)}
    quotas.quotas[ALICE] = {"request_percentage": 9.0}
    dry = run("restore", "--dry-run")
    assert "user 'bob': the request_percentage 0.010000936 would be removed\n" in dry.stdout
    quotas.refused = {Entity("bob")}
    refused = run("restore", *words)
    assert 2 == refused.exit_code
    assert "AlterClientQuotas of user 'bob'" in refused.stderr
    quotas.refused = set()
    done = run("restore", *words)
    assert (0, "") == (done.exit_code, done.stderr)
    assert "user 'bob': removed the request_percentage 0.010000936 of a throttle\n" in done.stdout
    assert {Entity("bob"): {KEY: 5.0}, ALICE: {"request_percentage": 9.0}} == quotas.quotas


def test_a_backup_during_a_throttle_has_no_throttle(
    run: Run, lowered: FakeQuotas, tmp_path: Path
) -> None:
    """A file that an earlier version wrote then is read in the same way."""
    before, earlier = tmp_path / "before.json", tmp_path / "earlier.json"
    percentage = {"request_percentage": signed(0.01)}
    lowered.quotas[Entity("bob")] = dict(percentage)
    before.write_text(run("show", "--json").stdout)
    assert quota_documents(ORIGINAL) == json.loads(before.read_text())["quotas"]
    earlier.write_text(json.dumps({"quotas": quota_documents(lowered.quotas)}))
    lowered.quotas = {ALICE: {KEY: 1.0}}
    for file in (before, earlier):
        assert 0 == run("apply", "--plan", str(file), "--exact", "--yes").exit_code
        assert ORIGINAL == lowered.quotas
        lowered.quotas[ALICE] = {KEY: 1.0}
    lowered.quotas = {Entity("bob"): percentage}
    assert "0.010000936" in run("show").stdout


def forget(cluster: FakeCluster, **environ: str) -> Result:
    """Restore for good, by the daemon's settings."""
    environ |= {"SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": bootstrap(cluster)}
    command = ["quotas", "restore", "--forget", "--watch", "0.01s"]
    return CliRunner().invoke(group, command, env=environ)


def test_forgetting_leaves_nothing_in_cluster_and_state_file(
    cluster: FakeCluster, lowered: FakeQuotas, tmp_path: Path
) -> None:
    """The decision and everything else stay in the state file."""
    limit = VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 1.0)
    board = Board(limit, FakeClock())
    retain(board, {ALICE: Kept(1e7, 1e7)})
    board.retain("producer_ids", {"quotas": []})
    file = StateFile(tmp_path / "state.json", limit.rules)
    before = PersistedState(board.snapshot.memory, 0.25, Source.OBSERVATION, 0.0)
    file.save(before, lambda steady: steady)
    result = forget(cluster, SIDECAR_STATE_FILE=str(file.path))
    assert 0 == result.exit_code, result.output
    assert ORIGINAL == lowered.quotas
    assert "user 'alice': restored to 10000000\n" in result.stdout
    assert "none was within 0.01 s" in result.stdout
    assert f"The originals are removed from the state file {file.path}." in result.stdout
    kept = file.load(0.0)
    assert isinstance(kept, PersistedState)
    assert 0.25 == kept.factor
    assert ["producer_ids"] == list(kept.memory.retained)
    assert "There are no originals in" in forget(cluster, SIDECAR_STATE_FILE=str(file.path)).stdout
    other = forget(cluster, SIDECAR_STATE_FILE=str(tmp_path / "other"))
    assert "There is no state file" in other.stdout


def test_a_state_file_that_is_not_looked_at(
    cluster: FakeCluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says why: none is set, or the command does not use the daemon's settings."""
    assert "SIDECAR_STATE_FILE is not set here.\n" in forget(cluster).stdout
    monkeypatch.setenv("SIDECAR_STATE_FILE", "state.json")
    said = run("restore", "--forget", "--watch", "0.01s").stdout
    assert "not set" not in said
    assert "--bootstrap-server and --command-config leave out the daemon's settings" in said


def test_a_damaged_state_file_is_an_error(cluster: FakeCluster, tmp_path: Path) -> None:
    """It stays as it is."""
    file = tmp_path / "state.json"
    file.write_text('{"version": 1, "sha256": "", "state": {}}')
    result = forget(cluster, SIDECAR_STATE_FILE=str(file))
    assert 2 == result.exit_code
    assert "still has its originals: it is damaged" in result.stderr
    assert '"sha256": ""' in file.read_text()


@dataclass
class Relowered(FakeQuotas):
    """A sidecar still runs: it lowers restored quotas again, so many times."""

    left: int = 0

    def _describe(self, broker: FakeBroker, request: FakeRequest) -> bytes:
        if self.requests and self.left and LOWERED.keys() != self.quotas.keys():
            self.left -= 1
            self.quotas = {entity: dict(values) for entity, values in LOWERED.items()}
        return super()._describe(broker, request)


@pytest.mark.parametrize(("times", "code"), [(2, 0), (99, 2)])
def test_quotas_that_a_sidecar_lowers_again_are_restored_again(times: int, code: int) -> None:
    """One that ends is outlived; one that does not is named as what to stop."""
    quotas = Relowered({entity: dict(values) for entity, values in LOWERED.items()}, left=times)
    with running(quotas.of(FakeCluster().add(1))) as cluster:
        result = forget(cluster)
    assert code == result.exit_code, result.output
    assert min(times, 5) == result.stdout.count("A sidecar has lowered quotas again.")
    assert (code == 2) == ("stop all sidecars" in result.stderr)
    assert (code == 0) == (ORIGINAL == quotas.quotas)
