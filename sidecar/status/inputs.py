"""The inputs of the status page. Unlike the code of the page, they are loaded at the start."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sidecar.control.board import Board
from sidecar.control.capability import Capability
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.control.tokens import Tokens
from sidecar.control.volume_contents import VolumeContents
from sidecar.growth.watch import GrowthWatch
from sidecar.settings import Settings
from sidecar.settings.values import Platform


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """How an operator's tools reach the cluster, as far as the settings tell.

    Attributes:
        platform: what the operator's commands are for.
        bootstrap: the hosts of the bootstrap servers.
        security: the properties that connections need besides a login; empty for plain text.
    """

    platform: Platform = "auto"
    bootstrap: tuple[str, ...] = ()
    security: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> "ToolSettings":
        """Take them from the daemon's settings, without secrets."""
        admin = settings.kafka_admin
        if admin is None:
            return cls(settings.platform)
        security = [f"security.protocol={admin.security_protocol}"]
        if admin.sasl_mechanism is not None and "SASL" in admin.security_protocol:
            security.append(f"sasl.mechanism={admin.sasl_mechanism}")
        return cls(
            settings.platform,
            tuple(server.host for server in admin.bootstrap_servers),
            () if admin.security_protocol == "PLAINTEXT" else tuple(security),
        )


@dataclass(frozen=True, slots=True)
class StatusInputs:
    """The inputs of views.

    Attributes:
        board: the board that is shown.
        reaction_s: the longest time from when a volume reaches a line until brokers act, seconds.
        contents: the topics on volumes; None when no broker can be read.
        capabilities: the capabilities whose blocks are shown.
        failures: the failures of capabilities; a block that fails is added to them.
        tools: how an operator's tools reach the cluster.
        tokens: the tokens for changes.
        refusal: why a broker accepts only the former credentials; "" if none does.
        growth: the volumes near a limit, in parts; None when no broker can be read.
    """

    board: Board
    reaction_s: float
    contents: VolumeContents | None
    capabilities: Sequence[Capability]
    failures: CapabilityFailures
    tools: ToolSettings
    tokens: Tokens
    refusal: Callable[[], str]
    growth: GrowthWatch | None = None
