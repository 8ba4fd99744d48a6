"""The quota callback's jar: where it is, its version, and copying it into a broker's folder.

It lies in the package's folder in a wheel and in the container's image, which ``make dist`` and the
``Dockerfile`` build with it; in a checkout it lies where ``make jar`` builds it.

Its name has no version, so that a newer one takes an older one's place: of two on a class path the
broker would load either. A copy appears whole or not at all, and a running broker still uses the
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
"""The broker is another user."""


def callback_jar(path: Path | None = None, places: tuple[Path, ...] = (_PACKED, _BUILT)) -> Path:
    """The jar.

    Args:
        path: where it is; None: with this program.
        places: where it may be then, the likelier one first.

    Raises:
        CallbackError: it is not there.
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
        "and the wheel of make dist have it; in a checkout, make jar leaves it in "
        "deploy/quota-callback/target, from where it can be copied by hand"
    )


def jar_version(jar: Path) -> str:
    """The version that Maven gave it.

    Raises:
        CallbackError: it is not the quota callback's jar.
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
    """Copies it into a folder; the copy, readable by all.

    Raises:
        CallbackError: there is no such folder, or it can't be written.
    """
    target = folder / NAME
    try:
        content = jar.read_bytes()
        # Hidden and not *.jar: neither libs/* nor a class path's wildcard takes half a jar.
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
