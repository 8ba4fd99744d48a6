"""The scenarios: three or a hundred producers, librdkafka or Java, polled often or by default."""

from typing import Final

from benchmarks.enforcement.contenders import DEFAULT, SHORTEST
from benchmarks.enforcement.scene import Scenario

_THREE: Final = "3 producers of 6 MB/s"
_HUNDRED: Final = "100 producers of 0.18 MB/s"

SCENARIOS: Final = (
    Scenario("librdkafka-3", f"{_THREE}, librdkafka", "librdkafka", 3, SHORTEST, 6.0, 90.0),
    Scenario("java-3", f"{_THREE}, Java", "java", 3, SHORTEST, 6.0, 90.0),
    Scenario("librdkafka-100", f"{_HUNDRED}, librdkafka", "librdkafka", 100, SHORTEST, 6.0, 90.0),
    Scenario("java-100", f"{_HUNDRED}, Java", "java", 100, SHORTEST, 6.0, 90.0),
    # A minute passes until the plugin polls, and a minute more until it sees the space.
    Scenario(
        "librdkafka-3-default",
        f"{_THREE}, librdkafka, default intervals",
        "librdkafka",
        3,
        DEFAULT,
        66.0,
        150.0,
        before_s=75.0,
    ),
    Scenario(
        "java-3-default",
        f"{_THREE}, Java, default intervals",
        "java",
        3,
        DEFAULT,
        66.0,
        150.0,
        before_s=75.0,
    ),
)
