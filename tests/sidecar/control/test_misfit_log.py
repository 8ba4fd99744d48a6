"""The warnings about lines that do not fit a volume: once for each volume and size."""

import logging

import pytest

from sidecar.control.board import Board
from sidecar.control.misfit_log import MisfitLog
from sidecar.throttle.decision import Disabled, VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.rules import Rules
from sidecar.volumes import Observation
from tests.sidecar.throttle.build import FakeClock, reading, whole

FACTORS = VolumeLimit(Rules(MinAvailableBytes(10, 90), 300.0), 1.0)
EFFECT = (
    ": even an empty volume does not reach the release margin of 90 B above the limit of 10 B, so a"
    " violation never ends; set a smaller margin"
)


def seen(at: float, *totals: int, fenced: tuple[int, ...] = ()) -> Observation:
    """Volumes of brokers 1, 2 and so on, of these sizes."""
    readings = [
        reading(n, at, {"/d": total // 2}, total=total)
        for n, total in enumerate(totals, 1)
        if n not in fenced
    ]
    return whole(at, readings, fenced=fenced)


def test_each_volume_and_each_change_of_its_size_is_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Neither the next poll nor a broker that comes back repeats it; a larger volume ends it."""
    board = Board(FACTORS, FakeClock(), listeners=(MisfitLog(),))
    found = []
    for observation in (
        seen(0.0, 100, 200),
        seen(1.0, 100, 200),
        seen(2.0, 100, 200, fenced=(1,)),
        seen(3.0, 100, 200),
        seen(4.0, 101, 200),
        seen(5.0, 90, 80),
    ):
        board.observe(observation)
        found.append([record.getMessage() for record in caplog.records])
        assert {logging.WARNING} >= {record.levelno for record in caplog.records}
        caplog.clear()
    both = f"broker 1 /d (90 B), broker 2 /d (80 B){EFFECT}"
    assert [[f"broker 1 /d (100 B){EFFECT}"], [], [], [], [], [both]] == found


def test_a_sidecar_without_a_limit_compares_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """A disabled sidecar reads no volume."""
    board = Board(Disabled(), FakeClock(), listeners=(MisfitLog(),))
    board.observe(seen(0.0, 100))
    assert [] == caplog.records
