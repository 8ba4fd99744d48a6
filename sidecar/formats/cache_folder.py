"""The folder in which commands of every package cache files that are expensive to make.

Example: with ``XDG_CACHE_HOME=/var/cache`` it is ``/var/cache/throttle-sidecar``.
"""

from collections.abc import Mapping
from pathlib import Path


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return ``throttle-sidecar`` in the XDG base directory for caches.

    Raises:
        RuntimeError: the user has no home folder, as in containers.
    """
    base = Path(environ.get("XDG_CACHE_HOME", ""))
    # The specification requires that a relative path is ignored.
    return (base if base.is_absolute() else Path.home() / ".cache") / "throttle-sidecar"
