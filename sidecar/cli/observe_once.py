"""One poll of the cluster, judged by the daemon's own rules, for ``check``.

Example: two brokers are healthy and the third is down. The result is unknown, because the third may
be full. If one of the two is full, the limit is violated, whatever the state of the third.
"""

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sidecar.api.views import View, limit_document
from sidecar.clock import SteadyClock
from sidecar.control.board import Snapshot
from sidecar.errors import SettingsError
from sidecar.kafka import KafkaVolumeSource
from sidecar.settings import Settings
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.fold import fail
from sidecar.throttle.memory import Memory
from sidecar.throttle.misfits import Misfit, misfits
from sidecar.throttle.recommended_stop_line import RecommendedStopLine, recommended_stop_line
from sidecar.throttle.rules import Rules
from sidecar.throttle.schedule import Timing
from sidecar.volumes import Failure

Verdict = Literal["within limit", "limit violated", "unknown"]


@dataclass(frozen=True, slots=True)
class ClusterCheck:
    """The result of one poll of the cluster."""

    verdict: Verdict
    reason: str
    reaction_s: float
    view: View
    misfits: list[Misfit]

    @property
    def recommended_stop_line(self) -> RecommendedStopLine | None:
        """The stop line to set; None while one is set, or no volume was read."""
        rules, memory = self.view.snapshot.rules, self.view.snapshot.memory
        if rules.stop_line is not None:
            return None
        return recommended_stop_line(rules.required_limit, memory.volumes(), self.reaction_s)

    def as_json(self, sidecars: Sequence[object]) -> str:
        """Brokers and volumes as in the API, with the verdict.

        Args:
            sidecars: the answers of running sidecars.
        """
        snapshot = self.view.snapshot
        limit = limit_document(snapshot.rules.limit)
        stop_line = limit_document(snapshot.rules.stop_line)
        recommended = self.recommended_stop_line
        recommended_line = limit_document(recommended.line if recommended else None)
        document = {
            "verdict": self.verdict,
            "reason": self.reason,
            "sidecars": sidecars,
            "cluster_id": snapshot.memory.cluster_id,
            "limit": dataclasses.asdict(limit) if limit else None,
            "stop_line_reached": snapshot.decision.stop_line_reached,
            "stop_line": dataclasses.asdict(stop_line) if stop_line else None,
            "recommended_stop_line": dataclasses.asdict(recommended_line)
            if recommended_line
            else None,
            "misfits": [
                {
                    "broker_id": misfit.volume.broker_id,
                    "log_dir": misfit.volume.log_dir,
                    "line": misfit.line,
                    "effect": misfit.effect,
                }
                for misfit in self.misfits
            ],
            "brokers": [dataclasses.asdict(broker) for broker in self.view.brokers()],
            "volumes": [dataclasses.asdict(volume) for volume in self.view.volumes()],
        }
        return json.dumps(document, indent=2)


async def check_cluster(settings: Settings) -> ClusterCheck:
    """Poll the whole cluster once, with the daemon's deadline, and judge what was seen.

    Raises:
        SettingsError: no brokers or no limit are set, or TLS material can't be read.
    """
    if settings.kafka_admin is None or settings.limit is None:
        raise SettingsError(("nothing to check: brokers or a limit are not set",))
    clock = SteadyClock()
    timing = Timing(settings.check_interval_s, settings.check_interval_minimum_s)
    # This command keeps no earlier reading, so no reading can be too old.
    rules = Rules(settings.limit, math.inf, settings.stop_line)
    factors = VolumeLimit(rules, settings.fallback)
    async with KafkaVolumeSource(settings.kafka_admin, clock=clock.now) as source:
        result = await source.observe(None, timing.deadline_s)
    if isinstance(result, Failure):
        memory, now = fail(Memory(), result), clock.now()
    else:
        memory, now = factors.fold(Memory(), result), result.observed_at
    decision = factors.decide(memory, now)
    verdict: Verdict = "unknown"
    reason = memory.failure.message if memory.failure else decision.reason
    if memory.computed is not None:
        verdict = "limit violated" if memory.computed.violations else "within limit"
        reason = decision.reason
    view = View(Snapshot(decision, 1, now, memory, rules), now, clock.wall)
    wrong = misfits(memory.volumes(), settings.rules)
    return ClusterCheck(verdict, reason, timing.reaction_s, view, wrong)
