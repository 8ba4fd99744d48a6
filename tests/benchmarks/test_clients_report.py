"""The page has the tables of what was measured, and keeps its own words."""

from pathlib import Path

import pytest

from benchmarks.clients import __main__ as program
from benchmarks.clients.clients import CLIENTS, versions
from benchmarks.clients.course import Course
from benchmarks.clients.report import BEGIN, END
from benchmarks.clients.scene import Case
from sidecar.errors import ClusterError
from tests.benchmarks.pages import row, run


async def _happen(clients: list[object], case: Case, folder: Path) -> list[Course]:
    """Makes 2 MB/s, nothing in the throttle but 3 failures, and nothing afterwards."""
    course = Course("", case.arm, case.throttle_s, 20.0, 95.0, 135.0, 41_000_000, 2)
    course.landed = [(number / 200, 0, number) for number in range(4000)]
    course.failed = [(50.0 + n, 5000 + n, "timed | out" + n * " and so on" * 20) for n in range(3)]
    courses = []
    for client in clients:
        each = Course.load(_saved(course, folder))
        each.client = client.key  # type: ignore[attr-defined]
        courses.append(each)
    return courses


def _saved(course: Course, folder: Path) -> Path:
    course.save(folder / "copy")
    return folder / "copy"


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No jar is needed, and none has an authorizer."""
    monkeypatch.setattr(program, "callback_jar", lambda path: path)
    monkeypatch.setattr(Case, "is_possible", property(lambda case: case.arm == "callback"))


@pytest.mark.usefixtures("jar")
def test_the_tables_are_put_into_the_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is around them stays; an arm that the jar does not have is left out."""
    monkeypatch.setattr(program, "happen", _happen)
    page = tmp_path / "page.md"
    page.write_text(f"# Ours\n{BEGIN}old{END}\nand what to do\n")

    assert 0 == run(monkeypatch, program, tmp_path, "sarama", "java", "--minutes", "1.25", "10")

    text = page.read_text()
    assert text.startswith("# Ours\n")
    assert text.endswith(f"{END}\nand what to do\n")
    assert "old" not in text
    assert ["75 s", "10 minutes"] == [
        line.partition("a throttle of ")[2] for line in text.splitlines() if line.startswith("###")
    ]
    assert [
        "2,000",
        "0 to 0 (0)",
        "30 s: timed / out",
        "3 from 30 s",
        "0",
        "0",
        "0",
        "1.0; 2",
        "> 40 s",
    ] == row(text.partition("10 minutes")[0], "Sarama |")


def test_every_client_has_a_version() -> None:
    """They are read where they are locked."""
    libraries = {"confluent-kafka" if c.library == "librdkafka" else c.library for c in CLIENTS}
    named = {each.split(" ")[0].lower() for each in versions().split(", ")}
    assert libraries == named


@pytest.mark.usefixtures("jar")
def test_what_fails_is_in_the_exit_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The others are measured all the same, and no earlier result stands for what failed."""

    async def happen(clients: list[object], case: Case, folder: Path) -> list[Course]:
        if clients[0] is CLIENTS[0]:
            raise ClusterError("no broker")
        return await _happen(clients, case, folder)

    monkeypatch.setattr(program, "happen", happen)
    (tmp_path / "java.callback.75.json").write_text("an earlier one")

    words = ["java", "sarama", "--abreast", "1", "--minutes", "1.25"]
    assert 1 == run(monkeypatch, program, tmp_path, *words)

    assert ["sarama.callback.75.json"] == [each.name for each in tmp_path.glob("*.75.json")]


def test_a_page_without_a_place_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody's page is overwritten."""
    (tmp_path / "page.md").write_text("# Another's\n")
    with pytest.raises(ValueError, match="no place for the tables"):
        run(monkeypatch, program, tmp_path, "report")
    assert "# Another's\n" == (tmp_path / "page.md").read_text()
