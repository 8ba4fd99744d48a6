"""The groups of clients that a quota can't be set for, because it would apply to others too.

A quota is measured on the clients of its group. In Kafka's order of levels, it may also apply to
clients of another group, and these would be throttled by a quota that their usage is not part of.
Clients choose some of the names, so a name may also be read as another entity.

Example: without quotas, ANONYMOUS's etl has the group "client-id=etl", and an anonymous client
without a client-id has "user=ANONYMOUS". A quota for the user ANONYMOUS precedes that of etl. It
would throttle etl to the few bytes of the other client.
"""

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from usage_pipeline.recommend.terms import is_clear
from usage_pipeline.replay.entities import Quotas, quotas_of
from usage_pipeline.runtime.by_workers import Batches
from usage_pipeline.tables.arrow import schema_of
from usage_pipeline.usage.usage_reader import UsageRows

_CLIENT: Final = ("quota_type", "user", "client_id")
_UNFIT: Final = "quota_type string, entity string, applies_to string, is_unclear boolean"
_SCHEMA: Final = schema_of(_UNFIT)
_OTHERS: Final = "clients with a client-id"
_MOST_CLIENTS: Final = 1 << 18
"""How many clients a worker remembers, as when it packs usage."""

_Row = tuple[str, str, str | None, bool]


def unfit(usage: UsageRows, config: DataFrame) -> DataFrame:
    """Return the groups that a quota would not be right for.

    Args:
        usage: rows of GOLD_USAGE_1S.
        config: rows of SILVER_QUOTA_CONFIG; the latest quotas count.

    Returns:
        For each ``quota_type`` and ``entity``: ``applies_to``, another group whose clients the
        quota would apply to, null for none; and ``is_unclear``, whether the name can be read as
        another entity. Some of the entities are no tenants.
    """
    rows = usage.mapped(_CLIENT, partial(_rows, quotas=quotas_of(config)), _UNFIT)
    return rows.groupBy("quota_type", "entity").agg(
        sf.min("applies_to").alias("applies_to"), sf.max("is_unclear").alias("is_unclear")
    )


def _rows(batches: Batches, quotas: Mapping[str, Quotas]) -> Batches:
    """Yield rows of _UNFIT; the same ones may occur several times."""

    # Most clients of a batch are in the next one too.
    @lru_cache(_MOST_CLIENTS)
    def of_client(quota_type: str, user: str, client_id: str) -> list[_Row]:
        return _of_client(quotas[quota_type], quota_type, user, client_id)

    for batch in batches:
        table = pa.Table.from_batches([batch])
        clients = table.group_by(_CLIENT, use_threads=False).aggregate([])
        names = [clients.column(name).to_pylist() for name in _CLIENT]
        rows = {row for client in zip(*names, strict=True) for row in of_client(*client)}
        columns = [list(each) for each in zip(*rows, strict=True)] or [[] for _ in _SCHEMA]
        yield from pa.table(columns, schema=_SCHEMA).to_batches()


def _of_client(quotas: Quotas, quota_type: str, user: str, client_id: str) -> list[_Row]:
    *_, last = quotas.of_client(user, client_id)
    group = last.shared_by
    others: list[_Row] = [
        (quota_type, other, group, False) for other in quotas.others_that_apply(user, client_id)
    ]
    if not client_id:
        # The user's other clients may be new, so they need not be in the logs.
        others += [
            (quota_type, other, _OTHERS, False) for other in quotas.others_that_apply(user, None)
        ]
    if group and not is_clear(group, user, client_id):
        others.append((quota_type, group, None, True))
    return others
