"""The tables: their columns, types and what each means.

Every stage ends in ``Table.select``, which is its contract: these columns, in this order, of these
types, and nothing else. A table is a Delta table of its name under the output, partitioned by
``cluster_id`` and by its ``partitions``. Stages handle one cluster at a time, so the frames that
they make and read have no ``cluster_id``: it is in the folders of the files. This module needs no
Spark, so that commands and documents can tell of the tables without it.

Times are UTC. Requests are ordered by (time, file, offset) everywhere: ties in time change totals.

Example: ``GOLD_USAGE_1S.select(frame)`` of a frame whose ``events`` is an int gives it as a long;
one that lacks it raises Spark's AnalysisException.
"""

from dataclasses import dataclass
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
    'whose rows they are: as paths, `--cluster-id` or the volume history name it, or "default"',
)
"""The first column of every table as it is stored."""
UNNAMED: Final = "default"
"""The cluster of whatever nothing names a cluster of."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        name: of its folder.
        columns: in order, but the cluster's.
        partitions: the columns that it is partitioned by besides the cluster's, the first ones.
        meaning: what a row is.
        few_values: columns that are written as numbers of values: of the others nearly each row has
            its own; empty: the writer finds out.
    """

    name: str
    columns: tuple[Column, ...]
    partitions: tuple[str, ...]
    meaning: str
    few_values: tuple[str, ...] = ()

    @property
    def schema(self) -> str:
        """In Spark's SQL, as readers want it."""
        return ", ".join(f"`{column.name}` {column.type}" for column in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Of its columns."""
        return tuple(column.name for column in self.columns)

    @property
    def stored(self) -> tuple[Column, ...]:
        """All columns that any engine sees."""
        return (CLUSTER_ID, *self.columns)

    @property
    def folders(self) -> tuple[str, ...]:
        """The columns that the folders of its files name, in this order."""
        return (CLUSTER_ID.name, *self.partitions)

    @property
    def in_files(self) -> tuple[Column, ...]:
        """The columns that its files have: those that it is not partitioned by."""
        return tuple(column for column in self.columns if column.name not in self.partitions)

    def select(self, frame: "DataFrame") -> "DataFrame":
        """The frame with this table's columns and types, in its order.

        Raises:
            pyspark.errors.AnalysisException: a column is missing, or of a type that can't be cast.
        """
        return frame.selectExpr(
            *(
                f"CAST(`{column.name}` AS {column.type}) AS `{column.name}`"
                for column in self.columns
            )
        )


QUOTA_TYPES: Final = ("produce", "fetch", "request", "controller_mutation", "producer_ids")
"""All kinds of quota, in the order in which a request's charges are."""

_QUOTA_TYPE: Final = f"{', '.join(QUOTA_TYPES[:-1])} or {QUOTA_TYPES[-1]}"
_AMOUNT: Final = (
    "bytes (produce, fetch), percent of a second of a thread (request), partitions created and"
    " deleted (controller_mutation), ids (producer_ids)"
)
_UNIT: Final = (
    "bytes per second (produce, fetch), percent of a thread (request), partitions per second"
    " (controller_mutation), ids per hour (producer_ids)"
)
_ENTITY: Final = 'of the quota, "user=alice", "user=<default>,client-id=etl"'
_TOPIC_CHANGES: Final = "array<struct<topic:string,topic_id:string,partitions:int,error:int>>"
_QUOTA_CHANGES: Final = (
    "array<struct<user:string,client_id:string,ip:string,key:string,value:double,error:int>>"
)

SILVER_REQUEST: Final = Table(
    "silver_request",
    (
        Column("dt", "date", "the day of log_ts"),
        Column("broker", "int", "whose log the line is in"),
        Column("log_ts", "timestamp", "when the answer was sent"),
        Column(
            "quota_ts",
            "timestamp",
            "when it was charged: log_ts less the time in the response queue and of sending",
        ),
        Column("user", "string", "the principal's name without its type"),
        Column("client_id", "string", "as the client gave it; empty when it gave none"),
        Column("listener", "string", "the listener's name"),
        Column("api", "string", "its name, PRODUCE; its number where the line has no name"),
        Column("api_version", "int", "that the client speaks"),
        Column("is_forwarded", "boolean", "a controller's line of what a broker passed on"),
        Column("is_follower", "boolean", "a FETCH of a replica"),
        Column("exempt", "boolean", "no request quota is charged with it (KIP-124)"),
        Column("acks", "int", "of a PRODUCE; null otherwise"),
        Column("records_bytes", "bigint", "of the records in a PRODUCE or in a FETCH's answer"),
        Column(
            "quota_bytes",
            "bigint",
            "what the produce or a consumer's fetch quota is charged with; null: it isn't",
        ),
        Column(
            "bytes_known",
            "boolean",
            "whether the line has quota_bytes; a throttled FETCH is answered empty, and no other"
            " line has what it would have got; null where those quotas don't apply",
        ),
        Column("local_ms", "double", "a request handler's time: a lower bound of what is charged"),
        Column("remote_ms", "double", "milliseconds of waiting for others"),
        Column("throttle_ms", "bigint", "the greater of the line's and the answer's"),
        Column("producer_id", "bigint", "that INIT_PRODUCER_ID gave; null otherwise"),
        Column("mutations", "bigint", "partitions created and deleted, where the line has all"),
        Column("mutations_known", "boolean", "whether it does; null when it is about no topics"),
        Column("validate_only", "boolean", "of a request about topics or quotas; null otherwise"),
        Column(
            "topic_changes", _TOPIC_CHANGES, "of CREATE_TOPICS, CREATE_PARTITIONS, DELETE_TOPICS"
        ),
        Column(
            "quota_changes",
            _QUOTA_CHANGES,
            'of ALTER_CLIENT_QUOTAS; a default is "<default>", a removed value is null',
        ),
        Column("src_file", "string", "the file that the line is in"),
        Column("src_offset", "bigint", "of its first byte in it, unpacked"),
    ),
    ("dt", "broker"),
    "a request, as its broker or controller logged it when it was answered",
    (
        *("user", "client_id", "listener", "api", "api_version"),
        *("acks", "throttle_ms", "src_file"),
    ),
)

SILVER_CHANGE: Final = Table(
    "silver_change",
    SILVER_REQUEST.columns[1:],
    (),
    "a request about topics or quotas, as its controller logged it: a copy of silver_request's",
)

QUARANTINE: Final = Table(
    "quarantine",
    (
        Column("broker", "int", "whose log the line is in"),
        Column("src_file", "string", "the file that the line is in"),
        Column("src_offset", "bigint", "of its first byte in it, unpacked"),
        Column("kind", "string", "why it isn't read: other, torn, damaged, unexpected, time, long"),
        Column("reason", "string", "for a person; none of the line's own text"),
        Column("bytes", "bigint", "how long the line is"),
    ),
    (),
    "a line that can't be read",
)

SILVER_QUOTA_CONFIG: Final = Table(
    "silver_quota_config",
    (
        Column("entity", "string", _ENTITY),
        Column("user", "string", 'null for none, "<default>" for the default'),
        Column("client_id", "string", 'null for none, "<default>" for the default'),
        Column("key", "string", "the quota's name in Kafka, producer_byte_rate"),
        Column("value", "double", "per second; percent for request_percentage; null: removed"),
        Column("valid_from", "timestamp", "from when on"),
        Column("valid_to", "timestamp", "the next change; null for none known"),
        Column("source", "string", "snapshot or log"),
    ),
    (),
    "a quota of an entity, while it was in force",
)

DIM_TOPIC: Final = Table(
    "dim_topic",
    (
        Column("topic", "string", "its name"),
        Column("topic_id", "string", "base64, as logged; empty when it was not logged"),
        Column("partitions", "int", "how many; null after it was deleted, or when unknown"),
        Column("valid_from", "timestamp", "from when on"),
        Column("valid_to", "timestamp", "the next change; null for none known"),
        Column("src_file", "string", "the file of the line that says so"),
        Column("src_offset", "bigint", "of that line, so that ties in time have an order"),
    ),
    (),
    "the size of a topic, while it had it",
)

SILVER_VOLUME: Final = Table(
    "silver_volume",
    (
        Column("dt", "date", "the day of observed_ts"),
        Column("broker", "int", "whose volume it is"),
        Column("log_dir", "string", "the log dir's path"),
        Column("observed_ts", "timestamp", "when it was seen"),
        Column("total_bytes", "bigint", "of the volume; null while offline"),
        Column("available_bytes", "bigint", "free ones; null while offline"),
        Column("offline", "boolean", "whether the broker said that the log dir is offline"),
    ),
    ("dt",),
    "a volume at a time; one row, however many sidecars saw it",
)

GOLD_USAGE_1S: Final = Table(
    "gold_usage_1s",
    (
        Column("dt", "date", "the day of window_start"),
        Column("broker", "int", "quotas are enforced by each broker for itself"),
        Column("user", "string", "the principal's name without its type"),
        Column("client_id", "string", "as the client gave it"),
        Column("quota_type", "string", _QUOTA_TYPE),
        Column("window_start", "timestamp", "of a second of the clock, by quota_ts"),
        Column("amount", "double", _AMOUNT),
        Column("events", "bigint", "requests that were charged"),
        Column("throttled", "bigint", "those whose client had to wait, for whatever quota"),
        Column("throttle_ms", "bigint", "the sum of those waits"),
        Column(
            "lower_bound",
            "boolean",
            "whether more was requested or used than the amount says: request time always, bytes"
            " and partitions where a line doesn't have them",
        ),
    ),
    ("dt",),
    "what a client used of a broker in a second",
    ("broker", "user", "client_id", "quota_type"),
)

GOLD_REPLAY: Final = Table(
    "gold_replay",
    (
        Column("dt", "date", "the day; its first window starts empty"),
        Column("broker", "int", "the node that enforces it"),
        Column("quota_type", "string", _QUOTA_TYPE),
        Column("entity", "string", _ENTITY),
        Column(
            "shared_by",
            "string",
            'who uses it up together, "user=alice": under a default quota each has their own; the'
            " entity to set a quota for, where there is none",
        ),
        Column("algorithm", "string", "rate, token-bucket, burst-spreading or producer-ids"),
        Column(
            "scenario", "string", 'in force, or the candidate: "x2" of what is in force, "=1000"'
        ),
        Column("quota", "double", f"the last one in the day; null when none was in force; {_UNIT}"),
        Column("events", "bigint", "charges"),
        Column("throttled", "bigint", "those that had to wait, or were refused"),
        Column("throttle_ms_total", "bigint", "milliseconds; not one after the other"),
        Column("throttle_ms_max", "bigint", "the longest, milliseconds"),
        Column(
            "peak_rate",
            "double",
            "the highest rate, as Kafka takes it, in the quota's unit: over 10 s, ids over 10 h",
        ),
        Column("near", "bigint", "charges at 80 % of the quota or more"),
        Column("over", "bigint", "charges over it"),
        Column("unknown", "bigint", "charges whose amount no line has; not replayed"),
    ),
    ("dt",),
    "what a quota would have done to those who share it, on one broker in one day",
)

GOLD_RECOMMENDATION: Final = Table(
    "gold_recommendation",
    (
        Column("dt", "date", "the newest day of the evidence"),
        Column("quota_type", "string", _QUOTA_TYPE),
        Column("entity", "string", _ENTITY),
        Column("key", "string", "the quota's name in Kafka"),
        Column("quota", "double", f"what to set; null when it is refused; {_UNIT}"),
        Column("in_force", "double", "what is set, in the same unit; null for none"),
        Column("percentile_rate", "double", "the decayed percentile that it stands on, likewise"),
        Column("peak_rate", "double", "the highest seen, likewise"),
        Column("throttled_share", "double", "of the charges, if it had been set"),
        Column("events", "bigint", "charges that it stands on"),
        Column("hours", "double", "in which there were any"),
        Column("coverage", "double", "share of the requested time that the logs cover"),
        Column("confidence", "string", "low, medium or high"),
        Column("refused", "string", "why there is none; null when there is one"),
        Column(
            "share_of_capacity",
            "double",
            "the sum of all recommended, and of what is in force where none is, of the capacity;"
            " null: unknown",
        ),
    ),
    ("dt",),
    "the smallest quota that keeps throttling under the target",
)

GOLD_DISK_FORECAST: Final = Table(
    "gold_disk_forecast",
    (
        Column("dt", "date", "the day of as_of"),
        Column("broker", "int", "whose volume it is"),
        Column("log_dir", "string", "the log dir's path"),
        Column("as_of", "timestamp", "up to when readings counted; hours are from here"),
        Column("total_bytes", "bigint", "of the volume at the last reading; null while offline"),
        Column("available_bytes", "bigint", "free at the last reading"),
        Column("limit_bytes", "bigint", "available bytes at which producers are throttled"),
        Column("growth_bytes_per_hour", "double", "of what retention leaves; negative: it shrinks"),
        Column("hours_to_limit", "double", "expected; null: not within the horizon, or refused"),
        Column("hours_low", "double", "the early end of the range"),
        Column("hours_high", "double", "the late end; null: it may never be"),
        Column("readings", "bigint", "that it stands on"),
        Column("history_hours", "double", "from the first to the last of them"),
        Column("teeth", "bigint", "how often retention was seen to delete"),
        Column(
            "backtest_error_bytes",
            "double",
            "median error on tails left out of fits; null: none possible",
        ),
        Column("refused", "string", "why there is no forecast; null when there is one"),
    ),
    ("dt",),
    "when a volume is at its limit",
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
)
"""All of them, in the order in which they are made."""
