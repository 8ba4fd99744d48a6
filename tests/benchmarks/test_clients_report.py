"""The page has the tables of what was measured, and keeps its own words."""

from pathlib import Path

import pytest

from benchmarks.clients import __main__ as program
from benchmarks.clients.clients import CLIENTS, Client, versions
from benchmarks.clients.course import Course
from benchmarks.clients.report import BEGIN, END
from benchmarks.clients.scene import Case
from sidecar.errors import ClusterError
from tests.benchmarks.pages import row, run


async def _happen(
    placed: list[list[Client]], case: Case, folder: Path
) -> list[Course | ClusterError]:
    """Makes 2 MB/s, nothing in the throttle but 3 failures, and nothing afterwards."""
    times = (case.part.throttle_s, 20.0, 95.0, 135.0)
    course = Course("", case.arm.key, case.part.key, *times, 41_000_000, 2)
    course.refused = 1234
    course.landed = [(number / 200, 0, number) for number in range(4000)]
    course.failed = [(50.0 + n, 5000 + n, "timed | out" + n * " and so on" * 20) for n in range(3)]
    courses: list[Course | ClusterError] = []
    for client in (each for clients in placed for each in clients):
        each = Course.load(_saved(course, folder))
        each.client = client.key
        courses.append(each)
    return courses


def _saved(course: Course, folder: Path) -> Path:
    course.save(folder / "copy")
    return folder / "copy"


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No jar is needed, and none has an authorizer."""
    monkeypatch.setattr(program, "callback_jar", lambda path: path)
    monkeypatch.setattr(Case, "is_possible", property(lambda case: case.arm.key != "authorizer"))


@pytest.mark.usefixtures("jar")
def test_the_tables_are_put_into_the_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is around them stays; an arm that the jar does not have is left out."""
    monkeypatch.setattr(program, "happen", _happen)
    page = tmp_path / "page.md"
    page.write_text(f"# Ours\n{BEGIN}old{END}\nand what to do\n")

    assert 0 == run(monkeypatch, program, tmp_path, "sarama", "librdkafka")

    text = page.read_text()
    assert text.startswith("# Ours\n")
    assert text.endswith(f"{END}\nand what to do\n")
    assert "old" not in text
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


@pytest.mark.usefixtures("jar")
def test_a_part_is_measured_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What was measured before stays beside it; a throttle of another length has its own table."""
    monkeypatch.setattr(program, "happen", _happen)
    assert 0 == run(monkeypatch, program, tmp_path, "java", "--parts", "short")
    words = ["java", "--parts", "long", "--seconds", "20"]
    assert 0 == run(monkeypatch, program, tmp_path, *words)
    assert 0 == run(monkeypatch, program, tmp_path, *words, "--arms", "quota")
    words = ["sarama", "--parts", "short", "--seconds", "60"]
    assert 0 == run(monkeypatch, program, tmp_path, *words)

    assert {
        "java.callback.short.75.json",
        "java.callback.long.20.json",
        "java.quota.long.20.json",
        "sarama.callback.short.60.json",
        "machine.short.json",
        "machine.long.json",
    } == {each.name for each in tmp_path.glob("*.json")}
    text = (tmp_path / "page.md").read_text()
    titles = [line[4:] for line in text.splitlines() if line.startswith("###")]
    assert [
        "The callback alone, a throttle of 60 s",
        "The callback alone, a throttle of 75 s",
        "The callback alone, a throttle of 20 s, seven clients at once",
        "Without us, Kafka's own quota of 1 %, a throttle of 20 s, seven clients at once",
    ] == titles
    assert 3 == text.count("Whether each goal was reached"), "Kafka's own has none"
    assert 2 == text.count("| Sarama |"), "a row in each of the two tables of its throttle"


def test_every_client_has_a_version() -> None:
    """They are read where they are locked."""
    libraries = {"confluent-kafka" if c.library == "librdkafka" else c.library for c in CLIENTS}
    named = {each.split(" ")[0].lower() for each in versions().split(", ")}
    assert libraries == named


@pytest.mark.usefixtures("jar")
def test_what_fails_is_in_the_exit_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The others are measured all the same, and no earlier result stands for what failed."""

    async def happen(
        placed: list[list[Client]], case: Case, folder: Path
    ) -> list[Course | ClusterError]:
        if placed[0][0] is CLIENTS[0]:
            raise ClusterError("no broker")
        return await _happen(placed, case, folder)

    monkeypatch.setattr(program, "happen", happen)
    (tmp_path / "java.callback.short.75.json").write_text("an earlier one")

    words = ["java", "sarama", "--abreast", "1", "--parts", "short"]
    assert 1 == run(monkeypatch, program, tmp_path, *words)

    assert ["sarama.callback.short.75.json"] == [each.name for each in tmp_path.glob("*.75.json")]


@pytest.mark.usefixtures("jar")
def test_of_those_at_once_one_may_fail(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others' results are kept, the reason is shown, and the exit code is 1."""

    async def happen(
        placed: list[list[Client]], case: Case, folder: Path
    ) -> list[Course | ClusterError]:
        courses = await _happen(placed, case, folder)
        return [ClusterError("it has ended"), *courses[1:]]

    monkeypatch.setattr(program, "happen", happen)
    assert 1 == run(monkeypatch, program, tmp_path, "java", "sarama", "--parts", "long")
    assert ["sarama.callback.long.600.json"] == [each.name for each in tmp_path.glob("*.600.json")]
    assert "not measured: it has ended" in capsys.readouterr().err


def test_a_page_without_a_place_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody's page is overwritten."""
    (tmp_path / "page.md").write_text("# Another's\n")
    with pytest.raises(ValueError, match="no place for the tables"):
        run(monkeypatch, program, tmp_path, "report")
    assert "# Another's\n" == (tmp_path / "page.md").read_text()
