"""Values of which the settings are made.

Example: ``[::1]:9092`` in a file is ``HostPort("::1", 9092)``.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from sidecar.quotas.mutations.admissions import Algorithm
from sidecar.quotas.producer_ids.id_counts import ProducerIdSettings
from sidecar.quotas.rate import QuotaWindow

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
Mode = Literal["enforce", "observe"]
ThrottleScope = Literal["cluster", "volume"]
IdsCount = Literal["active", "allocated"]
LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
Place = Literal["environment", "properties", "toml", "command config"]
"""Where settings are set; it decides by which name a message calls one."""


class HostPort(NamedTuple):
    """An address to connect to or to listen on.

    Attributes:
        host: a name or an IP address, an IPv6 one without its brackets.
        port: 1 to 65535, and 0 where the system is to choose one.
    """

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ProducerIdSection:
    """The settings of quotas on producer ids.

    Attributes:
        rate: new ids in a window for users without a quota of their own; None is any number.
        quota_file: has users' quotas; None: there is none.
        counting: how ids are counted.
        ids_count: when an id counts: when it writes, or when it is allocated.
        active_interval_s: how often leaders are asked which ids write, seconds, > 0.
        broker_id: of the broker beside this sidecar; None: it is not known.
        cleanup_s: how often users who are gone are forgotten, seconds, > 0.
    """

    rate: float | None
    quota_file: Path | None
    counting: ProducerIdSettings
    ids_count: IdsCount
    active_interval_s: float
    broker_id: int | None
    cleanup_s: float


@dataclass(frozen=True, slots=True)
class MutationSection:
    """The settings of the admission of controller mutations.

    Attributes:
        algorithm: how mutations are counted.
        window: what they are counted over.
    """

    algorithm: Algorithm
    window: QuotaWindow


@dataclass(frozen=True, slots=True)
class HistorySection:
    """The settings of the volume history.

    Attributes:
        folder: where it is written; None: nowhere.
        max_bytes: of all histories in that folder, > 0.
    """

    folder: Path | None
    max_bytes: int
