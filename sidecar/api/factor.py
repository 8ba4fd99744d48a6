"""GET /v1/throttle-factor: the factor for the whole cluster, and why; as text the bare number."""

from sidecar.api.answers import Wall, timestamp
from sidecar.api.cached_document import CachedDocument, Rendered
from sidecar.api.views import cluster_id, limit_reached_at, violations
from sidecar.control.board import Snapshot
from sidecar.throttle.limits import Limit


def cached_factor(wall: Wall, limit: Limit | None) -> CachedDocument:
    """The page; ``limit`` is what volumes are held against, None when disabled."""

    def write(snapshot: Snapshot, _now: float, _window_s: float) -> Rendered:
        decision = snapshot.decision
        before = {
            "factor": decision.factor,
            "source": decision.source.value,
            "reason": decision.reason,
            "violations": list(violations(decision.violations, limit)),
            "computed_at": timestamp(wall, decision.computed_at),
            "valid_until": timestamp(wall, decision.valid_until),
        }
        between = {"since": timestamp(wall, snapshot.since), "generation": snapshot.generation}
        after = {"cluster_id": cluster_id(snapshot.memory)}
        return Rendered.of(before, between, "seconds_to_limit", limit_reached_at(snapshot), after)

    return CachedDocument(write, wall, plain_text=lambda snapshot: repr(snapshot.decision.factor))
