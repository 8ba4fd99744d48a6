"""The limit that judges every volume of the cluster (proposal 047, section "Limit types").

Its type is one of ``LIMIT_TYPES``; settings, API, state file and tests follow from that tuple.
"""

from typing import Final

from sidecar.throttle.limits.available_bytes import MinAvailableBytes
from sidecar.throttle.limits.available_ratio import MinAvailableRatio
from sidecar.throttle.limits.limit import Limit, Verdict

LIMIT_TYPES: Final[tuple[type[Limit], ...]] = (MinAvailableBytes, MinAvailableRatio)

__all__ = ["LIMIT_TYPES", "Limit", "MinAvailableBytes", "MinAvailableRatio", "Verdict"]
