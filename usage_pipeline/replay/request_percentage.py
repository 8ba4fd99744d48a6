"""Request time: a user's share of a broker thread's time, in percent (KIP-124).

``request_percentage`` is a percentage of one thread; a broker has (num.io.threads +
num.network.threads) x 100 %. The broker records a request's thread time as a percentage of a
second, and compares the rate of this value with the quota.

Example: 10 ms of thread time are 1 %, so a quota of 1 % allows 10 ms in a window of 1 s. (A client
that uses 10 ms at each full second is throttled all the same: at the eleventh second there are 110
ms in 10 s, which is 1.1 %.)

Source: Kafka's ClientRequestQuotaManager; KIP-124, "Quota Configuration".
"""

from typing import Final

_PERCENT_OF_A_SECOND: Final = 100.0 / 1_000_000_000


def percent(thread_time_ns: int) -> float:
    """Return the percentage of a second that a thread time (nanoseconds) is."""
    return thread_time_ns * _PERCENT_OF_A_SECOND
