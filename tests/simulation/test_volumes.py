"""Volumes of the simulated world."""

from tests.simulation.volumes import Volume


def test_a_violation_of_a_moment_is_not_forgotten() -> None:
    """Sidecars may have seen it, so the claims ask when it ended; found by seed 335."""
    volume = Volume("/var/lib/kafka", 100, 10)

    def violates() -> tuple[float | None, float]:
        return volume.violates_since, volume.violated_until

    volume.append(80, 1.0, "")
    assert (None, 0.0) == violates()
    volume.append(15, 2.0, "")
    assert (2.0, 0.0) == violates()
    volume.free(50, 2.1)
    assert (None, 2.1) == violates()
    volume.free(1, 3.0)
    assert (None, 2.1) == violates()
