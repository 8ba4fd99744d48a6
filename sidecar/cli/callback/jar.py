"""The quota callback's jar: its place, its version, and copying it into a broker's folder.

In a wheel and in the container image, the jar is in the package's folder; ``make dist`` and the
``Dockerfile`` put it there. In a checkout it is where ``make jar`` builds it.

The file name has no version, so that a newer jar replaces an older one. With two jars on the class
path, the broker could load either. The copy is atomic, and a running broker continues to use the
file that it has opened.

Example: ``copy_jar(callback_jar(), Path("/opt/kafka/libs"))``.
"""

import os
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from sidecar.errors import CallbackError

NAME: Final = "throttle-sidecar-quota-callback.jar"

_PACKED: Final = Path(__file__).parents[2] / NAME
_BUILT: Final = Path(__file__).parents[3] / "deploy/quota-callback/target" / NAME
_POM: Final = "META-INF/maven/throttlesidecar/throttle-sidecar-quota-callback/pom.properties"
_FOR_ALL: Final = 0o644
"""Readable by all, because the broker runs as another user."""


def callback_jar(path: Path | None = None, places: tuple[Path, ...] = (_PACKED, _BUILT)) -> Path:
    """Return the path of the jar.

    Args:
        path: where the jar is; None means the jar of this program.
        places: the paths to try if ``path`` is None.

    Raises:
        CallbackError: there is no jar.
    """
    if path is not None:
        if not path.is_file():
            raise CallbackError(f"the quota callback's jar is not there: {path}")
        return path
    for place in places:
        if place.is_file():
            return place
    raise CallbackError(
        "this throttle-sidecar was installed without the quota callback's jar. The container image "
        "and the wheel of make dist have it. In a checkout, run make jar and install again, or "
        "copy it from deploy/quota-callback/target by hand"
    )


def jar_version(jar: Path) -> str:
    """Return the jar's version, as Maven wrote it.

    Raises:
        CallbackError: the file is not the quota callback's jar.
    """
    try:
        with zipfile.ZipFile(jar) as archive:
            lines = archive.read(_POM).decode().splitlines()
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise CallbackError(f"{jar} is not the quota callback's jar") from error
    for line in lines:
        key, _, value = line.partition("=")
        if key == "version":
            return value
    raise CallbackError(f"{jar} does not state its version")


def copy_jar(jar: Path, folder: Path) -> Path:
    """Copy the jar into a folder and return the copy's path. The copy is readable by all.

    Raises:
        CallbackError: the folder does not exist or can't be written.
    """
    target = folder / NAME
    try:
        content = jar.read_bytes()
        # A hidden file without .jar: no wildcard of a class path matches an incomplete copy.
        descriptor, name = tempfile.mkstemp(prefix=".throttle-sidecar-", dir=folder)
        partial = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fchmod(file.fileno(), _FOR_ALL)
                os.fsync(file.fileno())
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise CallbackError(
            f"the quota callback's jar can't be copied to {target}: {error.strerror or error}"
        ) from error
    return target
