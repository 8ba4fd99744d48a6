"""Decision, last volumes, override and what capabilities retain, on disk for a restart."""

from sidecar.state.file import Damaged, StateFile

__all__ = ["Damaged", "StateFile"]
