"""The inputs of the status page. Unlike the code of the page, they are loaded at the start."""

from collections.abc import Sequence
from dataclasses import dataclass

from sidecar.control.board import Board
from sidecar.control.capability import Capability
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.status.contents import VolumeContents


@dataclass(frozen=True, slots=True)
class StatusInputs:
    """The inputs of views.

    Attributes:
        board: the board that is shown.
        reaction_s: the longest time from when a volume reaches a line until brokers act, seconds.
        contents: the topics on volumes; None when no broker can be read.
        capabilities: the capabilities whose blocks are shown.
        failures: the failures of capabilities; a block that fails is added to them.
    """

    board: Board
    reaction_s: float
    contents: VolumeContents | None
    capabilities: Sequence[Capability]
    failures: CapabilityFailures
