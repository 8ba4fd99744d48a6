"""The state of the cluster in one second: volumes, sidecars, callbacks.

Example: of broker 0 at 1:23 the volume has 131 MB left, the sidecar is None since it did not
answer, and the callback reports SIDECAR and 1.0: it still uses the last factor that it got.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SidecarSight:
    """What a sidecar answered.

    Attributes:
        is_ready: whether /readyz is 200.
        factor: of its document.
        source: likewise: observation, fallback, override or disabled.
    """

    is_ready: bool
    factor: float
    source: str

    @property
    def sees(self) -> bool:
        """Whether its factor comes from seeing the cluster."""
        return self.is_ready and self.source == "observation"


@dataclass(frozen=True, slots=True)
class CallbackSight:
    """What a broker's callback reports over JMX.

    Attributes:
        source: SIDECAR, LOCAL, FALLBACK or DISABLED.
        factor: that it applies.
        regime: FREE, THROTTLED, SCALED or RAMP.
        age_s: of the sidecar's last answer; -1.0 before the first.
        emergency: whether pauses may be longer than pause.max.
        longest_pause_s: since the broker's start.
        refused: attribute of the callback -> produce requests refused since the broker's start.
    """

    source: str
    factor: float
    regime: str
    age_s: float
    emergency: bool
    longest_pause_s: float
    refused: Mapping[str, int] = field(default_factory=dict)

    @property
    def throttles(self) -> bool:
        """Whether producers are paused."""
        return self.factor < 1.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One second.

    Attributes:
        at_s: since the beginning of the run.
        available: broker id -> bytes available on its fullest volume.
        least: the same, the fewest since the last sample.
        sidecars: broker id -> what the sidecar beside it answered; None: nothing in time.
        callbacks: broker id -> what its callback reported; None: nothing in time.
        steady_s: process -> for how long it has run undisturbed; one that is away has none.
    """

    at_s: float
    available: Mapping[int, int]
    least: Mapping[int, int]
    sidecars: Mapping[int, SidecarSight | None]
    callbacks: Mapping[int, CallbackSight | None]
    steady_s: Mapping[str, float]

    def runs(self, broker_id: int) -> bool:
        """Whether a broker runs."""
        return f"broker {broker_id}" in self.steady_s
