"""Decision, last volumes, override and what capabilities retain, on disk for a restart."""

from sidecar.state.file import Damaged, StateFile
from sidecar.state.form import PersistedState

__all__ = ["Damaged", "PersistedState", "StateFile"]
