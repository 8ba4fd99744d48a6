"""Every setting with its form, default, unit and meaning.

The names in the environment and in files, the ``settings`` command and the documentation follow
from this list. A field's alias, or else its name, is the setting's name, from which
``sidecar.settings.keys`` derives the others. ``sidecar.settings.rules`` checks rules for several
settings, such as "exactly one limit".

Example: ``fallback`` is ``SIDECAR_THROTTLE_FACTOR_FALLBACK``,
``client.quota.callback.static.throttle.factor.fallback`` and TOML's ``throttle_factor.fallback``.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, get_args

from pydantic import BaseModel, ConfigDict, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from sidecar.formats.addresses import HostPort
from sidecar.formats.quantities import format_duration, format_size
from sidecar.quotas.mutations.admissions import Algorithm
from sidecar.quotas.producer_ids.id_counts import ProducerIdSettings
from sidecar.quotas.rate import QuotaWindow
from sidecar.settings import convert, values
from sidecar.settings.forms import Default, Form, Makes, Role, fields_of
from sidecar.throttle.leak import LeakRules
from sidecar.throttle.limits import Limit, MinAvailableBytes, MinAvailableRatio
from sidecar.throttle.readers import Enforcement
from sidecar.throttle.rules import Rules
from sidecar.throttle.slope import SlopeRules


def _one_of(words: object) -> Form:
    *others, last = get_args(words)
    return Form(convert.choice(*others, last), f"{', '.join(others)} or {last}")


Text = Annotated[str, Form(convert.text, "text")]
ClientId = Annotated[str, Form(convert.client_id, "text")]
Secret = Annotated[SecretStr, Form(convert.secret, "secret text", is_secret=True)]
File = Annotated[Path, Form(convert.path, "path")]
Pattern = Annotated[str, Form(convert.log4j_pattern, "log4j pattern")]
Pem = Annotated[str, Form(convert.certificates, "PEM text")]
PemKey = Annotated[SecretStr, Form(convert.private_key, "PEM text", is_secret=True)]
StoreType = Annotated[
    str,
    Form(convert.choice("PEM", "JKS", "PKCS12"), "PEM, JKS or PKCS12"),
    Default("by the content"),
]
TokenUrl = Annotated[str, Form(convert.token_url, "http, https or file URL")]
FolderUrl = Annotated[str, Form(convert.folder_url, "http or https URL")]
SecretUrl = Annotated[SecretStr, Form(convert.secret_url, "http or https URL", is_secret=True)]
Pod = Annotated[str, Form(convert.pod, "namespace/name/uid")]
Urls = Annotated[tuple[str, ...], Form(convert.urls, "URL list")]
BrokerUrls = Annotated[tuple[tuple[int, str], ...], Form(convert.broker_urls, "ID=URL list")]
Address = Annotated[HostPort, Form(convert.listen_address, "host:port")]
Servers = Annotated[
    tuple[HostPort, ...], Form(convert.addresses, "host:port list"), Default("required")
]
HttpsOrEmpty = Annotated[str, Form(convert.https_or_empty, "https or empty")]
Interval = Annotated[float, Form(convert.duration, "duration", format_duration)]
Duration = Annotated[float, Form(convert.positive_duration, "duration", format_duration)]
Size = Annotated[int, Form(convert.positive_size, "size", format_size)]
Floor = Annotated[int, Form(convert.floor, "size, 16Ki or more", format_size)]
Factor = Annotated[float, Form(convert.factor, "factor, 0.0 to 1.0")]
Rise = Annotated[float, Form(convert.open_ratio, "factor, > 0.0 and < 1.0")]
Ratio = Annotated[float, Form(convert.open_ratio, "ratio, > 0.0 and < 1.0")]
LimitBytes = Annotated[Size | None, Makes("limit", MinAvailableBytes)]
LimitRatio = Annotated[Ratio | None, Makes("limit", MinAvailableRatio)]
SoftBytes = Annotated[Size | None, Makes("soft limit", MinAvailableBytes)]
SoftRatio = Annotated[Ratio | None, Makes("soft limit", MinAvailableRatio)]
StopBytes = Annotated[Size | None, Makes("stop line", MinAvailableBytes)]
StopRatio = Annotated[Ratio | None, Makes("stop line", MinAvailableRatio)]
MarginBytes = Annotated[Size | None, Makes("release margin", MinAvailableBytes)]
MarginRatio = Annotated[Ratio | None, Makes("release margin", MinAvailableRatio)]
IdsRate = Annotated[float, Form(convert.ids_rate, "ids per window, > 0")]
BrokerId = Annotated[int, Form(convert.broker_id, "broker id")]
Windows = Annotated[int, Form(convert.positive_whole, "windows")]
Seconds = Annotated[int, Form(convert.positive_whole, "seconds")]
Millis = Annotated[int, Form(convert.positive_whole, "milliseconds")]
Sidecars = Annotated[
    int, Form(convert.positive_whole, "sidecars"), Default("3 with peers, or every sidecar")
]


Function = Annotated[str, Form(convert.function, "module:attribute")]


@dataclass(frozen=True, slots=True)
class PemFiles:
    """The contents of the files with certificates and keys; None for each that is not set.

    Attributes:
        truststore: the CA certificates.
        keystore: the sidecar's certificate chain.
        key: its key.
    """

    truststore: bytes | None
    keystore: bytes | None
    key: bytes | None


class KafkaAdmin(BaseModel):
    """How to connect and authenticate to the brokers, with the Java admin client's names.

    TLS material is a file or its PEM text, never both.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, use_attribute_docstrings=True
    )

    bootstrap_servers: Servers = ()
    """The brokers that the sidecar contacts first. Required unless the sidecar is disabled."""
    client_id: ClientId = "throttle-sidecar"
    """The client id of the sidecar's requests, which brokers log and apply quotas to."""
    security_protocol: Annotated[values.SecurityProtocol, _one_of(values.SecurityProtocol)] = (
        "PLAINTEXT"
    )
    """Whether connections use TLS, SASL or both."""
    sasl_mechanism: Annotated[values.SaslMechanism | None, _one_of(values.SaslMechanism)] = None
    """How the sidecar authenticates; required with SASL. GSSAPI is Kerberos."""
    sasl_username: Text | None = None
    """The user for PLAIN and SCRAM, instead of sasl.jaas.config."""
    sasl_password: Secret | None = None
    """The user's password, instead of sasl.jaas.config."""
    sasl_password_file: File | None = None
    """A file with the password, as an alternative to sasl.password."""
    sasl_jaas_config: Secret | None = None
    """The credentials as in the Java client: one PlainLoginModule, ScramLoginModule,
    OAuthBearerLoginModule, Krb5LoginModule or IAMLoginModule with its options."""
    sasl_oauthbearer_token_endpoint_url: TokenUrl | None = None
    """The endpoint from which the sidecar requests OAUTHBEARER tokens. A file URL names a file with
    the token itself."""
    sasl_oauthbearer_client_credentials_client_id: Text | None = None
    """The client id for OAUTHBEARER. It takes precedence over clientId in sasl.jaas.config."""
    sasl_oauthbearer_client_credentials_client_secret: Secret | None = None
    """The client secret for OAUTHBEARER. It takes precedence over clientSecret in
    sasl.jaas.config."""
    sasl_oauthbearer_assertion_file: File | None = None
    """A file with a signed JWT (a client assertion) that takes the place of the client secret for
    OAUTHBEARER."""
    sasl_oauthbearer_scope: Text | None = None
    """The scope of OAUTHBEARER tokens. It takes precedence over scope in sasl.jaas.config."""
    sasl_kerberos_keytab: File | None = None
    """The file with the key of the principal for GSSAPI. It takes precedence over keyTab in
    sasl.jaas.config."""
    sasl_kerberos_principal: Text | None = None
    """The sidecar's principal for GSSAPI, such as throttle-sidecar@EXAMPLE.ORG. It takes precedence
    over principal in sasl.jaas.config."""
    sasl_kerberos_service_name: Text = "kafka"
    """The first part of the brokers' principals, such as kafka of kafka/b1.example.org."""
    sasl_aws_region: Annotated[Text | None, Default("that of the brokers' names")] = None
    """The AWS region of the brokers for AWS_MSK_IAM."""
    ssl_truststore_type: StoreType | None = None
    """The format of the trusted certificates. If it is not PEM, the content decides between JKS and
    PKCS12, as in Java."""
    ssl_truststore_location: File | None = None
    """A file with the CA certificates to trust, or a folder with them in files that end in .crt.
    The default is to trust those of the system."""
    ssl_truststore_certificates: Pem | None = None
    """The CA certificates to trust as PEM text, instead of a file."""
    ssl_truststore_password: Secret | None = None
    """The password of a JKS or PKCS12 store; PEM certificates have none."""
    ssl_keystore_type: StoreType | None = None
    """The format of the sidecar's own certificate and key, as for the trusted certificates."""
    ssl_keystore_location: File | None = None
    """A file with the sidecar's certificate chain and its key, for mutual TLS."""
    ssl_keystore_key_location: File | None = None
    """A PEM file with the key alone, if ssl.keystore.location does not contain it (for example
    cert-manager's tls.key). The Java client has no such setting."""
    ssl_keystore_certificate_chain: Pem | None = None
    """The sidecar's certificate chain as PEM text. It requires ssl.keystore.key."""
    ssl_keystore_key: PemKey | None = None
    """The key of that certificate as PEM text. It requires ssl.keystore.certificate.chain."""
    ssl_keystore_password: Secret | None = None
    """The password of a JKS or PKCS12 store; a PEM key's is ssl.key.password."""
    ssl_key_password: Secret | None = None
    """The password of an encrypted key. In a JKS store, the default is that of the store."""
    ssl_endpoint_identification_algorithm: HttpsOrEmpty = "https"
    """Whether the sidecar checks that a broker's certificate is for the host name that it
    connected to. An empty value turns the check off."""

    sasl_setting_names: tuple[str, ...] = ()
    """The names of the settings with user and password; not a setting itself."""
    settings_source: values.Place = "environment"
    """Where an operator sets these settings, for messages; not a setting itself."""
    cluster_id: str | None = None
    """The only cluster that may answer or be changed, if it is known; not a setting itself."""
    settings_files: tuple[Path, ...] = ()
    """The settings files with secrets or PEM text in them; not a setting itself."""
    files: PemFiles | None = Field(None, repr=False)
    """The contents of the files, if they were read already; not a setting itself."""
    former: "KafkaAdmin | None" = Field(None, repr=False)
    """The same with the former credentials, which brokers may still require; not a setting
    itself."""

    @property
    def verifies_hostname(self) -> bool:
        """Whether a broker's certificate must be for the host name of the connection."""
        return self.ssl_endpoint_identification_algorithm != ""

    @property
    def trusts_system(self) -> bool:
        """Whether the machine's CA certificates are used."""
        has_own = self.ssl_truststore_location or self.ssl_truststore_certificates
        is_encrypted = self.security_protocol.endswith("SSL") and not has_own
        return is_encrypted or self.sasl_mechanism == "OAUTHBEARER"

    @property
    def key_file(self) -> Path | None:
        """The file with the key of the sidecar's certificate; None if no file contains it."""
        return self.ssl_keystore_key_location or self.ssl_keystore_location


class Settings(BaseSettings):
    """All settings of the daemon, in seconds and bytes."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
        validate_default=False,
    )

    check_interval_s: Interval = Field(60.0, alias="storage_check_interval")
    """The longest time between two polls of the cluster. 0s disables the sidecar: it publishes
    the factor 1.0 and is ready. A properties file may use .storage.check-interval, in seconds."""
    check_interval_minimum_s: Annotated[Duration, Default("PT1S, or the interval if shorter")] = (
        Field(1.0, alias="storage_check_interval_minimum")
    )
    """The shortest time between two polls, which the sidecar uses while a volume approaches its
    limit. If it equals the interval, the sidecar polls at a fixed rate."""
    kafka_admin: KafkaAdmin | None = None
    """How to reach the brokers; None if the sidecar is disabled and none are set."""
    mode: Annotated[values.Mode, _one_of(values.Mode)] = "enforce"
    """Whether the sidecar enforces its decisions. In observe mode it decides, logs and shows
    everything, but publishes the factor 1.0 to brokers and changes nothing in Kafka."""
    scope: Annotated[values.ThrottleScope, _one_of(values.ThrottleScope)] = Field(
        "cluster", alias="throttle_scope"
    )
    """Which producers are throttled when a volume is full: all producers of the cluster, or only
    producers of topics with a replica on that volume, which requires the authorizer. With
    SIDECAR_ENFORCEMENT=client-quotas it requires the request log of every broker instead."""
    enforcement: Annotated[Enforcement, _one_of(Enforcement)] = "callback"
    """What enforces the factor: the brokers' quota callback, or Kafka's client quotas, which the
    sidecar then lowers and restores and which requires ALTER_CONFIGS on the cluster. With none, the
    sidecar only watches."""
    client_quota_floor: Floor = 512 << 10
    """The lowest produce quota, for a second on each broker, that the sidecar sets with
    SIDECAR_ENFORCEMENT=client-quotas. It should be at least the size of clients' requests."""
    broker_metrics_urls: BrokerUrls = ()
    """With SIDECAR_ENFORCEMENT=client-quotas, the addresses of brokers' metrics by a JMX exporter,
    such as 1=http://broker-1:11001/metrics. They tell what clients write, so quotas fall sooner."""
    aiven_project: Text | None = None
    """The project of an Aiven for Apache Kafka service. Then SIDECAR_ENFORCEMENT=client-quotas sets
    quotas by Aiven's API, in place of Kafka's protocol."""
    aiven_service: Text | None = None
    """The name of that service."""
    aiven_token_file: File | None = None
    """A file with a token for Aiven's API. It is read for each request."""
    aiven_url: FolderUrl = "https://api.aiven.io/v1/"
    """The address of Aiven's API, or of a proxy before it."""
    fallback: Factor = Field(1.0, alias="throttle_factor_fallback")
    """The factor that applies while the sidecar has no valid factor. With 1.0, clients keep
    producing while the sidecar can't read the volumes; 0.0 throttles them to be safe."""
    validity_s: Duration = Field(300.0, alias="throttle_factor_validity_duration")
    """How long a computed factor applies while newer polls fail."""
    factor_source: Function | None = None
    """A Python function that returns the factor, in place of a limit. The sidecar calls it once in
    the check interval."""
    quota_source: Function | None = None
    """A Python function that returns client quotas. Once a minute the sidecar sets them in Kafka,
    which requires ALTER_CONFIGS on the cluster."""
    throttle_emergency_horizon: Duration = 600.0
    """While producers are throttled, brokers pause them for longer if a volume would be full sooner
    than this."""
    throttle_emergency_pause_max: Duration = 300.0
    """The longest such pause that the sidecar requests from brokers. A broker's own
    pause.emergency.max.ms may be lower."""
    storage_per_volume_limit_min_available_bytes: LimitBytes = None
    """The limit: producers are throttled when a volume has no more than this available. Exactly one
    limit must be set, unless the sidecar is disabled or has a factor source."""
    storage_per_volume_limit_min_available_ratio: LimitRatio = None
    """The limit as a share of a volume's size."""
    storage_per_volume_soft_limit_min_available_bytes: SoftBytes = None
    """The soft limit, above the limit: below it the factor falls step by step."""
    storage_per_volume_soft_limit_min_available_ratio: SoftRatio = None
    """The soft limit as a share of a volume's size."""
    throttle_horizon: Duration = 1800.0
    """How long the space between the soft limit and the limit should last. The faster a volume
    fills, the further the factor falls."""
    throttle_rise_per_minute: Rise = 0.2
    """How much the factor may rise in a minute between soft limit and limit. It falls at once."""
    storage_release_margin_bytes: MarginBytes = None
    """How much more than the limit a volume must have available before producers are released, for
    a limit in bytes."""
    storage_release_margin_ratio: MarginRatio = None
    """The release margin as a share of a volume's total size, for a limit that is a share."""
    storage_per_volume_stop_min_available_bytes: StopBytes = None
    """The stop line, below the limit: when a volume has no more than this available, brokers with
    the authorizer refuse all but excluded producers. "throttle-sidecar check" recommends one."""
    storage_per_volume_stop_min_available_ratio: StopRatio = None
    """The stop line as a share of a volume's size."""
    http_listen: Address = HostPort("127.0.0.1", 7070)
    """The address of the HTTP API. Port 0 takes a free port and logs it."""
    metrics_listen: Annotated[Address | None, Default("the same as http.listen")] = None
    """A separate address for /metrics, /healthz and /readyz, so that Prometheus can reach only
    these."""
    http_ssl_certificate_file: File | None = None
    """A PEM file with the certificate chain of the API and of /metrics, which then use TLS. The
    sidecar also presents it to other sidecars. It is read again when it changes."""
    http_ssl_key_file: File | None = None
    """A PEM file with the key of that certificate, if the certificate's file does not contain
    it."""
    http_ssl_client_ca_file: File | None = None
    """A PEM file with the CA certificates of clients. With it, all requests but /healthz and
    /readyz require a client certificate (mutual TLS)."""
    http_ssl_ca_file: File | None = None
    """A PEM file with the CA certificates by which the sidecar trusts other sidecars. The default
    is to trust those of the system."""
    http_user_header: Text | None = None
    """The request header in which an authenticating proxy names the user, such as X-Forwarded-User.
    The log and /v1/decisions name that user with each change."""
    platform: Annotated[values.Platform, _one_of(values.Platform)] = "auto"
    """Whether commands on the status page use Kafka's tools or Strimzi's resources. auto decides by
    the form of the cluster's addresses."""
    runbooks_url: FolderUrl = values.RUNBOOKS_URL
    """Where alerts link to: a sidecar's /runbooks/, or a copy of docs/runbooks."""
    webhook_url: SecretUrl | None = None
    """Where the sidecar sends a message when a throttle, the stop line, the fallback or an override
    begins or ends: Alertmanager's /api/v2/alerts, or Slack's incoming webhook. It may be secret."""
    webhook_url_file: File | None = None
    """A file with that URL, as an alternative to webhook.url. It is read again when it changes."""
    webhook_format: Annotated[values.WebhookFormat, _one_of(values.WebhookFormat)] = "alertmanager"
    """The format of these messages."""
    webhook_interval: Duration = 30.0
    """The shortest time between two messages. After it, only the last state is sent. Alertmanager
    gets a message each minute at least while an alert lasts."""
    webhook_secret_file: File | None = None
    """A file with the secret by which messages are signed (HMAC-SHA256)."""
    kubernetes_pod: Pod | None = None
    """The sidecar's own pod in Kubernetes. With it, the sidecar writes an event of the pod for each
    such change. The Helm chart sets it."""
    kubernetes_url: FolderUrl = "https://kubernetes.default.svc/"
    """The API server to which the sidecar writes these events."""
    state_file: File | None = None
    """The file in which the sidecar keeps its decision, the last volumes and the override across a
    restart. Without it, the sidecar keeps nothing."""
    relief_file: File | None = None
    """A TOML file with the topics from which the sidecar may delete the oldest records before a
    volume reaches its limit. It is read again when it changes. Without it, the sidecar deletes
    nothing."""
    relief_mode: Annotated[values.ReliefMode, _one_of(values.ReliefMode)] = "dry-run"
    """Whether the sidecar deletes these records, or only shows what it would delete. With delete,
    it needs SIDECAR_STATE_FILE, beside which it keeps a journal for 90 days."""
    relief_step: Size = 2_000_000_000
    """The most that the sidecar deletes at once, every 10 s, by its estimate of records' sizes."""
    token_file: File | None = None
    """A file with the bearer token for changes over HTTP. Without it, changes are rejected."""
    request_log_file: File | None = None
    """The request log of the broker beside this sidecar, from which the sidecar reads usage,
    producer ids and rates of clients. It must not be on a data volume."""
    request_log_layout: Pattern | None = None
    """The pattern of that log's layout in log4j, such as "%d{UNIX_MILLIS} %p %m (%c)%n". It is
    needed only if "request-log check" can't read the log without it."""
    budgets_file: File | None = None
    """A TOML file with storage budgets: how much owners of topics may use of the disks. It is read
    again when it changes."""
    history_dir: File | None = None
    """The folder to which the sidecar appends every observation of volumes, for the pipeline's
    forecasts. It must not be on a data volume."""
    history_max_bytes: Size = 1 << 30
    """The maximum size of all volume histories in that folder. The oldest hours are deleted
    first."""
    producer_ids_rate: IdsRate | None = None
    """How many new producer ids a user may have in a window, unless the quota file or the API sets
    another number."""
    producer_id_quota_file: File | None = None
    """A TOML file with the producer id quotas of users."""
    producer_id_quota_counts: Annotated[values.IdsCount, _one_of(values.IdsCount)] = "active"
    """When a producer id counts: when it first writes, which requires READ on the topics, or when
    it is allocated."""
    producer_id_quota_active_interval: Duration = 2.0
    """How often the sidecar asks partition leaders for the producer ids that write."""
    broker_id: BrokerId | None = None
    """The id of the broker beside this sidecar. With it, each sidecar reads only producers of its
    own broker's partitions, polls this broker itself although observers poll all, and its rack is
    the default zone."""
    producer_id_quota_window_num: Windows = 11
    """How many windows of producer ids a user may use at once."""
    producer_id_quota_window_size_seconds: Seconds = 3600
    """The length of the window over which producer ids are counted."""
    producer_id_quota_longest_hold: Annotated[Duration | None, Default("the window")] = None
    """The longest time for which a user stays throttled after its last excess producer id."""
    producer_id_quota_false_positive_rate: Ratio = 0.01
    """The share of new producer ids that may be mistaken for known ids, and so are not counted."""
    producer_id_quota_memory_bytes: Size = 16 << 20
    """The memory for known producer ids. The default suffices for about 6 million. More ids are
    counted, but throttle nobody."""
    producer_id_quota_cache_cleanup_scheduler_interval_ms: Millis = 60_000
    """How often users without producer ids are removed from memory."""
    peers: Urls = ()
    """All sidecars of the cluster, such as http://kafka-0.kafka:7070, the same on each sidecar. A
    name with several addresses, such as a headless Service, stands for one sidecar at each
    address."""
    observers: Sidecars | None = None
    """How many sidecars poll all brokers; the others follow these observers. It requires the same
    peers on each sidecar."""
    zone: Annotated[Text | None, Default("the broker's rack")] = None
    """The zone of this sidecar, for the choice of observers. The default requires the broker's
    id."""
    controller_mutations_algorithm: Annotated[Algorithm, _one_of(Algorithm)] = "token-bucket"
    """How the sidecar counts controller mutations: as Kafka does, or as KIP-599 first proposed."""
    controller_quota_window_num: Windows = 11
    """How many windows of mutations a client may use at once: the brokers'
    controller.quota.window.num."""
    controller_quota_window_size_seconds: Seconds = 1
    """The length of such a window: the brokers' controller.quota.window.size.seconds."""
    log_format: Annotated[values.LogFormat, _one_of(values.LogFormat)] = "text"
    """The format of log lines: for people or for machines."""
    log_level: Annotated[values.LogLevel, _one_of(values.LogLevel)] = "info"
    """The lowest level that is logged. At info there is a line for each change of the decision."""

    def made(self, role: Role) -> dict[str, Limit]:
        """Return the limits of this role, by the fields that set them."""
        fields = fields_of(type(self), role).items()
        written = {name: (kind, getattr(self, name)) for name, kind in fields}
        return {name: kind(value) for name, (kind, value) in written.items() if value is not None}

    @property
    def limit(self) -> Limit | None:
        """The limit with its release margin; None only if the sidecar is disabled."""
        for limit in self.made("limit").values():
            margins = self.made("release margin").values()
            mine = next((margin.value for margin in margins if type(margin) is type(limit)), 0.0)
            return replace(limit, release_margin=mine)
        return None

    @property
    def stop_line(self) -> Limit | None:
        """The stop line; None if none is set."""
        return next(iter(self.made("stop line").values()), None)

    @property
    def slope(self) -> SlopeRules | None:
        """The rules of the slope; None without a soft limit."""
        for soft_limit in self.made("soft limit").values():
            rise_per_s = self.throttle_rise_per_minute / 60.0
            return SlopeRules(soft_limit, self.throttle_horizon, rise_per_s)
        return None

    @property
    def leak_rules(self) -> LeakRules:
        """How much brokers may let through while producers are throttled."""
        return LeakRules(self.throttle_emergency_horizon, self.throttle_emergency_pause_max)

    @property
    def rules(self) -> Rules:
        """The rules by which volumes are judged."""
        return Rules(self.limit, self.validity_s, self.stop_line, self.slope)

    @property
    def id_counting(self) -> ProducerIdSettings:
        """How producer ids are counted (KIP-936); raises ValueError if memory is too small."""
        longest_s = self.producer_id_quota_longest_hold
        return ProducerIdSettings(
            window_num=self.producer_id_quota_window_num,
            window_size_s=self.producer_id_quota_window_size_seconds,
            false_positive_rate=self.producer_id_quota_false_positive_rate,
            most_bytes=self.producer_id_quota_memory_bytes,
            most_throttle_s=longest_s or float(self.producer_id_quota_window_size_seconds),
        )

    @property
    def mutation_window(self) -> QuotaWindow:
        """The window over which controller mutations are counted (KIP-599)."""
        size_ms = self.controller_quota_window_size_seconds * 1000
        return QuotaWindow(self.controller_quota_window_num, size_ms)
