"""``request-log``: on for a while, off and status, on a simulated cluster."""

import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kio.schema.errors import ErrorCode

from sidecar.cli import group, request_log_line
from sidecar.kafka.broker_loggers import REQUEST_LOGGER
from tests.support.background import bootstrap, running
from tests.support.fake_broker import FakeCluster
from tests.support.fake_configs import FakeConfigs


@pytest.fixture
def configs() -> FakeConfigs:
    """Three brokers, the last one with its request log on already."""
    return FakeConfigs(
        configs={
            0: {"log.dirs": "/a,/b", "log.dir": "/tmp/kafka", "metadata.log.dir": "/m"},
            1: {"log.dirs": None, "log.dir": "/tmp/kafka", "metadata.log.dir": None},
            2: {"log.dirs": "/c", "log.dir": "/tmp/kafka", "metadata.log.dir": "/c"},
        },
        loggers={
            0: {REQUEST_LOGGER: "WARN"},
            1: {REQUEST_LOGGER: "INFO"},
            2: {REQUEST_LOGGER: "DEBUG"},
        },
    )


@pytest.fixture
def cluster(configs: FakeConfigs) -> Iterator[FakeCluster]:
    """The cluster, which runs."""
    with running(configs.of(FakeCluster().add(3))) as cluster:
        yield cluster


def request_log(cluster: FakeCluster, *args: str) -> Result:
    words = ["request-log", *args, "--bootstrap-server", bootstrap(cluster)]
    return CliRunner().invoke(group, words)


def on_by_settings(cluster: FakeCluster, file: Path, *words: str, **environ: str) -> Result:
    """Turn it on for a moment, with the daemon's settings."""
    environ |= {
        "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": bootstrap(cluster),
        "SIDECAR_REQUEST_LOG_FILE": str(file),
    }
    command = ["request-log", "on", "--for", "PT0.1S", *words]
    return CliRunner(env=environ).invoke(group, command)


def levels(configs: FakeConfigs) -> list[str]:
    return [each[REQUEST_LOGGER] for each in configs.loggers.values()]


def rows(result: Result) -> list[list[str]]:
    """The cells of the table's rows."""
    table, _, _ = result.stdout.partition("\n\n")
    return [line.split() for line in table.splitlines() if line[:1].isdigit()]


class TestOn:
    def test_it_is_on_for_as_long_as_was_said(
        self, cluster: FakeCluster, configs: FakeConfigs
    ) -> None:
        """Then every broker has its previous level; a log that was on stays on.

        Each broker's row has its log dirs. The text says how to find the file, and when it ends.
        """
        result = request_log(cluster, "on", "--for", "PT0.1S")
        assert (0, "") == (result.exit_code, result.stderr)
        on, back = sorted(configs.altered[:2]), sorted(configs.altered[2:])
        assert [(0, REQUEST_LOGGER, "DEBUG"), (1, REQUEST_LOGGER, "DEBUG")] == on
        assert [(0, REQUEST_LOGGER, "WARN"), (1, REQUEST_LOGGER, "INFO")] == back
        assert ["WARN", "INFO", "DEBUG"] == levels(configs)
        stdout = result.stdout
        expected = [
            ["0", "WARN", "DEBUG", "/a,", "/b,", "/m"],
            ["1", "INFO", "DEBUG", "/tmp/kafka"],
            ["2", "DEBUG", "DEBUG", "/c"],
        ]
        assert expected == rows(result)
        assert "must not be on a data volume" in stdout
        assert "1,000 requests" in stdout
        assert "(PT0.1S); Ctrl-C turns it off earlier." in stdout
        assert "Every broker has its previous level again." == stdout.splitlines()[-1]
        assert max(map(len, stdout.splitlines())) <= 80

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_a_signal_ends_it_and_turns_it_back(
        self, cluster: FakeCluster, configs: FakeConfigs, number: signal.Signals
    ) -> None:
        """It ends as at the end of its time; so does a closed terminal."""

        def end_it() -> None:
            # The handlers are there before the first level is set.
            while not configs.altered:
                done.wait(0.01)
            os.kill(os.getpid(), number)

        done = threading.Event()
        thread = threading.Thread(target=end_it)
        thread.start()
        result = request_log(cluster, "on", "--for", "PT10M")
        thread.join()
        assert 0 == result.exit_code
        assert ["WARN", "INFO", "DEBUG"] == levels(configs)

    def test_nothing_to_turn_on_ends_it_at_once(
        self, cluster: FakeCluster, configs: FakeConfigs
    ) -> None:
        """Only the named broker is asked. Its log was on, and stays on: nothing is to wait for."""
        result = request_log(cluster, "on", "--for", "PT10M", "--broker", "2")
        assert 0 == result.exit_code
        assert "The request log was turned on nowhere" in result.stdout
        assert (
            'On broker 2 the log was on before. It stays on until "request-log off".'
            in result.stdout
        )
        assert [] == configs.altered

    def test_a_broker_that_refuses_makes_the_exit_code_1(
        self, cluster: FakeCluster, configs: FakeConfigs
    ) -> None:
        """The others are turned on all the same; standard error says what is needed."""
        configs.refused[0] = ErrorCode.cluster_authorization_failed
        result = request_log(cluster, "on", "--for", "PT0.1S")
        assert 1 == result.exit_code
        assert [["0", "unknown", "unknown", "unknown"], ["1", "INFO", "DEBUG", "/tmp/kafka"]] == (
            rows(result)[:2]
        )
        assert result.stderr.startswith("broker 0: DescribeConfigs returned error 31")
        assert 1 == len(result.stderr.splitlines())

    def test_its_own_line_is_in_the_file(
        self, cluster: FakeCluster, configs: FakeConfigs, tmp_path: Path
    ) -> None:
        """The file is of one broker, which the line names; the client-id is this command's own."""
        file = configs.request_logs[1] = tmp_path / "kafka-request.log"
        result = request_log(cluster, "on", "--for", "PT0.1S", "--file", str(file))
        assert (0, "") == (result.exit_code, result.stderr)
        expected = f"on: the line of this command's request to broker 1 is in {file}.\n"
        assert expected in result.stdout
        assert "was not checked" not in result.stdout
        assert re.search(r'"clientId":"throttle-sidecar-request-log-\w{8}"', file.read_text())

    def test_a_file_that_gets_no_line_ends_it(
        self,
        cluster: FakeCluster,
        configs: FakeConfigs,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """An appender's filter drops every line: the levels are restored at once, exit code 1."""
        monkeypatch.setattr(request_log_line, "WAIT_S", 0.5)
        file = tmp_path / "kafka-request.log"
        file.touch()
        result = request_log(cluster, "on", "--for", "PT5S", "--file", str(file))
        assert 1 == result.exit_code
        assert f"no line of this command's requests was seen: nothing was written to {file}" in (
            result.stderr
        )
        assert "It is on until" not in result.stdout
        assert ["WARN", "INFO", "DEBUG"] == levels(configs)

    def test_without_a_file_only_the_level_is_claimed(self, cluster: FakeCluster) -> None:
        """The text says how to name the file."""
        stdout = request_log(cluster, "on", "--for", "PT0.1S").stdout
        assert "Whether the broker writes the lines was not checked" in stdout
        assert "--file FILE" in stdout

    @pytest.mark.parametrize(
        ("words", "is_checked"),
        [((), True), (("--broker", "0"), True), (("--broker", "1"), False)],
    )
    def test_the_daemons_settings_name_the_file(
        self,
        cluster: FakeCluster,
        configs: FakeConfigs,
        tmp_path: Path,
        words: tuple[str, ...],
        is_checked: bool,
    ) -> None:
        """It is the file of the broker beside the daemon, so it says nothing about others."""
        file = configs.request_logs[0] = tmp_path / "kafka-request.log"
        file.touch()
        result = on_by_settings(cluster, file, *words, SIDECAR_BROKER_ID="0")
        assert (0, "") == (result.exit_code, result.stderr)
        assert is_checked == (f"request to broker 0 is in {file}." in result.stdout)

    @pytest.mark.parametrize("is_option", [True, False])
    def test_a_layout_of_its_own(
        self, cluster: FakeCluster, configs: FakeConfigs, tmp_path: Path, is_option: bool
    ) -> None:
        """Its pattern is an option or a daemon's setting."""
        file = configs.request_logs[0] = tmp_path / "kafka-request.log"
        file.touch()
        configs.request_log_time = b"at 10 "
        layout = "at %r %p %m (%c)%n"
        if is_option:
            words = ("on", "--for", "PT0.1S", "--file", str(file), "--layout", layout)
            result = request_log(cluster, *words)
        else:
            result = on_by_settings(cluster, file, SIDECAR_REQUEST_LOG_LAYOUT=layout)
        assert (0, "") == (result.exit_code, result.stderr)
        assert f"request to broker 0 is in {file}." in result.stdout

    def test_settings_from_another_machine_do_not_end_it(
        self, cluster: FakeCluster, tmp_path: Path
    ) -> None:
        """Their file is not there, so this command can't see what the broker writes."""
        result = on_by_settings(cluster, tmp_path / "kafka-request.log")
        assert (0, "") == (result.exit_code, result.stderr)
        assert "was not checked" in result.stdout

    @pytest.mark.parametrize("words", [[], ["--for", "10M"], ["--for", "PT0S"]])
    def test_without_an_end_it_is_refused(
        self, cluster: FakeCluster, configs: FakeConfigs, words: list[str]
    ) -> None:
        """It can't be turned on for ever; nobody is asked."""
        result = request_log(cluster, "on", *words)
        assert (2, True) == (result.exit_code, "'--for'" in result.stderr)
        assert [] == configs.altered


class TestOff:
    def test_it_is_turned_off_where_it_is_on(
        self, cluster: FakeCluster, configs: FakeConfigs
    ) -> None:
        """A session was killed hard before; the others stay at their levels."""
        result = request_log(cluster, "off")
        assert (0, "") == (result.exit_code, result.stderr)
        assert [(2, REQUEST_LOGGER, "WARN")] == configs.altered
        assert ["2", "DEBUG", "WARN", "/c"] == rows(result)[2]

    def test_to_another_level(self, cluster: FakeCluster, configs: FakeConfigs) -> None:
        """The level may be any at which nothing is written; "on", which has an end, sets DEBUG."""
        assert 0 == request_log(cluster, "off", "--level", "off").exit_code
        assert ["WARN", "INFO", "OFF"] == levels(configs)
        assert 2 == request_log(cluster, "off", "--level", "DEBUG").exit_code

    def test_json(self, cluster: FakeCluster) -> None:
        """It has the level before, the level now, and where the data lies."""
        document = json.loads(request_log(cluster, "off", "--json").stdout)
        expected = {
            "broker_id": 2,
            "level_before": "DEBUG",
            "level": "WARN",
            "request_log": "off",
            "log_dirs": ["/c"],
            "failure": None,
        }
        assert expected == document["brokers"][2]


class TestStatus:
    def test_it_shows_where_it_is_on(self, cluster: FakeCluster, configs: FakeConfigs) -> None:
        """It changes nothing."""
        result = request_log(cluster, "status")
        assert (0, "") == (result.exit_code, result.stderr)
        expected = [["0", "WARN", "off"], ["1", "INFO", "off"], ["2", "DEBUG", "on"]]
        assert expected == [row[:3] for row in rows(result)]
        assert "must not be on a data volume" in result.stdout
        assert [] == configs.altered

    def test_json_has_a_failure_too(self, cluster: FakeCluster, configs: FakeConfigs) -> None:
        """A script finds it with the rest; the exit code is 1."""
        configs.loggers[1] = {}
        result = request_log(cluster, "status", "--json")
        assert 1 == result.exit_code
        document = json.loads(result.stdout)
        assert ["off", "unknown", "on"] == [each["request_log"] for each in document["brokers"]]
        failure = document["brokers"][1]["failure"]
        assert failure.startswith("broker 1: ")
        assert f"{failure}\n" == result.stderr


class TestControllers:
    def test_they_are_asked_as_controllers(
        self, cluster: FakeCluster, configs: FakeConfigs
    ) -> None:
        """Their own listing is used; the simulated brokers answer it as controllers do."""
        words = ["request-log", "on", "--for", "PT0.1S", "--bootstrap-controller"]
        result = CliRunner().invoke(group, [*words, bootstrap(cluster)])
        assert 0 == result.exit_code
        assert 4 == len(configs.altered)
        asked = [r for b in cluster.brokers.values() for r in b.requests if r.api_key == 60]
        assert {(1, b"\x00\x02\x00")} == {(each.api_version, each.body) for each in asked}

    def test_brokers_and_controllers_are_not_mixed(self, cluster: FakeCluster) -> None:
        """Their ids may be the same."""
        result = request_log(cluster, "status", "--bootstrap-controller", "c:9093")
        assert 2 == result.exit_code


@pytest.mark.parametrize("words", [["on", "--for", "PT1S"], ["off"], ["status"]])
def test_no_cluster_at_all_is_exit_code_1(words: list[str]) -> None:
    """It prints one line, no table and no traceback."""
    result = CliRunner().invoke(group, ["request-log", *words, "--bootstrap-server", "127.0.0.1:1"])
    assert 1 == result.exit_code
    assert "" == result.stdout
    assert "127.0.0.1:1" in result.stderr
    assert 1 == len(result.stderr.splitlines())
