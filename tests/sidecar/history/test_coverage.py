"""Where the readings of a history are missing."""

from sidecar.history.coverage import Coverage, Gap
from tests.sidecar.throttle.build import reading, whole


def covered(*course: tuple[float, dict[int, str]]) -> Coverage:
    """Readings of brokers with a log dir each, at these times; valid for 300 s."""
    coverage = Coverage(300.0)
    for at, log_dirs in course:
        answers = [reading(broker, at, {path: 50}) for broker, path in log_dirs.items()]
        coverage.see(whole(at, answers))
    return coverage


def test_a_gap_is_from_the_end_of_a_reading_s_validity_to_the_next_reading() -> None:
    """A reading is still valid at its end."""
    both = {1: "/d", 2: "/d"}
    coverage = covered((0.0, both), (300.0, both), (600.5, both), (2000.0, both))
    expected = [
        Gap(600.0, 600.5, ((1, "/d"), (2, "/d"))),
        Gap(900.5, 2000.0, ((1, "/d"), (2, "/d"))),
    ]
    assert expected == coverage.gaps
    assert [] == list(coverage.partial())


def test_the_gap_of_one_log_dir_is_a_gap() -> None:
    """Another broker's readings, or those of the broker's other log dir, do not hide it."""
    course = [(300.0 * number, {1: "/d", 2: "/d"}) for number in range(5)]
    course[1] = (300.0, {1: "/d"})
    course[2] = (600.0, {1: "/d", 2: "/other"})
    coverage = covered(*course)
    assert [Gap(300.0, 900.0, ((2, "/d"),))] == coverage.gaps
    assert [((2, "/other"), 600.0, 600.0)] == list(coverage.partial())


def test_an_offline_log_dir_is_read() -> None:
    """Its broker answered that it has no sizes."""
    coverage = Coverage(300.0)
    for number in range(4):
        at = 300.0 * number
        coverage.see(whole(at, [reading(1, at, offline=["/d"])]))
    assert ([], []) == (coverage.gaps, list(coverage.partial()))


def test_missing_times_of_several_volumes_are_joined() -> None:
    """Each counts once, also one that is within another."""
    coverage = covered(
        (0.0, {1: "/d"}),
        (100.0, {2: "/d"}),
        (1000.0, {2: "/d"}),
        (1100.0, {1: "/d"}),
        (1300.0, {1: "/d"}),
        (1350.0, {2: "/d"}),
        (1500.0, {1: "/d", 2: "/d"}),
    )
    assert [(300.0, 1100.0), (1300.0, 1350.0)] == coverage.missing()


def test_a_broker_whose_readings_end_or_begin_has_no_gap_there() -> None:
    """It may have been removed or added."""
    coverage = covered((0.0, {1: "/d", 2: "/d"}), (300.0, {1: "/d"}), (600.0, {1: "/d", 3: "/d"}))
    assert [] == coverage.gaps
    assert [((2, "/d"), 0.0, 0.0), ((3, "/d"), 600.0, 600.0)] == list(coverage.partial())


def test_the_usual_step_is_a_broker_s_own_median() -> None:
    """A gap of days does not change it, and another broker does not hide it."""
    course = [(300.0 * number, {1: "/d"}) for number in range(10)]
    days = 2 * 86_400.0
    assert {} == covered(*course, (course[-1][0] + days, {1: "/d"})).long_steps()
    hourly = [(3600.0 * number, {2: "/d"}) for number in range(3)]
    assert {1: 301} == covered(*((301.0 * number, {1: "/d"}) for number in range(3))).long_steps()
    assert {2: 3600} == covered(*sorted([*course, *hourly], key=lambda each: each[0])).long_steps()
