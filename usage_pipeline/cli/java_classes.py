"""Java's classes, archived by a machine's second whole run for all later commands.

The first one has kernels to compile (``compiling``). ``class_archive`` says how they are stored.

Example: ``pipeline run`` ends with "Once, for later runs to start sooner, Java's classes are stored
in /home/ops/.cache/throttle-sidecar/classes-9522ec2fef2a.jsa ...", and never again.
"""

import os
from typing import TYPE_CHECKING

import click

from usage_pipeline.cli.options import cache_folder

if TYPE_CHECKING:
    from usage_pipeline.runtime.class_archive import ClassArchive


def is_here(master: str | None) -> bool:
    """Whether this command starts the JVM that does the work; None: as the variable MASTER says."""
    from usage_pipeline.runtime.embedded import is_embedded  # noqa: PLC0415 - the extra

    url = master or os.environ.get("MASTER") or "local[*]"
    return "PYSPARK_GATEWAY_PORT" not in os.environ and is_embedded(url)


def java_classes(master: str | None, *, whole: bool) -> "ClassArchive | None":
    """What a JVM that this command starts may read or write.

    Args:
        master: from the command line; None: Spark's own variable MASTER, else this machine.
        whole: whether the command loads all that others do, and so may write it.

    Returns:
        None where the JVM is another's, or there is no folder for it.
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
    """Has Java write the classes that it has loaded, unless they are there; ends Spark for it.

    A failure is printed and is no error: the run is done.
    """
    from usage_pipeline.runtime.class_archive import NotKeptError  # noqa: PLC0415 - the extra
    from usage_pipeline.runtime.session import keep_classes  # noqa: PLC0415 - the extra

    if classes is None or classes.partial is None:
        return
    click.echo(
        f"Once, for later runs to start sooner, Java's classes are stored in {classes.file} ...",
        err=True,
    )
    try:
        keep_classes(classes)
    except NotKeptError as error:
        click.echo(f"they can't be stored, and the next run tries again: {error}", err=True)
    except KeyboardInterrupt:
        click.echo("not stored; the run is done.", err=True)
