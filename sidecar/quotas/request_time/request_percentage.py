"""Request time: what of one broker thread's time a user takes, in percent (KIP-124).

``request_percentage`` is of one thread, out of (num.io.threads + num.network.threads) x 100. What
is recorded is the percentage of a second that a request's thread time is; its rate per second is
the percentage that is compared with the quota.

Example: 10 ms of thread time are 1 %; a quota of 1 % allows 10 ms in a window of 1 s. (10 ms at
each full second are throttled all the same: at the eleventh there are 110 ms in 10 s, 1.1 %.)

Source: Kafka's ClientRequestQuotaManager; KIP-124, "Quota Configuration".
"""

from typing import Final

_PERCENT_OF_A_SECOND: Final = 100.0 / 1_000_000_000


def percent(thread_time_ns: int) -> float:
    """What is recorded for this much thread time, nanoseconds: the percentage of a second."""
    return thread_time_ns * _PERCENT_OF_A_SECOND
