# aiokafka ships no type information, so its base classes are Any to mypy.
# mypy: allow-subclassing-any
"""What every message of ours is made of, and the classes that aiokafka needs for it.

Messages are declared with aiokafka's own types, field by field as in Kafka's message definitions.
All versions here are flexible (KIP-482): tags end the message and each entry of its arrays. We send
none, and skip those that we are sent. A version that is not declared is never used.

Example: ``message("DescribeAcls", 29, 2, request=(...), response=(...))`` makes the classes
DescribeAclsRequestV2 and DescribeAclsResponseV2.
"""

from collections.abc import Sequence
from io import BytesIO
from typing import Any, Final

from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int8,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)

Fields = tuple[tuple[str, Any], ...]
"""Names and types, in the order of the wire."""

STRING: Final = CompactString("utf-8")
TAGS: Final = ("tags", TaggedFields)
THROTTLE_TIME: Final = ("throttle_time_ms", Int32)
ERROR: Final[Fields] = (("error_code", Int16), ("error_message", STRING))
BROKER: Final[Fields] = (("broker_id", Int32), ("host", STRING), ("port", Int32), ("rack", STRING))
RESOURCE: Final[Fields] = (("resource_type", Int8), ("resource_name", STRING))
CONFIG: Final[Fields] = (
    ("name", STRING),
    ("value", STRING),
    ("read_only", Boolean),
    ("config_source", Int8),
    ("is_sensitive", Boolean),
)

NO_ID: Final = bytes(16)
"""The topic id of a topic that is named."""


class Uuid(AbstractType):
    """A topic's id, 16 bytes as they are."""

    @classmethod
    def encode(cls, value: bytes) -> bytes:
        """The bytes."""
        return value

    @classmethod
    def decode(cls, data: BytesIO) -> bytes:
        """The next 16 bytes.

        Raises:
            ValueError: there are fewer.
        """
        value = data.read(len(NO_ID))
        if len(value) != len(NO_ID):
            raise ValueError("Buffer underrun decoding a UUID")
        return value


def array(name: str, *fields: tuple[str, Any]) -> tuple[str, Any]:
    """A field that is an array of entries, each with its tags."""
    return name, CompactArray(*fields, TAGS)


def message(
    name: str, key: int, version: int, *, request: Fields, response: Fields, tagged: bool = True
) -> tuple[type[RequestStruct], type[Response]]:
    """The classes of one version of a request and of its answer.

    Args:
        name: Kafka's name of it.
        key: Kafka's number of it.
        version: the version.
        request: the request's fields, without the tags.
        response: the answer's fields, without the tags.
        tagged: whether the answer's tags are read; not when its last field takes all that is left.
    """
    of_both = {"API_KEY": key, "API_VERSION": version, "__module__": __name__}
    response_type = type(
        f"{name}ResponseV{version}",
        (Response,),
        {**of_both, "SCHEMA": Schema(*response, *((TAGS,) if tagged else ()))},
    )
    request_type = type(
        f"{name}RequestV{version}",
        (RequestStruct,),
        {
            **of_both,
            "FLEXIBLE_VERSION": True,
            "RESPONSE_TYPE": response_type,
            "SCHEMA": Schema(*request, TAGS),
        },
    )
    return request_type, response_type


class AdminRequest(Request[RequestStruct]):
    """A request that a connection may send, in the newest version that both sides know.

    Attributes:
        API_KEY: Kafka's number of it.
        NEEDED: the oldest version that will do, and since when Kafka has it, for a person.
        values: of the request's fields in the newest version, without the tags; an older version
            lacks the last ones.
    """

    API_KEY: int = -1  # aiokafka requires one of this class, too.
    NEEDED: str
    values: Sequence[object]

    def __init_subclass__(cls, versions: tuple[type[RequestStruct], ...]) -> None:
        """``versions`` are the classes of the request, in ascending order."""
        super().__init_subclass__()
        cls.API_KEY = versions[0].API_KEY
        cls._CLASSES = versions

    def build(self, request_struct_class: type[RequestStruct]) -> RequestStruct:
        """The request in one of its versions."""
        fields = len(request_struct_class.SCHEMA) - 1
        return request_struct_class(*self.values[:fields], {})
