"""docs/production.md: each log line, metric, route and command that it names is the program's."""

import ast
import logging
import re
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry

from sidecar.control.board import Board
from sidecar.control.journal import log_publication
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.rules import Rules
from sidecar.volumes import Failure, FailureKind, Observation, Reading
from tests.docs.markdown import ROOT, page, plain
from tests.sidecar.api.build import FakeSidecar
from tests.sidecar.throttle.build import FakeClock, reading, whole

FACTORS = VolumeLimit(Rules(MinAvailableBytes(10 * 10**9), 300.0), 1.0)
_, FAILURES = page("production").split("\n## Failure by failure\n")
SECTIONS = dict(re.findall(r"^### (.*)\n((?:(?!^##).*\n)+)", FAILURES, re.MULTILINE))
POINTS = ("Log", "Metrics", "Ask", "Do")
JOURNAL = re.compile(r"throttle factor |broker \d+(?::| is no longer polled) |polling: ")
"""The begin of the lines that a board's listener logs."""


def points(section: str) -> dict[str, str]:
    """The text under Log, Metrics and so on, each on one line."""
    found = re.findall(r"^- \*\*(\w+)\*\*: ((?:.*\n)(?:  .*\n)*)", SECTIONS[section], re.MULTILINE)
    return {point: " ".join(text.split()) for point, text in found}


def log_lines() -> Iterator[str]:
    """Every log line that the page shows."""
    for section in SECTIONS:
        text = " ".join(text for point, text in points(section).items() if point in {"Log", "Do"})
        for shown in re.findall(r"`([^`]*)`", text):
            if not re.match(r"throttle-sidecar |kafka_|client\.|SIDECAR_", shown):
                yield shown


def strings_of_ours() -> str:
    """Every text in the program's and the callback's source, one a line."""
    found = []
    for path in (ROOT / "sidecar").rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
        found += [each for each in constants if isinstance(each, str)]
    for path in (ROOT / "deploy/quota-callback/src/main").rglob("*.java"):
        source = re.sub(r'"\s*\+\s*"', "", path.read_text(encoding="utf-8"))
        found += re.findall(r'"([^"\n]*)"', source)
    return "\n".join(re.sub(r"%[.\d]*[a-z]", "\x00", each) for each in found)


def of_a_board(caplog: pytest.LogCaptureFixture) -> set[str]:
    """The log while the failures of the page happen to two brokers."""
    caplog.set_level(logging.INFO, "sidecar.control.journal")
    clock = FakeClock()
    board = Board(FACTORS, clock, listeners=(log_publication,))

    def says(broker_id: int, free_gb: float) -> Reading:
        free = {"/data/d1": int(free_gb * 10**9)}
        return reading(broker_id, clock.now, free, total=10**12)

    def see(observation: Observation) -> None:
        board.observe(observation)

    see(whole(0.0, [says(1, 500), says(2, 20)]))
    see(whole(0.0, [says(1, 500), says(2, 9.1)]))
    see(whole(0.0, [says(1, 500)], silent=[2]))
    see(whole(0.0, [says(1, 500)], fenced=[2]))
    see(whole(0.0, [says(1, 500), says(2, 200)]))
    clock.now = 400.0
    unreachable = Failure(FailureKind.CONNECT, "kafka-0:9092: no route to host while connecting")
    board.fail(unreachable)
    clock.now = 1000.0
    see(whole(1000.0, [says(1, 500)], silent=[2]))
    return {record.getMessage() for record in caplog.records}


def test_every_failure_says_what_to_see_and_do() -> None:
    """Each has something to do, and a log line or a metric to know it by."""
    assert 15 < len(SECTIONS)
    for section in SECTIONS:
        reported = points(section)
        assert set() == reported.keys() - set(POINTS), section
        assert "Do" in reported, section
        assert reported.keys() & {"Log", "Metrics"}, section


@pytest.mark.slow
def test_log_lines_are_the_programs(caplog: pytest.LogCaptureFixture) -> None:
    """What stands between the gaps (…) of a line is in the source; whole ones are really logged."""
    source, logged = strings_of_ours(), of_a_board(caplog)
    shown = list(log_lines())
    assert 20 < len(shown)
    for line in shown:
        if JOURNAL.match(line) and "…" not in line:
            assert line in logged
        elif match := re.fullmatch(r"polling: (\w+): …", line):
            assert match[1] in list(FailureKind)
        else:
            pieces = [piece.strip(" :") for piece in line.split("…")]
            pieces = [each.removeprefix("throttle factor 1.0 (override): ") for each in pieces]
            assert max(map(len, pieces)) > 8, line
            assert [] == [each for each in pieces if each not in source], line


@pytest.mark.slow
def test_routes_that_are_named_exist() -> None:
    """Every GET of the page is one of the API's."""
    known = set(map(plain, FakeSidecar(registry=CollectorRegistry()).app.openapi()["paths"]))
    named = set(re.findall(r"`GET (/\S*?)`", page("production")))
    assert 5 < len(named)
    assert set() == named - known


def test_kinds_of_failure_that_are_named_exist() -> None:
    """What follows "of the kind" is one."""
    text = " ".join(FAILURES.split())
    named = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"of the kinds? (.*?) - \*\*", text))))
    assert {"timeout", "incomplete", "authorization", "unexpected"} <= named
    assert set() == named - set(FailureKind)
