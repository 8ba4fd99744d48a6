"""``throttle-sidecar settings``."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sidecar.cli import group
from sidecar.settings import describe

GOOD = {
    "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": "broker-0:9092",
    "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_RATIO": "0.05",
    "SIDECAR_KAFKA_ADMIN_SECURITY_PROTOCOL": "SASL_SSL",
    "SIDECAR_KAFKA_ADMIN_SASL_MECHANISM": "PLAIN",
    "SIDECAR_KAFKA_ADMIN_SASL_USERNAME": "ann",
    "SIDECAR_KAFKA_ADMIN_SASL_PASSWORD": "hunter2",
}


def settings(*args: str, env: dict[str, str]) -> Result:
    """The command with these arguments and this environment."""
    return CliRunner().invoke(group, ["settings", *args], env=env)


def test_the_table_has_every_setting_at_80_columns() -> None:
    """In a pipe it has no colours, no line is too long, and nothing is cut off."""
    result = settings(env=GOOD)
    assert 80 >= max(len(line) for line in result.stdout.splitlines())
    # A long name is on two lines, the second one from a dot on.
    first_column = "\n".join(line[:50].strip() for line in result.stdout.splitlines())
    lines = first_column.replace("\n.", ".").splitlines()
    for row in describe():
        assert row.meaning.startswith(lines[lines.index(row.name) + 1])
    assert "\x1b" not in result.stdout
    assert "\N{HORIZONTAL ELLIPSIS}" not in result.stdout


def test_the_table_has_value_origin_default_and_unit() -> None:
    """The table has them for a setting that is set and for one that isn't."""
    blocks = settings(env=GOOD).stdout.split("\u2500 \n")
    ratio = next(block for block in blocks if "limit.min.available.ratio" in block)
    for expected in ("0.05", "from environment", "default: none", "unit: ratio, > 0.0"):
        assert expected in ratio
    token = next(block for block in blocks if "token.file" in block)
    for expected in ("not set", "default: none", "unit: path"):
        assert expected in token


def test_json_has_every_setting_in_full() -> None:
    """A program gets the same rows, notices too."""
    env = GOOD | {"SIDECAR_KAFKA_ADMIN_RETRIES": "5"}
    document = json.loads(settings("--json", env=env).stdout)
    assert [row.name for row in describe()] == [row["name"] for row in document["settings"]]
    ratio = next(row for row in document["settings"] if row["name"].endswith("available.ratio"))
    expected = ("0.05", "environment", "none", "ratio, > 0.0 and < 1.0")
    assert expected == (ratio["value"], ratio["origin"], ratio["default"], ratio["unit"])
    (notice,) = document["notices"]
    assert notice.startswith("SIDECAR_KAFKA_ADMIN_RETRIES ")


def test_notices_are_reported_beside_the_table() -> None:
    """They are on standard error, so that a table in a pipe is only the table."""
    result = settings(env=GOOD | {"SIDECAR_KAFKA_ADMIN_RETRIES": "5"})
    assert result.stderr.startswith("Note: SIDECAR_KAFKA_ADMIN_RETRIES ")
    assert result.stderr.strip() not in result.stdout


def test_files_are_read(tmp_path: Path) -> None:
    """--config and --properties name the files; the origin says which it was."""
    config, properties = tmp_path / "c.toml", tmp_path / "s.properties"
    config.write_text('log_level = "debug"\nlog_format = "json"')
    properties.write_text("client.quota.callback.static.throttle.factor.fallback=0.5\n")
    args = ("--json", "--config", str(config), "--properties", str(properties))
    rows = json.loads(settings(*args, env=GOOD).stdout)["settings"]
    origins = {row["name"]: row["origin"] for row in rows if row["origin"] != "environment"}
    expected = (f"toml {config}", f"properties {properties}:1")
    assert expected == (origins["log.level"], origins["throttle.factor.fallback"])


@pytest.mark.parametrize("args", [(), ("--json",)])
def test_every_problem_is_reported_and_the_exit_code_is_2(args: tuple[str, ...]) -> None:
    """Each is a line on standard error, after the settings; there is no traceback."""
    result = settings(*args, env={"SIDECAR_LOG_LEVEL": "loud", "SIDECAR_LOG_LEVL": "x"})
    assert 2 == result.exit_code
    lines = result.stderr.splitlines()
    starts = ["SIDECAR_LOG_LEVL ", "SIDECAR_KAFK", "SIDECAR_STOR", "SIDECAR_LOG_L"]
    assert starts == [line[: len(start)] for line, start in zip(lines, starts, strict=True)]


def test_with_nothing_set_every_setting_is_listed_and_the_missing_are_marked() -> None:
    """Somebody who installs it reads this first."""
    document = json.loads((as_json := settings("--json", env={})).stdout)
    assert [row.name for row in describe()] == [row["name"] for row in document["settings"]]
    marked = {row["name"]: row["problems"] for row in document["settings"] if row["problems"]}
    missing = ["kafka.admin.bootstrap.servers", "storage.per.volume.limit.min.available.bytes"]
    assert missing == list(marked)
    expected = [line for lines in marked.values() for line in lines]
    assert expected == document["problems"] == as_json.stderr.splitlines()

    table = settings(env={}).stdout
    assert 80 >= max(len(line) for line in table.splitlines())
    blocks = [block for block in table.split("\u2500 \n") if "default: " in block]
    assert len(describe()) == len(blocks)
    assert len(missing) == sum("Problem:" in block for block in blocks)
    for name in missing:
        assert any(name[:40] in block and "Problem:" in block for block in blocks)


def test_a_value_that_is_refused_is_marked_and_not_shown() -> None:
    """It may be a secret in the wrong place; the others are shown, secrets masked as ever."""
    env = GOOD | {"SIDECAR_KAFKA_ADMIN_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL": "s3cr3t"}
    result, as_json = settings(env=env), settings("--json", env=env)
    assert (2, 2) == (result.exit_code, as_json.exit_code)
    rows = {row["name"]: row for row in json.loads(as_json.stdout)["settings"]}
    refused = rows["kafka.admin.sasl.oauthbearer.token.endpoint.url"]
    assert ("", "environment") == (refused["value"], refused["origin"])
    assert refused["problems"]
    assert "broker-0:9092" == rows["kafka.admin.bootstrap.servers"]["value"]
    assert "********" == rows["kafka.admin.sasl.password"]["value"]
    assert " refused " in result.stdout
    for secret in ("s3cr3t", "hunter2"):
        assert secret not in result.output + as_json.output
