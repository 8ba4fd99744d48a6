"""The clients, each with its defaults and with what its user can set, and how they are run.

``make bench-clients`` builds and installs what they need in ``.cache/clients``.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kafka_lab.jars import DEFAULT_VERSION

INSTALLED: Final = Path(".cache/clients")
_FOLDER: Final = Path(__file__).parent
# log4j's own default writes to standard output, where the reports go.
_JVM: Final = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.level=OFF")


@dataclass(frozen=True, slots=True)
class Client:
    """One client with its settings.

    Attributes:
        key: short, for names of files.
        name: for a reader.
        language: of its program.
        library: as the program names it.
        has_large_requests: whether they are of 64 kB and more when it has a backlog.
        settings: besides its defaults.
        is_acknowledged: whether a broker acknowledges the records that it reports as written.
        longest_wait_s: how long it waits by itself, at most, before it tries again what failed,
            seconds: by the defaults in its source. None: less than 10 s.
        wait: the setting of that.
    """

    key: str
    name: str
    language: str
    library: str
    has_large_requests: bool = False
    settings: tuple[str, ...] = ()
    is_acknowledged: bool = True
    longest_wait_s: float | None = None
    wait: str = ""

    def command(self, java: str, jars: Path, words: Sequence[str]) -> list[str]:
        """The command line of its program.

        Args:
            java: the JDK's program.
            jars: the folder with Kafka's jars.
            words: bootstrap, topic and so on, as name=value.
        """
        programs: dict[str, list[str]] = {
            "java": [java, *_JVM, "-cp", f"{jars}/*", str(_FOLDER / "Produce.java")],
            "go": [str(INSTALLED / "produce")],
            "python": [str(INSTALLED / "venv/bin/python"), str(_FOLDER / "produce.py")],
            "node": ["node", str(INSTALLED / "produce.js")],
        }
        return [*programs[self.language], f"client={self.library}", *words, *self.settings]


def _with(client: Client, key: str, text: str, *settings: str) -> Client:
    """The same client with other settings, in the words of its own documentation."""
    name, key = f"{client.name.partition(' (')[0]}, {text}", f"{client.key}-{key}"
    return replace(client, key=key, name=name, settings=settings, is_acknowledged=True)


_JAVA: Final = Client("java", "Java", "java", "java")
_LIBRDKAFKA: Final = Client("librdkafka", "librdkafka", "python", "librdkafka", True)
_FRANZ_GO: Final = Client("franz-go", "franz-go", "go", "franz-go", True)
_SARAMA: Final = Client("sarama", "Sarama", "go", "sarama", True)
_KAFKA_GO: Final = Client(
    "kafka-go", "kafka-go (its default is acks=0)", "go", "kafka-go", True, is_acknowledged=False
)
_KAFKAJS: Final = Client("kafkajs", "kafkajs", "node", "kafkajs")
_AIOKAFKA: Final = Client("aiokafka", "aiokafka", "python", "aiokafka")
_KAFKA_PYTHON: Final = Client("kafka-python", "kafka-python", "python", "kafka-python")
_IDEMPOTENT: Final = "enable.idempotence=true"
_QUEUE: Final = "queue.buffering.max.messages=500"
_RETRIES: Final = "Producer.Retry.Max=10000"
_ATTEMPTS: Final = ("RequiredAcks=all", "MaxAttempts=10000")
_EXPIRES: Final = "message.timeout.ms=20000"
_RECONNECTS: Final = "reconnect.backoff.max.ms=1000"
CLIENTS: Final = (
    _JAVA,
    _with(_JAVA, "not-idempotent", "`enable.idempotence=false`", "enable.idempotence=false"),
    _LIBRDKAFKA,
    _with(_LIBRDKAFKA, "idempotent", f"`{_IDEMPOTENT}`", _IDEMPOTENT),
    _FRANZ_GO,
    _SARAMA,
    _KAFKA_GO,
    _with(_KAFKA_GO, "all", "`RequiredAcks=RequireAll`", "RequiredAcks=all"),
    _KAFKAJS,
    _AIOKAFKA,
    _KAFKA_PYTHON,
    # What its user can set, where a client does badly with its defaults.
    _with(_LIBRDKAFKA, "small-queue", f"`{_QUEUE}`", _QUEUE),
    _with(
        _FRANZ_GO, "small-batch", "`ProducerBatchMaxBytes(65536)`", "ProducerBatchMaxBytes=65536"
    ),
    _with(_SARAMA, "retries", f"`{_RETRIES}`", _RETRIES),
    _with(_KAFKA_GO, "attempts", "`RequireAll`, `MaxAttempts=10000`", *_ATTEMPTS),
    _with(_KAFKAJS, "one", "`maxInFlightRequests: 1`", "maxInFlightRequests=1"),
    replace(
        _with(_KAFKAJS, "idempotent", "`idempotent: true`", "idempotent=true"),
        longest_wait_s=30.0,
        wait="`retry.maxRetryTime`",
    ),
    replace(
        _with(_AIOKAFKA, "batch", "`max_batch_size=131072`", "max_batch_size=131072"),
        has_large_requests=True,
    ),
    replace(
        _with(_KAFKA_PYTHON, "batch", "`batch_size=131072`", "batch_size=131072"),
        has_large_requests=True,
    ),
)
EXPIRING: Final = (
    _with(_LIBRDKAFKA, "20-s", f"`{_EXPIRES}`", _EXPIRES),
    _with(_LIBRDKAFKA, "20-s-idempotent", f"`{_EXPIRES}`, `{_IDEMPOTENT}`", _EXPIRES, _IDEMPOTENT),
    _with(_LIBRDKAFKA, "20-s-reconnect", f"`{_EXPIRES}`, `{_RECONNECTS}`", _EXPIRES, _RECONNECTS),
)
"""Clients whose records expire in the throttle: at the release, the oldest is about to."""


def versions() -> str:
    """The clients' versions, as they are locked."""
    found = [("Java", DEFAULT_VERSION)]
    texts = {name: (_FOLDER / name).read_text("utf-8") for name in ("requirements.in", "go.mod")}
    found += re.findall(r"^([\w-]+)==(\S+)$", texts["requirements.in"], re.MULTILINE)
    direct = re.findall(r"^\t(\S+) v(\S+)$", texts["go.mod"], re.MULTILINE)
    found += [(module.rpartition("/")[2], version) for module, version in direct]
    found += json.loads((_FOLDER / "package.json").read_text("utf-8"))["dependencies"].items()
    return ", ".join(" ".join(each) for each in found)
