"""A rogue's course that is made by hand."""

from benchmarks.producer_ids.course import Course
from kafka_lab.series import Series

BEGAN, SETTLED, ENDED = 100.0, 110.0, 128.0


def course(variant: str = "both", brokers: int = 1, a_second: float = 0.5) -> Course:
    """Returns 30 ids a second for 3 s; then some a second, of which nine tenths are used."""
    slow = a_second * (ENDED + 1.0 - BEGAN - 3.0)
    allocated = [(BEGAN, 0.0), *((round(BEGAN + 0.1 * n, 1), 3.0 * n) for n in range(1, 31))]
    return Course(
        variant=variant,
        brokers=brokers,
        clients=16,
        began_at=BEGAN,
        settled_at=SETTLED,
        ended_at=ENDED,
        throttled_at=BEGAN + 2.5,
        allocated=Series([*allocated, (ENDED + 1.0, 90.0 + slow)]),
        counted=Series(
            [
                (BEGAN - 1.0, 500.0),
                (BEGAN, 500.0),
                (BEGAN + 3.0, 590.0),
                (ENDED + 1.0, 590.0 + 0.9 * slow),
            ]
        ),
        # 5 MB/s, but 2 in one second.
        neighbour=Series(
            [(99.0, 0.0), (120.0, 105e6), (121.0, 107e6), (ENDED + 1.0, 107e6 + 5e6 * 8.0)]
        ),
        throttle_ms={"INIT_PRODUCER_ID": 1000, "PRODUCE": 4100, "METADATA": 9000},
        neighbour_throttled_ms=7,
    )
