"""Which users a cluster knows: those with a SCRAM credential, and those that ACLs allow something.

Reading either needs DESCRIBE on the cluster. SCRAM users are a full list where everyone logs in
with SCRAM; ACLs know users of every mechanism, except super users.

Example: alice may read topics under "User:alice" and has a SCRAM credential: "alice" is in both;
"User:*" is nobody in particular and "Group:ops" is no user: they are in neither.
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
"""A user who need not be there."""


async def scram_users(admin: KafkaAdmin, timeout_s: float = 10.0) -> frozenset[str] | Failure:
    """The users with a SCRAM credential of any mechanism; errors as of ``query_any``.

    ``timeout_s`` is for each of two requests, seconds.
    """
    # Without the permission a request for all users makes brokers (4.3.1, for one) fail with a
    # NullPointerException and never answer; a request for one user is refused.
    subject = "the SCRAM users"
    one, every = DescribeUserScramCredentials(_ANYBODY), DescribeUserScramCredentials()
    reported = await query_any(admin, one, read_scram_users, timeout_s, subject)
    if isinstance(reported, Failure):
        return reported
    return await query_any(admin, every, read_scram_users, timeout_s, subject)


async def acl_users(admin: KafkaAdmin, timeout_s: float = 10.0) -> frozenset[str] | Failure:
    """The users that some ACL allows something; ``timeout_s`` and errors as of ``query_any``."""
    return await query_any(admin, DescribeAcls(), read_acl_users, timeout_s, "the ACLs")


def read_scram_users(response: Response, endpoint: HostPort) -> frozenset[str] | Failure:
    """The users in a DescribeUserScramCredentials v0 answer of an address."""
    name = "DescribeUserScramCredentials"
    if code := response.error_code:
        return refused(endpoint, name, code, response.error_message, "Describe")
    users: set[str] = set()
    for user, error_code, error_message, credentials, *_ in response.results or ():
        # A user that was deleted while the list was made.
        if error_code == RESOURCE_NOT_FOUND:
            continue
        if error_code:
            return refused(endpoint, name, error_code, error_message, "Describe")
        if credentials:
            users.add(user)
    return frozenset(users)


def read_acl_users(response: Response, endpoint: HostPort) -> frozenset[str] | Failure:
    """The users in a DescribeAcls answer, v2 or v3, of an address."""
    if code := response.error_code:
        return refused(endpoint, "DescribeAcls", code, response.error_message, "Describe")
    return frozenset(
        principal.removeprefix(_USER)
        for _type, _name, _pattern, acls, *_ in response.resources or ()
        for principal, _host, _operation, permission, *_ in acls or ()
        if permission == ALLOW and principal.startswith(_USER) and principal != _USER + EVERYONE
    )
