"""Usage per second of the same logs by DuckDB, polars and plain Python with msgspec.

They do less than the pipeline: PRODUCE counts by the size of its records, which the line tells, not
by the size of the request, which has to be rebuilt; no FETCH is counted by bytes, nobody looks
whether a request is exempt, and a line that can't be read ends the first two. So they are somewhat
faster here than they would be with the same result.

Example: each gives rows of (broker, user, client-id, second, requests, handler ms, records bytes).
"""

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Final

import duckdb
import msgspec
import polars as pl

_BROKER: Final = re.compile(r"broker-(\d+)")
_START: Final = len("[2026-11-20 23:05:20,927] DEBUG Completed request:")
_END: Final = len(" (kafka.request.logger)")

_DUCKDB_BODY: Final = json.dumps(
    {
        "requestHeader": {"requestApiKey": "INTEGER", "clientId": "VARCHAR"},
        "principal": "VARCHAR",
        "localTimeMs": "DOUBLE",
        "responseQueueTimeMs": "DOUBLE",
        "sendTimeMs": "DOUBLE",
        "request": {"topicData": [{"partitionData": [{"recordsSizeInBytes": "BIGINT"}]}]},
    }
)
_DUCKDB: Final = f"""
SELECT broker, split_part(body.principal, ':', 2) AS "user", body.requestHeader.clientId,
       date_trunc('second', logged - to_milliseconds(body.sendTimeMs + body.responseQueueTimeMs))
           AS second,
       count(*) AS requests, sum(body.localTimeMs) AS local_ms,
       sum(list_sum([list_sum([partition.recordsSizeInBytes FOR partition IN topic.partitionData])
                     FOR topic IN body.request.topicData])) AS records_bytes
FROM (
    SELECT regexp_extract(filename, 'broker-(\\d+)', 1)::INT AS broker,
           replace(line[2:24], ',', '.')::TIMESTAMP AS logged,
           json_transform(line[{_START + 1}:-{_END + 1}], '{_DUCKDB_BODY}') AS body
    FROM read_csv(?, columns = {{'line': 'VARCHAR'}}, delim = '\\x01', quote = '', escape = '',
                  header = false, filename = true, auto_detect = false, max_line_size = 16777216)
)
GROUP BY ALL
"""


def by_duckdb(files: list[Path], cores: int, out: Path) -> int:
    """How many rows DuckDB makes, and writes as Parquet, which is quicker than to fetch them."""
    copied = f"COPY ({_DUCKDB}) TO '{out}' (FORMAT parquet, COMPRESSION zstd)"
    with duckdb.connect(config={"threads": cores}) as connection:
        ((rows,),) = connection.execute(copied, [list(map(str, files))]).fetchall()
    return int(rows)


_POLARS_BODY: Final = pl.Struct(
    {
        "requestHeader": pl.Struct({"requestApiKey": pl.Int32, "clientId": pl.String}),
        "principal": pl.String,
        "localTimeMs": pl.Float64,
        "responseQueueTimeMs": pl.Float64,
        "sendTimeMs": pl.Float64,
        "request": pl.Struct(
            {
                "topicData": pl.List(
                    pl.Struct(
                        {"partitionData": pl.List(pl.Struct({"recordsSizeInBytes": pl.Int64}))}
                    )
                )
            }
        ),
    }
)


def by_polars(files: list[Path]) -> int:
    """How many rows polars makes; it takes its threads from POLARS_MAX_THREADS."""
    lines = pl.scan_csv(
        files,
        separator="\x01",
        quote_char=None,
        has_header=False,
        new_columns=["line"],
        include_file_paths="file",
    )
    line = pl.col("line")
    body = line.str.slice(_START).str.head(-_END).str.json_decode(_POLARS_BODY)
    at = line.str.slice(1, 23).str.to_datetime("%Y-%m-%d %H:%M:%S,%3f")
    spent = pl.col("body").struct.field("sendTimeMs") + pl.col("body").struct.field(
        "responseQueueTimeMs"
    )
    sizes = (
        pl.col("body")
        .struct.field("request")
        .struct.field("topicData")
        .list.eval(
            pl.element()
            .struct.field("partitionData")
            .list.eval(pl.element().struct.field("recordsSizeInBytes"))
            .list.sum()
        )
        .list.sum()
    )
    rows = (
        lines.select(
            pl.col("file").str.extract(r"broker-(\d+)").alias("broker"),
            at.alias("at"),
            body.alias("body"),
        )
        .select(
            "broker",
            pl.col("body").struct.field("principal").str.slice(5).alias("user"),
            pl.col("body").struct.field("requestHeader").struct.field("clientId"),
            (pl.col("at") - pl.duration(microseconds=(spent * 1000).cast(pl.Int64)))
            .dt.truncate("1s")
            .alias("second"),
            pl.col("body").struct.field("localTimeMs").alias("local_ms"),
            sizes.alias("records_bytes"),
        )
        .group_by("broker", "user", "clientId", "second")
        .agg(pl.len(), pl.col("local_ms").sum(), pl.col("records_bytes").sum())
    )
    return rows.collect(engine="streaming").height


class _Header(msgspec.Struct, gc=False, rename="camel"):
    request_api_key: int
    client_id: str | None = None


class _Partition(msgspec.Struct, gc=False, rename="camel"):
    records_size_in_bytes: int = 0


class _Topic(msgspec.Struct, gc=False, rename="camel"):
    partition_data: list[_Partition] = []


class _Request(msgspec.Struct, gc=False, rename="camel"):
    topic_data: list[_Topic] = []


class _Body(msgspec.Struct, gc=False, rename="camel"):
    request_header: _Header
    principal: str
    local_time_ms: float
    response_queue_time_ms: float
    send_time_ms: float
    request: _Request


def by_msgspec(files: list[Path]) -> int:
    """How many rows one thread of Python makes."""
    decoder = msgspec.json.Decoder(_Body)
    sums: dict[tuple[str, str, str | None, bytes], list[float]] = defaultdict(lambda: [0, 0.0, 0])
    for file in files:
        found = _BROKER.search(file.name)
        broker = found[1] if found else ""
        with file.open("rb") as lines:
            for line in lines:
                body = decoder.decode(line[_START : -_END - 1])
                user = body.principal.partition(":")[2]
                its = sums[broker, user, body.request_header.client_id, line[1:20]]
                its[0] += 1
                its[1] += body.local_time_ms
                for topic in body.request.topic_data:
                    for partition in topic.partition_data:
                        its[2] += partition.records_size_in_bytes
    return len(sums)


def versions() -> str:
    """Of the peers."""
    return json.dumps({"duckdb": duckdb.__version__, "polars": pl.__version__})
