"""The ACLs of docs/kubernetes.md, granted by Kafka's own tool, are those that the sidecar needs."""

import os
import re
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest

from kafka_lab.admin import Admin
from kafka_lab.jars import jars, java
from sidecar.formats.cache_folder import cache_folder
from sidecar.kafka.active_producers import ActiveProducers
from sidecar.kafka.client_quotas import alter_client_quotas, describe_client_quotas
from sidecar.kafka.fed_brokers import fed_brokers
from sidecar.settings import KafkaAdmin, load
from sidecar.volumes import Failure, FailureKind
from tests.support.command import command, run
from tests.support.secured import SCRAM, SecureKafka, scram
from tests.support.waiting import seen

DOCS = Path(__file__).parents[2] / "docs"
ACLS = re.compile(r"^ *kafka-acls\.sh ((?:.*\\\n)*.*)$", re.MULTILINE)
TOPIC = "written-to"

Use = Callable[[Mapping[str, str], KafkaAdmin], Awaitable[object]]
"""What the sidecar does of which the page says that it needs a line: what became of it."""


def lines(page: Path) -> list[list[str]]:
    """The words of a page's lines, after the program."""
    return [shlex.split(each) for each in ACLS.findall(page.read_text("utf-8"))]


def right(words: Sequence[str]) -> tuple[str, ...]:
    """The operation that a line grants, and on what."""
    return tuple(words[words.index("--operation") :])


async def check(environ: Mapping[str, str], _: KafkaAdmin) -> object:
    """Check the volumes."""
    return (await command("check", environ=environ)).code or None


async def feeds(_: Mapping[str, str], admin: KafkaAdmin) -> object:
    """Whose volumes the one broker feeds: its own."""
    found = await fed_brokers(admin, 0, 10.0)
    return None if found == frozenset({0}) else found


async def quotas(_: Mapping[str, str], admin: KafkaAdmin) -> object:
    """Read quotas, as admissions need."""
    found = await describe_client_quotas(admin)
    return found if isinstance(found, Failure) else None


async def throttle(_: Mapping[str, str], admin: KafkaAdmin) -> object:
    """Set a request_percentage; only validated."""
    quota = ({"user": "etl"}, {"request_percentage": 1.0})
    return await alter_client_quotas(admin, [quota], validate_only=True)


async def who_writes(_: Mapping[str, str], admin: KafkaAdmin) -> object:
    """The producers of a topic."""
    producers = ActiveProducers(admin, None, time.monotonic)
    try:
        found = await producers.scan(lambda *_, **__: None, 10.0)
        if isinstance(found, Failure):
            return found
        assert {TOPIC} == {topic for of in producers.partitions.values() for topic, _ in of}
        refused = next(iter(found.failures.values()), None)
        assert found.partitions == (refused is None)
        return refused
    finally:
        await producers.close()


USES: dict[tuple[str, ...], Use] = {
    ("--operation", "Describe", "--cluster"): check,
    ("--operation", "Describe", "--topic", "*"): feeds,
    ("--operation", "DescribeConfigs", "--cluster"): quotas,
    ("--operation", "AlterConfigs", "--cluster"): throttle,
    ("--operation", "Read", "--topic", "*"): who_writes,
}


# The jars of later versions lack the tool's; it is a client, and talks to those too.
@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.9.1"])
async def test_each_line_is_enough_for_what_it_is_for_and_nothing_less_is(
    version: str, secure_kafka: SecureKafka
) -> None:
    """A use is refused with all the lines before it, and not any more with it."""
    libraries = await jars(version, cache_folder(os.environ))
    environ = scram(secure_kafka, SASL_USERNAME="throttle-sidecar")
    sidecar = load(environ=environ).settings.kafka_admin
    assert sidecar is not None
    bootstrap = secure_kafka.cluster.bootstrap

    async def grant(words: Sequence[str]) -> None:
        placed = [bootstrap if word == "b:9092" else word for word in words]
        options = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{libraries}/*")
        tool = (java(os.environ), *options, "kafka.admin.AclCommand")
        done = await run([*tool, *placed])
        assert 0 == done.code, done.said

    async with Admin(bootstrap) as admin:
        await admin.create_scram_user("throttle-sidecar", secure_kafka.password, SCRAM)
        await admin.create_topic(TOPIC, assignment=[[0]])
        try:
            granted = lines(DOCS / "kubernetes.md")
            assert list(USES) == [right(words) for words in granted]
            for words in granted:
                use = partial(USES[right(words)], environ, sidecar)
                refused = await use()
                kind = getattr(refused, "kind", None)
                assert refused == 2 or FailureKind.AUTHORIZATION == kind, refused
                await grant(words)
                await seen(f"enough: {words}", use, lambda refused: refused is None)
        finally:
            await admin.delete_topic(TOPIC)


def test_the_other_pages_grant_no_other_right() -> None:
    """Each right that a page grants is one of those lines'; it may deny what it likes."""
    pages = [page for page in sorted(DOCS.rglob("*.md")) if lines(page)]
    assert {"KafkaThrottleFallback", "kubernetes", "quotas-producer-ids", "security"} <= {
        page.stem for page in pages
    }
    for page in pages:
        granted = [words for words in lines(page) if "--deny-principal" not in words]
        assert {right(words) for words in granted} <= set(USES), page
