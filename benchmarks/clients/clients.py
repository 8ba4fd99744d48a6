"""The clients, each as it is and with what its user can set, and the commands that run them.

``make bench-clients`` builds and installs what they need in ``.cache/clients``.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
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
        settings: besides its defaults.
        has_large_requests: whether they are of 64 kB and more when it has a backlog.
        is_acknowledged: whether a broker acknowledges what it calls written: not with acks=0.
        longest_wait_s: how long it waits by itself, at most, before it tries again what failed,
            seconds: by the defaults in its source. None: less than 10 s.
        wait: the setting that says so.
    """

    key: str
    name: str
    language: str
    library: str
    settings: Sequence[str] = field(default=())
    has_large_requests: bool = False
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
        own = [f"client={self.library}", *words, *self.settings]
        return [*programs[self.language], *own]


CLIENTS: Final = (
    Client("java", "Java", "java", "java"),
    Client(
        "java-not-idempotent",
        "Java, `enable.idempotence=false`",
        "java",
        "java",
        ["enable.idempotence=false"],
    ),
    Client("librdkafka", "librdkafka", "python", "librdkafka", has_large_requests=True),
    Client(
        "librdkafka-idempotent",
        "librdkafka, `enable.idempotence=true`",
        "python",
        "librdkafka",
        ["enable.idempotence=true"],
        has_large_requests=True,
    ),
    Client("franz-go", "franz-go", "go", "franz-go", has_large_requests=True),
    Client("sarama", "Sarama", "go", "sarama", has_large_requests=True),
    Client(
        "kafka-go",
        "kafka-go (its default is acks=0)",
        "go",
        "kafka-go",
        has_large_requests=True,
        is_acknowledged=False,
    ),
    Client(
        "kafka-go-all",
        "kafka-go, `RequiredAcks=RequireAll`",
        "go",
        "kafka-go",
        ["RequiredAcks=all"],
        has_large_requests=True,
    ),
    Client("kafkajs", "kafkajs", "node", "kafkajs"),
    Client("aiokafka", "aiokafka", "python", "aiokafka"),
    Client("kafka-python", "kafka-python", "python", "kafka-python"),
    # What its user can set, where a client does badly as it is.
    Client(
        "librdkafka-small-queue",
        "librdkafka, `queue.buffering.max.messages=500`",
        "python",
        "librdkafka",
        ["queue.buffering.max.messages=500"],
        has_large_requests=True,
    ),
    Client(
        "franz-go-small-batch",
        "franz-go, `ProducerBatchMaxBytes(65536)`",
        "go",
        "franz-go",
        ["ProducerBatchMaxBytes=65536"],
        has_large_requests=True,
    ),
    Client(
        "sarama-retries",
        "Sarama, `Producer.Retry.Max=10000`",
        "go",
        "sarama",
        ["Producer.Retry.Max=10000"],
        has_large_requests=True,
    ),
    Client(
        "kafka-go-attempts",
        "kafka-go, `RequireAll`, `MaxAttempts=10000`",
        "go",
        "kafka-go",
        ["RequiredAcks=all", "MaxAttempts=10000"],
        has_large_requests=True,
    ),
    Client(
        "kafkajs-one",
        "kafkajs, `maxInFlightRequests: 1`",
        "node",
        "kafkajs",
        ["maxInFlightRequests=1"],
    ),
    Client(
        "kafkajs-idempotent",
        "kafkajs, `idempotent: true`",
        "node",
        "kafkajs",
        ["idempotent=true"],
        longest_wait_s=30.0,
        wait="`retry.maxRetryTime`",
    ),
    Client(
        "aiokafka-batch",
        "aiokafka, `max_batch_size=131072`",
        "python",
        "aiokafka",
        ["max_batch_size=131072"],
        has_large_requests=True,
    ),
    Client(
        "kafka-python-batch",
        "kafka-python, `batch_size=131072`",
        "python",
        "kafka-python",
        ["batch_size=131072"],
        has_large_requests=True,
    ),
)


def versions() -> str:
    """The clients' versions, as they are locked."""
    found = [("Java", DEFAULT_VERSION)]
    texts = {name: (_FOLDER / name).read_text("utf-8") for name in ("requirements.in", "go.mod")}
    found += re.findall(r"^([\w-]+)==(\S+)$", texts["requirements.in"], re.MULTILINE)
    direct = re.findall(r"^\t(\S+) v(\S+)$", texts["go.mod"], re.MULTILINE)
    found += [(module.rpartition("/")[2], version) for module, version in direct]
    found += json.loads((_FOLDER / "package.json").read_text("utf-8"))["dependencies"].items()
    return ", ".join(" ".join(each) for each in found)
