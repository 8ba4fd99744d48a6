"""The rows of silver_request by Spark's own functions alone: what the parser is compared with.

It knows Kafka's usual pattern and whole lines only, knows no place in a file, and is slower; it is
another implementation of the same values, by another JSON reader and another hand at the sizes.

Example: a PRODUCE v11 of "etl" with 10,000 bytes for a partition of "t1": 10,035 bytes, by SQL.

Source: as ``sidecar.requestlog.produce_size`` and ``fetch_size``: Kafka's message definitions.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from usage_pipeline.tables.schemas import SILVER_REQUEST

_LINE: Final = (
    r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\] DEBUG Completed request:(.*)"
    r" \(kafka\.request\.logger\)$"
)
_TOPIC: Final = (
    "name STRING, topicId STRING, numPartitions INT, count INT, assignments ARRAY<STRING>"
)
_PRODUCED: Final = (
    "name STRING, partitionData ARRAY<STRUCT<index: INT, recordsSizeInBytes: BIGINT>>"
)
_ENTITY: Final = "entity ARRAY<STRUCT<entityType: STRING, entityName: STRING>>"
_TAG: Final = "STRUCT<epoch: INT, leaderEpoch: INT>"
_FETCHED: Final = (
    "partitions ARRAY<STRUCT<recordsSizeInBytes: BIGINT, abortedTransactions: ARRAY<STRING>,"
    f" divergingEpoch: {_TAG}, currentLeader: {_TAG}, snapshotId: {_TAG}>>"
)
_CHANGED: Final = "name STRING, topicId STRING, errorCode INT, numPartitions INT"
_REQUEST: Final = (
    f"acks INT, transactionalId STRING, topicData ARRAY<STRUCT<{_PRODUCED}>>,"
    " replicaId INT, replicaState STRUCT<replicaId: INT>,"
    f" topics ARRAY<STRUCT<{_TOPIC}>>, topicNames ARRAY<STRING>, validateOnly BOOLEAN,"
    f" entries ARRAY<STRUCT<{_ENTITY}, ops ARRAY<STRUCT<key STRING, value DOUBLE,"
    " remove BOOLEAN>>>>"
)
_ANSWER: Final = (
    "throttleTimeMs BIGINT, producerId BIGINT, errorCode INT,"
    f" topics ARRAY<STRUCT<{_CHANGED}>>, results ARRAY<STRUCT<{_CHANGED}>>,"
    f" responses ARRAY<STRUCT<{_CHANGED}, topic STRING, {_FETCHED}>>,"
    f" entries ARRAY<STRUCT<errorCode INT, {_ENTITY}>>"
)
_BODY: Final = (
    "isForwarded BOOLEAN, requestHeader STRUCT<requestApiKey INT, requestApiVersion INT,"
    f" clientId STRING, requestApiKeyName STRING>, request STRUCT<{_REQUEST}>,"
    f" response STRUCT<{_ANSWER}>, principal STRING, listener STRING, localTimeMs DOUBLE,"
    " remoteTimeMs DOUBLE, responseQueueTimeMs DOUBLE, sendTimeMs DOUBLE, throttleTimeMs BIGINT"
)
_EXEMPT: Final = "4, 5, 6, 7, 27, 52, 53, 54, 56, 59, 82"
_EXEMPT_FORWARDED: Final = "55, 80, 81"


def _varint(number: str) -> str:
    """Bytes of a length: one for each 7 bits."""
    return f"ceil(length(bin({number})) / 7)"


def _text(text: str) -> str:
    """Bytes of a text and its length, in the versions with variable lengths."""
    length = f"octet_length(coalesce({text}, ''))"
    return f"({length} + {_varint(f'{length} + 1')})"


_PRODUCE_BYTES: Final = f"""
  11 + octet_length(client_id)
  + 6 + 1 + {_text("request.transactionalId")} + {_varint("size(request.topicData) + 1")}
  + aggregate(request.topicData, 0L, (sum, topic) -> sum + 1
      + if(api_version >= 13, 16, {_text("topic.name")})
      + {_varint("size(topic.partitionData) + 1")}
      + aggregate(topic.partitionData, 0L, (sum, one) -> sum + 5
          + coalesce(one.recordsSizeInBytes, 0L)
          + {_varint("coalesce(one.recordsSizeInBytes, 0L) + 1")}))
"""
_FETCH_BYTES: Final = f"""
  4 + 10 + 1 + {_varint("size(response.responses) + 1")}
  + aggregate(response.responses, 0L, (sum, topic) -> sum + 1
      + if(api_version >= 13, 16, {_text("topic.topic")})
      + {_varint("size(topic.partitions) + 1")}
      + aggregate(topic.partitions, 0L, (sum, one) -> sum + 35
          + coalesce(one.recordsSizeInBytes, 0L)
          + {_varint("coalesce(one.recordsSizeInBytes, 0L) + 1")}
          + if(one.abortedTransactions is null, 1,
               17 * size(one.abortedTransactions)
               + {_varint("size(one.abortedTransactions) + 1")})
          + if(one.divergingEpoch is null, 0, 15) + if(one.currentLeader is null, 0, 11)
          + if(one.snapshotId is null, 0, 15)))
"""
_CHANGES: Final = """
  transform(
    if(size(request.topics) > 0, request.topics,
       transform(request.topicNames, name -> named_struct('name', name, 'topicId', '',
         'numPartitions', -1, 'count', -1, 'assignments', cast(null as array<string>)))),
    topic -> struct(topic, get(filter(
      coalesce(response.topics, response.results,
        transform(response.responses, one -> struct(one.name, one.topicId, one.errorCode,
          one.numPartitions))),
      one -> if(topic.name is null, one.topicId = topic.topicId, one.name = topic.name)), 0)
      as told))
"""
_TOPIC_CHANGES: Final = """
  transform(changes, one -> named_struct(
    'topic', coalesce(one.topic.name, one.told.name, ''),
    'topic_id', coalesce(nullif(one.told.topicId, ''), one.topic.topicId, ''),
    'partitions', case
      when api_key = 19 and one.told.numPartitions > 0 then one.told.numPartitions
      when api_key = 19 and size(one.topic.assignments) > 0 then size(one.topic.assignments)
      when api_key = 19 and one.topic.numPartitions > 0 then one.topic.numPartitions
      when api_key = 37 and one.topic.count > 0 then one.topic.count end,
    'error', one.told.errorCode))
"""
_QUOTA_CHANGES: Final = """
  flatten(transform(request.entries, entry -> transform(entry.ops, op -> named_struct(
    'user', {user},
    'client_id', {client_id},
    'ip', {ip},
    'key', op.key, 'value', if(op.remove, null, op.value),
    'error', get(filter(response.entries, one -> one.entity = entry.entity), 0).errorCode))))
"""


def native(lines: DataFrame, zone: str = "UTC") -> DataFrame:
    """Rows of lines in Kafka's usual pattern; PRODUCE from version 9 and FETCH from 12 on.

    Args:
        lines: ``value``, a line; ``broker``; ``src_file``.
        zone: of the brokers' clocks.

    Returns:
        Of ``SILVER_REQUEST`` without its day, whose ``src_offset`` is null.
    """
    read = lines.select(
        "broker",
        "src_file",
        sql.regexp_extract("value", _LINE, 1).alias("second"),
        sql.regexp_extract("value", _LINE, 2).alias("ms"),
        sql.from_json(sql.regexp_extract("value", _LINE, 3), _BODY).alias("body"),
    ).where("second <> ''")
    said = (
        read.select("broker", "src_file", "second", "ms", "body.*")
        .withColumns(_of_every_line(zone))
        .withColumn("is_follower", sql.expr(_is("api_key = 1 AND replica >= 0")))
        .withColumn(
            "answered",
            sql.expr(
                _is(
                    "response.responses IS NOT NULL"
                    " AND (size(response.responses) > 0 OR throttle_ms = 0)"
                )
            ),
        )
        .withColumn("changes", sql.expr(f"if(api_key IN (19, 20, 37), {_CHANGES}, null)"))
        .withColumns(_of_some_apis())
    )
    return said.selectExpr(
        *(
            f"CAST({column.name} AS {column.type}) AS {column.name}"
            for column in SILVER_REQUEST.columns[1:]
        )
    )


def _is(condition: str) -> str:
    return f"coalesce({condition}, false)"


def _of_every_line(zone: str) -> dict[str, Column]:
    local = "CAST(concat(second, '.', ms) AS TIMESTAMP)"
    charged = (
        f"timestamp_millis(CAST(floor(unix_millis({local}) - sendTimeMs - responseQueueTimeMs)"
        " AS BIGINT))"
    )
    by_column = {
        "log_ts": f"to_utc_timestamp({local}, '{zone}')",
        "quota_ts": f"{charged} + (to_utc_timestamp({local}, '{zone}') - {local})",
        "user": "substring(principal, locate(':', principal) + 1)",
        "client_id": "coalesce(requestHeader.clientId, '')",
        "api": "coalesce(requestHeader.requestApiKeyName,"
        " CAST(requestHeader.requestApiKey AS STRING))",
        "api_key": "requestHeader.requestApiKey",
        "api_version": "requestHeader.requestApiVersion",
        "is_forwarded": "isForwarded",
        "local_ms": "localTimeMs",
        "remote_ms": "remoteTimeMs",
        "throttle_ms": "greatest(throttleTimeMs, response.throttleTimeMs)",
        "replica": "coalesce(request.replicaState.replicaId, request.replicaId, -1)",
        "src_offset": "CAST(null AS BIGINT)",
    }
    return {name: sql.expr(value) for name, value in by_column.items()}


def _of_some_apis() -> dict[str, Column]:
    total = "aggregate(flatten({0}), 0L, (sum, one) -> sum + coalesce(one.recordsSizeInBytes, 0L))"
    produced = total.format("request.topicData.partitionData")
    fetched = total.format("response.responses.partitions")
    about_topics = "api_key IN (19, 20, 37)"
    counted = f"filter({_TOPIC_CHANGES}, one -> coalesce(one.error, 0) = 0)"
    unknown = f"exists({counted}, one -> api_key <> 19 OR one.partitions IS NULL)"
    by_column = {
        "exempt": f"(api_key = 0 AND request.acks = 0) OR is_follower OR api_key IN ({_EXEMPT})"
        f" OR (isForwarded AND api_key IN ({_EXEMPT_FORWARDED}))",
        "acks": "if(api_key = 0, request.acks, null)",
        "records_bytes": f"case when api_key = 0 then {produced}"
        f" when api_key = 1 and answered then {fetched} end",
        "quota_bytes": f"case when api_key = 0 then {_PRODUCE_BYTES}"
        f" when api_key = 1 and answered and not is_follower then {_FETCH_BYTES} end",
        "bytes_known": "case when api_key = 0 then true"
        " when api_key = 1 and not is_follower then answered end",
        "producer_id": "if(api_key = 22 and response.errorCode = 0 and response.producerId >= 0,"
        " response.producerId, null)",
        "mutations": f"if({about_topics} and not {unknown},"
        f" aggregate({counted}, 0L, (sum, one) -> sum + one.partitions), null)",
        "mutations_known": f"if({about_topics}, not {unknown}, null)",
        "validate_only": f"if({about_topics} or api_key = 49,"
        " coalesce(request.validateOnly, false), null)",
        "topic_changes": f"if({about_topics}, {_TOPIC_CHANGES}, null)",
        "quota_changes": f"if(api_key = 49, {_quota_changes()}, null)",
    }
    return {name: sql.expr(value) for name, value in by_column.items()}


def _quota_changes() -> str:
    parts = {
        kind.replace("-", "_"): f"get(filter(entry.entity, part -> part.entityType = '{kind}'), 0)"
        for kind in ("user", "client-id", "ip")
    }
    names = {
        kind: f"if({part} is null, null, coalesce({part}.entityName, '<default>'))"
        for kind, part in parts.items()
    }
    return _QUOTA_CHANGES.format(**names)
