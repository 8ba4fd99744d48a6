"""The list of capabilities, in the order of their routes, metrics and blocks.

The daemon supervises, serves and shows each entry of the list, without knowing its name.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from sidecar.budgets.capability import prepare as prepare_budgets
from sidecar.client_quotas.capability import prepare as prepare_client_quotas
from sidecar.control.capability import Build, Capability, Prepare, Services, Task
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.control.metric_source import MetricSource
from sidecar.errors import SidecarError
from sidecar.growth.capability import prepare as prepare_growth
from sidecar.history.capability import prepare as prepare_history
from sidecar.mutations.capability import prepare as prepare_mutations
from sidecar.producer_ids.capability import prepare as prepare_producer_ids
from sidecar.relief.capability import prepare as prepare_relief
from sidecar.request_time.capability import prepare as prepare_request_time
from sidecar.settings import Settings
from sidecar.volumes import Observation
from sidecar.webhook.capability import prepare as prepare_webhook

CAPABILITIES: Final[Mapping[str, Prepare]] = {
    "producer_ids": prepare_producer_ids,
    "request_time": prepare_request_time,
    "mutations": prepare_mutations,
    "history": prepare_history,
    "webhook": prepare_webhook,
    "client_quotas": prepare_client_quotas,
    "growth": prepare_growth,
    "budgets": prepare_budgets,
    "relief": prepare_relief,
}


_NO_TASKS: Final[Mapping[str, Task]] = {}


def prepare_all(settings: Settings) -> Mapping[str, Build]:
    """Return the function that builds each capability.

    Raises:
        SettingsError: a capability can't start.
    """
    return {name: prepare(settings) for name, prepare in CAPABILITIES.items()}


def build_all(builds: Mapping[str, Build], services: Services) -> Sequence[Capability]:
    """Build all capabilities. A capability that fails by a bug is logged and left out.

    Raises:
        SidecarError: a capability can't start.
    """
    return [_build(name, build, services) for name, build in builds.items()]


def tasks_of(
    capabilities: Sequence[Capability], failures: CapabilityFailures
) -> list[tuple[str, str, Task]]:
    """Yield each task with the names of its capability and of the task."""
    return [
        (each.name, what, task)
        for each in capabilities
        for what, task in failures.call(each.name, "tasks", each.tasks, _NO_TASKS).items()
    ]


def register_metrics(
    registry: CollectorRegistry, capabilities: Sequence[Capability], failures: CapabilityFailures
) -> None:
    """Add the metrics of failures and capabilities; of one that fails, only its own are absent."""

    def guarded(capability: Capability) -> list[Metric]:
        return failures.call(capability.name, "metrics", lambda: [*capability.metrics()], [])

    registry.register(failures)
    for each in capabilities:
        registry.register(MetricSource(partial(guarded, each)))


def announce_to(
    capabilities: Sequence[Capability], failures: CapabilityFailures
) -> Callable[[Observation], None]:
    """Return a listener that passes an observation to each capability, and never raises."""

    def announce(observation: Observation) -> None:
        for each in capabilities:
            heard = partial(each.observed, observation)
            failures.call(each.name, "observation", heard, None)

    return announce


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
