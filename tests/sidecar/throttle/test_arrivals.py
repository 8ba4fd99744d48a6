"""What still arrives on the volumes of a broker."""

from collections.abc import Mapping

import pytest

from sidecar.throttle.arrivals import Arrivals, arrivals
from sidecar.throttle.growth import Placement, Replicas

P = ("orders", 0)
ARRIVES = Placement({}, {P: (1, 2)}, {}, {P: 90})


@pytest.mark.parametrize(
    ("log_dirs", "placement", "expected"),
    [
        ({"/a": {"orders": [(0, 20, False)]}}, ARRIVES, [Arrivals({P: 70})]),
        # It has more than its leader: nothing is taken away from what others lack.
        ({"/a": {"orders": [(0, 95, False)]}}, ARRIVES, [Arrivals({P: 0})]),
        # It has no log yet: only the broker's one log dir is known to get it.
        ({"/a": {}}, ARRIVES, [Arrivals({P: 90})]),
        ({"/a": {}, "/b": {}}, ARRIVES, [Arrivals(unknown=1)] * 2),
        # Its leader could not be read, or no reassignment.
        ({"/a": {}}, Placement({}, {P: (1, 2)}), [Arrivals(unknown=1)]),
        ({"/a": {}}, Placement(), [Arrivals(unknown=None)]),
        # A log-dir move lacks what the replica itself has more.
        (
            {"/a": {"orders": [(0, 50, False)]}, "/b": {"orders": [(0, 20, True)]}},
            Placement({}, {}),
            [Arrivals(), Arrivals({}, {P: 30})],
        ),
    ],
)
def test_what_partitions_lack(
    log_dirs: Mapping[str, Replicas], placement: Placement, expected: list[Arrivals]
) -> None:
    """Sizes here and on the leader, or in the other log dir, say what is missing, and where."""
    assert expected == [*arrivals(log_dirs, placement).values()]


def test_in_words() -> None:
    """What is not known only makes it more."""
    assert "Log-dir moves still bring 30 B" == str(Arrivals({P: 0}, {P: 30}))
    text = "Reassignments and log-dir moves still bring at least 100 B"
    assert text == str(Arrivals({P: 70}, {P: 30}, None))
