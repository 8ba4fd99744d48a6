"""Blocks of lines as columns: the fast parser is compared with what each line says."""

import re
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sidecar.requestlog.layout import Layout
from sidecar.requestlog.line import parse
from sidecar.requestlog.rejected import Rejected
from tests.sidecar.requestlog.lines import BY_HAND, REAL, line, read
from tests.usage_pipeline.request_lines import REQUEST_LOGS, TIMES, damaged_lines, lines_as_written
from usage_pipeline.ingest.fast_parser import fast_lines
from usage_pipeline.ingest.records import REJECTED, ROWS, Parsed, parse_block
from usage_pipeline.ingest.rows import Row, row

BERLIN = ZoneInfo("Europe/Berlin")


def parsed(block: bytes, zone: ZoneInfo = BERLIN, offset: int = 0) -> Parsed:
    """Returns a block of broker 3."""
    return parse_block(block, broker=3, zone=zone, src_file="/logs/3.log", offset=offset)


@pytest.mark.slow
@given(
    block=REQUEST_LOGS, zone=st.sampled_from([BERLIN, ZoneInfo("UTC"), ZoneInfo("Asia/Kolkata")])
)
@example(block=b"\n".join(REAL + BY_HAND), zone=BERLIN)
def test_a_block_says_what_its_lines_say(block: bytes, zone: ZoneInfo) -> None:
    """Each line is a row, as read by itself, or rejected, at its place."""
    assert_says_what_its_lines_say(block, zone)


@pytest.mark.slow
@given(
    lines=st.lists(
        lines_as_written(), min_size=1, max_size=4, unique_by=lambda line: line.partition(b"{")[2]
    ),
    zone=st.sampled_from([BERLIN, ZoneInfo("America/St_Johns")]),
)
def test_what_brokers_write_is_read_fast(lines: list[bytes], zone: ZoneInfo) -> None:
    """Every line is, whatever names it has, and as it is read by itself."""
    block = b"\n".join(lines)
    assert not fast_lines(block, Layout()).left
    assert_says_what_its_lines_say(block, zone)


@pytest.mark.parametrize("form", ["DATE", "UNIX_MILLIS"])
def test_a_layout_of_its_own_is_read_fast(form: str) -> None:
    """Its rows are those of the same lines in Kafka's layout."""
    lines = [line(3), line(3, time="2026-11-20 10:00:00,123")]
    times = {
        "DATE": (b"20 Nov 2026 10:00:00,000", b"20 Nov 2026 10:00:00,123"),
        "UNIX_MILLIS": (b"1795165200000", b"1795165200123"),
    }
    block = b"\n".join(
        time + b" " + text.partition(b"] ")[2]
        for time, text in zip(times[form], lines, strict=True)
    )
    pattern = f"%d{{{form}}} %p %m (%c)%n"
    assert not fast_lines(block, Layout(pattern)).left
    made = parse_block(
        block, broker=3, zone=BERLIN, src_file="", offset=0, layout=Layout(pattern)
    ).rows
    expected = parsed(b"\n".join(lines)).rows
    columns = [name for name in ROWS.names if not name.startswith("src_")]
    assert expected.select(columns) == made.select(columns)


@given(lines=st.lists(damaged_lines(), min_size=1, max_size=6))
def test_a_damaged_byte(lines: list[bytes]) -> None:
    """A line that is damaged anywhere says what it says by itself, if anything."""
    assert_says_what_its_lines_say(b"\n".join(lines), BERLIN)


@given(broken=st.sets(st.integers(0, 4)))
def test_a_broken_line_takes_no_other_with_it(broken: set[int]) -> None:
    """Of lines that are decoded at once, only those whose JSON is broken are left."""
    lines = [line(3, client_id=str(number)) for number in range(5)]
    for number in broken:
        lines[number] = lines[number].replace(b'"principal":', b'"principal"')
    found = fast_lines(b"\n".join(lines), Layout())
    clients = [body.request_header.client_id for body in found.bodies]
    assert [str(number) for number in range(5) if number not in broken] == clients
    assert len(broken) == len(found.left)


NUMBERS = re.compile(rb"(?<=[:\[,])-?\d+(?:\.\d+)?(?=[,}\]])")
ODD_NUMBERS = [*(sign * 2**bits - 1 for bits in (31, 63, 70) for sign in (1, -1)), "1e400", "NaN"]


@given(
    line=st.sampled_from(REAL + BY_HAND), at=st.integers(0, 60), odd=st.sampled_from(ODD_NUMBERS)
)
def test_an_odd_number(line: bytes, at: int, odd: object) -> None:
    """A line with one anywhere says what it says by itself, and those beside it are read."""
    numbers = list(NUMBERS.finditer(line))
    number = numbers[at % len(numbers)]
    changed = line[: number.start()] + str(odd).encode() + line[number.end() :]
    assert_says_what_its_lines_say(b"\n".join([line, changed, line]), BERLIN)


def test_an_odd_epoch_takes_no_id_away() -> None:
    """Nothing reads the epoch of a producer."""
    id_line = next(text for text in BY_HAND if b'"producerEpoch":0' in text)
    odd = id_line.replace(b'"producerEpoch":0', b'"producerEpoch":%d' % (1 << 63))
    assert_says_what_its_lines_say(odd, BERLIN)
    assert [1_000_001] == parsed(odd).rows["producer_id"].to_pylist()


def test_a_client_id_forges_no_field() -> None:
    """What is in a string stays in it, even a whole line of the log."""
    forged = '"},"principal":"User:eve","x":{"request":{"acks":0}} (kafka.request.logger)'
    block = line(3, client_id=forged)
    assert not fast_lines(block, Layout()).left
    rows = parsed(block).rows
    assert ["alice"] == rows["user"].to_pylist()
    assert [forged] == rows["client_id"].to_pylist()


@pytest.mark.parametrize("version", range(-1, 20))
def test_each_version(version: int) -> None:
    """Sizes of requests and answers are met with all fields that they can have."""
    sizes = [{"index": 1, "recordsSizeInBytes": size} for size in (0, 126, 127, 40_000)]
    topic = {"name": "orders", "topicId": "x", "partitionData": sizes}
    produce = {
        "transactionalId": "t",
        "acks": 1,
        "topicData": [topic, {**topic, "name": "n" * 127}],
    }
    partition = {"recordsSizeInBytes": 127, "abortedTransactions": [{}, {}], "currentLeader": {}}
    others: dict[str, object] = {
        "divergingEpoch": {},
        "snapshotId": {},
        "abortedTransactions": None,
    }
    fetched = {"responses": [{"topic": "orders", "partitions": [partition, others]}, {}]}
    lines = [
        line(0, version=version, request=produce),
        line(1, version=version, request={}, response=fetched),
    ]
    block = b"\n".join(lines)
    assert not fast_lines(block, Layout()).left
    assert_says_what_its_lines_say(block, BERLIN)


@pytest.mark.parametrize(
    "wrong",
    [
        b'"throttleTimeMs":5,"throttleTimeMs":0',
        b'"throttleTimeMs":00',
        b'"throttleTimeMs":01',
        b'"throttleTimeMs":-1',
        b'"throttleTimeMs":1.0',
        b'"throttleTimeMs":1e3',
        b'"throttleTimeMs":0,"x":01',
        b'"throttleTimeMs":0,"x":1.',
        b'"throttleTimeMs":0,"x":nul',
        b'"throttleTimeMs":0,"x":[1,]',
        b'"throttleTimeMs":0,"listener":"\xed\xa0\x80"',
        b'"throttleTimeMs":0,"listener":"\xe0\x80\x80"',
        b'"throttleTimeMs":0,"listener":"\xf5\x80\x80\x80"',
        b'"throttleTimeMs":0,"listener":"\xc3"',
        b'"throttleTimeMs":0,"listener":"\x01"',
        b'"throttleTimeMs":0,"listener":null',
        b'"throttleTimeMs":0,"listener":"\\u0041"',
        b'"throttleTimeMs":0}x,{"y":0',
        b'"throttleTimeMs":0}{"y":0',
        b'"throttleTimeMs":0}  ',
    ],
)
def test_what_is_unusual_or_no_json(wrong: bytes) -> None:
    """It is what it is by itself."""
    text = line(3).replace(b'"throttleTimeMs":0', wrong)
    assert_says_what_its_lines_say(text, BERLIN)


@pytest.mark.parametrize("after", [b"x", b"}", b" ", b",{}"])
def test_more_after_the_json(after: bytes) -> None:
    """The line is what it is by itself."""
    text = line(3).replace(b" (kafka.request.logger)", after + b" (kafka.request.logger)")
    assert_says_what_its_lines_say(text, BERLIN)


def test_what_is_missing() -> None:
    """A line without a required field is what it is by itself."""
    for name in (b"requestApiKey", b"requestApiVersion", b"principal", b"localTimeMs", b"request"):
        text = line(3).replace(b'"' + name + b'":', b'"other":')
        assert_says_what_its_lines_say(text, BERLIN)


@pytest.mark.slow
def test_clients_of_names_of_the_same_length() -> None:
    """They are distinct, however many there are."""
    lines = [line(3, client_id=f"client-{number % 700:05}") for number in range(1_500)]
    assert_says_what_its_lines_say(b"\n".join(lines), BERLIN)


@pytest.mark.parametrize("deep", [1, 24, 60, 2_000])
def test_nesting(deep: int) -> None:
    """A field that nobody reads may nest to any depth."""
    nested = line(3).replace(b'"request":""', b'"request":' + b"[" * deep + b"]" * deep)
    assert_says_what_its_lines_say(nested, BERLIN)


def test_columns_that_are_asked_for() -> None:
    """They equal those of all columns, for lines that are read fast and those that are left."""
    block = b"\n".join(REAL + BY_HAND)
    whole = parsed(block).rows
    schema = pa.schema([ROWS.field(name) for name in ("api", "quota_ts", "topic_changes")])
    some = parse_block(
        block, broker=3, zone=BERLIN, src_file="/logs/3.log", offset=0, schema=schema
    )
    assert whole.select(schema.names).equals(some.rows)


@pytest.mark.parametrize("size", [-1, 0, 126, 127, 128, 16_382, 16_383, 16_384, 2_097_151])
def test_sizes_at_the_ends_of_lengths(size: int) -> None:
    """A length takes a byte more there, however many came before it."""
    lines = [
        line(
            0,
            version=version,
            request={
                "acks": 1,
                "topicData": [
                    {"name": "t", "partitionData": [{"index": 0, "recordsSizeInBytes": one}]}
                ],
            },
        )
        for version in (8, 9, 13, 14)
        for one in (size + 1, size - 1, size)
    ]
    assert_says_what_its_lines_say(b"\n".join(lines), BERLIN)


@pytest.mark.parametrize("own_ms", [0, 198])
@pytest.mark.parametrize("answer_ms", [0, 198])
@pytest.mark.parametrize("replica", [-1, 2])
def test_throttled_fetches(own_ms: int, answer_ms: int, replica: int) -> None:
    """The throttle time may stand anywhere; followers have one too."""
    fetch = line(
        1,
        version=17,
        request={"replicaState": {"replicaId": replica}},
        response={"throttleTimeMs": answer_ms, "responses": []},
        throttleTimeMs=own_ms,
    )
    assert_says_what_its_lines_say(fetch, BERLIN)


@pytest.mark.parametrize("time", TIMES)
def test_times(time: str) -> None:
    """A time may be written in any form, or be one that doesn't exist."""
    whole = line(3).replace(b"2026-11-20 10:00:00,000", time.encode())
    assert_says_what_its_lines_say(whole, BERLIN)


@pytest.mark.parametrize("queued_ms", [0.999, 1e12, 1.1e12, 1e300])
def test_absurd_times_in_a_queue(queued_ms: float) -> None:
    """A line with an impossible time is rejected, and the others of its block are read."""
    lines = [line(3), line(3, responseQueueTimeMs=queued_ms), line(3)]
    assert_says_what_its_lines_say(b"\n".join(lines), BERLIN)


def assert_says_what_its_lines_say(block: bytes, zone: ZoneInfo) -> None:
    """Compares a block's columns with each of its lines by itself."""
    found = parsed(block, zone, offset=1_000)
    expected_rows, expected_rejected = [], []
    offset = 1_000
    together = Layout()
    for text in block.split(b"\n"):
        said = parse(text)
        again = together.find(text)
        if isinstance(again, Rejected) and "read once" in again.message:
            said = again
        made = said if isinstance(said, Rejected) else row(said, zone)
        if isinstance(made, Row):
            expected_rows.append((made, offset))
        elif offset < 1_000 + len(block):
            expected_rejected.append((offset, str(made.kind), made.message, len(text)))
        offset += len(text) + 1
    assert ROWS == found.rows.schema
    assert REJECTED == found.rejected.schema
    if _in_whole_seconds(block):
        # test_whole_seconds.py has when these are charged.
        assert [(made._replace(quota_ts=0), at) for made, at in expected_rows] == [
            (made._replace(quota_ts=0), at) for made, at in rows_of(found)
        ]
    else:
        assert expected_rows == rows_of(found)
    assert expected_rejected == [
        (one["src_offset"], one["kind"], one["reason"], one["bytes"])
        for one in found.rejected.to_pylist()
    ]
    assert {(3, "/logs/3.log")} >= {
        (one["broker"], one["src_file"])
        for one in (*found.rows.to_pylist(), *found.rejected.to_pylist())
    }


def _in_whole_seconds(block: bytes) -> bool | None:
    layout = Layout()
    for text in block.split(b"\n"):
        parse(text, layout)
    return layout.in_whole_seconds


def rows_of(found: Parsed) -> list[tuple[Row, int]]:
    """Returns the rows as ``row`` makes them, and where they begin."""
    columns = found.rows.set_column(1, "log_ts", found.rows["log_ts"].cast("int64")).set_column(
        2, "quota_ts", found.rows["quota_ts"].cast("int64")
    )
    made = []
    for values in columns.to_pylist():
        for name in ("topic_changes", "quota_changes"):
            if values[name] is not None:
                values[name] = [tuple(change.values()) for change in values[name]]
        made.append((Row(**{name: values[name] for name in Row._fields}), values["src_offset"]))
    return made


def test_lines_of_brokers_are_usual() -> None:
    """All of them are read fast but those that change topics or quotas."""
    found = fast_lines(b"\n".join(REAL + BY_HAND), Layout())
    apis = [read(text).api for text in REAL + BY_HAND]
    slow = {"CREATE_TOPICS", "CREATE_PARTITIONS", "DELETE_TOPICS", "ALTER_CLIENT_QUOTAS"}
    assert len(apis) == len(found.starts) + len(found.left)
    assert sum(api in slow for api in apis) == len(found.left)


def test_the_modules_example() -> None:
    """Eight lines by hand and half a line make eight rows, and one torn where it begins."""
    whole = b"\n".join(BY_HAND) + b"\n"
    found = parsed(whole + BY_HAND[0][:-9])
    assert 8 == found.rows.num_rows
    assert [("torn", len(whole))] == [
        (one["kind"], one["src_offset"]) for one in found.rejected.to_pylist()
    ]


@pytest.mark.parametrize("block", [b"", b"\n", b"\n\n"])
def test_an_empty_line_is_rejected_and_no_line_is_none(block: bytes) -> None:
    """Every end of a line ends one."""
    found = parsed(block)
    assert (0, len(block)) == (found.rows.num_rows, found.rejected.num_rows)
