"""kio, an independent codec made from Kafka's own definitions, beside ours."""

import dataclasses
import io
from collections.abc import Mapping
from datetime import timedelta
from enum import Enum
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

from kio.schema.request_header.v2.header import RequestHeader
from kio.serial import entity_writer
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32

from tests.support.fake_broker import encode, kio_type


def kio_values(entity: Any) -> Any:
    """The fields of an entity of kio's, in order, as plain values."""
    if dataclasses.is_dataclass(entity):
        return [kio_values(getattr(entity, each.name)) for each in dataclasses.fields(entity)]
    if isinstance(entity, tuple):
        return [kio_values(each) for each in entity]
    if isinstance(entity, timedelta):
        return round(entity / timedelta(milliseconds=1))
    if isinstance(entity, UUID):
        return entity.bytes
    return entity.value if isinstance(entity, Enum) else entity


def our_request(request: Any, version: int) -> bytes:
    """The bytes that a connection sends, after the frame's length."""
    struct = request.prepare({request.API_KEY: (0, version)})
    header = struct.build_request_header(correlation_id=7, client_id="throttle-sidecar")
    sent: bytes = header.encode() + struct.encode()
    return sent


def kio_entity(entity: Any, fields: Mapping[str, Any]) -> Any:
    """An entity of kio's from plain values: an array of entities is a list of their fields."""
    return entity(**{name: _kio_value(entity, name, value) for name, value in fields.items()})


def _kio_value(entity: Any, name: str, value: Any) -> Any:
    if not isinstance(value, list):
        return value
    of_type = _hints(entity)[name]
    # The type is tuple[Entity, ...], or that or None.
    array = next((each for each in get_args(of_type) if get_origin(each) is tuple), of_type)
    return tuple(kio_entity(get_args(array)[0], each) for each in value)


_hints = cache(get_type_hints)


def kio_request(key: int, version: int, **fields: object) -> bytes:
    """The same by kio, as ``kio_entity`` takes the fields."""
    buffer = io.BytesIO()
    header = RequestHeader(
        request_api_key=i16(key),
        request_api_version=i16(version),
        correlation_id=i32(7),
        client_id="throttle-sidecar",
    )
    entity_writer(RequestHeader)(buffer, header)
    request = kio_entity(kio_type(key, version, EntityType.request), fields)
    return buffer.getvalue() + encode(request)


def kio_answer(key: int, version: int, **fields: object) -> bytes:
    """An answer by kio, which throttles nobody."""
    response = kio_type(key, version, EntityType.response)
    return encode(kio_entity(response, {"throttle_time": timedelta(0), **fields}))
