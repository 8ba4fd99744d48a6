"""The file with the classes, and what page, API and metrics show."""

from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from sidecar.control.metric_source import MetricSource
from sidecar.errors import SettingsError
from sidecar.relief.capability import ReliefCapability, prepare
from sidecar.relief.classes_file import ClassesFile
from sidecar.relief.service import Relief
from sidecar.settings import load
from sidecar.throttle.relief import ReliefClass
from tests.sidecar.control.services import services
from tests.sidecar.relief.scripted import Sidecar, run, started

FILE = """
[[class]]
topics = ["logs", "debug.*"]
keep_bytes = "200MB"
keep_time = "1h"

[[class]]
topics = ["clicks"]
keep_time = "30m"
ignore_groups = true
"""


def test_classes_in_their_order(tmp_path: Path) -> None:
    """Sizes and durations are written as in settings."""
    path = tmp_path / "relief.toml"
    path.write_text(FILE)
    first = ReliefClass(("logs", "debug.*"), 200_000_000, 3600.0)
    second = ReliefClass(("clicks",), None, 1800.0, ignores_groups=True)
    assert (first, second) == ClassesFile(path).load()


def test_bytes_may_be_a_number(tmp_path: Path) -> None:
    """As in the file of budgets."""
    path = tmp_path / "relief.toml"
    path.write_text('[[class]]\ntopics = ["logs"]\nkeep_bytes = 200_000_000\n')
    assert (ReliefClass(("logs",), 200_000_000),) == ClassesFile(path).load()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Object missing required field `class`"),
        ("class = []", "at least one class is needed"),
        ('[[class]]\ntopics = ["a"]', "class 1: keep_bytes, keep_time or both are needed"),
        ('[[class]]\ntopics = []\nkeep_time = "1h"', "class 1: topics is empty"),
        ('[[class]]\ntopics = ["a"]\nkeep_bytes = "9G"', "class 1: '9G'"),
        ('[[class]]\ntopics = ["a"]\nkeep_tim = "1h"', "unknown field `keep_tim`"),
        ('[[class]]\ntopics = ["a"]\nkeep_bytes = 0', "class 1: keep_bytes must be > 0"),
        ('[[class]]\ntopics = ["a"]\nkeep_bytes = -1', "class 1: '-1'"),
        ('[[class]]\ntopics = ["a"]\nkeep_time = "0s"', "class 1: keep_time must be > 0"),
        ("[[", "is not TOML"),
    ],
)
def test_a_file_that_cant_be_used(tmp_path: Path, text: str, problem: str) -> None:
    """It prevents the start, and says why."""
    path = tmp_path / "relief.toml"
    path.write_text(text)
    with pytest.raises(SettingsError) as raised:
        ClassesFile(path).load()
    assert problem in str(raised.value)


def built(sidecar: Sidecar, **more: str) -> ReliefCapability:
    """The capability by these settings."""
    environ = {
        "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": "a:9092",
        "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": "10",
        **more,
    }
    capability = prepare(load(environ=environ).settings)(services(sidecar.board, "relief"))
    assert isinstance(capability, ReliefCapability)
    return capability


def sample(capability: ReliefCapability, name: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(MetricSource(capability.metrics))
    return registry.get_sample_value(f"kafka_throttle_relief_{name}")


async def test_it_is_off_without_a_file_and_a_dry_run_by_default(tmp_path: Path) -> None:
    """Metrics exist in any case."""
    _, sidecar = started(1, tmp_path)
    path = tmp_path / "relief.toml"
    path.write_text(FILE)
    off = built(sidecar)
    assert ({}, None, 0.0) == (off.tasks(), off.block(), sample(off, "deletions_total"))
    file, state = str(path), str(tmp_path / "state.json")
    delete = {"SIDECAR_RELIEF_MODE": "delete", "SIDECAR_STATE_FILE": state}
    for more, deletes in (
        ({}, False),
        (delete, True),
        ({**delete, "SIDECAR_MODE": "observe"}, False),
    ):
        made = built(sidecar, SIDECAR_RELIEF_FILE=file, **more)
        assert {"relief", "relief file"} == set(made.tasks())
        assert made.relief is not None
        assert deletes == made.relief.deletes


async def test_what_is_shown(tmp_path: Path) -> None:
    """What would go in a dry run, and what went with its journal."""
    for mode, begins in (("dry-run", "Dry run: would delete about"), ("delete", "Deletes about")):
        world, sidecar = started(1, tmp_path / mode)
        relief: Relief = sidecar.relief
        relief.mode = mode  # type: ignore[assignment]
        while not relief.planned.deletions:
            await run(world, 1.0, sidecar)
        capability = ReliefCapability(relief)
        block = capability.block()
        assert block is not None
        assert block.sentences[0].startswith(begins)
        app = FastAPI()
        capability.add_routes(app)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
            document = (await client.get("/v1/relief")).json()
        assert (mode, True) == (document["mode"], document["acts"])
        assert all(each["topic"].startswith("logs-") for each in document["planned"])
        assert relief.planned.why == document["why"]
        kinds = [line["kind"] for line in document["journal"]]
        assert (["end", "begin"] if mode == "delete" else []) == kinds
        planned = sum(each.about_bytes for each in relief.planned.deletions)
        assert planned == sample(capability, "planned_bytes")
        deleted = planned if mode == "delete" else 0
        assert deleted == sample(capability, "deleted_bytes_total")
