"""Logs are searched for tracebacks, ended tasks and the callback's exceptions."""

from tests.chaos.found import callback_errors, ended_tasks, tracebacks

GROUP = """2026-11-21T03:12:30.123Z INFO    all is well
  + Exception Group Traceback (most recent call last):
  |   File "x.py", line 1, in main
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
"""
TWO = """2026-11-21T03:12:30.123Z ERROR   history: append failed because of a bug in the sidecar
Traceback (most recent call last):
  File "x.py", line 1, in append
    return self.files[3]
           ~~~~~~~~~~^^^
KeyError: 3

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "x.py", line 1, in append
sidecar.errors.ClusterError: gone
2026-11-21T03:12:31.123Z INFO    all is well
"""
KAFKA = """[2026-11-21 03:12:30,123] ERROR a request failed (kafka.server.KafkaApis)
java.lang.ClassCastException: no Rate
\tat org.apache.kafka.Sensor.record(Sensor.java:1)
\tat throttlesidecar.Quotas.next(Quotas.java:2)
\tat throttlesidecar.Quotas.tagSet(Quotas.java:3)
[2026-11-21 03:12:31,123] WARN a disk is full (kafka.log.LogManager)
java.io.IOException: No space left on device
\tat org.apache.kafka.Log.append(Log.java:1)
[2026-11-21 03:12:32,123] WARN The quota callback's reader continues after X (throttlesidecar.A)
"""


def test_each_traceback_is_one_line() -> None:
    """By what was raised; also that of a group."""
    assert ["s: KeyError: 3", "s: sidecar.errors.ClusterError: gone"] == tracebacks("s", TWO)
    (group,) = tracebacks("s", GROUP)
    assert "ExceptionGroup" in group
    assert [] == tracebacks("s", "2026-11-21T03:12:30.123Z ERROR   broker 0: connection refused\n")


def test_a_traceback_that_was_cut_is_one_all_the_same() -> None:
    """As a process leaves it that is killed while it writes."""
    cut = "Traceback (most recent call last):\n  File"
    assert ["s: a traceback without its end"] == tracebacks("s", cut)


def test_ended_tasks() -> None:
    """By the line that says so."""
    (line,) = ended_tasks("sidecar 1", TWO)
    assert "sidecar 1: " in line
    assert "history: append failed" in line
    assert ["s: the task poller ended by itself"] == ended_tasks(
        "s", "the task poller ended by itself"
    )


def test_the_callback_s_exceptions() -> None:
    """Kafka's own are not: brokers whose peers are killed log many."""
    first, second = callback_errors("broker 0", KAFKA)
    assert "broker 0: java.lang.ClassCastException: no Rate" == first
    assert "reader continues" in second
