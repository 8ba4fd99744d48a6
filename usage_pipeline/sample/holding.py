"""Makes clients wait for their quotas, by Kafka's own arithmetic.

Each broker charges its clients' requests to their quotas in the order of time. A client that must
wait sends no requests in that time, so these requests are not in the log. The broker answers a
throttled FETCH with an empty response and takes its charge back.

Example: a client with 10 requests a second that must wait 2 s lacks the next 20 lines.

Source: ``usage_pipeline.replay.rate_quota``; KIP-219 for the muted connection.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sidecar.quotas.entities import QuotaKey
from sidecar.quotas.rate import QuotaWindow
from usage_pipeline.replay.rate_quota import RateQuota
from usage_pipeline.sample.flows import Floats
from usage_pipeline.sample.limits import Limit, charged_key
from usage_pipeline.sample.lines import Batch, Times, local_ms
from usage_pipeline.sample.shapes import Drawn, Ints
from usage_pipeline.sample.sizes import charged_bytes

_WINDOW = QuotaWindow()
_NS_PER_MS = 1e6
_PERCENT_PER_NS = 1e-7


class Holding:
    """The state of one broker's quotas."""

    __slots__ = ("_muted_until_ms", "_quotas", "_raise_ms", "_raised")

    def __init__(self, limits: Sequence[Limit], raise_ms: int, raised: Limit) -> None:
        """Start without any charges."""
        self._quotas = {
            (limit.user, limit.key): RateQuota(
                limit.value, _WINDOW, _WINDOW.window_ms if limit.key is QuotaKey.REQUEST else None
            )
            for limit in limits
        }
        self._raise_ms = raise_ms
        self._raised = raised
        self._muted_until_ms: dict[str, int] = {}

    def hold(self, batches: Sequence[Batch], times: Times) -> list[Batch]:
        """Return the requests in the log, without those that a waiting client did not send."""
        groups: dict[tuple[str, QuotaKey], list[int]] = {}
        for at, batch in enumerate(batches):
            key = charged_key(batch.flow)
            if key is not None:
                groups.setdefault((batch.flow.user, key), []).append(at)
        sent = list(batches)
        for (user, key), members in groups.items():
            mine = [batches[at] for at in members]
            for at, batch in zip(members, self._group(user, key, mine, times), strict=True):
                sent[at] = batch
        return sent

    def _group(
        self, user: str, key: QuotaKey, batches: Sequence[Batch], times: Times
    ) -> list[Batch]:
        quota = self._quotas[user, key]
        at_ms = np.concatenate([batch.at_ms for batch in batches])
        log_ms = np.concatenate([batch.log_ms for batch in batches])
        client = np.repeat(np.arange(len(batches)), [len(batch.at_ms) for batch in batches])
        amount = np.concatenate([_amounts(batch, key, times) for batch in batches])
        throttle_ms = np.full(len(at_ms), -1, np.int64)
        order = np.lexsort((log_ms, at_ms))
        muted = [self._muted_until_ms.get(batch.flow.client_id, 0) for batch in batches]
        raises = (user, key) == (self._raised.user, self._raised.key)
        columns = (column[order].tolist() for column in (at_ms, client, amount))
        for at, now_ms, sender, value in zip(order.tolist(), *columns, strict=True):
            if now_ms < muted[sender]:
                continue
            if raises and now_ms >= self._raise_ms:
                quota.set_rate(self._raised.value)
                raises = False
            wait_ms = quota.record(value, now_ms)
            throttle_ms[at] = wait_ms
            if wait_ms:
                muted[sender] = now_ms + wait_ms
                if key is QuotaKey.FETCH:
                    quota.record_unchecked(-value, now_ms)
        for batch, until_ms in zip(batches, muted, strict=True):
            self._muted_until_ms[batch.flow.client_id] = until_ms
        edges = np.cumsum([len(batch.at_ms) for batch in batches])[:-1]
        waits_by_batch = np.split(throttle_ms, edges)
        return [_sent(batch, waits) for batch, waits in zip(batches, waits_by_batch, strict=True)]


def _amounts(batch: Batch, key: QuotaKey, times: Times) -> Floats:
    if key is QuotaKey.REQUEST:
        percent: Floats = np.round(local_ms(batch, times) * _NS_PER_MS) * _PERCENT_PER_NS
        return percent
    return charged_bytes(batch)


def _sent(batch: Batch, throttle_ms: Ints) -> Batch:
    kept = throttle_ms >= 0
    if kept.all():
        return replace(batch, throttle_ms=throttle_ms)
    chosen = np.flatnonzero(kept).tolist()
    drawn = Drawn(
        tuple([column[at] for at in chosen] for column in batch.drawn.request),
        tuple([column[at] for at in chosen] for column in batch.drawn.response),
        batch.drawn.records[kept],
    )
    return Batch(
        batch.flow,
        batch.at_ms[kept],
        batch.log_ms[kept],
        drawn,
        batch.times[:, kept],
        throttle_ms[kept],
    )
