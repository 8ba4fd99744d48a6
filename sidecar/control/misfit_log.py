"""Logs each line that does not fit a volume (``sidecar.throttle.misfits``), when the volume is new.

A volume is new when it was never read before, or when its size has changed.

Example: the first poll reads 1,000 volumes of 100 GB, and the release margin can't be reached on
any of them. There is one warning, which names three. When broker 7 comes back from a restart, there
is none.
"""

import logging

from sidecar.control.board import Snapshot
from sidecar.throttle.misfits import misfits, sentences
from sidecar.volumes import LogDir

_log = logging.getLogger(__name__)


class MisfitLog:
    """A board's listener, which remembers the volumes that it has compared."""

    def __init__(self) -> None:
        self._sizes: dict[LogDir, int] = {}

    def __call__(self, before: Snapshot | None, after: Snapshot) -> None:
        """Compare the volumes that are new."""
        if before is not None and before.memory.brokers is after.memory.brokers:
            return
        new = [
            state
            for state in after.memory.volumes()
            if self._sizes.get(state.volume.place) != state.volume.total_bytes
        ]
        if not new:
            return
        self._sizes |= {state.volume.place: state.volume.total_bytes for state in new}
        for sentence in sentences(misfits(new, after.rules)):
            _log.warning("%s", sentence)
