r"""Finds the cluster of a file, from a folder of its path or from the caller's pattern.

A path names its cluster with a folder in Hive's style, ``cluster_id=eu`` or ``cluster=eu``, or by
the group ``cluster`` of the caller's broker pattern. Otherwise the cluster is ``default``.

Example: ``/logs/cluster_id=eu/broker-3/kafka-request.log`` belongs to broker 3 of eu. With the
pattern ``(?P<cluster>\w+)/kafka-(?P<broker>\d+)/``, ``/logs/eu/kafka-3/kafka-request.log`` does
too.
"""

import re
from collections.abc import Iterable
from typing import Final

from sidecar.errors import SidecarError

_FOLDER: Final = re.compile(r"(?:^|/)cluster(?:_id)?=(?P<cluster>[^/]+)(?=/)")
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")


class ClusterError(SidecarError):
    """The cluster of a file is unknown or ambiguous."""


def cluster_name(text: str) -> str:
    """Return a cluster's name as it is in the tables' folders.

    Raises:
        ClusterError: the text can't be a cluster's name.
    """
    if not _NAME.fullmatch(text) or text.strip(".") == "":
        raise ClusterError(
            f"{text!r} can't be the name of a cluster: use up to 100 letters, digits, dots, dashes"
            " and underscores, as in Kafka's own ids"
        )
    return text


def cluster_of(path: str, patterns: Iterable[re.Pattern[str]] = ()) -> str | None:
    """Return the cluster that a path names, by the pattern's last match, or None.

    Raises:
        ClusterError: the match can't be a cluster's name.
    """
    for pattern in (*patterns, _FOLDER):
        if "cluster" in pattern.groupindex:
            names = [match["cluster"] for match in pattern.finditer(path) if match["cluster"]]
            if names:
                return cluster_name(names[-1])
    return None
