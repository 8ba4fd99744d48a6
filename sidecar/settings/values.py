"""The settings as the daemon uses them: checked, typed, in seconds and bytes.

What can't be used can't be represented here: the limit is a union of two types and not two
optional numbers, and every secret is a ``SecretStr``, whose repr is stars. How these values are
found in the environment and in files is ``sidecar.settings.loader``'s question.

Example: ``PT1M`` in a file is ``check_interval_s == 60.0`` here.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import SecretStr

from sidecar.quotas.mutations.admissions import Algorithm
from sidecar.quotas.producer_ids.id_counts import ProducerIdSettings
from sidecar.quotas.rate import QuotaWindow
from sidecar.throttle.leak import LeakRules
from sidecar.throttle.limits import Limit
from sidecar.throttle.rules import Rules
from sidecar.throttle.slope import SlopeRules

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


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaAdmin:
    """How to connect and authenticate to the brokers, by the Java admin client's names.

    Material for TLS is a file or its text (PEM), never both.

    Attributes:
        bootstrap_servers: the addresses dialled first, one at least.
        security_protocol: whether connections are encrypted, and whether SASL is spoken.
        sasl_mechanism: None unless the protocol is a SASL one.
        sasl_username: for PLAIN and SCRAM.
        sasl_password: for PLAIN and SCRAM.
        sasl_setting_names: the names of the settings of user and password.
        oauth_token_url: for OAUTHBEARER: where a token is requested.
        oauth_client_id: for OAUTHBEARER.
        oauth_client_secret: for OAUTHBEARER.
        oauth_scope: for OAUTHBEARER; None requests none.
        ssl_ca_file: certificates that are trusted; with neither file nor text, the system's.
        ssl_ca_pem: the same as text.
        ssl_certificate_file: our own certificate chain, for mTLS; None shows none.
        ssl_certificate_pem: the same as text.
        ssl_key_file: the key of our certificate.
        ssl_key_pem: the same as text.
        ssl_key_password: what the key is encrypted with, if it is.
        ssl_verify_hostname: whether a broker's certificate must be for the name that was dialled.
        client_id: what brokers log and count us as.
        settings_source: where the reader of a message would set one of these.
    """

    bootstrap_servers: tuple[HostPort, ...]
    security_protocol: SecurityProtocol = "PLAINTEXT"
    sasl_mechanism: SaslMechanism | None = None
    sasl_username: str | None = None
    sasl_password: SecretStr | None = None
    sasl_setting_names: tuple[str, ...] = ()
    oauth_token_url: str | None = None
    oauth_client_id: str | None = None
    oauth_client_secret: SecretStr | None = None
    oauth_scope: str | None = None
    ssl_ca_file: Path | None = None
    ssl_ca_pem: str | None = None
    ssl_certificate_file: Path | None = None
    ssl_certificate_pem: str | None = None
    ssl_key_file: Path | None = None
    ssl_key_pem: SecretStr | None = None
    ssl_key_password: SecretStr | None = None
    ssl_verify_hostname: bool = True
    client_id: str = "throttle-sidecar"
    settings_source: Place = "environment"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All of the daemon's settings.

    Attributes:
        check_interval_s: seconds between polls at most; 0.0 is disabled.
        check_interval_minimum_s: seconds between polls at least, > 0 and <= the interval; 0.0
            when disabled.
        kafka_admin: None only when disabled and no brokers are set.
        fallback: the factor when no valid one is left, 0.0 to 1.0.
        validity_s: seconds for which a computed factor may be used, > 0.
        leak_rules: how much brokers may let through while producers are throttled.
        mode: whether what is decided is in force, or only shown.
        scope: whose producers are throttled.
        limit: what judges volumes; None only when disabled and none is set.
        stop_line: from where on nothing is admitted; None: nowhere.
        slope: by what the factor falls before the limit; None: it is 1.0 until then.
        http_listen: where the HTTP API listens; port 0 takes a free one.
        metrics_listen: where metrics and health are served besides; None is the HTTP API alone.
        state_file: what a restart remembers; None is nothing.
        token_file: the file with the bearer token for changes; None refuses changes.
        request_log_file: the request log of the broker beside this sidecar; None reads none.
        peers: the addresses of other sidecars, http or https, without a slash at the end.
        observers: so many of the peers ask all brokers; None: every sidecar does.
        producer_ids: of the capability of that name (KIP-936).
        mutations: of the capability of that name (KIP-599).
        history: of the capability of that name.
        log_format: for people or for machines.
        log_level: the least level that is written.
    """

    check_interval_s: float
    check_interval_minimum_s: float
    kafka_admin: KafkaAdmin | None
    fallback: float
    validity_s: float
    leak_rules: LeakRules
    mode: Mode
    scope: ThrottleScope
    limit: Limit | None
    stop_line: Limit | None
    slope: SlopeRules | None
    http_listen: HostPort
    metrics_listen: HostPort | None
    state_file: Path | None
    token_file: Path | None
    request_log_file: Path | None
    peers: tuple[str, ...]
    observers: int | None
    producer_ids: ProducerIdSection
    mutations: MutationSection
    history: HistorySection
    log_format: LogFormat
    log_level: LogLevel

    @property
    def rules(self) -> Rules:
        """The rules by which volumes are judged."""
        return Rules(self.limit, self.validity_s, self.stop_line, self.slope)
