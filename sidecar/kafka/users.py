"""The users of a cluster: those with a SCRAM credential, and those that an ACL allows something.

Both requests need DESCRIBE on the cluster. If everyone logs in with SCRAM, the SCRAM users are the
full list. ACLs contain users of every mechanism, but not super users.

Example: alice has a SCRAM credential, and an ACL allows "User:alice" to read topics. "alice" is in
both results. "User:*" and "Group:ops" are in neither.
"""

from aiokafka.protocol.api import Response

from sidecar.kafka.client.one_call import query_any, refused
from sidecar.kafka.user_messages import DescribeAcls, DescribeUserScramCredentials
from sidecar.settings import HostPort, KafkaAdmin
from sidecar.volumes import Failure

ALLOW = 3
RESOURCE_NOT_FOUND = 91
EVERYONE = "*"

_USER = "User:"
_ANYBODY = "anybody"
"""The name of a user that need not exist."""


async def scram_users(admin: KafkaAdmin, timeout_s: float = 10.0) -> frozenset[str] | Failure:
    """The users with a SCRAM credential of any mechanism; errors as in ``query_any``.

    ``timeout_s`` is the time for each of the two requests, seconds.
    """
    # Without the permission, a request for all users makes brokers (such as 4.3.1) fail with a
    # NullPointerException and never answer. A request for one user is refused with an error.
    subject = "the SCRAM users"
    one_user, all_users = DescribeUserScramCredentials(_ANYBODY), DescribeUserScramCredentials()
    permitted = await query_any(admin, one_user, read_scram_users, timeout_s, subject)
    if isinstance(permitted, Failure):
        return permitted
    return await query_any(admin, all_users, read_scram_users, timeout_s, subject)


async def acl_users(admin: KafkaAdmin, timeout_s: float = 10.0) -> frozenset[str] | Failure:
    """The users that an ACL allows something; ``timeout_s`` and errors as in ``query_any``."""
    return await query_any(admin, DescribeAcls(), read_acl_users, timeout_s, "the ACLs")


def read_scram_users(response: Response, endpoint: HostPort) -> frozenset[str] | Failure:
    """The users in a DescribeUserScramCredentials v0 answer from an address."""
    name = "DescribeUserScramCredentials"
    if code := response.error_code:
        return refused(endpoint, name, code, response.error_message, "Describe")
    users: set[str] = set()
    for user, error_code, error_message, credentials, *_ in response.results or ():
        # The user was deleted while the broker made the list.
        if error_code == RESOURCE_NOT_FOUND:
            continue
        if error_code:
            return refused(endpoint, name, error_code, error_message, "Describe")
        if credentials:
            users.add(user)
    return frozenset(users)


def read_acl_users(response: Response, endpoint: HostPort) -> frozenset[str] | Failure:
    """The users in a DescribeAcls answer, v2 or v3, from an address."""
    if code := response.error_code:
        return refused(endpoint, "DescribeAcls", code, response.error_message, "Describe")
    return frozenset(
        principal.removeprefix(_USER)
        for _type, _name, _pattern, acls, *_ in response.resources or ()
        for principal, _host, _operation, permission, *_ in acls or ()
        if permission == ALLOW and principal.startswith(_USER) and principal != _USER + EVERYONE
    )
