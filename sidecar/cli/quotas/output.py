"""Quotas, changes and plans as JSON and as tables."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import click

from sidecar.quotas.commands import number
from sidecar.quotas.entities import ClientQuotas, Default, Entity
from sidecar.quotas.request_time.quota_plan import Change

_SHOWN_WARNINGS: Final = 20


def in_order(quotas: ClientQuotas) -> ClientQuotas:
    """Sort quotas: users, then client-ids, then addresses, each by name after the default."""

    def rank(entity: Entity) -> tuple[bool, bool, str, bool, str, str]:
        user, client_id, ip = (
            "" if name is None or isinstance(name, Default) else name
            for name in (entity.user, entity.client_id, entity.ip)
        )
        has_client = entity.client_id is not None
        return (entity.ip is not None, entity.user is None, user, has_client, client_id, ip)

    return {entity: quotas[entity] for entity in sorted(quotas, key=rank)}


def change_documents(changed: Iterable[Change]) -> list[dict[str, object]]:
    """Each change."""
    return [
        {
            "entity": change.entity.parts(),
            "key": change.key,
            "before": change.before,
            "after": change.after,
        }
        for change in changed
    ]


def print_changes(changed: Sequence[Change]) -> None:
    """Print a table of changes, or that there is none."""
    if not changed:
        click.echo("Nothing changes.")
        return
    from sidecar.cli.tables import print_rows  # noqa: PLC0415 - so that --json needs no rich

    rows = [
        [str(change.entity), change.key, quota_text(change.before), quota_text(change.after)]
        for change in changed
    ]
    print_rows(["Entity", "Quota", "Today", "Planned"], rows, ())


def print_quotas(quotas: ClientQuotas, keys: Sequence[str] = ()) -> None:
    """Print a table of quotas, of these keys if any are given, or that there is none."""
    if not quotas:
        click.echo(f"No {' or '.join(keys) or 'quota'} is set.")
        return
    from sidecar.cli.tables import print_rows  # noqa: PLC0415 - so that --json needs no rich

    rows = [
        [str(entity), key, number(value)]
        for entity, values in quotas.items()
        for key, value in values.items()
    ]
    print_rows(["Entity", "Quota", "Limit"], rows, ())


def print_warnings(warnings: Sequence[str]) -> None:
    """Print the first warnings on standard error, and the number of the others."""
    from sidecar.logs import printable  # noqa: PLC0415 - slow to import

    for warning in warnings[:_SHOWN_WARNINGS]:
        click.echo(f"Warning: {printable(warning)}", err=True)
    more = len(warnings) - _SHOWN_WARNINGS
    if more > 0:
        click.echo(f"Warning: and {more:,} more; --json prints them all", err=True)


def quota_text(value: float | None) -> str:
    """Return a limit in digits, or "none"."""
    return "none" if value is None else number(value)


def echo_json(document: Mapping[str, object]) -> None:
    """Print it."""
    click.echo(json.dumps(document, indent=2))
