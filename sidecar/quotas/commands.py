"""The kafka-configs.sh commands that set quotas, as an operator would type them.

Numbers are written in full, never as powers of ten: 128, 55.7, 9.2. Names are quoted for a POSIX
shell.

Example: ``kafka-configs.sh --bootstrap-server localhost:19092 --alter --add-config
'request_percentage=9.2' --entity-type users --entity-default`` (the article's own line).

Source: Kafka's ConfigCommand; KIP-546.
"""

import shlex
from collections.abc import Mapping, Sequence

from sidecar.quotas.entities import Default, Entity, Name

_PROGRAM = "kafka-configs.sh"


def kafka_configs(
    connection: Sequence[str], entity: Entity, values: Mapping[str, float | None]
) -> str:
    """Return the command for one entity.

    Args:
        connection: the options with which kafka-configs.sh reaches the brokers.
        entity: the entity whose quotas change.
        values: the quotas to set; a value of None removes the quota.
    """
    added = ",".join(f"{key}={number(v)}" for key, v in values.items() if v is not None)
    removed = ",".join(key for key, v in values.items() if v is None)
    parts = [_PROGRAM, *map(shlex.quote, connection), "--alter"]
    if added:
        parts += ["--add-config", f"'{added}'"]
    if removed:
        parts += ["--delete-config", f"'{removed}'"]
    for kind, name in (("users", entity.user), ("clients", entity.client_id), ("ips", entity.ip)):
        parts += _entity(kind, name)
    return " ".join(parts)


def number(value: float) -> str:
    """Return a quota in digits.

    Example: 128.0 is "128", 9.2 is "9.2", 1e16 is "10000000000000000".
    """
    if value == int(value):
        return str(int(value))
    text = repr(value)
    return f"{value:.20f}".rstrip("0") if "e" in text else text


def _entity(kind: str, name: Name) -> list[str]:
    if name is None:
        return []
    if isinstance(name, Default):
        return ["--entity-type", kind, "--entity-default"]
    return ["--entity-type", kind, "--entity-name", shlex.quote(name)]
