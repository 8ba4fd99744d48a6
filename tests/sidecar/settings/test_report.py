"""Every setting as a row for a person."""

from pathlib import Path

import pytest

from sidecar.settings import SettingRow, describe, keys, load
from tests.sidecar.settings.support import GOOD, RATIO, loaded


def row(rows: tuple[SettingRow, ...], name: str) -> SettingRow:
    """The row of one setting."""
    return next(row for row in rows if row.name == name)


def test_describe_loads_nothing() -> None:
    """The documentation is made from it: every setting, at its default."""
    rows = describe()
    assert [keys.dotted(field) for field in keys.FIELDS] == [row.name for row in rows]
    assert {"default"} == {row.origin for row in rows}


def test_every_row_is_full() -> None:
    """It has names, unit, default and meaning; the meaning is one line of whole sentences."""
    for found in describe():
        assert all((found.environment, found.toml, found.unit, found.default, found.meaning))
        assert "\n" not in found.meaning
        assert found.meaning.endswith(".")


def test_a_row_says_all_of_a_setting() -> None:
    """It has all nine things, for a setting from the environment."""
    rows = loaded({"SIDECAR_STORAGE_CHECK_INTERVAL": "PT30S"}).rows
    found = row(rows, "storage.check.interval")
    expected = SettingRow(
        name="storage.check.interval",
        environment="SIDECAR_STORAGE_CHECK_INTERVAL",
        property="client.quota.callback.static.storage.check.interval",
        toml="storage.check_interval",
        value="PT30S",
        origin="environment",
        default="PT1M",
        unit="duration",
        meaning=found.meaning,
    )
    assert expected == found


WITH_DEFAULT = [field for field, about in keys.FIELDS.items() if about.unset.value]


@pytest.mark.parametrize("field", WITH_DEFAULT)
def test_a_default_is_what_its_text_says(field: str) -> None:
    """The default that is shown, written out, is the default that is used."""
    disabled = {"SIDECAR_STORAGE_CHECK_INTERVAL": "0s"}
    environ = disabled | {keys.environment_key(field): keys.FIELDS[field].unset.value}
    minimum = {"SIDECAR_STORAGE_CHECK_INTERVAL_MINIMUM": "1s"}
    unset = load(environ=disabled | minimum | GOOD).settings
    if field == "storage_check_interval":
        unset = loaded(minimum).settings
    assert unset == load(environ=minimum | GOOD | environ).settings


def test_defaults_that_follow_from_others_are_shown() -> None:
    """The minimum of a short interval and the metrics' address follow from others."""
    rows = loaded(
        {"SIDECAR_STORAGE_CHECK_INTERVAL": "PT0.5S", "SIDECAR_HTTP_LISTEN": "[::1]:80"}
    ).rows
    expected = ("PT0.5S", "[::1]:80", "default")
    minimum, metrics = row(rows, "storage.check.interval.minimum"), row(rows, "metrics.listen")
    assert expected == (minimum.value, metrics.value, metrics.origin)


def test_what_is_not_set_has_no_value() -> None:
    """A default of none is not a value called none."""
    found = row(loaded().rows, "token.file")
    assert ("", "none", "default") == (found.value, found.default, found.origin)


def test_values_are_shown_as_one_line(tmp_path: Path) -> None:
    """A list is as in the environment, PEM is its length, control characters are escaped."""
    config = tmp_path / "sidecar.toml"
    pem = "-----BEGIN CERTIFICATE-----\\nAAAA\\n-----END CERTIFICATE-----"
    config.write_text(
        f'state_file = "/a\\nb"\n[kafka_admin]\nbootstrap_servers = ["a:1", "b:2"]\n'
        f'security_protocol = "SSL"\nssl_truststore_certificates = "{pem}"\n'
    )
    rows = load(environ={RATIO: "0.1"}, config=config).rows
    assert ("/a\\nb", "a:1,b:2", "PEM text of 58 characters") == (
        row(rows, "state.file").value,
        row(rows, "kafka.admin.bootstrap.servers").value,
        row(rows, "kafka.admin.ssl.truststore.certificates").value,
    )
