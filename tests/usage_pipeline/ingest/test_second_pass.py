"""The hour that a clock goes through twice, in logs of Berlin and of Lord Howe."""

import gzip
import json
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sidecar.requestlog.lines import line
from tests.support.examples import mostly_slow
from tests.usage_pipeline.small_logs import metadata
from usage_pipeline.ingest.log_clock import Doubled
from usage_pipeline.ingest.log_parts import parse_part, parts_of
from usage_pipeline.ingest.paths import Zones
from usage_pipeline.ingest.request_logs import RequestLogs
from usage_pipeline.ingest.second_pass import SecondPass
from usage_pipeline.ingest.stored_logs import identified, log_files

BERLIN = "Europe/Berlin"
PUT_BACK = {
    BERLIN: datetime(2026, 10, 25, 1, 0, tzinfo=UTC),
    "Australia/Lord_Howe": datetime(2026, 4, 4, 15, 0, tzinfo=UTC),
}


def text_of(times: Sequence[datetime], zone: str = BERLIN) -> bytes:
    """A log of requests that were answered then; every seventh creates a topic, and is unusual."""
    lines = []
    for number, time in enumerate(times):
        local = time.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
        unusual = number % 7 == 3
        lines.append(line(19, time=local) + b"\n" if unusual else metadata(local).encode())
    return b"".join(lines)


def read(
    path: Path, text: bytes, changed: datetime, zone: str = BERLIN, split: int = 1 << 26
) -> list[datetime]:
    """When the requests of such a file were answered, UTC; it was changed then."""
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    os.utime(path, (changed.timestamp(), changed.timestamp()))
    found: list[datetime] = []
    for part in parts_of(map(identified, log_files(str(path), Zones(zone))), split):
        for parsed in parse_part(part):
            assert 0 == parsed.rejected.num_rows
            found += parsed.rows["log_ts"].to_pylist()
    return found


@pytest.mark.slow
@given(
    zone=st.sampled_from(sorted(PUT_BACK)),
    start_s=st.integers(-9000, 5400),
    gaps_s=st.lists(st.floats(0.0, 500.0), min_size=1, max_size=60),
    name=st.sampled_from(["kafka-1.log", "kafka-1.log.gz"]),
    split=st.sampled_from([1 << 26, 1500]),
)
def test_each_line_is_of_its_own_pass(  # noqa: PLR0917  by name
    tmp_path_factory: pytest.TempPathFactory,
    zone: str,
    start_s: int,
    gaps_s: list[float],
    name: str,
    split: int,
) -> None:
    """Wherever a file begins and ends, in which parts it is read, packed or not."""
    time = PUT_BACK[zone] + timedelta(seconds=start_s)
    times = []
    for gap_s in gaps_s:
        time += timedelta(milliseconds=int(gap_s * 1000))
        times.append(time)
    path = tmp_path_factory.mktemp("log") / name
    assert times == read(path, text_of(times, zone), times[-1], zone, split)


def _cri(line: bytes, time: datetime) -> bytes:
    return f"{time:%Y-%m-%dT%H:%M:%S.%f}Z stdout F ".encode() + line


def _docker(line: bytes, time: datetime) -> bytes:
    envelope = {"log": line.decode() + "\n", "stream": "stdout", "time": f"{time:%FT%TZ}"}
    return json.dumps(envelope, separators=(",", ":")).encode()


def _syslog(line: bytes, time: datetime) -> bytes:
    return f"<14>1 {time:%Y-%m-%dT%H:%M:%S.%f}Z kafka-1 kafka 8 - - ".encode() + line


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [_cri, _docker, _syslog])
@pytest.mark.parametrize("name", mostly_slow(["kafka-1.log", "kafka-1.log.gz"]))
def test_collected_logs_are_judged_by_their_inner_times(
    tmp_path: Path, wrap: Callable[[bytes, datetime], bytes], name: str
) -> None:
    """The collector's time is in UTC and steps back nowhere; the broker's is local."""
    times = minutes(*(each / 4 for each in range(-300, 300)))
    lines = text_of(times).splitlines()
    text = b"".join(wrap(*each) + b"\n" for each in zip(lines, times, strict=True))
    assert times == read(tmp_path / name, text, datetime(2026, 12, 1, tzinfo=UTC))


def test_a_log_in_a_layout_of_its_own(tmp_path: Path) -> None:
    """The pattern finds the times that step back."""
    times = minutes(*(each / 4 for each in range(-300, 300)))
    local = [time.astimezone(ZoneInfo(BERLIN)) for time in times]
    lines = [line(3).partition(b"] ")[2] for _ in local]
    text = b"".join(
        f"{time:%d %b %Y %H:%M:%S} ".encode() + each + b"\n"
        for time, each in zip(local, lines, strict=True)
    )
    path = tmp_path / "kafka-1.log"
    path.write_bytes(text)
    logs = RequestLogs(str(path), Zones(BERLIN), layout="%d{dd MMM yyyy HH:mm:ss} %p %m (%c)%n")
    (part,) = parts_of(logs.files(), 1 << 26)
    assert times == [
        time for parsed in parse_part(part) for time in parsed.rows["log_ts"].to_pylist()
    ]


def minutes(*after: float) -> list[datetime]:
    """So many after Berlin's clock was put back."""
    return [PUT_BACK[BERLIN] + timedelta(minutes=each) for each in after]


def test_a_file_that_was_copied_says_it_by_its_order(tmp_path: Path) -> None:
    """Lines of before go on into the first pass, and lines of after come out of the second."""
    copied = datetime(2026, 11, 1, tzinfo=UTC)
    path = tmp_path / "kafka-1.log"
    for times in (
        minutes(-61, -59, -1, 1, 61),
        minutes(-70, -50, -20),
        minutes(10, 50, 62),
        minutes(-70, -50, 62),
    ):
        assert times == read(path, text_of(times), copied)


@pytest.mark.parametrize(
    ("times", "changed_min", "is_second"),
    [
        ((-50, -10), -10, False),
        ((10, 50), 50, True),
        ((10, 50), 79, True),
        ((10, 50), 49.5, True),
        ((10, 50), 81, False),
        ((10, 50), 48, False),
    ],
)
def test_within_the_hour_the_last_change_says_it(
    tmp_path: Path, times: tuple[float, ...], changed_min: float, is_second: bool
) -> None:
    """Up to half an hour after it was logged, a minute before it; else it is the first pass."""
    (changed,) = minutes(changed_min)
    logged = minutes(*times)
    shift = timedelta(hours=0 if is_second == (times[0] > 0) else -1)
    assert [each + shift for each in logged] == read(
        tmp_path / "kafka-1.log", text_of(logged), changed
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kafka-1.log", "kafka-1.log.gz"])
@pytest.mark.parametrize(("before", "after"), [(900, 1), (1, 900)])
def test_a_step_at_an_end_of_many_lines(tmp_path: Path, name: str, before: int, after: int) -> None:
    """Only the last line is of the second pass, or only the first is of the first one."""
    times = minutes(
        *(-(before - at) * 0.06 for at in range(before)), *(at * 0.06 for at in range(after))
    )
    assert times == read(tmp_path / name, text_of(times), datetime(2026, 12, 1, tzinfo=UTC))


def test_beside_the_step_the_time_says_it() -> None:
    """A line of the last second is of the first pass, and one of the first second of the second."""
    around = SecondPass(Doubled(7200, 10_800), 1_000_000, is_step=True)
    offsets = np.array([900_000, 900_000, 999_000, 999_000, 1_000_000, 1_001_000, 1_100_000])
    seconds = np.array([10_799, 7200, 10_799, 7200, 10_799, 7201, 10_799])
    assert [0, 0, 0, 1, 0, 1, 1] == around.has(offsets, seconds).astype(int).tolist()


def test_lines_out_of_order_where_it_steps_back(tmp_path: Path) -> None:
    """Several threads log in the same milliseconds: each line is of its own pass."""
    at = PUT_BACK[BERLIN]
    ms = [-30_000, -2, 1, -1, 2, -3, 3, 4, 40_000]
    times = [at + timedelta(milliseconds=each) for each in ms]
    assert times == read(tmp_path / "kafka-1.log", text_of(times), times[-1])


def test_a_damaged_gzip_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """The step is before the damage."""
    times = minutes(*(each / 4 for each in range(-300, 100)))
    path = tmp_path / "kafka-1.log.gz"
    path.write_bytes(gzip.compress(text_of(times))[:-9])
    (part,) = parts_of(log_files(str(path), Zones(BERLIN)), 1 << 26)
    rows = [row for parsed in parse_part(part) for row in parsed.rows["log_ts"].to_pylist()]
    assert times[: len(rows)] == rows
    assert 300 < len(rows)
