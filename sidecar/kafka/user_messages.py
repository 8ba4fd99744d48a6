"""The messages for SCRAM users and ACLs.

They are DescribeUserScramCredentials (key 50, KIP-554) v0, and DescribeAcls (key 29) v2 and v3, its
flexible versions. v3 adds resources of type user (KIP-373).

Example: ``DescribeUserScramCredentials()`` requests all users: a null array, 00, and no tags.
"""

from aiokafka.protocol.types import Int8, Int32

from sidecar.kafka.client.messages import (
    ERROR,
    RESOURCE,
    STRING,
    THROTTLE_TIME,
    AdminRequest,
    array,
    message,
)

DESCRIBE_USER_SCRAM_CREDENTIALS_KEY = 50
DESCRIBE_ACLS_KEY = 29

ANY = 1
"""The value "any" of resource types, patterns, operations and permissions."""


# The answer contains users and their mechanisms, but no secret.
DescribeUserScramCredentialsRequestV0, DescribeUserScramCredentialsResponseV0 = message(
    "DescribeUserScramCredentials",
    DESCRIBE_USER_SCRAM_CREDENTIALS_KEY,
    0,
    request=(array("users", ("name", STRING)),),
    response=(
        THROTTLE_TIME,
        *ERROR,
        array(
            "results",
            ("user", STRING),
            *ERROR,
            array("credential_infos", ("mechanism", Int8), ("iterations", Int32)),
        ),
    ),
)


class DescribeUserScramCredentials(AdminRequest, versions=(DescribeUserScramCredentialsRequestV0,)):
    """Requests every user with a SCRAM credential, or one user by name."""

    NEEDED = "v0 (Kafka 2.7; with KRaft 3.5)"

    def __init__(self, user: str | None = None) -> None:
        self.values = (None if user is None else [(user, {})],)


(
    (DescribeAclsRequestV2, DescribeAclsResponseV2),
    (DescribeAclsRequestV3, DescribeAclsResponseV3),
) = (
    message(
        "DescribeAcls",
        DESCRIBE_ACLS_KEY,
        version,
        request=(
            ("resource_type_filter", Int8),
            ("resource_name_filter", STRING),
            ("pattern_type_filter", Int8),
            ("principal_filter", STRING),
            ("host_filter", STRING),
            ("operation", Int8),
            ("permission_type", Int8),
        ),
        response=(
            THROTTLE_TIME,
            *ERROR,
            array(
                "resources",
                *RESOURCE,
                ("pattern_type", Int8),
                array(
                    "acls",
                    ("principal", STRING),
                    ("host", STRING),
                    ("operation", Int8),
                    ("permission_type", Int8),
                ),
            ),
        ),
    )
    for version in (2, 3)
)


class DescribeAcls(AdminRequest, versions=(DescribeAclsRequestV2, DescribeAclsRequestV3)):
    """Requests every ACL: null filters match all."""

    NEEDED = "v2 (Kafka 2.5)"
    values = (ANY, None, ANY, None, None, ANY, ANY)
