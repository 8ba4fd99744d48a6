# aiokafka ships no type information, so its base classes are Any to mypy.
# mypy: allow-subclassing-any
"""Declares Kafka messages: common fields, and the classes that aiokafka needs for a message.

Messages are declared with aiokafka's types, field by field as in Kafka's message definitions. All
declared versions are flexible (KIP-482): the message and each entry of its arrays end with tags.
The sidecar sends no tags and ignores those in answers. It never uses a version that is not
declared.

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
"""Names and types of fields, in the order of the wire format."""

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
"""The id of a topic that is given by its name."""


class Uuid(AbstractType):
    """A topic's id as its 16 bytes."""

    @classmethod
    def encode(cls, value: bytes) -> bytes:
        """Returns the bytes."""
        return value

    @classmethod
    def decode(cls, data: BytesIO) -> bytes:
        """Reads the next 16 bytes.

        Raises:
            ValueError: fewer bytes are left.
        """
        value = data.read(len(NO_ID))
        if len(value) != len(NO_ID):
            raise ValueError("Buffer underrun decoding a UUID")
        return value


def array(name: str, *fields: tuple[str, Any]) -> tuple[str, Any]:
    """A field that is an array; each entry ends with tags."""
    return name, CompactArray(*fields, TAGS)


def message(
    name: str, key: int, version: int, *, request: Fields, response: Fields, tagged: bool = True
) -> tuple[type[RequestStruct], type[Response]]:
    """Makes the classes of one version of a request and of its answer.

    Args:
        name: Kafka's name of the request.
        key: Kafka's number of the request.
        version: the version.
        request: the request's fields, without the tags.
        response: the answer's fields, without the tags.
        tagged: whether to read the answer's tags; False if its last field takes all other bytes.
    """
    common = {"API_KEY": key, "API_VERSION": version, "__module__": __name__}
    response_type = type(
        f"{name}ResponseV{version}",
        (Response,),
        {**common, "SCHEMA": Schema(*response, *((TAGS,) if tagged else ()))},
    )
    request_type = type(
        f"{name}RequestV{version}",
        (RequestStruct,),
        {
            **common,
            "FLEXIBLE_VERSION": True,
            "RESPONSE_TYPE": response_type,
            "SCHEMA": Schema(*request, TAGS),
        },
    )
    return request_type, response_type


class AdminRequest(Request[RequestStruct]):
    """A request, sent in the newest version that both sides support.

    Attributes:
        API_KEY: Kafka's number of the request.
        NAME: Kafka's name of the request.
        NEEDED: the oldest supported version, and the Kafka that introduced it, for a person.
        values: the values of the fields in the newest version, without the tags. Older versions
            lack the last fields.
    """

    API_KEY: int = -1  # aiokafka requires a value for this base class, too.
    NAME: str
    NEEDED: str
    values: Sequence[object]

    def __init_subclass__(cls, versions: tuple[type[RequestStruct], ...]) -> None:
        """``versions`` are the request's classes, in ascending order of versions."""
        super().__init_subclass__()
        cls.API_KEY = versions[0].API_KEY
        cls.NAME = versions[0].__name__.rpartition("Request")[0]
        cls._CLASSES = versions

    def build(self, request_struct_class: type[RequestStruct]) -> RequestStruct:
        """Builds the request in one of its versions."""
        fields = len(request_struct_class.SCHEMA) - 1
        return request_struct_class(*self.values[:fields], {})
