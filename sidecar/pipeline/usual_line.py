"""A usual line, decoded in one go, and what it tells beyond what every line tells.

``request`` and ``response`` are decoded together with the rest, by the fields that PRODUCE, FETCH
and INIT_PRODUCER_ID have; those of other APIs are skipped. A line that has them otherwise, or whose
API changes topics or quotas, is unusual.

Example: a PRODUCE of 10,000 bytes of batches, 10,035 on the wire, tells acks, 10,000 and 10,035;
the next one of its client with as many bits in the length of its batches needs one addition.

Source: as ``rows``, which gives the same for each line.
"""

from functools import lru_cache
from typing import Annotated, Final

import msgspec

from sidecar.requestlog.detail import ALTER_CLIENT_QUOTAS, INIT_PRODUCER_ID, PRODUCE
from sidecar.requestlog.exempt import is_exempt_by_api
from sidecar.requestlog.fetch import FETCH, fetch_bytes
from sidecar.requestlog.line import Header
from sidecar.requestlog.mutations import ABOUT_TOPICS
from sidecar.requestlog.size import produce_bytes
from sidecar.requestlog.wire import Fetch, Fetched, Produce, ProducePartition, ProduceTopic

_LEFT: Final = ABOUT_TOPICS | {ALTER_CLIENT_QUOTAS}


class Request(Fetch, frozen=True):
    """Of whatever API: what is read of PRODUCE and FETCH."""

    acks: int | None = None
    topic_data: tuple[ProduceTopic, ...] | None = None
    transactional_id: str | None = None


class Answer(Fetched, frozen=True):
    """Of whatever API: what is read of FETCH and INIT_PRODUCER_ID, and the throttle time."""

    throttle_time_ms: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    error_code: int | None = None


_Ms = Annotated[float, msgspec.Meta(ge=0)]


class UsualLine(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """As ``requestlog.line.Body``, decoded further."""

    request_header: Header
    principal: str
    local_time_ms: _Ms
    is_forwarded: bool = False
    request: Request | str | None = ""
    response: Answer | str | None = ""
    connection: str = ""
    listener: str = ""
    security_protocol: str = ""
    total_time_ms: _Ms = 0.0
    request_queue_time_ms: _Ms = 0.0
    remote_time_ms: _Ms = 0.0
    response_queue_time_ms: _Ms = 0.0
    send_time_ms: _Ms = 0.0
    throttle_time_ms: Annotated[int, msgspec.Meta(ge=0)] = 0

    @property
    def throttled_ms(self) -> int:
        """The greater of the line's and the answer's throttle time."""
        own, answer = self.throttle_time_ms, self.response
        return max(own, answer.throttle_time_ms) if isinstance(answer, Answer) else own


decode: Final = msgspec.json.Decoder(UsualLine).decode


Told = tuple[bool, bool, int | None, int | None, int | None, bool | None, int | None]
"""is_follower, exempt, acks, records_bytes, quota_bytes, bytes_known, producer_id."""


class UnusualError(Exception):
    """The line is for ``rows``."""


def told_by(line: UsualLine) -> Told:
    """What a line tells.

    Raises:
        UnusualError: it is for ``rows``.
    """
    key = line.request_header.request_api_key
    if key == PRODUCE:
        return _produce(line)
    if key == FETCH:
        return _fetch(line)
    if key in _LEFT:
        raise UnusualError
    producer_id = None
    if key == INIT_PRODUCER_ID and isinstance(line.response, Answer):
        answer = line.response
        if answer.error_code == 0 and answer.producer_id >= 0:
            producer_id = answer.producer_id
    exempt = is_exempt_by_api(key, is_forwarded=line.is_forwarded)
    return False, exempt, None, None, None, None, producer_id


def _produce(line: UsualLine) -> Told:
    request, header = line.request, line.request_header
    if not isinstance(request, Request):
        raise UnusualError
    topics, acks = request.topic_data, request.acks
    if acks is None or topics is None:
        raise UnusualError
    version, client_id = header.request_api_version, header.client_id or ""
    if len(topics) != 1:
        produce = Produce(acks, topics, request.transactional_id)
        size = produce_bytes(produce, version, client_id)
        return False, acks == 0, acks, produce.records_bytes, size, size is not None, None
    sizes = [one.records_size_in_bytes for one in topics[0].partition_data]
    overhead = _overhead(
        version,
        client_id,
        request.transactional_id,
        topics[0].name,
        tuple([(size + 1).bit_length() for size in sizes]),
    )
    records = sum(sizes)
    if overhead is None:
        return False, acks == 0, acks, records, None, False, None
    return False, acks == 0, acks, records, records + overhead, True, None


@lru_cache(maxsize=1 << 15)
def _overhead(
    version: int, client_id: str, transactional_id: str | None, topic: str, bits: tuple[int, ...]
) -> int | None:
    """What a PRODUCE of one topic takes beside its records.

    That depends on how many bits tell the length of each partition's, and one more.
    """
    sizes = [((1 << some) >> 1) - 1 for some in bits]
    partitions = tuple(ProducePartition(0, size) for size in sizes)
    produce = Produce(1, (ProduceTopic(partitions, topic),), transactional_id)
    size = produce_bytes(produce, version, client_id)
    return None if size is None else size - sum(sizes)


def _fetch(line: UsualLine) -> Told:
    request, answer = line.request, line.response
    if not isinstance(request, Request):
        raise UnusualError
    is_follower = request.replica >= 0
    if not isinstance(answer, Answer) or (not answer.responses and line.throttled_ms > 0):
        known = None if is_follower else False
        return is_follower, is_follower, None, None, None, known, None
    records = answer.records_bytes
    if is_follower:
        return True, True, None, records, None, None, None
    size = fetch_bytes(answer, line.request_header.request_api_version)
    return False, False, None, records, size, size is not None, None
