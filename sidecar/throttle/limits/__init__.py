"""The limit that every volume is held against (proposal 047, section "Limit types").

One limit holds for the whole cluster; its type is one of ``LIMIT_TYPES``. Settings, API, state file
and the tests' parametrization follow from that tuple.
"""

from typing import Final

from sidecar.throttle.limits.available_bytes import MinAvailableBytes
from sidecar.throttle.limits.available_ratio import MinAvailableRatio
from sidecar.throttle.limits.limit import Level, Limit, Verdict

LIMIT_TYPES: Final[tuple[type[Limit], ...]] = (MinAvailableBytes, MinAvailableRatio)

__all__ = ["LIMIT_TYPES", "Level", "Limit", "MinAvailableBytes", "MinAvailableRatio", "Verdict"]
