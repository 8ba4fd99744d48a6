"""The pipeline's stream from a topic of a secured cluster: TLS, SCRAM and an authorizer."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest
import pytest_asyncio
import trustme
from confluent_kafka import Producer

from kafka_lab.admin import Admin
from tests.support.command import Done, command
from tests.support.maven import jars_of
from tests.support.secured import SecureKafka, pkcs8
from tests.support.tables import of_duckdb
from tests.usage_pipeline.logs import lines

pytestmark = pytest.mark.timeout(900)

TOPIC, UNSEEN = "secured-log", "unseen-log"
POM = Path(__file__).parents[2] / "deploy/spark/kafka-connector/pom.xml"
_RUN_S = 400.0
"""A run of Spark's, on a machine that does other things too."""


@dataclass(frozen=True, slots=True)
class Stream:
    """``pipeline stream`` of a secured topic.

    Attributes:
        secure: its cluster.
        jars: the connector's.
        folder: for what it writes.
    """

    secure: SecureKafka
    jars: Path
    folder: Path

    def client(self, **more: str) -> Path:
        """A properties file as this program's commands take it; "_" is a dot, "" leaves one out."""
        password = self.folder / "password"
        password.write_text(self.secure.password)
        settings = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "alice",
            "sasl.password.file": str(password),
            "ssl.truststore.location": str(self.secure.ca_file),
        } | {name.replace("_", "."): value for name, value in more.items()}
        file = self.folder / "client.properties"
        file.write_text("".join(f"{name}={text}\n" for name, text in settings.items() if text))
        return file

    async def run(self, client: Path, *words: str, topic: str = TOPIC) -> Done:
        """Runs until all is read that is there."""
        common = (
            *("--topic", topic, "--kafka-jars", str(self.jars), "--table", "silver_request"),
            *("--bootstrap-server", self.secure.cluster.bootstrap_of("SCRAM")),
            *("--command-config", str(client), "--out", str(self.folder / "live"), "--until-read"),
        )
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        environ = {**os.environ, "TMPDIR": str(temporary)}
        return await command(
            *("pipeline", "stream", *common, "--master", "local[2]", *words),
            environ=environ,
            timeout_s=_RUN_S,
        )

    def files_with(self, text: bytes) -> list[Path]:
        """The files that a stream has written, in which there is a text."""
        written = [self.folder / name for name in ("live", "tmp", "events")]
        return [
            file
            for folder in written
            for file in folder.rglob("*")
            if file.is_file() and text in file.read_bytes()
        ]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def topics(secure_kafka: SecureKafka) -> None:
    """Alice may read one, which has 50 lines of broker 1, and not the other."""
    async with Admin(secure_kafka.cluster.bootstrap) as admin:
        for topic in (TOPIC, UNSEEN):
            await admin.create_topic(topic, partitions=1)
        await admin.allow("alice", "READ", "TOPIC", TOPIC)
    producer = Producer({"bootstrap.servers": secure_kafka.cluster.bootstrap})
    for each in lines(50, user="u").splitlines():
        producer.produce(TOPIC, each, "1")
    assert 0 == await asyncio.to_thread(producer.flush, 20)


@pytest.fixture
def stream(secure_kafka: SecureKafka, topics: None, tmp_path: Path) -> Stream:
    """A stream with alice's login."""
    return Stream(secure_kafka, asyncio.run(jars_of(POM)), tmp_path)


async def test_a_secured_topic_is_read_and_no_secret_is_reported(stream: Stream) -> None:
    """SCRAM over TLS with PEM works; no output, checkpoint or page of Spark has the secret."""
    key = pkcs8(stream.secure.client_key_file.read_bytes(), stream.folder / "key.pem")
    client = stream.client(
        ssl_keystore_location=str(stream.secure.client_certificate_file),
        ssl_keystore_key_location=str(key),
    )
    # What Spark's page is made of.
    events = stream.folder / "events"
    events.mkdir()
    reported = {"enabled": "true", "dir": events.as_uri(), "compress": "false"}
    conf = [
        word
        for name, text in reported.items()
        for word in ("--conf", f"spark.eventLog.{name}={text}")
    ]
    done = await stream.run(client, *conf)
    assert 0 == done.code, done.said
    table = of_duckdb(stream.folder / "live", "silver_request")
    rows = duckdb.execute(f"SELECT broker, count(*) FROM {table} GROUP BY 1")
    assert [(1, 50)] == rows.fetchall()
    assert [] != stream.files_with(b"(redacted)")
    lines_of_key = key.read_bytes().splitlines()
    for secret in (b"with a backslash", lines_of_key[1]):
        assert [] == stream.files_with(secret)
        assert secret.decode() not in done.said


def wrong_password(stream: Stream) -> tuple[Path, str, str]:
    """The password is also written as Java has it."""
    login = (
        "org.apache.kafka.common.security.scram.ScramLoginModule required"
        ' username="alice" password="hidden, with a backslash";'
    )
    file = stream.client(sasl_username="", sasl_password_file="", sasl_jaas_config=login)
    return file, TOPIC, "the login was refused"


def wrong_certificates(stream: Stream) -> tuple[Path, str, str]:
    """The trusted CA signed nothing here."""
    other = stream.folder / "other-ca.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    return stream.client(ssl_truststore_location=str(other)), TOPIC, "TLS failed"


def no_tls(stream: Stream) -> tuple[Path, str, str]:
    """The listener speaks nothing but TLS."""
    return stream.client(security_protocol="PLAINTEXT"), TOPIC, "no broker answers"


def no_acl(stream: Stream) -> tuple[Path, str, str]:
    """No ACL is for this topic."""
    return stream.client(), UNSEEN, f"this user may not read {UNSEEN}"


@pytest.mark.parametrize("mistake", [wrong_password, wrong_certificates, no_tls, no_acl])
async def test_what_is_wrong_is_said_in_a_line_and_in_time(
    stream: Stream, mistake: Callable[[Stream], tuple[Path, str, str]]
) -> None:
    """It says what to do, instead of waiting for ever; it has no secret, and nothing of Java's."""
    client, topic, said = mistake(stream)
    done = await stream.run(client, topic=topic)
    assert 2 == done.code, done.said
    bootstrap = stream.secure.cluster.bootstrap_of("SCRAM")
    last = done.err.strip().splitlines()[-1]
    assert last.startswith(f"{bootstrap}: {said}"), done.said
    assert "Traceback" not in done.said
    for secret in ("with a backslash", "hidden"):
        assert secret not in done.said
        assert [] == stream.files_with(secret.encode())


PLAN = """
import sys
from usage_pipeline.runtime.session import session
from usage_pipeline.streaming.kafka_source import REDACTED, TopicOptions, topic_messages

spark = session("local[1]", {"spark.jars": sys.argv[1], **REDACTED})
login = 'x.ScramLoginModule required username="a" credential="hidden";'
client = {"ssl.keystore.key": "hidden", "ssl.key.password": "hidden", "sasl.jaas.config": login}
topic_messages(spark, TopicOptions("b1:9093", "t", client=client)).explain(True)
"""
"""What Spark's page and its logs show of a query, where they show it."""


def test_a_plan_shows_no_secret() -> None:
    """It has the reader's options: how the broker is reached, but no key and no login."""
    jars = ",".join(str(jar) for jar in asyncio.run(jars_of(POM)).glob("*.jar"))
    done = subprocess.run(
        [sys.executable, "-c", PLAN, jars],
        capture_output=True,
        text=True,
        timeout=_RUN_S,
        check=False,
    )
    assert "b1:9093" in done.stdout, done.stderr
    for name in ("ssl.keystore.key", "ssl.key.password", "sasl.jaas.config"):
        assert f"kafka.{name}=*********(redacted)" in done.stdout
    assert "hidden" not in done.stdout
