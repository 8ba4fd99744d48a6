"""The names of settings."""

import pytest

from sidecar.settings import keys

STATIC = "client.quota.callback.static."

NAMES = [
    ("storage_check_interval", True, "storage.check_interval"),
    ("storage_check_interval_minimum", False, "storage.check_interval_minimum"),
    ("kafka_admin_bootstrap_servers", True, "kafka_admin.bootstrap_servers"),
    ("kafka_admin_security_protocol", True, "kafka_admin.security_protocol"),
    ("kafka_admin_sasl_jaas_config", True, "kafka_admin.sasl_jaas_config"),
    ("kafka_admin_sasl_password_file", True, "kafka_admin.sasl_password_file"),
    ("throttle_factor_fallback", True, "throttle_factor.fallback"),
    ("throttle_factor_validity_duration", True, "throttle_factor.validity_duration"),
    (
        "storage_per_volume_limit_min_available_bytes",
        True,
        "storage.per_volume_limit.min_available_bytes",
    ),
    (
        "storage_per_volume_limit_min_available_ratio",
        True,
        "storage.per_volume_limit.min_available_ratio",
    ),
    ("http_listen", False, "http.listen"),
    ("metrics_listen", False, "metrics.listen"),
    ("state_file", False, "state_file"),
    ("token_file", False, "token_file"),
    ("request_log_file", False, "request_log_file"),
    ("request_log_layout", False, "request_log_layout"),
    ("history_dir", False, "history.dir"),
    ("history_max_bytes", False, "history.max_bytes"),
    ("relief_file", False, "relief.file"),
    ("relief_mode", False, "relief.mode"),
    ("relief_step", False, "relief.step"),
    ("producer_ids_rate", False, "producer_ids_rate"),
    ("producer_id_quota_file", False, "producer_id_quota.file"),
    ("producer_id_quota_window_num", False, "producer_id_quota.window_num"),
    ("producer_id_quota_window_size_seconds", False, "producer_id_quota.window_size_seconds"),
    ("producer_id_quota_longest_hold", False, "producer_id_quota.longest_hold"),
    ("producer_id_quota_false_positive_rate", False, "producer_id_quota.false_positive_rate"),
    ("producer_id_quota_memory_bytes", False, "producer_id_quota.memory_bytes"),
    (
        "producer_id_quota_cache_cleanup_scheduler_interval_ms",
        False,
        "producer_id_quota.cache_cleanup_scheduler_interval_ms",
    ),
    ("peers", False, "peers"),
    ("observers", False, "observers"),
    ("controller_mutations_algorithm", False, "controller_mutations.algorithm"),
    ("controller_quota_window_num", False, "controller_quota.window_num"),
    ("controller_quota_window_size_seconds", False, "controller_quota.window_size_seconds"),
    ("platform", False, "platform"),
    ("runbooks_url", False, "runbooks_url"),
    ("log_format", False, "log.format"),
    ("log_level", False, "log.level"),
]
"""Of each setting: its name, whether the plugin has it, and its key in TOML."""


@pytest.mark.parametrize(("field", "is_plugins", "toml"), NAMES)
def test_names_are_verbatim(field: str, is_plugins: bool, toml: str) -> None:
    """Every row of the documented table has exactly these names."""
    assert f"SIDECAR_{field.upper()}" == keys.environment_key(field)
    assert (STATIC + field.replace("_", ".") if is_plugins else "") == keys.property_key(field)
    assert toml == keys.toml_key(field)


def test_no_two_settings_share_a_name() -> None:
    """A name in capitals or in TOML never means two settings."""
    for names in (keys.environment_key, keys.toml_key, keys.dotted):
        assert len(keys.FIELDS) == len({names(field) for field in keys.FIELDS})


def test_no_setting_looks_injected() -> None:
    """None of our own names could be taken for one that Kubernetes injects."""
    for field in keys.FIELDS:
        assert not keys.is_injected(keys.environment_key(field))
        assert not keys.looks_injected(keys.environment_key(field))
