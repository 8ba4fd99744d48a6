"""Rules that map labels to a volume."""

import re

import pytest

from sidecar.history.imports.volume_names import VolumeNames

STRIMZI = VolumeNames(
    (("pvc", re.compile(r"(?P<dir>data-\d+)-my-cluster-kafka-(?P<broker>\d+)")),),
    "/var/lib/kafka/{dir}/kafka-log{broker}",
)
NODE = VolumeNames(
    (
        ("instance", re.compile(r"kafka-(?P<broker>\d+):9100")),
        ("mountpoint", re.compile("/data.*")),
    ),
    "{mountpoint}",
)


def test_groups_and_labels_name_a_volume() -> None:
    """Of Strimzi's claims, and of machines with node_exporter."""
    expected = (3, "/var/lib/kafka/data-0/kafka-log3")
    assert expected == STRIMZI.volume_of({"pvc": "data-0-my-cluster-kafka-3"})
    assert (12, "/data/1") == NODE.volume_of({"instance": "kafka-12:9100", "mountpoint": "/data/1"})
    assert {"pvc", "dir", "broker"} == STRIMZI.labels


@pytest.mark.parametrize(
    "labels",
    [
        {"instance": "kafka-3:9100", "mountpoint": "/"},
        {"instance": "my-kafka-3:9100", "mountpoint": "/data"},
        {"instance": "kafka-3:91000", "mountpoint": "/data"},
        {"mountpoint": "/data"},
        {},
    ],
)
def test_every_rule_has_to_match_a_whole_label(labels: dict[str, str]) -> None:
    """Otherwise it is no volume."""
    assert NODE.volume_of(labels) is None


def test_the_broker_may_be_given() -> None:
    """For data of one machine. A name without a value is no log dir."""
    names = VolumeNames((), "{mountpoint}/kafka-log{broker}", 7)
    assert (7, "/data/kafka-log7") == names.volume_of({"mountpoint": "/data"})
    assert names.volume_of({"series": "x"}) is None


def test_a_broker_s_id_is_a_number() -> None:
    """What the group matches may be something else."""
    names = VolumeNames((("pod", re.compile("(?P<broker>.*)")),), "/d")
    assert names.volume_of({"pod": "kafka-a"}) is None
