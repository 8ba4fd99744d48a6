"""``throttle-sidecar quotas restore``: restore the produce quotas that sidecars have lowered.

It also removes the request_percentage of users that sidecars throttle for their producer ids.

With ``--forget``, nothing of the sidecar is left afterwards. A sidecar that still runs lowers a
quota again within 10 s, so the command then looks for a while whether originals come back.

Example: a sidecar was removed while alice was at 8.5 of 10 MB/s. The command sets 10 MB/s, and then
removes the record of the original from the cluster. If somebody has set 50 MB/s meanwhile, the
command only removes the record.
"""

import asyncio
import math
import os
from typing import TYPE_CHECKING, Final

import click

from sidecar.cli.kafka_options import KafkaOptions, kafka_options
from sidecar.cli.options import duration
from sidecar.cli.quotas.output import quota_text
from sidecar.cli.quotas.status import load_platform
from sidecar.errors import BrokersError, SidecarError
from sidecar.quotas.entities import QuotaKey
from sidecar.quotas.producer_ids.throttle_signature import is_signed
from sidecar.request_time.cluster_state import must

if TYPE_CHECKING:
    # Not at run time: the Kafka client is imported when it is used.
    from sidecar.client_quotas.plan import Found
    from sidecar.client_quotas.platform import KafkaQuotas

_ROUNDS: Final = 5
_APART_S: Final = 2.0


@click.command(
    "restore",
    epilog="""\b
Examples:
  throttle-sidecar quotas restore --bootstrap-server localhost:9092
  throttle-sidecar quotas restore --dry-run
  throttle-sidecar quotas restore --forget --config sidecar.toml
""",
)
@kafka_options
@click.option("--dry-run", is_flag=True, help="Print the originals, and change nothing.")
@click.option(
    "--forget",
    is_flag=True,
    help="For an uninstallation: also remove the originals from the state file, and look whether a"
    " sidecar lowers quotas again.",
)
@click.option(
    "--watch",
    "watch_s",
    default="20s",
    show_default=True,
    callback=duration("a sidecar that still runs would not be noticed"),
    metavar="DURATION",
    help="How long --forget looks.",
)
def command(kafka: KafkaOptions, *, dry_run: bool, forget: bool, watch_s: float) -> None:
    """Restore the produce quotas that sidecars have lowered, at once and not in steps.

    It also removes each request_percentage that a sidecar set to throttle a user. The originals are
    read from the cluster. First stop the sidecars, or set another SIDECAR_ENFORCEMENT: a sidecar
    that still throttles lowers the quotas again.
    """
    if dry_run and forget:
        raise click.UsageError("give either --dry-run or --forget")
    platform = load_platform(kafka)
    try:
        if forget:
            asyncio.run(_restore_for_good(platform, watch_s))
        else:
            asyncio.run(_restore_once(platform, dry_run))
    finally:
        # Also if a produce quota can't be restored.
        asyncio.run(_remove_percentages(platform, dry_run))
    if forget:
        _drop_from_state_file(kafka)


async def _remove_percentages(platform: "KafkaQuotas", dry_run: bool) -> None:
    """Remove each request_percentage that a sidecar set for the time of a throttle.

    Raises:
        BrokersError: one can't be removed.
    """
    key = QuotaKey.REQUEST
    quotas = must(await platform.describe())
    left = {each: values[key] for each, values in quotas.items() if is_signed(values.get(key))}
    if dry_run:
        for entity, value in left.items():
            click.echo(f"{entity}: the {key} {value:.9g} would be removed")
    elif left:
        outcomes = must(await platform.alter([(each.parts(), {key.value: None}) for each in left]))
        for (entity, value), failure in zip(left.items(), outcomes, strict=True):
            if failure is None:
                click.echo(f"{entity}: removed the {key} {value:.9g} of a throttle")
        if failures := [failure.message for failure in outcomes if failure is not None]:
            raise BrokersError("\n".join(failures))


async def _restore_once(platform: "KafkaQuotas", dry_run: bool) -> None:
    found = must(await platform.read())
    if not found.kept:
        click.echo("No produce quota is lowered.")
    elif dry_run:
        for entity, kept in found.kept.items():
            now = quota_text(found.quotas.get(entity))
            if entity in found.changed:
                click.echo(f"{entity}: would be kept at {now}, since somebody changed it")
            else:
                click.echo(f"{entity}: would be restored from {now} to {quota_text(kept.original)}")
    else:
        await _restore(platform, found)


async def _restore_for_good(platform: "KafkaQuotas", watch_s: float) -> None:
    """Restore until no original comes back for a while.

    Raises:
        BrokersError: a sidecar still lowers quotas, or a quota can't be restored.
    """
    looks = math.ceil(watch_s / _APART_S)
    found = must(await platform.read())
    for _ in range(_ROUNDS):
        if found.kept:
            await _restore(platform, found)
        click.echo(f"Looking for {watch_s:g} s whether a sidecar lowers quotas ...")
        for _ in range(looks):
            await asyncio.sleep(min(_APART_S, watch_s))
            found = must(await platform.read())
            if found.kept:
                click.echo("A sidecar has lowered quotas again.")
                break
        else:
            click.echo(f"No produce quota is lowered, and none was within {watch_s:g} s.")
            return
    raise BrokersError(
        f"a sidecar has lowered quotas again after each of {_ROUNDS} restores: stop all sidecars,"
        " or set another SIDECAR_ENFORCEMENT, and run this command again"
    )


async def _restore(platform: "KafkaQuotas", found: "Found") -> None:
    """Restore all quotas; a quota that can't be restored keeps its record, the only copy."""
    changed = found.changed
    originals = {entity: kept for entity, kept in found.kept.items() if entity not in changed}
    outcomes = must(await platform.restore(originals, changed))
    for entity in changed:
        if entity not in outcomes:
            now = quota_text(found.quotas.get(entity))
            click.echo(f"{entity}: kept at {now}, since somebody changed it")
    for entity, kept in originals.items():
        if outcomes[entity] is None:
            click.echo(f"{entity}: restored to {quota_text(kept.original)}")
    failures = [failure.message for failure in outcomes.values() if failure is not None]
    if failures:
        raise BrokersError("\n".join(failures))


def _drop_from_state_file(kafka: KafkaOptions) -> None:
    """Remove the originals from the state file, since the next start would read them there."""
    from sidecar.client_quotas.retained import NAME  # noqa: PLC0415 - see status
    from sidecar.settings import read_daemon_values  # noqa: PLC0415
    from sidecar.state import drop_record  # noqa: PLC0415

    if kafka.bootstrap_server is not None or kafka.command_config is not None:
        click.echo(
            "No state file was looked at: --bootstrap-server and --command-config leave out the"
            " daemon's settings. Without them, the originals are removed from the state file too."
        )
        return
    path = read_daemon_values(os.environ, kafka.config, kafka.properties).state_file
    if path is None:
        click.echo("No state file was looked at: SIDECAR_STATE_FILE is not set here.")
        return
    try:
        if path.stat().st_uid != os.geteuid():
            raise SidecarError(f"{path} belongs to another user: run this command as that user")
        dropped = drop_record(path, NAME)
    except FileNotFoundError:
        click.echo(f"There is no state file {path}.")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is damaged"
        raise SidecarError(f"the state file {path} still has its originals: {why}") from error
    else:
        what = "The originals are removed from" if dropped else "There are no originals in"
        click.echo(f"{what} the state file {path}.")
