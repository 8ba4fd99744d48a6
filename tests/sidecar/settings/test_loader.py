"""All settings together: every row of the documented table, every rule and every refusal."""

from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.errors import SettingsError
from sidecar.kafka.source import ANSWER_TIMEOUT_S
from sidecar.quotas.producer_ids.id_counts import ProducerIdSettings
from sidecar.quotas.rate import QuotaWindow
from sidecar.settings import HostPort, KafkaAdmin, Settings, keys, load
from sidecar.settings.rules import SAFE_VALIDITY_S
from sidecar.throttle.leak import LeakRules
from sidecar.throttle.limits import MinAvailableBytes, MinAvailableRatio
from sidecar.throttle.slope import SlopeRules
from tests.sidecar.settings.support import (
    ADMIN,
    BYTES,
    GOOD,
    RATIO,
    STATIC,
    STOP_BYTES,
    STOP_RATIO,
    loaded,
    problem,
    problems,
)

INTERVAL = "SIDECAR_STORAGE_CHECK_INTERVAL"
MINIMUM = "SIDECAR_STORAGE_CHECK_INTERVAL_MINIMUM"
SECRETS = [field for field, about in keys.FIELDS.items() if about.form.is_secret]


def settings(environ: dict[str, str] | None = None) -> Settings:
    """The result of the good settings with these."""
    return loaded(environ).settings


def files(folder: Path, toml: str = "", properties: str = "") -> dict[str, Path]:
    """A TOML and a properties file with these texts, as ``load`` takes them."""
    found = {"config": folder / "sidecar.toml", "properties": folder / "server.properties"}
    found["config"].write_text(toml)
    found["properties"].write_text(properties)
    return found


IDS = "SIDECAR_PRODUCER_ID_QUOTA"


def ids(**more: Any) -> ProducerIdSettings:
    """The defaults, but for these."""
    return replace(ProducerIdSettings(most_throttle_s=3600.0), **more)


def test_the_defaults_are_the_documented_ones() -> None:
    """With servers and a limit alone, every other setting is at its default."""
    found = settings()
    expected = {
        "check_interval_s": 60.0,
        "check_interval_minimum_s": 1.0,
        "kafka_admin": KafkaAdmin(bootstrap_servers=(HostPort("broker-0", 9092),)),
        "fallback": 1.0,
        "validity_s": 300.0,
        "leak_rules": LeakRules(horizon_s=600.0, pause_max_s=300.0),
        "mode": "enforce",
        "scope": "cluster",
        "limit": MinAvailableRatio(0.05),
        "stop_line": None,
        "slope": None,
        "http_listen": HostPort("127.0.0.1", 7070),
        "metrics_listen": None,
        "state_file": None,
        "token_file": None,
        "request_log_file": None,
        "request_log_layout": None,
        "peers": (),
        "observers": None,
        "zone": None,
        "producer_ids_rate": None,
        "producer_id_quota_file": None,
        "id_counting": ProducerIdSettings(most_throttle_s=3600.0),
        "producer_id_quota_counts": "active",
        "producer_id_quota_active_interval": 2.0,
        "broker_id": None,
        "producer_id_quota_cache_cleanup_scheduler_interval_ms": 60_000,
        "controller_mutations_algorithm": "token-bucket",
        "mutation_window": QuotaWindow(11, 1000),
        "history_dir": None,
        "history_max_bytes": 1 << 30,
        "relief_file": None,
        "relief_mode": "dry-run",
        "relief_step": 2_000_000_000,
        "platform": "auto",
        "runbooks_url": "http://127.0.0.1:7070/runbooks/",
        "kubernetes_pod": None,
        "kubernetes_url": "https://kubernetes.default.svc/",
        "log_format": "text",
        "log_level": "info",
    }
    assert expected == {name: getattr(found, name) for name in expected}


COUNTING = "id_counting"
CLEANUP = "producer_id_quota_cache_cleanup_scheduler_interval_ms"

ROWS = [
    (INTERVAL, "check_interval_s", "PT30S", 30.0, "60"),
    (MINIMUM, "check_interval_minimum_s", "PT0.1S", 0.1, "PT0S"),
    ("SIDECAR_THROTTLE_FACTOR_FALLBACK", "fallback", "0.0", 0.0, "1.1"),
    ("SIDECAR_THROTTLE_FACTOR_VALIDITY_DURATION", "validity_s", "PT2M", 120.0, "PT0S"),
    ("SIDECAR_MODE", "mode", "observe", "observe", "shadow"),
    ("SIDECAR_THROTTLE_SCOPE", "scope", "volume", "volume", "topic"),
    (RATIO, "limit", "0.1", MinAvailableRatio(0.1), "1.0"),
    (STOP_BYTES, "stop_line", "10", MinAvailableBytes(10), "0"),
    (STOP_RATIO, "stop_line", "0.01", MinAvailableRatio(0.01), "0.0"),
    ("SIDECAR_HTTP_LISTEN", "http_listen", "[::]:0", HostPort("::", 0), "7070"),
    (
        "SIDECAR_METRICS_LISTEN",
        "metrics_listen",
        "0.0.0.0:9404",
        HostPort("0.0.0.0", 9404),
        "::1:9404",
    ),
    ("SIDECAR_STATE_FILE", "state_file", "/var/s", Path("/var/s"), ""),
    ("SIDECAR_TOKEN_FILE", "token_file", "/run/t", Path("/run/t"), ""),
    ("SIDECAR_REQUEST_LOG_FILE", "request_log_file", "/var/r", Path("/var/r"), ""),
    ("SIDECAR_REQUEST_LOG_LAYOUT", "request_log_layout", "%d %m", "%d %m", "%d %q %m"),
    ("SIDECAR_HISTORY_DIR", "history_dir", "/var/h", Path("/var/h"), ""),
    ("SIDECAR_HISTORY_MAX_BYTES", "history_max_bytes", "5000", 5000, "0"),
    ("SIDECAR_RELIEF_FILE", "relief_file", "/etc/r", Path("/etc/r"), ""),
    ("SIDECAR_RELIEF_MODE", "relief_mode", "off", "off", "on"),
    ("SIDECAR_RELIEF_STEP", "relief_step", "5000", 5000, "0"),
    ("SIDECAR_PRODUCER_IDS_RATE", "producer_ids_rate", "50", 50.0, "0"),
    (f"{IDS}_FILE", "producer_id_quota_file", "/etc/q", Path("/etc/q"), ""),
    (f"{IDS}_WINDOW_NUM", COUNTING, "5", ids(window_num=5), "0"),
    (
        f"{IDS}_WINDOW_SIZE_SECONDS",
        COUNTING,
        "60",
        ids(window_size_s=60, most_throttle_s=60.0),
        "1.5",
    ),
    (f"{IDS}_LONGEST_HOLD", COUNTING, "PT10M", ids(most_throttle_s=600.0), "PT0S"),
    (f"{IDS}_FALSE_POSITIVE_RATE", COUNTING, "0.001", ids(false_positive_rate=0.001), "1"),
    (f"{IDS}_MEMORY_BYTES", COUNTING, "1000000", ids(most_bytes=1_000_000), "10"),
    (f"{IDS}_CACHE_CLEANUP_SCHEDULER_INTERVAL_MS", CLEANUP, "500", 500, "-1"),
    (f"{IDS}_COUNTS", "producer_id_quota_counts", "allocated", "allocated", "made"),
    (f"{IDS}_ACTIVE_INTERVAL", "producer_id_quota_active_interval", "PT5S", 5.0, "PT0S"),
    ("SIDECAR_BROKER_ID", "broker_id", "0", 0, "-1"),
    ("SIDECAR_ZONE", "zone", "eu-1a", "eu-1a", ""),
    (
        "SIDECAR_PEERS",
        "peers",
        "http://a:7070/, https://b",
        ("http://a:7070", "https://b"),
        "a:7070",
    ),
    (
        "SIDECAR_CONTROLLER_MUTATIONS_ALGORITHM",
        "controller_mutations_algorithm",
        "burst-spreading",
        "burst-spreading",
        "leaky-bucket",
    ),
    ("SIDECAR_CONTROLLER_QUOTA_WINDOW_NUM", "mutation_window", "100", QuotaWindow(100, 1000), "0"),
    (
        "SIDECAR_CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS",
        "mutation_window",
        "2",
        QuotaWindow(11, 2000),
        "0.5",
    ),
    ("SIDECAR_PLATFORM", "platform", "strimzi", "strimzi", "kubernetes"),
    (
        "SIDECAR_RUNBOOKS_URL",
        "runbooks_url",
        "https://a.org/books",
        "https://a.org/books/",
        "/books",
    ),
    ("SIDECAR_KUBERNETES_POD", "kubernetes_pod", "kafka/a-0/u-1", "kafka/a-0/u-1", "/a-0/"),
    ("SIDECAR_LOG_FORMAT", "log_format", "json", "json", "yaml"),
    ("SIDECAR_LOG_LEVEL", "log_level", "DEBUG", "debug", "trace"),
]


@pytest.mark.parametrize(("variable", "field", "text", "expected"), [row[:4] for row in ROWS])
def test_each_row_is_taken(variable: str, field: str, text: str, expected: object) -> None:
    """The environment variable of every setting in the table is read."""
    assert expected == attrgetter(field)(settings({variable: text}))


@pytest.mark.parametrize(("variable", "text"), [(row[0], row[4]) for row in ROWS])
def test_each_row_has_its_refusal(variable: str, text: str) -> None:
    """One wrong value gives one line, which names the variable; why is test_convert's."""
    assert problem({variable: text}).startswith(f"{variable}: ")


def test_a_limit_in_bytes_is_the_other_type() -> None:
    """The limit is one of two types, never two optional numbers."""
    environ = {f"{ADMIN}BOOTSTRAP_SERVERS": "a:1", BYTES: "1000000000"}
    assert MinAvailableBytes(1_000_000_000) == load(environ=environ).settings.limit


@pytest.mark.parametrize(
    ("environ", "message"),
    [({}, "none is set"), ({BYTES: "1", RATIO: "0.1"}, "2 are set")],
)
def test_exactly_one_limit_is_needed(environ: dict[str, str], message: str) -> None:
    """None and both are refused, and both keys are named."""
    (line,) = problems({f"{ADMIN}BOOTSTRAP_SERVERS": "a:1"} | environ)
    assert line.endswith(message)
    assert BYTES in line
    assert RATIO in line


def test_two_limits_in_two_places_are_both_named(tmp_path: Path) -> None:
    """The environment doesn't replace a limit of the other type, and the file is named."""
    properties = f"{STATIC}storage.per.volume.limit.min.available.bytes=5\n"
    (line,) = problems(GOOD, **files(tmp_path, properties=properties))
    assert f"{tmp_path}/server.properties:1" in line
    assert RATIO in line
    assert "2 are set" in line


def test_of_stop_lines_there_is_one_at_most() -> None:
    """Both are named."""
    line = problem({STOP_BYTES: "1", STOP_RATIO: "0.5"})
    assert f"{STOP_BYTES}: only one of this and {STOP_RATIO} can be set; 2 are" == line


SERVERS = {f"{ADMIN}BOOTSTRAP_SERVERS": "a:1"}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (
            {BYTES: "5000", STOP_BYTES: "5000"},
            f"{STOP_BYTES}: 5000 is at the limit, 5000 in {BYTES}: the stop line must be below it",
        ),
        (
            {BYTES: "5000", STOP_BYTES: "5001"},
            f"{STOP_BYTES}: 5001 is above the limit, 5000 in {BYTES}: the stop line must be below "
            "it",
        ),
        (
            {RATIO: "0.1", STOP_RATIO: "0.1"},
            f"{STOP_RATIO}: 0.1 is at the limit, 0.1 in {RATIO}: the stop line must be below it",
        ),
    ],
)
def test_a_stop_line_is_below_the_limit(environ: dict[str, str], expected: str) -> None:
    """Both are named, with their values."""
    assert (expected,) == problems(SERVERS | environ)
    assert (expected,) == problems({INTERVAL: "PT0S"} | environ)


@pytest.mark.parametrize(
    "environ",
    [
        {BYTES: "5000", STOP_BYTES: "4999"},
        {RATIO: "0.1", STOP_RATIO: "0.0999"},
        # These can be compared on a volume alone.
        {BYTES: "1", STOP_RATIO: "0.9"},
        {RATIO: "0.1", STOP_BYTES: "9000000000000"},
    ],
)
def test_a_stop_line_below_the_limit_is_taken(environ: dict[str, str]) -> None:
    """One byte below is, and one of the other type."""
    assert load(environ=SERVERS | environ).settings.stop_line is not None


def test_a_stop_line_is_not_compared_with_a_limit_that_is_wrong() -> None:
    """One mistake gives one line."""
    (line,) = problems(SERVERS | {BYTES: "0", STOP_BYTES: "5"})
    assert line.startswith(f"{BYTES}: ")
    (line,) = problems(SERVERS | {BYTES: "3", RATIO: "0.1", STOP_BYTES: "5"})
    assert line.endswith("2 are set")


SOFT_BYTES = "SIDECAR_STORAGE_PER_VOLUME_SOFT_LIMIT_MIN_AVAILABLE_BYTES"
SOFT_RATIO = "SIDECAR_STORAGE_PER_VOLUME_SOFT_LIMIT_MIN_AVAILABLE_RATIO"


def test_a_soft_limit() -> None:
    """With its horizon and rise; of either type, whatever the limit's."""
    slope = load(environ=SERVERS | {BYTES: "5000", SOFT_BYTES: "5001"}).settings.slope
    assert SlopeRules(MinAvailableBytes(5001), 1800.0, 0.2 / 60) == slope
    more = {"SIDECAR_THROTTLE_HORIZON": "PT1H", "SIDECAR_THROTTLE_RISE_PER_MINUTE": "0.6"}
    slope = load(environ=SERVERS | {BYTES: "5000", SOFT_RATIO: "0.2"} | more).settings.slope
    assert SlopeRules(MinAvailableRatio(0.2), 3600.0, 0.01) == slope


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (
            {BYTES: "5000", SOFT_BYTES: "5000"},
            f"{SOFT_BYTES}: 5000 is at the limit, 5000 in {BYTES}: the soft limit must be above it",
        ),
        (
            {RATIO: "0.2", SOFT_RATIO: "0.1"},
            f"{SOFT_RATIO}: 0.1 is below the limit, 0.2 in {RATIO}: the soft limit must be above "
            "it",
        ),
        (
            {BYTES: "5000", SOFT_BYTES: "5010", "SIDECAR_STORAGE_RELEASE_MARGIN_BYTES": "10"},
            f"{SOFT_BYTES}: 5010 is at the limit and its release margin, 5000 in {BYTES}: the soft "
            "limit must be above it",
        ),
        (
            {BYTES: "5000", SOFT_BYTES: "6000", SOFT_RATIO: "0.9"},
            f"{SOFT_BYTES}: only one of this and {SOFT_RATIO} can be set; 2 are",
        ),
    ],
)
def test_a_soft_limit_is_above_the_limit(environ: dict[str, str], expected: str) -> None:
    """Both are named, with their values."""
    assert (expected,) == problems(SERVERS | environ)


MARGIN_BYTES = "SIDECAR_STORAGE_RELEASE_MARGIN_BYTES"
MARGIN_RATIO = "SIDECAR_STORAGE_RELEASE_MARGIN_RATIO"


def test_a_release_margin_is_the_limits() -> None:
    """In its unit; without one there is none."""
    taken = SERVERS | {BYTES: "5000", MARGIN_BYTES: "7"}
    assert MinAvailableBytes(5000, 7) == load(environ=taken).settings.limit
    taken = SERVERS | {RATIO: "0.1", MARGIN_RATIO: "0.02"}
    assert MinAvailableRatio(0.1, 0.02) == load(environ=taken).settings.limit


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (
            {BYTES: "5000", MARGIN_RATIO: "0.1"},
            f"{MARGIN_RATIO}: must have the unit of the limit, {BYTES}",
        ),
        (
            {RATIO: "0.1", MARGIN_BYTES: "5"},
            f"{MARGIN_BYTES}: must have the unit of the limit, {RATIO}",
        ),
        (
            {RATIO: "0.6", MARGIN_RATIO: "0.4"},
            f"{MARGIN_RATIO}: 0.4 and the limit, 0.6, are a whole",
        ),
        ({BYTES: "5000", MARGIN_BYTES: "0"}, f"{MARGIN_BYTES}: "),
    ],
)
def test_a_release_margin_that_does_not_fit(environ: dict[str, str], expected: str) -> None:
    """It is refused in one line that names both."""
    (line,) = problems(SERVERS | environ)
    assert line.startswith(expected)


def test_a_stop_line_in_a_file(tmp_path: Path) -> None:
    """It has a table beside the limit's; no key of the plugin's is one."""
    text = "[storage.per_volume_stop]\nmin_available_ratio = 0.01\n"
    found = loaded(GOOD, **files(tmp_path, toml=text)).settings
    assert MinAvailableRatio(0.01) == found.stop_line
    documented = keys.toml_key("storage_per_volume_stop_min_available_ratio")
    assert "storage.per_volume_stop.min_available_ratio" == documented
    assert "" == keys.property_key("storage_per_volume_stop_min_available_ratio")


@pytest.mark.parametrize("environ", [{RATIO: "7"}, {f"{ADMIN}BOOTSTRAP_SERVERS": "broker"}])
def test_what_is_wrong_is_not_also_missing(environ: dict[str, str]) -> None:
    """One mistake gives one line."""
    assert problem(environ).startswith(f"{next(iter(environ))}: ")


def test_servers_are_required() -> None:
    """Without them nothing can be asked; the variable is named."""
    (line,) = problems({RATIO: "0.1"})
    assert line.startswith(f"{ADMIN}BOOTSTRAP_SERVERS: is required")


@pytest.mark.parametrize(
    ("options", "key"),
    [
        (["properties"], f"{STATIC}kafka.admin.bootstrap.servers"),
        (["config"], "kafka_admin.bootstrap_servers"),
        (["properties", "config"], f"{STATIC}kafka.admin.bootstrap.servers"),
    ],
)
def test_what_is_missing_in_a_file_is_reported_by_the_file_s_key(
    tmp_path: Path, options: list[str], key: str
) -> None:
    """Whoever has a file adds to it, and to the one that wins; the variable is named too."""
    (tmp_path / "file").touch()
    (line,) = problems({RATIO: "0.1"}, **dict.fromkeys(options, tmp_path / "file"))
    assert line.startswith(f"{key} ({ADMIN}BOOTSTRAP_SERVERS): is required")


def test_disabled_needs_nothing() -> None:
    """PT0S disables: limit and servers may be missing."""
    found = load(environ={INTERVAL: "PT0S"}).settings
    expected = (0.0, 0.0, None, None)
    assert expected == (
        found.check_interval_s,
        found.check_interval_minimum_s,
        found.kafka_admin,
        found.limit,
    )


def test_disabled_takes_what_is_there() -> None:
    """Limit, servers and minimum stay set while the sidecar is disabled."""
    found = settings({INTERVAL: "PT0S", MINIMUM: "PT5S"})
    assert (MinAvailableRatio(0.05), 5.0) == (found.limit, found.check_interval_minimum_s)
    assert found.kafka_admin is not None


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({BYTES: "1"}, BYTES),
        ({f"{ADMIN}SECURITY_PROTOCOL": "SASL_SSL"}, f"{ADMIN}SASL_MECHANISM"),
    ],
)
def test_disabled_is_no_excuse(environ: dict[str, str], name: str) -> None:
    """What is wrong in itself is reported then too, or enabling would be a surprise."""
    assert name in problem({INTERVAL: "PT0S"} | environ)


@pytest.mark.parametrize(
    ("interval", "minimum"), [("PT1M", 1.0), ("PT1S", 1.0), ("PT0.1S", 0.1), ("P1D", 1.0)]
)
def test_the_minimum_is_a_second_or_the_interval(interval: str, minimum: float) -> None:
    """A shorter interval is the default minimum."""
    validity = {"SIDECAR_THROTTLE_FACTOR_VALIDITY_DURATION": "P2D"}
    assert minimum == settings({INTERVAL: interval} | validity).check_interval_minimum_s


def test_the_minimum_may_be_the_interval() -> None:
    """Equal means a fixed pace."""
    assert 30.0 == settings({INTERVAL: "PT30S", MINIMUM: "PT30S"}).check_interval_minimum_s


def test_the_minimum_is_within_the_interval() -> None:
    """Both are named, with their values."""
    expected = f"{MINIMUM}: PT31S is longer than the interval, PT30S in {INTERVAL}"
    assert expected == problem({INTERVAL: "PT30S", MINIMUM: "PT31S"})


def test_a_wrong_interval_is_not_compared_with_the_minimum() -> None:
    """A minimum that may fit the interval that was meant is not reported."""
    line = problem({INTERVAL: "P5M", MINIMUM: "PT2M"})
    assert f"{INTERVAL}: 'P5M' is months, which have no fixed length: was PT5M meant?" == line


def test_the_same_address_twice_is_one_listener() -> None:
    """Metrics on the HTTP API's own address are the HTTP API's; port 0 is another each time."""
    same = {"SIDECAR_HTTP_LISTEN": "a:1", "SIDECAR_METRICS_LISTEN": "a:1"}
    assert settings(same).metrics_listen is None
    free = {"SIDECAR_HTTP_LISTEN": "a:0", "SIDECAR_METRICS_LISTEN": "a:0"}
    assert HostPort("a", 0) == settings(free).metrics_listen


def test_the_environment_wins_then_properties_then_toml(tmp_path: Path) -> None:
    """Each of three settings comes from the strongest place that has it."""
    toml = 'log.level = "error"\nkafka.admin.client.id = "toml"\nthrottle.factor.fallback = 0.25'
    properties = f"{STATIC}kafka.admin.client.id=java\n{STATIC}throttle.factor.fallback=0.5"
    found = loaded(
        {"SIDECAR_THROTTLE_FACTOR_FALLBACK": "0.75"}, **files(tmp_path, toml, properties)
    )
    assert found.settings.kafka_admin is not None
    expected = (0.75, "java", "error")
    assert expected == (
        found.settings.fallback,
        found.settings.kafka_admin.client_id,
        found.settings.log_level,
    )
    origins = {
        "throttle.factor.fallback": "environment",
        "kafka.admin.client.id": f"properties {tmp_path}/server.properties:1",
        "log.level": f"toml {tmp_path}/sidecar.toml",
        "log.format": "default",
    }
    assert origins == {row.name: row.origin for row in found.rows if row.name in origins}


def test_what_is_overridden_is_not_checked(tmp_path: Path) -> None:
    """A wrong value that another place replaces does no harm."""
    toml = files(tmp_path, 'log_level = "nonsense"')
    assert "debug" == loaded({"SIDECAR_LOG_LEVEL": "debug"}, **toml).settings.log_level


def test_the_plugins_own_file_is_enough(tmp_path: Path) -> None:
    """A broker's server.properties with the plugin's keys starts a sidecar as it is."""
    properties = f"""\
node.id=0
listeners=PLAINTEXT://:9092
client.quota.callback.class=io.strimzi.kafka.quotas.StaticQuotaCallback
{STATIC}produce=1000000
{STATIC}fetch=1000000
{STATIC}request=400
{STATIC}excluded.principal.name.list=User:a;User:b
{STATIC}kafka.admin.bootstrap.servers=broker-0:9091
{STATIC}kafka.admin.security.protocol=PLAINTEXT
{STATIC}kafka.admin.request.timeout.ms=5000
{STATIC}storage.per.volume.limit.min.available.bytes=1000000000
{STATIC}storage.check-interval=30
{STATIC}throttle.factor.fallback=0.0
{STATIC}throttle.factor.validity.duration=PT3M
"""
    found = load(environ={}, properties=files(tmp_path, properties=properties)["properties"])
    expected = (30.0, MinAvailableBytes(1_000_000_000), 0.0, 180.0)
    assert expected == (
        found.settings.check_interval_s,
        found.settings.limit,
        found.settings.fallback,
        found.settings.validity_s,
    )
    noted = ["produce", "fetch", "request", "excluded.principal.name.list"]
    noted = [f"{STATIC}{key}" for key in [*noted, "kafka.admin.request.timeout.ms"]]
    assert noted == [notice.split(" ")[0] for notice in found.notices]


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    """Each is one line, from whatever place: unknown keys first, then in the table's order."""
    lines = problems(
        {"SIDECAR_LOG_LEVEL": "loud", INTERVAL: "P5M", "SIDECAR_TYPO": "x"},
        **files(tmp_path, "typo = 1", f"{STATIC}typo=1\n{STATIC}throttle.factor.fallback=2"),
    )
    expected = [
        "SIDECAR_TYPO is",
        f"{STATIC}typo (properties",
        "typo (toml",
        f"{INTERVAL}: 'P5M'",
        f"{STATIC}kafka.admin.bootstrap.servers ({ADMIN}BOOTSTRAP_SERVERS):",
        f"{STATIC}throttle.factor.fallback (properties",
        "SIDECAR_LOG_LEVEL: 'loud'",
    ]
    assert expected == [line[: len(start)] for line, start in zip(lines, expected, strict=True)]


def test_an_unreadable_file_is_not_called_missing_settings(tmp_path: Path) -> None:
    """What the file may have isn't missing; what is wrong elsewhere is reported all the same."""
    lines = problems({"SIDECAR_LOG_LEVEL": "loud"}, config=tmp_path / "nothing")
    expected = ["the TOML file", "SIDECAR_LOG_LEVEL"]
    assert expected == [line[: len(start)] for line, start in zip(lines, expected, strict=True)]


def test_a_problem_is_one_line() -> None:
    """Names and values with line ends or without any letters don't break the list."""
    lines = problems({"SIDECAR_A\nB": "x", "SIDECAR_LOG_LEVEL": "a\nb\udcff"} | GOOD)
    assert 2 == len("\n".join(lines).splitlines())
    assert "SIDECAR_A\\nB" in lines[0]
    assert "\n".join(lines).isascii()


@pytest.mark.parametrize(
    ("validity", "noted"), [("PT59S", True), ("PT60S", False), ("PT61S", False)]
)
def test_a_validity_shorter_than_the_interval_is_noted(validity: str, *, noted: bool) -> None:
    """It would let the fallback apply between two good polls; the setting is legal, though."""
    found = loaded({"SIDECAR_THROTTLE_FACTOR_VALIDITY_DURATION": validity})
    assert noted is any("shorter than the check interval" in line for line in found.notices)


@pytest.mark.parametrize(
    ("interval", "validity", "noted"),
    [("PT1S", "PT4.9S", True), ("PT1S", "PT5S", False), ("PT0S", "PT1S", False)],
)
def test_a_validity_that_a_lost_answer_outlasts_is_noted(
    interval: str, validity: str, *, noted: bool
) -> None:
    """A broker is asked anew 3 s after an answer of it was lost; disabled, none is asked."""
    found = loaded(
        {
            "SIDECAR_STORAGE_CHECK_INTERVAL": interval,
            "SIDECAR_THROTTLE_FACTOR_VALIDITY_DURATION": validity,
        }
    )
    message = "is shorter than PT5S: a lost answer of one broker may bring the fallback"
    assert noted is any(message in line for line in found.notices)


def test_the_safe_validity_outlasts_a_lost_answer() -> None:
    """It has a second for the pause and the dial."""
    assert SAFE_VALIDITY_S >= ANSWER_TIMEOUT_S + 1.0


@pytest.mark.parametrize("field", SECRETS)
def test_no_secret_is_ever_shown(field: str) -> None:
    """It is not in a problem, in what is chained to it, or in what was loaded."""
    environ = GOOD | {
        keys.environment_key(field): "hunter2",
        f"{ADMIN}SECURITY_PROTOCOL": "SASL_SSL",
        f"{ADMIN}SASL_MECHANISM": "PLAIN",
        f"{ADMIN}SASL_USERNAME": "ann",
    }
    try:
        found = repr(load(environ=environ).settings)
    except SettingsError as error:
        found = f"{error!r} {error} {error.__cause__!r} {error.__context__!r}"
    assert "hunter2" not in found


def test_pydantics_own_debugging_shows_no_secret(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It logs what each source has, and a source has entries whose repr is without the value."""
    monkeypatch.setenv("PYDANTIC_SETTINGS_DEBUG", "1")
    with caplog.at_level("DEBUG"):
        problems(GOOD | {f"{ADMIN}SASL_PASSWORD": "hunter2"})
    assert "SASL_PASSWORD" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("field", SECRETS)
def test_a_secret_of_another_type_is_not_shown(tmp_path: Path, field: str) -> None:
    """A number in TOML where a secret is text: pydantic would quote it."""
    with pytest.raises(SettingsError) as refusal:
        _ = loaded({}, **files(tmp_path, f"{keys.toml_key(field)} = 123454321")).settings
    error = refusal.value
    assert keys.toml_key(field) in str(error)
    assert "123454321" not in f"{error} {error.__cause__!r} {error.__context__!r}"


@given(
    st.dictionaries(
        st.sampled_from([keys.environment_key(field) for field in keys.FIELDS]),
        st.text(max_size=30)
        | st.sampled_from(["PT1S", "0.5", "a:1", "PLAIN", "SASL_SSL", "PEM", "/x", "https", "1"]),
        max_size=8,
    )
)
def test_nothing_but_a_refusal_comes_out(environ: dict[str, str]) -> None:
    """Any environment loads, or is refused in whole lines."""
    for line in problems(GOOD | environ):
        assert line.isprintable()
        assert line.startswith(("SIDECAR_", STATIC))


def test_observers_need_the_others_addresses() -> None:
    """Without them there is nobody to follow; with them any number may observe."""
    observers = {"SIDECAR_OBSERVERS": "3"}
    assert "SIDECAR_PEERS" in problem(observers)
    found = settings({**observers, "SIDECAR_PEERS": "http://sidecars:7070"})
    assert (3, ("http://sidecars:7070",)) == (found.observers, found.peers)


def test_with_peers_three_sidecars_observe_by_default() -> None:
    """Any other number is kept, and without peers every sidecar polls."""
    peers = {"SIDECAR_PEERS": "http://sidecars:7070"}
    assert 3 == settings(peers).observers
    assert 5 == settings({**peers, "SIDECAR_OBSERVERS": "5"}).observers
    assert settings({}).observers is None
