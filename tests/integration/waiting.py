"""Where tests that are about to move look for ``tests/support/waiting.py``."""

from tests.support.waiting import LOOK_S, SEEN_S, seen

__all__ = ["LOOK_S", "SEEN_S", "seen"]
