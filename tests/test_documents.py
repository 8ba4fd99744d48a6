"""The pages say what the code does: routes, settings, metrics, commands, output."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from prometheus_client import CollectorRegistry

from sidecar.cli import COMMANDS, group
from sidecar.history.volume_line import to_line
from sidecar.settings import SettingRow, describe
from sidecar.volumes import Observation, OfflineLogDir, Reading, Volume
from tests.docs.blocks import blocks
from tests.sidecar.api.build import FakeSidecar
from tools.pages import OWN_ROUTES
from usage_pipeline.recommend.terms import FLOORS
from usage_pipeline.tables.schemas import SILVER_VOLUME

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
RESULTS = ROOT / "benchmarks" / "results"
PAGES = {
    path.relative_to(ROOT).as_posix(): path
    for path in [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")), *RESULTS.glob("*.md")]
}
METHODS = ("GET", "PUT", "POST", "DELETE")

_FENCE = re.compile(r"^\s*```.*?^\s*```$", re.DOTALL | re.MULTILINE)


def text_of(page: str) -> str:
    """A page as it is written."""
    return PAGES[page].read_text(encoding="utf-8")


def rows(page: str, cells: int) -> Iterator[list[str]]:
    """The cells of a page's tables with at least so many columns."""
    for line in text_of(page).splitlines():
        if line.startswith("|"):
            found = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if len(found) >= cells:
                yield [cell.replace("\\|", "|") for cell in found]


def anchors(path: Path) -> set[str]:
    """What a link may name after "#": headings as GitHub writes them."""
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def runs(page: str) -> Iterator[tuple[list[str], str]]:
    """The commands of ours that a page's blocks show, as words, and what it shows after each."""
    for block in blocks(page):
        for command in block.commands:
            ours = command.line.removeprefix("time ").removesuffix("&")
            if ours.startswith("throttle-sidecar "):
                yield shlex.split(ours, comments=True)[1:], command.shown


def named(page: str) -> Iterator[list[str]]:
    """The commands of ours that a page names in its text or in a script, as words."""
    text = text_of(page)
    for command in re.findall(r"`throttle-sidecar ([^`|]*)`", " ".join(text.split())):
        yield shlex.split(command)
    scripts = re.findall(r"^ *```(?:sh|bash)\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    for command in re.findall(r"throttle-sidecar ([a-z].*)", "\n".join(scripts)):
        yield shlex.split(command, comments=True)


def test_links_lead_somewhere() -> None:
    """They lead to a file of the project that exists, and to a heading that is in it."""
    missing = []
    for page, path in PAGES.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", _FENCE.sub("", text_of(page))):
            if "://" in target:
                continue
            name, _, anchor = target.partition("#")
            to = path.parent / name if name else path
            if not to.exists() or (anchor and anchor not in anchors(to)):
                missing.append((page, target))
    assert [] == missing


@pytest.mark.slow
def test_every_route_is_documented() -> None:
    """The table of docs/api.md has each method and path of the whole API, and no other."""
    sidecar = FakeSidecar(registry=CollectorRegistry())
    # tests/docs/test_pages.py has those that are not in the document.
    served = {(method, path) for method, path in (each.split() for each, _ in OWN_ROUTES)}
    for path, operations in sidecar.app.openapi()["paths"].items():
        plain = re.sub(r"\{(\w+):path\}", r"{\1}", path).replace("{broker_id}", "{id}")
        served |= {(method.upper(), plain) for method in operations if method.upper() in METHODS}
    reported = {
        (method, path)
        for request, *_ in rows("docs/api.md", 2)
        for method, path in re.findall(rf"`({'|'.join(METHODS)}) (/[^\s`]*)`", request)
    }
    assert served == reported


def setting_cells(row: SettingRow) -> list[str]:
    """A row of docs/settings.md."""
    has_property = "yes" if row.property else ""
    name = row.environment.removeprefix("SIDECAR_")
    return [name, row.toml, row.default, row.unit, row.meaning, has_property]


def test_every_setting_is_documented() -> None:
    """Docs/settings.md has each one, in order, with its keys, default, unit and meaning."""
    heading, line, *reported = rows("docs/settings.md", 6)
    assert (["TOML", "---"]) == [heading[1], line[1]]
    assert [setting_cells(row) for row in describe()] == reported


def test_the_floors_of_recommendations_are_documented() -> None:
    """Docs/pipeline-reference.md has each kind of quota with its smallest recommendation."""
    reported = {
        kind: float(floor.replace(",", ""))
        for kinds, _, floor, *_ in rows("docs/pipeline-reference.md", 3)
        for kind in kinds.split(", ")
        if kind in FLOORS
    }
    assert FLOORS == reported


def test_the_volume_history_is_documented() -> None:
    """Docs/volume-history.md has each field of a line, and each column that is made of them."""
    page = "docs/volume-history.md"
    stored = [column.name for column in SILVER_VOLUME.stored]
    reported = [row for row in rows(page, 2) if row[0] in stored]
    assert stored == [name for name, _ in reported]
    reading = Reading(1, 0.0, (Volume(1, "/d1", 100, 25),), (OfflineLogDir("/d2", "gone"),))
    observation = Observation(0.0, "b1:9092", None, {1: reading})
    line = json.loads(to_line(observation, "kafka-0-7070", 0.5, "MkU3"))
    parts = {f"{each}.{name}" for each in ("volumes", "offline") for name in line[each][0]}
    named = {name for _, cell in reported for name in re.findall("`(.*?)`", cell)}
    assert parts | {"time", "offline", "cluster_id"} == named
    in_no_column = set(line) - {name.split(".")[0] for name in named}
    _, text = text_of(page).split("\n## The table\n")
    (sentence,) = re.findall(r"^.* are in no column", text, re.MULTILINE)
    assert in_no_column == set(re.findall("`(.*?)`", sentence))


def unknown_names(pattern: str, known: set[str]) -> list[tuple[str, str]]:
    """Each page with a name of this form that is none."""
    return [
        (page, name)
        for page in PAGES
        for name in re.findall(pattern, text_of(page))
        if name not in known
    ]


def test_settings_that_are_named_exist() -> None:
    """Every SIDECAR_... that a page names, those that end in _* or ... aside, is a setting."""
    known = {row.environment for row in describe()}
    assert [] == unknown_names(r"\bSIDECAR_[A-Z_]*[A-Z](?![A-Z_*.]*[*])", known)


def test_metrics_that_are_named_exist() -> None:
    """Every kafka_throttle_... that a page names is a row of docs/metrics.md."""
    known = {name.strip("`") for name, *_ in rows("docs/metrics.md", 6)}
    assert [] == unknown_names(r"\bkafka_throttle_\w+", known)


def test_every_command_is_documented() -> None:
    """docs/commands.md has each command; a page has each subcommand of a group."""
    reported = " ".join(cell for cell, *_ in rows("docs/commands.md", 2))
    assert [] == [name for name in COMMANDS if f"throttle-sidecar {name}" not in reported]
    pages = {
        "callback": "quota-callback",
        "history": "volume-history",
        "quotas": "quotas-planning",
        "topics": "quotas-topics",
        "request-log": "request-log",
        "pipeline": "pipeline",
    }
    for name, page in pages.items():
        text = text_of(f"docs/{page}.md")
        with click.Context(group) as context:
            command = group.get_command(context, name)
            assert isinstance(command, click.Group)
            missing = [each for each in command.list_commands(context) if each not in text]
        assert [] == missing


@pytest.mark.slow
def test_commands_that_are_shown_exist() -> None:
    """Each command, subcommand and option that a page shows or names is one of the program's."""
    shown = (words for page in PAGES for words in [*(ran for ran, _ in runs(page)), *named(page)])
    for words in shown:
        command: click.Command = group
        rest = list(words)
        while isinstance(command, click.Group) and rest:
            with click.Context(command) as context:
                found = command.get_command(context, rest.pop(0))
            assert found is not None, words
            command = found
        options = {option for each in command.params for option in each.opts}
        used = {word.partition("=")[0] for word in rest if word.startswith("--")}
        assert set() == used - options - {"--help"}, words


def test_output_that_needs_no_cluster_is_as_shown() -> None:
    """Plans for a stated capacity print what docs/quotas-planning.md shows."""
    shown = [
        (words, output)
        for words, output in runs("docs/quotas-planning.md")
        if "--capacity" in words and "--bootstrap-server" not in words
    ]
    assert [] != shown
    for words, output in shown:
        assert output == CliRunner().invoke(group, words).output
