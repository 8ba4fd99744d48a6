"""The API against its own OpenAPI document: schemathesis tries what the document allows and not."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from sidecar.metrics.board_collector import build_registry
from sidecar.quotas.entities import DEFAULT, Entity
from sidecar.quotas.mutations.admissions import AdmissionRequest, Judged, MutationAdmissions, Muted
from sidecar.quotas.rate import QuotaWindow
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.volumes import Failure
from tests.sidecar.api.build import BEARER, FACTORS, FakeSidecar
from tests.sidecar.throttle.build import reading, whole, with_rules
from tests.support.examples import DEAR

# What the format "duration" means here, with the rule that a schema can't state: 0 < it <= P30D.
schemathesis.openapi.format(
    "duration",
    st.one_of(
        st.integers(1, 30).map(lambda days: f"P{days}D"),
        st.integers(1, 720).map(lambda hours: f"PT{hours}H"),
        st.builds("PT{}M{}.5S".format, st.integers(0, 600), st.integers(0, 59)),
    ),
)

# A reason. A pattern in the schema would say it too, but schemathesis breaks patterns by changes
# that they allow, now and then, and calls the answer wrong.
schemathesis.openapi.format(
    "line",
    st.text(
        st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=500
    ).filter(str.strip),
)


_admissions = MutationAdmissions("token-bucket", QuotaWindow())
_admissions.set_quotas({Entity(DEFAULT): {"controller_mutation_rate": 5.0}})


async def _admit(asked: AdmissionRequest) -> Judged | Muted | Failure:
    """Every user has 5 partitions a second, on a clock that stands still: 429 comes soon."""
    return _admissions.admit(asked, 0)


def _sidecar() -> FakeSidecar:
    """A short validity, since it bounds how long a reader may wait."""
    first = FakeSidecar()
    registry = build_registry(first.board, first.wall)
    sidecar = FakeSidecar(
        factors=with_rules(FACTORS, validity_s=0.05, stop_line=MinAvailableBytes(5)),
        registry=registry,
        admit=_admit,
    )
    sidecar.see(whole(0.0, [reading(1, 0.0, {"/d1": 5, "/d2": 50}, offline=["/d3"])]))
    sidecar.see(whole(0.01, [reading(1, 0.01, {"/d1": 5, "/d2": 49})], silent=[2], fenced=[3]))
    return sidecar


schema = schemathesis.openapi.from_asgi("/openapi.json", _sidecar().app)


# One test, with and without the token: each worker makes the cases of a test anew, for seconds.
# So make check does not even import it.
@pytest.mark.slow
@pytest.mark.timeout(60)
@schema.parametrize()
@settings(DEAR, suppress_health_check=list(HealthCheck))
def test_answers_are_as_documented(case: schemathesis.Case[Any]) -> None:
    """Statuses, headers and bodies match it; bad input and a missing token are refused."""
    case.call_and_validate(headers=BEARER)
    case.call_and_validate()
