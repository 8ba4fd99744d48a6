"""What a line's request was charged with: the rules of ``pipeline.kernels.charging``, line by line.

Those of PRODUCE, of request time and of mutations, as a ``Predictor`` takes them; the pipeline is
compared with it, and so are real brokers' throttle times.

Example: a PRODUCE of 10,035 bytes that took 0.258 ms: 10,035 bytes and 0.0258 % of a second.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sidecar.quotas.entities import QuotaKey
from sidecar.requestlog.exempt import PRODUCE, is_exempt
from sidecar.requestlog.line import Line
from sidecar.requestlog.mutation_counts import ABOUT_TOPICS, TopicSizes
from sidecar.requestlog.produce_size import Produce, produce_bytes
from tests.support.prediction import Charge
from usage_pipeline.kernels.charge_times import charged_at_ms, is_strict
from usage_pipeline.kernels.line_detail import detail
from usage_pipeline.replay.request_percentage import percent

_NS_PER_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Charged:
    """What one request was charged with.

    Attributes:
        charges: to feed to a ``Predictor`` of the node whose line it is.
        unknown: how many more there were, whose amount the line doesn't have.
    """

    charges: tuple[Charge, ...]
    unknown: int = 0


def charges(line: Line, sizes: TopicSizes) -> Charged:
    """What a line's request was charged with.

    Args:
        line: of a broker or controller.
        sizes: of topics, from the lines before it; this line's are added.
    """
    amounts = list(_amounts(line, sizes))
    known = tuple(
        _mutation(line, amount)
        if key is QuotaKey.CONTROLLER_MUTATION
        else _charge(line, key, amount)
        for key, amount in amounts
        if amount is not None
    )
    return Charged(known, len(amounts) - len(known))


def _charge(line: Line, key: QuotaKey, amount: float) -> Charge:
    return Charge(charged_at_ms(line), key, line.user, line.client_id, amount)


def _mutation(line: Line, partitions: float) -> Charge:
    waited_ms = round(line.body.remote_time_ms)
    return Charge(
        charged_at_ms(line) - waited_ms,
        QuotaKey.CONTROLLER_MUTATION,
        line.user,
        line.client_id,
        partitions,
        strict=is_strict(line.api_key, line.api_version),
        waited_ms=waited_ms,
    )


def _amounts(line: Line, sizes: TopicSizes) -> Iterator[tuple[QuotaKey, float | None]]:
    if line.api_key == PRODUCE:
        parts = detail(line)
        yield (
            QuotaKey.PRODUCE,
            produce_bytes(parts, line.api_version, line.client_id)
            if isinstance(parts, Produce)
            else None,
        )
    if line.is_forwarded and line.api_key in ABOUT_TOPICS:
        mutations = sizes.mutations(line)
        if mutations is None:
            yield QuotaKey.CONTROLLER_MUTATION, None
        for mutation in mutations or ():
            yield QuotaKey.CONTROLLER_MUTATION, mutation.partitions
    if not is_exempt(line):
        yield QuotaKey.REQUEST, percent(round(line.local_ms * _NS_PER_MS))
