"""The demo's story as it is drawn, in the words of a terminal of 80 columns."""

import io
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from rich.console import Console, RenderableType

from kafka_lab.loads import Load
from kafka_lab.ports import Ports
from kafka_lab.scenario import ReceivedFactor, Scenario, Step, VolumeNow
from kafka_lab.screen import addresses, draw, picture, summary
from kafka_lab.series import Series
from kafka_lab.sidecar_processes import Sidecar
from kafka_lab.traffic import Traffic
from sidecar.cli import group

SVG = "{http://www.w3.org/2000/svg}"

FREE = VolumeNow("broker 2 volume 0", 100_000_000, 75_000_000)
FULL = VolumeNow("broker 2 volume 1", 100_000_000, 25_000_000)


def text(drawn: RenderableType, *, coloured: bool = False) -> list[str]:
    """The text of a terminal."""
    said = io.StringIO()
    colours: Literal["standard"] | None = "standard" if coloured else None
    Console(file=said, width=80, color_system=colours, force_terminal=coloured).print(drawn)
    return [line.rstrip() for line in said.getvalue().splitlines()]


def test_steps_are_drawn_as_seen_failed_or_waited_for() -> None:
    """They have a tick and the seconds, a cross, or a spinner."""
    scenario = Scenario(
        steps=[
            Step("brokers ready", "its start", 3.456),
            Step("volumes full", "its start", failed=True),
            Step("factor 0.0", "its start"),
        ]
    )
    seen, failed, waited_for = text(draw(scenario))
    assert "✓ brokers ready 3.46 s" == seen
    assert "✗ volumes full" == failed
    assert waited_for.endswith(" factor 0.0")
    assert waited_for[0] not in "✓✗ "


def test_a_low_terminal_shows_the_last_steps_and_what_happens() -> None:
    """Of 30 steps, those are left out that would hide the volumes, the factors and the rates."""
    scenario = Scenario(steps=[Step(f"step {n}", "its start", 1.0) for n in range(30)])
    scenario.volumes = [FREE, FULL]
    scenario.captions = [(1.0, "A volume fills."), (2.0, "It is full.")]
    drawn = text(draw(scenario, 24))
    assert "✓ step 29 1.00 s" in drawn
    assert len(drawn) < 24
    assert "It is full." in drawn
    assert "A volume fills." not in drawn


def test_a_volume_s_bar_shows_what_is_used_and_where_the_limit_is() -> None:
    """Of 32 cells 8 are used, the limit is after 16; then 24 are used, beyond it."""
    scenario = Scenario(limit_bytes=50_000_000, volumes=[FREE, FULL])
    _, free, full = text(draw(scenario))
    assert f"  broker 2 volume 0 {'█' * 8}{'░' * 8}│{'░' * 16} 75.0 MB left" == free
    assert f"  broker 2 volume 1 {'█' * 16}│{'█' * 8}{'░' * 8} 25.0 MB left" == full


def test_a_volume_at_the_limit_is_red() -> None:
    """It is red at the limit, not only below: the limit is violated there."""
    for limit_bytes, expected in ((FULL.available_bytes, 1), (FULL.available_bytes - 1, 0)):
        _, line = text(draw(Scenario(limit_bytes=limit_bytes, volumes=[FULL])), coloured=True)
        assert expected == line.count("\x1b[31m25.0 MB left")


def test_what_each_sidecar_says_is_drawn() -> None:
    """Sidecars are in the order of their brokers."""
    scenario = Scenario(
        volumes=[FREE], received={2: ReceivedFactor(1.0, 0.0), 0: ReceivedFactor(0.0, 0.0)}
    )
    _, _, *received = text(draw(scenario))
    assert ["  sidecar 0         factor 0.0", "  sidecar 2         factor 1.0"] == received


def test_the_summary_has_every_step_and_says_what_was_not_seen() -> None:
    """Each has a row: the seconds, and what they are counted from."""
    scenario = Scenario(
        steps=[
            Step("brokers ready", "its start", 3.456),
            Step("factor 0.0", "one moment", 0.1),
            Step("factor 1.0", "another moment", failed=True),
        ]
    )
    rows = [
        [cell.strip() for cell in line.strip("│").split("│")]
        for line in text(summary(scenario))
        if line.startswith("│")
    ]
    assert [
        ["brokers ready", "3.46", "its start"],
        ["factor 0.0", "0.10", "one moment"],
        ["factor 1.0", "not seen", "another moment"],
    ] == rows


def left_running(ports: Sequence[int], token_file: Path) -> Scenario:
    """A scenario whose sidecars are left running."""
    sidecars = tuple(
        Sidecar(number, "127.0.0.1", port, Path(f"{number}.log"))
        for number, port in enumerate(ports)
    )
    return Scenario(sidecars=sidecars, token_file=token_file)


@pytest.fixture
def ports() -> Iterator[list[int]]:
    """Two ports on which nobody listens meanwhile."""
    with Ports() as reserved:
        yield [reserved.reserve(), reserved.reserve()]


def test_the_commands_to_try_are_those_that_there_are(ports: list[int], tmp_path: Path) -> None:
    """An override of all sidecars is set, shown and cleared, with the token's file."""
    token_file = tmp_path / "a folder" / "token"
    token_file.parent.mkdir()
    token_file.write_text("secret")
    said = addresses(left_running(ports, token_file), "127.0.0.1:9092")
    assert "secret" not in said
    lines = [line.strip() for line in said.splitlines()]
    commands = [shlex.split(line) for line in lines if line.startswith("throttle-sidecar ")]
    assert [["override", "set"], ["override", "show"], ["override", "clear"]] == [
        words[1:3] for words in commands
    ]
    for words in commands:
        result = CliRunner().invoke(group, words[1:])
        assert (1, 2) == (result.exit_code, result.output.count("Connection refused")), words
        assert (words[2] != "show") == (str(token_file) in words)


def test_the_addresses_to_try_are_those_of_the_sidecars() -> None:
    """They are the first one's API and metrics, and all of them for the command that asks all."""
    scenario = left_running([7000, 7001], Path("token"))
    said = addresses(scenario, "127.0.0.1:9092")
    for expected in (
        "Brokers: 127.0.0.1:9092",
        "curl -s http://127.0.0.1:7000/v1/throttle-factor",
        "curl -s http://127.0.0.1:7000/metrics | grep ^kafka_throttle",
        "override show --sidecars http://127.0.0.1:7000,http://127.0.0.1:7001",
        "Log of sidecar 1: 1.log",
    ):
        assert expected in said


def load(name: str, rates: Sequence[float], quota: float | None = None) -> Load:
    """A producer that had these rates, bytes a second, for a second each; it wants 8 MB/s."""
    traffic = Traffic("", "t", bytes_per_s=8e6)
    sent = 0.0
    for second, rate in enumerate([0.0, *rates]):
        sent += rate
        traffic.samples.add(float(second), sent)
    traffic.longest_throttle_s = 4.0 if 0.0 in rates else 0.0
    return Load(name, 8e6, quota, traffic)


def test_throughput_is_drawn_second_by_second() -> None:
    """The bars are relative to the rate that is wanted; the longest throttle time is shown, too."""
    scenario = Scenario(loads=(load("broker 0", [8e6, 4e6, 0.0]), load("tenant", [1e6], 1e6)))
    first, second = [line for line in text(draw(scenario)) if "MB/s" in line]
    assert "to broker 0 █▄  0.0 MB/s now, longest wait 4.0 s" == first.strip()
    assert "tenant      ▁   1.0 MB/s now" == second.strip()


def test_the_picture_has_the_lines_the_moments_and_the_table() -> None:
    """It is a document of its own, as every browser draws it."""
    scenario = Scenario(
        limit_bytes=50_000_000,
        loads=(load("broker 0", [8e6, 0.0, 8e6]),),
        free=Series([(0.0, 90e6), (1.0, 50e6), (2.0, 90e6)]),
        moments={"limit crossed": 1.0, "space free": 2.0},
        steps=[Step("factor 0.0", "its start", 0.12), Step("factor 1.0", "its start")],
    )
    texts = [each.text for each in ET.fromstring(picture(scenario)).iter(f"{SVG}text")]
    expected = {"broker 0", "limit crossed", "space free", "limit", "factor 0.0", "0.12 s"}
    assert expected <= set(texts)
    assert "not seen" in texts


def test_without_traffic_there_is_no_picture() -> None:
    """Nothing was measured."""
    with pytest.raises(ValueError, match="nothing to draw"):
        picture(Scenario())
