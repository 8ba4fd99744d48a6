"""The Kafka versions with which the demo and the tests have run.

This is a module of its own, so that the command line can offer them without loading the cluster.
"""

from typing import Final

DEFAULT_VERSION: Final = "4.3.1"

KNOWN_VERSIONS: Final = ("3.3.2", "3.9.1", DEFAULT_VERSION, "4.4.0")
"""Versions that the integration tests start; other versions may work."""
