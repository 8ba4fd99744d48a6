"""Decision, last volumes and override on disk, so that a restart forgets nothing."""

from sidecar.state.file import Damaged, StateFile
from sidecar.state.form import PersistedState

__all__ = ["Damaged", "PersistedState", "StateFile"]
