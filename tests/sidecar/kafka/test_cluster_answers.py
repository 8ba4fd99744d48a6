"""What the brokers' answers mean."""

from typing import Any

import pytest

from sidecar.kafka.cluster_answers import ClusterList, both_lists, read_cluster, read_log_dirs
from sidecar.kafka.cluster_messages import (
    DescribeClusterResponseV0,
    DescribeClusterResponseV1,
    DescribeClusterResponseV2,
    DescribeLogDirsResponseV4,
    DescribeLogDirsResponseV5,
)
from sidecar.settings import HostPort
from sidecar.volumes import Failure, FailureKind, Membership, OfflineLogDir, Reading, Volume
from tests.sidecar.kafka.servers import failed

ASKED = HostPort("b0", 9092)
LONG_MAX = 2**63 - 1


def cluster_v2(*brokers: tuple[Any, ...], error: int = 0, text: str | None = None) -> Any:
    listed = [(*each, {}) for each in brokers]
    return DescribeClusterResponseV2(0, error, text, 1, "c1", 1, listed, -1, {})


def log_dirs(*results: tuple[Any, ...], error: int = 0) -> Any:
    return DescribeLogDirsResponseV4(0, error, [(*each, {}) for each in results], {})


def read(response: Any) -> Reading | Failure:
    return read_log_dirs(response, 3, 17.0, "throttle-sidecar")


def test_unfenced_brokers_are_active() -> None:
    """Version 2 has active brokers and fenced ones."""
    answer = cluster_v2((1, "b1", 9092, "a", False), (2, "b2", 9093, "b", True))
    expected = ClusterList(
        Membership("c1", active={1: "b1:9092"}, fenced={2: "b2:9093"}),
        {1: HostPort("b1", 9092)},
        {1: "a"},
        {},
    )
    assert expected == read_cluster(answer, ASKED)


def test_an_address_that_an_old_list_shares_is_nobodys() -> None:
    """Broker 2 is active in the old list alone, at the address that broker 1 had then."""
    new, old = (
        read_cluster(cluster_v2((1, "b1", port, None, False), two), ASKED)
        for port, two in (
            (9094, (2, "b1", 9093, None, True)),
            (9092, (2, "b1", 9092, None, False)),
        )
    )
    assert isinstance(new, ClusterList)
    assert isinstance(old, ClusterList)
    assert {} == new.shared
    assert {1, 2} == old.shared.keys()
    both = both_lists(new, old)
    assert {1: HostPort("b1", 9094), 2: HostPort("b1", 9092)} == both.endpoints
    assert {2} == both.shared.keys()


@pytest.mark.parametrize(
    "answer",
    [
        DescribeClusterResponseV0(0, 0, None, "c1", 1, [(1, "::1", 9092, None, {})], -1, {}),
        DescribeClusterResponseV1(0, 0, None, 1, "c1", 1, [(1, "::1", 9092, None, {})], -1, {}),
    ],
)
def test_older_brokers_say_nothing_of_fenced_ones(answer: Any) -> None:
    """Before version 2 the fenced brokers are unknown, which is not the same as none."""
    expected = ClusterList(
        Membership("c1", active={1: "[::1]:9092"}, fenced=None),
        {1: HostPort("::1", 9092)},
        {},
        {},
    )
    assert expected == read_cluster(answer, ASKED)


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (cluster_v2(error=114), FailureKind.BROKER, "b0:9092: is a controller's listener"),
        (cluster_v2(error=7, text="no\nluck"), FailureKind.BROKER, "error 7 (REQUEST_TIMED_OUT)"),
        (cluster_v2(error=7, text="no\nluck"), FailureKind.BROKER, ": no luck"),
        (cluster_v2(), FailureKind.BROKER, "no active broker"),
        (cluster_v2((1, "b", 1, None, True)), FailureKind.BROKER, "no active broker"),
        (cluster_v2((1, "", 9092, None, False)), FailureKind.PROTOCOL, "without an address"),
        (cluster_v2((1, "b", 65536, None, False)), FailureKind.PROTOCOL, "without an address"),
        (cluster_v2((1, "b", 0, None, False)), FailureKind.PROTOCOL, "without an address"),
    ],
)
def test_a_list_that_can_not_be_used_is_a_failure(
    answer: Any, kind: FailureKind, says: str
) -> None:
    """Errors, controllers, and lists without a broker that could be asked can't be used."""
    assert says in failed(read_cluster(answer, ASKED), kind)


@pytest.mark.parametrize(
    ("answer", "volumes"),
    [
        (
            log_dirs(
                (0, "/a", [], 100, 25), (0, "/b", [], LONG_MAX, LONG_MAX), (0, "/c", [], 0, 0)
            ),
            (Volume(3, "/a", 100, 25), Volume(3, "/b", LONG_MAX, LONG_MAX), Volume(3, "/c", 0, 0)),
        ),
        # Brokers from 3.3 to 3.7.0 may name topics although none was asked for (KAFKA-16807).
        (
            log_dirs((0, "/a", [("orders", [], {}), ("clicks", [], {})], 100, 25)),
            (Volume(3, "/a", 100, 25),),
        ),
    ],
    ids=["sizes", "topics"],
)
def test_volumes_are_read(answer: Any, volumes: tuple[Volume, ...]) -> None:
    """A log dir without an error is a volume, however large or empty."""
    assert Reading(3, 17.0, volumes) == read(answer)


def test_cordoned_log_dirs_are_volumes() -> None:
    """Version 5 has a flag for them: where new partitions go, not what is free."""
    results: Any = [(0, "/a", [], 100, 25, True, {}), (0, "/b", [], 100, 25, False, {})]
    volumes = (Volume(3, "/a", 100, 25), Volume(3, "/b", 100, 25))
    answer = DescribeLogDirsResponseV5(0, 0, results, {})
    assert Reading(3, 17.0, volumes, cordoned=("/a",)) == read(answer)


@pytest.mark.parametrize(
    ("result", "reason", "is_written"),
    [
        ((56, "/a", [], -1, -1), "offline: error 56 (KAFKA_STORAGE_ERROR)", False),
        ((56, "/a", [], 100, 25), "offline: error 56 (KAFKA_STORAGE_ERROR)", False),
        ((0, "/a", [], -1, -1), "the broker does not report them (-1)", True),
        ((0, "/a", [], 100, -1), "the broker does not report them (-1)", True),
        ((0, "/a", [], -1, 25), "the broker does not report them (-1)", True),
        ((-1, "/a", [], 100, 25), "error -1 (UNKNOWN)", True),
        ((999, "/a", [], 100, 25), "error 999", True),
    ],
)
def test_a_log_dir_without_sizes_is_neither_empty_nor_full(
    result: tuple[Any, ...], reason: str, *, is_written: bool
) -> None:
    """An error or a size of -1 makes no volume, and the log dirs beside it are read.

    Only KAFKA_STORAGE_ERROR shows that the broker writes nothing there.
    """
    answer = log_dirs(result, (0, "/b", [], 100, 25))
    missing = OfflineLogDir("/a", reason, is_written)
    expected = Reading(3, 17.0, (Volume(3, "/b", 100, 25),), (missing,))
    assert expected == read(answer)


def test_a_missing_acl_is_named() -> None:
    """Error 31 says which ACL is missing, for whom, and the command that grants it."""
    message = failed(read(log_dirs(error=31)), FailureKind.AUTHORIZATION)
    assert "it needs Describe on the Kafka cluster resource" in message
    assert "User:throttle-sidecar --operation Describe --cluster" in message


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (log_dirs(error=-1), FailureKind.BROKER),
        (log_dirs(), FailureKind.PROTOCOL),
        (DescribeLogDirsResponseV4(0, 0, None, {}), FailureKind.PROTOCOL),
        (log_dirs((0, None, [], 100, 25)), FailureKind.PROTOCOL),
    ],
)
def test_an_answer_that_shows_nothing_is_not_sight(answer: Any, kind: FailureKind) -> None:
    """A broker that answers without a log dir has not been seen."""
    failed(read(answer), kind)
