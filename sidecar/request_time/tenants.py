"""Who the tenants are: users with a SCRAM credential, with ACLs or with quotas, or a file's.

Example: ``--tenants-from scram`` on a cluster with SCRAM users alice and bob is two tenants alike.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sidecar.errors import SettingsError
from sidecar.quotas.entities import ClientQuotas
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
"""The sources that brokers have; any other is a file."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the tenants are read from.

    Attributes:
        name: one of ``OF_BROKERS``, or a file's path.
        kind: what distinguishes them; SCRAM and ACLs know users only.
    """

    name: str
    kind: TenantKind

    @property
    def of_brokers(self) -> bool:
        """Whether brokers have to be asked."""
        return self.name in OF_BROKERS

    def from_file(self) -> list[Tenant]:
        """The tenants of a file.

        Raises:
            SettingsError: with every problem found.
        """
        path = Path(self.name)
        if not path.exists():
            known = f"{', '.join(OF_BROKERS[:-1])} and {OF_BROKERS[-1]}"
            raise SettingsError((f"{self.name} is none of {known}, nor a file",))
        return read_tenants(path)

    async def read(self, admin: "KafkaAdmin", quotas: ClientQuotas) -> list[Tenant]:
        """The tenants, those of brokers by name.

        Args:
            admin: how to reach the brokers.
            quotas: of today.

        Raises:
            BrokersError: no broker answered.
            SettingsError: with every problem in the file.
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
    """The names that have a quota of any kind, alone or together with others."""
    named = (entity.user if kind is TenantKind.USERS else entity.client_id for entity in quotas)
    return frozenset(name for name in named if isinstance(name, str))


async def read_known(
    admin: "KafkaAdmin", quotas: ClientQuotas, kind: TenantKind
) -> frozenset[str] | None:
    """Every name that the cluster knows; None: it can't be read.

    Client-ids are not known anywhere, nor are users who authenticate without SCRAM where there are
    no ACLs.
    """
    from sidecar.kafka.users import acl_users, scram_users  # noqa: PLC0415 - see above

    if kind is not TenantKind.USERS:
        return None
    answers = await asyncio.gather(scram_users(admin), acl_users(admin))
    users = [answer for answer in answers if isinstance(answer, frozenset)]
    if not any(users):
        return None
    return frozenset().union(*users, with_quotas(quotas, kind))
