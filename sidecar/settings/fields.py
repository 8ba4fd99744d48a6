"""Every setting: its form, its default with the reason, its unit and its meaning.

This is the one list that the environment, the files, the ``settings`` command and the documentation
are made from. A field's name gives its names elsewhere (``sidecar.settings.keys``). What a single
value can't show (exactly one limit, credentials that fit the mechanism) is checked by
``sidecar.settings.loader``.

Example: ``throttle_factor_fallback`` is ``SIDECAR_THROTTLE_FACTOR_FALLBACK``,
``client.quota.callback.static.throttle.factor.fallback`` and TOML's ``throttle_factor.fallback``.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, PlainValidator, SecretStr

from sidecar.quotas.mutations.admissions import Algorithm
from sidecar.settings import convert
from sidecar.settings.values import (
    HostPort,
    IdsCount,
    LogFormat,
    LogLevel,
    Mode,
    SaslMechanism,
    SecurityProtocol,
    ThrottleScope,
)


@dataclass(frozen=True, slots=True)
class About:
    """What the type of a setting doesn't show.

    Attributes:
        unit: what the value is counted in, or its form.
        default: the default as it would be written, or in words.
        in_properties: whether the setting has a property, as the plugin's settings do.
        is_secret: whether the value is masked wherever it is shown.
    """

    unit: str
    default: str = "none"
    in_properties: bool = True
    is_secret: bool = False


_Text = PlainValidator(convert.text)
_Secret = PlainValidator(convert.secret)
_FilePath = PlainValidator(convert.path)
_StoreType = PlainValidator(convert.choice("PEM", "JKS", "PKCS12"))
_SECRET = About("secret text", is_secret=True)


class RawSettings(BaseModel):
    """The values that were set, each checked by itself; the defaults for the rest."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
        validate_default=False,
    )

    storage_check_interval: Annotated[
        float, PlainValidator(convert.duration), About("ISO 8601 duration", "PT1M")
    ] = 60.0
    """The longest time between two polls of the cluster; PT0S disables the sidecar (factor 1.0,
    ready). A properties file may have .storage.check-interval instead, in whole seconds. Default:
    proposal 047's; a minute costs a broker next to nothing."""

    storage_check_interval_minimum: Annotated[
        float | None,
        PlainValidator(convert.positive_duration),
        About("ISO 8601 duration", "PT1S, or the interval if shorter", in_properties=False),
    ] = None
    """The shortest time between two polls, used while a volume nears its limit; equal to the
    interval, polls come at a fixed pace. Default: quick enough for a disk that fills in minutes."""

    kafka_admin_bootstrap_servers: Annotated[
        tuple[HostPort, ...] | None,
        PlainValidator(convert.addresses),
        About("host:port list", "required"),
    ] = None
    """The brokers that are contacted first for the others; IPv6 addresses in brackets. Required
    unless the sidecar is disabled, since no guess could be right."""

    kafka_admin_client_id: Annotated[str, _Text, About("text", "throttle-sidecar")] = (
        "throttle-sidecar"
    )
    """What the brokers log and count the sidecar's requests as. Default: the program's name."""

    kafka_admin_security_protocol: Annotated[
        SecurityProtocol,
        PlainValidator(convert.choice("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
        About("PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL", "PLAINTEXT"),
    ] = "PLAINTEXT"
    """Whether connections are encrypted and whether SASL is spoken. Default: the Java client's."""

    kafka_admin_sasl_mechanism: Annotated[
        SaslMechanism | None,
        PlainValidator(convert.choice("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")),
        About("PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"),
    ] = None
    """How the sidecar proves who it is; required with a SASL protocol. No default: the Java
    client's is GSSAPI, which isn't spoken here."""

    kafka_admin_sasl_username: Annotated[str | None, _Text, About("text")] = None
    """The user for PLAIN and SCRAM, instead of sasl.jaas.config."""

    kafka_admin_sasl_password: Annotated[SecretStr | None, _Secret, _SECRET] = None
    """The user's password, instead of sasl.jaas.config."""

    kafka_admin_sasl_password_file: Annotated[Path | None, _FilePath, About("path")] = None
    """A file with the password, instead of sasl.password: SIGHUP reads it again, which it
    can't do with the environment."""

    kafka_admin_sasl_jaas_config: Annotated[SecretStr | None, _Secret, _SECRET] = None
    """The credentials as the Java client has them: one PlainLoginModule, ScramLoginModule or
    OAuthBearerLoginModule with its options."""

    kafka_admin_sasl_oauthbearer_token_endpoint_url: Annotated[
        str | None, PlainValidator(convert.url), About("http or https URL")
    ] = None
    """Where OAUTHBEARER's token is requested with the client's credentials."""

    kafka_admin_sasl_oauthbearer_client_credentials_client_id: Annotated[
        str | None, _Text, About("text")
    ] = None
    """The client's id for OAUTHBEARER; wins over clientId in sasl.jaas.config, as in Java."""

    kafka_admin_sasl_oauthbearer_client_credentials_client_secret: Annotated[
        SecretStr | None, _Secret, _SECRET
    ] = None
    """The client's secret for OAUTHBEARER; wins over clientSecret in sasl.jaas.config."""

    kafka_admin_sasl_oauthbearer_scope: Annotated[str | None, _Text, About("text")] = None
    """The scope that OAUTHBEARER's token is requested for; wins over scope in sasl.jaas.config."""

    kafka_admin_ssl_truststore_type: Annotated[str | None, _StoreType, About("PEM", "PEM")] = None
    """The form of the trusted certificates: PEM alone. Java's default, JKS, can't be read here."""

    kafka_admin_ssl_truststore_location: Annotated[Path | None, _FilePath, About("path")] = None
    """A PEM file with the certificates to trust. Default: those that the system trusts."""

    kafka_admin_ssl_truststore_certificates: Annotated[str | None, _Text, About("PEM text")] = None
    """The certificates to trust as text, instead of a file."""

    kafka_admin_ssl_truststore_password: Annotated[SecretStr | None, _Secret, _SECRET] = None
    """Accepted only to report that a PEM file of certificates has none, as the Java client does."""

    kafka_admin_ssl_keystore_type: Annotated[str | None, _StoreType, About("PEM", "PEM")] = None
    """The form of our own certificate and key: PEM alone."""

    kafka_admin_ssl_keystore_location: Annotated[Path | None, _FilePath, About("path")] = None
    """A PEM file with our certificate chain and its key, for mutual TLS."""

    kafka_admin_ssl_keystore_key_location: Annotated[Path | None, _FilePath, About("path")] = None
    """The key's own PEM file, where it isn't in ssl.keystore.location (cert-manager's tls.key). The
    one name here that the Java client lacks."""

    kafka_admin_ssl_keystore_certificate_chain: Annotated[str | None, _Text, About("PEM text")] = (
        None
    )
    """Our certificate chain as text, instead of a file; with ssl.keystore.key."""

    kafka_admin_ssl_keystore_key: Annotated[
        SecretStr | None, _Secret, About("PEM text", is_secret=True)
    ] = None
    """The key of our certificate as text; with ssl.keystore.certificate.chain."""

    kafka_admin_ssl_keystore_password: Annotated[SecretStr | None, _Secret, _SECRET] = None
    """Accepted only to report that PEM has ssl.key.password instead, as the Java client does."""

    kafka_admin_ssl_key_password: Annotated[SecretStr | None, _Secret, _SECRET] = None
    """The password of an encrypted key."""

    kafka_admin_ssl_endpoint_identification_algorithm: Annotated[
        str,
        PlainValidator(convert.text_or_empty),
        About("https or empty", "https"),
    ] = "https"
    """Whether a broker's certificate must be for the name that was dialled (https); empty turns
    that off. Default: the Java client's."""

    mode: Annotated[
        Mode,
        PlainValidator(convert.choice("enforce", "observe")),
        About("enforce or observe", "enforce", in_properties=False),
    ] = "enforce"
    """Whether what is decided is in force. With observe all of it is decided, logged and shown, and
    nobody is throttled: brokers get 1.0, and nothing is written to Kafka. Default: what a throttle
    is installed for; observe first where you want to know what it would do."""

    throttle_scope: Annotated[
        ThrottleScope,
        PlainValidator(convert.choice("cluster", "volume")),
        About("cluster or volume", "cluster", in_properties=False),
    ] = "cluster"
    """Whose producers are throttled when a volume is full: all of the cluster, or those that write
    to a topic with a replica on that volume, which needs the authorizer on the brokers. Default:
    proposal 047's."""

    throttle_factor_fallback: Annotated[
        float, PlainValidator(convert.factor), About("factor, 0.0 to 1.0", "1.0")
    ] = 1.0
    """The factor once no valid one is left. Default: proposal 047's, which lets clients produce
    rather than stop them because the sidecar can't see; 0.0 is the careful choice."""

    throttle_factor_validity_duration: Annotated[
        float, PlainValidator(convert.positive_duration), About("ISO 8601 duration", "PT5M")
    ] = 300.0
    """How long a computed factor may be used while newer polls fail. Default: proposal 047's, five
    polls of a minute."""

    throttle_emergency_horizon: Annotated[
        float,
        PlainValidator(convert.positive_duration),
        About("ISO 8601 duration", "PT10M", in_properties=False),
    ] = 600.0
    """While producers are throttled no volume may be full sooner than this at the rate that it
    still fills: brokers let through less, by longer pauses. Default: time for a person to come."""

    throttle_emergency_pause_max: Annotated[
        float,
        PlainValidator(convert.positive_duration),
        About("ISO 8601 duration", "PT5M", in_properties=False),
    ] = 300.0
    """The longest pause that brokers are told to make then; a broker's own
    pause.emergency.max.ms is an upper bound. Default: clients time out whatever it is."""

    storage_per_volume_limit_min_available_bytes: Annotated[
        int | None, PlainValidator(convert.positive_bytes), About("bytes, > 0")
    ] = None
    """Throttle when a volume has at most so many bytes available. Exactly one of the limits is
    needed; none has a default, since only the operator knows what a volume must have left."""

    storage_per_volume_limit_min_available_ratio: Annotated[
        float | None, PlainValidator(convert.open_ratio), About("ratio, > 0.0 and < 1.0")
    ] = None
    """Throttle when a volume has at most this share of its bytes available. Exactly one of the
    limits is needed."""

    storage_per_volume_soft_limit_min_available_bytes: Annotated[
        int | None,
        PlainValidator(convert.positive_bytes),
        About("bytes, > 0", in_properties=False),
    ] = None
    """The soft limit, above the limit: from there on the factor falls step by step, so that
    producers are slowed before they are throttled. One of the two at most. Default: none, so the
    factor is 1.0 until the limit."""

    storage_per_volume_soft_limit_min_available_ratio: Annotated[
        float | None,
        PlainValidator(convert.open_ratio),
        About("ratio, > 0.0 and < 1.0", in_properties=False),
    ] = None
    """The soft limit as a share of a volume's bytes. One of the two at most."""

    throttle_horizon: Annotated[
        float,
        PlainValidator(convert.positive_duration),
        About("ISO 8601 duration", "PT30M", in_properties=False),
    ] = 1800.0
    """How long what is left between the soft limit and the limit has to last, at the rate at which
    a volume fills. Default: time for a person to come before producers are throttled."""

    throttle_rise_per_minute: Annotated[
        float,
        PlainValidator(convert.open_ratio),
        About("factor, > 0.0 and < 1.0", "0.2", in_properties=False),
    ] = 0.2
    """By how much the factor rises at most in a minute between the soft limit and the limit; it
    falls at once. Default: from 0.0 to 1.0 in five minutes."""

    storage_release_margin_bytes: Annotated[
        int | None,
        PlainValidator(convert.positive_bytes),
        About("bytes, > 0", in_properties=False),
    ] = None
    """By how many bytes more than the limit a volume that violated it has to have until it no
    longer does; for a limit in bytes. Default: none; a volume that goes up and down at its limit
    then throttles and releases with it."""

    storage_release_margin_ratio: Annotated[
        float | None,
        PlainValidator(convert.open_ratio),
        About("ratio, > 0.0 and < 1.0", in_properties=False),
    ] = None
    """The same as a share of the volume's bytes, for a limit that is one."""

    storage_per_volume_stop_min_available_bytes: Annotated[
        int | None,
        PlainValidator(convert.positive_bytes),
        About("bytes, > 0", in_properties=False),
    ] = None
    """The stop line, below the limit: when a volume has at most so many bytes available nothing is
    admitted, from anybody but those excluded. One of the two at most. Default: none, since clients
    lose records by it; "throttle-sidecar check" recommends one."""

    storage_per_volume_stop_min_available_ratio: Annotated[
        float | None,
        PlainValidator(convert.open_ratio),
        About("ratio, > 0.0 and < 1.0", in_properties=False),
    ] = None
    """The stop line as a share of a volume's bytes. One of the two at most."""

    http_listen: Annotated[
        HostPort,
        PlainValidator(convert.listen_address),
        About("host:port", "127.0.0.1:7070", in_properties=False),
    ] = HostPort("127.0.0.1", 7070)
    """Where the HTTP API listens; port 0 takes a free one and logs it. Default: the loopback
    alone, since the quota callback is in the same pod."""

    metrics_listen: Annotated[
        HostPort | None,
        PlainValidator(convert.listen_address),
        About("host:port", "the same as http.listen", in_properties=False),
    ] = None
    """An address of its own for /metrics, /healthz and /readyz, so that Prometheus reaches them and
    nothing else. Default: none is opened unless this is set."""

    state_file: Annotated[Path | None, _FilePath, About("path", in_properties=False)] = None
    """Where decision, volumes and override are stored over a restart. Default: nothing is written
    unless this is set."""

    token_file: Annotated[Path | None, _FilePath, About("path", in_properties=False)] = None
    """A file with the bearer token for changes over HTTP. Default: changes are refused."""

    request_log_file: Annotated[Path | None, _FilePath, About("path", in_properties=False)] = None
    """The request log of the broker beside this sidecar, which it follows for usage and producer
    ids; never on a data volume. Default: no log is read."""

    history_dir: Annotated[Path | None, _FilePath, About("path", in_properties=False)] = None
    """The folder that every observation of volumes is appended to, for the pipeline's forecasts;
    never on a data volume. Default: nothing is written unless this is set."""

    history_max_bytes: Annotated[
        int,
        PlainValidator(convert.positive_bytes),
        About("bytes", "1073741824", in_properties=False),
    ] = 1 << 30
    """What the volume histories in that folder may take together; the oldest hours are removed.
    Default: two years of 100 volumes, read every minute, or 5 days of 12,000."""

    producer_ids_rate: Annotated[
        float | None,
        PlainValidator(convert.ids_rate),
        About("ids per window, > 0", in_properties=False),
    ] = None
    """How many new producer ids a user may have in a window, unless the file or the API sets it.
    Default: KIP-936's, any number."""

    producer_id_quota_file: Annotated[
        Path | None, _FilePath, About("path", in_properties=False)
    ] = None
    """A TOML file with the producer id quotas of users, read again when it changes. Default: the
    API's quotas are the only ones."""

    producer_id_quota_counts: Annotated[
        IdsCount,
        PlainValidator(convert.choice("active", "allocated")),
        About("active or allocated", "active", in_properties=False),
    ] = "active"
    """When a producer id counts: when it writes, which needs READ on the topics, or when it is
    allocated. Default: KIP-936's; an id that never writes costs a broker nothing."""

    producer_id_quota_active_interval: Annotated[
        float,
        PlainValidator(convert.positive_duration),
        About("ISO 8601 duration", "PT2S", in_properties=False),
    ] = 2.0
    """How often leaders are asked which ids write. Default: a throttle begins two seconds late, and
    a scan costs a broker little."""

    broker_id: Annotated[
        int | None, PlainValidator(convert.broker_id), About("broker id", in_properties=False)
    ] = None
    """The id of the broker beside this sidecar, whose partitions are then the only ones that it
    reads for producers; the peers do the same. Default: all brokers are read for theirs, by the
    observers alone where there are some."""

    producer_id_quota_window_num: Annotated[
        int, PlainValidator(convert.positive_whole), About("windows", "11", in_properties=False)
    ] = 11
    """How many windows' producer ids may come at once. Default: KIP-936's."""

    producer_id_quota_window_size_seconds: Annotated[
        int, PlainValidator(convert.positive_whole), About("seconds", "3600", in_properties=False)
    ] = 3600
    """The window that producer ids are counted in. Default: KIP-936's, an hour."""

    producer_id_quota_longest_hold: Annotated[
        float | None,
        PlainValidator(convert.positive_duration),
        About("ISO 8601 duration", "the window", in_properties=False),
    ] = None
    """How long a user is throttled at most after the last id too many. KIP-936 has no bound: a loop
    of 30 ids a second would be throttled for days after its repair. Default: one window."""

    producer_id_quota_false_positive_rate: Annotated[
        float,
        PlainValidator(convert.open_ratio),
        About("ratio, > 0.0 and < 1.0", "0.01", in_properties=False),
    ] = 0.01
    """How many new producer ids may be mistaken for known ones. Default: a hundredth more than
    the quota is seldom worth more memory."""

    producer_id_quota_memory_bytes: Annotated[
        int, PlainValidator(convert.positive_bytes), About("bytes", "16777216", in_properties=False)
    ] = 16 << 20
    """What retaining producer ids may take; ids without room are counted and throttle nobody.
    Default: room for thousands of users, or for 6 million ids."""

    producer_id_quota_cache_cleanup_scheduler_interval_ms: Annotated[
        int,
        PlainValidator(convert.positive_whole),
        About("milliseconds", "60000", in_properties=False),
    ] = 60_000
    """How often users without ids are removed. Default: not KIP-936's 10 ms, since access removes
    them too."""

    peers: Annotated[
        tuple[str, ...] | None, PlainValidator(convert.urls), About("URL list", in_properties=False)
    ] = None
    """The other sidecars of the cluster, such as http://kafka-0.kafka:7070: an idempotent producer
    gets its id from any broker, so only together do they see all of a user's. A name with several
    addresses, as that of a headless Service, is as many sidecars. Default: none is read."""

    observers: Annotated[
        int | None,
        PlainValidator(convert.positive_whole),
        About("sidecars", "every sidecar", in_properties=False),
    ] = None
    """So many of the sidecars ask all brokers, and the others follow those, by peers: the same list
    for all, with every sidecar in it. Default: every sidecar asks every broker."""

    controller_mutations_algorithm: Annotated[
        Algorithm,
        PlainValidator(convert.choice("token-bucket", "burst-spreading")),
        About("token-bucket or burst-spreading", "token-bucket", in_properties=False),
    ] = "token-bucket"
    """How controller mutations admitted here are counted: KIP-599 as it was adopted, or
    as it was first proposed. Default: Kafka's."""

    controller_quota_window_num: Annotated[
        int, PlainValidator(convert.positive_whole), About("windows", "11", in_properties=False)
    ] = 11
    """How many windows' controller mutations may come at once: the brokers'
    controller.quota.window.num. Default: Kafka's."""

    controller_quota_window_size_seconds: Annotated[
        int, PlainValidator(convert.positive_whole), About("seconds", "1", in_properties=False)
    ] = 1
    """One such window: the brokers' controller.quota.window.size.seconds. Default: Kafka's."""

    log_format: Annotated[
        LogFormat,
        PlainValidator(convert.choice("text", "json")),
        About("text or json", "text", in_properties=False),
    ] = "text"
    """How lines are logged. Default: for a person to read."""

    log_level: Annotated[
        LogLevel,
        PlainValidator(convert.choice("debug", "info", "warning", "error")),
        About("debug, info, warning or error", "info", in_properties=False),
    ] = "info"
    """The least level that is logged. Default: one line for each change of decision."""
