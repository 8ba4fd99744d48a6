"""Charges requests about topics for partitions, by the sizes that the topics had.

The rule is the daemon's (``requestlog.mutation_counts.mutations_of``). The size of a topic is that
of DIM_TOPIC before the request's line. Other charges need no other line (``kernels.charging``).
These requests are few, so Python handles them one by one.

Only controllers' lines are charged, because the broker that forwarded a request has logged it too.
As in KRaft, a request that is only validated is charged too.

Example: "a" is created with 12 partitions, and a later line grows it to 20. That is 8 mutations,
although the line says 20.

Source: KIP-599; ControllerApis, ReplicationControlManager.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sidecar.requestlog.mutation_counts import Mutations, mutations_of
from sidecar.requestlog.request_detail import TopicChange
from usage_pipeline.kernels.charge_times import is_strict
from usage_pipeline.kernels.charging import Charged, micros
from usage_pipeline.kernels.seconds import PACKED, packed, usage_rows
from usage_pipeline.kernels.values import Doubles, Flags, Longs
from usage_pipeline.silver.dim_topic import is_mutation_line
from usage_pipeline.tables.apis import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS
from usage_pipeline.tables.schemas import GOLD_USAGE_1S, QUOTA_TYPES
from usage_pipeline.usage.quota_types import CONTROLLER_MUTATION

KIND: Final = QUOTA_TYPES.index(CONTROLLER_MUTATION)
NEEDED: Final = (
    *("broker", "user", "client_id", "quota_ts", "api", "api_version", "remote_ms", "throttle_ms"),
    *("topic_changes", "log_ts", "src_file", "src_offset"),
)
"""The columns of SILVER_REQUEST that mutations depend on."""
_API_KEYS: Final = {
    name: int(names[1])
    for names in (CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS)
    for name in names
}
_AFTER_OTHERS: Final = 2
"""A request has two other charges before these: one by its API, and its handlers' time."""
_SHARDS: Final = 8
"""Few, because mutations are few; the packed data of a shard stays in one worker's memory."""

_Place = tuple[int, str, int]
"""A line's time in microseconds since 1970, its file, and its offset there: the order of lines."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The numbers of partitions of topics over time.

    Attributes:
        stated: by the topic's name or id, the number of partitions after each line, in order.
    """

    stated: Mapping[tuple[str, str], Sequence[tuple[_Place, int | None]]] = field(repr=False)

    @classmethod
    def from_topics(cls, dim_topic: DataFrame) -> "Sizes":
        """Read DIM_TOPIC with a query."""
        stated = defaultdict(list)
        rows = dim_topic.select(
            *("topic", "topic_id", "src_file", "src_offset", "partitions"),
            sf.unix_micros("valid_from").alias("from_us"),
        )
        for row in rows.collect():
            place = (row["from_us"], row["src_file"], row["src_offset"])
            for key in (("name", row["topic"]), ("id", row["topic_id"])):
                if key[1]:
                    stated[key].append((place, row["partitions"]))
        # Kafka refuses a topic that a request names twice. If a line has two sizes, the larger
        # counts, independent of the order of the rows.
        return cls({key: sorted(each, key=_in_order) for key, each in stated.items()})

    def before(self, change: TopicChange, here: _Place) -> int | None:
        """Return the topic's partitions before a line, or None if no earlier line states them."""
        key = ("name", change.topic) if change.topic else ("id", change.topic_id)
        stated = self.stated.get(key, ())
        at = bisect_left(stated, here, key=itemgetter(0))
        return stated[at - 1][1] if at else None


@dataclass(frozen=True, slots=True)
class MutationRequests:
    """Requests about topics, and what their charges depend on.

    Attributes:
        rows: controllers' lines, with the columns NEEDED.
        sizes: the sizes of all topics.
    """

    rows: DataFrame
    sizes: Sizes

    @classmethod
    def from_changes(cls, of_admins: DataFrame, dim_topic: DataFrame) -> "MutationRequests":
        """Use rows of SILVER_REQUEST or SILVER_CHANGE, and of DIM_TOPIC, which is read at once."""
        # Reading and charging in Python in one stage would need two workers for each core.
        rows = of_admins.where(is_mutation_line()).select(*NEEDED).hint("rebalance")
        return cls(rows, Sizes.from_topics(dim_topic))


class Charges(NamedTuple):
    """Charges of a batch: one for each topic, and one for a request that couldn't be read.

    Attributes:
        row: the row of the batch, for each charge.
        amount: partitions, including refused ones; NaN if unknown.
        position: the position of the charge among those of its request.
        strict: whether the charge is refused while the quota is used up.
    """

    row: Longs
    amount: Doubles
    position: Longs
    strict: Flags


def charges(batch: pa.RecordBatch, sizes: Sizes) -> Charges:
    """Compute the charges of rows with the columns NEEDED, topic by topic, for a replay."""
    rows = [
        (row, mutation.partitions, _AFTER_OTHERS + at, line.is_strict)
        for row, line in enumerate(_lines(batch))
        for at, mutation in line.mutations(sizes)
    ]
    row, partitions, position, strict = zip(*rows, strict=True) if rows else ((),) * 4
    return Charges(
        np.array(row, np.int64),
        np.array(partitions, np.float64),
        np.array(position, np.int64),
        np.array(strict, np.bool_),
    )


def charged(batch: pa.RecordBatch, sizes: Sizes) -> Charged:
    """Compute the accepted partitions of requests, from rows with the columns NEEDED.

    A request is not ``known`` if some of its partitions were refused, or if no line has a number.
    """
    amount, known = [], []
    for line in _lines(batch):
        mutations = [mutation for _, mutation in line.mutations(sizes)]
        amount.append(sum(each.partitions or 0 for each in mutations if not each.refused))
        known.append(not any(each.refused or each.partitions is None for each in mutations))
    row = np.arange(batch.num_rows)
    kind = np.full(row.size, KIND)
    return Charged(row, kind, np.array(amount, np.int64), np.array(known, np.bool_))


def usage_of(mutations: MutationRequests) -> DataFrame:
    """Compute what clients used of controllers in each second.

    Returns:
        Rows of GOLD_USAGE_1S.
    """
    of_batch = partial(charged, sizes=mutations.sizes)
    sums = mutations.rows.mapInArrow(lambda batches: packed(batches, _SHARDS, of_batch), PACKED)
    return sums.groupBy("shard").applyInArrow(usage_rows, GOLD_USAGE_1S.schema)


class _Line(NamedTuple):
    """The parts of a request's line that mutations depend on."""

    api_key: int
    api_version: int
    changes: Sequence[Mapping[str, Any]] | None
    place: _Place

    @property
    def is_strict(self) -> bool:
        return is_strict(self.api_key, self.api_version)

    def mutations(self, sizes: Sizes) -> list[tuple[int, Mutations]]:
        """Return each topic's mutations and its position; one unknown value for an unread line."""
        if self.changes is None:
            return [(0, Mutations(None, refused=False))]
        changes = [TopicChange(**each) for each in self.changes]
        counted = (
            mutations_of(self.api_key, each, sizes.before(each, self.place)) for each in changes
        )
        return [(at, mutation) for at, mutation in enumerate(counted) if mutation is not None]


def _lines(batch: pa.RecordBatch) -> Iterator[_Line]:
    names = ("api", "api_version", "topic_changes", "src_file", "src_offset")
    columns = (batch[name].to_pylist() for name in names)
    for api, version, changes, file, offset, us in zip(
        *columns, micros(batch, "log_ts").tolist(), strict=True
    ):
        yield _Line(_API_KEYS[api], version, changes, (us, file, offset))


def _in_order(stated: tuple[_Place, int | None]) -> tuple[_Place, int]:
    place, partitions = stated
    return place, -1 if partitions is None else partitions
