"""An archive of Java's classes, which the second whole run on a machine writes for later commands.

The first run compiles kernels instead (``compiling``). ``class_archive`` describes the archive.

Example: ``pipeline run`` ends once with "Storing Java's classes in
/home/ops/.cache/throttle-sidecar/classes-9522ec2fef2a.jsa, so that later runs start faster ...".
"""

import os
from typing import TYPE_CHECKING

import click

from sidecar.formats.cache_folder import cache_folder

if TYPE_CHECKING:
    from usage_pipeline.runtime.class_archive import ClassArchive


def is_here(master: str | None) -> bool:
    """Whether this command starts the JVM for the work; for None, the variable MASTER decides."""
    from usage_pipeline.runtime.embedded import is_embedded  # noqa: PLC0415 - the extra

    url = master or os.environ.get("MASTER") or "local[*]"
    return "PYSPARK_GATEWAY_PORT" not in os.environ and is_embedded(url)


def java_classes(master: str | None, *, whole: bool) -> "ClassArchive | None":
    """Return the archive for a JVM that this command starts.

    Args:
        master: the option; None for Spark's variable MASTER, or else this machine.
        whole: whether the command loads all classes that others need, and so may write the archive.

    Returns:
        None if this command starts no JVM, or if there is no folder for the archive.
    """
    from usage_pipeline.runtime.session import class_archive  # noqa: PLC0415 - the extra

    if not is_here(master):
        return None
    try:
        folder = cache_folder(os.environ)
    except RuntimeError:  # a user without a home folder, as in containers
        return None
    return class_archive(folder, whole=whole)


def keep_java_classes(classes: "ClassArchive | None") -> None:
    """Stop Spark, and let Java write its loaded classes unless the archive exists.

    A failure is only printed, because the run is complete.
    """
    from usage_pipeline.runtime.class_archive import NotKeptError  # noqa: PLC0415 - the extra
    from usage_pipeline.runtime.session import keep_classes  # noqa: PLC0415 - the extra

    if classes is None or classes.partial is None:
        return
    click.echo(
        f"Storing Java's classes in {classes.file}, so that later runs start faster ...",
        err=True,
    )
    try:
        keep_classes(classes)
    except NotKeptError as error:
        click.echo(f"Java's classes can't be stored; the next run tries again: {error}", err=True)
    except KeyboardInterrupt:
        click.echo("Java's classes are not stored; the run is complete.", err=True)
