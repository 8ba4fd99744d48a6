"""What the pipeline's commands pass to the job, and what they say without Spark or Java."""

import io
import json
import logging
import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sidecar.cli import group
from sidecar.errors import SidecarError
from sidecar.quotas.entities import Entity
from usage_pipeline.cli import command as pipeline
from usage_pipeline.cli.job_options import (
    DiskOptions,
    InputOptions,
    JobOptions,
    ReplayOptions,
    TermsOptions,
)
from usage_pipeline.cli.running import inputs_of, options_of, write_file
from usage_pipeline.recommend.terms import FLOORS


def called(*words: str) -> Result:
    return CliRunner().invoke(group, ["pipeline", *words])


def unread(folder: Path, file: str) -> str:
    """The folder of an input that nobody reads, since Spark doesn't start."""
    path = folder / file
    path.parent.mkdir()
    path.touch()
    return str(path.parent)


BILL = ("--rates", os.devnull, "--owners", os.devnull)
REQUEST_LOG, HISTORY = "broker-1/kafka-request.log", "history/volumes-a-20261118T10.jsonl"


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")


@pytest.mark.parametrize("name", sorted(pipeline.commands))
def test_each_command_shows_its_options_without_spark(name: str) -> None:
    """Help needs nothing that is not there in a plain install."""
    result = called(name, "--help")
    assert (0, True) == (result.exit_code, "Usage:" in result.output)


def test_without_java_it_says_what_to_install(tmp_path: Path) -> None:
    """It says so before anything is written."""
    out = tmp_path / "tables"
    result = called("silver", "--volumes", unread(tmp_path, HISTORY), "--out", str(out))
    assert 2 == result.exit_code
    assert "apt-get install openjdk-17-jre-headless" in result.output
    assert not out.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run",), "there are no inputs; use --request-logs, --volumes or --quotas"),
        (("silver",), "there are no inputs; use --request-logs, --volumes or --quotas"),
        (("replay", "--candidates", "1"), "1 candidate is too few; use 0 for none, or at least 2"),
        (("run", "--volumes", ".", "--plan", "plan.json"), "use --request-logs"),
        (
            ("recommend", "--plan", "nowhere/plan.json"),
            "the folder nowhere does not exist; create it",
        ),
        (("recommend", "--floor", "prodce=1"), "prodce=1: "),
        (
            ("run", "--request-logs", ".", "--plan", "nowhere/plan.json"),
            "the folder nowhere does not exist; create it",
        ),
        (("run", "--request-logs", "nowhere"), "nowhere: "),
        (("silver", "--volumes", "nowhere"), "nowhere has no volume history"),
        (("silver", "--request-logs", ".", "--zone", "Mars"), "'Mars' "),
        (("silver", "--request-logs", ".", "--broker-pattern", "("), "the broker pattern '('"),
        (("silver", "--quotas", "nowhere.json"), "'nowhere.json' does not exist"),
        (("usage",), "silver --request-logs"),
        (("usage", "--zone", "UTC"), "need --request-logs"),
        (("usage", "--request-logs", "nowhere"), "nowhere: "),
        (("replay",), "silver --request-logs"),
        (("recommend",), "pipeline usage --out tables"),
        (("forecast",), "pipeline silver --volumes PATH --out tables"),
        (("costs", "--owners", os.devnull), "Missing option '--rates'"),
        (("costs", "--rates", "nowhere", "--owners", os.devnull), "'nowhere' does not exist"),
        (("costs", *BILL), "pipeline usage --out tables"),
        (("usage", "--master", "spark:7077"), "--master spark:7077: "),
        (
            ("usage", "--since", "2026-11-21", "--until", "2026-11-21"),
            "--since must be before --until",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_before_spark_starts(
    words: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is not refused after the start, or at the end of a run that took hours."""
    monkeypatch.chdir(tmp_path)
    result = called(*words, "--out", "tables")
    assert (2, True) == (result.exit_code, message in result.output)
    assert [] == list(tmp_path.iterdir())


def test_logs_without_quotas_are_reported(tmp_path: Path) -> None:
    """The quotas in force are not known then; nothing is said where no logs are read."""
    out = str(tmp_path / "tables")
    (quotas := tmp_path / "quotas.json").write_text('{"quotas": []}')
    logs = ["--request-logs", unread(tmp_path, REQUEST_LOG)]
    volumes = ["--volumes", unread(tmp_path, HISTORY)]
    said = [
        "without --quotas" in called("silver", *words, "--out", out).stderr
        for words in (logs, [*logs, "--quotas", str(quotas)], volumes)
    ]
    assert [True, False, False] == said
    # Usage needs no quotas, and with logs it needs no tables.
    output = called("usage", *logs, "--out", out).output
    assert "Spark needs Java" in output
    assert "without --quotas" not in output


def test_what_cannot_be_written_is_reported(tmp_path: Path) -> None:
    """A plan or a page that can't be written has a message without a traceback."""
    (tmp_path / "plan").mkdir()
    with pytest.raises(SidecarError, match="plan can't be written: Is a directory"):
        write_file(tmp_path / "plan", "")


def test_a_page_is_replaced_whole(tmp_path: Path) -> None:
    """Who reads the old one meanwhile reads all of it; a link is written through."""
    page, link = tmp_path / "report.html", tmp_path / "link"
    write_file(page, "the old page")
    link.symlink_to(page)
    with page.open() as opened:
        write_file(page, "new")
        assert "the old page" == opened.read()
    assert "new" == page.read_text()
    write_file(link, "newer")
    assert "newer" == page.read_text()
    assert link.is_symlink()
    assert [link, page] == sorted(tmp_path.iterdir())


def test_ctrl_c_ends_a_run_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Spark has a handler of its own, under which its client logs two."""

    def made(*_: object, **__: object) -> object:
        signal.signal(signal.SIGINT, lambda *_: pytest.fail("Spark's own handler"))
        return object()

    def interrupted(*_: object, **__: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        except KeyboardInterrupt:
            logging.getLogger().exception("as py4j logs it")
            raise

    monkeypatch.setattr("usage_pipeline.runtime.session.session", made)
    monkeypatch.setattr("usage_pipeline.batch.job.run", interrupted)
    logged = logging.StreamHandler(stream := io.StringIO())
    logging.getLogger().addHandler(logged)
    before = signal.getsignal(signal.SIGINT)
    try:
        words = ["--volumes", unread(tmp_path, HISTORY), "--out", str(tmp_path / "tables")]
        result = called("silver", *words)
        logging.getLogger().error("afterwards")
    finally:
        logging.getLogger().removeHandler(logged)
        signal.signal(signal.SIGINT, before)
    assert (130, True) == (result.exit_code, "Interrupted. Run the command again." in result.output)
    assert "afterwards\n" == stream.getvalue()


def test_a_plan_may_lie_in_the_folder_that_is_made(tmp_path: Path) -> None:
    """The tables' folder exists by the end."""
    out = tmp_path / "tables"
    logs = unread(tmp_path, REQUEST_LOG)
    words = ["--request-logs", logs, "--plan", str(out / "plan.json"), "--out", str(out)]
    result = called("run", *words)
    assert (2, True) == (result.exit_code, "Spark needs Java" in result.output)


def test_quotas_were_in_force_when_they_were_written(tmp_path: Path) -> None:
    """The option sets another time; zones and patterns are passed to the reader."""
    quotas = tmp_path / "quotas.json"
    entry = {"entity": {"user": "alice"}, "quotas": {"producer_byte_rate": 10.0}}
    quotas.write_text(json.dumps({"quotas": [entry]}))
    os.utime(quotas, (1_700_000_000, 1_700_000_000))
    as_of = datetime(2026, 11, 20, tzinfo=UTC)
    zones_of = ("Europe/Berlin", "3=UTC")
    options = InputOptions("logs", "history", quotas, zones_of, r"(?P<broker>\d)", "%d %m%n")
    inputs = inputs_of(options)
    assert inputs.request_logs is not None
    assert inputs.quotas is not None
    assert {Entity("alice"): {"producer_byte_rate": 10.0}} == inputs.quotas.quotas
    assert 1_700_000_000 == inputs.quotas.as_of.timestamp()
    zones = inputs.request_logs.zones
    assert ("UTC", "Europe/Berlin") == (zones.name_of(3), zones.name_of(4))
    assert r"(?P<broker>\d)" == inputs.request_logs.broker_pattern
    assert "%d %m%n" == inputs.request_logs.layout
    later = inputs_of(InputOptions(quotas=quotas, quotas_at=as_of)).quotas
    assert later is not None
    assert (None, as_of) == (inputs_of(InputOptions()).quotas, later.as_of)


def test_percents_become_shares(tmp_path: Path) -> None:
    """Days become hours; capacity is what `quotas capacity --json` printed."""
    capacity = tmp_path / "capacity.json"
    capacity.write_text('{"smallest_capacity_percent": 1100}')
    options = options_of(
        JobOptions("tables"),
        ReplayOptions(7, ("x2",)),
        TermsOptions(
            target=2.0,
            longest_wait=12.0,
            margin=10.0,
            floor=(("produce", 5e4),),
            capacity=capacity,
            network=125e6,
        ),
        DiskOptions(limit_ratio=0.1, horizon_days=2.0),
    )
    terms, disks = options.terms, options.forecasting
    assert (0.02, 12.0, 0.99, 0.1, 0.5) == (
        *(terms.target, terms.longest_wait_s, terms.percentile, terms.margin),
        terms.least_coverage,
    )
    assert {**FLOORS, "produce": 5e4} == terms.floors
    assert (0.1, 48.0) == (disks.limit_ratio, disks.horizon_hours)
    assert {"request": 1100.0, "produce": 125e6, "fetch": 125e6} == options.capacity
    assert (7, [2.0]) == (options.candidates, [each.factor for each in options.scenarios])


def test_a_file_that_is_no_capacity_is_refused(tmp_path: Path) -> None:
    """One line names it."""
    capacity = tmp_path / "capacity.json"
    capacity.write_text("[]")
    terms = TermsOptions(capacity=capacity)
    with pytest.raises(SidecarError, match=r"capacity\.json is not an output of"):
        options_of(JobOptions("tables"), ReplayOptions(), terms, DiskOptions())
