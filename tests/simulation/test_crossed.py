"""A decision of each origin meets each kind of fault."""

import pytest

from tests.simulation.crossed import plan
from tests.simulation.faults import Kind
from tests.simulation.moments import Origin
from tests.simulation.situations import decided
from tests.simulation.world import run


@pytest.mark.rare
def test_each_origin_meets_each_kind() -> None:
    """A new kind of fault joins by itself."""
    report = run(plan())
    assert [] == [*report.violations]
    names = (decided(origin, kind) for origin in Origin for kind in Kind)
    assert [] == [name for name in names if name not in report.reached]
