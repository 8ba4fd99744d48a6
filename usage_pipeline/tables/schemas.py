"""The tables: their columns, types and what each means.

Every stage ends in ``Table.select``, which is its contract: these columns, in this order, of these
types, and nothing else. A table is a Delta table of its name under the output, partitioned by
``cluster_id`` and by its ``partitions``. Stages handle one cluster at a time, so the frames that
they make and read have no ``cluster_id``: it is in the folders of the files. This module needs no
Spark, so that commands and documents can describe the tables without it.

Times are UTC. Requests are ordered by (time, file, offset) everywhere: ties in time change totals.

Example: ``GOLD_USAGE_1S.select(frame)`` of a frame whose ``events`` is an int gives it as a long;
one that lacks it raises Spark's AnalysisException.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        name: as in the table.
        type: in Spark's SQL, "bigint".
        meaning: a sentence, with its unit.
    """

    name: str
    type: str
    meaning: str


CLUSTER_ID: Final = Column(
    "cluster_id",
    "string",
    'The cluster, named by the path, by `--cluster-id` or by the volume history, or "default"',
)
"""The first column of every table as it is stored."""
UNNAMED: Final = "default"
"""The cluster of logs and histories that no path, option or history assigns to a cluster."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        name: the name of the table and of its folder.
        columns: the columns in order, without ``cluster_id``.
        partitions: the partition columns after ``cluster_id``; they are the first columns.
        meaning: a description of a row, without a full stop.
        few_values: columns with few distinct values, which are dictionary-encoded. If it is empty,
            the Parquet writer decides.
    """

    name: str
    columns: tuple[Column, ...]
    partitions: tuple[str, ...]
    meaning: str
    few_values: tuple[str, ...] = ()

    @property
    def schema(self) -> str:
        """The columns in Spark's SQL, for readers."""
        return ", ".join(f"`{column.name}` {column.type}" for column in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def stored(self) -> tuple[Column, ...]:
        """All columns, with ``cluster_id`` first."""
        return (CLUSTER_ID, *self.columns)

    @property
    def folders(self) -> tuple[str, ...]:
        """All partition columns, in the order of the folders."""
        return (CLUSTER_ID.name, *self.partitions)

    @property
    def in_files(self) -> tuple[Column, ...]:
        """The columns in the files: all but the partition columns."""
        return tuple(column for column in self.columns if column.name not in self.partitions)

    def select(self, frame: "DataFrame") -> "DataFrame":
        """Select this table's columns from a frame, in their order, cast to their types.

        Raises:
            pyspark.errors.AnalysisException: a column is missing, or its type can't be cast.
        """
        return frame.selectExpr(
            *(
                f"CAST(`{column.name}` AS {column.type}) AS `{column.name}`"
                for column in self.columns
            )
        )


QUOTA_TYPES: Final = ("produce", "fetch", "request", "controller_mutation", "producer_ids")
"""All kinds of quota, in the order of a request's charges."""

_QUOTA_TYPE: Final = f"Kind of quota: {', '.join(QUOTA_TYPES[:-1])} or {QUOTA_TYPES[-1]}"
_AMOUNT: Final = (
    "Usage in this second: bytes (produce, fetch), percent of a thread (request), partitions"
    " created and deleted (controller_mutation) or ids (producer_ids)"
)
_SAME_QUOTA_TYPE: Final = "Kind of quota, as in gold_usage_1s"
_SAME_ENTITY: Final = "Entity of the quota, as in silver_quota_config"
_USER: Final = "Name of the principal, without its type"
_NAMED: Final = "{} of the quota; `<default>` for the default, null for none"
_LOG_DIR: Final = "Path of the log dir"
_VOLUMES_BROKER: Final = "Broker of the volume"
_VALID_FROM: Final = "Start of the validity"
_KEY: Final = "Name of the quota in Kafka, such as `producer_byte_rate`"
_LOGGED_BY: Final = "Broker or controller that wrote the line"
_SRC_FILE: Final = "File that contains the line"
_SRC_OFFSET: Final = "Position of the line's first byte in the uncompressed file"
_TOPIC_CHANGES: Final = "array<struct<topic:string,topic_id:string,partitions:int,error:int>>"
_QUOTA_CHANGES: Final = (
    "array<struct<user:string,client_id:string,ip:string,key:string,value:double,error:int>>"
)

SILVER_REQUEST: Final = Table(
    "silver_request",
    (
        Column("dt", "date", "Day of log_ts"),
        Column("broker", "int", _LOGGED_BY),
        Column("log_ts", "timestamp", "Time when the response was sent"),
        Column(
            "quota_ts",
            "timestamp",
            "Time of the charge: log_ts minus the times of the response queue and of sending",
        ),
        Column("user", "string", _USER),
        Column("client_id", "string", "Client-id; empty if the client has none"),
        Column("listener", "string", "Name of the listener"),
        Column("api", "string", "API, such as `PRODUCE`, or its number if the line has no name"),
        Column("api_version", "int", "API version of the request"),
        Column(
            "is_forwarded", "boolean", "Whether a broker forwarded the request to the controller"
        ),
        Column("is_follower", "boolean", "Whether the request is a FETCH of a replica"),
        Column("exempt", "boolean", "Whether request quotas exempt the request (KIP-124)"),
        Column("acks", "int", "Acks of a PRODUCE; otherwise null"),
        Column(
            "records_bytes",
            "bigint",
            "Size of the records in a PRODUCE or in the response to a FETCH",
        ),
        Column(
            "quota_bytes",
            "bigint",
            "Bytes charged to the produce quota or to a consumer's fetch quota; null if neither is",
        ),
        Column(
            "bytes_known",
            "boolean",
            "Whether the line has quota_bytes. The response to a throttled FETCH is empty, so its"
            " size is unknown. Null if neither quota applies",
        ),
        Column(
            "local_ms", "double", "Time in the request handler: a lower bound of the charged time"
        ),
        Column("remote_ms", "double", "Time of waiting for other brokers"),
        Column(
            "throttle_ms",
            "bigint",
            "Throttle time in the line or in the response, whichever is greater",
        ),
        Column("producer_id", "bigint", "Id that INIT_PRODUCER_ID allocated; otherwise null"),
        Column(
            "mutations", "bigint", "Partitions created and deleted, if the line has all of them"
        ),
        Column(
            "mutations_known",
            "boolean",
            "Whether the line has all; null if the request changes no topics",
        ),
        Column(
            "validate_only",
            "boolean",
            "Whether a change is only validated; null for other requests",
        ),
        Column(
            "topic_changes",
            _TOPIC_CHANGES,
            "Changes by CREATE_TOPICS, CREATE_PARTITIONS and DELETE_TOPICS",
        ),
        Column(
            "quota_changes",
            _QUOTA_CHANGES,
            "Changes by ALTER_CLIENT_QUOTAS: a default is `<default>`, a removed value null",
        ),
        Column("src_file", "string", _SRC_FILE),
        Column("src_offset", "bigint", _SRC_OFFSET),
    ),
    ("dt", "broker"),
    "a request, as a broker or controller logged it after the response",
    (
        *("user", "client_id", "listener", "api", "api_version"),
        *("acks", "throttle_ms", "src_file"),
    ),
)

SILVER_CHANGE: Final = Table(
    "silver_change",
    SILVER_REQUEST.columns,
    ("dt",),
    "a copy of a silver_request row that changes topics or quotas, as its controller logged it",
)

QUARANTINE: Final = Table(
    "quarantine",
    (
        Column("broker", "int", _LOGGED_BY),
        Column("src_file", "string", _SRC_FILE),
        Column("src_offset", "bigint", _SRC_OFFSET),
        Column(
            "kind", "string", "Cause: other, layout, text, torn, damaged, unexpected, time or long"
        ),
        Column("reason", "string", "Description of the cause, without any text of the line"),
        Column("bytes", "bigint", "Length of the line"),
    ),
    (),
    "a line that was not read: another logger's, a request that is there twice, or one that can't"
    " be read",
)

SILVER_QUOTA_CONFIG: Final = Table(
    "silver_quota_config",
    (
        Column(
            "entity",
            "string",
            "Entity of the quota, such as `user=alice` or `user=<default>,client-id=etl`",
        ),
        Column("user", "string", _NAMED.format("User")),
        Column("client_id", "string", _NAMED.format("Client-id")),
        Column("key", "string", _KEY),
        Column(
            "value",
            "double",
            "Value per second, or in percent for `request_percentage`; null if removed",
        ),
        Column("valid_from", "timestamp", _VALID_FROM),
        Column("valid_to", "timestamp", "Next change; null if none is known"),
        Column("source", "string", "`snapshot` (the file of quotas) or `log`"),
    ),
    (),
    "a quota of an entity, with the time in which it applied",
)

DIM_TOPIC: Final = Table(
    "dim_topic",
    (
        Column("topic", "string", "Name of the topic"),
        Column("topic_id", "string", "Topic id (base64), or empty if the log has none"),
        Column("partitions", "int", "Number of partitions; null if unknown, or after the deletion"),
        Column("valid_from", "timestamp", _VALID_FROM),
        Column("valid_to", "timestamp", "Next change, or the deletion; null if none is known"),
        Column("src_file", "string", _SRC_FILE),
        Column(
            "src_offset", "bigint", "Position of the line, which orders changes of the same time"
        ),
    ),
    (),
    "the size of a topic, with the time in which it had this size",
)

SILVER_VOLUME: Final = Table(
    "silver_volume",
    (
        Column("dt", "date", "Day of observed_ts"),
        Column("broker", "int", _VOLUMES_BROKER),
        Column("log_dir", "string", _LOG_DIR),
        Column("observed_ts", "timestamp", "Time of the observation"),
        Column("total_bytes", "bigint", "Size of the volume; null while the log dir is offline"),
        Column("available_bytes", "bigint", "Available bytes; null while the log dir is offline"),
        Column("offline", "boolean", "Whether the broker reported the log dir as offline"),
    ),
    ("dt",),
    "the last observation of a volume in ten seconds, by any sidecar",
)

GOLD_USAGE_1S: Final = Table(
    "gold_usage_1s",
    (
        Column("dt", "date", "Day of window_start"),
        Column("broker", "int", "Broker; each broker enforces quotas by itself"),
        Column("user", "string", _USER),
        Column("client_id", "string", "Client-id of the client"),
        Column("quota_type", "string", _QUOTA_TYPE),
        Column("window_start", "timestamp", "Start of the second, by quota_ts"),
        Column("amount", "double", _AMOUNT),
        Column("events", "bigint", "Number of charged requests"),
        Column("throttled", "bigint", "Number of requests that any quota throttled"),
        Column("throttle_ms", "bigint", "Sum of their throttle times"),
        Column(
            "lower_bound",
            "boolean",
            "Whether the real usage may exceed the amount: always for request time, and if a line"
            " lacks bytes or partitions",
        ),
    ),
    ("dt",),
    "the usage of a broker by a client in one second",
    ("broker", "user", "client_id", "quota_type"),
)

GOLD_REPLAY: Final = Table(
    "gold_replay",
    (
        Column("dt", "date", "Day; its first window starts empty"),
        Column("broker", "int", "Broker or controller that enforces the quota"),
        Column("quota_type", "string", _SAME_QUOTA_TYPE),
        Column("entity", "string", _SAME_ENTITY),
        Column(
            "shared_by",
            "string",
            "Clients that share the quota, such as `user=alice`. Each user or client-id under a"
            " default quota has its own. Without a quota: the entity to set one for",
        ),
        Column(
            "algorithm", "string", "`rate`, `token-bucket`, `burst-spreading` or `producer-ids`"
        ),
        Column(
            "scenario", "string", "`in force` (the current quota), or a candidate: `x2`, `=1000`"
        ),
        Column("quota", "double", "Last quota of the day, in the unit of its kind; null if none"),
        Column("events", "bigint", "Number of charges"),
        Column("throttled", "bigint", "Number of charges that waited or were rejected"),
        Column("throttle_ms_total", "bigint", "Sum of throttle times, which may overlap"),
        Column("throttle_ms_max", "bigint", "Longest throttle time"),
        Column("amount", "double", "Sum of the charges, in the unit of usage"),
        Column("throttled_amount", "double", "Sum of the charges that waited or were rejected"),
        Column(
            "peak_rate",
            "double",
            "Highest rate in the quota's unit, as Kafka computes it: over 10 s, for ids over 10 h",
        ),
        Column("near", "bigint", "Number of charges at 80 % of the quota or more"),
        Column("over", "bigint", "Number of charges over the quota"),
        Column("unknown", "bigint", "Number of charges of unknown amount, which are not replayed"),
        Column(
            "worst",
            "array<struct<at:timestamp,throttle_ms:bigint>>",
            "The longest throttle times and when they began, at most 3, of different ten minutes",
        ),
    ),
    ("dt",),
    "the effect of a quota on the clients that share it, on one broker in one day",
)

GOLD_RECOMMENDATION: Final = Table(
    "gold_recommendation",
    (
        Column("dt", "date", "Newest day of the data"),
        Column("quota_type", "string", _SAME_QUOTA_TYPE),
        Column("entity", "string", _SAME_ENTITY),
        Column("key", "string", _KEY),
        Column("quota", "double", "Recommended quota, in the unit of its kind; null if refused"),
        Column("in_force", "double", "Current quota in the same unit; null for none"),
        Column("percentile_rate", "double", "Weighted percentile of the rates, in the same unit"),
        Column(
            "peak_rate",
            "double",
            "Highest rate, in the same unit: that of the replay if there was one, whose windows are"
            " others than those of `percentile_rate`, so it may be lower",
        ),
        Column(
            "throttled_share",
            "double",
            "Share of charges that the recommended quota would have throttled, at most",
        ),
        Column("throttled_amount_share", "double", "Likewise, of their amount, such as bytes"),
        Column(
            "throttle_ms_max",
            "bigint",
            "Longest throttle time that the recommended quota would have caused, at most",
        ),
        Column(
            "worst",
            "array<struct<at:timestamp,broker:int,throttle_ms:bigint>>",
            "The longest of these times and when they would have begun, at most 3, of different"
            " ten minutes",
        ),
        Column(
            "longest_delay_s",
            "double",
            "Longest time that a second's usage would have waited behind earlier usage under the"
            " recommended quota, at most, seconds; null for ids",
        ),
        Column(
            "decided_by",
            "string",
            "Value that is the recommended quota: `percentile`, `replay`, `delay` or `floor`",
        ),
        Column("days", "int", "Days whose replays count"),
        Column("events", "bigint", "Number of charges in the data"),
        Column("hours", "double", "Hours with charges"),
        Column(
            "coverage",
            "double",
            "Share of the time with charges, in slots of ten minutes, on the tenant's least covered"
            " broker",
        ),
        Column(
            "unread_share",
            "double",
            "Share of the requests that could not be read, on the broker with the largest share",
        ),
        Column(
            "whole_seconds", "boolean", "Whether a broker's log has whole seconds, no milliseconds"
        ),
        Column("confidence", "string", "`low`, `medium` or `high`"),
        Column(
            "caveats", "string", "What lowers the confidence, and what changes that; null for none"
        ),
        Column("refused", "string", "Reason for no recommendation; null if there is one"),
        Column(
            "share_of_capacity",
            "double",
            "Sum of all recommended quotas (current quotas where none is recommended) over the"
            " capacity; null if the capacity is unknown",
        ),
    ),
    ("dt",),
    "the smallest quota that throttles few and never for long",
)

GOLD_DISK_FORECAST: Final = Table(
    "gold_disk_forecast",
    (
        Column("dt", "date", "Day of as_of"),
        Column("broker", "int", _VOLUMES_BROKER),
        Column("log_dir", "string", _LOG_DIR),
        Column(
            "as_of", "timestamp", "Newest reading of any volume, or --as-of; hours count from here"
        ),
        Column(
            "total_bytes", "bigint", "Size of the volume at the last reading; null while offline"
        ),
        Column("available_bytes", "bigint", "Available bytes at the last reading"),
        Column("limit_bytes", "bigint", "Available bytes at which producers are throttled"),
        Column(
            "growth_bytes_per_hour",
            "double",
            "Growth of the data that retention leaves; may be negative",
        ),
        Column(
            "hours_to_limit",
            "double",
            "Expected hours to the limit; 0 if reached; null if beyond the horizon or refused",
        ),
        Column("hours_low", "double", "Early end of the range"),
        Column(
            "hours_high", "double", "Late end of the range; null if the limit may never be reached"
        ),
        Column("readings", "bigint", "Number of readings used"),
        Column("history_hours", "double", "Hours with readings; a gap counts as one hour"),
        Column("teeth", "bigint", "Number of observed deletions by retention"),
        Column(
            "backtest_error_bytes",
            "double",
            "Median error of forecasts of the end of the history; null if it is too short",
        ),
        Column(
            "refused", "string", "Reason for no forecast beyond the present; null if there is one"
        ),
    ),
    ("dt",),
    "the time when a volume reaches its limit",
)

GOLD_COST: Final = Table(
    "gold_cost",
    (
        Column("dt", "date", "Day of the usage"),
        Column(
            "owner",
            "string",
            "Owner, as the file of owners names it, or `(nobody)`; null if the kind is left out",
        ),
        Column(
            "kind",
            "string",
            "`produced`, `fetched`, `request time`, `stored` or `partitions`; `unseen` for the bill"
            " of a day without seen usage",
        ),
        Column("quantity", "decimal(28,9)", "Usage that was seen, in the unit; null for none"),
        Column(
            "unit",
            "string",
            "`GB` (10^9 bytes), `Thread-Hours`, `GB-Months` or `Partition-Months`; a month has the"
            " days of its calendar month",
        ),
        Column("cost", "decimal(18,2)", "Part of the day's bill; null if the kind is left out"),
        Column("currency", "string", "Currency of the cost, such as `EUR`"),
        Column(
            "lower_bound",
            "boolean",
            "Whether the real usage may exceed the quantity, as in gold_usage_1s",
        ),
        Column(
            "left_out",
            "string",
            "Reason for which the day's bill lacks this kind; null if it is in the bill",
        ),
    ),
    ("dt",),
    "the cost of an owner's usage of a kind in one day",
)

TABLES: Final = (
    SILVER_REQUEST,
    SILVER_CHANGE,
    QUARANTINE,
    SILVER_QUOTA_CONFIG,
    DIM_TOPIC,
    SILVER_VOLUME,
    GOLD_USAGE_1S,
    GOLD_REPLAY,
    GOLD_RECOMMENDATION,
    GOLD_DISK_FORECAST,
    GOLD_COST,
)
"""All tables, in the order in which the stages write them."""

FORMAT: Final = 3
"""The version of the tables' layout. Added columns do not change it: they are null in earlier rows,
and earlier versions of this program ignore them."""
EARLIER: Final[Mapping[int, tuple[Table, ...]]] = {
    2: (replace(SILVER_CHANGE, columns=SILVER_CHANGE.columns[1:], partitions=()),)
}
"""Tables that had another layout in an earlier format, which ``pipeline upgrade`` rewrites."""


def tables_of(format_: int) -> dict[str, Table]:
    """Return the tables of a format, by name."""
    return {table.name: table for table in (*TABLES, *EARLIER.get(format_, ()))}
