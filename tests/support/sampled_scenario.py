"""A scenario of the demo with samples, a gap in them, and captions."""

from kafka_lab.loads import Load
from kafka_lab.scenario import Scenario
from kafka_lab.series import Series
from kafka_lab.traffic import Traffic


def sampled() -> Scenario:
    """Ten seconds from 100 s on; from 104 to 106 s, nobody took samples."""
    traffic = Traffic("", "t", bytes_per_s=8e6)
    scenario = Scenario(limit_bytes=50_000_000, loads=(Load("broker 2 (etl)", 8e6, None, traffic),))
    factors = Series()
    for tenth in range(101):
        at = 100.0 + tenth / 10
        if not 104.0 < at < 106.0:
            traffic.samples.add(at, 8e5 * tenth)
            scenario.free.add(at, 90e6 - 8e5 * tenth)
            factors.add(at, 1.0 if at < 108.0 else 0.0)
    scenario.factors = {0: Series([(100.0, 0.5)]), 2: factors}
    scenario.captions = [
        (101.0, "etl </script> writes."),
        (101.1, "It fills."),
        (108.0, "It waits."),
    ]
    return scenario
