"""Which clients run at once, what a broker counts of each, and the page of their tables."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.clients import __main__ as program
from benchmarks.clients.__main__ import BENCHMARK
from benchmarks.clients.clients import CLIENTS, EXPIRING, Client, versions
from benchmarks.clients.run import Run
from benchmarks.clients.scene import PARTS, Case, Counts, of_clients, of_listeners
from benchmarks.harness.results import Results
from sidecar.errors import ClusterError
from tests.benchmarks.pages import page, row, run
from tests.support.java import Bean

pytestmark = pytest.mark.slow


def _client(key: str, *, large: bool) -> Client:
    return Client(key, key, "go", key, has_large_requests=large)


A, B, C = (_client(key, large=key == "b") for key in "abc")


def test_in_a_short_throttle_each_has_a_broker() -> None:
    """As many at once as asked for; the last run has what is left."""
    assert [[[A], [B]], [[C]]] == PARTS["short"].placed([A, B, C], 2)


def test_in_a_long_one_seven_run_at_once() -> None:
    """Those with large requests are on the second broker; a broker without clients is none."""
    assert [[[A, C], [B]]] == PARTS["long"].placed([A, B, C], 2)
    assert [[[B]]] == PARTS["long"].placed([B], 2)
    assert [[[A] * 6, [B]], [[C]]] == PARTS["long"].placed([*[A] * 6, B, C], 2)


def test_each_client_is_in_one_run() -> None:
    """That is so of each part."""
    for part in PARTS.values():
        found = [each for run in part.placed(part.clients, 2) for broker in run for each in broker]
        assert sorted(each.key for each in part.clients) == sorted(each.key for each in found)


def test_a_listener_s_counts_are_those_of_its_threads() -> None:
    """What belongs to no listener counts for none, and what a bean lacks is 0."""
    name = "kafka.server:type=socket-server-metrics,listener={},networkProcessor={}"
    both: Bean = {"incoming-byte-total": 700.0, "connection-creation-total": 2.0}
    found: dict[str, Bean] = {
        name.format("A", 0): both,
        name.format("A", 1): {"incoming-byte-total": 7.0, "connection-creation-total": None},
        name.format("B", 2): {"connection-creation-total": 1.0},
        "kafka.server:type=socket-server-metrics": {"incoming-byte-total": 9.0},
    }
    counts = Counts({"A": 707, "B": 0}, {"A": 2, "B": 1}, {"a": 5})
    assert counts == of_listeners(found, {"a": 5})


def test_refusals_are_of_client_ids() -> None:
    """Whoever used one, and none where nothing was refused."""
    assert {} == of_clients("")
    assert {"a b": 12, "": 1} == of_clients("ANONYMOUS/a%20b:9,bob/:1,alice/a%20b:3")


def test_every_client_has_a_version() -> None:
    """They are read where they are locked."""
    libraries = {"confluent-kafka" if c.library == "librdkafka" else c.library for c in CLIENTS}
    named = {each.split(" ")[0].lower() for each in versions().split(", ")}
    assert libraries == named


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Clients whose run fails; no jar is needed, and none has an authorizer.

    A run has 2 MB/s, nothing in the throttle but 3 failures, and nothing afterwards.
    """
    failing: set[str] = set()

    async def happen(
        placed: Sequence[Sequence[Client]], case: Case, _: Path
    ) -> dict[str, Run | ClusterError]:
        found: dict[str, Run | ClusterError] = {}
        for key in (client.key for clients in placed for client in clients):
            made = Run(key, case.part.throttle_s, 20.0, 95.0, 135.0, 41_000_000, 2, refused=1234)
            made.landed = [(number / 200, 0, number) for number in range(4000)]
            texts = ["timed | out" + n * " and so on" * 20 for n in range(3)]
            made.failed = [(50.0 + n, 5000 + n, text) for n, text in enumerate(texts)]
            found[key] = ClusterError("it has ended") if key in failing else made
        return found

    monkeypatch.setattr(program, "happen", happen)
    monkeypatch.setattr(program, "callback_jar", lambda path: path)
    monkeypatch.setattr(Case, "is_possible", property(lambda case: case.arm != "authorizer"))
    return failing


@pytest.mark.usefixtures("failing")
def test_each_client_has_its_figures_and_its_goals(tmp_path: Path) -> None:
    """Of both parts; an arm that the jar does not have is left out."""
    assert 0 == run(BENCHMARK, tmp_path, "short", "long", "--clients", "sarama", "librdkafka")
    text = page(tmp_path)
    assert ["75 s", "10 minutes, seven clients at once"] == [
        line.partition("a throttle of ")[2] for line in text.splitlines() if line.startswith("###")
    ]
    short, _, long = text.partition("10 minutes")
    cells = ["2,000", "0 to 0 (0)", "30 s: timed / out", "3 from 30 s", "0", "0", "0", "1.0; 2"]
    rest = ["> 40 s", "0.00 x after 0.0 s"]
    for part in (short, long):
        assert [*cells, "1,234", *rest] == row(part.partition("goal")[0], "Sarama |")
    assert ["yes: waits, 0 of 20 kB/s", "no: > 40 s", "yes", "yes", "yes"] == row(
        short.partition("goal")[2], "Sarama |"
    )
    assert versions() in text


@pytest.mark.usefixtures("failing")
def test_a_client_or_an_arm_is_measured_alone(tmp_path: Path) -> None:
    """What was measured before stays beside it; Kafka's own quota has no goals."""
    words = ["long", "--seconds", "20", "--clients", "java"]
    assert 0 == run(BENCHMARK, tmp_path, *words)
    assert 0 == run(BENCHMARK, tmp_path, *words, "sarama", "--arms", "quota")
    text = page(tmp_path)
    assert [
        "The callback alone, a throttle of 20 s, seven clients at once",
        "Without us, Kafka's own quota of 1 %, a throttle of 20 s, seven clients at once",
    ] == [line[4:] for line in text.splitlines() if line.startswith("###")]
    assert 1 == text.count("Whether each goal was reached")
    assert 1 == text.count("| Sarama |")


def test_of_those_at_once_one_may_fail(
    failing: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others' results are kept, the reason is shown, and the exit code is 1."""
    failing.add("java")
    assert 1 == run(BENCHMARK, tmp_path, "long", "--clients", "java", "sarama")
    assert {"long.callback.sarama"} == Results(tmp_path).stems()
    assert "long.callback.java was not measured: it has ended" in capsys.readouterr().err


@pytest.mark.usefixtures("failing")
def test_each_round_of_a_release_has_a_row(tmp_path: Path) -> None:
    """The first round replaces all earlier ones; other parts have one round."""
    words = ["release", "long", "--clients", "java", EXPIRING[0].key]
    assert 0 == run(BENCHMARK, tmp_path, *words, "--rounds", "3")
    key = f"release.callback.{EXPIRING[0].key}"
    assert {"long.callback.java", key, f"{key}.1", f"{key}.2"} == Results(tmp_path).stems()
    assert 0 == run(BENCHMARK, tmp_path, *words, "--rounds", "2")
    assert {"long.callback.java", key, f"{key}.1"} == Results(tmp_path).stems()
    rows = [line for line in page(tmp_path).splitlines() if f"| {EXPIRING[0].name} |" in line]
    cells = ["0", "3; 0", "2; 1,234", "not seen", " ".join(["0.0"] * 20)]
    assert 2 * [f"| {EXPIRING[0].name} | {' | '.join(cells)} |"] == rows
