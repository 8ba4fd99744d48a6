"""Names and numbers of the requests that change topics or quotas.

A broker that does not know a name logs the number.

Example: ``CREATE_TOPICS`` is "CREATE_TOPICS" and "19".
"""

from typing import Final

CREATE_TOPICS: Final = ("CREATE_TOPICS", "19")
DELETE_TOPICS: Final = ("DELETE_TOPICS", "20")
CREATE_PARTITIONS: Final = ("CREATE_PARTITIONS", "37")
TOPIC_APIS: Final = (*CREATE_TOPICS, *DELETE_TOPICS, *CREATE_PARTITIONS)
"""Requests that change topics."""
QUOTA_APIS: Final = ("ALTER_CLIENT_QUOTAS", "49")
"""Requests that change quotas."""
