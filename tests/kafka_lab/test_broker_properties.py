"""The properties files have what Kafka needs, in the format that Java reads."""

import pytest

from kafka_lab.broker_properties import (
    CONTROLLER_ID,
    Endpoint,
    authorizer_properties,
    broker_properties,
    controller_properties,
    meta_properties,
    render,
)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"a": "b"}, "a=b\n"),
        ({"a": "two\nlines"}, "a=two\\nlines\n"),
        ({"a": "\t\r\f"}, "a=\\t\\r\\f\n"),
        ({"a": " leading and inner"}, "a=\\ leading and inner\n"),
        ({"a": "C:\\x"}, "a=C:\\\\x\n"),
        ({"a=b: c#!": "d=e:#!"}, "a\\=b\\:\\ c\\#\\!=d=e:#!\n"),
        ({"a": "é😀"}, "a=\\u00e9\\ud83d\\ude00\n"),
        ({"a": "", "b": "c"}, "a=\nb=c\n"),
    ],
)
def test_rendering_escapes_what_has_a_meaning_in_the_format(
    properties: dict[str, str], expected: str
) -> None:
    """Line ends, leading blanks, backslashes, separators in keys, and non-ASCII are escaped."""
    assert expected == render(properties)


def _broker(brokers: int) -> dict[str, str]:
    return broker_properties(
        2,
        endpoints=[Endpoint("PLAIN", "PLAINTEXT", 1001), Endpoint("SECURE", "SASL_SSL", 1002)],
        log_dirs=["/v/0", "/v/1"],
        metadata_log_dir="/meta",
        controller_port=1000,
        brokers=brokers,
    )


def test_a_broker_listens_where_its_endpoints_say() -> None:
    """Every endpoint is a listener, advertised, with its protocol; the first is the brokers'."""
    properties = _broker(3)
    assert "PLAIN://127.0.0.1:1001,SECURE://127.0.0.1:1002" == properties["listeners"]
    assert properties["listeners"] == properties["advertised.listeners"]
    assert "PLAIN" == properties["inter.broker.listener.name"]
    assert (
        "PLAIN:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT"
        == properties["listener.security.protocol.map"]
    )
    assert f"{CONTROLLER_ID}@127.0.0.1:1000" == properties["controller.quorum.voters"]


def test_the_metadata_log_is_off_the_volumes() -> None:
    """A full volume must not stop the broker through its metadata log."""
    properties = _broker(3)
    assert "/v/0,/v/1" == properties["log.dirs"]
    assert "/meta" == properties["metadata.log.dir"]


@pytest.mark.parametrize(
    ("brokers", "replicas", "in_sync"), [(1, "1", "1"), (2, "2", "2"), (5, "3", "2")]
)
def test_internal_topics_have_no_more_replicas_than_there_are_brokers(
    brokers: int, replicas: str, in_sync: str
) -> None:
    """Otherwise they could never be created."""
    properties = _broker(brokers)
    assert replicas == properties["offsets.topic.replication.factor"]
    assert replicas == properties["transaction.state.log.replication.factor"]
    assert in_sync == properties["transaction.state.log.min.isr"]


def test_broker_and_controller_agree_on_the_session() -> None:
    """Whether a broker is dead is one rule, and eight heartbeats may be lost before it says so."""
    controller = controller_properties(1000, "/c")
    broker = _broker(3)
    assert controller["broker.session.timeout.ms"] == broker["broker.session.timeout.ms"]
    assert int(broker["broker.session.timeout.ms"]) == 8 * int(
        broker["broker.heartbeat.interval.ms"]
    )


def test_the_plain_listeners_user_is_always_a_super_user() -> None:
    """The helpers work where an authorizer is on."""
    assert "User:ANONYMOUS;User:root" == authorizer_properties(["root"])["super.users"]


@pytest.mark.parametrize(
    ("directory_id", "expected"),
    [
        ("d1", "version=1\ncluster.id=c1\nnode.id=3\ndirectory.id=d1\n"),
        (None, "version=1\ncluster.id=c1\nnode.id=3\n"),
    ],
)
def test_a_formatted_log_dir_names_itself_from_kafka_3_7(
    directory_id: str | None, expected: str
) -> None:
    """Older brokers refuse log dirs whose files differ."""
    assert expected == meta_properties("c1", 3, directory_id)
