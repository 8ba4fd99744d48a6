"""GET /v1/throttle-factor: the factor for the whole cluster, and why; as text the bare number."""

from sidecar.api.answers import Wall, timestamp
from sidecar.api.page import Page, Written
from sidecar.api.views import cluster_id, limit_reached_at, violations
from sidecar.board import Snapshot
from sidecar.throttle.limits import Limit


def factor_page(wall: Wall, limit: Limit | None) -> Page:
    """The page; ``limit`` is what volumes are held against, None when disabled."""

    def write(snapshot: Snapshot, _now: float, _window_s: float) -> Written:
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
        return Written.of(before, between, "seconds_to_limit", limit_reached_at(snapshot), after)

    return Page(write, wall, bare=lambda snapshot: repr(snapshot.decision.factor))
