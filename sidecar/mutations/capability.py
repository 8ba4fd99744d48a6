"""The capability that admits controller mutations (KIP-599): one route, and reading quotas."""

from collections.abc import Callable, Mapping

from fastapi import FastAPI

from sidecar.control.capability import Build, Capability, Services, Task
from sidecar.control.known_cluster import ask_known_cluster
from sidecar.kafka.client_quotas import describe_client_quotas
from sidecar.mutations.routes import add_admissions
from sidecar.mutations.service import ControllerMutations
from sidecar.quotas.mutations.admissions import MutationAdmissions
from sidecar.settings import Settings


def prepare(settings: Settings) -> Build:
    """Return the function that builds the capability; it never prevents a start."""
    admin = settings.kafka_admin

    def build(services: Services) -> Capability:
        if admin is None:
            return MutationCapability(None)
        return MutationCapability(
            ControllerMutations(
                MutationAdmissions(
                    settings.controller_mutations_algorithm, settings.mutation_window
                ),
                admin,
                read=lambda admin, timeout_s: ask_known_cluster(
                    admin, services.board, describe_client_quotas, timeout_s
                ),
                clock=services.board.now,
                validity_s=settings.validity_s,
            )
        )

    return build


class MutationCapability(Capability):
    """Judges controller mutations by the brokers' quotas."""

    name = "mutations"

    def __init__(self, mutations: ControllerMutations | None) -> None:
        self._mutations = mutations

    def tasks(self) -> Mapping[str, Task]:
        """The task that reads the quotas while requests come."""
        if self._mutations is None:
            return {}
        return {"controller mutation quotas": self._mutations.run}

    def add_routes(self, app: FastAPI) -> None:
        """The route. Without brokers it answers that there are none."""
        add_admissions(app, None if self._mutations is None else self._mutations.admit)

    def reload(self, settings: Settings, *, redial: bool = True) -> Callable[[], None]:
        """Use new addresses and credentials from the next read on."""
        mutations, admin = self._mutations, settings.kafka_admin
        if mutations is None or admin is None:
            return super().reload(settings, redial=redial)
        return lambda: mutations.reload(admin)
