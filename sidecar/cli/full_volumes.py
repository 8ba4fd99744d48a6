"""The volumes that violate the limit, which an override lets fill: one line for each cluster.

All sidecars of a cluster see the same volumes, but not at the same moment. The command prints the
answer with the most volumes.

Example: "1 volume violates the limit: broker 1 /d has 11.1 MB left; producers fill it until
2026-11-21T04:00:00.000Z."
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from sidecar.cli.sidecar_client import Answer, Request, request_all
from sidecar.cli.sidecar_options import merged

_NAMED: Final = 3
"""How many volumes are named; the others are only counted."""


class _Volume(NamedTuple):
    ratio: float
    broker_id: int
    log_dir: str
    available_bytes: int


def still_full(answers: Sequence[Answer]) -> list[str]:
    """Return a line for each cluster that has volumes that violate the limit.

    Args:
        answers: the answers to an override with a factor above 0. The answers of sidecars that did
            not set it are ignored.
    """
    until = {answer.address: _until(merged(answer)) for answer in answers if not answer.problem}
    fullest: dict[str, tuple[list[_Volume], str]] = {}
    for answer in request_all([*until], [Request("GET", "/v1/throttle-factor")]):
        document = merged(answer)
        volumes = _volumes(document.get("violations"))
        cluster = str(document.get("cluster_id") or answer.address)
        if len(volumes) > len(fullest.get(cluster, ([], ""))[0]):
            fullest[cluster] = volumes, until[answer.address]
    lines = {cluster: _line(*seen) for cluster, seen in fullest.items()}
    if len(lines) > 1:
        return [f"Cluster {cluster}: {line}" for cluster, line in lines.items()]
    return [*lines.values()]


def _until(document: Mapping[str, object]) -> str:
    override = document.get("override")
    return str(override.get("until")) if isinstance(override, dict) else "it ends"


def _volumes(violations: object) -> list[_Volume]:
    """Return the volumes in a document, the fullest first; entries of another form are ignored."""
    volumes = []
    for each in violations if isinstance(violations, list) else []:
        try:
            ratio, left = float(each["available_ratio"]), int(each["available_bytes"])
            volumes.append(_Volume(ratio, int(each["broker_id"]), str(each["log_dir"]), left))
        except (KeyError, TypeError, ValueError):
            continue
    return sorted(volumes)


def _line(volumes: Sequence[_Volume], until: str) -> str:
    # Not above: the command's help needs neither.
    from sidecar.logs import printable  # noqa: PLC0415
    from sidecar.throttle.sizes import size  # noqa: PLC0415

    named = ", ".join(
        f"broker {volume.broker_id} {volume.log_dir} has {size(volume.available_bytes)} left"
        for volume in volumes[:_NAMED]
    )
    more = f" and {len(volumes) - _NAMED} more" if len(volumes) > _NAMED else ""
    violate, them = ("volume violates", "it") if len(volumes) == 1 else ("volumes violate", "them")
    return printable(
        f"{len(volumes)} {violate} the limit: {named}{more}; producers fill {them} until {until}."
    )
