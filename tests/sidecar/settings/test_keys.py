"""The names of settings."""

import pytest

from sidecar.settings import keys

STATIC = "client.quota.callback.static."

NAMES = [
    ("storage_check_interval", True, "storage.check_interval"),
    ("storage_check_interval_minimum", False, "storage.check_interval_minimum"),
    ("kafka_admin_sasl_jaas_config", True, "kafka_admin.sasl_jaas_config"),
    ("throttle_factor_fallback", True, "throttle_factor.fallback"),
    (
        "storage_per_volume_limit_min_available_bytes",
        True,
        "storage.per_volume_limit.min_available_bytes",
    ),
    ("http_listen", False, "http.listen"),
    ("metrics_listen", False, "metrics.listen"),
    ("state_file", False, "state_file"),
    ("history_max_bytes", False, "history.max_bytes"),
    ("relief_file", False, "relief.file"),
    ("producer_ids_rate", False, "producer_ids_rate"),
    ("producer_id_quota_window_num", False, "producer_id_quota.window_num"),
    ("controller_mutations_algorithm", False, "controller_mutations.algorithm"),
    ("controller_quota_window_num", False, "controller_quota.window_num"),
    ("log_format", False, "log.format"),
]
"""For each table of TOML: a setting, whether the plugin has it, and its key in TOML.

docs/settings.md has the names of all, and tests/test_documents.py compares them.
"""


@pytest.mark.parametrize(("field", "is_plugins", "toml"), NAMES)
def test_names_are_verbatim(field: str, is_plugins: bool, toml: str) -> None:
    """They follow from the field: in capitals, with dots, and in the tables of TOML."""
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
        assert not keys.is_injected(keys.environment_key(field), "tcp://10.0.0.1:7070")
        assert not keys.looks_injected(keys.environment_key(field))
