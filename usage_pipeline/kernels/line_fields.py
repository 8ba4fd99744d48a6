"""The fields that are read from a request log's line, as tables for the kernel ``log_lines``.

A line's JSON is a tree. A *shape* is an inner object or list from which something is read. Its
rules say which kind of value each field has and where the value is stored. A field without a rule
is skipped, whatever its value. The rules correspond to the types of ``requestlog.wire`` and
``requestlog.line``; tests compare the two.

The sizes of requests and answers are sums whose parts depend on the version, so the sums stored
here do not depend on it (``line_sizes``). "Lengths" are the bytes of variable-length integers: 1
for each missing one, and the real number of bytes for the others.

Example: ``recordsSizeInBytes`` of 300 in a partition adds 300 to RECORDS and 1 to RECORDS_LENGTHS,
which has 1 for the partition already: a length of 301 takes 2 bytes.
"""

from enum import IntEnum, auto
from typing import Final

import numpy as np

from sidecar.requestlog.exempt import FETCH, PRODUCE, is_exempt_by_api
from sidecar.requestlog.mutation_counts import ABOUT_TOPICS
from sidecar.requestlog.request_detail import INIT_PRODUCER_ID
from usage_pipeline.kernels.fetch_size import CURRENT_LEADER, DIVERGING_EPOCH, SNAPSHOT_ID
from usage_pipeline.kernels.line_detail import ALTER_CLIENT_QUOTAS

NONE: Final = -(1 << 62)
"""Stands for "no number"; it is beyond any number that is read."""


class Kind(IntEnum):
    """The kinds of values of a field."""

    ANY = 0
    INT = auto()
    TIME = auto()
    """A number of milliseconds, at least 0."""
    FLAG = auto()
    TEXT = auto()
    """A string that is not stored."""
    STRING = auto()
    STRING_OR_NULL = auto()
    NAME = auto()
    """A string whose length is stored."""
    SIZE = auto()
    OBJECT = auto()
    LIST = auto()
    LIST_OR_NULL = auto()
    """A list whose length is stored with those of other lists of partitions."""
    TAG = auto()
    """An object or null; only whether it is present is stored."""
    ANSWER = auto()
    """An object, a string or null."""
    OF_API = auto()
    """Depends on the API."""


class Slot(IntEnum):
    """The indexes of a line's row."""

    START = 0
    SECOND = auto()
    """The broker's local time since 1970, as if it were UTC."""
    MS = auto()
    API_KEY = auto()
    VERSION = auto()
    FORWARDED = auto()
    # Each string has its first byte, its end and its escapes, in this order.
    USER = auto()
    USER_END = auto()
    USER_ESCAPES = auto()
    CLIENT_ID = auto()
    CLIENT_ID_END = auto()
    CLIENT_ID_ESCAPES = auto()
    LISTENER = auto()
    LISTENER_END = auto()
    LISTENER_ESCAPES = auto()
    API = auto()
    API_END = auto()
    API_ESCAPES = auto()
    TRANSACTION = auto()
    TRANSACTION_END = auto()
    TRANSACTION_ESCAPES = auto()
    THROTTLE = auto()
    ANSWER_THROTTLE = auto()
    ANSWERED = auto()
    ACKS = auto()
    REPLICA = auto()
    STATE_REPLICA = auto()
    PRODUCER_ID = auto()
    ERROR = auto()
    IGNORED = auto()
    TOPICS = auto()
    TOPICS_LENGTHS = auto()
    PARTITIONS = auto()
    RECORDS = auto()
    RECORDS_LENGTHS = auto()
    NAMES = auto()
    NAMES_LENGTHS = auto()
    PARTITIONS_LENGTHS = auto()
    ABORTED = auto()
    ABORTED_LENGTHS = auto()
    TAGS = auto()
    # Times are numbers with a decimal point, stored as the bits of doubles.
    LOCAL_TIME = auto()
    REMOTE_TIME = auto()
    SENDING = auto()
    QUEUED = auto()
    OTHER_TIME = auto()
    # These are derived from the above after the whole line is read.
    IS_FOLLOWER = auto()
    EXEMPT = auto()
    RECORDS_BYTES = auto()
    QUOTA_BYTES = auto()
    BYTES_KNOWN = auto()


class Shape(IntEnum):
    """The objects with rules for their fields."""

    SKIPPED = 0
    LINE = auto()
    HEADER = auto()
    PRODUCE = auto()
    PRODUCE_TOPIC = auto()
    PRODUCE_PARTITION = auto()
    FETCH = auto()
    REPLICA = auto()
    ANSWER = auto()
    FETCHED = auto()
    FETCHED_TOPIC = auto()
    FETCHED_PARTITION = auto()
    ID_ANSWER = auto()


Rule = tuple[Kind, int]
_THROTTLE: Final[dict[str, Rule]] = {"throttleTimeMs": (Kind.INT, Slot.ANSWER_THROTTLE)}
REQUEST, RESPONSE = 0, 1

_RULES: Final[dict[Shape, dict[str, Rule]]] = {
    Shape.LINE: {
        "requestHeader": (Kind.OBJECT, Shape.HEADER),
        "principal": (Kind.STRING, Slot.USER),
        "localTimeMs": (Kind.TIME, Slot.LOCAL_TIME),
        "isForwarded": (Kind.FLAG, Slot.FORWARDED),
        "request": (Kind.OF_API, REQUEST),
        "response": (Kind.OF_API, RESPONSE),
        "connection": (Kind.TEXT, 0),
        "listener": (Kind.STRING, Slot.LISTENER),
        "securityProtocol": (Kind.TEXT, 0),
        "totalTimeMs": (Kind.TIME, Slot.OTHER_TIME),
        "requestQueueTimeMs": (Kind.TIME, Slot.OTHER_TIME),
        "remoteTimeMs": (Kind.TIME, Slot.REMOTE_TIME),
        "responseQueueTimeMs": (Kind.TIME, Slot.QUEUED),
        "sendTimeMs": (Kind.TIME, Slot.SENDING),
        "throttleTimeMs": (Kind.INT, Slot.THROTTLE),
    },
    Shape.HEADER: {
        "requestApiKey": (Kind.INT, Slot.API_KEY),
        "requestApiVersion": (Kind.INT, Slot.VERSION),
        "clientId": (Kind.STRING_OR_NULL, Slot.CLIENT_ID),
        "requestApiKeyName": (Kind.STRING, Slot.API),
    },
    Shape.PRODUCE: {
        "acks": (Kind.INT, Slot.ACKS),
        "topicData": (Kind.LIST, Shape.PRODUCE_TOPIC),
        "transactionalId": (Kind.STRING_OR_NULL, Slot.TRANSACTION),
    },
    Shape.PRODUCE_TOPIC: {
        "partitionData": (Kind.LIST, Shape.PRODUCE_PARTITION),
        "name": (Kind.NAME, 0),
        "topicId": (Kind.TEXT, 0),
    },
    Shape.PRODUCE_PARTITION: {
        "index": (Kind.INT, Slot.IGNORED),
        "recordsSizeInBytes": (Kind.SIZE, 0),
    },
    Shape.FETCH: {
        "replicaId": (Kind.INT, Slot.REPLICA),
        "replicaState": (Kind.OBJECT, Shape.REPLICA),
    },
    Shape.REPLICA: {"replicaId": (Kind.INT, Slot.STATE_REPLICA)},
    Shape.ANSWER: _THROTTLE,
    Shape.FETCHED: _THROTTLE | {"responses": (Kind.LIST, Shape.FETCHED_TOPIC)},
    Shape.FETCHED_TOPIC: {
        "topic": (Kind.NAME, 0),
        "partitions": (Kind.LIST, Shape.FETCHED_PARTITION),
    },
    Shape.FETCHED_PARTITION: {
        "recordsSizeInBytes": (Kind.SIZE, 0),
        "abortedTransactions": (Kind.LIST_OR_NULL, Shape.SKIPPED),
        "divergingEpoch": (Kind.TAG, DIVERGING_EPOCH),
        "currentLeader": (Kind.TAG, CURRENT_LEADER),
        "snapshotId": (Kind.TAG, SNAPSHOT_ID),
    },
    Shape.ID_ANSWER: _THROTTLE
    | {
        "producerId": (Kind.INT, Slot.PRODUCER_ID),
        "producerEpoch": (Kind.INT, Slot.IGNORED),
        "errorCode": (Kind.INT, Slot.ERROR),
    },
}
_REQUIRED: Final = {
    Shape.LINE: ("requestHeader", "principal", "localTimeMs", "request", "response"),
    Shape.HEADER: ("requestApiKey", "requestApiVersion"),
    Shape.PRODUCE: ("acks", "topicData"),
    Shape.PRODUCE_TOPIC: ("partitionData",),
    Shape.PRODUCE_PARTITION: ("index",),
}
_OF_API: Final[dict[int, tuple[Rule, Rule]]] = {
    PRODUCE: ((Kind.OBJECT, Shape.PRODUCE), (Kind.ANSWER, Shape.ANSWER)),
    FETCH: ((Kind.OBJECT, Shape.FETCH), (Kind.ANSWER, Shape.FETCHED)),
    INIT_PRODUCER_ID: ((Kind.ANY, 0), (Kind.ANSWER, Shape.ID_ANSWER)),
}

KIND_BITS: Final = 4
ARGUMENT: Final = 1 << KIND_BITS
"""A rule is its kind plus this number times its argument."""
APIS: Final = 128
"""APIs with higher numbers are treated like any other API."""


def _number(rule: Rule) -> int:
    return rule[0] + ARGUMENT * rule[1]


def _known() -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for rules in _RULES.values() for name in rules))


def _rules() -> np.ndarray:
    table = np.zeros((len(Shape), len(_KNOWN) + 1), np.int64)
    for shape, rules in _RULES.items():
        for name, rule in rules.items():
            table[shape, 1 + _KNOWN.index(name)] = _number(rule)
    return table


def _required() -> np.ndarray:
    return np.array(
        [
            sum(1 << (1 + _KNOWN.index(name)) for name in _REQUIRED.get(shape, ()))
            for shape in Shape
        ],
        np.int64,
    )


def _exempt() -> np.ndarray:
    return np.array(
        [
            [is_exempt_by_api(api, is_forwarded=forwarded) for forwarded in (False, True)]
            for api in range(APIS + 1)
        ],
        np.int64,
    )


def _of_api() -> np.ndarray:
    table = np.full((APIS + 1, 2), _number((Kind.ANY, 0)), np.int64)
    table[:, RESPONSE] = _number((Kind.ANSWER, Shape.ANSWER))
    for api, rules in _OF_API.items():
        table[api] = [_number(rule) for rule in rules]
    for api in ABOUT_TOPICS | {ALTER_CLIENT_QUOTAS}:
        table[api] = -1
    return table


def _names() -> np.ndarray:
    """Three words and a number for each index of ``place_of``; 0 for an empty entry."""
    table = np.zeros((PLACES, 4), np.int64)
    for number, name in enumerate(_KNOWN, 1):
        text = name.encode()
        first, last = text[:8].ljust(8, b"\0"), text[-8:] if len(text) > 8 else b""
        middle = text[8:16].ljust(8, b"\0") if len(text) > 16 else b""
        words = [int.from_bytes(part, "little") for part in (first, middle, last)]
        place = place_of(words[0], len(text))
        while table[place, 3]:
            place = (place + 1) % PLACES
        table[place] = [*words, number + (len(text) << 8)]
    return table


PLACES: Final = 256


def place_of(first: int, length: int) -> int:
    """Return the first index of ``NAMES`` to try, by a name's first 8 bytes and its length."""
    return (first ^ (first >> 13) ^ (first >> 37) ^ (length * 29)) & (PLACES - 1)


_KNOWN: Final = _known()
NAMES: Final = _names()
RULES: Final = _rules()
REQUIRED: Final = _required()
EXEMPT: Final = _exempt()
"""For each API, whether it is exempt on a broker, and on a controller."""
OF_API: Final = _of_api()
"""For each API the rules of its request and answer; -1: it is left to others."""


def _unset() -> np.ndarray:
    row = np.zeros(len(Slot), np.int64)
    row[[Slot.ACKS, Slot.ERROR, Slot.API_KEY]] = NONE
    row[[Slot.RECORDS_BYTES, Slot.QUOTA_BYTES, Slot.BYTES_KNOWN]] = NONE
    row[Slot.TOPICS_LENGTHS] = 1
    row[[Slot.REPLICA, Slot.STATE_REPLICA, Slot.PRODUCER_ID]] = -1
    return row


UNSET: Final = _unset()
"""The initial row of a line."""
