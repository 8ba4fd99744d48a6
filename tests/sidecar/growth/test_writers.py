"""Who writes to a topic, by the lines of a request log."""

import pytest

from sidecar.growth.writers import MOST_PAIRS, MOST_USERS, Writers
from sidecar.requestlog.line import Line
from tests.sidecar.requestlog.lines import REAL, parsed_line, read


def produce(user: str, nbytes: int, **topic: str) -> Line:
    """A PRODUCE of a user."""
    sizes = {"partitionData": [{"index": 0, "recordsSizeInBytes": nbytes}]}
    request = {"acks": -1, "topicData": [{**topic, **sizes}]}
    return parsed_line(0, principal=f"User:{user}", request=request)


def counting() -> Writers:
    """Writers that are wanted."""
    return Writers(is_wanted=True)


def test_by_name_and_by_id() -> None:
    """Newer clients send a topic's id, older ones its name; both are one topic."""
    writers = counting()
    writers.count(produce("etl", 300, name="orders"), 100.0)
    writers.count(produce("etl", 300, topicId="ID"), 110.0)
    writers.count(produce("web", 900, topicId="ID"), 110.0)
    assert {"web": 30.0, "etl": 20.0} == writers.writers_to("orders", "ID", 130.0)


def test_the_minute_before_counts() -> None:
    """It does until the current minute ends."""
    writers = counting()
    writers.count(produce("etl", 600, name="orders"), 100.0)
    assert {"etl": 600 / 90} == writers.writers_to("orders", None, 190.0)
    assert {} == writers.writers_to("orders", None, 220.0)


def test_after_a_minute_without_lines() -> None:
    """That minute counts too, so that the first write after it is not a rate of a second."""
    writers = counting()
    writers.count(produce("etl", 1, name="orders"), 100.0)
    for now in (160.0, 220.0, 280.0):
        writers.writers_to("orders", None, now)
    writers.count(produce("etl", 610, name="orders"), 281.0)
    assert {"etl": 10.0} == writers.writers_to("orders", None, 281.0)


def test_a_real_line() -> None:
    """A broker's own PRODUCE is counted; other requests and odd ones are not."""
    writers = counting()
    for line in (*map(read, REAL), parsed_line(0, request={"topicData": 7})):
        writers.count(line, 100.0)
    assert ["ANONYMOUS"] == list(writers.writers_to("t1", None, 101.0))


def test_what_kafka_refused_is_not_written() -> None:
    """A client without an ACL fills nothing, however often it tries."""
    writers = counting()
    for user, index in (("denied", 0), ("etl", 1)):
        answers = [{"index": 0, "errorCode": 29}, {"index": 1, "errorCode": 0}]
        response = {"responses": [{"name": "orders", "partitionResponses": [answers[index]]}]}
        sizes = [{"index": index, "recordsSizeInBytes": 600}]
        request = {"acks": -1, "topicData": [{"name": "orders", "partitionData": sizes}]}
        own = {"principal": f"User:{user}", "request": request, "response": response}
        writers.count(parsed_line(0, **own), 100.0)
    assert {"etl": 60.0} == writers.writers_to("orders", None, 110.0)


def test_nobody_wants_to_know() -> None:
    """Nothing is decoded or counted."""
    writers = Writers()
    writers.count(produce("etl", 600, name="orders"), 100.0)
    assert {} == writers.writers_to("orders", None, 101.0)


def test_lines_are_wanted_again() -> None:
    """What nobody counted before is no time in which nobody wrote."""
    writers = Writers()
    assert {} == writers.writers_to("orders", None, 0.0) == writers.writers_to("orders", None, 90.0)
    for now in (95.0, 100.0):
        writers.want(is_wanted=True, now=now)
    writers.count(produce("etl", 600, name="orders"), 100.0)
    assert {"etl": 60.0} == writers.writers_to("orders", None, 105.0)


@pytest.mark.slow
def test_bounds() -> None:
    """The number of pairs in a minute is, and that of users told for a topic."""
    writers = counting()
    for number in range(MOST_PAIRS + 10):
        writers.count(produce(f"u{number}", number, name="orders"), 100.0)
    found = writers.writers_to("orders", None, 101.0)
    assert [f"u{MOST_PAIRS - each}" for each in range(1, MOST_USERS + 1)] == list(found)
