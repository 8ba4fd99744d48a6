"""The list of capabilities, in the order of their routes, metrics and blocks.

Whatever is added here is supervised, served and shown by the daemon, which knows none by name.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from sidecar.control.capability import Build, Capability, Prepare, Services
from sidecar.errors import SidecarError
from sidecar.history.capability import prepare as prepare_history
from sidecar.mutations.capability import prepare as prepare_mutations
from sidecar.producer_ids.capability import prepare as prepare_producer_ids
from sidecar.request_time.capability import prepare as prepare_request_time
from sidecar.settings import Settings

CAPABILITIES: Final[Mapping[str, Prepare]] = {
    "producer_ids": prepare_producer_ids,
    "request_time": prepare_request_time,
    "mutations": prepare_mutations,
    "history": prepare_history,
}


def prepare_all(settings: Settings) -> Mapping[str, Build]:
    """What builds each of them.

    Raises:
        SettingsError: one can't start.
    """
    return {name: prepare(settings) for name, prepare in CAPABILITIES.items()}


def build_all(builds: Mapping[str, Build], services: Services) -> Sequence[Capability]:
    """All that can be built; one that fails by a bug of ours is logged, and does nothing.

    Raises:
        SidecarError: one can't start.
    """
    return [_build(name, build, services) for name, build in builds.items()]


def _build(name: str, build: Build, services: Services) -> Capability:
    try:
        return build(services)
    except SidecarError:
        raise
    except Exception as error:  # noqa: BLE001 - no optional part is worth the daemon
        services.failures.failed(name, "start", error)
        idle = Capability()
        idle.name = name
        return idle
