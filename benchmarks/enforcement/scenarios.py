"""The scenarios: three or a hundred producers, librdkafka or Java, polled often or by default.

And a long throttle. librdkafka keeps what it can't send, here up to 1 GB of all three, dials anew
when its oldest records are as old as its message.timeout.ms (5 minutes), and pauses do not stop
that: so ours has the authorizer there. Java's client blocks with 32 MB each. What a large buffer
has taken in until the first acknowledgement is sent faster than that: so it is at full speed for
longer before the crossing.
"""

from typing import Final

from benchmarks.enforcement.contenders import DEFAULT, SHORTEST
from benchmarks.enforcement.scene import Scenario

_THREE: Final = "3 producers of 6 MB/s"
_HUNDRED: Final = "100 producers of 0.18 MB/s"
_LONG: Final = ", a long throttle"

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
    Scenario(
        "librdkafka-3-long",
        f"{_THREE}, librdkafka, a backlog of up to 1 GB{_LONG}",
        "librdkafka",
        3,
        SHORTEST,
        6.0,
        150.0,
        before_s=40.0,
        throttled_s=600.0,
        after_s=60.0,
        backlog_bytes=1 << 30,
        refuses=True,
        rounds=1,
    ),
    Scenario(
        "java-3-long",
        f"{_THREE}, Java, a backlog of up to 96 MB{_LONG}",
        "java",
        3,
        SHORTEST,
        6.0,
        150.0,
        before_s=40.0,
        throttled_s=600.0,
        after_s=60.0,
        refuses=True,
        rounds=1,
    ),
)
