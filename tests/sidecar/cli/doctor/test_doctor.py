"""``doctor`` on a simulated cluster with prepared sidecars: what it gathers, and how it prints."""

import json
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from click.testing import CliRunner, Result

from sidecar.cli import group
from sidecar.cli.doctor import _url
from sidecar.cli.doctor.gather import _rates_between
from sidecar.cli.doctor.sidecars import _RATES
from sidecar.history.folder import Folder
from sidecar.history.volume_line import to_line
from sidecar.quotas.entities import Entity
from sidecar.status.runbooks import names
from sidecar.volumes import Observation, Reading, Volume
from tests.sidecar.cli.doctor.installation import CONFIGS, FACTOR, LIMITS, reader
from tests.support.background import Canned, bootstrap, reply, running
from tests.support.fake_broker import GIB, FakeCluster, FakeLogDir
from tests.support.fake_configs import FakeConfigs
from tests.support.fake_quotas import FakeQuotas

LIMIT = "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES"
STOP = "SIDECAR_STORAGE_PER_VOLUME_STOP_MIN_AVAILABLE_BYTES"


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    """Two brokers with the callback; the user may describe the cluster and its configurations."""
    cluster = FakeCluster().add(2)
    cluster.rights = 1 << 8 | 1 << 10
    FakeConfigs({0: {**CONFIGS}, 1: {**CONFIGS}}).of(cluster)
    with running(cluster):
        yield cluster


def answers(canned: Canned) -> None:
    """A sidecar that both brokers read, that has no token, and whose clock is ahead."""
    status, headers, factor = reply(FACTOR)
    headers |= {"Date": formatdate(time.time() + 100, usegmt=True), "ETag": 'W/"0f-1"'}
    readers = {"generation": 1, "readers": [reader(0), reader(1)]}
    rate = {"broker_id": 1, "log_dir": "/var/lib/kafka/data-0", "fill_bytes_per_second": 5e6}
    canned.answers |= {
        "GET /v1/throttle-factor": (status, headers, factor),
        "GET /v1/brokers": reply({"last_failure": None, "brokers": []}),
        "GET /v1/quota-factors": reply(LIMITS),
        "GET /v1/readers": reply(readers),
        "GET /v1/volumes": reply({"volumes": [rate]}),
        "PUT /v1/override": reply({"detail": "no token"}, 403),
        "GET /healthz": reply({"status": "ok", "version": "0.0.1"}),
    }


def doctor(cluster: FakeCluster, canned: Canned, *words: str, **environ: str | None) -> Result:
    settings: dict[str, str | None] = {"SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": bootstrap(cluster)}
    settings |= {LIMIT: "40GB", STOP: "20GB"}
    always = ("doctor", "--watch", "0.01s", "--sidecars", canned.address)
    return CliRunner().invoke(group, [*always, *words], env=settings | environ)


def rows(result: Result) -> dict[str, list[dict[str, str]]]:
    """The findings by name."""
    found: dict[str, list[dict[str, str]]] = {}
    for each in json.loads(result.stdout)["findings"]:
        found.setdefault(each["name"], []).append(each)
    return found


def test_what_brokers_and_sidecars_show(cluster: FakeCluster, canned: Canned) -> None:
    """Each probe has its finding; no topic was there to try its ACL on."""
    answers(canned)
    result = doctor(cluster, canned, "--json")
    assert 1 == result.exit_code, result.output
    found = rows(result)
    assert "brokers 0, 1 are reached from here" == found["brokers"][0]["what"]
    assert "Describe, DescribeConfigs on the cluster" == found["ACLs"][0]["what"]
    assert ["ok", "warn"] == [each["verdict"] for each in found["sidecars"]]
    assert "has version 0.0.1; this program 0.1.0" in found["sidecars"][1]["what"]
    assert " s ahead of this machine" in found["clocks"][0]["what"]
    assert "limit min_available_bytes=40000000000" in found["equal limits"][0]["what"]
    assert "brokers 0, 1 throttle their producers" in found["effect"][0]["what"]
    assert "5.0 MB/s by the sidecar, now" in found["interval"][0]["what"]


def test_files_for_full_volumes_are_compared(
    cluster: FakeCluster, canned: Canned, tmp_path: Path
) -> None:
    """Of sidecars, by what they show; brokers that can't be read leave the topics unknown."""
    answers(canned)
    owner = {"owner": "a", "soft_bytes": 5, "hard_bytes": 5}
    canned.answers["GET /v1/budgets"] = reply({"budgets": [owner]})
    canned.answers["GET /v1/relief"] = reply({"mode": "delete", "failure": ""})
    budgets, relief = tmp_path / "budgets.toml", tmp_path / "relief.toml"
    budgets.write_text("[owners.a]\ntopics = ['t']\nhard = 5")
    relief.write_text("[[class]]\ntopics = ['logs']\nkeep_time = '1h'")
    files = {"SIDECAR_BUDGETS_FILE": str(budgets), "SIDECAR_RELIEF_FILE": str(relief)}
    found = rows(doctor(cluster, canned, "--json", **files))
    assert ["ok", "ok"] == [each["verdict"] for each in found["budgets"]]
    assert ["not known", "fail"] == [each["verdict"] for each in found["making room"]]
    assert "not dry-run, as these settings" in found["making room"][1]["what"]


def test_the_token_is_tried_without_effect(
    cluster: FakeCluster, canned: Canned, tmp_path: Path
) -> None:
    """The override lacks every field, so even the right token changes nothing."""
    answers(canned)
    token = tmp_path / "token"
    token.write_text("good")
    canned.answers["PUT /v1/override"] = reply({"detail": "fields are missing"}, 422)
    result = doctor(cluster, canned, "--json", SIDECAR_TOKEN_FILE=str(token))
    assert ["ok"] == [each["verdict"] for each in rows(result)["token"]]
    (tried,) = [each for each in canned.asked if each.method == "PUT"]
    assert ("Bearer good", b"{}") == (tried.headers["Authorization"], tried.body)
    assert "good" not in result.output


def test_prometheus_and_the_history_have_the_highest_rate(
    cluster: FakeCluster, canned: Canned, other: Canned, tmp_path: Path
) -> None:
    """The highest rate of all sources counts, and missing alerts are named."""
    answers(canned)
    rule = {"name": "KafkaThrottleFallback", "type": "alerting"}
    known: dict[str, Any] = {"metric": {"broker": "0", "log_dir": "/var/lib/kafka/data-1"}}
    query = "GET /api/v1/query?query="
    series = quote(_RATES)
    other.answers = {
        "GET /api/v1/rules?type=alert": reply({"data": {"groups": [{"rules": [rule]}]}}),
        f"{query}kafka_throttle_build_info": reply({"data": {"result": [{}]}}),
        f"{query}{series}": reply({"data": {"result": [known | {"value": [0, "7e6"]}]}}),
    }
    begin = round(time.time()) - 3600
    for at, used in ((begin, 0), (begin + 60, 0), (begin + 120, 540_000_000)):
        volume = Volume(0, "/var/lib/kafka/data-0", 100 * GIB, 90 * GIB - used)
        line = to_line(Observation(at, "me", None, {0: Reading(0, at, (volume,))}), "me", at)
        Folder(tmp_path, "me", 1 << 30).append(line, at)
    result = doctor(
        cluster, canned, "--json", "--prometheus", other.url, SIDECAR_HISTORY_DIR=str(tmp_path)
    )
    found = rows(result)
    missing = found["alerts"][0]["what"]
    assert "KafkaThrottleFallback" not in missing
    assert all(each in missing for each in names() if each.startswith("KafkaVolume"))
    assert "9.0 MB/s by the history of up to 7 days" in found["interval"][0]["what"]
    # Without the history, Prometheus has the highest one.
    found = rows(doctor(cluster, canned, "--json", "--prometheus", other.url))
    assert "7.0 MB/s by Prometheus" in found["interval"][0]["what"]
    gone = str(tmp_path / "gone")
    found = rows(doctor(cluster, canned, "--json", SIDECAR_HISTORY_DIR=gone))
    assert "not known" == found["history"][0]["verdict"]
    assert f"the history in {gone} can't be read" in found["history"][0]["what"]


def test_the_rate_between_two_polls() -> None:
    """It is used bytes by the time between the requests; one answer twice shows no rate."""

    def seen(at: float, used: int) -> Observation:
        volumes = (Volume(0, "/d", 100, 100 - used),)
        same = Reading(1, 5.0, (Volume(1, "/d", 100, 50),))
        return Observation(at, "poll", None, {0: Reading(0, at, volumes), 1: same})

    assert {(0, "/d"): 4.0} == _rates_between(seen(10.0, 0), seen(15.0, 20))


def test_a_server_that_is_no_sidecar(cluster: FakeCluster, canned: Canned) -> None:
    """Whatever it answers, it is named as what it is."""
    canned.answers = {
        f"GET /v1/{each}": reply({"volumes": [{}]}) for each in ("volumes", "readers")
    }
    canned.answers["GET /v1/throttle-factor"] = reply({"source": 1})
    found = rows(doctor(cluster, canned, "--json"))
    assert "the server at this address is not a sidecar" in found["sidecars"][0]["what"]
    result = doctor(cluster, canned, "--prometheus", "ftp://a")
    assert "'ftp://a' is not host:port or an http(s) URL" in result.output


def test_a_prometheus_without_a_port() -> None:
    """It has the one that Prometheus has by default."""
    assert "http://prometheus:9090" == _url("prometheus")
    assert "http://prometheus:80" == _url("http://prometheus")


def test_a_broker_that_answers_without_any_value(cluster: FakeCluster, canned: Canned) -> None:
    """Nothing is derived from values that are not there, and it is not called "not asked"."""
    answers(canned)
    FakeConfigs({0: {**CONFIGS}, 1: {}}).of(cluster)
    found = rows(doctor(cluster, canned, "--json"))
    of_broker = {each["verdict"]: each["what"] for each in found["retention"]}
    assert "broker 0" in of_broker["ok"]
    assert "broker 1" in of_broker["not known"]
    assert "it reported nothing" in of_broker["not known"]


def test_a_state_file_on_a_data_volume(
    cluster: FakeCluster, canned: Canned, tmp_path: Path
) -> None:
    """A full volume would keep the sidecar from writing that it is full."""
    answers(canned)
    cluster.brokers[0].log_dirs = (FakeLogDir(str(tmp_path)),)
    state = tmp_path / "state"
    found = rows(doctor(cluster, canned, "--json", SIDECAR_STATE_FILE=str(state)))
    assert f"{state} is on the file system of broker 0" in found["state file"][0]["what"]


def test_the_table(cluster: FakeCluster, canned: Canned) -> None:
    """Verdict, name and sentence, what to do below it, and the recommended values."""
    answers(canned)
    cluster.brokers[0].log_dirs_error = 31
    result = doctor(cluster, canned)
    assert 2 == result.exit_code
    assert "\nOK " in result.stdout
    assert "\nfail       brokers " in result.stdout
    assert "-> mend this first" in result.stdout
    (line,) = [each for each in result.stdout.splitlines() if each.startswith(f"- {LIMIT}=")]
    assert "MB/s x 60 s until the next poll + 1% of it x 8 h" in line


@pytest.mark.parametrize(
    ("environ", "code", "sentence"),
    [
        ({LIMIT: "a lot"}, 2, "brokers and sidecars were not asked"),
        (
            {LIMIT: None, STOP: None, "SIDECAR_STORAGE_CHECK_INTERVAL": "0s"},
            1,
            "the sidecar is disabled",
        ),
    ],
)
def test_settings_that_leave_nothing_to_ask(
    cluster: FakeCluster, canned: Canned, environ: dict[str, str | None], code: int, sentence: str
) -> None:
    """Nobody is asked, and that is said."""
    result = doctor(cluster, canned, "--json", **environ)
    assert code == result.exit_code, result.output
    assert sentence in result.output
    assert [] == canned.asked


def test_quotas_of_the_cluster_are_read(cluster: FakeCluster, canned: Canned) -> None:
    """The windows too; the callback that these brokers have is a warning then."""
    answers(canned)
    cluster.rights |= 1 << 11
    FakeQuotas({Entity("alice"): {"producer_byte_rate": 1e7}}).of(cluster)
    windows = {"quota.window.num": "11", "quota.window.size.seconds": "1"}
    FakeConfigs({each: {**CONFIGS, **windows} for each in (0, 1)}).of(cluster)
    found = rows(doctor(cluster, canned, "--json", SIDECAR_ENFORCEMENT="client-quotas"))
    assert ["ok", "warn", "ok"] == [
        found[each][0]["verdict"] for each in ("quota window", "callback", "lowered quotas")
    ]
    assert "down to 512Ki a second" in found["effect"][0]["what"]
    assert "user 'alice' (10.0 MB/s before)" in found["effect"][0]["what"]


def test_the_sidecar_of_a_settings_file(
    cluster: FakeCluster, canned: Canned, tmp_path: Path
) -> None:
    """Without --sidecars, the sidecar with these settings is asked, not the one at 7070."""
    answers(canned)
    config = tmp_path / "b.toml"
    config.write_text(f'http.listen = "{canned.address}"\n', encoding="utf-8")
    settings = {"SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": bootstrap(cluster), LIMIT: "40GB"}
    words = ["doctor", "--watch", "0.01s", "--json", "--config", str(config)]
    result = CliRunner().invoke(group, words, env=settings)
    assert f"{canned.url} decides 1.0 (observation): room" == rows(result)["sidecars"][0]["what"]


def test_an_address_of_a_settings_file_that_no_url_can_have(tmp_path: Path) -> None:
    """The settings take any zone of an IPv6 address; the command says what it can't use."""
    file = tmp_path / "sidecar.toml"
    file.write_text('http_listen = "[fe80::1%eth0@if5]:7070"\n')
    environ = {"SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": "127.0.0.1:1", LIMIT: "1"}
    result = CliRunner().invoke(group, ["doctor", "--config", str(file)], env=environ)
    assert 2 == result.exit_code
    assert "Error: Invalid value: a URL with a user" in result.output
