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


def test_at_the_stop_line_and_near_it() -> None:
    """At 10 available bytes it is at the line, up to 11 near it."""
    volume = Volume("/var/lib/kafka", 100, 30, stop_bytes=10)
    found = []
    for count, at in ((89, 1.0), (1, 2.0), (1, 3.0), (-2, 4.0), (-1, 5.0), (-1, 6.0)):
        if count > 0:
            volume.append(count, at, "")
        else:
            volume.free(-count, at)
        found.append((volume.stops_since, volume.is_near_stop, volume.near_stop_until))
    assert [
        (None, True, 0.0),
        (2.0, True, 0.0),
        (2.0, True, 0.0),
        (None, True, 0.0),
        (None, False, 5.0),
        (None, False, 5.0),
    ] == found
