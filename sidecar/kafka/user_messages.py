# aiokafka ships no type information, so its base classes are Any to mypy.
# mypy: allow-subclassing-any
"""Who a cluster knows, in Kafka's messages: SCRAM users and ACLs.

DescribeUserScramCredentials (key 50, KIP-554) v0; DescribeAcls (key 29) v2 and v3, the flexible
ones, of which v3 knows resources of type user (KIP-373).

Example: ``DescribeUserScramCredentials()`` asks for all users: a null array, 00, and no tags.
"""

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    CompactArray,
    CompactString,
    Int8,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)

DESCRIBE_USER_SCRAM_CREDENTIALS_KEY = 50
DESCRIBE_ACLS_KEY = 29

ANY = 1
"""Of resource types, patterns, operations and permissions alike: any."""

_STRING = CompactString("utf-8")
_TAGS = ("tags", TaggedFields)


class DescribeUserScramCredentialsResponseV0(Response):
    """Users and the mechanisms they have; no secret is ever told."""

    API_KEY = DESCRIBE_USER_SCRAM_CREDENTIALS_KEY
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("error_message", _STRING),
        (
            "results",
            CompactArray(
                ("user", _STRING),
                ("error_code", Int16),
                ("error_message", _STRING),
                (
                    "credential_infos",
                    CompactArray(("mechanism", Int8), ("iterations", Int32), _TAGS),
                ),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class DescribeUserScramCredentialsRequestV0(RequestStruct):
    """Asks for the users named, or for all."""

    API_KEY = DESCRIBE_USER_SCRAM_CREDENTIALS_KEY
    API_VERSION = 0
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = DescribeUserScramCredentialsResponseV0
    SCHEMA = Schema(("users", CompactArray(("name", _STRING), _TAGS)), _TAGS)


class DescribeUserScramCredentials(Request[DescribeUserScramCredentialsRequestV0]):
    """Every user with a SCRAM credential; with a name, that one."""

    API_KEY = DESCRIBE_USER_SCRAM_CREDENTIALS_KEY
    NEEDED = "v0 (Kafka 2.7; with KRaft 3.5)"

    def __init__(self, user: str | None = None) -> None:
        self._users: list[tuple[object, ...]] | None = None if user is None else [(user, {})]

    def build(
        self, request_struct_class: type[DescribeUserScramCredentialsRequestV0]
    ) -> DescribeUserScramCredentialsRequestV0:
        """The request."""
        return request_struct_class(self._users, {})


class DescribeAclsResponseV2(Response):
    """Resources and the ACLs of each."""

    API_KEY = DESCRIBE_ACLS_KEY
    API_VERSION = 2
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("error_message", _STRING),
        (
            "resources",
            CompactArray(
                ("resource_type", Int8),
                ("resource_name", _STRING),
                ("pattern_type", Int8),
                (
                    "acls",
                    CompactArray(
                        ("principal", _STRING),
                        ("host", _STRING),
                        ("operation", Int8),
                        ("permission_type", Int8),
                        _TAGS,
                    ),
                ),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class DescribeAclsResponseV3(Response):
    """The same as v2."""

    API_KEY = DESCRIBE_ACLS_KEY
    API_VERSION = 3
    SCHEMA = DescribeAclsResponseV2.SCHEMA


class DescribeAclsRequestV2(RequestStruct):
    """Asks for the ACLs that match every filter; a null one matches all."""

    API_KEY = DESCRIBE_ACLS_KEY
    API_VERSION = 2
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = DescribeAclsResponseV2
    SCHEMA = Schema(
        ("resource_type_filter", Int8),
        ("resource_name_filter", _STRING),
        ("pattern_type_filter", Int8),
        ("principal_filter", _STRING),
        ("host_filter", _STRING),
        ("operation", Int8),
        ("permission_type", Int8),
        _TAGS,
    )


class DescribeAclsRequestV3(RequestStruct):
    """The same as v2."""

    API_KEY = DESCRIBE_ACLS_KEY
    API_VERSION = 3
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = DescribeAclsResponseV3
    SCHEMA = DescribeAclsRequestV2.SCHEMA


_DescribeAclsStruct = DescribeAclsRequestV2 | DescribeAclsRequestV3


class DescribeAcls(Request[_DescribeAclsStruct]):
    """Every ACL."""

    API_KEY = DESCRIBE_ACLS_KEY
    NEEDED = "v2 (Kafka 2.5)"

    def build(self, request_struct_class: type[_DescribeAclsStruct]) -> _DescribeAclsStruct:
        """The request in the newest version that both sides know."""
        return request_struct_class(ANY, None, ANY, None, None, ANY, ANY, {})
