"""Which cluster a file of a request log is of."""

import re
from pathlib import Path

import pytest

from usage_pipeline.ingest.clusters import ClusterError, cluster_name, cluster_of
from usage_pipeline.ingest.paths import ALL_UTC
from usage_pipeline.ingest.stored_logs import log_files

PATTERN = re.compile(r"/(?P<cluster>\w*)-kafka-(?P<broker>\d+)/")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("s3://logs/cluster_id=eu/dt=2026-11-20/broker=3/request.log", "eu"),
        ("/cluster=a/cluster=b-1.c/kafka-request.log", "b-1.c"),
        ("/logs/eu-kafka-3/kafka-request.log", "eu"),
        ("/cluster_id=us/eu-kafka-3/kafka-request.log", "eu"),
        ("/cluster_id=us/-kafka-3/kafka-request.log", "us"),
        ("/logs/a/broker-3/kafka-request.log", None),
        ("/my-cluster=x/broker-3/kafka-request.log", None),
        ("/logs/broker-3/cluster_id=eu", None),
    ],
)
def test_whose_a_file_is(path: str, expected: str | None) -> None:
    """It is the caller's pattern's, else a folder's as Hive writes it; a guess is none."""
    assert expected == cluster_of(path, [PATTERN])


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ü", "x" * 101, "a=b", "a%20"])
def test_names_that_are_none(name: str) -> None:
    """They become folders, and parts of addresses."""
    with pytest.raises(ClusterError, match="can't be the name of a cluster"):
        cluster_name(name)
    assert "MkU3OEVBNTcwNTJENDM2Qg" == cluster_name("MkU3OEVBNTcwNTJENDM2Qg")


def put(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def found(folder: Path, cluster: str | None = None, pattern: str | None = None) -> dict[str, str]:
    """Returns the cluster of each file."""
    files = log_files(str(folder), ALL_UTC, pattern, cluster)
    return {str(Path(file.path).relative_to(folder)): file.cluster for file in files}


def test_brokers_of_one_id_are_not_taken_for_one(tmp_path: Path) -> None:
    """Two folders of a broker may be of two clusters; whoever runs it knows, and says so."""
    put(tmp_path, "a/broker-3/x.log", "b/broker-3/x.log", "b/broker-3/y.log", "b/broker-4/x.log")
    with pytest.raises(ClusterError, match=r"a/broker-3/x.log and .*b/broker-3/x.log are both"):
        found(tmp_path)
    assert {"eu"} == set(found(tmp_path, "eu").values())
    named = found(tmp_path, pattern=r"/(?P<cluster>[^/]+)/broker-(?P<broker>\d+)")
    assert {f"{each}/broker-3/x.log": each for each in "ab"}.items() < named.items()


@pytest.mark.parametrize(
    "name",
    [
        "{namespace}_kafka-3_1f2e3d4c-0000-4000-8000-00000000000{number}/kafka/0.log",
        "kafka-3_{namespace}_kafka-{number:a>64}.log",
    ],
)
def test_pods_of_two_namespaces_are_not_taken_for_one(tmp_path: Path, name: str) -> None:
    """A pod that was made again has another id, and may be on another node."""
    for number, node in enumerate("xxy"):
        put(tmp_path, f"{node}/" + name.format(namespace="a", number=number))
    assert {"default"} == set(found(tmp_path).values())
    put(tmp_path, "y/" + name.format(namespace="b", number=3))
    with pytest.raises(ClusterError, match=r"are both logs of a broker 3"):
        found(tmp_path)
    assert {"eu"} == set(found(tmp_path, "eu").values())


@pytest.mark.parametrize("cluster", [None, "eu"])
def test_a_broker_and_a_controller_of_one_id_are_not_taken_for_one(
    tmp_path: Path, cluster: str | None
) -> None:
    """A pod's number is not its node.id: kraftcontroller-0 is node 9990."""
    put(tmp_path, "kafka-0/x.log.1", "kafka-1/x.log", "kraftcontroller-2/x.log")
    assert 3 == len(found(tmp_path, cluster))
    put(tmp_path, "kraftcontroller-0/x.log")
    with pytest.raises(ClusterError, match="name a broker and a controller with the same id, 0"):
        found(tmp_path, cluster)


def test_folders_below_a_brokers_are_its_own(tmp_path: Path) -> None:
    """Days, hours: the files of one broker, whatever they are called."""
    put(tmp_path, "broker-3/2026-11-20/x.log", "broker-3/2026-11-21/x.log", "broker-3/x.log")
    assert {"default"} == set(found(tmp_path).values())


def test_another_clusters_files_are_left_out(tmp_path: Path) -> None:
    """Those of none are of the one that is asked for; where there are none of it, it is told."""
    put(tmp_path, "cluster=eu/broker-3/x.log", "cluster=us/broker-3/x.log", "broker-9/x.log")
    assert {"cluster=eu/broker-3/x.log": "eu", "broker-9/x.log": "eu"} == found(tmp_path, "eu")
    assert {"eu", "us", "default"} == set(found(tmp_path).values())
    (tmp_path / "broker-9" / "x.log").unlink()
    with pytest.raises(ClusterError, match="name the clusters eu, us, and not asia"):
        found(tmp_path, "asia")
