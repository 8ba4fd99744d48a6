"""``throttle-sidecar callback copy``: the jar into a broker's folder, as an init container does.

Example: ``throttle-sidecar callback copy /jars`` writes
``/jars/throttle-sidecar-quota-callback.jar`` and prints its version.
"""

from pathlib import Path

import click

from sidecar.cli.callback.jar import callback_jar, copy_jar, jar_version


@click.command(
    "copy",
    epilog="""\b
Examples:
  throttle-sidecar callback copy /opt/kafka/libs
""",
)
@click.argument("folder", metavar="DIR", type=click.Path(readable=False, path_type=Path))
def command(folder: Path) -> None:
    """Copy the quota callback's jar into DIR, which must exist.

    The command replaces an older jar atomically. A broker loads the new jar when it restarts. The
    exit code is 2 if this program has no jar or DIR can't be written.
    """
    source = callback_jar()
    version = jar_version(source)
    click.echo(f"quota callback {version} is now {copy_jar(source, folder)}")
