"""The names of settings."""

import pytest

from sidecar.settings import keys

STATIC = "client.quota.callback.static."

NAMES = [
    (
        "storage_check_interval",
        "SIDECAR_STORAGE_CHECK_INTERVAL",
        STATIC + "storage.check.interval",
        "storage.check_interval",
    ),
    (
        "storage_check_interval_minimum",
        "SIDECAR_STORAGE_CHECK_INTERVAL_MINIMUM",
        "",
        "storage.check_interval_minimum",
    ),
    (
        "kafka_admin_bootstrap_servers",
        "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS",
        STATIC + "kafka.admin.bootstrap.servers",
        "kafka_admin.bootstrap_servers",
    ),
    (
        "kafka_admin_security_protocol",
        "SIDECAR_KAFKA_ADMIN_SECURITY_PROTOCOL",
        STATIC + "kafka.admin.security.protocol",
        "kafka_admin.security_protocol",
    ),
    (
        "kafka_admin_sasl_jaas_config",
        "SIDECAR_KAFKA_ADMIN_SASL_JAAS_CONFIG",
        STATIC + "kafka.admin.sasl.jaas.config",
        "kafka_admin.sasl_jaas_config",
    ),
    (
        "kafka_admin_sasl_password_file",
        "SIDECAR_KAFKA_ADMIN_SASL_PASSWORD_FILE",
        STATIC + "kafka.admin.sasl.password.file",
        "kafka_admin.sasl_password_file",
    ),
    (
        "throttle_factor_fallback",
        "SIDECAR_THROTTLE_FACTOR_FALLBACK",
        STATIC + "throttle.factor.fallback",
        "throttle_factor.fallback",
    ),
    (
        "throttle_factor_validity_duration",
        "SIDECAR_THROTTLE_FACTOR_VALIDITY_DURATION",
        STATIC + "throttle.factor.validity.duration",
        "throttle_factor.validity_duration",
    ),
    (
        "storage_per_volume_limit_min_available_bytes",
        "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES",
        STATIC + "storage.per.volume.limit.min.available.bytes",
        "storage.per_volume_limit.min_available_bytes",
    ),
    (
        "storage_per_volume_limit_min_available_ratio",
        "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_RATIO",
        STATIC + "storage.per.volume.limit.min.available.ratio",
        "storage.per_volume_limit.min_available_ratio",
    ),
    ("http_listen", "SIDECAR_HTTP_LISTEN", "", "http.listen"),
    ("metrics_listen", "SIDECAR_METRICS_LISTEN", "", "metrics.listen"),
    ("state_file", "SIDECAR_STATE_FILE", "", "state_file"),
    ("token_file", "SIDECAR_TOKEN_FILE", "", "token_file"),
    ("request_log_file", "SIDECAR_REQUEST_LOG_FILE", "", "request_log_file"),
    ("history_dir", "SIDECAR_HISTORY_DIR", "", "history.dir"),
    ("history_max_bytes", "SIDECAR_HISTORY_MAX_BYTES", "", "history.max_bytes"),
    ("producer_ids_rate", "SIDECAR_PRODUCER_IDS_RATE", "", "producer_ids_rate"),
    ("producer_id_quota_file", "SIDECAR_PRODUCER_ID_QUOTA_FILE", "", "producer_id_quota.file"),
    (
        "producer_id_quota_window_num",
        "SIDECAR_PRODUCER_ID_QUOTA_WINDOW_NUM",
        "",
        "producer_id_quota.window_num",
    ),
    (
        "producer_id_quota_window_size_seconds",
        "SIDECAR_PRODUCER_ID_QUOTA_WINDOW_SIZE_SECONDS",
        "",
        "producer_id_quota.window_size_seconds",
    ),
    (
        "producer_id_quota_longest_hold",
        "SIDECAR_PRODUCER_ID_QUOTA_LONGEST_HOLD",
        "",
        "producer_id_quota.longest_hold",
    ),
    (
        "producer_id_quota_false_positive_rate",
        "SIDECAR_PRODUCER_ID_QUOTA_FALSE_POSITIVE_RATE",
        "",
        "producer_id_quota.false_positive_rate",
    ),
    (
        "producer_id_quota_memory_bytes",
        "SIDECAR_PRODUCER_ID_QUOTA_MEMORY_BYTES",
        "",
        "producer_id_quota.memory_bytes",
    ),
    (
        "producer_id_quota_cache_cleanup_scheduler_interval_ms",
        "SIDECAR_PRODUCER_ID_QUOTA_CACHE_CLEANUP_SCHEDULER_INTERVAL_MS",
        "",
        "producer_id_quota.cache_cleanup_scheduler_interval_ms",
    ),
    ("peers", "SIDECAR_PEERS", "", "peers"),
    (
        "controller_mutations_algorithm",
        "SIDECAR_CONTROLLER_MUTATIONS_ALGORITHM",
        "",
        "controller_mutations.algorithm",
    ),
    (
        "controller_quota_window_num",
        "SIDECAR_CONTROLLER_QUOTA_WINDOW_NUM",
        "",
        "controller_quota.window_num",
    ),
    (
        "controller_quota_window_size_seconds",
        "SIDECAR_CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS",
        "",
        "controller_quota.window_size_seconds",
    ),
    ("log_format", "SIDECAR_LOG_FORMAT", "", "log.format"),
    ("log_level", "SIDECAR_LOG_LEVEL", "", "log.level"),
]


@pytest.mark.parametrize(("field", "environment", "property_key", "toml"), NAMES)
def test_names_are_verbatim(field: str, environment: str, property_key: str, toml: str) -> None:
    """Every row of the documented table has exactly these names."""
    assert (environment, property_key, toml) == (
        keys.environment_key(field),
        keys.property_key(field),
        keys.toml_key(field),
    )


def test_no_two_settings_share_a_name() -> None:
    """A name in capitals or in TOML never means two settings."""
    for names in (keys.environment_key, keys.toml_key, keys.dotted):
        assert len(keys.FIELDS) == len({names(field) for field in keys.FIELDS})


def test_every_setting_is_described() -> None:
    """Each has a unit, a default and a meaning; a setting without them is a bug."""
    for field in keys.FIELDS:
        about = keys.about(field)
        assert about.unit
        assert about.default


@pytest.mark.parametrize(
    "variable",
    [
        "SIDECAR_SERVICE_HOST",
        "SIDECAR_SERVICE_PORT",
        "SIDECAR_SERVICE_PORT_HTTP",
        "SIDECAR_PORT",
        "SIDECAR_PORT_7070_TCP_ADDR",
    ],
)
def test_a_service_called_sidecar_is_not_ours(variable: str) -> None:
    """Kubernetes injects these for a Service called sidecar."""
    assert keys.is_injected(variable)


def test_no_setting_looks_injected() -> None:
    """None of our own names could be taken for one that Kubernetes injects."""
    for field in keys.FIELDS:
        assert not keys.is_injected(keys.environment_key(field))
        assert not keys.looks_injected(keys.environment_key(field))
