"""``throttle-sidecar demo``: shows on a real Kafka cluster how the factor falls and rises.

The exit code is 0 only if every step was observed, and 1 otherwise.
"""

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import click

from kafka_lab.versions import DEFAULT_VERSION, KNOWN_VERSIONS
from sidecar.errors import ClusterError

_START_TIMEOUT_S: Final = 900.0
"""The first start downloads 44 MB of jars."""

_EXAMPLES = """\b
Examples:
  throttle-sidecar demo
  throttle-sidecar demo --kafka-version 3.9.1
  throttle-sidecar demo --keep
  throttle-sidecar demo --more --film film.html
"""


def _known(_context: click.Context, _option: click.Parameter, begun: str) -> list[str]:
    """Return the versions that the shell offers; other versions are accepted too."""
    return [version for version in KNOWN_VERSIONS if version.startswith(begun)]


@click.command("demo", epilog=_EXAMPLES)
@click.option(
    "--kafka-version",
    default=DEFAULT_VERSION,
    show_default=True,
    shell_complete=_known,
    help=f"The version of the brokers; known to work: {', '.join(KNOWN_VERSIONS)}.",
)
@click.option("--keep", is_flag=True, help="Keep the cluster running afterwards, until Ctrl-C.")
@click.option(
    "--more",
    is_flag=True,
    help="Also show who fills a volume, a storage budget and room made: two more minutes.",
)
@click.option(
    "--film",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file for an HTML page that plays what was measured.",
)
@click.option(
    "--svg",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("throttle-sidecar-demo.svg"),
    show_default=True,
    help="The file for the picture.",
)
@click.option(
    "--callback-jar",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The quota callback's jar; by default the jar that is part of this program.",
)
def command(
    *,
    kafka_version: str,
    keep: bool,
    more: bool,
    film: Path | None,
    svg: Path,
    callback_jar: Path | None,
) -> None:
    """Start a real Kafka cluster with sidecars and show how brokers obey the factor.

    There are three brokers with small volumes and the quota callback, and a sidecar beside each.
    Producers fill a volume at full speed until the factor is 0.0 everywhere and every producer is
    throttled. Then retention frees space, and throughput recovers. This is repeated with the scope
    of volumes, where only the tenant that fills the volume is throttled. The demo needs a JDK (17
    or 21), and Maven for the first download of Kafka's jars. Only the picture remains afterwards.
    """
    sys.exit(
        asyncio.run(
            _run(kafka_version, keep=keep, more=more, film=film, svg=svg, callback_jar=callback_jar)
        )
    )


async def _run(
    kafka_version: str,
    *,
    keep: bool,
    more: bool,
    film: Path | None,
    svg: Path,
    callback_jar: Path | None,
) -> int:
    # Imported here, because --help needs none of it.
    from rich.console import Console  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415

    from kafka_lab import callback  # noqa: PLC0415
    from kafka_lab.acts import play_more  # noqa: PLC0415
    from kafka_lab.cluster import Cluster  # noqa: PLC0415
    from kafka_lab.film import film as film_of  # noqa: PLC0415
    from kafka_lab.loads import LOGINS  # noqa: PLC0415
    from kafka_lab.scenario import Scenario, play  # noqa: PLC0415
    from kafka_lab.screen import addresses, draw, picture, summary  # noqa: PLC0415
    from sidecar.cli.callback.jar import callback_jar as existing_jar  # noqa: PLC0415

    jar = existing_jar(callback_jar)
    console = Console()
    scenario = Scenario(further=play_more if more else None)
    cluster = Cluster(
        environ=os.environ,
        version=kafka_version,
        brokers=3,
        volumes=2,
        volume_bytes=192 << 20,
        broker_jars=[jar],
        listeners=[LOGINS],
        properties={
            **callback.CALLBACK_PROPERTIES,
            **callback.REFUSING_PROPERTIES,
            "allow.everyone.if.no.acl.found": "true",
        },
        properties_of=callback.asks_its_sidecar,
    )
    async with AsyncExitStack() as stack:
        live = Live(
            get_renderable=lambda: draw(scenario, console.height),
            console=console,
            refresh_per_second=10,
        )
        try:
            with live:
                title = f"Kafka {kafka_version}: three brokers ready (the first time: downloaded)"
                async with scenario.step(title, timeout_s=_START_TIMEOUT_S):
                    await stack.enter_async_context(cluster)
                try:
                    await play(scenario, cluster)
                except ClusterError as error:
                    scenario.notes.append(str(error))
        finally:
            if not console.is_terminal:
                # Without a terminal, the last drawing lacks its line feed.
                console.print()
        console.print(summary(scenario))
        if scenario.loads:
            await asyncio.to_thread(_write, svg, picture(scenario))
            console.print(f"Picture: {svg}")
            if film is not None:
                await asyncio.to_thread(_write, film, film_of(scenario))
                console.print(f"Film: {film} (open it in a browser)")
        for note in scenario.notes:
            console.print(f"Note: {note}")
        if keep and scenario.sidecars:
            console.print(addresses(scenario, cluster.bootstrap), markup=False, soft_wrap=True)
            await asyncio.Event().wait()
    return 0 if scenario.complete else 1


def _write(path: Path, text: str) -> None:
    with click.open_file(str(path), "w", encoding="utf-8", atomic=True) as file:
        file.write(text)
