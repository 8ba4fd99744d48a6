"""The tenants: users with a SCRAM credential, with ACLs or with quotas, or those of a file.

Example: on a cluster with the SCRAM users alice and bob, ``--tenants-from scram`` gives two tenants
with equal terms.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sidecar.errors import SettingsError
from sidecar.quotas.entities import PRINCIPAL_TYPE, ClientQuotas
from sidecar.quotas.request_time.fair_shares import Tenant
from sidecar.quotas.request_time.quota_plan import TenantKind
from sidecar.request_time.cluster_state import must
from sidecar.request_time.tenants_file import read_tenants

if TYPE_CHECKING:
    # Not at run time: the Kafka client is imported when brokers are asked.
    from sidecar.settings import KafkaAdmin

SCRAM: Final = "scram"
ACLS: Final = "acls"
QUOTAS: Final = "quotas"
OF_BROKERS: Final = (SCRAM, ACLS, QUOTAS)
"""The sources that are read from brokers; any other source is a file."""


@dataclass(frozen=True, slots=True)
class Source:
    """The source of the tenants.

    Attributes:
        name: one of ``OF_BROKERS``, or the path of a file.
        kind: whether tenants are users or client-ids; SCRAM and ACLs have only users.
    """

    name: str
    kind: TenantKind

    @property
    def of_brokers(self) -> bool:
        """Whether the tenants are read from brokers."""
        return self.name in OF_BROKERS

    def from_file(self) -> list[Tenant]:
        """Return the tenants of a file.

        Raises:
            SettingsError: the file can't be used; it lists every problem.
        """
        path = Path(self.name)
        if not path.exists():
            known = f"{', '.join(OF_BROKERS[:-1])} and {OF_BROKERS[-1]}"
            raise SettingsError((f"{self.name} is none of {known}, nor a file",))
        tenants = read_tenants(path)
        if self.kind is TenantKind.USERS:
            wrong = [each.name for each in tenants if each.name.startswith(PRINCIPAL_TYPE)]
            if wrong:
                text = f'{path}: name each user without "{PRINCIPAL_TYPE}":'
                raise SettingsError(tuple(f"{text} {name}" for name in wrong))
        return tenants

    async def read(self, admin: "KafkaAdmin", quotas: ClientQuotas) -> list[Tenant]:
        """Return the tenants; those from brokers are sorted by name.

        Args:
            admin: how to reach the brokers.
            quotas: the current quotas.

        Raises:
            BrokersError: no broker answered.
            SettingsError: the file can't be used; it lists every problem.
        """
        from sidecar.kafka.users import acl_users, scram_users  # noqa: PLC0415 - see above

        if self.name == SCRAM:
            names = must(await scram_users(admin))
        elif self.name == ACLS:
            names = must(await acl_users(admin))
        elif self.name == QUOTAS:
            names = with_quotas(quotas, self.kind)
        else:
            return self.from_file()
        return [Tenant(name) for name in sorted(names)]


def with_quotas(quotas: ClientQuotas, kind: TenantKind) -> frozenset[str]:
    """Return the names with a quota of any kind, alone or in combination."""
    named = (entity.user if kind is TenantKind.USERS else entity.client_id for entity in quotas)
    return frozenset(name for name in named if isinstance(name, str))


async def read_known(
    admin: "KafkaAdmin", quotas: ClientQuotas, kind: TenantKind
) -> frozenset[str] | None:
    """Return every name that the cluster knows, or None if that can't be read.

    A cluster keeps no list of client-ids. Without ACLs, it also does not know users who
    authenticate without SCRAM.
    """
    from sidecar.kafka.users import acl_users, scram_users  # noqa: PLC0415 - see above

    if kind is not TenantKind.USERS:
        return None
    answers = await asyncio.gather(scram_users(admin), acl_users(admin))
    users = [answer for answer in answers if isinstance(answer, frozenset)]
    if not any(users):
        return None
    return frozenset().union(*users, with_quotas(quotas, kind))
