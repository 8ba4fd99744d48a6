"""Partitions created and deleted by a controller's requests; ``test_usage`` shows the rest."""

from typing import Any

from sidecar.requestlog.line import Line
from sidecar.requestlog.mutation_counts import QUOTA_EXCEEDED, Mutations, TopicSizes
from sidecar.requestlog.request_detail import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS
from tests.requestlog.lines import parsed_line

DONE, REFUSED = 0, QUOTA_EXCEEDED


def test_the_modules_example() -> None:
    """Created with 12, grown to 24 and deleted: 12, 12 and 24; 12 when the growth was refused."""
    for error, deleted in ((DONE, 24), (REFUSED, 12)):
        sizes = TopicSizes()
        assert (Mutations(12, refused=False),) == sizes.mutations(created("t", 12))
        grown = sizes.mutations(line(CREATE_PARTITIONS, {"name": "t", "count": 24}, error))
        assert (Mutations(12, refused=error == REFUSED),) == grown
        assert (Mutations(deleted, refused=False),) == sizes.mutations(
            line(DELETE_TOPICS, {"name": "t"}, DONE)
        )


def test_each_topic_of_a_request_in_its_order() -> None:
    """What failed for another reason is left out, and what isn't known says so."""
    topics = [{"name": name, "numPartitions": count} for name, count in (("a", 1), ("b", 2))]
    both = line(
        CREATE_TOPICS,
        *topics,
        answers=[{"name": "a", "errorCode": 36}, {"name": "b", "errorCode": REFUSED}],
    )
    assert (Mutations(2, refused=True),) == TopicSizes().mutations(both)
    unknown = line(DELETE_TOPICS, {"name": "c"}, DONE)
    assert (Mutations(None, refused=False),) == TopicSizes().mutations(unknown)


def test_the_first_told_makes_room() -> None:
    """Of two topics with room for one the newer is known, and long names are one."""
    sizes = TopicSizes(most_topics=1, longest_name=3)
    sizes.learn({"old": 5, "newer": 7})
    deletions = [
        sizes.mutations(line(DELETE_TOPICS, {"name": name}, DONE)) for name in ("old", "newest")
    ]
    assert [(Mutations(None, refused=False),), (Mutations(7, refused=False),)] == deletions


def test_a_request_that_cant_be_read() -> None:
    """It has no mutations that could be told: None, unlike a request without any."""
    assert TopicSizes().mutations(parsed_line(CREATE_TOPICS, request={"topics": 1})) is None
    assert () == TopicSizes().mutations(line(CREATE_TOPICS))


def created(topic: str, partitions: int) -> Line:
    return line(CREATE_TOPICS, {"name": topic, "numPartitions": partitions}, DONE)


def line(api_key: int, *topics: Any, answers: Any = ()) -> Line:
    """A controller's line; an error in place of the answers' list is that of the last topic."""
    *requested, last = topics or (None,)
    if isinstance(last, int):
        answers = [{"name": requested[-1]["name"], "errorCode": last}]
    else:
        requested = list(topics)
    return parsed_line(
        api_key,
        isForwarded=True,
        request={"topics": requested},
        response={"topics": answers, "results": answers, "responses": answers},
    )
