"""Samples: the lines are read as a broker's are, and a seed gives the same bytes."""

from pathlib import Path

import pytest

from sidecar.requestlog.line import Line, parse
from sidecar.requestlog.rejected import Rejected
from usage_pipeline.kernels.line_detail import detail
from usage_pipeline.sample import Sample, write_sample


def logs_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.log*")}


@pytest.mark.slow
def test_every_line_is_read(tmp_path: Path) -> None:
    """The daemon's parser rejects no line and no detail."""
    written = write_sample(tmp_path, Sample(1_000_000))
    lines = [line for text in logs_of(tmp_path).values() for line in text.splitlines()]
    read = [parse(line) for line in lines]
    assert written.lines == len(lines)
    assert [] == [one for one in read if isinstance(one, Rejected)]
    assert [] == [
        said for one in read if isinstance(one, Line) and isinstance(said := detail(one), Rejected)
    ]


@pytest.mark.slow
def test_the_size_is_met(tmp_path: Path) -> None:
    """The size is within 2 %, whatever the lines' length."""
    written = write_sample(tmp_path, Sample(3_000_000, seed=3, brokers=4, hours=0.5))
    assert written.bytes == sum(map(len, logs_of(tmp_path).values()))
    assert abs(written.bytes - 3_000_000) <= 60_000


@pytest.mark.slow
def test_many_clients_send_lines_of_their_own(tmp_path: Path) -> None:
    """There are as many as requested, 60 for each user, and other clients send the same lines."""
    write_sample(tmp_path, Sample(3_000_000, clients=120))
    lines = [line for text in logs_of(tmp_path).values() for line in text.splitlines()]
    read = [one for one in map(parse, lines) if isinstance(one, Line)]
    assert len(lines) == len(read)
    small = {(one.user, one.client_id) for one in read if one.user.startswith("tenant-")}
    assert {(f"tenant-{at // 60:04}", f"app-{at:06}") for at in range(120)} == small
    assert {"alice", "bob", "grace"} < {one.user for one in read}


@pytest.mark.slow
def test_a_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    """Another seed gives others."""
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_sample(tmp_path / folder, Sample(200_000, seed=seed))
    assert logs_of(tmp_path / "a") == logs_of(tmp_path / "b")
    assert logs_of(tmp_path / "a") != logs_of(tmp_path / "c")
