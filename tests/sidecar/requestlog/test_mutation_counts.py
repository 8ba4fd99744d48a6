"""Partitions that a controller's requests create and delete; ``test_client_usage`` has the rest."""

from sidecar.requestlog.mutation_counts import QUOTA_EXCEEDED, Mutations, TopicSizes
from sidecar.requestlog.request_detail import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS
from tests.sidecar.requestlog.lines import parsed_line, topics_line

DONE, REFUSED = 0, QUOTA_EXCEEDED


def test_the_modules_example() -> None:
    """A topic is created with 12, grown to 24 and deleted: 12, 12, 24; with a refused growth 12."""
    for error, deleted in ((DONE, 24), (REFUSED, 12)):
        sizes = TopicSizes()
        created = topics_line(CREATE_TOPICS, {"name": "t", "numPartitions": 12})
        grown = topics_line(CREATE_PARTITIONS, {"name": "t", "count": 24}, error=error)
        assert (Mutations(12, refused=False),) == sizes.mutations(created)
        assert (Mutations(12, refused=error == REFUSED),) == sizes.mutations(grown)
        gone = sizes.mutations(topics_line(DELETE_TOPICS, {"name": "t"}))
        assert (Mutations(deleted, refused=False),) == gone


def test_each_topic_of_a_request_in_its_order() -> None:
    """A topic that failed for another reason is left out, an unknown size is reported as such."""
    topics = [{"name": name, "numPartitions": count} for name, count in (("a", 1), ("b", 2))]
    answers = [{"name": "a", "errorCode": 36}, {"name": "b", "errorCode": REFUSED}]
    both = topics_line(CREATE_TOPICS, *topics, response={"topics": answers})
    assert (Mutations(2, refused=True),) == TopicSizes().mutations(both)
    unknown = topics_line(DELETE_TOPICS, {"name": "c"})
    assert (Mutations(None, refused=False),) == TopicSizes().mutations(unknown)


def test_a_request_that_cant_be_read() -> None:
    """Its mutations are None, unlike those of a request without any."""
    assert TopicSizes().mutations(parsed_line(CREATE_TOPICS, request={"topics": 1})) is None
    assert () == TopicSizes().mutations(topics_line(CREATE_TOPICS))
