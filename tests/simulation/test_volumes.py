"""Volumes of the simulated world."""

from tests.simulation.volumes import Volume


def test_a_violation_of_a_moment_is_not_forgotten() -> None:
    """Sidecars may have seen it, so the claims ask when it ended; found by seed 335."""
    volume = Volume("/var/lib/kafka", 100, 10)
    volume.append(80, 1.0, "")
    assert volume.violates_since is None
    volume.append(15, 2.0, "")
    assert volume.violates_since == 2.0
    volume.free(50, 2.1)
    assert volume.violates_since is None
    assert volume.violated_until == 2.1
    volume.free(1, 3.0)
    assert volume.violated_until == 2.1
