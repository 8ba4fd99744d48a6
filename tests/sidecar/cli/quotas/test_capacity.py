"""``quotas capacity``: every broker's threads, what they are together, and who differs."""

import json

from kio.schema.errors import ErrorCode

from tests.sidecar.cli.quotas.conftest import Run
from tests.support.fake_configs import FakeConfigs


def test_every_broker_is_printed_as_in_the_article(run: Run) -> None:
    """It prints the script's lines, once for each broker."""
    result = run("capacity")
    expected = [
        "broker.id...................: 0",
        "num.io.threads..............: 8",
        "num.network.threads.........: 3",
        "quota.window.size.seconds...: 1",
        "total capacity..............: 1100",
    ]
    assert (0, "") == (result.exit_code, result.stderr)
    assert expected == result.stdout.splitlines()[:5]
    assert ["", "broker.id...................: 1"] == result.stdout.splitlines()[5:7]


def test_brokers_that_differ_are_reported(run: Run, configs: FakeConfigs) -> None:
    """The warning has the setting, its values, and the broker to plan for."""
    configs.configs[1]["num.io.threads"] = "32"
    result = run("capacity")
    assert 0 == result.exit_code
    assert "num.io.threads differs: 8 on 0; 32 on 1" in result.stderr
    assert "the smallest, broker 0, has 1,100 %" in result.stderr


def test_json_has_it_all(run: Run, configs: FakeConfigs) -> None:
    """It has both forms of the capacity, the smallest, and the warnings."""
    configs.configs[1]["num.network.threads"] = "32"
    document = json.loads(run("capacity", "--json").stdout)
    assert {
        "broker_id": 1,
        "num.io.threads": 8,
        "num.network.threads": 32,
        "quota.window.size.seconds": 1,
        "capacity_percent": 4000,
        "io_capacity_percent": 800,
    } == document["brokers"][1]
    assert 1100 == document["smallest_capacity_percent"]
    assert 2 == len(document["warnings"])


def test_a_broker_that_refuses_is_reported(run: Run, configs: FakeConfigs) -> None:
    """The other one is printed; the exit code is 1."""
    configs.refused[1] = ErrorCode.cluster_authorization_failed
    result = run("capacity")
    assert 1 == result.exit_code
    assert "broker.id...................: 0" in result.stdout
    assert "broker 1: " in result.stderr
    assert "--operation DescribeConfigs" in result.stderr


def test_a_setting_without_a_number_is_no_capacity(run: Run, configs: FakeConfigs) -> None:
    """If it is missing, no number, or 0, that broker has a problem that names the setting."""
    for value, said in (
        (None, "num.io.threads is missing"),
        ("many", "num.io.threads is missing or not a number: many"),
        ("0", "num.io.threads is 0"),
    ):
        configs.configs[1]["num.io.threads"] = value
        result = run("capacity")
        assert 1 == result.exit_code
        assert said in result.stderr
    del configs.configs[1]["num.io.threads"]
    assert "num.io.threads is missing" in run("capacity").stderr


def test_no_broker_that_answers_is_a_refusal(run: Run, configs: FakeConfigs) -> None:
    """The exit code is 2, each broker has its reason, and standard output is empty."""
    configs.refused = {0: ErrorCode.invalid_request, 1: ErrorCode.invalid_request}
    result = run("capacity")
    assert (2, "") == (result.exit_code, result.stdout)
    assert ["broker 0:", "broker 1:"] == [line[:9] for line in result.stderr.splitlines()]
