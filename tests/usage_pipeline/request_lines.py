"""Request logs by hypothesis: of any API and version, and torn, damaged or absurd."""

import json
from typing import Any, Final

from hypothesis import strategies as st

from tests.sidecar.requestlog.lines import BY_HAND, REAL

NAMES: Final = st.sampled_from(["t1", "orders", "", "ü" * 70, "a:b", '"}] (kafka.request.logger)'])
NUMBERS: Final = st.sampled_from(
    [0, 1, -1, 2, 126, 127, 128, 33_358, (1 << 31) - 1, 1 << 31, 1 << 63, 10**30, -(10**30)]
)
SIZES: Final = st.sampled_from([0, 1, 126, 127, 16_383, 16_384, 33_358, 2_097_151])
ODD: Final[st.SearchStrategy[Any]] = st.sampled_from(
    [None, "", "x", -1, 1.5, [], {}, True, 10**30, [{}], "NaN"]
)
"""In the place of anything."""

TIMES: Final = (
    "2026-11-20 10:00:00,000",
    "2026-11-20 10:00:00,001",
    "2026-11-20 10:00:00.999",
    "2026-10-25 02:30:00,123",
    "2026-03-29 02:30:00,123",
    "2024-03-01 00:00:00,000",
    "2024-12-31 23:59:59,999",
    "2100-02-29 00:00:00,000",
    "2100-03-01 00:00:00,000",
    "1970-01-01 00:00:00,000",
    "1969-12-31 23:59:59,999",
    "9999-12-31 23:59:59,999",
    "0001-01-01 00:00:00,000",
    "2026-11-20 10:00:61,000",
    "2026-02-30 10:00:00,000",
    "2026-11-20T10:00:00,123",
    "20261120T100000.123,123",
    "2026-11-20 10:00:00,12x",
    "2026-11-20 10:00:00,1_2",
    "2026-11-20 10:00:00",
    "2026-11-20 10:00:00,123456",
    "2026-11-20 10:00:00,123+0100",
    "2026/11/20 10:00:00,123",
    "20261120T100000,123",
    "0001/01/01 00:00:00,000",
    "99991231T235959,999",
    "0001-01-01 00:00:00,000+01:00",
    "9999-12-31 23:59:59,999-01:00",
    "1970-01-01 00:30:00,000+01:00",
    "00010101T000000,000+01:00",
    "2026-11-20 10:00:00+01:",
    "2026-W47-5T10:00:00,123",
)
"""As they may be written, and as they may not."""


def _topics(named: str, partition: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(
        st.fixed_dictionaries(
            {named: st.lists(partition, max_size=3)},
            optional={"name": NAMES, "topic": NAMES, "topicId": st.just("R0Qw3nShT-eMCtK--X86sw")},
        ),
        max_size=3,
    )


_PRODUCE_TOPICS: Final = _topics(
    "partitionData",
    st.fixed_dictionaries(
        {"index": st.integers(0, 9)}, optional={"recordsSizeInBytes": SIZES | NUMBERS, "x": ODD}
    ),
)
_FETCHED_TOPICS: Final = _topics(
    "partitions",
    st.fixed_dictionaries(
        {"partitionIndex": st.integers(0, 9)},
        optional={
            "recordsSizeInBytes": SIZES | NUMBERS,
            "abortedTransactions": st.none()
            | st.lists(st.just({"producerId": 1, "firstOffset": 2}), max_size=2),
            "currentLeader": st.just({"leaderId": 1, "leaderEpoch": 0}),
            "divergingEpoch": st.just({"epoch": 1, "endOffset": 0}),
            "snapshotId": st.just({"endOffset": 1, "epoch": 0}),
        },
    ),
)
_ADMIN_TOPICS: Final = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES | st.none()},
        optional={
            "topicId": st.just("R0Qw3nShT-eMCtK--X86sw"),
            "numPartitions": NUMBERS,
            "count": NUMBERS,
            "assignments": st.none() | st.just([{}, {}]),
        },
    ),
    max_size=2,
)
_ADMIN_ANSWERS: Final = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES | st.none(), "errorCode": st.sampled_from([0, 0, 36, 89])},
        optional={"numPartitions": NUMBERS, "topicId": st.just("4L6g3nShT-eMCtK--X86sw")},
    ),
    max_size=2,
)
_ENTITY: Final = st.lists(
    st.fixed_dictionaries(
        {
            "entityType": st.sampled_from(["user", "client-id", "ip", "group"]),
            "entityName": st.none() | NAMES,
        }
    ),
    max_size=2,
)
_ENTRIES: Final = st.lists(
    st.fixed_dictionaries(
        {
            "entity": _ENTITY,
            "ops": st.lists(
                st.fixed_dictionaries(
                    {
                        "key": st.just("producer_byte_rate"),
                        "value": st.sampled_from([1.5, 0, "NaN", "Infinity", "x"]),
                        "remove": st.booleans(),
                    }
                ),
                max_size=2,
            ),
        }
    ),
    max_size=2,
)

_REQUESTS: Final = st.fixed_dictionaries(
    {},
    optional={
        "acks": st.sampled_from([-1, 0, 1]) | ODD,
        "topicData": _PRODUCE_TOPICS | ODD,
        "transactionalId": st.none() | NAMES | ODD,
        "replicaId": st.sampled_from([-1, 2]) | ODD,
        "replicaState": st.just({"replicaId": 2, "replicaEpoch": 1}) | ODD,
        "topics": _ADMIN_TOPICS | ODD,
        "topicNames": st.lists(NAMES, max_size=2) | ODD,
        "validateOnly": st.booleans() | ODD,
        "entries": _ENTRIES | ODD,
        "timeoutMs": st.just(30_000) | ODD,
    },
)
_ANSWERS: Final = st.fixed_dictionaries(
    {},
    optional={
        "throttleTimeMs": st.sampled_from([0, 0, 0, 198, -5]) | NUMBERS,
        "responses": _FETCHED_TOPICS | _ADMIN_ANSWERS | ODD,
        "topics": _ADMIN_ANSWERS | ODD,
        "results": _ADMIN_ANSWERS,
        "errorCode": st.sampled_from([0, 0, 0, 14]) | ODD,
        "producerId": NUMBERS | ODD,
        "producerEpoch": NUMBERS | ODD,
        "entries": st.just([{"errorCode": 0, "entity": []}]) | ODD,
    },
)
_API_NAMES: Final = {
    0: "PRODUCE",
    1: "FETCH",
    19: "CREATE_TOPICS",
    20: "DELETE_TOPICS",
    22: "INIT_PRODUCER_ID",
    37: "CREATE_PARTITIONS",
    49: "ALTER_CLIENT_QUOTAS",
}
_APIS: Final = st.sampled_from([0, 0, 0, 1, 1, 1, 3, 4, 19, 20, 22, 37, 49, 55, 999, -1])


def api_name(key: int) -> str:
    """Returns Kafka's name of an API that quotas are about, and another name of others."""
    return _API_NAMES.get(key, f"API_{key}")


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    """Draws the JSON of a line, mostly as Kafka writes it."""
    key = draw(_APIS)
    header: dict[str, Any] = {
        "requestApiKey": key,
        "requestApiVersion": draw(st.integers(-1, 19) | NUMBERS),
        "clientId": draw(st.none() | NAMES),
    }
    if draw(st.booleans()):
        header["requestApiKeyName"] = api_name(key)
    body: dict[str, Any] = {
        "isForwarded": draw(st.booleans()),
        "requestHeader": header,
        "request": draw(_REQUESTS | _REQUESTS | st.sampled_from(["", None, 5, []])),
        "response": draw(_ANSWERS | _ANSWERS | st.sampled_from(["", None, 5, []])),
        "connection": "127.0.0.1:19091-127.0.0.1:36340-2-2",
        "totalTimeMs": 65.261,
        "localTimeMs": draw(st.floats(0, 1e4) | st.sampled_from([0, 1e300, 10**19])),
        "remoteTimeMs": 1.5,
        "throttleTimeMs": draw(st.sampled_from([0, 0, 0, 198]) | NUMBERS),
        "responseQueueTimeMs": draw(st.sampled_from([0.079, 0.9999, 0, 1e12, 1e300])),
        "sendTimeMs": draw(st.floats(0, 50)),
        "principal": draw(st.sampled_from(["User:alice", "User:CN=a:b", "x", "User:"])),
        "listener": "CLIENT",
    }
    for name in draw(st.lists(st.sampled_from(sorted(body)), max_size=1)):
        if draw(st.booleans()):
            body[name] = draw(ODD)
        else:
            del body[name]
    if draw(st.booleans()):
        body["clientInformation"] = draw(ODD)
    return body


@st.composite
def made_lines(draw: st.DrawFn) -> bytes:
    """Draws a whole line of either pattern."""
    text = json.dumps(draw(bodies()), separators=(",", ":"), ensure_ascii=draw(st.booleans()))
    time = draw(st.just("2026-11-20 10:00:00,000") | st.sampled_from(TIMES))
    usual = f"[{time}] DEBUG Completed request:{text} (kafka.request.logger)"
    strimzi = f"{time} DEBUG [data-plane-1] logger:302 - Completed request:{text}"
    return draw(st.sampled_from([usual, usual, usual, strimzi])).encode()


@st.composite
def torn_lines(draw: st.DrawFn) -> bytes:
    """Draws a line that lost its start, its end or some bytes within."""
    line = draw(made_lines() | st.sampled_from(REAL + BY_HAND))
    start = draw(st.integers(0, len(line)))
    end = draw(st.integers(start, len(line)))
    cut = draw(st.sampled_from([line[start:], line[:end], line[:start] + line[end:]]))
    return cut.replace(b"\n", b"") + draw(st.sampled_from([b"", b"\r", b"\xff"]))


@st.composite
def damaged_lines(draw: st.DrawFn) -> bytes:
    """Draws a broker's line of which one byte is another, or missing, or twice there."""
    line = draw(st.sampled_from(REAL + BY_HAND))
    at = draw(st.integers(0, len(line) - 1))
    one = line[at : at + 1]
    other = draw(
        st.sampled_from([b"", one * 2, *(bytes([byte]) for byte in b'"\\{}[]:,0-.eE ntf\x00\xc3')])
    )
    return line[:at] + other + line[at + 1 :]


NAMES_AS_WRITTEN: Final = st.sampled_from(
    ["etl", "", "ü", "😀" * 9, 'a"b', "\\", "tab\t", '","acks":0,"x":"', "n" * 127, "n" * 128]
)
_SIZES_AS_WRITTEN: Final = st.fixed_dictionaries(
    {"index": st.integers(0, 9), "recordsSizeInBytes": SIZES}
)
_ABORTED: Final = {"producerId": 9, "firstOffset": 2}
_FETCHED_AS_WRITTEN: Final = st.fixed_dictionaries(
    {
        "partitionIndex": st.integers(0, 9),
        "abortedTransactions": st.none() | st.integers(0, 200).map(lambda many: [_ABORTED] * many),
        "recordsSizeInBytes": SIZES,
    },
    optional={
        "currentLeader": st.just({"leaderId": 1, "leaderEpoch": 0}),
        "divergingEpoch": st.just({"epoch": 1, "endOffset": 0}),
        "snapshotId": st.just({"endOffset": 1, "epoch": 0}) | st.none(),
    },
)


def _topics_as_written(
    name: str, partitions: str, one: st.SearchStrategy[Any]
) -> st.SearchStrategy[Any]:
    lists = st.lists(one, max_size=3) | st.integers(120, 140).flatmap(
        lambda many: st.tuples(one).map(lambda same: list(same) * many)
    )
    topic = st.fixed_dictionaries({name: NAMES_AS_WRITTEN, partitions: lists})
    return st.lists(topic, max_size=3)


@st.composite
def lines_as_written(draw: st.DrawFn) -> bytes:
    """Draws a line as a broker writes it, of an API that changes neither topics nor quotas."""
    key = draw(st.sampled_from([0, 0, 1, 1, 3, 4, 22, 55, 999]))
    throttle_ms = draw(st.sampled_from([0, 0, 198]))
    request: dict[str, Any] = {"timeoutMs": 30_000}
    answer: dict[str, Any] = {"throttleTimeMs": throttle_ms, "errorCode": 0}
    if key == 0:
        request |= {
            "transactionalId": draw(st.none() | NAMES_AS_WRITTEN),
            "acks": draw(st.sampled_from([-1, 0, 1])),
            "topicData": draw(_topics_as_written("name", "partitionData", _SIZES_AS_WRITTEN)),
        }
    if key == 1:
        replica = draw(st.sampled_from([-1, 2]))
        request |= draw(
            st.sampled_from([{"replicaId": replica}, {"replicaState": {"replicaId": replica}}, {}])
        )
        answer["responses"] = draw(_topics_as_written("topic", "partitions", _FETCHED_AS_WRITTEN))
    if key == 22:
        answer |= {"producerId": draw(st.integers(-1, 10**18 - 1)), "producerEpoch": 0}
        answer["errorCode"] = draw(st.sampled_from([0, 14]))
    times = st.integers(0, 10**7).map(lambda us: us / 1000)
    body = {
        "isForwarded": draw(st.booleans()),
        "requestHeader": {
            "requestApiKey": key,
            "requestApiVersion": draw(st.integers(-1, 19)),
            "correlationId": 7,
            "clientId": draw(st.none() | NAMES_AS_WRITTEN),
        }
        | draw(st.sampled_from([{}, {"requestApiKeyName": api_name(key)}])),
        "request": request,
        "response": draw(st.just(answer) | st.sampled_from(["", None])),
        "connection": "127.0.0.1:19091-127.0.0.1:36340-2-2",
        "totalTimeMs": draw(times),
        "requestQueueTimeMs": 0.5,
        "localTimeMs": draw(times),
        "remoteTimeMs": draw(times),
        "throttleTimeMs": draw(st.sampled_from([0, 0, throttle_ms, 12])),
        "responseQueueTimeMs": draw(times),
        "sendTimeMs": draw(times),
        "securityProtocol": "SASL_SSL",
        "principal": draw(st.sampled_from(["User:alice", "User:CN=ü,O=a:b", "x", 'User:"', ""])),
        "listener": draw(st.sampled_from(["CLIENT", "REPLICATION"])),
        "clientInformation": {"softwareName": draw(NAMES_AS_WRITTEN), "nested": [[], {}, [1.5]]},
    }
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    hour, second = draw(st.integers(0, 23)), draw(st.integers(0, 59))
    time = f"2024-02-29 {hour:02}:30:{second:02},{draw(st.integers(0, 999)):03}"
    return f"[{time}] DEBUG Completed request:{text} (kafka.request.logger)".encode()


REQUEST_LOGS: Final = st.lists(
    made_lines()
    | lines_as_written()
    | st.sampled_from(REAL + BY_HAND)
    | torn_lines()
    | damaged_lines()
    | st.binary(),
    max_size=12,
).map(b"\n".join)
"""Lines of all kinds, the last one without its end."""
