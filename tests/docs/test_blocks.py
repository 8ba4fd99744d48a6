"""The console blocks of README.md and docs/ that need no cluster, run as they stand."""

import json
import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from tests.docs.blocks import BLOCKS, Block, is_shown, pages_with, run
from tests.sidecar.api.build import FakeSidecar
from tests.support.daemon import started

WHERE = ("alone", "sidecar", "cluster", "secured", "demo", "spark")


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_every_block_is_run_or_says_why_not(block: Block) -> None:
    """The comment right before it says so, or its programs do; see tests/docs/blocks.py."""
    assert 0 < len(block.commands)
    if block.mark == "" and block.is_for_a_machine:
        return
    assert "" != block.mark, "neither <!-- run: ... --> nor <!-- not run: ... --> before it"
    assert block.where in WHERE if block.mark == "run" else 10 < len(block.where)


def test_some_of_each_kind_are_run() -> None:
    """A misread mark would run nothing."""
    assert [] == [where for where in WHERE if not pages_with(where)]


@pytest.mark.slow
@pytest.mark.parametrize("page", pages_with("alone"))
def test_blocks_that_need_nothing(page: str, tmp_path: Path) -> None:
    """They end as the page says, and print what it shows."""
    run(page, "alone", tmp_path, {}, {})


@pytest.mark.parametrize("page", pages_with("sidecar"))
@pytest.mark.slow
async def test_blocks_that_ask_a_sidecar(page: str, tmp_path: Path) -> None:
    """They ask one that is disabled, and takes changes."""
    (tmp_path / "token").write_text("t0k3n")
    settings = {
        "SIDECAR_STORAGE_CHECK_INTERVAL": "PT0S",
        "SIDECAR_TOKEN_FILE": str(tmp_path / "token"),
    }
    async with started(tmp_path, settings) as daemon:
        run(page, "sidecar", tmp_path, {"127.0.0.1:7070": daemon.address}, {"TOKEN": "t0k3n"})


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", pages_with("spark"))
def test_blocks_that_need_spark(page: str, tmp_path: Path) -> None:
    """The pipeline's blocks are run with less data."""
    run(page, "spark", tmp_path, {}, {})


@pytest.mark.slow
def test_keys_of_answers_that_are_shown_exist() -> None:
    """Each key of the JSON that a block shows after curl is one of the API's forms."""
    shown = "".join(
        command.shown for block in BLOCKS for command in block.commands if "curl" in command.line
    )
    named = set(re.findall(r'"(\w+)":', shown))
    assert 50 < len(named)
    app = FakeSidecar(registry=CollectorRegistry()).app
    forms = app.openapi()["components"]["schemas"].values()
    assert set() == named - {key for form in forms for key in form["properties"]}


@pytest.mark.parametrize("path", ["/v1/throttle-factor", "/v1/quota-factors"])
async def test_an_answer_that_is_shown_has_every_key(path: str) -> None:
    """The first example of docs/api.md has the keys of the real answer, in its order."""
    shown = next(
        command.shown
        for block in BLOCKS
        for command in block.commands
        if block.page == "docs/api.md" and command.line.endswith(path)
    )
    answer = await FakeSidecar().get(path)
    assert list(answer.json()) == list(json.loads(shown.partition("\n\n")[2]))


@pytest.mark.parametrize(
    ("shown", "output", "expected"),
    [
        ("a b\n", "x\na  b\n", True),
        ("a…d\n", "a b c d\n", True),
        ("{1,\n 2}\n", "{1,2}\n", True),
        ("b\na\n", "a\nb\n", False),
        ("a c\n", "a b\n", False),
    ],
)
def test_what_is_as_shown(shown: str, output: str, *, expected: bool) -> None:
    """All that is shown is printed, in this order."""
    assert expected == is_shown(shown, output)
