"""Whether a change is in the state file."""

from enum import Enum


class Persistence(Enum):
    """Whether a published change is in the state file, so that a restart keeps it."""

    WRITTEN = "written"
    """The state file has it."""
    PENDING = "pending"
    """The disk has not answered yet; the write goes on."""
    FAILED = "failed"
    """The state file can't be written now; the sidecar tries again."""
    NONE = "none"
    """There is no state file."""
