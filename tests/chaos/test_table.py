"""The table repeats what a run came to, and of a broken claim how to see it again."""

from kafka_lab.series import Series
from tests.chaos.course import Producer
from tests.chaos.made import FAULT, course, sample
from tests.chaos.table import command, report


def test_a_good_run() -> None:
    """A row for each broker and producer; nothing is broken."""
    run = course([sample(1.0), sample(2.0, (9, 8, -9)), sample(3.0), sample(9.0)])
    run.producers = [Producer("Java", 1e6, Series([(0.0, 0.0), (9.0, 9e6)]), 3.25, 12, "late")]
    text = report(run)
    assert "| 0      | 1         | 9.0 MB" in text
    assert "| 2      | 0 " in text
    assert "| 0           | 0:02 | 0:03 | 9.0 MB" in text
    assert "| SIDECAR after 0.0 s | SIDECAR after 0.0 s |" in text
    assert "| Java     | 1.0 MB/s | 3.2 s" in text
    assert "| 12; the last: late |" in text
    assert "BROKEN" not in text
    assert "tracebacks in logs: 0" in text


def test_a_broken_claim_comes_with_its_faults_and_its_command() -> None:
    """Those of the minute before."""
    run = course([sample(1.0), sample(80.0, (100, -9, -9))], faults=[FAULT])
    run.events = [(1.0, "too early"), (30.0, str(FAULT)), (81.0, "too late")]
    text = report(run)
    broken = text[text.index("BROKEN at 1:20") :]
    assert "no volume is full" in broken
    assert "  0:30  " in broken
    assert "too" not in broken
    assert "again: make chaos SEED=7 MINUTES=1" in broken
    assert "make chaos SEED=7 MINUTES=1" == command(run)


def test_blindness_has_a_row_each() -> None:
    """From when to when, and why."""
    run = course(
        [
            sample(61.0, (1, 1, 1), sidecars=[None] * 3, away=["sidecar 2"]),
            sample(65.0, (4, 1, 1), sidecars=[None] * 3, away=["sidecar 2"]),
        ]
    )
    assert "| sidecar 2 | 1:01 | 1:05 | away" in report(run)
    assert "3.0 MB" in report(run)


def test_a_run_that_was_interrupted_at_once() -> None:
    """There is nothing to be said of it."""
    assert "0:00 of 1:00 minutes" in report(course())
