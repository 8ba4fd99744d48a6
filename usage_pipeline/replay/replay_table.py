"""What quotas would have done: every charge compared with those in force and against others.

Charges get the quota that their client was under at the time, are grouped by day, broker, kind and
who shares it, and replayed in the order (time, file, offset), event by event, by the kernels. All
quotas to try are replayed in one pass over the charges.

Each day starts with empty windows and full buckets, so that a day can be replayed by itself: what
was used in the last seconds (producer ids: hours) before midnight is not counted. Charges whose
amount no line has are counted and not replayed.

Workers lay out what requests are charged with, in Arrow, each with the quotas of the clients that
it meets (``slots``), and hand the charges on in shards of many groups each (``packing``). One group
is in one shard, and comes to its worker in the order of time, so that a worker holds some million
charges however large a group is (``shard``). The driver holds none of it: not the clients, of which
there may be millions, and not the candidates that are tried for each.

Example: 1,500 bytes at once by alice, who has 100 a second: one row "in force" with a wait of
5,000 ms and one of "x2" with none.

Source: KIP-13, KIP-124, KIP-599, KIP-936; ``sidecar.quotas.prediction`` is the same for one node.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from pyspark.sql import DataFrame

from usage_pipeline.kernels.places import place_of
from usage_pipeline.replay.encoder import OF_REQUESTS, mutation_charges, request_charges
from usage_pipeline.replay.entities import quotas_of
from usage_pipeline.replay.group import Windows
from usage_pipeline.replay.packing import IN_ORDER, PACKED, Encode, packed, packed_peaks
from usage_pipeline.replay.scenarios import IN_FORCE, Scenario
from usage_pipeline.replay.shard import COMPARED, SUMMED, Comparison, Sweep
from usage_pipeline.replay.slots import SlotsOfClients
from usage_pipeline.runtime.by_workers import Batches
from usage_pipeline.runtime.shards import by_shard
from usage_pipeline.silver.requests import Requests
from usage_pipeline.tables.schemas import GOLD_REPLAY, Column, Table
from usage_pipeline.usage.mutations import MutationRequests

REPLAY_EVENTS: Final = Table(
    "replay_events",
    (
        Column("dt", "date", "the day of the charge"),
        Column("broker", "int", "the node that charged it"),
        Column("quota_type", "string", "of which quota"),
        Column("entity", "string", "whose quota it was"),
        Column("shared_by", "string", "who shared it"),
        Column("at_ms", "bigint", "when it was charged, milliseconds since 1970"),
        Column("src_file", "string", "the file of the request's line"),
        Column("src_offset", "bigint", "of the line in it"),
        Column("position", "int", "of the charge among its request's"),
        Column("limit", "double", "in force; null: none"),
        Column("rate", "double", "as Kafka takes it, with this charge in it"),
        Column("throttle_ms", "bigint", "how long its client would have to wait for this quota"),
        Column("accepted", "boolean", "false: a strict mutation that would be refused"),
        Column(
            "logged_throttle_ms",
            "bigint",
            "what the line says the client had to wait, for any quota",
        ),
    ),
    (),
    "a charge whose amount is known, and what the quota in force did with it; a request waits for"
    " the greatest of its charges' times",
)
WINDOWS: Final = Windows()
"""11 samples of a second; of ids, of an hour."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Quotas to try for each who share one.

    Attributes:
        peaks: of ``kernels.peak.PEAKS``: up to where.
        count: how many, at least 2.
    """

    peaks: DataFrame
    count: int


def replay(
    requests: Requests,
    mutations: MutationRequests,
    config: DataFrame,
    scenarios: Sequence[Scenario] = (IN_FORCE,),
    windows: Windows = WINDOWS,
    *,
    candidates: Candidates | None = None,
) -> DataFrame:
    """What quotas would have done to those who share them, on each broker in each day.

    Args:
        requests: all of them.
        mutations: those of them that are about topics.
        config: of SILVER_QUOTA_CONFIG.
        scenarios: to try; ``IN_FORCE`` among them where that is wanted.
        windows: the brokers' quota.window.num and .size.seconds, and those of controllers and ids.
        candidates: to try besides; None for none.

    Returns:
        Of GOLD_REPLAY.
    """
    rows, shards = _packed(requests, mutations, config)
    sweep = Sweep(windows, scenarios, 0 if candidates is None else candidates.count)
    if candidates is not None:
        places = _places(requests)

        def of_peaks(batches: Batches) -> Batches:
            return packed_peaks(batches, places, shards)

        rows = rows.unionByName(candidates.peaks.mapInArrow(of_peaks, PACKED))
    return GOLD_REPLAY.select(_replayed(rows, shards, sweep.rows, SUMMED))


def replay_events(
    requests: Requests,
    mutations: MutationRequests,
    config: DataFrame,
    windows: Windows = WINDOWS,
) -> DataFrame:
    """What the quotas in force did with each charge, to be compared with the logged throttle times.

    Args:
        requests: all of them.
        mutations: those of them that are about topics.
        config: of SILVER_QUOTA_CONFIG.
        windows: as in ``replay``; mutations by the token bucket.

    Returns:
        Of REPLAY_EVENTS, in no order.
    """
    rows, shards = _packed(requests, mutations, config)
    return REPLAY_EVENTS.select(_replayed(rows, shards, Comparison(windows).rows, COMPARED))


def _packed(
    requests: Requests, mutations: MutationRequests, config: DataFrame
) -> tuple[DataFrame, int]:
    """Packed charges, and in how many shards they are."""
    quotas, sizes, shards = quotas_of(config), mutations.sizes, requests.shards()

    def of(encode: Encode) -> Callable[[Batches], Batches]:
        return lambda batches: packed(batches, encode, SlotsOfClients(quotas), shards)

    rows = requests.mapped(OF_REQUESTS, of(request_charges), PACKED)
    of_topics = of(partial(mutation_charges, sizes=sizes))
    return rows.unionByName(mutations.rows.mapInArrow(of_topics, PACKED)), shards


def _replayed(
    rows: DataFrame, shards: int, made: Callable[[Batches], Batches], schema: str
) -> DataFrame:
    """What becomes of packed charges, all rows of a shard after each other, by time."""
    ordered = by_shard(rows, shards).sortWithinPartitions(*IN_ORDER)
    # Of a method Spark counts ``self`` too.
    return ordered.mapInArrow(lambda batches: made(batches), schema)  # noqa: PLW0108  see above


def _places(requests: Requests) -> list[int]:
    return sorted(place_of(*each) for each in requests.days_and_brokers())
