"""Settings from a Java properties file."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from sidecar.settings.properties import read_broker_properties
from sidecar.settings.sources import Source
from tests.sidecar.settings.support import STATIC


def read(folder: Path, text: str | bytes, environ: Mapping[str, str] | None = None) -> Source:
    """Reads a file with this text."""
    file = folder / "server.properties"
    file.write_bytes(text if isinstance(text, bytes) else text.encode("iso-8859-1"))
    return read_broker_properties(file, environ or {})


@pytest.mark.parametrize(
    "line",
    [
        "KEY=a:1",
        "KEY = a:1",
        "KEY: a:1",
        "KEY a:1",
        "KEY\t\fa:1",
        "  KEY=a:1",
        "KEY=a\\:1",
        "KEY=a\\u003a1",
        "KEY=a:\\\n    1",
        "KEY=a:1\r\n",
        "KEY=a:1 \t ",
        "KEY=b:2\nKEY=a:1",
        "# KEY=b:2\n! KEY=b:2\n\nKEY=a:1",
        "KEY=a:1\rother=b",
        "\\#KEY=b:2\nKEY=a:1",
        "\xef\xbb\xbfKEY=a:1",
    ],
)
def test_the_format_is_javas(tmp_path: Path, line: str) -> None:
    """It has Java's separators, comments, escapes, continuations, line ends; a later key wins."""
    reading = read(tmp_path, line.replace("KEY", STATIC + "kafka.admin.bootstrap.servers"))
    assert "a:1" == reading.entries["kafka_admin_bootstrap_servers"].value
    assert [] == reading.problems


def test_bytes_are_iso_8859_1(tmp_path: Path) -> None:
    """Kafka reads its files so; other letters are written as escapes."""
    reading = read(tmp_path, f"{STATIC}kafka.admin.client.id=\xfc\\u20ac\\ud83d\\ude00")
    assert reading.entries["kafka_admin_client_id"].value == "\xfc\u20ac\U0001f600"


def test_a_key_is_found_again(tmp_path: Path) -> None:
    """The origin is the file and the line, counting comments, blanks and continued lines."""
    text = f"# a\r\n\r\nbroker.id=\\\n 1\n\n{STATIC}throttle.factor.fallback=0.0\n"
    reading = read(tmp_path, text)
    origin = f"properties {tmp_path}/server.properties:6"
    assert origin == reading.entries["throttle_factor_fallback"].origin


def test_a_brokers_other_keys_are_ignored(tmp_path: Path) -> None:
    """A server.properties may be pointed at as it is."""
    text = (
        "broker.id=0\nlisteners=PLAINTEXT://:9092\nclient.quota.callback.class=x.StaticQuotaCallback\n"
        "client.quota.callback.statics=1\nKAFKA.ADMIN.x=1\n"
    )
    reading = read(tmp_path, text)
    assert ({}, [], []) == (reading.entries, reading.problems, reading.notices)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("a", None),
        ("User:a;b", None),
        ("CN=a,O=b;c", None),
        ("a,b", "'a,b' is one name here"),
        ("c; a, b", "'a, b' is one name here"),
        ("User:CN=a,O=x,User:CN=b", "'CN=a,O=x,User:CN=b' is refused by the callback"),
        ("CN=a,O=x, user:CN=b", "'CN=a,O=x, user:CN=b' is refused by the callback"),
        ("User:a;user:b", "'user:b' is refused by the callback"),
    ],
)
def test_excluded_principals_that_a_comma_separates_are_noted(
    tmp_path: Path, names: str, expected: str | None
) -> None:
    """As the plugin before 0.3.1 separated them; the name of a certificate has commas too."""
    _, *noted = read(tmp_path, f"{STATIC}excluded.principal.name.list={names}").notices
    assert (expected is not None) == bool(noted)
    assert [] == [line for line in noted if expected and expected not in line]


@pytest.mark.parametrize(
    "key", ["produce", "fetch", "request", "excluded.principal.name.list", "kafka.clientIdPrefix"]
)
def test_the_callbacks_keys_are_reported_as_such(tmp_path: Path, key: str) -> None:
    """The plugin's keys that the sidecar has no use for don't stop it."""
    reading = read(tmp_path, f"{STATIC}{key}=1000")
    (notice,) = reading.notices
    assert ({}, []) == (reading.entries, reading.problems)
    assert notice.startswith(f"{STATIC}{key} (properties {tmp_path}/server.properties:1) ")


@pytest.mark.parametrize("key", ["storage.hard", "storage.soft"])
def test_removed_keys_name_what_replaced_them(tmp_path: Path, key: str) -> None:
    """The plugin's limits on all volumes together are gone; both new keys are named."""
    (problem,) = read(tmp_path, f"{STATIC}{key}=1000").problems
    for replacement in ("min.available.bytes", "min.available.ratio"):
        assert f"{STATIC}storage.per.volume.limit.{replacement}" in problem


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("storage.check.intervall", "storage.check.interval"),
        ("storage.chekc-interval", "storage.check-interval"),
        ("prodcue", "produce"),
        ("kafka.admin.sasl.jaas.conf", "kafka.admin.sasl.jaas.config"),
        ("kafka.admin.request.timeout", "kafka.admin.request.timeout.ms"),
        ("Storage.Check.Interval", "storage.check.interval"),
    ],
)
def test_an_unknown_key_names_the_nearest(tmp_path: Path, key: str, nearest: str) -> None:
    """A misspelt key is never silently without effect, and its value is not shown."""
    (problem,) = read(tmp_path, f"{STATIC}{key}=hunter2").problems
    assert problem.startswith(f"{STATIC}{key} ")
    assert problem.endswith(f" {STATIC}{nearest}")
    assert "hunter2" not in problem


def test_our_own_settings_are_no_properties(tmp_path: Path) -> None:
    """A setting that the plugin lacks says where it is set."""
    (problem,) = read(tmp_path, f"{STATIC}http.listen=a:1").problems
    assert problem.endswith("is not a property: set SIDECAR_HTTP_LISTEN, or http.listen in TOML")


@pytest.mark.parametrize(
    ("seconds", "duration"), [("30", "PT30S"), ("0", "PT0S"), ("060", "PT60S")]
)
def test_the_plugins_interval_is_in_seconds(tmp_path: Path, seconds: str, duration: str) -> None:
    """.storage.check-interval is the plugin's spelling; 0 disables."""
    reading = read(tmp_path, f"{STATIC}storage.check-interval={seconds}")
    assert duration == reading.entries["storage_check_interval"].value


@pytest.mark.parametrize("seconds", ["PT1M", "1.5", "-1", "", "60s", "\\u0661", "9" * 11])
def test_the_plugins_interval_is_whole(tmp_path: Path, seconds: str) -> None:
    """Anything but whole seconds is refused in that spelling."""
    (problem,) = read(tmp_path, f"{STATIC}storage.check-interval={seconds}").problems
    assert problem.endswith(" seconds")


@pytest.mark.parametrize("first", ["check-interval=60", "check.interval=PT1M"])
def test_both_spellings_may_agree(tmp_path: Path, first: str) -> None:
    """A file may have both for two versions of the plugin."""
    second = {"check-interval=60": "check.interval=PT60S"}.get(first, "check-interval=60")
    text = f"{STATIC}storage.{first}\n{STATIC}storage.{second}\n"
    assert [] == read(tmp_path, text).problems


@pytest.mark.parametrize("duration", ["PT30S", "P1Y"])
def test_both_spellings_may_not_differ(tmp_path: Path, duration: str) -> None:
    """Neither wins: both keys are named."""
    text = f"{STATIC}storage.check-interval=60\n{STATIC}storage.check.interval={duration}\n"
    (problem,) = read(tmp_path, text).problems
    assert f"{STATIC}storage.check-interval (properties" in problem
    assert f"{STATIC}storage.check.interval (properties" in problem
    assert problem.endswith("are two spellings of one setting and differ")


def test_the_java_clients_other_keys_are_noted(tmp_path: Path) -> None:
    """Keys that tune the Java admin client are accepted, Java classes refused."""
    reading = read(
        tmp_path,
        f"{STATIC}kafka.admin.retries=3\n{STATIC}kafka.admin.ssl.engine.factory.class=x.Y\n",
    )
    assert (1, 1) == (len(reading.notices), len(reading.problems))


def test_a_reference_is_replaced_where_the_setting_is_known(tmp_path: Path) -> None:
    """A name that the file declares is the provider's; keys of others may refer to anything."""
    text = (
        "config.providers=vars\n"
        "config.providers.vars.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
        f"{STATIC}kafka.admin.ssl.key.password=${{vars:KEY_PASSWORD}}\n"
        f"{STATIC}throttle.factor.fallback=${{vars:FALLBACK}}\n"
        "ssl.key.password=${vault:nothing:here}\n"
    )
    reading = read(tmp_path, text, {"KEY_PASSWORD": "hunter2\n", "FALLBACK": "0.5"})
    assert [] == reading.problems
    assert ("hunter2", "0.5") == (
        reading.entries["kafka_admin_ssl_key_password"].value,
        reading.entries["throttle_factor_fallback"].value,
    )


def test_a_reference_that_leads_nowhere_is_a_problem(tmp_path: Path) -> None:
    """It would be the password itself."""
    text = f"{STATIC}kafka.admin.ssl.key.password=${{env:KEY_PASSWORD}}\n"
    reading = read(tmp_path, text)
    (problem,) = reading.problems
    assert problem.endswith(": ${env:KEY_PASSWORD}: the variable KEY_PASSWORD is not set")
    assert not reading.readable


def test_a_broken_escape_is_reported_by_its_line(tmp_path: Path) -> None:
    """What comes before it is read; the text isn't quoted, since it may be a password."""
    reading = read(tmp_path, f"{STATIC}produce=1\n\nx=hunter2\\uZZZZ\n{STATIC}fetch=1\n")
    (problem,) = reading.problems
    assert problem.endswith("line 3: \\u without four hexadecimal digits")
    assert (False, 1) == (reading.readable, len(reading.notices))


@pytest.mark.parametrize(
    ("name", "message"), [("nothing", "No such file or directory"), (".", "Is a directory")]
)
def test_a_file_that_cant_be_read_is_a_problem(tmp_path: Path, name: str, message: str) -> None:
    """The message has the file and the system's reason."""
    reading = read_broker_properties(tmp_path / name, {})
    expected = f"the properties file {tmp_path / name} can't be read: {message}"
    assert ([expected], False) == (reading.problems, reading.readable)
