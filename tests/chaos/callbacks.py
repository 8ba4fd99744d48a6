"""What each broker's quota callback reports of itself, over JMX."""

from typing import Final

from tests.chaos.samples import CallbackSight
from tests.support.bean_watch import BeanWatch

_BEAN: Final = "throttlesidecar:type=QuotaCallback"
_ATTRIBUTES: Final = (
    "Source",
    "FactorApplied",
    "Regime",
    "DocumentAgeMs",
    "Emergency",
    "LongestPauseMs",
)
REFUSALS: Final = ("RefusedNewConnections", "RefusedBelowStopLine", "RefusedAfterRelease")
"""What it counts, if the broker has the authorizer."""


class CallbackWatch(BeanWatch):
    """Reads the callbacks from entry to exit of its async context."""

    def __init__(self) -> None:
        """Nothing is read yet."""
        super().__init__(_BEAN, [*_ATTRIBUTES, *REFUSALS])

    def seen(self, broker_id: int) -> CallbackSight | None:
        """What a callback reported last; None: nothing of late."""
        document = self.figures(broker_id)
        if document is None:
            return None
        return CallbackSight(
            source=document["Source"],
            factor=document["FactorApplied"],
            regime=document["Regime"],
            age_s=document["DocumentAgeMs"] / 1000,
            emergency=document["Emergency"],
            longest_pause_s=document["LongestPauseMs"] / 1000,
            refused={name: int(document[name]) for name in REFUSALS},
        )
