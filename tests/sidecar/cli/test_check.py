"""``check``: one poll of a simulated cluster, its table, its verdict and its exit code."""

import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sidecar.cli import group
from tests.support.background import Canned, Reply, bootstrap, reply, running
from tests.support.fake_broker import FakeCluster, FakeLogDir

MB = 1_000_000

STOP_BYTES = "SIDECAR_STORAGE_PER_VOLUME_STOP_MIN_AVAILABLE_BYTES"
STOP_RATIO = "SIDECAR_STORAGE_PER_VOLUME_STOP_MIN_AVAILABLE_RATIO"

HEALTHY = FakeLogDir("/var/lib/kafka/data-0", 64 * MB, 50 * MB)
FULL = FakeLogDir("/var/lib/kafka/data-1", 64 * MB, 40 * MB)
OFFLINE = FakeLogDir("/var/lib/kafka/data-2", -1, -1, error_code=56)


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    """Three brokers with a healthy volume each."""
    cluster = FakeCluster().add(3)
    for broker in cluster.brokers.values():
        broker.log_dirs = (HEALTHY,)
    with running(cluster):
        yield cluster


def check(cluster: FakeCluster, *args: str, **settings: str | None) -> Result:
    environment: dict[str, str | None] = {
        "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": bootstrap(cluster),
        "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(40 * MB),
        "SIDECAR_STORAGE_CHECK_INTERVAL": "PT1S",
    }
    # Without --sidecars, a sidecar that runs on this machine would be asked.
    alone = [] if "--sidecars" in args else ["--no-sidecar"]
    return CliRunner().invoke(group, ["check", *args, *alone], env=environment | settings)


def rows(result: Result) -> list[list[str]]:
    """The cells of the table's rows."""
    lines = result.stdout.splitlines()
    return [line.split() for line in lines if line.strip()[:1].isdigit()]


class TestVerdicts:
    def test_within_the_limit_is_exit_code_0(self, cluster: FakeCluster) -> None:
        """Each volume has a row, and the verdict is the last line."""
        result = check(cluster)
        assert 0 == result.exit_code
        size = ["64.0", "MB", "50.0", "MB", "78.1%", "40.0", "MB"]
        assert [[str(n), "/var/lib/kafka/data-0", *size, "ok"] for n in range(3)] == rows(result)
        assert (
            "Within limit: every volume has more than 40.0 MB available (3 volumes, 3 brokers)"
            == result.stdout.splitlines()[-1]
        )
        assert "" == result.stderr

    def test_what_fails_alike_on_all_brokers_is_reported_once(self, cluster: FakeCluster) -> None:
        """The line has the brokers and the command that mends it."""
        for broker_id in (0, 1, 2):
            cluster.brokers[broker_id].log_dirs_error = 31
        result = check(cluster)
        assert 2 == result.exit_code
        assert 1 == result.output.count("CLUSTER_AUTHORIZATION_FAILED")
        assert "brokers 0, 1, 2 (DescribeLogDirs returned error 31 (CLUSTER" in result.stderr
        assert "--operation Describe --cluster; with AWS IAM, allow " in result.stderr
        assert result.stderr.endswith("kafka-cluster:DescribeCluster in its policy instead)\n")
        (line,) = result.stdout.splitlines()
        assert line.startswith("Brokers 0 (127.0.0.1:")
        assert line.endswith("): authorization")

    def test_what_fails_alike_beside_a_violation_is_reported_once(
        self, cluster: FakeCluster
    ) -> None:
        """The brokers' line reports it, since the verdict says another thing."""
        cluster.brokers[0].log_dirs = (FULL,)
        for broker_id in (1, 2):
            cluster.brokers[broker_id].log_dirs_error = 31
        result = check(cluster)
        assert 1 == result.exit_code
        assert 1 == result.output.count("--operation Describe --cluster")
        assert "Brokers 1 (127.0.0.1:" in result.stdout

    def test_a_mistake_is_reported_by_the_names_that_check_takes(
        self, cluster: FakeCluster, tmp_path: Path
    ) -> None:
        """It names a variable or a file's key, and no option of other commands."""
        for broker in cluster.brokers.values():
            # A listener with TLS answers a client without TLS so: an alert.
            broker.twist = lambda *_: b"\x15\x03\x03\x00\x02\x02P"
        result = check(cluster)
        assert 2 == result.exit_code
        assert "need TLS? (SIDECAR_KAFKA_ADMIN_SECURITY_PROTOCOL)" in result.stderr
        assert "--command-config" not in result.output
        properties = tmp_path / "server.properties"
        properties.write_text("broker.id=1\n")
        result = check(cluster, "--properties", str(properties))
        expected = "(client.quota.callback.static.kafka.admin.security.protocol (SIDECAR_KAFKA_"
        assert expected in result.stderr

    @pytest.mark.slow
    def test_a_hung_broker_times_out_at_the_deadline(self, cluster: FakeCluster) -> None:
        """It is the daemon's, 2 s at an interval of 1 s. It may be full, so the code is 2."""
        cluster.brokers[2].twist = lambda *_: None
        result = check(cluster)
        assert 2 == result.exit_code
        assert 2 == len(rows(result))
        assert "Broker 2 (127.0.0.1:" in result.stdout
        assert "timeout" in result.stdout
        assert result.stderr.startswith("Unknown: ")
        assert "broker 2 (" in result.stderr
        assert 1 == len(result.stderr.splitlines())

    def test_no_cluster_at_all_is_exit_code_2(self, cluster: FakeCluster) -> None:
        """It prints one line with the address, no table and no traceback."""
        result = check(cluster, SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS="127.0.0.1:1")
        assert 2 == result.exit_code
        assert "" == result.stdout
        assert result.stderr.startswith("Unknown: ")
        assert "127.0.0.1:1: " in result.stderr
        assert 1 == len(result.stderr.splitlines())

    def test_a_wrong_setting_is_exit_code_2(self, cluster: FakeCluster) -> None:
        """Nobody is connected to."""
        both = {"SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_RATIO": "0.1"}
        assert 2 == check(cluster, **both).exit_code
        assert [0, 0, 0] == [broker.connected for broker in cluster.brokers.values()]

    @pytest.mark.parametrize(
        ("name", "text", "message"),
        [
            ("SIDECAR_TOKEN_FILE", None, "{}"),
            ("SIDECAR_TOKEN_FILE", "two words", "{}"),
            ("SIDECAR_PRODUCER_ID_QUOTA_FILE", None, "{}"),
            ("SIDECAR_PRODUCER_ID_QUOTA_FILE", "[", "{}"),
            ("SIDECAR_STATE_FILE", None, "SIDECAR_STATE_FILE: "),
        ],
    )
    def test_a_file_that_stops_the_daemon_s_start_is_exit_code_2(
        self, cluster: FakeCluster, tmp_path: Path, name: str, text: str | None, message: str
    ) -> None:
        """Otherwise check would pass, and the service would not start."""
        file = tmp_path / "gone" / "file" if text is None else tmp_path / "file"
        if text is not None:
            file.write_text(text)
        result = check(cluster, **{name: str(file)})
        assert 2 == result.exit_code
        assert message.format(file) in result.stderr
        assert 1 == len(result.stderr.splitlines())
        assert [0, 0, 0] == [broker.connected for broker in cluster.brokers.values()]

    def test_a_name_server_that_hangs_is_not_waited_for(
        self, monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster
    ) -> None:
        """The deadline of the poll is the command's; the lookup goes on."""
        gate, ended = threading.Event(), []
        look_up = socket.getaddrinfo

        def hang(host: str, *args: Any, **options: Any) -> Any:
            if host == "broker":
                ended.append(gate.wait(30))
            return look_up(host, *args, **options)

        monkeypatch.setattr(socket, "getaddrinfo", hang)
        result = check(cluster, SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS="broker:9092")
        assert [] == ended
        gate.set()
        assert 2 == result.exit_code
        assert "no answer in time" in result.stderr

    @pytest.mark.parametrize("name", ["data", "/dev/null"])
    def test_a_state_file_that_is_no_file_is_exit_code_2(
        self, cluster: FakeCluster, tmp_path: Path, name: str
    ) -> None:
        """Such as Kafka's log dir by mistake, which the daemon would rename as a damaged file."""
        (tmp_path / "data").mkdir()
        result = check(cluster, SIDECAR_STATE_FILE=str(tmp_path / name))
        assert 2 == result.exit_code
        assert f"SIDECAR_STATE_FILE: {tmp_path / name} is a folder or a device" in result.stderr
        assert [0, 0, 0] == [broker.connected for broker in cluster.brokers.values()]

    def test_a_state_file_that_can_not_be_looked_at_is_no_traceback(
        self, cluster: FakeCluster, tmp_path: Path
    ) -> None:
        """Such as one in a folder that this user may not enter; here its name is too long."""
        result = check(cluster, SIDECAR_STATE_FILE=str(tmp_path / ("a" * 300)))
        assert 0 == result.exit_code, result.output

    def test_a_disabled_sidecar_is_checked_all_the_same_if_it_can_be(
        self, cluster: FakeCluster
    ) -> None:
        """PT0S polls nothing by itself; whoever calls check wants to know."""
        assert 0 == check(cluster, SIDECAR_STORAGE_CHECK_INTERVAL="PT0S").exit_code

    def test_a_disabled_sidecar_without_brokers_can_not_be_checked(self) -> None:
        """The exit code is 2, and the message says what is missing."""
        environment = {"SIDECAR_STORAGE_CHECK_INTERVAL": "PT0S"}
        result = CliRunner().invoke(group, ["check"], env=environment)
        assert 2 == result.exit_code
        assert "nothing to check" in result.stderr

    def test_a_short_validity_does_not_hide_what_was_just_seen(self, cluster: FakeCluster) -> None:
        """The verdict is of the moment of the poll, not of some milliseconds later."""
        result = check(cluster, SIDECAR_THROTTLE_FACTOR_VALIDITY_DURATION="PT0.000001S")
        assert 0 == result.exit_code


class TestSidecar:
    """The running sidecar is asked too."""

    def answer(self, *violating: tuple[int, str], **more: object) -> Reply:
        """A decision with violating volumes."""
        violations = [{"broker_id": broker, "log_dir": log_dir} for broker, log_dir in violating]
        return reply(
            {
                "factor": 0.0 if violating else 1.0,
                "source": "observation",
                "reason": "as it sees",
                "violations": violations,
                **more,
            }
        )

    def test_a_fenced_broker_that_was_full(self, cluster: FakeCluster, canned: Canned) -> None:
        """The poll does not see it: the sidecar's decision is printed, and counts."""
        canned.answers["GET /v1/throttle-factor"] = self.answer((7, "/d"), readers=0)
        result = check(cluster, "--sidecars", canned.address)
        assert 1 == result.exit_code
        assert [
            f"Sidecar {canned.url}: factor 0.0 (observation): as it sees",
            "No broker has read that factor in the last 10 minutes, so it throttles nobody.",
            "Broker 7 /d violates the limit by the sidecar, not this poll.",
        ] == result.stdout.splitlines()[-4:-1]
        document = json.loads(check(cluster, "--json", "--sidecars", canned.address).stdout)
        assert "as it sees" == document["sidecars"][0]["document"]["reason"]

    def test_a_volume_that_the_sidecar_did_not_see_yet(
        self, cluster: FakeCluster, canned: Canned
    ) -> None:
        """The poll is newer."""
        cluster.brokers[0].log_dirs = (FULL,)
        canned.answers["GET /v1/throttle-factor"] = self.answer(readers=3)
        result = check(cluster, "--sidecars", canned.address)
        assert 1 == result.exit_code
        assert (
            "Broker 0 /var/lib/kafka/data-1 violates the limit by this poll, not" in result.stdout
        )
        assert "throttles nobody" not in result.stdout

    @pytest.mark.parametrize(
        ("lowered", "expected"),
        [
            (2, "2 produce quotas are lowered in Kafka by this sidecar."),
            (
                0,
                "SIDECAR_ENFORCEMENT=client-quotas: no quota is lowered now, so it throttles "
                "nobody.",
            ),
        ],
    )
    def test_a_sidecar_that_throttles_by_client_quotas(
        self, cluster: FakeCluster, canned: Canned, lowered: int, expected: str
    ) -> None:
        """It needs no reader."""
        more = {"enforcement": "client-quotas", "lowered_quotas": lowered}
        canned.answers["GET /v1/throttle-factor"] = self.answer((7, "/d"), readers=0, **more)
        assert expected in check(cluster, "--sidecars", canned.address).stdout.splitlines()

    def test_a_sidecar_that_does_not_count_its_readers(
        self, cluster: FakeCluster, canned: Canned
    ) -> None:
        """It is of an earlier version, and may have some."""
        canned.answers["GET /v1/throttle-factor"] = self.answer((7, "/d"))
        result = check(cluster, "--sidecars", canned.address)
        assert "factor 0.0 (observation): as it sees" in result.stdout
        assert "throttles nobody" not in result.stdout

    def test_no_sidecar_answers(self, cluster: FakeCluster, canned: Canned) -> None:
        """The poll is alone, as by --no-sidecar, and says what it does not know."""
        canned.answers["GET /v1/throttle-factor"] = reply({})
        result = check(cluster, "--sidecars", canned.address)
        assert 0 == result.exit_code
        assert f"No decision of the sidecar at {canned.url}: the server at this" in result.stdout
        for alone in (result, check(cluster)):
            assert "Not known without the sidecar: readings of fenced brokers" in alone.stdout

    def test_the_sidecar_of_another_cluster(self, cluster: FakeCluster, canned: Canned) -> None:
        """Its volumes are not of the cluster that is asked about."""
        canned.answers["GET /v1/throttle-factor"] = self.answer((7, "/d"), cluster_id="other")
        result = check(cluster, "--sidecars", canned.address)
        assert 0 == result.exit_code
        assert (
            f"No decision of the sidecar at {canned.url}: it watches the cluster other, and these "
            "settings lead to the cluster fake-cluster." in result.stdout
        )
        assert "violates the limit by the sidecar" not in result.stdout
        canned.answers["GET /v1/throttle-factor"] = self.answer((7, "/d"), cluster_id=None)
        assert 1 == check(cluster, "--sidecars", canned.address).exit_code

    def test_the_sidecar_of_a_settings_file(
        self, cluster: FakeCluster, canned: Canned, tmp_path: Path
    ) -> None:
        """Without --sidecars, the sidecar with these settings is asked, not the one at 7070."""
        canned.answers["GET /v1/throttle-factor"] = self.answer((7, "/d"))
        config = tmp_path / "b.toml"
        config.write_text(f'http.listen = "{canned.address}"\n', encoding="utf-8")
        result = CliRunner().invoke(
            group,
            ["check", "--config", str(config)],
            env={
                "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": bootstrap(cluster),
                "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(40 * MB),
            },
        )
        assert f"Sidecar {canned.url}: factor 0.0 (observation): as it sees" in result.stdout

    def test_a_settings_file_with_any_free_port(self, cluster: FakeCluster, tmp_path: Path) -> None:
        """Nothing tells which port the sidecar got, so the one of --sidecars is asked."""
        config = tmp_path / "b.toml"
        config.write_text('http.listen = "127.0.0.1:0"\n', encoding="utf-8")
        result = check(cluster, "--config", str(config))
        assert 0 == result.exit_code, result.output


class TestTable:
    def test_an_offline_log_dir_is_shown_with_why_and_without_sizes(
        self, cluster: FakeCluster
    ) -> None:
        """-1 is never shown as a size."""
        cluster.brokers[0].log_dirs = (HEALTHY, OFFLINE)
        result = check(cluster)
        assert ["0", "/var/lib/kafka/data-2", "-", "-", "-", "40.0", "MB", "offline"] in rows(
            result
        )
        assert "Broker 0 /var/lib/kafka/data-2: " in result.stdout
        assert "-1" not in result.stdout

    def test_a_log_dir_without_sizes_that_is_not_offline_is_unreadable(
        self, cluster: FakeCluster
    ) -> None:
        """Its broker may write there."""
        cluster.brokers[0].log_dirs = (HEALTHY, replace(OFFLINE, error_code=-1))
        result = check(cluster)
        assert ["unreadable"] == [row[-1] for row in rows(result) if "data-2" in row[1]]

    def test_a_fenced_broker_is_named(self, cluster: FakeCluster) -> None:
        """It is asked nothing, and makes nothing incomplete."""
        cluster.brokers[2].fenced = True
        result = check(cluster)
        assert 0 == result.exit_code
        assert f"Broker 2 (127.0.0.1:{cluster.brokers[2].port}) is fenced." in result.stdout

    def test_a_ratio_limit_is_shown_as_one(self, cluster: FakeCluster) -> None:
        """It is in the same column."""
        limit = "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_"
        result = check(cluster, **{f"{limit}BYTES": None, f"{limit}RATIO": "0.8"})
        assert ["78.1%", "80.0%", "VIOLATED"] == rows(result)[0][-3:]

    def test_a_narrow_terminal_hides_nothing(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It breaks the lines itself; which broker is full is shown in any case."""
        monkeypatch.setenv("COLUMNS", "40")
        cluster.brokers[1].log_dirs = (FULL,)
        (full,) = [row for row in rows(check(cluster)) if row[-1] == "VIOLATED"]
        assert ["1", "/var/lib/kafka/data-1"] == full[:2]

    def test_it_fits_into_80_columns_with_long_names_and_huge_sizes(
        self, cluster: FakeCluster
    ) -> None:
        """A long log dir is folded, not cut."""
        name = "/mnt/disks/" + "very-long-name-of-a-volume/" * 3 + "kafka"
        cluster.brokers[0].log_dirs = (FakeLogDir(name, 2**63 - 1, 2**63 - 1),)
        result = check(cluster, **{STOP_BYTES: "1"})
        table = result.stdout.splitlines()[:-1]
        assert 5 < len(table)
        assert max(map(len, table)) <= 80
        folded = [line[len("Broker ") :].split("  ")[0].strip() for line in table[2:]]
        assert name in "".join(folded), table

    def test_a_log_dir_s_name_drives_no_terminal(self, cluster: FakeCluster) -> None:
        """Neither its escapes nor the table's own markup have an effect."""
        cluster.brokers[0].log_dirs = (FakeLogDir("/d/[red]\x1b[2J", 64 * MB, 50 * MB),)
        stdout = check(cluster).stdout
        assert "\x1b" not in stdout
        assert "/d/[red]\\x1b[2J" in stdout


class TestStopLine:
    def test_without_one_it_is_recommended(self, cluster: FakeCluster) -> None:
        """Half of the limit, and the rate that has room in the reaction time: 1 + 2 + 4 + 5 s.

        With a stop line, and while no volume is at it, nothing is said about it.
        """
        lines = check(cluster).stdout.splitlines()
        assert [
            f"No stop line is set. Recommended: {STOP_BYTES}=20000000. At this line, 20.0 MB, "
            "brokers with the authorizer refuse all producers. The rest has room for 1.7 MB/s "
            "on a volume during the 12 s that brokers may take to act."
        ] == [line for line in lines if "stop" in line]
        assert "stop" not in check(cluster, **{STOP_BYTES: "20000000"}).output

    def test_a_volume_at_it_is_stopped(self, cluster: FakeCluster) -> None:
        """The exit code is that of a violated limit, which it is too."""
        cluster.brokers[1].log_dirs = (FakeLogDir("/d", 64 * MB, 20 * MB),)
        result = check(cluster, **{STOP_BYTES: "20000000"})
        assert 1 == result.exit_code
        verdicts = [" ".join(row[9:]) for row in rows(result)]
        assert ["ok", "AT STOP LINE", "ok"] == verdicts
        verdict = result.stdout.splitlines()[-1]
        assert verdict.endswith("; 1 volume violates the stop line of 20.0 MB")

    def test_one_that_is_not_below_the_limit_is_named_by_volume(self, cluster: FakeCluster) -> None:
        """Bytes and a ratio meet on volumes alone: 62.5 % of 64 MB are 40 MB."""
        cluster.brokers[1].log_dirs = (FakeLogDir("/d", 100 * MB, 99 * MB),)
        below = check(cluster, **{STOP_RATIO: "0.39"})
        assert "stop line" not in below.output
        result = check(cluster, **{STOP_RATIO: "0.4"})
        assert 0 == result.exit_code
        lines = [line for line in result.stdout.splitlines() if "stop line" in line]
        assert [
            "Broker 1 /d (100.0 MB): the stop line of 40.0% is not below the limit of 40.0 MB, so "
            "the limit is the stop line; set a lower stop line, or a higher limit."
        ] == lines
        everywhere = check(cluster, **{STOP_RATIO: "0.625"})
        (line,) = (line for line in everywhere.stdout.splitlines() if "is not below" in line)
        expected = f"Broker 0 {HEALTHY.log_dir} (64.0 MB), broker 1 /d (100.0 MB), broker 2 "
        assert line.startswith(expected)

    def test_json_has_the_same(self, cluster: FakeCluster) -> None:
        """Which line is set or recommended, whether it stops, and where it is too high."""
        names = ("stop_line_reached", "stop_line", "recommended_stop_line")
        cluster.brokers[1].log_dirs = (FakeLogDir("/d", 64 * MB, 20 * MB),)
        documents = [
            json.loads(check(cluster, "--json", **settings).stdout)
            for settings in ({}, {STOP_BYTES: "20000000"}, {STOP_RATIO: "0.7"})
        ]
        everywhere = [
            (broker_id, log_dir, "stop line", True)
            for broker_id, log_dir in ((0, HEALTHY.log_dir), (1, "/d"), (2, HEALTHY.log_dir))
        ]
        in_bytes = {"type": "min_available_bytes", "value": 20_000_000}
        ratio = {"type": "min_available_ratio", "value": 0.7}
        assert [
            [False, None, in_bytes],
            [True, in_bytes, None],
            [True, ratio, None],
        ] == [[document[name] for name in names] for document in documents]
        assert [[], [], everywhere] == [
            [
                (each["broker_id"], each["log_dir"], each["line"], "not below" in each["effect"])
                for each in document["misfits"]
            ]
            for document in documents
        ]

    def test_a_margin_and_a_soft_limit_that_no_volume_reaches(self, cluster: FakeCluster) -> None:
        """Each is one line; the exit code is that of the limit."""
        lines = {
            "SIDECAR_STORAGE_RELEASE_MARGIN_BYTES": "100000000",
            "SIDECAR_STORAGE_PER_VOLUME_SOFT_LIMIT_MIN_AVAILABLE_BYTES": "200000000",
        }
        result = check(cluster, **lines)
        assert 0 == result.exit_code
        for name in ("release margin of 100.0 MB", "soft limit of 200.0 MB"):
            assert 1 == result.stdout.count(name)


class TestJson:
    def test_it_has_what_the_api_has_and_the_verdict(self, cluster: FakeCluster) -> None:
        """The same names as in /v1/volumes and /v1/brokers."""
        cluster.brokers[1].log_dirs = (FULL, OFFLINE)
        result = check(cluster, "--json")
        assert 1 == result.exit_code
        document = json.loads(result.stdout)
        assert "limit violated" == document["verdict"]
        assert "fake-cluster" == document["cluster_id"]
        assert {"type": "min_available_bytes", "value": 40 * MB} == document["limit"]
        assert [0, 1, 2] == [broker["broker_id"] for broker in document["brokers"]]
        volumes = {(v["broker_id"], v["log_dir"]): v for v in document["volumes"]}
        full = volumes[1, FULL.log_dir]
        assert (True, 40 * MB, 0.625) == (
            full["limit_violated"],
            full["available_bytes"],
            full["available_ratio"],
        )
        offline = volumes[1, OFFLINE.log_dir]
        assert ("offline", None) == (offline["state"], offline["total_bytes"])

    def test_it_is_whole_when_the_verdict_is_unknown(self, cluster: FakeCluster) -> None:
        """A script finds the reason where it finds the verdict."""
        cluster.brokers[2].log_dirs_error = 31
        result = check(cluster, "--json")
        assert 2 == result.exit_code
        document = json.loads(result.stdout)
        assert "unknown" == document["verdict"]
        assert f"Unknown: {document['reason']}\n" == result.stderr
        assert "authorization" == document["brokers"][2]["last_failure"]["kind"]
