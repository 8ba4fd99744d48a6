"""The options of every command that plans: the capacity to share, and the tenants.

Example: ``--tenants 50 --capacity 6400`` gives each tenant without a quota of its own 128 %.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import click

from sidecar.errors import PlanError
from sidecar.formats.gathered_options import finite, gathered, read_by
from sidecar.quotas.request_time.fair_shares import Tenant
from sidecar.quotas.request_time.quota_plan import Plan, TenantKind, Terms, equal_plan, named_plan
from sidecar.request_time.tenants import Source

_R = TypeVar("_R")

_PERCENT: Final = click.FloatRange(min=0.0, min_open=True)
_FINITE: Final = read_by(finite, click.BadParameter, ValueError)


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """The options as they are on the command line.

    Attributes:
        tenants: the number of tenants; None if they are read from a source.
        tenants_from: a source's name, or a file; None if only the number is known.
        as_default: whether to plan one share for the default entity instead of one for each name.
        capacity_percent: the capacity to share, instead of what the brokers report.
        reserve_percent: the part of the capacity that is reserved for internal users.
        internal: the users that share the reserve.
        default_percent: the quota of tenants that are not named.
        kind: whether tenants are users or client-ids; None means users where it matters.
    """

    tenants: int | None = None
    tenants_from: str | None = None
    as_default: bool = False
    capacity_percent: float | None = None
    reserve_percent: float = 0.0
    internal: tuple[str, ...] = ()
    default_percent: float | None = None
    kind: TenantKind | None = None

    def __post_init__(self) -> None:
        """Refuse options that exclude each other."""
        if self.tenants is not None and self.tenants_from is not None:
            raise click.UsageError("give --tenants or --tenants-from, not both")
        is_default = self.as_default or self.tenants is not None
        if is_default and self.default_percent is not None:
            raise click.UsageError(
                "--default is the quota of tenants that are not named; with --as-default the"
                " default entity already has the share"
            )
        if self.internal and not self.reserve_percent:
            raise click.UsageError("--internal users share a --reserve")

    @property
    def tenant_kind(self) -> TenantKind:
        """Whether tenants are users or client-ids."""
        return self.kind or TenantKind.USERS

    @property
    def source(self) -> Source | None:
        """The source of the tenants; None if only their number is known."""
        return None if self.tenants_from is None else Source(self.tenants_from, self.tenant_kind)

    def plan(self, capacity_percent: float, tenants: list[Tenant] | None) -> Plan:
        """Return the plan: the share of each tenant.

        Args:
            capacity_percent: the capacity to share.
            tenants: the tenants; None if only their number is known.

        Raises:
            PlanError: there is no capacity to share, or no tenant.
        """
        try:
            return self._plan(capacity_percent, tenants)
        except ValueError as error:
            raise PlanError(f"nothing can be planned: {error}") from error

    def _plan(self, capacity_percent: float, tenants: list[Tenant] | None) -> Plan:
        terms = Terms(capacity_percent, self.reserve_percent, self.internal, self.default_percent)
        if tenants is None:
            return equal_plan(terms, self.tenants or 0)
        if not tenants:
            raise ValueError(f"there is no tenant in {self.tenants_from}")
        if not self.as_default:
            return named_plan(terms, tenants)
        sharing = [tenant for tenant in tenants if tenant.name not in self.internal]
        if any(tenant != Tenant(tenant.name) for tenant in sharing):
            raise ValueError("one default can't have weights, minimums or maximums")
        return equal_plan(terms, len(sharing))


def plan_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Give a command ``options: PlanOptions``."""
    return gathered(function, "options", PlanOptions, *_OPTIONS)


_OPTIONS: Final = (
    click.option(
        "--tenants",
        type=click.IntRange(min=1),
        metavar="N",
        help="The number of tenants with unknown names: an equal share for each, as the default.",
    ),
    click.option(
        "--tenants-from",
        metavar="scram|acls|quotas|FILE",
        help="The tenants by name: users with a SCRAM credential, with ACLs or with quotas, or a"
        " file: a name a line; or, in a .toml file, tables under [tenants] with weight, minimum"
        " and maximum: alice = { weight = 2 }.",
    ),
    click.option(
        "--as-default",
        is_flag=True,
        help="One equal share for the default, instead of one for each tenant by name.",
    ),
    click.option(
        "--capacity",
        "capacity_percent",
        type=_PERCENT,
        callback=_FINITE,
        metavar="PERCENT",
        help="What there is to share, instead of the smallest broker's"
        " (num.io.threads + num.network.threads) x 100.",
    ),
    click.option(
        "--reserve",
        "reserve_percent",
        type=click.FloatRange(min=0.0),
        callback=_FINITE,
        default=0.0,
        metavar="PERCENT",
        help="Reserved from it for internal users.",
    ),
    click.option(
        "--internal",
        multiple=True,
        metavar="NAME",
        help="A user, or client-id, with an equal part of the reserve; may be repeated.",
    ),
    click.option(
        "--default",
        "default_percent",
        type=_PERCENT,
        callback=_FINITE,
        metavar="PERCENT",
        help="For whoever is not named, each of them.",
    ),
    click.option(
        "--entity-type",
        "kind",
        type=click.Choice([kind.value for kind in TenantKind]),
        callback=read_by(TenantKind, click.BadParameter),
        help="What identifies a tenant: users, without this option.",
    ),
)
