"""The versions of Kafka that the demo and the tests have been run with.

A module of its own, so that the command line can offer them without loading the cluster.
"""

from typing import Final

DEFAULT_VERSION: Final = "4.3.1"

KNOWN_VERSIONS: Final = ("3.3.2", "3.9.1", DEFAULT_VERSION, "4.4.0")
"""Started in the integration tests; of another version nobody knows whether it starts."""
