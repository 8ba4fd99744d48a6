"""GET /v1/quota-factors: all that a broker's quota callback needs, in one document.

The factor for all, the users' own factors, and how long the fullest volume lasts, which a header
says too: a 304 has no body, and a throttled broker has to hear it move. Whoever holds producers by
long pauses asks with ``Throttle-Fill-Window: 120`` for the rates of the last 120 s.
"""

from typing import Final

from sidecar.api.answers import Wall
from sidecar.api.cached_document import CachedDocument, Rendered
from sidecar.api.views import cluster_id
from sidecar.control.board import Snapshot
from sidecar.throttle.full import full_at

SECONDS_TO_FULL: Final = "Throttle-Seconds-To-Full"

FILL_WINDOW: Final = "Throttle-Fill-Window"


def cached_quota_factors(wall: Wall, validity_s: float) -> CachedDocument:
    """The page; ``validity_s`` is for how long a reading counts, seconds."""

    def write(snapshot: Snapshot, now: float, window_s: float) -> Rendered:
        decision = snapshot.decision
        before = {
            "factor": decision.factor,
            "source": decision.source.value,
            "reason": decision.reason,
            "users": dict(decision.users),
        }
        # As of now: readings that expire before the next poll, failed or not, count until then.
        ends_at = full_at(snapshot.memory, validity_s, now, window_s)
        after = {"cluster_id": cluster_id(snapshot.memory)}
        between = {"generation": snapshot.generation}
        return Rendered.of(before, between, "seconds_to_full", ends_at, after)

    return CachedDocument(write, wall, countdown_header=SECONDS_TO_FULL)
