"""Every alert has its page, every page its alert, and what the pages instruct can be done."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sidecar.cli import group
from sidecar.settings.values import RUNBOOKS_URL
from tests.deploy.prometheus.rules import METRIC, ROOT, alerts, documented

FOLDER = ROOT / "docs" / "runbooks"
README = FOLDER / "README.md"
FAULTS_OF_KAFKA = {"KAFKA-20746"}
"""Pages without an alert, which the status page links to."""
PAGES = sorted({*FOLDER.glob("*.md")} - {README})
LINK = (
    '{{ with query "max by (url) (kafka_throttle_runbooks_info)" -}} {{ . | first | label "url" }}'
    f"{{{{ else }}}}{RUNBOOKS_URL}{{{{ end }}}}"
)
PARTS = ["What it means", "Check", "Do", "When it ends"]
KAFKA = {
    "kafka-acls.sh",
    "kafka-configs.sh",
    "kafka-delete-records.sh",
    "kafka-log-dirs.sh",
    "kafka-reassign-partitions.sh",
}
"""Kafka's own tools that the pages use."""

_BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#]*)(?:#([^)]+))?\)")
_ROUTE = re.compile(r"^\| `(?:GET|PUT|DELETE|POST) ([^`]+)`", re.MULTILINE)


def words(page: Path) -> Iterator[list[str]]:
    """The commands of a page, as a shell splits them."""
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in block.splitlines():
            yield shlex.split(line)


def commands(program: str) -> list[tuple[str, list[str]]]:
    """The page and the words of each command of a program."""
    return [(page.stem, each) for page in PAGES for each in words(page) if each[0] == program]


def names() -> set[str]:
    return {rule["alert"] for rule in alerts()}


def test_every_alert_has_its_page_and_every_page_its_alert() -> None:
    """The page has the alert's name. Faults of Kafka have pages, too."""
    assert names() | FAULTS_OF_KAFKA == {page.stem for page in PAGES}


def test_every_alert_links_its_page() -> None:
    """The link begins with the sidecars' address for it, or else with that setting's default."""
    expected = {(name, f"{LINK}{name}") for name in names()}
    assert expected == {(rule["alert"], rule["annotations"]["runbook_url"]) for rule in alerts()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_has_the_same_parts(page: Path) -> None:
    """They are in this order, under the alert's name, which its severities follow."""
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {page.stem}\n\n")
    assert PARTS == re.findall(r"^## (.*)$", text, re.MULTILINE)
    head = text.split("## ")[0].lower()
    severities = {rule["labels"]["severity"] for rule in alerts() if rule["alert"] == page.stem}
    assert severities == {each for each in ("critical", "warning") if each in head}


def test_every_page_says_after_how_long_it_fires() -> None:
    """The rule and the page agree: "5m" is "5 minutes"."""
    units = {"m": "minute", "h": "hour"}
    for rule in alerts():
        if "for" in rule:
            number, unit = rule["for"][:-1], units[rule["for"][-1]]
            head = (FOLDER / f"{rule['alert']}.md").read_text(encoding="utf-8").split("## ")[0]
            assert re.search(rf"\b{number}\s{unit}s?\b", head), (rule["alert"], rule["for"])


def test_links_lead_somewhere() -> None:
    """They lead to pages of ours that exist, and to headings that these have."""
    for page in (*PAGES, README):
        for file, heading in _LINK.findall(page.read_text(encoding="utf-8")):
            if file.startswith("https://"):
                continue
            target = page.parent / file if file else page
            assert target.is_file(), (page.stem, file)
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {each.lower().replace(" ", "-") for each in headings}
            assert heading in anchors | {""}, (page.stem, file, heading)


@pytest.mark.parametrize(("page", "command"), commands("throttle-sidecar"))
def test_our_commands_can_be_run(page: str, command: list[str]) -> None:
    """Each exists and takes these options; nothing is run."""
    at: click.Command = group
    rest = command[1:]
    context = click.Context(group)
    while isinstance(at, click.Group):
        found = at.get_command(context, rest[0])
        assert found is not None, (page, command)
        at, rest = found, rest[1:]
    if "--help" in rest:
        return
    at.make_context(command[0], rest)


def test_commands_are_known_programs() -> None:
    """They are ours, Kafka's, kubectl, and curl at routes that docs/api.md has."""
    api = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    routes = [re.sub(r"\\\{[a-z]+\\\}", "[^/]+", re.escape(each)) for each in _ROUTE.findall(api)]
    for page in PAGES:
        for command in words(page):
            assert command[0] in {"throttle-sidecar", "curl", "kubectl", *KAFKA}, (
                page.stem,
                command,
            )
            if command[0] == "curl":
                path = command[-1].removeprefix("http://127.0.0.1:7070")
                assert any(re.fullmatch(route, path) for route in routes), (page.stem, path)
    assert len(commands("throttle-sidecar")) > 10


def changes(action: str) -> set[tuple[str, str, str, str]]:
    """The page, the entity's type and name, and the key of all that pages add or delete."""
    found = set()
    for page, command in commands("kafka-configs.sh"):
        if action in command:
            at = command.index("--entity-type") + 1
            name = command[at + 2] if command[at + 1] == "--entity-name" else ""
            # A comma in brackets belongs to a value.
            for each in re.split(r",(?![^[]*\])", command[command.index(action) + 1]):
                found.add((page, command[at], name, each.partition("=")[0]))
    return found


def test_what_a_page_sets_it_also_deletes() -> None:
    """Nothing set at night stays. A topic's former retention is set again by hand."""
    added = {each for each in changes("--add-config") if each[1] != "topics"}
    assert 6 < len(added)
    assert set() == added - changes("--delete-config")


def test_a_reassignment_that_a_page_slows_is_fast_again() -> None:
    """--verify removes Kafka's throttle once the plan is complete."""
    runs = commands("kafka-reassign-partitions.sh")
    slowed = {page for page, command in runs if "--throttle" in command}
    assert slowed == {page for page, command in runs if "--verify" in command}


def test_pauses_that_pages_set_can_be_measured() -> None:
    """Those of docs/quota-callback-reference.md are the longest."""
    properties = (ROOT / "docs" / "quota-callback-reference.md").read_text(encoding="utf-8")
    (longest,) = re.findall(r"\| pause\.max\.ms .* Keep it at (\d+) or below", properties)
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    pauses = [int(each) for text in texts for each in re.findall(r"\.pause\.max\.ms=(\d+)", text)]
    assert max(pauses) <= int(longest)


def test_metrics_and_properties_are_there() -> None:
    """Those that pages name are documented."""
    properties = (ROOT / "docs" / "quota-callback-reference.md").read_text(encoding="utf-8")
    prefix = "client.quota.callback.sidecar."
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert set() == set(METRIC.findall(text)) - documented()
        for name in re.findall(rf"{re.escape(prefix)}([a-z.]+)=", text):
            assert re.search(rf"^\| {re.escape(name)} \|", properties, re.MULTILINE), name
