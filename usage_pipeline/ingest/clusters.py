r"""Which cluster a file is of: by a folder of its path, or as the caller says.

A path names its cluster in a folder as Hive writes it, ``cluster_id=eu`` or ``cluster=eu``, or in
the group ``cluster`` of the caller's broker pattern. What nothing names is ``default``'s.

Example: ``/logs/cluster_id=eu/broker-3/kafka-request.log`` is of broker 3 of eu; with the pattern
``(?P<cluster>\w+)/kafka-(?P<broker>\d+)/`` so is ``/logs/eu/kafka-3/kafka-request.log``.
"""

import re
from collections.abc import Iterable
from typing import Final

from sidecar.errors import SidecarError

_FOLDER: Final = re.compile(r"(?:^|/)cluster(?:_id)?=(?P<cluster>[^/]+)(?=/)")
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")


class ClusterError(SidecarError):
    """It is not known, or not to be told apart, which cluster something is of."""


def cluster_name(text: str) -> str:
    """The name of a cluster, as the folders of tables have it.

    Raises:
        ClusterError: it can't be one.
    """
    if not _NAME.fullmatch(text) or text.strip(".") == "":
        raise ClusterError(
            f"{text!r} is no name of a cluster: it has up to 100 letters, digits, dots, dashes and"
            " underscores, as Kafka's own ids have"
        )
    return text


def cluster_of(path: str, patterns: Iterable[re.Pattern[str]] = ()) -> str | None:
    """The cluster that a path names: the last place that a pattern finds; None: it names none.

    Raises:
        ClusterError: what it names is no name of a cluster.
    """
    for pattern in (*patterns, _FOLDER):
        if "cluster" in pattern.groupindex:
            found = [match["cluster"] for match in pattern.finditer(path) if match["cluster"]]
            if found:
                return cluster_name(found[-1])
    return None
