"""Why Spark has failed, in Spark's own words."""

import pytest

from usage_pipeline.cli.spark_failures import trouble

TASK = (
    "py4j.protocol.Py4JJavaError: An error occurred while calling o80.parquet.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 0.0"
    " failed 1 times, most recent failure: Lost task 1.0 (TID 1) (localhost executor driver):"
)


@pytest.mark.parametrize(
    ("trace", "cause", "advice"),
    [
        (
            f"{TASK} [TASK_WRITE_FAILED] Task failed while writing rows to file:/x. SQLSTATE: 58030"
            "\n\tat org.apache.spark.X.y(X.scala:1)"
            "\nCaused by: a.hadoop.fs.FSError: java.io.IOException: No space left on device"
            "\n\t... 1 more",
            "a disk is full (No space left on device)",
            "SPARK_LOCAL_DIRS",
        ),
        (
            f"{TASK} x\nCaused by: java.lang.OutOfMemoryError: Java heap space\n",
            "the JVM has too little memory (Java heap space)",
            "--conf spark.driver.memory=4g",
        ),
        (
            f"{TASK} org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)."
            " Consider\n\tat org.apache\nCaused by: java.io.EOFException\n",
            "a Python worker has ended",
            "--master 'local[2]'",
        ),
        (
            f"{TASK} java.io.IOException: Mkdirs failed to create file:/proc/x (exists=false)",
            "Spark has no permission to write",
            "check the permissions of --out",
        ),
        (
            "java.lang.IllegalStateException: stopped\nAll masters are unresponsive! Giving up.",
            "no Spark master answers",
            "correct --master",
        ),
        (
            "ConnectionResetError: [Errno 104] Connection reset by peer\n"
            "py4j.protocol.Py4JNetworkError: Error while sending or receiving\n",
            "the JVM has ended",
            "see `dmesg`",
        ),
    ],
)
def test_a_known_cause_is_reported_with_what_to_do(trace: str, cause: str, advice: str) -> None:
    """The line that states the cause is printed, without the classes that said it."""
    found = trouble(trace)
    assert (True, True) == (found.cause.startswith(cause), advice in found.advice)


def test_a_jvm_that_ended_may_have_said_why() -> None:
    """It says so on standard error: the client knows only that it is gone."""
    gone = "py4j.protocol.Py4JNetworkError: Answer from Java side is empty"
    assert "the JVM has ended" == trouble(gone, "WARNING: Using incubator modules").cause
    said = "WARNING: x\nTerminating due to java.lang.OutOfMemoryError: Java heap space\n"
    assert trouble(gone, said).cause.startswith("the JVM has too little memory")


def test_what_our_own_code_says_in_a_worker_is_reported_as_it_is() -> None:
    """The text is written for a person, and says what to do."""
    trace = (
        "pyspark.errors.exceptions.captured.PythonException: An exception was thrown\n"
        'Traceback (most recent call last):\n  File "x.py", line 1, in y\n'
        "usage_pipeline.streaming.source_offsets.LostLinesError: what was the log /l is gone: put"
        " it back\n\n"
    )
    assert "what was the log /l is gone: put it back" == trouble(trace).cause


def test_what_is_not_known_is_its_last_cause() -> None:
    """The cause is printed with its kind; a text without end is cut."""
    trace = (
        f"{TASK} a.b.CException: outer\n\tat x\nCaused by: a.b.DException: middle\n\tat y\n"
        "Caused by: java.io.EOFException\n"
    )
    assert ("DException: middle", "") == (trouble(trace).cause, trouble(trace).advice)
    assert 303 == len(trouble(f"a.BError: {'x' * 1000}").cause)
    assert "odd" == trouble("something\nodd\n").cause
